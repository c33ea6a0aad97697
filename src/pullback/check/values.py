"""Arrays as the checker handles them: NumPy arrays on the host, and where else they can live.

Owns the way from a tensor or an array of any library to the host and back. Must not know what is
computed with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.arrays import NUMPY, Library, is_array, library_of
from pullback.core.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


class Place(NamedTuple):
    """Where arrays of a call live: the library, the device's name."""

    library: Library
    device: str

    def put(self, array: Array) -> Any:
        """Return a NumPy array as one of this place."""
        if self.library is NUMPY:
            return np.asarray(array)
        return self.library.from_numpy(array, self.library.native_device(self.device))


def place_of(value: Any) -> Place:
    """Return where a tensor or an array lives."""
    if isinstance(value, Tensor):
        return Place(library_of(value.data_array()), value.device)
    library = library_of(value)
    return Place(library, library.device(value))


def holds_numbers(value: Any) -> bool:
    """Say whether a value is a tensor or an array of any library."""
    return isinstance(value, Tensor) or is_array(value)


def host(value: Any) -> Array:
    """Return the values of a tensor or an array as a NumPy array."""
    array = value.data_array() if isinstance(value, Tensor) else value
    return array if isinstance(array, np.ndarray) else library_of(array).to_numpy(array)


def copies(arrays: Arrays) -> list[Array]:
    """Return C-contiguous copies, so that nothing that is shared can be written to."""
    return [np.array(a, order="C") for a in arrays]
