"""Axes: normalizing them, and putting reduced ones back; for forwards and rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.core.function.dispatch import (
    merge_axis_args as merge_axis_args,  # where operations look for it
)
from pullback.errors import ArgumentError, ArgumentTypeError, TensorIndexError

Axis = int | Sequence[int] | None


def to_builtin(number: Any) -> Any:
    """Return one of NumPy's whole numbers as one of Python's, and anything else as it is.

    Those overflow, and are no `int`: counts and shifts begin with this.
    """
    if isinstance(number, (int, tuple, list)) or getattr(number, "shape", None) != ():
        return number
    try:
        return number.__index__()
    except (AttributeError, TypeError):
        return number


def normalize_axis(op: str, axis: Any, ndim: int) -> int:
    """Return one axis counted from the front, or raise naming the operation."""
    try:
        number = None if isinstance(axis, bool) else axis.__index__()
    except (AttributeError, TypeError):  # TypeError: NumPy's bools
        number = None
    if number is None:
        raise ArgumentTypeError(f"{op}: axis must be an integer, got {type(axis).__name__}")
    limit = max(ndim, 1)  # 0 and -1 name the whole of a 0-d tensor, as in PyTorch
    if not -limit <= number < limit:
        raise TensorIndexError(
            f"{op}: axis must be in the range [{-limit}, {limit - 1}] for a tensor of {ndim} "
            f"dimensions, got {number}"
        )
    return int(number % ndim) if ndim else 0


def normalize_axes(op: str, axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes counted from the front; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    came = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(normalize_axis(op, a, ndim) for a in came)
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"{op}: no axis more than once required, got {came}")
    return axes if ndim else ()  # a 0-d tensor has none to name


def keep_axes(value: Any, shape: tuple[int, ...], axis: Axis, keepdims: bool, xp: Any) -> Any:
    """Return a reduction's result, or its gradient, with the reduced axes as ones."""
    if keepdims or not shape:
        return value
    if axis.__class__ is int:
        axis %= len(shape)
        return xp.reshape(value, (*shape[:axis], 1, *shape[axis + 1 :]))
    axes = normalize_axes("axis", axis, len(shape))
    lengths = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return xp.reshape(value, lengths)


def broadcast_back(value: Any, shape: tuple[int, ...], axis: Axis, keepdims: bool, xp: Any) -> Any:
    """Return a reduction's gradient repeated over the reduced axes, as a view."""
    if axis is None and not keepdims:
        return xp.broadcast_to(value, shape)
    return xp.broadcast_to(keep_axes(value, shape, axis, keepdims, xp), shape)


def reduced_size(shape: tuple[int, ...], axis: Axis) -> int:
    """Return how many elements a reduction takes together."""
    if axis is None:
        return math.prod(shape)
    if axis.__class__ is int and shape:
        return shape[axis]
    return math.prod(shape[i] for i in normalize_axes("axis", axis, len(shape)))


def sum_to_shape(g: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Sum `g` over what broadcasting `shape` to its shape repeated."""
    extra = len(g.shape) - len(shape)
    ones = tuple(i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1)
    axes = (*range(extra), *ones)
    if axes:
        g = xp.sum(g, axis=axes, keepdims=True)
    return g if tuple(g.shape) == tuple(shape) else xp.reshape(g, shape)


def reduced_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """Return a shape without the axes that are reduced."""
    axes = normalize_axes("prod", axis, len(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)
