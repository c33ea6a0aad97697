"""NumPy's functions for lists of traced values, which they take as they take lists of numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compat.autograd.boxes import holds_boxes, isbox
from pullback.numpy_protocol.protocol import ufunc_counterpart

__all__ = ["joined", "takes_lists"]

_SEQUENCES = (list, tuple)
# Of a list of arrays, which may differ in shape.
_JOINING = {"column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack"}
_JOINING |= {"stack", "vstack"}
_OF_LISTS = {"block", "choose", "lexsort", "select"}


def joined(value: Any) -> Any:
    """Return nested lists of numbers and traced values as one array.

    Examples
    --------
    >>> import pullback as pb
    >>> joined([[pb.tensor(1.0), 2.0]]).shape
    (1, 2)
    """
    if isinstance(value, _SEQUENCES):
        return np.stack([joined(item) for item in value])
    return value if isbox(value) else np.asarray(value)


def _joined(value: Any) -> Any:
    return joined(value) if value.__class__ in _SEQUENCES and holds_boxes(value) else value


def takes_lists(value: Any) -> Any:
    """Return a function of NumPy's that takes lists of traced values, anything else as it is.

    Examples
    --------
    >>> import pullback as pb
    >>> takes_lists(np.sum)([pb.tensor(1.0), 2.0]).item()
    3.0
    """
    name = getattr(value, "__name__", "")
    if isinstance(value, type) or not callable(value) or name in _OF_LISTS:
        return value
    if isinstance(value, np.ufunc) and value.nin == 1:
        return _elementwise(value)
    return (_joining if name in _JOINING else _over_arrays)(value)


def _elementwise(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return a ufunc of one argument that calls pullback's function without NumPy's dispatch."""
    over_arrays = _over_arrays(ufunc)

    @functools.wraps(ufunc)
    def call(x: Any, *args: Any, **settings: Any) -> Any:
        if isbox(x) and not args and not settings:
            return ufunc_counterpart(ufunc)(x)
        return over_arrays(x, *args, **settings)

    return call


def _over_arrays(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        for arg in args:
            if arg.__class__ in _SEQUENCES and holds_boxes(arg):
                return fun(*map(_joined, args), **kwargs)
        return fun(*args, **kwargs)

    return call


def _joining(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun)
    def call(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        return fun([_joined(item) for item in arrays], *args, **kwargs)

    return call
