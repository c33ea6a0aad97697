"""Losses: how far predictions are from targets, with PyTorch's names, reductions and edges.

An input and its target must have one shape: a loss that broadcasts one against the other trains
without an error, towards something else. Edge values: the Huber losses have the slopes of both
sides at their kinks, and binary cross entropy limits its logarithms to -100.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._declare import (
    composition,
    elementwise,
    face,
    needs_order,
    needs_tensor,
    on,
    operation,
    real,
    sample,
)
from pullback.ops._values import array_of
from pullback.ops.activations import sigmoid
from pullback.ops.elementary import absolute, exp, log, square
from pullback.ops.elementwise import clamp, where
from pullback.ops.norms import vector_norm
from pullback.ops.reductions import mean, sum_
from pullback.ops.repeating import broadcast_arrays

__all__ = [
    "bce_with_logits",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_similarity",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]


# -- what they share -------------------------------------------------------------------------------
def known_reduction(op: str, reduction: Any, *more: str) -> None:
    """Raise where there is no such reduction."""
    names = ("none", "mean", "sum", *more)
    if reduction not in names:
        required = f"'reduction' must be one of {', '.join(names)}"
        raise ArgumentError(compose(op, required, repr(reduction)))


def reduced(values: Tensor, reduction: str) -> Tensor:
    """Return the values of each element as they are, their sum or their mean."""
    if reduction == "none":
        return values
    total = mean if reduction == "mean" else sum_
    return total(values, axis=None, keepdims=False)


def _needs_one_shape(op: str, input: Any, target: Any, reduction: Any, *more: str) -> None:
    """Raise where input and target are no tensors of one shape, or the reduction is unknown."""
    known_reduction(op, reduction, *more)
    needs_tensor(op, input, "input")
    needs_tensor(op, target, "target")
    if tuple(input.shape) != tuple(target.shape):
        required = f"a target of the shape {tuple(input.shape)} of the input required"
        given = (("input", input), ("target", target))
        hint = "reshape or expand one of them"
        raise ShapeError(compose(op, required, str(tuple(target.shape)), *given, hint=hint))


_PAIR = (
    sample((2, 3), (2, 3), reduction="none"),
    sample((4,), (4,)),
    sample((), (), reduction="sum"),
    sample((0, 2), (0, 2), reduction="sum"),
)


# -- distances -------------------------------------------------------------------------------------
@composition(*_PAIR, domain=real(-2, 2))
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the squared error, ``(input - target) ** 2``.

    Parameters
    ----------
    input, target : Tensor
        Of one shape.
    reduction : ``"mean"``, ``"sum"`` or ``"none"``
        What to make of the errors of the elements.

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If the reduction is unknown.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mse_loss(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0]))
    tensor(2.)
    """
    _needs_one_shape("mse_loss", input, target, reduction)
    return reduced(square(input - target), reduction)


