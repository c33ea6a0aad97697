"""NumPy: the default library, and the fastest way through the seam."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from pullback.arrays import windows
from pullback.arrays.dtypes import DType
from pullback.arrays.indexing import diagonal_place
from pullback.arrays.library import (
    Array,
    Library,
    index_error,
    scipy_special,
    size_error,
    value_error,
)
from pullback.arrays.snapshots import snapshot
from pullback.arrays.sums import add_up, running_sum

__all__ = ["NumPy"]


def _fast_namespace() -> ModuleType:
    """Return NumPy's namespace with quicker spellings of some functions written in Python."""
    xp = ModuleType("numpy")
    xp.__dict__.update(vars(np))
    xp.__dict__.update({f.__name__.strip("_"): f for f in _FASTER})
    xp.__dict__["__getattr__"] = lambda name: getattr(np, name)
    return xp


class Constants(dict[Any, Any]):
    """One number as an array of 0 dimensions, by dtype: NumPy takes longer for a Python number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __missing__(self, dtype: Any) -> Any:
        self[dtype] = array = np.array(self.value, dtype)
        array.flags.writeable = False
        return array


_ZERO = Constants(0)
_OF_NUMPY = (np.ndarray, np.generic)

_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_share: Any = np.may_share_memory
_or: Any = np.logical_or.reduce
_and: Any = np.logical_and.reduce


def _sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.kind in "fc" and dtype is None:
        return add_up(x, axis, keepdims)
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.kind in "fc" and dtype is None:
        return _multiply(x, axis, None, None, keepdims)
    return np.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _extreme(_maximum, x, axis, keepdims)


def _min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _extreme(_minimum, x, axis, keepdims)


_SHORT, _ROWS = 24, 40  # numbers of a row, and rows, from which on columns are quicker


def _extreme(reduce: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the largest or the smallest: of many short rows as columns, a tenth of the time."""
    if axis.__class__ is int and x.ndim > 0 and axis in (-1, x.ndim - 1):
        n = x.shape[-1]
        if 0 < n <= _SHORT and x.size >= _ROWS * n and x.flags.c_contiguous:
            shape = (*x.shape[:-1], 1) if keepdims else x.shape[:-1]
            return reduce(np.ascontiguousarray(x.reshape(-1, n).T), 0).reshape(shape)
    return reduce(x, axis, None, None, keepdims)


def _any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _or(x, axis=axis, keepdims=keepdims)


def _all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _and(x, axis=axis, keepdims=keepdims)


def _argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return x.argmax(axis=axis, keepdims=keepdims)


def _argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return x.argmin(axis=axis, keepdims=keepdims)


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype.kind not in "fc" or not x.size:
        return np.mean(x, axis=axis, keepdims=keepdims)
    if x.dtype.itemsize == 2:
        return _mean(x.astype(np.float32), axis, keepdims).astype(x.dtype)
    total = add_up(x, axis, keepdims)
    total /= x.size // total.size
    return total


def _broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    if not x.ndim:
        strides = (0,) * len(shape)
    elif x.ndim == len(shape) and x.flags.c_contiguous and x.size:
        strides = tuple(
            [
                s if n == m else _stretched(n, x, shape)
                for s, n, m in zip(x.strides, x.shape, shape, strict=True)
            ]
        )
    else:
        return np.broadcast_to(x, shape)
    spread = np.ndarray(shape, x.dtype, x, 0, strides)
    spread.flags.writeable = False
    return spread


def _stretched(n: int, x: Any, shape: tuple[int, ...]) -> int:
    """Return the stride of an axis that broadcasting makes longer, or raise NumPy's error."""
    if n != 1:
        np.broadcast_to(x, shape)
    return 0


def _matrix_transpose(x: Any) -> Any:
    return x.mT


def _permute_dims(x: Any, axes: Any) -> Any:
    return x.transpose(axes)


def _zeros_like(x: Any, dtype: Any = None) -> Any:
    return np.zeros(x.shape, x.dtype if dtype is None else dtype)


def _expand_dims(x: Any, axis: int = 0) -> Any:
    if axis == 0:
        return x[(None, ...)]
    return x[..., None] if axis == -1 else np.expand_dims(x, axis)


def _reshape(x: Any, shape: tuple[int, ...], copy: bool | None = None) -> Any:
    return x.reshape(shape) if copy is None else np.reshape(x, shape, copy=copy)


def _matmul(x: Any, y: Any) -> Any:
    if 0 < x.ndim < 3 and 0 < y.ndim < 3:  # the same product, by the quicker way in
        return x.dot(y)
    return np.matmul(x, y)


def _where(condition: Any, x: Any, y: Any) -> Any:
    if y.__class__ is int and y == 0 and isinstance(x, _OF_NUMPY) and x.dtype.kind == "f":
        y = _ZERO[x.dtype]
    elif x.__class__ is int and x == 0 and isinstance(y, _OF_NUMPY) and y.dtype.kind == "f":
        x = _ZERO[y.dtype]
    return np.where(condition, x, y)


def _flip(x: Any, axis: Any = None) -> Any:
    if axis.__class__ is not int or not -x.ndim <= axis < x.ndim:
        return np.flip(x, axis)
    return x[(slice(None),) * (axis % x.ndim) + (slice(None, None, -1),)]


def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    if axis.__class__ is not tuple or len(axis) != 1 or shift.__class__ is not tuple:
        return np.roll(x, shift, axis)
    n, lead = x.shape[axis[0]], (slice(None),) * (axis[0] % x.ndim)
    first = n - shift[0] % n if n else 0
    return np.concatenate((x[(*lead, slice(first, n))], x[(*lead, slice(first))]), axis[0])


