"""Losses beyond distances and classes: margins, triplets, counts, and normal distributions.

`reduction` is ``"mean"``, ``"sum"`` or ``"none"``, as for `mse_loss`. Where a margin is just kept
the derivative is that of `relu` at 0, which is 0.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.distances import cosine_similarity, pairwise_distance
from pullback.nn.losses import known_reduction, reduced
from pullback.ops.arguments import holds_somewhere, tensor_of
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions.creation import arange, ones_like
from pullback.ops.functions.gathering import index_for
from pullback.ops.functions.manipulation import reshape, unsqueeze
from pullback.ops.functions.pointwise import add, clamp, where
from pullback.ops.primitives.activations import logsigmoid, relu
from pullback.ops.primitives.arithmetic import divide, minimum, multiply, negative, subtract
from pullback.ops.primitives.comparison import equal, greater
from pullback.ops.primitives.exponential import exp, log, square
from pullback.ops.primitives.gathering import gather_p
from pullback.ops.primitives.losses import binary_cross_entropy_with_logits_p
from pullback.ops.primitives.reductions import mean, sum_p
from pullback.ops.samples import grid, integers, real, sample

_SIGN = real(1, 2)


def _sign(x: Tensor) -> Tensor:
    """Bring numbers to 1 and -1."""
    ones: Tensor = ones_like(x)
    return where(greater(x, 1.5), ones, negative(ones))


_TARGET = _SIGN._replace(within=_sign)


# -- margins ---------------------------------------------------------------------------------------
@composition(
    sample((3,), (3,), (3,), margin=0.3),
    sample((), (), (), reduction="sum"),
    sample((2, 2), (2, 2), (2, 2), reduction="none"),
    domain={"input1": real(-2, 2), "input2": real(-2, 2), "target": _TARGET},
    constants=("target",),
)
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return max(0, margin - target * (input1 - input2)): which should be larger is the target.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.margin_ranking_loss(pb.tensor([1.0]), pb.tensor([3.0]), pb.tensor([1.0]))
    tensor(2.)
    """
    known_reduction("margin_ranking_loss", reduction)
    gap = multiply(tensor_of("margin_ranking_loss", target, "target"), subtract(input1, input2))
    return reduced(relu(subtract(margin, gap)), reduction)


@composition(
    sample((4,), (4,), margin=0.5),
    sample((), (), reduction="sum"),
    domain={"input": real(-2, 2, 0.5, 1.0), "target": _TARGET},
    constants=("target",),
)
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return the input where the target is 1, and max(0, margin - input) where it is -1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hinge_embedding_loss(pb.tensor([0.5, 0.25]), pb.tensor([1, -1]), reduction="none")
    tensor([0.5000, 0.7500])
    """
    known_reduction("hinge_embedding_loss", reduction)
    target = tensor_of("hinge_embedding_loss", target, "target")
    near = where(equal(target, -1), 0, input)
    far = where(equal(target, 1), 0, relu(subtract(margin, input)))
    return reduced(add(near, far), reduction)


@composition(
    sample((2, 3), (2, 3), (2,), margin=0.1),
    sample((3,), (3,), (), reduction="sum"),
    domain={"input1": real(0.5, 2), "input2": real(0.5, 2), "target": _TARGET},
    constants=("target",),
    scalars=False,
)
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return 1 - cosine where the target is 1, and max(0, cosine - margin) where it is -1.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[1.0, 0.0]])
    >>> pb.cosine_embedding_loss(x, x, pb.tensor([-1]), margin=0.25)
    tensor(0.7500)
    """
    known_reduction("cosine_embedding_loss", reduction)
    target = tensor_of("cosine_embedding_loss", target, "target")
    cosine = cosine_similarity(input1, input2, dim=-1)
    far = relu(subtract(cosine, margin))
    return reduced(where(equal(target, 1), subtract(1, cosine), far), reduction)


