"""A library whose arrays wrap any library's arrays, or tensors, and do nothing else.

All that it has is derived: unwrap, call, wrap. `wrapping(rank)` is the library of one depth of
nesting, with a class of arrays of its own.
"""

import functools
import operator

import numpy as np

import pullback as pb
from pullback.arrays import NUMPY, DType, WrappingLibrary, dtype_of, is_array, register
from pullback.core.function.tensor_library import library_of_part, on_parts

BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lt le gt ge eq ne"
UNARY = "neg pos invert abs"


class Wrapped:
    """An array with one part; a subclass of it for each depth."""

    __array_ufunc__ = None
    __slots__ = ("value",)
    __hash__ = None
    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: len(self.value.shape))
    size = property(lambda self: int(np.prod(self.value.shape)))
    dtype = property(lambda self: dtype_of(self.value.dtype))
    device = property(lambda self: self.library.device(self))
    T = property(lambda self: self.library.xp.matrix_transpose(self))

    def __init__(self, value):
        self.value = value

    def __getitem__(self, index):
        return self.library.apply(operator.getitem, (self, index))

    def __bool__(self):
        return bool(self.value)

    def __int__(self):
        return int(self.value)

    __index__ = __int__

    def __float__(self):
        return float(self.value)


def _binary(function, first, other, self):
    if isinstance(other, Wrapped) and other.library.level > self.library.level:
        return NotImplemented
    return self.library.apply(function, (self, other) if first else (other, self))


for _name in BINARY.split():
    _plain = getattr(operator, _name)
    for _first, _letter in ((True, ""), (False, "r")):
        _method = functools.partial(_binary, _plain, _first)
        _method = functools.partialmethod(lambda self, call, other: call(other, self), _method)
        setattr(Wrapped, f"__{_letter}{_name.strip('_')}__", _method)
for _name in UNARY.split():
    _method = functools.partialmethod(
        lambda self, f: self.library.apply(f, (self,)), getattr(operator, _name)
    )
    setattr(Wrapped, f"__{_name}__", _method)
Wrapped.mT = Wrapped.T


class Space:
    """The namespace `xp`, and those in it: whatever the library of the parts has."""

    def __init__(self, library, path=""):
        self._library, self._path = library, path

    def __getattr__(self, name):
        path = f"{self._path}{name}"
        found = operator.attrgetter(path)(NUMPY.xp)
        if name in ("linalg", "fft"):
            return Space(self._library, f"{path}.")
        if isinstance(found, type) and issubclass(found, np.generic):
            return dtype_of(np.dtype(found))
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._library.apply(path, args, kwargs)


class WrappedLibrary(WrappingLibrary):
    def __init__(self, rank):
        super().__init__(f"wrapped{rank}", Space(self), rank)
        self.array_types = (type(f"Wrapped{rank}", (Wrapped,), {"__slots__": (), "library": self}),)

    def parts(self, a):
        return (a.value,)

    def to_numpy(self, a):
        inexact = a.dtype.is_inexact and a.size > 1
        return super().to_numpy(a) if inexact else library_of_part(a.value).to_numpy(a.value)

    def moved(self, a, *to):
        return self.wrap(library_of_part(a.value).moved(a.value, *to))

    def wrap(self, a):
        return a if self.has(a) else self.array_types[0](a)

    def apply(self, function, args, kwargs=None, method=False):
        """Call a function of the parts' library, by name or as it is, on what is wrapped."""
        kwargs = kwargs or {}
        parts = map(library_of_part, self._parts((args, kwargs)))
        inner = max(parts, key=lambda library: library.level, default=NUMPY)
        if isinstance(function, str):
            function = operator.attrgetter(function)(inner if method else inner.xp)
        args, kwargs = self._bare(args, inner), self._bare(kwargs, inner)
        return self._wrap(on_parts(function, *args, **kwargs))

    def _parts(self, value):
        if self.has(value):
            yield value.value
        elif isinstance(value, (tuple, list)):
            for item in value:
                yield from self._parts(item)
        elif isinstance(value, dict):
            yield from self._parts(list(value.values()))

    def _bare(self, value, inner):
        if self.has(value):
            return value.value
        if isinstance(value, (tuple, list)):
            return type(value)([self._bare(item, inner) for item in value])
        if isinstance(value, dict):
            device = {"device": inner.native_device(value["device"])} if value.get("device") else {}
            return {k: self._bare(v, inner) for k, v in value.items()} | device
        return inner.native(value) if isinstance(value, DType) else value

    def _wrap(self, value):
        if isinstance(value, (tuple, list)):
            items = [self._wrap(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, np.generic):
            value = np.asarray(value)
        whole = is_array(value) or isinstance(value, pb.Tensor)
        return self.wrap(value) if whole else value


def _rule(name, writes=False):
    def method(self, a, *args, **kwargs):
        a = self.copy(a) if writes else a  # the parts' library may write in place
        return self.apply(name, (a, *args), kwargs, method=True)

    return method


WrappedLibrary.assign, WrappedLibrary.add_at = _rule("assign", True), _rule("add_at", True)
WrappedLibrary.fold, WrappedLibrary.getitem = _rule("fold"), _rule("getitem")
WrappedLibrary.special = lambda self, *args: self.apply("special", args, method=True)


@functools.cache
def wrapping(rank=1):
    """Return the library of a depth, made and registered once."""
    library = WrappedLibrary(rank)
    register(library)
    return library


def unwrapped(tensor):
    """Return the NumPy values of a tensor, whatever wraps them."""
    value = tensor
    while not isinstance(value, np.ndarray):
        value = value.data_array() if isinstance(value, pb.Tensor) else value.value
    return value
