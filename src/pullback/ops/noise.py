"""What chance decides: draws of distributions, and layers that drop or disturb.

Everything is drawn by the generator of the device, or one that is given; the draws themselves have
no gradient, what they are multiplied with has.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import get_default_dtype
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops import random
from pullback.ops._declare import composition, real, sample
from pullback.ops.comparison import greater, less
from pullback.ops.elementary import log
from pullback.ops.elementwise import add, divide, multiply, negative, subtract, where
from pullback.ops.exponential_sums import softmax
from pullback.ops.filled import shape_of
from pullback.ops.shape import tensor_of

__all__ = [
    "alpha_dropout",
    "bernoulli",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "gumbel_softmax",
    "multinomial",
    "normal",
    "randint_like",
    "rrelu",
]


def _real(x: Tensor) -> Any:
    return x.dtype if x.dtype.is_floating_point else get_default_dtype()


# -- draws -----------------------------------------------------------------------------------------
def uniform_like(x: Tensor, generator: Any = None) -> Tensor:
    """Return numbers from (0, 1] in the shape and device of `x`, in its dtype if it is real."""
    dtype = x.dtype if x.dtype.is_floating_point else get_default_dtype()
    drawn: Tensor = 1 - random.rand(x.shape, dtype=dtype, device=x.device, generator=generator)
    return drawn


def _chance(x: Tensor, generator: Any) -> Tensor:
    """Return numbers from (0, 1] that do not depend on the precision of `x`."""
    drawn: Tensor = 1 - random.rand(x.shape, dtype="float32", device=x.device, generator=generator)
    return drawn.to(_real(x))


def bernoulli(input: Any, p: float | None = None, *, generator: Any = None) -> Tensor:
    """Return 1 with the probability that each element of `input` says, or `p`, and else 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bernoulli(pb.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    x = tensor_of("bernoulli", input, "input").detach()
    chance = x if p is None else float(p)
    wrong = bool(((x < 0) | (x > 1)).any()) if p is None else not 0 <= p <= 1
    if wrong:
        required = "probabilities from 0 to 1 required"
        raise ArgumentError(compose("bernoulli", required, "others", ("input", x)))
    hit: Tensor = less(1 - uniform_like(x, generator), chance)
    return hit.to(x.dtype)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    generator: Any = None,
) -> Tensor:
    """Return numbers from the normal distribution of a mean and a standard deviation.

    Parameters
    ----------
    mean, std : float or Tensor
        Tensors broadcast with each other.
    size : tuple of int, optional
        The shape, where both are numbers.
    dtype, device, requires_grad, generator
        As for `randn`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.normal(pb.tensor([1.0, 2.0]), 0.0)
    tensor([1., 2.])
    """
    given = [x.detach() for x in (mean, std) if isinstance(x, Tensor)]
    if any(bool((s < 0).any()) if isinstance(s, Tensor) else s < 0 for s in (std,)):
        raise ArgumentError(compose("normal", "a std of at least 0 required", "a negative one"))
    if given:
        size = TENSORS.broadcast_arrays(*given)[0].shape
        kind = given[0].dtype if given[0].dtype.is_inexact else get_default_dtype()
        dtype, device = dtype or kind, device or given[0].device
    elif size is None:
        raise ArgumentError("normal: a size is required where mean and std are numbers, got None")
    drawn = random.randn(
        shape_of("normal", (tuple(size),)), dtype=dtype, device=device, generator=generator
    )
    mean, std = (x.detach() if isinstance(x, Tensor) else x for x in (mean, std))
    result = add(multiply(drawn, std), mean)
    return result.requires_grad_() if requires_grad else result


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Return indices of the elements of rows, each drawn with a probability as large as it is.

    Parameters
    ----------
    input : Tensor, shape (n,) or (rows, n)
        Not negative; what matters is how large the elements of a row are among each other.
    num_samples : int
        How many indices of each row.
    replacement : bool
        Whether an element may be drawn several times.
    generator : Generator, optional

    Raises
    ------
    ArgumentError, ShapeError
        If there is a negative weight, or no positive one, or are too few.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.multinomial(pb.tensor([0.0, 3.0, 0.0]), 1)
    tensor([1])
    """
    x = tensor_of("multinomial", input, "input").detach()
    if len(x.shape) not in (1, 2):
        came = f"{len(x.shape)} dimensions"
        required = "a vector or a matrix of weights required"
        raise ShapeError(compose("multinomial", required, came, ("input", x)))
    enough = 1 if replacement else num_samples
    if num_samples < 1 or bool((x < 0).any()) or bool(((x > 0).sum(-1) < enough).any()):
        required = f"weights of at least 0, {enough} of them positive, required"
        raise ArgumentError(compose("multinomial", required, "others", ("input", x)))
    if not replacement:  # the largest of weights over exponential draws (Efraimidis, 2006)
        keys = divide(x, subtract(0, log(uniform_like(x, generator))) + 1e-38)
        return keys.topk(num_samples, -1).indices
    shares = x.cumsum(-1)
    drawn = random.rand(
        (*x.shape[:-1], num_samples), dtype=shares.dtype, device=x.device, generator=generator
    )
    wanted = multiply(drawn, shares[..., -1:])
    below = less(wanted.unsqueeze(-1), shares.unsqueeze(-2))
    return below.to("int64").argmax(-1)  # the first whose sum is beyond


def randint_like(x: Tensor, low: int, high: int | None = None, **options: Any) -> Tensor:
    """Return integers from `low` (0 if only one is given) up to `high` in the shape of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.randint_like(pb.zeros(2), 3, 4)
    tensor([3., 3.])
    """
    begin, end = (0, low) if high is None else (low, high)
    settings = {"dtype": x.dtype, "device": x.device, **options}
    return random.randint(begin, end, x.shape, **settings)


# -- dropping whole channels -----------------------------------------------------------------------
def _seeded(name: str) -> Any:
    def call(input: Any, *, seed: int, **settings: Any) -> Tensor:
        device = getattr(input, "device", "cpu")
        device = device if isinstance(device, str) else "cpu"
        function = getattr(TENSORS, name)
        result: Tensor = function(input, generator=random.Generator(device, seed), **settings)
        return result

    return call


def _by_channel(op: str, ndim: int, input: Any, p: float, training: bool, generator: Any) -> Tensor:
    x = tensor_of(op, input, "input")
    if len(x.shape) not in (ndim, ndim + 1):
        required = f"{ndim} or {ndim + 1} dimensions, (N,) C and places, required"
        raise ShapeError(compose(op, required, str(len(x.shape)), ("input", x)))
    lead = len(x.shape) - ndim + 1
    ones = TENSORS.ones((*x.shape[:lead], *(1,) * (ndim - 1)), dtype=_real(x), device=x.device)
    return multiply(x, TENSORS.dropout(ones, p, training, generator=generator))


@composition(sample((3, 2), p=0.5, seed=0), call=_seeded("dropout1d"))
def dropout1d(
    input: Any, p: float = 0.5, training: bool = True, *, generator: Any = None
) -> Tensor:
    """Return sequences with each whole channel set to 0 with probability `p`; see `dropout`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dropout1d(pb.ones(1, 2, 3), 1.0).sum()
    tensor(0.)
    """
    return _by_channel("dropout1d", 2, input, p, training, generator)


@composition(sample((2, 2, 1, 2), p=0.5, seed=0), call=_seeded("dropout2d"))
def dropout2d(
    input: Any, p: float = 0.5, training: bool = True, *, generator: Any = None
) -> Tensor:
    """Return images with each whole channel set to 0 with probability `p`; see `dropout`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dropout2d(pb.ones(1, 2, 3, 3), 1.0).sum()
    tensor(0.)
    """
    return _by_channel("dropout2d", 3, input, p, training, generator)


@composition(sample((3, 1, 1, 2), p=0.5, seed=0), call=_seeded("dropout3d"))
def dropout3d(
    input: Any, p: float = 0.5, training: bool = True, *, generator: Any = None
) -> Tensor:
    """Return volumes with each whole channel set to 0 with probability `p`; see `dropout`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dropout3d(pb.ones(1, 2, 1, 1, 1), 1.0).sum()
    tensor(0.)
    """
    return _by_channel("dropout3d", 4, input, p, training, generator)


# What `selu` gives at minus infinity.
_FLOOR = -1.7580993408473766


@composition(
    sample((3, 4), p=0.5, seed=0),
    sample((), p=0.3, seed=1),
    domain=real(-2, 2),
    call=_seeded("alpha_dropout"),
)
def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = True, *, generator: Any = None
) -> Tensor:
    """Return `input` with elements set to the floor of `selu`, then scaled: the moments stay.

    Klambauer et al., Self-Normalizing Neural Networks (2017).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.alpha_dropout(pb.ones(2), training=False)
    tensor([1., 1.])
    """
    x = tensor_of("alpha_dropout", input, "input")
    if not 0 <= p <= 1:
        raise ArgumentError(compose("alpha_dropout", "a probability p required", repr(p)))
    if not training or p == 0:
        return x
    if p == 1:
        return multiply(x, 0)
    kept = greater(_chance(x, generator), p)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _FLOOR**2))
    return add(multiply(where(kept, x, _FLOOR), scale), -scale * p * _FLOOR)


# -- disturbing ------------------------------------------------------------------------------------
@composition(
    sample((2, 3), tau=0.7, seed=0),
    sample((), tau=2.0, seed=1),
    domain=real(-2, 2),
    call=_seeded("gumbel_softmax"),
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
    >>> pb.gumbel_softmax(pb.tensor([0.0, 100.0]), hard=True)
    tensor([0., 1.])
    """
    x = tensor_of("gumbel_softmax", logits, "logits")
    noise = negative(log(add(negative(log(_chance(x, generator))), 1e-20)))
    soft = softmax(divide(add(x, noise), tau), dim)
    if not hard:
        return soft
    best = soft.detach()
    first = TENSORS.one_hot(best.argmax(dim), x.shape[dim])
    chosen = TENSORS.moveaxis(first, -1, dim).to(x.dtype)
    return add(subtract(chosen, best), soft)


@composition(
    sample((3, 4), seed=0),
    sample((), lower=0.1, upper=0.2, training=False, seed=0),
    domain=real(-2, 2, 0),
    call=_seeded("rrelu"),
)
def rrelu(
    x: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
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
    x = tensor_of("rrelu", x)
    if lower > upper:
        raise ArgumentError(compose("rrelu", "lower up to upper required", f"{lower}, {upper}"))
    slope: Any = (lower + upper) / 2
    if training:
        slope = add(multiply(_chance(x, generator), upper - lower), lower)
    return where(greater(x, 0), x, multiply(x, slope))
