"""Arrays as the checker handles them: NumPy arrays on the host, and the backend they came from.

Owns the conversion of a tensor or an array of any library to the host and back. Must not know what
is computed with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.arrays import NUMPY, Library, is_array, library_of
from pullback.core.tensor.tensor import Tensor, box

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


class Backend(NamedTuple):
    """The library and the device of the arrays of a call."""

    library: Library
    device: str

    def from_numpy(self, array: Array) -> Any:
        """Return a NumPy array as an array of this library on this device."""
        if self.library is NUMPY:
            return np.asarray(array)
        return self.library.from_numpy(array, self.library.native_device(self.device))


def backend_of(value: Any) -> Backend:
    """Return the library and device of a tensor or an array."""
    if isinstance(value, Tensor):
        return Backend(library_of(value.data_array()), value.device)
    library = library_of(value)
    return Backend(library, library.device(value))


def holds_numbers(value: Any) -> bool:
    """Return whether a value is a tensor or an array of any library."""
    return isinstance(value, Tensor) or is_array(value)


def host(value: Any) -> Array:
    """Return the values of a tensor or an array as a NumPy array."""
    array = value.data_array() if isinstance(value, Tensor) else value
    return array if isinstance(array, np.ndarray) else library_of(array).to_numpy(array)


def in_place_of(value: Any, array: Array) -> Any:
    """Return an array as what a value is: an array, or a tensor, which requires grad if it does."""
    if not isinstance(value, Tensor):
        return array
    tensor = box(array)
    return tensor.requires_grad_() if value.requires_grad else tensor


def copies(arrays: Arrays) -> list[Array]:
    """Return C-contiguous copies, so that no shared memory can be written to."""
    return [np.array(a, order="C") for a in arrays]


def points_into(array: Array, other: Array) -> bool:
    """Return whether whole numbers say where each row of another array starts, and its length."""
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size < 2 or not other.ndim:
        return False
    rises = (np.diff(array.astype(np.int64)) >= 0).all()
    return bool(rises and array[0] == 0 and array[-1] == len(other))
