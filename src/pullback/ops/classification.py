"""Losses of classifiers: of the logarithms of probabilities, and of what softmax is taken of.

Classes are along axis 1, or along the only axis. A target that is `ignore_index` adds nothing, and
has a gradient of exactly 0; a mean over no targets is NaN.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, TensorIndexError, compose
from pullback.ops._declare import composition, integers, needs_tensor, real, sample
from pullback.ops._values import array_of, gather_elements, needs_whole, take_slices
from pullback.ops.conversion import astype
from pullback.ops.elementwise import where
from pullback.ops.exponential_sums import log_softmax_
from pullback.ops.losses import known_reduction, reduced
from pullback.ops.reductions import sum_
from pullback.ops.shape import reshape_

__all__ = [
    "cross_entropy",
    "nll_loss",
]


# -- classes and weights ---------------------------------------------------------------------------
def _classes(op: str, input: Any, target: Any, weight: Any) -> int:
    """Return the axis of classes, after looking at the shapes.

    `target`: the class of each, or None for probabilities, which have the shape of the input.
    """
    axis = 0 if len(input.shape) == 1 else 1
    count = input.shape[axis]
    given = (("input", input), ("target", target))
    wanted = (*input.shape[:axis], *input.shape[axis + 1 :])
    if target is not None:
        needs_whole(op, "target", target)
        if tuple(target.shape) != wanted:
            required = f"a target of shape {wanted}, the input's without its classes, required"
            raise ShapeError(compose(op, required, str(tuple(target.shape)), *given))
    if weight is not None:
        needs_tensor(op, weight, "weight")
        if tuple(weight.shape) != (count,):
            required = f"a weight of shape ({count},), one number a class, required"
            came = str(tuple(weight.shape))
            raise ShapeError(compose(op, required, came, given[0], ("weight", weight)))
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
    classes = target if isinstance(target, Tensor) else box(library.copy(array))
    if 0 in array.shape:
        return classes, None
    xp = library.xp
    low, high = int(xp.min(array)), int(xp.max(array))
    if low >= 0 and high < count and not low <= ignore_index <= high:
        return classes, None
    kept = library.tidy(array != ignore_index)
    if not bool(xp.all(((array >= 0) & (array < count)) | ~kept)):
        required = f"targets from 0 to {count - 1}, or ignore_index {ignore_index}, required"
        came = f"some from {low} to {high}"
        raise TensorIndexError(compose(op, required, came, ("input", input), ("target", target)))
    return box(library.tidy(xp.where(kept, array, 0))), box(kept)


def _picked(input: Tensor, classes: Tensor, axis: int) -> Tensor:
    """Return of the numbers along the axis of classes those of the given classes."""
    shape = classes.shape
    index = reshape_(classes, shape=(*shape[:axis], 1, *shape[axis:]))
    return reshape_(gather_elements(input, index, axis=axis), shape=shape)


def _shares(weight: Any, classes: Tensor, kept: Any) -> Any:
    """Return the weight of each target: 0 where it does not count, None where all have one."""
    if weight is None:
        return None
    shares = take_slices(weight, classes, axis=0)
    return shares if kept is None else where(kept, shares, 0)


def _totalled(values: Tensor, kept: Any, shares: Any, reduction: str) -> Tensor:
    """Return losses reduced; what does not count is 0, and the mean over what does."""
    if kept is not None:
        values = where(kept, values, 0)
    if reduction != "mean" or (kept is None and shares is None):
        return reduced(values, reduction)
    total = sum_(values, axis=None, keepdims=False)
    if shares is not None:
        return total / sum_(shares, axis=None, keepdims=False)
    return total / (int(astype(kept, "int64").sum()) or float("nan"))


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
    >>> pb.nll_loss(logs, pb.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.1054])
    """
    known_reduction("nll_loss", reduction)
    _needs_classes("nll_loss", input, target)
    axis = _classes("nll_loss", input, target, weight)
    classes, kept = _kept("nll_loss", input, target, axis, ignore_index)
    shares = _shares(weight, classes, kept)
    return _totalled(_nll(input, classes, axis, shares), kept, shares, reduction)


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
    >>> pb.cross_entropy(logits, pb.tensor([0, 1]), reduction="none")
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
    classes, kept = _kept("cross_entropy", input, target, axis, ignore_index)
    shares = _shares(weight, classes, kept)
    logs = log_softmax_(input, axis=axis)
    loss = _totalled(_nll(logs, classes, axis, shares), kept, shares, reduction)
    if not label_smoothing:
        return loss
    smooth = -sum_(_by_class(logs, weight, axis), axis=axis, keepdims=False)
    smooth = _totalled(smooth, kept, shares, reduction)
    result: Tensor = (1 - label_smoothing) * loss + smooth * (label_smoothing / input.shape[axis])
    return result


def _of_probabilities(
    op: str, input: Any, target: Any, weight: Any, reduction: str, label_smoothing: float
) -> Tensor:
    """Return the cross entropy of a probability for each class."""
    axis = _classes(op, input, None, weight)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    logs = _by_class(log_softmax_(input, axis=axis), weight, axis)
    return reduced(-sum_(logs * target, axis=axis, keepdims=False), reduction)


def _by_class(logs: Tensor, weight: Any, axis: int) -> Tensor:
    """Return the numbers of each class times its weight."""
    if weight is None:
        return logs
    ones = (1,) * (len(logs.shape) - axis - 1)
    return logs * reshape_(weight, shape=(weight.shape[0], *ones))
