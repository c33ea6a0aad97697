"""CuPy: arrays on NVIDIA GPUs. CuPy is imported the first time that it is used, never before.

Invariant: whatever makes or copies an array does so on the device asked for, or on the device of
the array it was given; the device that is current in the thread decides only where nothing else
does.
"""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np

from pullback.arrays import indexing, windows
from pullback.arrays.dtypes import DType
from pullback.arrays.library import Array, Library, index_error, value_error
from pullback.arrays.random import RandomSource
from pullback.errors import DeviceError, compose
from pullback.extras import optional

__all__ = ["CuPy", "CuPyRandom"]

# What CUDA adds atomically, and so what scatters with repeated indices.
_ATOMIC = ("int32", "int64", "uint32", "uint64", "float16", "float32", "float64")


class CuPy(Library):
    """CuPy arrays; the native device is ``cupy.cuda.Device``.

    CuPy does not check the values of integer index arrays: out of range they wrap around instead of
    raising.
    """

    supports_out = True

    def __init__(self) -> None:
        super().__init__("cupy")

    @cached_property
    def cupy(self) -> Any:
        """The module `cupy`.

        Raises
        ------
        MissingExtraError
            If CuPy is not installed.
        """
        return optional('device "cuda"', "cupy", "CuPy", "cuda")

    @cached_property
    def xp(self) -> Any:
        """CuPy's functions under the standard's names."""
        self.cupy  # noqa: B018 (raises the error that names the extra)
        return importlib.import_module("array_api_compat.cupy")

    @cached_property
    def array_types(self) -> tuple[type, ...]:
        return (self.cupy.ndarray,)

    def is_available(self) -> bool:
        """Say whether CuPy is installed and sees a GPU; never raises."""
        try:
            return bool(self.cupy.cuda.is_available())
        except Exception:  # a broken driver fails in ways of its own
            return False

    # ------------------------------------------------------------------ dtypes and devices

    def special(self, name: str, *arrays: Array) -> Array:
        with self.activate(arrays[0].device):
            return getattr(importlib.import_module("cupyx.scipy.special"), name)(*arrays)

    def native(self, dtype: DType) -> Any:
        return dtype.dtype

    def device(self, a: Array) -> str:
        return f"cuda:{a.device.id}"

    def native_device(self, name: str) -> Any:
        cuda = self.cupy.cuda
        if not self.is_available():
            hint = "check the NVIDIA driver, or leave the arrays on the CPU"
            raise DeviceError(
                compose("device", "a GPU that CuPy can use required", "none", hint=hint)
            )
        number = name.partition(":")[2]
        if not number:
            return cuda.Device()  # the one that is current in this thread
        count = cuda.runtime.getDeviceCount()
        if int(number) >= count:
            raise DeviceError(compose("device", f"cuda:0 to cuda:{count - 1} required", name))
        return cuda.Device(int(number))

    def activate(self, device: Any) -> AbstractContextManager[Any]:
        return self.cupy.cuda.Device() if device is None else device  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ making arrays

    def asarray(
        self, obj: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None
    ) -> Array:
        if device is None and self.has(obj):
            device = obj.device
        native = None if dtype is None else dtype.dtype
        with self.activate(device):
            return self.xp.asarray(obj, dtype=native, device=device, copy=copy)

    def zeros(self, shape: tuple[int, ...], dtype: DType, device: Any = None) -> Array:
        with self.activate(device):
            return self.cupy.zeros(shape, dtype.dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType, device: Any = None) -> Array:
        with self.activate(device):
            return self.cupy.full(shape, value, dtype.dtype)

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Array:
        with self.activate(device):
            return self.cupy.asarray(array)

    def to_numpy(self, a: Array) -> np.ndarray[Any, Any]:
        return self.cupy.asnumpy(a)  # type: ignore[no-any-return]

    def generator(self, seed: int | None = None, device: Any = None) -> RandomSource:
        return CuPyRandom(self, seed, self.activate(device))

    # ------------------------------------------------------------------ memory

    def owns(self, a: Array) -> bool:
        return a.base is None and bool(a.flags.owndata)

    def shares(self, a: Array, b: Array) -> bool:
        return bool(self.cupy.may_share_memory(a, b))

    def is_writeable(self, a: Array) -> bool:
        return not any(
            stride == 0 and size > 1 for stride, size in zip(a.strides, a.shape, strict=True)
        )

    def diagonal(self, a: Array, offset: int = 0) -> Array:
        row, column, count = indexing.diagonal_place(a.shape, offset)
        with a.device:
            square = a[..., row : row + count, column : column + count]
            return self.cupy.diagonal(square, 0, -2, -1)

    def copy(self, a: Array) -> Array:
        with a.device:
            return a.copy()

    def astype(self, a: Array, dtype: DType, copy: bool = False) -> Array:
        with a.device:
            return a.astype(dtype.dtype, copy=copy)

    def reshape(self, a: Array, shape: tuple[int, ...]) -> tuple[Array, bool]:
        with a.device:
            return super().reshape(a, shape)

    def windows(
        self, a: Array, sizes: tuple[int, ...], steps: tuple[int, ...], dilations: tuple[int, ...]
    ) -> Array:
        shape, strides = windows.layout(a, sizes, steps, dilations)
        return self.cupy.lib.stride_tricks.as_strided(a, shape, strides)

    def fold(
        self,
        a: Array,
        lengths: tuple[int, ...],
        steps: tuple[int, ...],
        dilations: tuple[int, ...],
        starts: tuple[int, ...],
    ) -> Array:
        with a.device:
            return super().fold(a, lengths, steps, dilations, starts)

    # ------------------------------------------------------------------ indexing

    def getitem(self, a: Array, index: Any) -> Array:
        with a.device:
            return super().getitem(a, index)

    def assign(self, a: Array, index: Any, value: Any) -> Array:
        try:
            with a.device:
                a[index] = value
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None
        return a

    def add_at(self, a: Array, index: Any, value: Any) -> Array:
        if a.dtype.kind == "c":
            value = self.cupy.asarray(value)
            self.add_at(a.real, index, value.real)
            self.add_at(a.imag, index, value.imag)
            return a
        if a.dtype.name not in _ATOMIC:
            return super().add_at(a, index, value)
        try:
            with a.device:
                self.cupy.add.at(a, index, value)
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None
        return a


class CuPyRandom(RandomSource):
    """Random CuPy arrays, drawn on the GPU by CuPy's own generator."""

    library: CuPy

    def _new_generator(self, seed: int | None) -> Any:
        with self.device:
            return self.library.cupy.random.default_rng(seed)

    def _finish(self, drawn: Any, dtype: DType) -> Array:
        return drawn.astype(dtype.dtype, copy=False)

    def normal(self, shape: tuple[int, ...], dtype: DType) -> Array:
        with self.device:
            return super().normal(shape, dtype)

    def uniform(self, shape: tuple[int, ...], dtype: DType) -> Array:
        with self.device:
            return super().uniform(shape, dtype)

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: DType) -> Array:
        with self.device:
            return super().integers(low, high, shape, dtype)

    def permutation(self, n: int, dtype: DType, lead: tuple[int, ...] = ()) -> Array:
        # CuPy's Generator has no permutation; the order of n independent draws is one.
        with self.device:
            keys = self._generator.random((*lead, n))
            return self._finish(self.library.cupy.argsort(keys, axis=-1), dtype)

    def get_state(self) -> Any:
        with self.device:
            return self._generator.bit_generator._state.copy()  # CuPy has no public name for it

    def set_state(self, state: Any) -> None:
        with self.device:
            self._generator.bit_generator._state[...] = state
