"""Sums of NumPy's floating numbers whose error does not grow with their count.

NumPy adds in pairs along the axis whose elements lie closest together, and one after the other
along all others: in a column of a million float32 two digits are left. Here long columns are added
in blocks, then the blocks' sums; running sums likewise. Short rows, and columns, are products with
ones, which take from a half to a tenth of the time. Shape and dtype of a result are NumPy's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

__all__ = ["add_up", "running_sum"]

_reduce: Any = np.add.reduce
_accumulate: Any = np.add.accumulate

# So many numbers may be added one after the other: the error is that of a few roundings.
_FEW = 256
_LEAST = 2 * _FEW  # as many are in 2 columns
# A row of at most so many numbers is added up in one go; NumPy takes as many for one.
_SHORT = 128
_FIRST = tuple(range(64))  # axes, as many as there may be
_OF_BLAS = frozenset(map(np.dtype, ("float32", "float64")))  # of complex ones, inf * 1 is NaN
# Rows of a block. At each step of it so many elements are added at once, if there are as many:
# they stay in the processor's cache, and long steps are quick where rows are short.
_BLOCK, _AT_ONCE = 64, 4096


def add_up(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the sum over an axis, over a tuple of axes or, of None, over all."""
    if x.size <= _LEAST:
        return _reduce(x, axis, None, None, keepdims)
    if x.dtype in _OF_BLAS and axis is not None and x.flags.c_contiguous:
        named = axis if axis.__class__ is tuple else (axis,)
        if named in ((-1,), (x.ndim - 1,)) and 1 < x.shape[-1] <= _SHORT:
            return _of_rows(x, keepdims)
        if 0 < len(named) < x.ndim and x.shape[-1] > 1 and named == _FIRST[: len(named)]:
            return _of_columns(x, len(named), keepdims)
    if (
        not x.flags.c_contiguous
        if axis is None
        else axis.__class__ is tuple or x.shape[axis] > _FEW
    ):
        axes = _added_one_by_one(x, axis)
        if axes:
            return _in_blocks(x, axes, axis, keepdims)
    return _reduce(x, axis, None, None, keepdims)


def _of_rows(x: Any, keepdims: bool) -> Any:
    """Return the sum of each row, by a product with ones."""
    *shape, n = x.shape
    sums = np.empty((*shape, 1) if keepdims else shape, x.dtype)
    np.dot(x.reshape(-1, n), _ones(n, x.dtype), sums.reshape(-1))
    return sums


def _of_columns(x: Any, count: int, keepdims: bool) -> Any:
    """Return the sum over the first axes, by products with ones: of long columns in blocks."""
    shape = x.shape[count:]
    n, m = math.prod(x.shape[:count]), math.prod(shape)
    sums = np.empty(((1,) * count if keepdims else ()) + shape, x.dtype)
    flat, rest = sums.reshape(-1), x.reshape(n, m)
    if n <= _FEW:
        np.dot(_ones(n, x.dtype), rest, flat)
        return sums
    whole = n // _BLOCK * _BLOCK
    blocks = np.matmul(_ones(_BLOCK, x.dtype), rest[:whole].reshape(-1, _BLOCK, m))
    flat[...] = add_up(blocks, 0)
    if whole < n:
        flat += np.dot(_ones(n - whole, x.dtype), rest[whole:])
    return sums


@functools.cache
def _ones(n: int, dtype: Any) -> Any:
    return np.ones(n, dtype)


def running_sum(x: Any, axis: int) -> Any:
    """Return the running sum along an axis."""
    n = x.shape[axis]
    if n <= _FEW or x.size == 0:
        return _accumulate(x, axis)
    if x.dtype.itemsize == 2:
        return running_sum(x.astype(np.float32), axis).astype(x.dtype)
    axis %= x.ndim
    sums = np.empty(x.shape, x.dtype)
    blocks, rest = _cut(x, axis)
    summed, summed_rest = _cut(sums, axis)
    _accumulate(blocks, axis + 1, None, summed)
    _accumulate(rest, axis, None, summed_rest)
    lead = (slice(None),) * axis
    ends = running_sum(summed[(*lead, slice(None), -1)], axis)
    summed[(*lead, slice(1, None))] += ends[(*lead, slice(-1), None)]
    summed_rest += ends[(*lead, slice(-1, None))]
    return sums


