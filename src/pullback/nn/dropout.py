"""Dropout, and other layers in which chance decides.

Everything is drawn by the generator of the device, or one that is given; the draws themselves have
no gradient, what they are multiplied with has.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.arrays import get_default_dtype, library_of, real_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.dimensions import in_dimensions
from pullback.nn.embedding import one_hot
from pullback.nn.in_place import write_back
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions import creation, random
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.manipulation import moveaxis
from pullback.ops.functions.pointwise import add, where
from pullback.ops.functions.random import chance_like, real_dtype
from pullback.ops.functions.reductions import softmax
from pullback.ops.primitives.arithmetic import divide, multiply, negative, subtract
from pullback.ops.primitives.comparison import greater
from pullback.ops.primitives.exponential import log
from pullback.ops.samples import real, sample


# -- dropout ---------------------------------------------------------------------------------------
@composition(
    sample((3, 4), p=0.5, seed=0),
    sample((2, 2), p=1.0, seed=0),
    sample((), p=0.3, seed=1),
    sample((0, 2), p=0.3, seed=1),
    sample((2,), p=0.3, seed=1, training=False),
    call=lambda f, input, *, p, seed, training=True: f(
        input, p, training, generator=random.Generator(getattr(input, "device", "cpu"), seed)
    ),
)
def dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Return `input` with each element set to 0 with probability `p`, the rest over 1 - p.

    The mean stays as it was; where it is not in training, the input itself is returned.

    Parameters
    ----------
    input : Tensor
    p : float
        From 0 to 1.
    training : bool
        Whether anything is dropped.
    inplace : bool
        Write into the input, and return it.
    generator : Generator, optional
        What draws; by default the generator of the device, which `manual_seed` seeds.

    Raises
    ------
    ArgumentError
        If `p` is no probability.

    Examples
    --------
    >>> import pullback as pb
    >>> _ = pb.manual_seed(0)
    >>> kept = pb.dropout(pb.ones(1000), 0.2)
    >>> sorted(set(kept.tolist())), bool(abs(kept.mean() - 1) < 0.1)
    ([0.0, 1.25], True)
    """
    needs_tensor("dropout", input, "input")
    if not 0 <= p <= 1:
        raise ArgumentError(compose("dropout", "a probability p from 0 to 1 required", repr(p)))
    x = asarray(input)
    if not training or p == 0:
        return x
    drawn = random.rand(x.shape, dtype="float32", device=x.device, generator=generator)
    array = drawn.data_array()
    library = library_of(array)
    dtype = real_of(x.dtype) if x.dtype.is_inexact else get_default_dtype()
    survivors = library.astype(library.tidy(array >= p), dtype)
    mask = box(library.tidy(survivors * (1 / (1 - p) if p < 1 else 0.0)))
    return x.mul_(mask) if inplace else x * mask


# -- dropping whole channels -----------------------------------------------------------------------
def _seeded(f: Callable[..., Tensor], input: Any, *, seed: int, **settings: Any) -> Tensor:
    """Call a function for the tests, with a generator that begins at `seed`."""
    device = getattr(input, "device", "cpu")
    device = device if isinstance(device, str) else "cpu"
    return f(input, generator=random.Generator(device, seed), **settings)


