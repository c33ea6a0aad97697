"""Random arrays, drawn by a well-kept generator of the array library.

`RandomSource` draws with NumPy and converts, so any library has it; a library with a generator of
its own overrides what it draws. Knows nothing of the process-wide generator or of seeding policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.arrays.dtypes import DType, real_of
from pullback.errors import ArgumentError, DTypeError, compose

__all__ = ["RandomSource"]


class RandomSource:
    """A stream of random arrays of one library on one device.

    Parameters
    ----------
    library : Library
        Whose arrays it makes.
    seed : int, optional
        Not negative; the same seed gives the same stream. None: from the operating system.
    device : native device, optional
        Where the arrays are to live.
    """

    def __init__(self, library: Any, seed: int | None = None, device: Any = None) -> None:
        if seed is not None and seed < 0:
            raise ArgumentError(compose("generator", "a seed of 0 or more required", str(seed)))
        self.library = library
        self.device = device
        self._generator = self._new_generator(seed)

    def _new_generator(self, seed: int | None) -> Any:
        return np.random.default_rng(seed)

    def _finish(self, drawn: Any, dtype: DType) -> Any:
        """Give what the generator drew its dtype and its library."""
        array = np.asarray(drawn).astype(dtype.dtype, copy=False)
        return self.library.from_numpy(array, self.device)

    def normal(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """Draw from the normal distribution, mean 0, variance 1 (complex: 1/2 in each part)."""
        drawn = self._floats(self._generator.standard_normal, "normal", shape, dtype)
        return self._finish(drawn * 0.5**0.5 if dtype.is_complex else drawn, dtype)

    def uniform(self, shape: tuple[int, ...], dtype: DType) -> Any:
        """Draw evenly from 0 (included) to 1 (excluded); complex: each part by itself."""
        return self._finish(self._floats(self._generator.random, "uniform", shape, dtype), dtype)

    def _floats(self, draw: Any, name: str, shape: tuple[int, ...], dtype: DType) -> Any:
        if not dtype.is_inexact:
            raise DTypeError(compose(name, "a floating or complex dtype required", dtype.name))
        if dtype.is_complex:
            parts = draw((2, *shape), dtype=real_of(dtype).dtype)
            return parts[0] + 1j * parts[1]
        if dtype.itemsize > 2:
            return draw(shape, dtype=dtype.dtype)
        wide = draw(shape, dtype=np.float32)
        # Cut down to the 11 bits that float16 has below 1: rounding could give the excluded 1.
        return wide if name == "normal" else wide * 2048 // 1 / 2048

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: DType) -> Any:
        """Draw integers evenly from `low` (included) to `high` (excluded).

        Raises
        ------
        ArgumentError
            If there is no integer between the bounds, or the dtype cannot hold one.
        """
        came = f"low={low}, high={high}"
        if low >= high:
            raise ArgumentError(compose("integers", "low < high required", came))
        least, most = _bounds(dtype)
        if low < least or high - 1 > most:
            raise ArgumentError(
                compose("integers", f"bounds that {dtype.name} holds required", came)
            )
        drawn_as = dtype.dtype if dtype.kind in "iu" else np.int64
        return self._finish(self._generator.integers(low, high, size=shape, dtype=drawn_as), dtype)

    def permutation(self, n: int, dtype: DType, lead: tuple[int, ...] = ()) -> Any:
        """Draw an order of the integers from 0 to ``n - 1``, or an array `lead` of orders."""
        if not lead:
            return self._finish(self._generator.permutation(n), dtype)
        rows = np.broadcast_to(np.arange(n), (*lead, n))
        return self._finish(self._generator.permuted(rows, axis=-1), dtype)

    def get_state(self) -> Any:
        """Return where the stream is, for `set_state`."""
        return self._generator.bit_generator.state

    def set_state(self, state: Any) -> None:
        """Go back to where the stream was at `get_state`."""
        self._generator.bit_generator.state = state


def _bounds(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer drawn for a dtype."""
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype.dtype if dtype.kind in "iu" else np.int64)
    return int(info.min), int(info.max)
