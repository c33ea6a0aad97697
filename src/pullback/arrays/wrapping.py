"""Libraries whose arrays wrap arrays of other libraries: with a tangent, a batch axis, a trace.

Owns what such libraries share. Their native dtypes are `DType`, their native devices the names of
devices, so that neither depends on what is wrapped. What is wrapped may also be a tensor, which
this module does not know: it has a dtype, the name of a device, and `data_array`.

Invariants: arrays are never written in place. No values leave through host NumPy, where a tangent
or a trace would be lost: what `Library` does there, a wrapping library does itself, or it raises.
Operators of the arrays take numbers and arrays of every lower level on either side, and
``__array_ufunc__`` is None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pullback.arrays.dtypes import DTYPES, DType, dtype_of
from pullback.arrays.library import Array, Library
from pullback.arrays.registry import is_array, library_for, library_of
from pullback.errors import DeviceError, compose

__all__ = ["WrappingLibrary", "constant", "innermost", "varies"]


class WrappingLibrary(Library):
    """A library whose arrays wrap arrays of every library of a lower level.

    A subclass has `parts`, `wrap`, `array_types`, and an `xp` over its arrays.

    Parameters
    ----------
    name : str
    xp : object
        Its Array API namespace.
    level : int
        That of the transform, from 1.
    """

    mutable = False
    quick_dtypes = frozenset((DTYPES["float32"], DTYPES["float64"]))

    def __init__(self, name: str, xp: Any = None, level: int = 1) -> None:
        super().__init__(name, xp)
        self.level = level

    def parts(self, a: Array) -> tuple[Any, ...]:
        """Return what `a` wraps: its values, an array of a lower level or a tensor.

        Then their derivatives where it has such, None for one that is zero.
        """
        raise NotImplementedError

    def constant(self, a: Array) -> Array:
        """Return the values of `a` as what depends on nothing: what a tangent belongs to, alone."""
        return a

    def draw(self, draw: Callable[[tuple[int, ...]], Array]) -> Array:
        """Return random numbers in this library: ``draw(lead)`` makes an array of them.

        `lead` is a shape that comes before their own: so many are drawn, apart from each other.
        """
        return self.wrap(draw(()))

    def wrap(self, a: Array) -> Array:
        """Wrap an array of a lower level; this library's own stay as they are."""
        raise NotImplementedError

    # ------------------------------------------------------------------ levels

    def is_outer(self, levels: int) -> bool:
        """Say whether a tensor that depends on some levels is wrapped itself, and not its array.

        Computing with what wraps it is part of the tensor's graph then.
        """
        return False

    def level_is_active(self) -> bool:
        """Say whether a transform of this library is running, but not on its parts alone.

        Else its arrays come from closures: see `unwrap_escaped`.
        """
        return True

    def unwrap_escaped(self, tensor: Any) -> Any:
        """Return the part that a tensor from a closure stands for among parts, as a tensor.

        Raises where it stands for no single one.
        """
        return tensor

    def rewritten(self, before: Array, after: Array) -> Array:
        """Return what an array is after it was written to, of which a new one holds the result.

        What wraps tensors keeps their graph where the change is not recorded.
        """
        return after

    # ------------------------------------------------------------------ dtypes and devices

    def native(self, dtype: DType) -> DType:
        """Return the dtype itself."""
        return dtype

    def dtype(self, a: Array) -> DType:
        """Return the dtype of what `a` wraps."""
        return dtype_of(self.parts(a)[0].dtype)

    def device(self, a: Array) -> str:
        """Name the device of what `a` wraps."""
        part = self.parts(a)[0]
        if is_array(part):
            return library_of(part).device(part)
        device: str = part.device
        return device

    def native_device(self, name: str) -> Any:
        """Return the name itself."""
        return name

    def same_device(self, a: Array, b: Array) -> bool:
        """Say whether what is wrapped lives on one device."""
        return self.device(a) == self.device(b)

    # ------------------------------------------------------------------ making arrays

    def asarray(
        self, obj: Any, dtype: DType | None = None, device: Any = None, copy: bool | None = None
    ) -> Array:
        """Make an array of the library of `device` and wrap it."""
        if self.has(obj):
            result = obj if dtype is None else self.astype(obj, dtype)
            return self.copy(obj) if copy and result is obj else result
        library, native = library_for(device)
        if is_array(obj):
            library = library_of(obj)
            native = None if device is None else library.native_device(device)
        return self.wrap(library.asarray(obj, dtype, native, copy))

    def zeros(self, shape: tuple[int, ...], dtype: DType, device: Any = None) -> Array:
        """Wrap zeros."""
        library, native = library_for(device)
        return self.wrap(library.zeros(shape, dtype, native))

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType, device: Any = None) -> Array:
        """Wrap an array filled with a Python number."""
        library, native = library_for(device)
        return self.wrap(library.full(shape, value, dtype, native))

    def from_numpy(self, array: Any, device: Any = None) -> Array:
        """Wrap a NumPy array's values."""
        library, native = library_for(device)
        return self.wrap(library.from_numpy(array, native))

    def mixed_hint(self) -> str:
        """Say what to do where an array is written to one that is not wrapped."""
        return (
            "what depends on the arguments of a transform cannot be written to a tensor from "
            "outside: detach() it, or make the tensor inside of the function, as zeros() does."
        )

    # ------------------------------------------------------------------ never through host NumPy

    def _has_no(self, what: str, hint: str) -> NoReturn:
        required = f"an array library with {what} required"
        raise DeviceError(compose(self.name, required, "none", hint=hint))

    def to_numpy(self, a: Array) -> Any:
        """Raise: the values alone are not the array."""
        self._has_no("a way to NumPy", "compute with tensors up to the end")

    def moved(self, a: Array, name: str, target: Library, device: Any = None) -> Array:
        """Raise: see `Library.moved`."""
        self._has_no("a way to other devices", "move tensors before they are wrapped")

    def special(self, name: str, *arrays: Array) -> Array:
        """Raise: SciPy does not know these arrays."""
        self._has_no(f"the special function {name}", "compose it from other operations")

    def assign(self, a: Array, index: Any, value: Any) -> Array:
        """Raise: see `Library.assign`."""
        self._has_no("assignment", "use where, or an operation that is not in place")

    def add_at(self, a: Array, index: Any, value: Any) -> Array:
        """Raise: see `Library.add_at`."""
        self._has_no("addition at an index", "use where and a sum")

    def fold(
        self,
        a: Array,
        lengths: tuple[int, ...],
        steps: tuple[int, ...],
        dilations: tuple[int, ...],
        starts: tuple[int, ...],
    ) -> Array:
        """Raise: see `Library.fold`."""
        self._has_no("sums of windows", "compute them from slices")


def constant(array: Any) -> Any:
    """Return the values of an array as what depends on nothing.

    It is what `Tensor.detach` shows, and Python's numbers.
    """
    library = library_of(array)
    return library.constant(array) if isinstance(library, WrappingLibrary) else array


def innermost(array: Any) -> Any:
    """Return all values that an array stands for, for checks: of a batch, those of each sample.

    They are an array that wraps nothing.
    """
    while isinstance(library := library_of(array), WrappingLibrary):
        part = library.parts(array)[0]
        array = part if is_array(part) else part.data_array()
    return array


def varies(array: Any) -> bool:
    """Say whether an array stands for a batch: as Python's number it would be several."""
    return len(innermost(array).shape) != len(array.shape)
