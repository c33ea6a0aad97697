"""Indices, apart from any array: which are basic, how the standard spells them, what they pick.

The Array API standard specifies less than NumPy: every axis spelled out, slices within bounds,
masks alone, no lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "diagonal_place",
    "element_numbers",
    "has_new_axis",
    "host_assign",
    "is_basic",
    "spelled_out",
]


def is_basic(index: Any) -> bool:
    """Say whether an index has only integers, slices, None and Ellipsis: NumPy returns a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is ... or isinstance(part, slice) or _is_integer(part)
        for part in parts
    )


def _is_integer(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def has_new_axis(index: Any) -> bool:
    """Say whether a basic index has a None in it."""
    return index is None or (isinstance(index, tuple) and any(part is None for part in index))


def spelled_out(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a basic index as the standard has it: every axis or an Ellipsis, slices in bounds."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(part is ... for part in parts):
        parts.append(...)
    used = sum(part is not None and part is not ... for part in parts)
    axis = 0
    for position, part in enumerate(parts):
        if part is ...:
            axis += len(shape) - used
        elif part is not None:
            if isinstance(part, slice) and 0 <= axis < len(shape):
                parts[position] = _within(part, shape[axis])
            axis += 1
    return tuple(parts)


def _within(part: slice, size: int) -> slice:
    start, stop, step = part.indices(size)
    if step > 0:
        return slice(start, max(start, stop), step)
    if start < 0:
        return slice(0, 0, 1)  # nothing to go down from
    return slice(start, None if stop < 0 else stop, step)


def element_numbers(shape: tuple[int, ...], index: Any) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the position in the flattened array of each element that a NumPy index picks.

    Examples
    --------
    >>> element_numbers((2, 3), ([1, 0], 2))
    array([5, 2])
    """
    positions = np.arange(int(np.prod(shape)), dtype=np.intp).reshape(shape)
    return np.asarray(positions[index], dtype=np.intp)


def host_assign(array: np.ndarray[Any, Any], index: Any, value: Any) -> None:
    """Do ``array[index] = value``, as a function."""
    array[index] = value


def diagonal_place(shape: tuple[int, ...], offset: int) -> tuple[int, int, int]:
    """Return where a diagonal of matrices of that shape begins, row and column, and its length."""
    n, m = shape[-2:]
    row, column = min(max(-offset, 0), n), min(max(offset, 0), m)
    return row, column, min(n - row, m - column)
