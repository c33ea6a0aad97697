"""What rules of primitives are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from pullback.compat.autograd.boxes import getval
from pullback.hints import absent

__all__ = ["match_complex", "metadata", "repeat_to_match_shape", "unbroadcast", "unbroadcast_f"]


def metadata(x: Any) -> tuple[tuple[int, ...], int, Any, bool]:
    """Return the shape, the number of axes, the dtype and whether numbers are complex.

    Examples
    --------
    >>> metadata(1.0)
    ((), 0, dtype('float64'), False)
    """
    array = np.asarray(getval(x))
    return array.shape, array.ndim, array.dtype, np.iscomplexobj(array)


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """Return a gradient summed to a shape, and real where the target is.

    `target_meta` is the target's `metadata`. Axes that it does not have are at `broadcast_idx`.

    Examples
    --------
    >>> unbroadcast(np.ones((2, 3)), ((1,), 1, float, False))
    array([6.])
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(x)[i] != 1)
    x = np.sum(x, axis=axes, keepdims=True) if axes else x
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` whose result is summed to the shape of `target`, and real where that is.

    Examples
    --------
    >>> unbroadcast_f(1.0, lambda g: g * np.ones((2, 3)))(2.0)
    np.float64(12.0)
    """
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target: Any, x: Any) -> Any:
    """Return the real part of `x` where `target` is real, a complex number where it is complex.

    Examples
    --------
    >>> match_complex(1.0, 2.0 + 1j), match_complex(1j, 2.0)
    (2.0, (2+0j))
    """
    if np.iscomplexobj(target):
        return x if np.iscomplexobj(x) else x + 0j
    return np.real(x) if np.iscomplexobj(x) else x


def repeat_to_match_shape(
    g: Any, shape: tuple[int, ...], dtype: Any, axis: Any, keepdims: bool
) -> tuple[Any, int]:
    """Return the gradient of a sum over `axis` repeated to `shape`, and how many times it is.

    Examples
    --------
    >>> repeat_to_match_shape(np.array([1.0, 2.0]), (2, 3), float, 1, False)
    (array([[1., 1., 1.],
           [2., 2., 2.]]), 3)
    """
    axes = range(len(shape)) if axis is None else np.atleast_1d(axis) % max(len(shape), 1)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    repeats = int(np.prod([n for n, once in zip(shape, kept, strict=True) if once != n]))
    return np.reshape(g, kept) + np.zeros(shape, dtype=dtype), repeats


def __getattr__(name: str) -> Never:
    raise absent(__name__, name)
