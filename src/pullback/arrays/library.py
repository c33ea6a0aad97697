"""One array library as the rest of pullback sees it: the whole seam.

`Library` is written against the Array API standard alone, so it serves any library that follows it
(array-api-strict is used as is). A subclass overrides what its library does better or otherwise.
Knows nothing of tensors or gradients.

Invariants: every method takes and returns bare arrays of this library; a dtype argument is a
`DType` and a device argument a native device (or None: the library's default) unless said
otherwise. Writing methods return the array that holds the result: the same one where `mutable`, a
new one elsewhere, so callers always use what they return.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from pullback.arrays import indexing, windows
from pullback.arrays.dtypes import DTYPES, DType, dtype_of
from pullback.arrays.random import RandomSource
from pullback.errors import (
    DeviceError,
    DTypeError,
    ShapeError,
    TensorIndexError,
    compose,
)
from pullback.extras import optional

__all__ = ["Array", "Library", "index_error", "scipy_special", "size_error", "value_error"]

Array: TypeAlias = Any


class Library:
    """An array library, by the Array API standard.

    Parameters
    ----------
    name : str
        As error messages and devices name it.
    xp : module
        Its Array API namespace.

    Attributes
    ----------
    name : str
    xp : module
        For NumPy `numpy` itself.
    mutable : bool
        Whether arrays can be written in place.
    supports_out : bool
        Whether functions of `xp` take ``out=``.
    level : int
        0, or that of the transform for which a library wraps arrays of others: it accepts those of
        every lower level, see `wrap`.
    call : callable, optional
        ``call(op, arguments, values)``, asked before a user's operation runs on an array of this
        library: returns the result, recorded, or NotImplemented to let forward run as usual.
        `values` are those of forward's parameters, in order; ``op.signature.spread(arguments,
        values)`` makes positional and keyword arguments of them.
    run : callable, optional
        ``run(op, arrays, settings)``, called for the forward of a built-in operation on arrays of
        this library, if the operation itself is to be asked and not its functions of `xp`.
    """

    mutable: bool = True
    supports_out: bool = False
    level: int = 0
    call: Callable[..., Any] | None = None
    run: Callable[..., Any] | None = None

    def __init__(self, name: str, xp: Any = None) -> None:
        self.name = name
        if xp is not None:  # a library that is imported late has a property instead
            self.xp = xp
        self._native: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<array library {self.name}>"

    # ------------------------------------------------------------------ dtypes and devices

    @cached_property
    def quick_dtypes(self) -> frozenset[Any]:
        """The native dtypes on which operations may be called without a look at promotion."""
        return frozenset(self.native(DTYPES[name]) for name in ("float32", "float64"))

    def native(self, dtype: DType) -> Any:
        """Return the library's own object for a dtype.

        Raises
        ------
        DTypeError
            If the library has no such dtype.
        """
        result = self._native.get(dtype.name)
        if result is None:
            result = getattr(self.xp, dtype.name, None)
            if result is None:  # float16 is outside the standard
                hint = "convert to another dtype first"
                required = f"a dtype that {self.name} has required"
                raise DTypeError(compose("dtype", required, dtype.name, hint=hint))
            self._native[dtype.name] = result
        return result

    def device(self, a: Array) -> str:
        """Name the device of `a`: ``"cpu"``, ``"cuda:0"``, elsewhere ``"<library>:<device>"``."""
        return self._device_name(a.device)

    def _device_name(self, device: Any) -> str:
        text = str(device)
        # array-api-strict prints array_api_strict.Device('CPU_DEVICE')
        quoted = re.search(r"'([^']*)'", text)
        return f"{self.name}:{quoted[1] if quoted else text}"

    def native_device(self, name: str) -> Any:
        """Return the native device of a name; the library's name alone means its default device."""
        info = self.xp.__array_namespace_info__()
        if name == self.name:
            return info.default_device()
        names = {
            self._device_name(device): device for device in info.devices() if device is not None
        }
        if name not in names:
            raise DeviceError(compose("device", f"one of {', '.join(names)} required", repr(name)))
        return names[name]

    def same_device(self, a: Array, b: Array) -> bool:
        """Say whether two arrays of this library live on one device."""
        return bool(a.device == b.device)

    def activate(self, device: Any) -> AbstractContextManager[Any]:
        """Make a native device the current one for a ``with`` block, where the library has that.

        Computations on an array belong in ``with library.activate(a.device)``; None keeps the
        current device.
        """
        return nullcontext()

    # ------------------------------------------------------------------ making arrays

    def wrap(self, a: Array) -> Array:
        """Bring an array of a library that this one wraps into this one; its own stay as they are.

        Raises
        ------
        DeviceError
            If it is of a library that this one does not wrap.
        """
        if self.has(a):
            return a
        hint = f"convert it to an array of {self.name} first"
        required = f"an array of {self.name} required"
        raise DeviceError(compose("wrap", required, f"a {type(a).__name__}", hint=hint))

    def asarray(
        self, obj: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None
    ) -> Array:
        """Make an array of numbers, nested sequences or an array.

        Parameters
        ----------
        obj : object
            What to convert. NumPy arrays and arrays of this library are understood by every
            library.
        dtype : DType, optional
            None keeps an array's own; what numbers become is then the library's choice.
        device : native device, optional
            Where to.
        copy : bool, optional
            True always copies, False never (raises ValueError where it must), None only where
            needed.
        """
        native = None if dtype is None else self.native(dtype)
        return self.xp.asarray(obj, dtype=native, device=device, copy=copy)

    def zeros(self, shape: tuple[int, ...], dtype: DType, device: Any = None) -> Array:
        """Return zeros, sharing memory with nothing."""
        return self.xp.zeros(shape, dtype=self.native(dtype), device=device)

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType, device: Any = None) -> Array:
        """Return an array filled with a Python number, sharing memory with nothing."""
        return self.xp.full(shape, value, dtype=self.native(dtype), device=device)

    def full_like(self, a: Array, value: Any, dtype: DType | None = None) -> Array:
        """Return an array of a Python number in the shape, dtype and place of `a`."""
        device = self.native_device(self.device(a))
        return self.full(a.shape, value, dtype or self.dtype(a), device)

    def from_numpy(self, array: np.ndarray[Any, Any], device: Any = None) -> Array:
        """Return a NumPy array's values as an array of this library, which may share its memory."""
        return self.xp.asarray(array, device=device)

    def to_numpy(self, a: Array) -> np.ndarray[Any, Any]:
        """Return the values as a NumPy array, without a copy where possible; never write to it."""
        try:
            return np.from_dlpack(a)
        except (AttributeError, TypeError, ValueError, RuntimeError, BufferError):
            return np.asarray(a)

    def moved(self, a: Array, name: str, target: Library, device: Any = None) -> Array:
        """Return a copy of `a` on the device of a name: a native one of the library `target`."""
        if target is self:
            return self.asarray(a, device=device, copy=True)
        return target.from_numpy(self.to_numpy(a).copy(), device)

    def generator(self, seed: int | None = None, device: Any = None) -> RandomSource:
        """Return a source of random arrays; None seeds it from the operating system."""
        return RandomSource(self, seed, device)

    # ------------------------------------------------------------------ special functions

    def special(self, name: str, *arrays: Array) -> Array:
        """Call SciPy's special function of that name, or this library's counterpart of it.

        Raises
        ------
        MissingExtraError
            If SciPy is not installed.
        """
        host = scipy_special(name)(*map(self.to_numpy, arrays))
        return self.from_numpy(np.asarray(host), arrays[0].device)

    # ------------------------------------------------------------------ memory

    def tidy(self, result: Any) -> Array:
        """Return a computation's result as an array: NumPy gives scalars for 0 dimensions."""
        return result

    def owns(self, a: Array) -> bool:
        """Say whether `a` holds its memory itself and is no view; False where that is unknown.

        Views of `a` that somebody else holds cannot be seen.
        """
        return False

    def shares(self, a: Array, b: Array) -> bool:
        """Say whether the result `a` of a view operation shows the memory of `b`.

        Where nothing is written in place, every such result counts as a view.
        """
        return not self.mutable or np.may_share_memory(self.to_numpy(a), self.to_numpy(b))

    def overlaps(self, a: Array, b: Any) -> bool:
        """Say whether writing to `b`, an array of any library, may change an element of `a`."""
        return self.mutable and self.has(b) and self.shares(a, b)

    def is_contiguous(self, a: Array) -> bool:
        """Say whether the elements lie in row-major order; True where a library hides its order."""
        return True

    def diagonal(self, a: Array, offset: int = 0) -> Array:
        """Return the diagonals of matrices, as a view where the library has such views.

        Parameters
        ----------
        a : array
            Of shape (..., n, m).
        offset : int
            Which diagonal: positive ones lie above the main one, negative ones below.
        """
        rows, columns, count = indexing.diagonal_place(a.shape, offset)
        m = a.shape[-1]
        # A view where the rows lie one after the other.
        flat = self.xp.reshape(a, (*a.shape[:-2], a.shape[-2] * m))
        first = rows * m + columns if count else 0
        return flat[..., first : first + count * (m + 1) - m if count else 0 : m + 1]

    def is_writeable(self, a: Array) -> bool:
        """Say whether `a` can be changed in place, each element by itself."""
        return self.mutable

    def copy(self, a: Array) -> Array:
        """Return a copy, sharing memory with nothing."""
        return self.xp.asarray(a, copy=True)

    def snapshot(self, a: Array, cast: Array | None = None) -> Array:
        """Return the values of `a` for a graph to keep, whatever is written to `a` later.

        `cast` has them in another dtype, where that is asked for; it is given away. Snapshots may
        be shared: never write to one.
        """
        if cast is not None and cast is not a:
            return cast
        return self.copy(a) if self.mutable else a

    def readonly(self, a: Array) -> Array:
        """Return the same values such that writing to them cannot reach `a`."""
        return self.copy(a) if self.mutable else a

    def astype(self, a: Array, dtype: DType, copy: bool = False) -> Array:
        """Return `a` with another dtype; `a` itself where it has it already, unless `copy`."""
        return self.xp.astype(a, self.native(dtype), copy=copy)

    # ------------------------------------------------------------------ shapes

    def reshape(self, a: Array, shape: tuple[int, ...]) -> tuple[Array, bool]:
        """Return `a` in another shape, and whether that shares its memory, as it does if it can.

        Raises
        ------
        ShapeError
            If the number of elements differs.
        """
        try:
            return self.xp.reshape(a, shape, copy=False), True
        except (ValueError, AttributeError):  # AttributeError: array-api-strict 2
            pass
        try:
            return self.xp.reshape(a, shape), False
        except ValueError:
            raise size_error(a, shape) from None

    def broadcast_to(self, a: Array, shape: tuple[int, ...]) -> Array:
        """Return `a` repeated to a larger shape, as a view where the library has them.

        Raises
        ------
        ShapeError
            If `a` does not broadcast to it.
        """
        try:
            return self.xp.broadcast_to(a, shape)
        except ValueError:
            required = f"a shape that broadcasts to {shape} required"
            raise ShapeError(
                compose("broadcast_to", required, str(tuple(a.shape)), ("input", a))
            ) from None

    # ------------------------------------------------------------------ sliding windows

    def windows(
        self, a: Array, sizes: tuple[int, ...], steps: tuple[int, ...], dilations: tuple[int, ...]
    ) -> Array:
        """Return the windows of `a` along its last axes, for reading alone: a view where possible.

        Parameters
        ----------
        a : array of shape (..., *lengths)
        sizes, steps, dilations : tuple of int
            One number an axis: elements in a window, from one window to the next, and from one
            element of a window to the next. A window fits at least once.

        Returns
        -------
        array of shape (..., *counts, *sizes)
        """
        return windows.gathered(self, a, sizes, steps, dilations)

    def fold(
        self,
        a: Array,
        lengths: tuple[int, ...],
        steps: tuple[int, ...],
        dilations: tuple[int, ...],
        starts: tuple[int, ...],
    ) -> Array:
        """Add windows up at the places they come from: the transpose of `windows`.

        Parameters
        ----------
        a : array of shape (..., *counts, *sizes)
        lengths, steps, dilations, starts : tuple of int
            One number an axis: the length of the result, as for `windows`, and where the first
            window begins. What falls outside of the result is left out.

        Returns
        -------
        array of shape (..., *lengths)
        """
        return windows.added_up(self, a, lengths, steps, dilations, starts)

    # ------------------------------------------------------------------ indexing

    def getitem(self, a: Array, index: Any) -> Array:
        """Return ``a[index]`` as NumPy would: a view for a basic index where the library has views.

        Parameters
        ----------
        a : array
        index : object
            Integers, slices, None, Ellipsis, integer and bool arrays of this library or of NumPy,
            lists, a tuple of those.

        Raises
        ------
        TensorIndexError
            If it is out of range or no index.
        """
        try:
            if indexing.is_basic(index):
                return a[indexing.spelled_out(index, a.shape)]
            try:
                return a[index]
            except (IndexError, TypeError, ValueError, NotImplementedError):
                pass  # more than the standard has: take() by element numbers
            numbers = indexing.element_numbers(a.shape, self._host_index(index))
            flat = self.xp.reshape(a, (-1,))
            elements = self.xp.take(flat, self.from_numpy(numbers.ravel(), a.device), axis=0)
            return self.xp.reshape(elements, numbers.shape)
        except IndexError as error:
            raise index_error(a, error) from None

    def assign(self, a: Array, index: Any, value: Any) -> Array:
        """Do ``a[index] = value``, and return the array that now holds it.

        Parameters
        ----------
        a : array
        index : object
            As for `getitem`.
        value : array or number
            An array of this library of the same dtype, broadcast to the place; or a Python number.

        Raises
        ------
        TensorIndexError, ShapeError
            If the index is wrong; if the value does not broadcast to the place.
        """
        try:
            if self.mutable and indexing.is_basic(index) and not indexing.has_new_axis(index):
                a[indexing.spelled_out(index, a.shape)] = self.apart(a, value)
                return a
            return self._write_on_host(a, index, value, indexing.host_assign)
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None

    def apart(self, a: Array, value: Any) -> Any:
        """Return `value`, or a copy of it where writing into `a` could change it meanwhile.

        NumPy 2.4 itself does ``x[1] = x[:, 2]`` element by element: some are read when they have
        been overwritten.
        """
        return self.copy(value) if self.has(value) and self.shares(a, value) else value

    def add_at(self, a: Array, index: Any, value: Any) -> Array:
        """Add `value` to ``a[index]``, and return the array that now holds the sum.

        A place that the index names several times is added to as often.

        Parameters, errors: as for `assign`.
        """
        try:
            return self._write_on_host(a, index, value, np.add.at)
        except IndexError as error:
            raise index_error(a, error) from None
        except ValueError:
            raise value_error(a, value) from None

    def _write_on_host(self, a: Array, index: Any, value: Any, write: Any) -> Array:
        """Change a NumPy copy of `a`: the way that every library can go, whatever the index."""
        host = np.array(self.to_numpy(a))
        write(host, self._host_index(index), self._on_host(value))
        result = self.from_numpy(host, a.device)
        if not self.mutable:
            return result
        a[...] = result
        return a

    def has(self, obj: Any) -> bool:
        """Say whether `obj` is an array of this library."""
        return isinstance(obj, self.array_types)

    def _on_host(self, value: Any) -> Any:
        return self.to_numpy(value) if self.has(value) else value

    def _host_index(self, index: Any) -> Any:
        return (
            tuple(map(self._on_host, index)) if isinstance(index, tuple) else self._on_host(index)
        )

    @cached_property
    def array_types(self) -> tuple[type, ...]:
        """The types of this library's arrays."""
        return (type(self.xp.asarray(0)),)

    def dtype(self, a: Array) -> DType:
        """Return the dtype of `a`."""
        return dtype_of(a.dtype)


def scipy_special(name: str) -> Any:
    """Return SciPy's special function of that name; SciPy is imported by the first call."""
    return getattr(optional(name, "scipy.special", "SciPy", "scipy"), name)


def size_error(a: Array, shape: tuple[int, ...]) -> ShapeError:
    """Return the error of a reshape to another number of elements."""
    required = f"a shape of {a.size} elements required"
    return ShapeError(compose("reshape", required, str(tuple(shape)), ("input", a)))


def index_error(a: Array, error: IndexError) -> TensorIndexError:
    """Return the error of an index that the array library refused."""
    return TensorIndexError(
        compose("indexing", "an index within the shape required", str(error), ("input", a))
    )


def value_error(a: Array, value: Any) -> ShapeError:
    """Return the error of a value that does not broadcast to the place it is written to."""
    required, came = (
        "a value that broadcasts to the place required",
        str(getattr(value, "shape", "a number")),
    )
    return ShapeError(compose("indexing", required, came, ("input", a), ("value", value)))
