"""The memory layouts that an array can have.

Every array is put in the middle of a buffer of its own that is filled with another number, so that
code which takes any array for contiguous reads wrong numbers, but never outside of the buffer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pullback.check.values import Array

_FILLER = 7


class Layout(NamedTuple):
    """One memory layout.

    Attributes
    ----------
    name : str
        As failures name it.
    apply : callable
        Returns an array with the same values in that layout.
    axes : tuple of int
        The axes along which `apply` repeats the first values; empty for most layouts.
    """

    name: str
    apply: Callable[[Array], Array]
    axes: tuple[int, ...] = ()

    def values(self, array: Array) -> Array:
        """Return the values of the laid out array, C-contiguous."""
        first = tuple(slice(0, 1) if k in self.axes else slice(None) for k in range(array.ndim))
        return np.array(np.broadcast_to(array[first], array.shape), order="C")


def layouts_of(array: Array, fast: bool = False) -> list[Layout]:
    """Return the layouts that are distinct for an array.

    Examples
    --------
    >>> import numpy as np
    >>> [layout.name for layout in layouts_of(np.zeros((2, 3)), fast=True)]
    ['transposed', 'expanded along axis 0', 'sliced with steps']
    """
    long = [k for k in range(array.ndim) if array.shape[k] > 1]
    orders = _transposed(long) if len(long) > 1 else []
    zero = [Layout(f"expanded along axis {k}", expanded((k,)), (k,)) for k in long[:3]]
    steps = [Layout("sliced with steps", stepped)] if long else []
    if fast:
        return [*orders[:1], *zero[:1], *steps]
    found = [*orders, *zero, *steps]
    if len(long) > 1:
        every = tuple(range(array.ndim))
        found.append(Layout("expanded along every axis", expanded(every), every))
        found.append(Layout("rows of a wider array", rows))
    if long:
        found.append(Layout("reversed", reversed_))
    return [
        *found,
        Layout("inside a larger storage", inside),
        Layout("misaligned", misaligned),
        Layout("read-only", read_only),
    ]


def _transposed(long: Sequence[int]) -> list[Layout]:
    """Return the layouts with the axes in another order."""
    if len(long) == 2:
        return [Layout("transposed", ordered(*long))]
    pairs = [*itertools.pairwise(long)][:3]
    swapped = [Layout(f"axes {i} and {j} transposed", ordered(i, j)) for i, j in pairs]
    return [Layout("Fortran order", fortran), *swapped]


def _buffer(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array of that shape in the middle of a filled buffer."""
    count = int(np.prod(shape))
    margin = max(array.size, 1)
    filler = _FILLER if array.dtype.kind in "fc" else 0  # valid as an index
    memory = np.full(count + 2 * margin, filler, array.dtype)
    return memory[margin : margin + count].reshape(shape)


def fortran(array: Array) -> Array:
    """Return an array in Fortran order."""
    laid = _buffer(array, array.shape[::-1]).T
    laid[...] = array
    return laid


def ordered(i: int, j: int) -> Callable[[Array], Array]:
    """Return the layout with two axes exchanged in memory."""

    def apply(array: Array) -> Array:
        turned = np.swapaxes(array, i, j)
        laid = _buffer(array, turned.shape)
        laid[...] = turned
        return np.swapaxes(laid, i, j)

    return apply


def stepped(array: Array) -> Array:
    """Return every second element of a larger array, along every axis."""
    laid = _buffer(array, tuple(2 * n + 1 for n in array.shape))
    laid = laid[(slice(1, None, 2),) * array.ndim]
    laid[...] = array
    return laid


def reversed_(array: Array) -> Array:
    """Return an array with negative strides."""
    laid = _buffer(array, array.shape)[(slice(None, None, -1),) * array.ndim]
    laid[...] = array
    return laid


def rows(array: Array) -> Array:
    """Return the inner columns of a wider array."""
    laid = _buffer(array, (*array.shape[:-1], array.shape[-1] + 2))[..., 1:-1]
    laid[...] = array
    return laid


def inside(array: Array) -> Array:
    """Return a C-contiguous array that does not own its memory."""
    laid = _buffer(array, array.shape)
    laid[...] = array
    return laid


def expanded(axes: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return the layout with stride 0 along some axes."""

    def apply(array: Array) -> Array:
        first = array[tuple(slice(0, 1) if k in axes else slice(None) for k in range(array.ndim))]
        laid = _buffer(array, first.shape)
        laid[...] = first
        strides = [0 if k in axes else laid.strides[k] for k in range(array.ndim)]
        return np.lib.stride_tricks.as_strided(laid, array.shape, strides)

    return apply


def misaligned(array: Array) -> Array:
    """Return an array that starts at an odd address."""
    memory = bytearray(array.nbytes + array.itemsize)
    laid = np.frombuffer(memory, array.dtype, array.size, offset=1).reshape(array.shape)
    laid[...] = array
    return laid


def read_only(array: Array) -> Array:
    """Return a read-only array."""
    laid = inside(array)
    laid.flags.writeable = False
    return laid
