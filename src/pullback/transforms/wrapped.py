"""Arrays that wrap others: what those with a tangent and those with a batch axis have in common.

Owns their operators, which are the operations on tensors around them, the namespace over them, and
the ways between arrays, tensors around them and what they hold. A part of an array is a tensor
exactly where it requires grad: computing with it is then recorded.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from pullback.arrays import DTYPES, DType, WrappingLibrary, dtype_of, is_array
from pullback.core.backward.collect import collect
from pullback.core.custom.pytree import children, rebuild
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.ops.functions import data_types
from pullback.transforms.arguments import FORWARD, in_class

__all__ = [
    "Space",
    "Wrapped",
    "WrappedLibrary",
    "all_boxed",
    "boxed",
    "is_part",
    "part_of",
    "plain",
    "unboxed",
]

_BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lt le gt ge eq ne"
_UNARY = "neg pos invert abs"


class Wrapped:
    """An array that wraps one of a lower rank, or a tensor; a subclass of it for each rank.

    Attributes
    ----------
    value : array or Tensor
        What is wrapped.
    """

    __array_ufunc__ = None
    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]
    library: WrappedLibrary
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return functools.reduce(operator.mul, self.shape, 1)

    @property
    def dtype(self) -> DType:
        """The data type."""
        return dtype_of(self.value.dtype)

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.library.device(self)

    @property
    def mT(self) -> Any:  # noqa: N802  (the standard's name)
        """The transpose of matrices."""
        return unboxed(boxed(self).mT)

    T = mT

    def __getitem__(self, index: Any) -> Any:
        return self.library.getitem(self, index)


def _operator(function: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    def method(self: Wrapped, *others: Any) -> Any:
        for other in others:
            if isinstance(other, Wrapped) and other.library.rank > self.library.rank:
                return NotImplemented
        operands = [boxed(a) if is_array(a) else a for a in (self, *others)]
        return unboxed(function(*(reversed(operands) if reflected else operands)))

    return method


for _name in [*_BINARY.split(), *_UNARY.split()]:
    _function, _bare_name = getattr(operator, _name), _name.strip("_")
    setattr(Wrapped, f"__{_bare_name}__", _operator(_function, False))
    if _name in _BINARY and _name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Wrapped, f"__r{_bare_name}__", _operator(_function, True))


# -- tensors around arrays, and back ---------------------------------------------------------------
def part_of(tensor: Tensor) -> Any:
    """Return what an array holds of a tensor: its array, or a plain tensor where it has a graph."""
    return in_class(tensor, Tensor) if tensor.requires_grad else tensor.data_array()


def unboxed(value: Any) -> Any:
    """Return what functions of tensors returned as arrays."""
    if isinstance(value, Tensor):
        return value.data_array()
    items = children(value)
    return value if items is None else rebuild(value, [unboxed(item) for _, item in items])


def plain(setting: Any) -> Any:
    """Return a setting of an operation, such as an index, without wrapped arrays."""
    if isinstance(setting, tuple) and any(isinstance(x, Wrapped) for x in setting):
        return tuple(map(plain, setting))
    return setting.library.constant(setting) if isinstance(setting, Wrapped) else setting


def all_boxed(value: Any) -> Any:
    """Return wrapped arrays in nested containers as tensors."""
    if isinstance(value, Wrapped):
        return box(value)
    items = children(value)
    return value if items is None else rebuild(value, [all_boxed(item) for _, item in items])


def boxed(value: Any) -> Any:
    """Return an array, or a part of one, as a tensor."""
    return value if isinstance(value, Tensor) else box(value)


def is_part(value: Any) -> bool:
    """Return whether an array may hold a value; else it is one of Python's numbers."""
    return isinstance(value, Tensor) or is_array(value)


class Space:
    """The functions of wrapped arrays: those of tensors."""

    def __init__(self, functions: Any = TENSORS) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        if name in ("finfo", "iinfo"):
            return getattr(data_types, name)
        if name in DTYPES:
            return DTYPES[name]
        found = getattr(self._functions, name)
        if name in ("linalg", "fft"):
            return Space(found)
        if not callable(found) or isinstance(found, DType):
            return found
        return lambda *args, **kwargs: unboxed(found(*all_boxed(args), **all_boxed(kwargs)))


class WrappedLibrary(WrappingLibrary):
    """What the libraries of such arrays have in common, one library for each rank.

    Parameters
    ----------
    kind : str
        The class of the arrays is called after it.
    rank : int
    base : type
        The class of arrays of every rank.
    """

    def __init__(self, kind: str, rank: int, base: type[Wrapped]) -> None:
        super().__init__(f"{kind}{rank}", Space(), rank)
        name = f"{base.__name__}{rank}"
        self.made: Callable[..., Any] = type(name, (base,), {"__slots__": (), "library": self})
        self.array_types = (self.made,)

    def part(self, a: Any) -> Any:
        """Return what is wrapped."""
        return a.value

    def is_outside(self, node: Any) -> bool:
        """Say whether a graph reaches what was there before the transform began."""
        starts = [running.start for running in FORWARD.get() if running.library is self]
        if not starts:
            return True
        met, _ = collect([node], starts[0])
        return any(found.seq < starts[0] for found in met)