@composition(
    sample((2, 3), (2, 3), (2, 3), swap=True),
    sample((3,), (3,), (3,), margin=4.0, p=3.0, reduction="sum"),
    domain=real(-2, 2),
    scalars=False,
)
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + distance to the positive - distance to the negative).

    Parameters
    ----------
    anchor, positive, negative : Tensor, shape (..., features)
    margin : float
    p, eps : float
        As for `pairwise_distance`.
    swap : bool
        Take the distance of positive and negative where that is smaller.
    reduction : str

    Examples
    --------
    >>> import pullback as pb
    >>> a, near, far = pb.tensor([[0.0]]), pb.tensor([[1.0]]), pb.tensor([[3.0]])
    >>> pb.triplet_margin_loss(a, near, far, margin=3.0)
    tensor(1.)
    """
    known_reduction("triplet_margin_loss", reduction)
    distance = functools.partial(pairwise_distance, p=p, eps=eps)
    gap = _gap(distance, anchor, positive, negative, swap)
    return reduced(relu(add(gap, margin)), reduction)


def _gap(distance: Any, anchor: Any, positive: Any, negative: Any, swap: bool) -> Tensor:
    """Return how much farther away the positive is than the negative."""
    away = distance(anchor, negative)
    away = minimum(away, distance(positive, negative)) if swap else away
    return subtract(distance(anchor, positive), away)


@composition(
    sample((2, 3), (2, 3), (2, 3), swap=True),
    sample((3,), (3,), (3,), margin=4.0, reduction="sum"),
    domain=real(-2, 2),
    scalars=False,
)
def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` of a distance of one's own.

    Examples
    --------
    >>> import pullback as pb
    >>> a, near, far = pb.tensor([[0.0]]), pb.tensor([[1.0]]), pb.tensor([[3.0]])
    >>> far_apart = lambda x, y: (x - y).abs().sum(-1)
    >>> pb.nn.functional.triplet_margin_with_distance_loss(
    ...     a, near, far, distance_function=far_apart, margin=3.0
    ... )
    tensor(1.)
    """
    known_reduction("triplet_margin_with_distance_loss", reduction)
    distance = pairwise_distance if distance_function is None else distance_function
    gap = _gap(distance, anchor, positive, negative, swap)
    return reduced(relu(add(gap, margin)), reduction)


@composition(
    sample((4,), (4,)),
    sample((), (), reduction="sum"),
    domain={"input": real(-2, 2), "target": _TARGET},
    constants=("target",),
)
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return log(1 + e ** (-target * input)), of targets 1 and -1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.soft_margin_loss(pb.tensor([0.0]), pb.tensor([1.0]))
    tensor(0.6931)
    """
    known_reduction("soft_margin_loss", reduction)
    target = tensor_of("soft_margin_loss", target, "target")
    return reduced(negative(logsigmoid(multiply(target, input))), reduction)


# -- classes ---------------------------------------------------------------------------------------
@composition(
    sample((2, 3), (2,), p=2, margin=0.5),
    sample((3,), (), reduction="sum"),
    domain={"input": real(-2, 2), "target": integers(0, 2)},
    constants=("target",),
    scalars=False,
)
def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over other classes j of max(0, margin - x[target] + x[j]) ** p.

    Parameters
    ----------
    input : Tensor, shape (N, C) or (C,)
    target : Tensor of integers, shape (N,) or ()
        The right classes.
    p : int
        1 or 2.
    margin : float
    weight : Tensor, shape (C,), optional
        What each right class counts for.
    reduction : str

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.multi_margin_loss(pb.tensor([[0.5, 0.0]]), pb.tensor([0]))
    tensor(0.2500)
    """
    known_reduction("multi_margin_loss", reduction)
    if p not in (1, 2):
        raise ArgumentError(compose("multi_margin_loss", "p of 1 or 2 required", repr(p)))
    original = tensor_of("multi_margin_loss", input, "input")
    x = reshape(original, (*((1,) * (2 - len(original.shape))), *original.shape))
    right = index_for("multi_margin_loss", x, 1, target, names=("input", "target"))
    if len(x.shape) != 2 or right.numel() != x.shape[0]:
        required = "an input of shape (N, C) or (C,), and one target for each row, required"
        named = (("input", original), ("target", target))
        raise ShapeError(compose("multi_margin_loss", required, str(right.shape), *named))
    right = reshape(right, (-1, 1))
    short = relu(add(subtract(x, gather_p.public(x, right, axis=1)), margin))
    short = short if p == 1 else square(short)
    if weight is not None:
        of_class = tensor_of("multi_margin_loss", weight, "weight")
        short = multiply(short, of_class[right])
    classes = arange(x.shape[-1], device=x.device)
    others = where(equal(classes, right), 0, short)
    means = divide(sum_p.public(others, axis=1, keepdims=False), x.shape[1])
    return reduced(reshape(means, original.shape[:-1]), reduction)


