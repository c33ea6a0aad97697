"""What makes arrays of numbers, of traced values as well."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as pb
from pullback.compat.autograd.boxes import holds_boxes, isbox
from pullback.compat.autograd.numpy.lists import joined

__all__ = ["array", "asanyarray", "asarray", "c_", "full", "make_diagonal", "r_", "where"]


def array(value: Any, dtype: Any = None, *, ndmin: int = 0, **settings: Any) -> Any:
    """Return NumPy's array of `value`, a traced one of traced values.

    Examples
    --------
    >>> from pullback.compat.autograd import jacobian
    >>> jacobian(lambda x: array([x, [x[1], 0.0]]))(np.array([1.0, 2.0])).shape
    (2, 2, 2)
    """
    if not holds_boxes(value):
        return np.array(value, dtype, ndmin=ndmin, **settings)
    out = joined(value)
    out = out.copy() if dtype is None else out.astype(dtype)
    return np.reshape(out, (1,) * (ndmin - out.ndim) + tuple(out.shape))


def asarray(value: Any, *args: Any, **settings: Any) -> Any:
    """Return what `array` does; a traced value itself.

    Examples
    --------
    >>> from pullback.compat.autograd import jacobian
    >>> jacobian(lambda x: asarray([x, 2 * x]))(1.0)
    array([1., 2.])
    """
    if isbox(value) and not args and not settings:
        return value
    make = array if holds_boxes(value) else np.asarray
    return make(value, *args, **settings)


asanyarray = asarray


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """Return an array of one value, which may be traced.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> grad(lambda x: np.sum(full((2, 3), x)))(1.0)
    np.float64(6.0)
    """
    if not isbox(fill_value):
        return np.full(shape, fill_value, dtype)
    return np.broadcast_to(fill_value if dtype is None else fill_value.astype(dtype), shape)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return NumPy's ``where``; of a single bool and Python's values that of the two itself.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> grad(lambda x: np.sum(where(np.array([True, False]), [x, x], 3 * x)))(1.0)
    np.float64(4.0)
    """
    if x is None and y is None:
        return np.where(condition)
    if isinstance(condition, bool) and not isinstance(x, np.ndarray):
        return x if condition else y
    condition, x, y = (
        joined(value) if holds_boxes(value) else value for value in (condition, x, y)
    )
    return np.where(condition, x, y)


def make_diagonal(D: Any, offset: int = 0, axis1: int = -1, axis2: int = -2) -> Any:
    """Return matrices whose diagonals are `D`, the inverse of ``diagonal``.

    Examples
    --------
    >>> make_diagonal(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    out = pb.diag_embed(pb.asarray(D), offset, axis2, axis1)
    return out if isbox(D) else out.numpy()


class _Joining:
    """``np.r_`` and ``np.c_``: which element goes where is computed on positions."""

    def __init__(self, trick: Any) -> None:
        self._trick = trick

    def __getitem__(self, items: Any) -> Any:
        items = items if isinstance(items, tuple) else (items,)
        if not holds_boxes(items):
            return self._trick[items]
        parts: list[Any] = []
        positions: list[Any] = []
        count = 0
        for item in items:
            if isinstance(item, str):
                positions.append(item)
                continue
            part = np.r_[item] if isinstance(item, slice) else joined(item)
            parts.append(np.ravel(part))
            positions.append(count + np.arange(part.size).reshape(part.shape))
            count += part.size
        return np.concatenate(parts)[self._trick[tuple(positions)]]


r_, c_ = _Joining(np.r_), _Joining(np.c_)