@in_dimensions(
    (sample((3, 2), p=0.5, seed=0),),
    (sample((2, 2, 1, 2), p=0.5, seed=0),),
    (sample((3, 1, 1, 2), p=0.5, seed=0),),
    examples=[
        f">>> pb.nn.functional.dropout{n}d(pb.ones(1, 2{', 3' * n}), 1.0).sum()\ntensor(0.)"
        for n in (1, 2, 3)
    ],
    name="dropout",
    call=_seeded,
    scalars=False,
)
def by_channel(
    n: int,
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Return {things} with each whole channel set to 0 with probability `p`; see `dropout`.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op = f"dropout{n}d"
    x = tensor_of(op, input, "input")
    if len(x.shape) not in (n + 1, n + 2):
        required = f"{n + 1} or {n + 2} dimensions, (N,) C and places, required"
        raise ShapeError(compose(op, required, str(len(x.shape)), ("input", x)))
    shape = (*x.shape[:-n], *(1,) * n)
    ones = creation.ones(shape, dtype=real_dtype(x), device=x.device)
    mask = dropout(ones, p, training, generator=generator)
    return x.mul_(mask) if inplace else multiply(x, mask)


dropout1d, dropout2d, dropout3d = by_channel


# What `selu` gives at minus infinity.
_FLOOR = -1.7580993408473766


@composition(
    sample((3, 4), p=0.5, seed=0),
    sample((), p=0.3, seed=1),
    domain=real(-2, 2),
    call=_seeded,
)
def alpha_dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Return `input` with elements set to the floor of `selu`, then scaled: the moments stay.

    Klambauer et al., Self-Normalizing Neural Networks (2017).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.alpha_dropout(pb.ones(2), training=False)
    tensor([1., 1.])
    """
    if inplace:
        return write_back(alpha_dropout, input, p, training, generator=generator)
    x = tensor_of("alpha_dropout", input, "input")
    if not 0 <= p <= 1:
        raise ArgumentError(compose("alpha_dropout", "a probability p required", repr(p)))
    if not training or p == 0:
        return x
    if p == 1:
        return multiply(x, 0)
    survivors = greater(chance_like(x, generator), p)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _FLOOR**2))
    return add(multiply(where(survivors, x, _FLOOR), scale), -scale * p * _FLOOR)


# -- disturbing ------------------------------------------------------------------------------------
@composition(
    sample((2, 3), tau=0.7, seed=0),
    sample((), tau=2.0, seed=1),
    domain=real(-2, 2),
    call=_seeded,
)
def gumbel_softmax(
    logits: Any,
    tau: float = 1.0,
    hard: bool = False,
    dim: int = -1,
    *,
    generator: Any = None,
) -> Tensor:
    """Return softmax((logits + noise) / tau) along `dim`, of noise of Gumbel's distribution.

    Parameters
    ----------
    logits : Tensor
    tau : float
    hard : bool
        Return 1 at the largest and 0 elsewhere, with the gradient of what is returned else.
    dim : int
    generator : Generator, optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.gumbel_softmax(pb.tensor([0.0, 100.0]), hard=True)
    tensor([0., 1.])
    """
    x = tensor_of("gumbel_softmax", logits, "logits")
    noise = negative(log(add(negative(log(chance_like(x, generator))), 1e-20)))
    soft = softmax(divide(add(x, noise), tau), dim)
    if not hard:
        return soft
    best = soft.detach()
    first = one_hot(best.argmax(dim), x.shape[dim])
    chosen = moveaxis(first, -1, dim).to(x.dtype)
    return add(subtract(chosen, best), soft)


@composition(
    sample((3, 4), seed=0),
    sample((), lower=0.1, upper=0.2, training=False, seed=0),
    domain=real(-2, 2, 0),
    call=_seeded,
    reference=(
        lambda np, x, seed, lower=1 / 8, upper=1 / 3, training=False: np.where(
            x > 0, x, x * (lower + upper) / 2
        )
    ),
)
def rrelu(
    x: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Return x where it is positive, else x times a slope, drawn in training, else the middle one.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rrelu(pb.tensor([-1.0, 2.0]), 0.25, 0.25)
    tensor([-0.2500,  2.0000])
    """
    if inplace:
        return write_back(rrelu, x, lower, upper, training, generator=generator)
    x = tensor_of("rrelu", x)
    if lower > upper:
        raise ArgumentError(compose("rrelu", "lower up to upper required", f"{lower}, {upper}"))
    slope: Any = (lower + upper) / 2
    if training:
        slope = add(multiply(chance_like(x, generator), upper - lower), lower)
    return where(greater(x, 0), x, multiply(x, slope))