@composition(
    sample((2, 3), (2, 3)),
    sample((3,), (3,), reduction="sum"),
    domain={"input": real(-2, 2), "target": grid(0, 1)},
    constants=("target",),
    scalars=False,
)
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean over classes of the cross entropy of sigmoid(input) and targets 0 and 1.

    Examples
    --------
    >>> import pullback as pb
    >>> x, target = pb.tensor([[0.0, 0.0]]), pb.tensor([[1.0, 0.0]])
    >>> pb.nn.functional.multilabel_soft_margin_loss(x, target)
    tensor(0.6931)
    """
    known_reduction("multilabel_soft_margin_loss", reduction)
    input = tensor_of("multilabel_soft_margin_loss", input, "input")
    values = binary_cross_entropy_with_logits_p.public(input, target)
    values = values if weight is None else multiply(values, weight)
    return reduced(mean(values, axis=-1, keepdims=False), reduction)


# -- distributions ---------------------------------------------------------------------------------
@composition(
    sample((3,), (3,), full=True),
    sample((), (), log_input=False, reduction="sum"),
    domain={"input": real(0.2, 2), "target": real(0, 4, 1.0)},
)
def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Return e ** input - target * input, the negative log likelihood of counts.

    Parameters
    ----------
    input : Tensor
        The logarithm of the expected count; the count itself unless `log_input`.
    target : Tensor
        The counts.
    log_input : bool
    full : bool
        Add Stirling's approximation of log(target!) where the target is more than 1.
    eps : float
        Added to the count before its logarithm is taken, unless `log_input`.
    reduction : str

    Examples
    --------
    >>> import pullback as pb
    >>> pb.poisson_nll_loss(pb.tensor([0.0]), pb.tensor([3.0]))
    tensor(1.)
    """
    known_reduction("poisson_nll_loss", reduction)
    target = tensor_of("poisson_nll_loss", target, "target")
    if log_input:
        values = subtract(exp(input), multiply(target, input))
    else:
        values = subtract(input, multiply(target, log(add(input, eps))))
    if full:
        some = where(greater(target, 1), target, 1.0)
        stirling = some * log(some) - some + log(some * (2 * math.pi)) * 0.5
        values = add(values, where(greater(target, 1), stirling, 0))
    return reduced(values, reduction)


@composition(
    sample((2, 3), (2, 3), (2, 3), full=True),
    sample((3,), (3,), (3,), eps=0.5, reduction="none"),
    domain={"input": real(-2, 2), "target": real(-2, 2), "var": real(0.7, 2)},
    scalars=False,
)
def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return (log(var) + (input - target) ** 2 / var) / 2, of variances of at least `eps`.

    The limit does not change the gradient of the variance. With `full`, log(2 pi) / 2 is added.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.gaussian_nll_loss(pb.tensor([1.0]), pb.tensor([3.0]), pb.tensor([1.0]))
    tensor(2.)
    """
    known_reduction("gaussian_nll_loss", reduction)
    for name, x in (("input", input), ("target", target)):
        needs_tensor("gaussian_nll_loss", x, name)
    var = tensor_of("gaussian_nll_loss", var, "var")
    if holds_somewhere(var < 0):
        required = "variances of at least 0 required"
        raise ArgumentError(compose("gaussian_nll_loss", required, "negative ones", ("var", var)))
    spread = unsqueeze(var, -1) if len(var.shape) < len(input.shape) else var
    spread = add(spread, subtract(clamp(spread.detach(), min=eps), spread.detach()))
    values = add(log(spread), divide(square(subtract(input, target)), spread))
    values = add(values, math.log(2 * math.pi)) if full else values
    return reduced(divide(values, 2), reduction)
