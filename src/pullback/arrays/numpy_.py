"""NumPy: the default library, and the fastest way through the seam."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from pullback.arrays.dtypes import DType
from pullback.arrays.library import (
    Array,
    Library,
    index_error,
    scipy_special,
    size_error,
    value_error,
)

__all__ = ["NumPy"]


def _fast_namespace() -> ModuleType:
    """Return NumPy's namespace with quicker spellings of some functions written in Python."""
    xp = ModuleType("numpy")
    xp.__dict__.update(vars(np))
    xp.__dict__.update({f.__name__.strip("_"): f for f in _FASTER})
    xp.__dict__["__getattr__"] = lambda name: getattr(np, name)
    return xp


_add: Any = np.add.reduce


def _axes(axis: Any, ndim: int) -> Any:
    return tuple(range(ndim)) if axis is None else axis


def _sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.kind in "fc" and dtype is None:
        return _add(x, axis=_axes(axis, x.ndim), keepdims=keepdims)
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or not x.size:
        return np.mean(x, axis=axis, keepdims=keepdims)
    axes = _axes(axis, x.ndim)
    total = _add(x, axis=axes, keepdims=keepdims)
    if axis is None:
        return total / x.size
    return total / math.prod([x.shape[a] for a in (axes if isinstance(axes, tuple) else (axes,))])


def _broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    if x.ndim:
        return np.broadcast_to(x, shape)
    spread = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    spread.flags.writeable = False
    return spread


def _matrix_transpose(x: Any) -> Any:
    return x.mT


def _permute_dims(x: Any, axes: Any) -> Any:
    return x.transpose(axes)


def _zeros_like(x: Any, dtype: Any = None) -> Any:
    return np.zeros(x.shape, x.dtype if dtype is None else dtype)


def _expand_dims(x: Any, axis: int = 0) -> Any:
    return x[(None, ...)] if axis == 0 else np.expand_dims(x, axis)


_FASTER = (_sum, _mean, _broadcast_to, _matrix_transpose, _permute_dims, _zeros_like, _expand_dims)


class NumPy(Library):
    """NumPy arrays on the CPU."""

    array_types = (np.ndarray,)
    supports_out = True

    def __init__(self) -> None:
        super().__init__("numpy", _fast_namespace())

    def native(self, dtype: DType) -> Any:
        return dtype.dtype

    def device(self, a: Array) -> str:
        return "cpu"

    def native_device(self, name: str) -> Any:
        return None

    def same_device(self, a: Array, b: Array) -> bool:
        return True

    def asarray(
        self, obj: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None
    ) -> Array:
        return np.asarray(obj, dtype=None if dtype is None else dtype.dtype, copy=copy)

    def zeros(self, shape: tuple[int, ...], dtype: DType, device: Any = None) -> Array:
        return np.zeros(shape, dtype.dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType, device: Any = None) -> Array:
        return np.full(shape, value, dtype.dtype)

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Array:
        return array

    def to_numpy(self, a: Array) -> np.ndarray[Any, Any]:
        return a  # type: ignore[no-any-return]

    def special(self, name: str, *arrays: Array) -> Array:
        return scipy_special(name)(*arrays)

    def tidy(self, result: Any) -> Array:
        return result if type(result) is np.ndarray else np.asarray(result)

    def owns(self, a: Array) -> bool:
        return a.base is None and bool(a.flags.owndata)

    def is_writeable(self, a: Array) -> bool:
        flags = a.flags
        if not flags.writeable or flags.c_contiguous:
            return bool(flags.writeable)
        # A stride of 0 is one element seen many times: writing one would write them all.
        return not any(stride == 0 and n > 1 for stride, n in zip(a.strides, a.shape, strict=True))

    def shares(self, a: Array, b: Array) -> bool:
        root = b if b.base is None else b.base
        return a.base is root or np.may_share_memory(a, b)

    def is_contiguous(self, a: Array) -> bool:
        return bool(a.flags.c_contiguous)

    def diagonal(self, a: Array) -> Array:
        view = np.einsum("ii->i", a[: min(a.shape), : min(a.shape)])
        return view

    def copy(self, a: Array) -> Array:
        return a.copy()

    def readonly(self, a: Array) -> Array:
        view = a.view()
        view.flags.writeable = False
        return view

    def astype(self, a: Array, dtype: DType, copy: bool = False) -> Array:
        return a.astype(dtype.dtype, copy=copy)

    def reshape(self, a: Array, shape: tuple[int, ...]) -> tuple[Array, bool]:
        try:
            if a.flags.c_contiguous:
                return a.reshape(shape), True
            try:
                return np.reshape(a, shape, copy=False), True
            except ValueError:
                return a.reshape(shape), False
        except ValueError:
            raise size_error(a, shape) from None

    def broadcast_to(self, a: Array, shape: tuple[int, ...]) -> Array:
        view = super().broadcast_to(a, shape)
        # A part of it may repeat nothing, and be written to: `is_writeable` looks at strides.
        if a.flags.writeable and not view.flags.writeable:
            view.flags.writeable = True
        return view

    def getitem(self, a: Array, index: Any) -> Array:
        try:
            result = a[index]
        except IndexError as error:
            raise index_error(a, error) from None
        return result if type(result) is np.ndarray else _element(a, index)

    def assign(self, a: Array, index: Any, value: Any) -> Array:
        try:
            a[index] = value
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None
        return a

    def add_at(self, a: Array, index: Any, value: Any) -> Array:
        try:
            np.add.at(a, index, value)
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None
        return a


def _element(a: Array, index: Any) -> Array:
    """Return one element as a view of 0 dimensions, where NumPy by itself gives a scalar."""
    return a[(*index, ...) if isinstance(index, tuple) else (index, ...)]