@composition(*_PAIR, domain={"input": real(-2, 0), "target": real(0.1, 2)})
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the absolute error, ``|input - target|``; its gradient at 0 is 0.

    The parameters are those of `mse_loss`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.l1_loss(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _needs_one_shape("l1_loss", input, target, reduction)
    return reduced(absolute(input - target), reduction)


def _huber(xp: Any, x: Any, *, delta: float) -> Any:
    needs_order("huber", x)
    size = xp.abs(x)
    near = xp.minimum(size, delta)
    return near * (size - near / 2)


huber = operation(
    "huber",
    _huber,
    rules={"x": lambda g, x, delta, xp: g * xp.clip(x, -delta, delta)},
    floating=True,
    domain=real(-2, 2),
    samples=(sample((3, 4), delta=1.0), sample((), delta=1.0), sample((0, 2), delta=1.0)),
    doc="Return x ** 2 / 2 up to |x| = delta, and the line that goes on from there.",
)


@composition(*_PAIR, domain={"input": real(-2, -1.5), "target": real(-1.2, 2, -0.8, -0.5)})
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """Return half the squared error where it is below `delta`, beyond the line that goes on.

    With d = input - target: ``d ** 2 / 2`` for |d| < delta, else ``delta * (|d| - delta / 2)``.

    Parameters
    ----------
    input, target, reduction
        As for `mse_loss`.
    delta : float
        Above 0.
    weight : Tensor, optional
        A factor for each element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.huber_loss(pb.tensor([1.0, 0.0]), pb.tensor([0.0, 4.0]), reduction="none")
    tensor([0.5000, 3.5000])
    """
    _needs_one_shape("huber_loss", input, target, reduction)
    if not delta > 0:
        raise ArgumentError(compose("huber_loss", "a delta above 0 required", repr(delta)))
    values = huber(input - target, delta=float(delta))
    return reduced(values if weight is None else values * weight, reduction)


@composition(*_PAIR, domain={"input": real(-2, -1.5), "target": real(-1.2, 2, -0.8, -0.5)})
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return the absolute error less beta / 2, where it is below `beta` a parabola instead.

    With d = input - target: ``d ** 2 / (2 * beta)`` for |d| < beta, else ``|d| - beta / 2``.

    Parameters
    ----------
    input, target, reduction
        As for `mse_loss`.
    beta : float
        At least 0; of 0 it is `l1_loss`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.smooth_l1_loss(pb.tensor([1.0, 0.0]), pb.tensor([0.0, 4.0]), reduction="none")
    tensor([0.5000, 3.5000])
    """
    _needs_one_shape("smooth_l1_loss", input, target, reduction)
    if not beta >= 0:
        raise ArgumentError(compose("smooth_l1_loss", "a beta of 0 or more required", repr(beta)))
    if beta == 0:
        return l1_loss(input, target, reduction)
    return reduced(huber(input - target, delta=float(beta)) / float(beta), reduction)


# -- probabilities of two classes ------------------------------------------------------------------
def _limited_log(xp: Any, x: Any) -> Any:
    """Return log(x), but no less than -100."""
    zero = x == 0
    logs = xp.log(xp.where(zero, xp.ones_like(x), x))
    return xp.where(zero | (logs < -100), xp.full_like(x, -100.0), logs)


def _bce(xp: Any, input: Any, target: Any) -> Any:
    losses = target * _limited_log(xp, input) + (1 - target) * _limited_log(xp, 1 - input)
    return -losses


bce = elementwise(
    "binary_cross_entropy",
    _bce,
    input=lambda g, input, target, xp: (
        g * (input - target) / xp.maximum(input * (1 - input), 1e-12)
    ),
    target=lambda g, input, xp: g * (_limited_log(xp, 1 - input) - _limited_log(xp, input)),
    floating=True,
    broadcasts=False,
    domain={"input": real(0.05, 0.95), "target": real(0, 1)},
    samples=_PAIR,
    doc="Return -(target * log(input) + (1 - target) * log(1 - input)).",
)


@face(bce)
def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Return ``-(target * log(input) + (1 - target) * log(1 - input))``, of probabilities.

    The logarithms are limited to -100, so the loss is finite.

    Parameters
    ----------
    input : Tensor
        Probabilities, from 0 to 1.
    target : Tensor
        Of the same shape: 0 or 1, or probabilities.
    weight : Tensor, optional
        A factor for each element, broadcast.
    reduction : ``"mean"``, ``"sum"`` or ``"none"``

    Raises
    ------
    ShapeError
        If the shapes differ.
    ArgumentError
        If an input is no probability, or the reduction is unknown.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.binary_cross_entropy(pb.tensor([0.5, 1.0]), pb.tensor([0.0, 0.0]), reduction="none")
    tensor([  0.6931, 100.0000])
    """
    _needs_one_shape("binary_cross_entropy", input, target, reduction)
    array = array_of(input)
    needs_order("binary_cross_entropy", array, array_of(target))
    library = library_of(array)
    numbers = library.dtype(array).kind != "b"  # True and False are 1 and 0
    if numbers and not bool(library.xp.all((array >= 0) & (array <= 1))):
        required, hint = "an input from 0 to 1 required", "binary_cross_entropy_with_logits"
        raise ArgumentError(
            compose(
                "binary_cross_entropy", required, "others", ("input", input), hint=f"use {hint}"
            )
        )
    values = bce(input, target)
    return reduced(values if weight is None else values * weight, reduction)


def _bce_logits(xp: Any, input: Any, target: Any) -> Any:
    needs_order("binary_cross_entropy_with_logits", input, target)
    # The logarithm of the smaller of two probabilities, which is exact, and the distance to it.
    rest = xp.log1p(xp.exp(-xp.abs(input)))
    return xp.where(input >= 0, (1 - target) * input, -target * input) + rest


bce_logits = elementwise(
    "binary_cross_entropy_with_logits",
    _bce_logits,
    input=lambda g, input, target, xp: g * (on(xp, sigmoid)(input) - target),
    target=lambda g, input: -g * input,
    floating=True,
    broadcasts=False,
    domain={"input": real(-3, 3), "target": real(0, 1)},
    samples=(*_PAIR, sample((2, 1), (2, 1), pos_weight=3.0, weight=0.5)),
    doc="Return binary cross entropy of the sigmoid of the input, without overflow.",
)


@face(bce_logits)
def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(input)``, without overflow.

    Parameters
    ----------
    input : Tensor
        Any numbers: the logarithms of odds.
    target : Tensor
        Of the same shape: 0 or 1, or probabilities.
    weight : Tensor, optional
        A factor for each element, broadcast.
    reduction : ``"mean"``, ``"sum"`` or ``"none"``
    pos_weight : Tensor, optional
        A factor for the part of the loss that targets of 1 have, broadcast.

    Raises
    ------
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([0.0, -1000.0])
    >>> pb.binary_cross_entropy_with_logits(x, pb.tensor([1.0, 1.0]), reduction="none")
    tensor([   0.6931, 1000.0000])
    """
    _needs_one_shape("binary_cross_entropy_with_logits", input, target, reduction)
    if pos_weight is None:
        values = bce_logits(input, target)
    else:
        positive, negative = bce_logits(input, 1.0), bce_logits(input, 0.0)
        values = target * pos_weight * positive + (1 - target) * negative
    return reduced(values if weight is None else values * weight, reduction)


bce_with_logits = binary_cross_entropy_with_logits


# -- distributions and directions ------------------------------------------------------------------
@composition(
    *_PAIR[:2],
    *_PAIR[3:],
    sample((2, 3), (2, 3), log_target=True, reduction="batchmean"),
    domain={"input": real(-3, 0), "target": real(0.1, 1)},
)
def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return the Kullback-Leibler divergence, ``target * (log(target) - input)``.

    Parameters
    ----------
    input : Tensor
        Logarithms of the probabilities that are tested.
    target : Tensor
        The true probabilities, of the same shape, where 0 adds nothing.
    reduction : ``"batchmean"``, ``"mean"``, ``"sum"`` or ``"none"``
        "batchmean", the sum over the first length, is the divergence by its definition.
    log_target : bool
        Whether the target is given by its logarithms.

    Raises
    ------
    ShapeError
        If the shapes differ.

    Examples
    --------
    >>> import pullback as pb
    >>> p = pb.tensor([0.5, 0.5])
    >>> pb.kl_div(pb.log(pb.tensor([0.25, 0.75])), p, reduction="sum")
    tensor(0.1438)
    """
    _needs_one_shape("kl_div", input, target, reduction, "batchmean")
    if log_target:
        values = exp(target) * (target - input)
    else:
        none = target == 0
        values = where(none, 0, target * (log(where(none, 1, target)) - where(none, 0, input)))
    if reduction != "batchmean":
        return reduced(values, reduction)
    if not input.shape:
        raise ShapeError(compose("kl_div", "a batch required", "0 dimensions", ("input", input)))
    result: Tensor = reduced(values, "sum") / input.shape[0]
    return result


@composition(
    sample((2, 3), (2, 3)),
    sample((2, 3), (3,), dim=-1),
    sample((3,), (3,), dim=0),
    sample((0, 2), (0, 2)),
    domain=real(0.5, 2),
)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along `dim`.

    It is the product of the vectors over the product of their lengths, each no less than `eps`.

    Parameters
    ----------
    x1, x2 : Tensor
        Broadcast with each other.
    dim : int
    eps : float
        Keeps vectors of length 0 from dividing by it: their value and gradient are finite.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cosine_similarity(pb.tensor([[3.0, 4.0]]), pb.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    needs_tensor("cosine_similarity", x1, "x1")
    needs_tensor("cosine_similarity", x2, "x2")
    x, y = broadcast_arrays(x1, x2)
    lengths = [clamp(vector_norm(part, axis=dim, keepdims=True), min=eps) for part in (x, y)]
    return sum_((x / lengths[0]) * (y / lengths[1]), axis=dim, keepdims=False)
