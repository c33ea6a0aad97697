"""Losses: how far predictions are from targets, or from classes.

An input and its target must have one shape: a loss that broadcasts one against the other trains
without an error, towards something else. Edge values: the Huber losses have the slopes of both
sides at their kinks, and binary cross entropy limits its logarithms to -100.

Classes are along axis 1, or along the only axis. A target that is `ignore_index` adds nothing, and
has a gradient of exactly 0; a mean over no targets is NaN.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, TensorIndexError, compose
from pullback.ops.arguments import all_values, array_of, holds_somewhere
from pullback.ops.declare import composition, needs_order, needs_tensor, wrapper_of
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.gathering import needs_whole
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.exponential import exp, square, xlogy
from pullback.ops.primitives.gathering import gather_p, take_p
from pullback.ops.primitives.losses import (
    PAIR,
    binary_cross_entropy_p,
    binary_cross_entropy_with_logits_p,
    huber_p,
)
from pullback.ops.primitives.reductions import mean, sum_p
from pullback.ops.primitives.rounding import absolute
from pullback.ops.primitives.shape import reshape_p
from pullback.ops.primitives.softmax import log_softmax_p
from pullback.ops.samples import integers, real, sample


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
    total = mean if reduction == "mean" else sum_p.public
    return total(values, axis=None, keepdims=False)


def _needs_one_shape(op: str, input: Any, target: Any, reduction: Any, *more: str) -> None:
    """Raise where input and target are no tensors of one shape, or the reduction is unknown."""
    known_reduction(op, reduction, *more)
    needs_tensor(op, input, "input")
    needs_tensor(op, target, "target")
    if tuple(input.shape) != tuple(target.shape):
        required = f"a target of the shape {tuple(input.shape)} of the input required"
        named = (("input", input), ("target", target))
        hint = "reshape or expand one of them"
        raise ShapeError(compose(op, required, str(tuple(target.shape)), *named, hint=hint))


# -- distances -------------------------------------------------------------------------------------
@composition(*PAIR, domain=real(-2, 2))
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
    >>> pb.nn.functional.mse_loss(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0]))
    tensor(2.)
    """
    _needs_one_shape("mse_loss", input, target, reduction)
    return reduced(square(input - target), reduction)