def _cumulative_sum(x: Any, *, axis: Any = None, **settings: Any) -> Any:
    if settings or axis.__class__ is not int or x.dtype.kind not in "fc" or not x.ndim:
        return np.cumulative_sum(x, axis=axis, **settings)
    return running_sum(x, axis)


_FASTER = (
    *(_sum, _prod, _mean, _max, _min, _any, _all, _argmax, _argmin),
    *(_broadcast_to, _matrix_transpose, _permute_dims, _zeros_like, _expand_dims),
    *(_reshape, _matmul, _where, _flip, _roll, _cumulative_sum),
)


class NumPy(Library):
    """NumPy arrays on the CPU."""

    array_types = (np.ndarray,)
    supports_out = True
    snapshot = staticmethod(snapshot)

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

    def overlaps(self, a: Array, b: Any) -> bool:
        if not isinstance(b, np.ndarray):
            return False
        if a.base is None and b.base is None:
            return a is b
        return bool(_share(a, b, max_work=1000))

    def is_contiguous(self, a: Array) -> bool:
        return bool(a.flags.c_contiguous)

    def diagonal(self, a: Array, offset: int = 0) -> Array:
        rows, columns, count = diagonal_place(a.shape, offset)
        square = a[..., rows : rows + count, columns : columns + count]
        return np.einsum("...ii->...i", square)  # unlike np.diagonal, it can be written to

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

    def windows(
        self, a: Array, sizes: tuple[int, ...], steps: tuple[int, ...], dilations: tuple[int, ...]
    ) -> Array:
        shape, strides = windows.layout(a, sizes, steps, dilations)
        return np.lib.stride_tricks.as_strided(a, shape, strides, writeable=False)

    def getitem(self, a: Array, index: Any) -> Array:
        try:
            result = a[index]
        except IndexError as error:
            raise index_error(a, error) from None
        return result if type(result) is np.ndarray else _element(a, index)

    def assign(self, a: Array, index: Any, value: Any) -> Array:
        try:
            a[index] = self.apart(a, value)
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None
        return a

    def add_at(self, a: Array, index: Any, value: Any) -> Array:
        try:
            if (sums := _sums_by_row(a, index, value)) is not None:
                a += sums
            elif (numbers := _numbers(a, index, value)) is not None:
                np.add.at(a.reshape(-1), numbers.reshape(-1), value.reshape(-1))
            else:
                np.add.at(a, index, value)
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None
        return a


def _element(a: Array, index: Any) -> Array:
    """Return one element as a view of 0 dimensions, where NumPy by itself gives a scalar."""
    return a[(*index, ...) if isinstance(index, tuple) else (index, ...)]


_MANY = 1000  # from here on, numbering the elements costs less than it saves
_FEW, _WIDE = 64, 8  # rows that are added to, and their length, for which a product is quicker


def _sums_by_row(a: Array, index: Any, value: Any) -> Any:
    """Return what is added to each row of `a`, where an array of integers names few long ones.

    It is a product with ones and zeros: None where a number is not finite, since 0 inf is NaN.
    """
    index = index[0] if index.__class__ is tuple and len(index) == 1 else index
    if not isinstance(index, np.ndarray) or index.dtype.kind not in "iu":
        return None
    if not isinstance(value, np.ndarray) or value.size < _MANY or value.dtype != a.dtype:
        return None
    if a.dtype.kind != "f" or a.dtype.itemsize < 4 or not 0 < len(a) <= _FEW:
        return None
    if value.shape != (*index.shape, *a.shape[1:]) or value.size < _WIDE * index.size:
        return None
    named = np.zeros((len(a), index.size), a.dtype)
    named[index.reshape(-1), np.arange(index.size)] = 1
    with np.errstate(invalid="ignore"):
        sums = named.dot(value.reshape(index.size, -1)).reshape(a.shape)
    return sums if np.isfinite(sums).all() else None


def _numbers(a: Array, index: Any, value: Any) -> Any:
    """Return the number in the flat `a` of each place, where NumPy adds faster by those.

    That is where many places are named by arrays of integers for all axes, or by one array for
    one axis; None elsewhere, and where an index is out of range.
    """
    if not isinstance(value, np.ndarray) or value.size < _MANY or not a.flags.c_contiguous:
        return None
    parts = index if isinstance(index, tuple) else (index,)
    named = [i for i, p in enumerate(parts) if isinstance(p, np.ndarray) and p.dtype.kind in "iu"]
    by_element = len(named) == len(parts) == a.ndim
    if by_element:
        picks, lengths = parts, a.shape
    elif len(named) == 1 and all(i in named or p == slice(None) for i, p in enumerate(parts)):
        axis = named[0]
        before, after = math.prod(a.shape[:axis]), math.prod(a.shape[axis + 1 :])
        picks = (np.arange(before)[:, None, None], parts[axis].reshape(-1, 1), np.arange(after))
        lengths = (before, a.shape[axis], after)
        if value.shape != (*a.shape[:axis], *parts[axis].shape, *a.shape[axis + 1 :]):
            return None
    else:
        return None
    numbers: Any = 0
    for pick, n in zip(picks, lengths, strict=True):
        if pick.size and not (-n <= pick.min() and pick.max() < n):
            return None
        pick = pick.astype(np.intp, copy=False)
        numbers = numbers * n + np.where(pick < 0, pick + n, pick)
    return None if by_element and numbers.shape != value.shape else numbers
