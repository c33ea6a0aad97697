"""Sliding windows over the last axes of arrays, for any library.

`layout` is for libraries with strides, where windows are a view; `gathered` and `added_up` are
written against the Array API standard and the methods of `Library` alone.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

Ints = tuple[int, ...]


def _counts(lengths: Ints, sizes: Ints, steps: Ints, dilations: Ints) -> Ints:
    axes = zip(lengths, sizes, steps, dilations, strict=True)
    return tuple((length - d * (size - 1) - 1) // step + 1 for length, size, step, d in axes)


def layout(a: Any, sizes: Ints, steps: Ints, dilations: Ints) -> tuple[Ints, Ints]:
    """Return the shape and the strides of the windows of `a`."""
    lead = len(a.shape) - len(sizes)
    strides = a.strides[lead:]
    between = tuple(stride * step for stride, step in zip(strides, steps, strict=True))
    within = tuple(stride * d for stride, d in zip(strides, dilations, strict=True))
    counts = _counts(a.shape[lead:], sizes, steps, dilations)
    return (*a.shape[:lead], *counts, *sizes), (*a.strides[:lead], *between, *within)


def gathered(library: Any, a: Any, sizes: Ints, steps: Ints, dilations: Ints) -> Any:
    """Return the windows of `a` as a copy: by taking elements axis by axis."""
    xp, n, lead = library.xp, len(sizes), len(a.shape) - len(sizes)
    counts = _counts(a.shape[lead:], sizes, steps, dilations)
    for i, (count, size) in enumerate(zip(counts, sizes, strict=True)):
        axis = lead + 2 * i
        places = np.arange(count)[:, None] * steps[i] + np.arange(size) * dilations[i]
        elements = xp.take(a, library.from_numpy(places.ravel(), a.device), axis=axis)
        a = xp.reshape(elements, (*a.shape[:axis], count, size, *a.shape[axis + 1 :]))
    pairs = range(lead, lead + 2 * n)
    return xp.permute_dims(a, (*range(lead), *pairs[::2], *pairs[1::2]))


def added_up(
    library: Any, a: Any, lengths: Ints, steps: Ints, dilations: Ints, starts: Ints
) -> Any:
    """Return the sum of windows at their places: one strided addition an element of a window."""
    n = len(lengths)
    counts, sizes = a.shape[-2 * n : -n], a.shape[-n:]
    result = library.zeros((*a.shape[: -2 * n], *lengths), library.dtype(a), a.device)
    axes = list(zip(lengths, counts, steps, dilations, starts, strict=True))
    for offset in itertools.product(*map(range, sizes)):
        slices = [_inside(k, *axis) for k, axis in zip(offset, axes, strict=True)]
        to = (..., *(target for target, _ in slices))
        part, sums = a[(..., *(which for _, which in slices), *offset)], result[to]
        if library.supports_out:
            library.xp.add(sums, part, out=sums)
        elif 0 not in part.shape:
            result = library.assign(result, to, sums + part)
    return result


def _inside(
    k: int, length: int, count: int, step: int, dilation: int, start: int
) -> tuple[slice, slice]:
    """Return where the k-th elements of windows lie in a length, and which windows these are."""
    first = start + k * dilation  # in the first window
    low = max(0, -(first // step))
    high = min(count, (length - 1 - first) // step + 1)
    if high <= low:
        return slice(0, 0), slice(0, 0)
    begin = first + low * step
    return slice(begin, first + (high - 1) * step + 1, step), slice(low, high)