@composition(*PAIR, domain={"input": real(-2, 0), "target": real(0.1, 2)})
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the absolute error, ``|input - target|``; its gradient at 0 is 0.

    The parameters are those of `mse_loss`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.l1_loss(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _needs_one_shape("l1_loss", input, target, reduction)
    return reduced(absolute(input - target), reduction)


@composition(*PAIR, domain={"input": real(-2, -1.5), "target": real(-1.2, 2, -0.8, -0.5)})
def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Tensor:
    """Return half the squared error where it is below `delta`, beyond the line that goes on.

    With d = input - target: ``d ** 2 / 2`` for ``|d|`` < delta, else ``delta * (|d| - delta / 2)``.

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
    >>> pb.nn.functional.huber_loss(pb.tensor([1.0, 0.0]), pb.tensor([0.0, 4.0]), reduction="none")
    tensor([0.5000, 3.5000])
    """
    _needs_one_shape("huber_loss", input, target, reduction)
    if not delta > 0:
        raise ArgumentError(compose("huber_loss", "a delta above 0 required", repr(delta)))
    values = huber_p.public(input - target, delta=float(delta))
    return reduced(values if weight is None else values * weight, reduction)


@composition(*PAIR, domain={"input": real(-2, -1.5), "target": real(-1.2, 2, -0.8, -0.5)})
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return the absolute error less beta / 2, where it is below `beta` a parabola instead.

    With d = input - target: ``d ** 2 / (2 * beta)`` for ``|d|`` < beta, else ``|d| - beta / 2``.

    Parameters
    ----------
    input, target, reduction
        As for `mse_loss`.
    beta : float
        At least 0; of 0 it is `l1_loss`.

    Examples
    --------
    >>> import pullback as pb
    >>> x, target = pb.tensor([1.0, 0.0]), pb.tensor([0.0, 4.0])
    >>> pb.nn.functional.smooth_l1_loss(x, target, reduction="none")
    tensor([0.5000, 3.5000])
    """
    _needs_one_shape("smooth_l1_loss", input, target, reduction)
    if not beta >= 0:
        raise ArgumentError(compose("smooth_l1_loss", "a beta of 0 or more required", repr(beta)))
    if beta == 0:
        return l1_loss(input, target, reduction)
    return reduced(huber_p.public(input - target, delta=float(beta)) / float(beta), reduction)


@wrapper_of(binary_cross_entropy_p)
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
    >>> x, target = pb.tensor([0.5, 1.0]), pb.tensor([0.0, 0.0])
    >>> pb.nn.functional.binary_cross_entropy(x, target, reduction="none")
    tensor([  0.6931, 100.0000])
    """
    _needs_one_shape("binary_cross_entropy", input, target, reduction)
    array = array_of(input)
    needs_order("binary_cross_entropy", array, array_of(target))
    numbers = library_of(array).dtype(array).kind != "b"  # True and False are 1 and 0
    if numbers and holds_somewhere(~((array >= 0) & (array <= 1))):
        required, hint = "an input from 0 to 1 required", "binary_cross_entropy_with_logits"
        raise ArgumentError(
            compose(
                "binary_cross_entropy", required, "others", ("input", input), hint=f"use {hint}"
            )
        )
    values = binary_cross_entropy_p.public(input, target)
    return reduced(values if weight is None else values * weight, reduction)


@wrapper_of(binary_cross_entropy_with_logits_p)
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
        values = binary_cross_entropy_with_logits_p.public(input, target)
    else:
        positive, negative = (
            binary_cross_entropy_with_logits_p.public(input, 1.0),
            binary_cross_entropy_with_logits_p.public(input, 0.0),
        )
        values = target * pos_weight * positive + (1 - target) * negative
    return reduced(values if weight is None else values * weight, reduction)


bce_with_logits = binary_cross_entropy_with_logits


# -- distributions and directions ------------------------------------------------------------------
@composition(
    *PAIR[:2],
    *PAIR[3:],
    sample((2, 3), (2, 3), log_target=True, reduction="batchmean"),
    domain={"input": real(-3, 0), "target": real(0.1, 1)},
    scalars=False,
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
        nothing = where(input == input, 0, input)  # NaN stays
        values = where(none, nothing, -target * where(none, 0, input))
        values = xlogy(target, target) + values
    if reduction != "batchmean":
        return reduced(values, reduction)
    if not input.shape:
        raise ShapeError(compose("kl_div", "a batch required", "0 dimensions", ("input", input)))
    result: Tensor = reduced(values, "sum") / input.shape[0]
    return result


# -- classes and weights ---------------------------------------------------------------------------
def _classes(op: str, input: Any, target: Any, weight: Any) -> int:
    """Return the axis of classes, after looking at the shapes.

    `target`: the class of each, or None for probabilities, which have the shape of the input.
    """
    axis = 0 if len(input.shape) == 1 else 1
    count = input.shape[axis]
    named = (("input", input), ("target", target))
    wanted = (*input.shape[:axis], *input.shape[axis + 1 :])
    if target is not None:
        needs_whole(op, "target", target)
        if tuple(target.shape) != wanted:
            required = f"a target of shape {wanted}, the input's without its classes, required"
            raise ShapeError(compose(op, required, str(tuple(target.shape)), *named))
    if weight is not None:
        needs_tensor(op, weight, "weight")
        if tuple(weight.shape) != (count,):
            required = f"a weight of shape ({count},), one number a class, required"
            came = str(tuple(weight.shape))
            raise ShapeError(compose(op, required, came, named[0], ("weight", weight)))
    return axis


def _needs_classes(op: str, input: Any, target: Any) -> None:
    needs_tensor(op, input, "input")
    needs_tensor(op, target, "target")
    if not input.shape:
        required = "an input of shape (N, C, ...) or (C,) required"
        raise ShapeError(compose(op, required, "0 dimensions", ("input", input)))


def _kept(op: str, input: Any, target: Any, axis: int, ignore_index: int) -> tuple[Tensor, Any]:
    """Return classes within range, and which of the targets count: None for all of them.

    Raises
    ------
    TensorIndexError
        If a target is neither a class nor `ignore_index`.
    """
    array, count = array_of(target), input.shape[axis]
    library = library_of(array)
    # The caller's memory, which must not change before backward: a tensor's version tells.
    classes = target if isinstance(target, Tensor) else box(library.snapshot(array))
    if 0 in array.shape:
        return classes, None
    values = all_values(array)
    xp = library_of(values).xp
    low, high = int(xp.min(values)), int(xp.max(values))
    if low >= 0 and high < count and not low <= ignore_index <= high:
        return classes, None
    counted = library.tidy(array != ignore_index)
    if not bool(xp.all(((values >= 0) & (values < count)) | (values == ignore_index))):
        required = f"targets from 0 to {count - 1}, or ignore_index {ignore_index}, required"
        came = f"some from {low} to {high}"
        raise TensorIndexError(compose(op, required, came, ("input", input), ("target", target)))
    return box(library.tidy(library.xp.where(counted, array, 0))), box(counted)


def _picked(input: Tensor, classes: Tensor, axis: int) -> Tensor:
    """Return of the numbers along the axis of classes those of the given classes."""
    shape = classes.shape
    index = reshape_p.public(classes, shape=(*shape[:axis], 1, *shape[axis:]))
    return reshape_p.public(gather_p.public(input, index, axis=axis), shape=shape)


def _shares(weight: Any, classes: Tensor, counted: Any) -> Any:
    """Return the weight of each target: 0 where it does not count, None where all have one."""
    if weight is None:
        return None
    shares = take_p.public(weight, classes, axis=0)
    return shares if counted is None else where(counted, shares, 0)


def _totalled(values: Tensor, counted: Any, shares: Any, reduction: str) -> Tensor:
    """Return losses reduced; what does not count is 0, and the mean over what does."""
    if counted is not None:
        values = where(counted, values, 0)
    if reduction != "mean" or (counted is None and shares is None):
        return reduced(values, reduction)
    total = sum_p.public(values, axis=None, keepdims=False)
    if shares is not None:
        return total / sum_p.public(shares, axis=None, keepdims=False)
    return total / (int(astype(counted, "int64").sum()) or float("nan"))


def _nll(logs: Tensor, classes: Tensor, axis: int, shares: Any) -> Tensor:
    """Return minus the logarithm of each one's class, times its weight."""
    losses = -_picked(logs, classes, axis)
    return losses if shares is None else losses * shares


_DOMAIN = {"input": real(-2, 2), "target": integers(0, 2)}


_BY_CLASS = (
    sample((4, 3), (4,)),
    sample((2, 3, 2), (2, 2), ignore_index=1, reduction="none"),
    sample((3,), (), reduction="sum"),
    sample((0, 3), (0,), reduction="sum"),
)


@composition(
    *_BY_CLASS, sample((4, 3), (4,), ignore_index=2), domain=_DOMAIN, constants=("target",)
)
def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return ``-weight[target] * input[target]``, of the logarithms of probabilities.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...) or (C,)
        Logarithms of the probabilities of C classes.
    target : Tensor of integers of shape (N, ...) or ()
        The class of each.
    weight : Tensor of shape (C,), optional
        A factor for each class.
    ignore_index : int
        A target of this number does not count, and has a gradient of exactly 0.
    reduction : ``"mean"``, ``"sum"`` or ``"none"``
        The mean is the sum over the sum of the weights of what counts.

    Raises
    ------
    ShapeError, DTypeError
        If shapes do not fit; if targets are no integers.
    TensorIndexError
        If a target is no class.

    Examples
    --------
    >>> import pullback as pb
    >>> logs = pb.log(pb.tensor([[0.5, 0.5], [0.1, 0.9]]))
    >>> pb.nn.functional.nll_loss(logs, pb.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.1054])
    """
    known_reduction("nll_loss", reduction)
    _needs_classes("nll_loss", input, target)
    axis = _classes("nll_loss", input, target, weight)
    classes, counted = _kept("nll_loss", input, target, axis, ignore_index)
    shares = _shares(weight, classes, counted)
    return _totalled(_nll(input, classes, axis, shares), counted, shares, reduction)


@composition(
    *_BY_CLASS, sample((2, 3), (2,), label_smoothing=0.3), domain=_DOMAIN, constants=("target",)
)
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return ``-log(softmax(input)[target])``, without overflow.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...) or (C,)
        Any numbers: the logarithms of probabilities, up to a constant.
    target : Tensor
        Integers of shape (N, ...) or (): the class of each. Or numbers of the shape of the input:
        the probability of each class.
    weight : Tensor of shape (C,), optional
        A factor for each class.
    ignore_index : int
        A target of this number does not count; for class indices alone.
    reduction : ``"mean"``, ``"sum"`` or ``"none"``
        The mean is the sum over the sum of the weights of what counts; of probabilities over N.
    label_smoothing : float
        From 0 to 1: how much of each target is spread evenly over the classes.

    Raises
    ------
    ShapeError, DTypeError
        If shapes do not fit; if targets of another shape than the input's are no integers.
    TensorIndexError
        If a target is no class.
    ArgumentError
        If the smoothing or the reduction is out of range.

    Examples
    --------
    >>> import pullback as pb
    >>> logits = pb.tensor([[0.0, 0.0], [1000.0, 0.0]])
    >>> pb.nn.functional.cross_entropy(logits, pb.tensor([0, 1]), reduction="none")
    tensor([   0.6931, 1000.0000])
    """
    known_reduction("cross_entropy", reduction)
    _needs_classes("cross_entropy", input, target)
    if not 0 <= label_smoothing <= 1:
        required = "a label_smoothing from 0 to 1 required"
        raise ArgumentError(compose("cross_entropy", required, repr(label_smoothing)))
    array = array_of(target)
    if tuple(array.shape) == tuple(input.shape) and library_of(array).dtype(array).is_inexact:
        return _of_probabilities("cross_entropy", input, target, weight, reduction, label_smoothing)
    axis = _classes("cross_entropy", input, target, weight)
    classes, counted = _kept("cross_entropy", input, target, axis, ignore_index)
    shares = _shares(weight, classes, counted)
    logs = log_softmax_p.public(input, axis=axis)
    loss = _totalled(_nll(logs, classes, axis, shares), counted, shares, reduction)
    if not label_smoothing:
        return loss
    smooth = -sum_p.public(_by_class(logs, weight, axis), axis=axis, keepdims=False)
    smooth = _totalled(smooth, counted, shares, reduction)
    share = label_smoothing / max(input.shape[axis], 1)
    result: Tensor = (1 - label_smoothing) * loss + smooth * share
    return result


def _of_probabilities(
    op: str, input: Any, target: Any, weight: Any, reduction: str, label_smoothing: float
) -> Tensor:
    """Return the cross entropy of a probability for each class."""
    axis = _classes(op, input, None, weight)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    logs = _by_class(log_softmax_p.public(input, axis=axis), weight, axis)
    return reduced(-sum_p.public(logs * target, axis=axis, keepdims=False), reduction)


def _by_class(logs: Tensor, weight: Any, axis: int) -> Tensor:
    """Return the numbers of each class times its weight."""
    if weight is None:
        return logs
    ones = (1,) * (len(logs.shape) - axis - 1)
    return logs * reshape_p.public(weight, shape=(weight.shape[0], *ones))