def _cut(x: Any, axis: int) -> tuple[Any, Any]:
    """Return the whole blocks along an axis, as one more axis, and what is left over."""
    lead = (slice(None),) * axis
    rows = x.shape[axis] // _BLOCK
    whole = x[(*lead, slice(rows * _BLOCK))]
    blocks = whole.reshape(*x.shape[:axis], rows, _BLOCK, *x.shape[axis + 1 :])
    return blocks, x[(*lead, slice(rows * _BLOCK, None))]


def _added_one_by_one(x: Any, axis: Any) -> list[int]:
    """Return the axes along which NumPy would add many numbers one after the other, if any.

    Empty as well where the axes are none: NumPy says what is wrong with them.
    """
    if axis.__class__ is int:
        if x.ndim == 1 or x.strides[axis] == x.itemsize:
            return []
        axis = (axis,)
    elif axis is None:
        axis = tuple(range(x.ndim))
    axes = {i % x.ndim for i in axis}
    count = math.prod([x.shape[i] for i in axes])
    if count <= _FEW or x.dtype.kind not in "fc" or len(axes) < len(axis):
        return []
    together = _added_in_pairs(x, axes)
    if count <= _FEW * math.prod([x.shape[i] for i in together]):
        return []
    return [*together, *sorted(axes.difference(together), key=lambda i: x.shape[i])]


def _added_in_pairs(x: Any, axes: set[int]) -> list[int]:
    """Return the axes that NumPy adds in pairs: those whose elements lie closest together."""
    order = sorted((abs(s), i) for i, s in enumerate(x.strides) if x.shape[i] > 1)
    if order and not order[0][0]:  # repeated elements: the order is NumPy's secret
        return []
    result: list[int] = []
    following = 0
    for stride, i in order:
        if i not in axes or (result and stride != following):
            break
        result.append(i)
        following = stride * x.shape[i]
    return result


def _in_blocks(x: Any, axes: list[int], axis: Any, keepdims: bool) -> Any:
    """Return the sum over `axis`, which names `axes`, with every long one added in blocks."""
    dtype = x.dtype
    if dtype.itemsize == 2:  # sums of blocks would be rounded to three digits
        x = x.astype(np.float32)
    for i in axes[:-1]:
        x = _reduce(_shortened(x, i), i, None, None, True)
    total = _reduce(_shortened(x, axes[-1]), axis, None, None, keepdims)
    return total if total.dtype == dtype else total.astype(dtype)


def _shortened(x: Any, axis: int) -> Any:
    """Return the sums of blocks along an axis, of blocks of them and so on, until few are left."""
    n = x.shape[axis]
    if n <= _BLOCK or x.size == n or axis in _added_in_pairs(x, {axis}):
        return x
    stride = abs(x.strides[axis])
    width = math.prod([k for k, s in zip(x.shape, x.strides, strict=True) if abs(s) < stride])
    at_once = max(1, min(_AT_ONCE // max(1, width), n // _BLOCK))
    rows = n // (_BLOCK * at_once)
    whole = rows * _BLOCK * at_once
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    lead = (slice(None),) * axis
    blocks = x[(*lead, slice(whole))].reshape(*before, rows, _BLOCK, at_once, *after)
    sums = _reduce(blocks, axis + 1).reshape(*before, rows * at_once, *after)
    if whole < n:
        rest = _shortened(x[(*lead, slice(whole, None))], axis)
        sums = np.concatenate([sums, rest], axis)
    return _shortened(sums, axis)
