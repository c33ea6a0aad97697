"""The tensor that stands for an array of NumPy's in a function that is differentiated.

Owns the class `NumPyTensor`: a tensor whose methods, where ndarray has one of that name, mean
ndarray's. What ndarray lacks (``backward``, ``clamp``, ``mm``) is Tensor's. A method that is a
function of NumPy's with the array in first place is made of that function's counterpart; one that
names nothing but an axis is the operation. ``dim`` and ``keepdim`` mean ``axis`` and ``keepdims``.
"""

# mypy: disable-error-code="misc, override"
# The methods have ndarray's parameters, and not Tensor's.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from pullback.arrays import DTYPES, DType, ndarray
from pullback.core.tensor.endings import warn_of_end
from pullback.core.tensor.tensor import FOR_ARRAYS, Tensor
from pullback.core.tensor.views import is_current, own_memory
from pullback.errors import ArgumentError, BatchedValueError, DTypeError, compose
from pullback.numpy_protocol import computing, reducing, shaping
from pullback.numpy_protocol.arguments import ADAPTERS, numpy_dtype, operand, tensors_in, values_of
from pullback.numpy_protocol.protocol import counterpart, is_known_type
from pullback.numpy_protocol.renamings import renamed
from pullback.ops.axes import merge_axis_args
from pullback.ops.declare import by_sample
from pullback.ops.functions import complex_numbers, data_types, indexing, manipulation
from pullback.ops.primitives import comparison, conversion, reductions
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.primitives.scans import cumprod_p, cumsum_p
from pullback.ops.primitives.shape import permute_p, reshape_p

_INTS = frozenset((int,))


def run(function: Any, self: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Call the counterpart of a function of NumPy's; tensors that it makes are of the class."""
    try:
        result = counterpart(function)(self, args, settings)
    except BatchedValueError as error:
        result = by_sample(error, function, args, settings)
    if result.__class__ is self.__class__:
        return result
    plain = [t for t in tensors_in(result) if t.__class__ is Tensor]
    if plain:
        inputs = {id(t) for t in tensors_in((args, settings))}
        for tensor in plain:
            if id(tensor) not in inputs:
                tensor.__class__ = self.__class__
    return result


def _renamed(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings by NumPy's names."""
    if "dim" in settings:
        settings["axis"] = merge_axis_args(name, settings.pop("dim"), settings.get("axis"))
    if "keepdim" in settings:
        settings["keepdims"] = settings.pop("keepdim") or settings.get("keepdims", False)
    return settings


def _function(name: str) -> Any:
    """Return the method that is NumPy's function of that name with the array in first place."""
    function = getattr(np, name)

    def method(self: Any, *args: Any, **settings: Any) -> Any:
        return run(function, self, (self, *args), _renamed(name, settings))

    return _named(method, name)


def _quick(name: str, operation: Callable[..., Any], keywords: str = "keepdims") -> Any:
    """Return the method that is the operation where it names an axis, and `keywords`, alone."""
    function, quick = getattr(np, name), frozenset(keywords.split())

    def method(self: Any, axis: Any = None, *more: Any, **settings: Any) -> Any:
        if not more and settings.keys() <= quick:
            return operation(self, axis=axis, **settings)
        settings = _renamed(name, {"axis": axis, **settings})
        return run(function, self, (self, settings.pop("axis"), *more), settings)

    return _named(method, name)


def _mean(x: Any, *, axis: Any, keepdims: bool = False) -> Any:
    mean = reductions.mean if x._data.dtype.kind in "fc" else reducing.mean
    return mean(x, axis=axis, keepdims=keepdims)


def _scan(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    flat = renamed(name)  # where the axis is None
    return lambda x, *, axis: operation(x, axis=axis) if axis.__class__ is int else flat(x, axis)


def _named(method: Any, name: str, doc: str = "") -> Any:
    doc = doc or f"Return ``np.{name}`` of this tensor; the other arguments are ndarray's."
    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


def _refusing(name: str, hint: str) -> Any:
    """Return the method that says what to write instead."""

    def method(self: Any, *args: Any, **settings: Any) -> NoReturn:
        required = "a method that keeps shape, bytes and memory of a tensor required"
        raise ArgumentError(compose(name, required, "one that does not", ("x", self), hint=hint))

    return _named(method, name, f"Raise: {hint}.")


def _of_array(name: str) -> Any:
    """Return the method of the array itself, which a tensor with a graph does not give away."""

    def method(self: Any, *args: Any, **settings: Any) -> Any:
        return getattr(self.numpy(), name)(*args, **settings)

    doc = f"Do ``ndarray.{name}`` with the array; raise if the tensor requires grad."
    return _named(method, name, doc)


def _augmented(name: str) -> Any:
    """Return the operator of an augmented assignment, which gives a scalar's name a new tensor.

    A tensor of no axes is a scalar unless it shows an element of an array, as ``x[..., 0]`` does.
    """
    in_place = getattr(Tensor, name)

    def method(self: Any, other: Any) -> Any:
        if not self._data.shape and (self._base is None or not self._base._data.shape):
            return NotImplemented
        return in_place(self, other)

    return _named(method, name, in_place.__doc__)


def _elements(x: Any, views: Iterable[Any]) -> Any:
    """Yield the elements of `x`, of which there are views, as they are when their turn comes."""
    for i, view in enumerate(views):
        yield own_memory(view) if is_current(view) else x[i]


class Flat:
    """The elements of a tensor in one axis, as ``ndarray.flat`` has them."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Any:
        return iter(self.base.ravel())

    def __getitem__(self, index: Any) -> Any:
        return self.base.ravel()[index]

    def __setitem__(self, index: Any, values: Any) -> None:
        self.base.put(np.arange(len(self))[values_of(index)], values)

    def copy(self) -> Any:
        """Return a copy of the elements in one axis."""
        return self.base.flatten()


class NumPyTensor(Tensor):
    """A tensor with ndarray's methods and indexing; results of operations on it are such too.

    Transforms make it of NumPy's arrays and Python's numbers. It is a `Tensor` in every other
    respect, and prints as ``numpy_tensor(...)``; ``str()`` shows the values as NumPy does.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> pb.grad(lambda x: x.std() + x.max(axis=0))(np.array([1.0, 3.0]))
    array([-0.5,  1.5])
    """

    __slots__ = ()
    _printed_as = "numpy_tensor"

    @staticmethod
    def _default_dtype() -> DType:
        return DTYPES["float64"]

    def __array_function__(
        self, function: Any, types: Iterable[type], args: Any, settings: dict[str, Any]
    ) -> Any:
        if not all(map(is_known_type, types)):
            return NotImplemented
        return run(function, self, args, settings)

    # -- reducing ----------------------------------------------------------------------------------
    sum = _quick("sum", sum_p.public)
    mean = _quick("mean", _mean)
    prod = _quick("prod", ADAPTERS["prod"])
    max = _quick("max", reductions.max)
    min = _quick("min", reductions.min)
    any = _quick("any", reductions.any)
    all = _quick("all", reductions.all)
    argmax = _quick("argmax", reductions.argmax)
    argmin = _quick("argmin", reductions.argmin)
    var = _quick("var", ADAPTERS["var"], "keepdims ddof")
    std = _quick("std", ADAPTERS["std"], "keepdims ddof")
    cumsum = _quick("cumsum", _scan("cumsum", cumsum_p.public), "")
    cumprod = _quick("cumprod", _scan("cumprod", cumprod_p.public), "")
    dot, trace, ptp = _function("dot"), _function("trace"), _function("ptp")

    # -- finding, choosing, sorting and writing ----------------------------------------------------
    argpartition, argsort = _function("argpartition"), _function("argsort")
    nonzero, searchsorted = _function("nonzero"), _function("searchsorted")
    choose, round, take = _function("choose"), _function("round"), _function("take")

    def compress(self: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """Return the slices that a condition chooses."""
        return run(np.compress, self, (condition, self, axis, out), {})

    def clip(self: Any, min: Any = None, max: Any = None, out: Any = None, **settings: Any) -> Any:
        """Return the elements limited to an interval."""
        if out is None and not settings:
            return computing.clip(self, min, max)
        return run(np.clip, self, (self, min, max, out), settings)

    def sort(
        self: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> None:
        """Sort along an axis, in place."""
        self[...] = run(np.sort, self, (self, axis, kind, order), {"stable": stable})

    def partition(self: Any, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Put the elements at `kth` where sorting would put them, in place."""
        settings = {"axis": axis, "order": order, **({} if kind is None else {"kind": kind})}
        self[...] = run(np.partition, self, (self, kth), settings)

    def fill(self: Any, value: Any) -> None:
        """Write one number everywhere, in place."""
        self.fill_(operand(value))

    def put(self: Any, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write at places of the flat array, in place; values are repeated as needed."""
        ADAPTERS["put"](self, indices, values, mode)

    # -- shapes ------------------------------------------------------------------------------------
    diagonal, repeat = _function("diagonal"), _function("repeat")
    squeeze, swapaxes = _function("squeeze"), _function("swapaxes")

    def transpose(self: Any, *axes: Any) -> Any:
        """Return the axes in another order, by default reversed; a view."""
        if not axes or axes == (None,):
            return permute_p.public(self, axes=tuple(range(self.ndim))[::-1])
        return manipulation.permute_dims(self, axes[0] if hasattr(axes[0], "__len__") else axes)

    def reshape(self: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Return the elements in another shape, a view where the memory allows."""
        if order == "C" and copy is None and _INTS.issuperset(map(type, shape)):
            return reshape_p.public(self, shape=shape)
        wanted = shape[0] if len(shape) == 1 else shape
        return shaping.reshape(self, wanted, order, copy=copy)

    def ravel(self: Any, order: str = "C") -> Any:
        """Return the elements in one axis, a view where they lie one after the other."""
        return shaping.ravel(self, order)

    def flatten(self: Any, order: str = "C") -> Any:
        """Return a copy of the elements in one axis."""
        return conversion.clone(shaping.reshape(self, -1, order))

    @property
    def flat(self: Any) -> Flat:
        """The elements one after the other: to be iterated, read by an index, or written."""
        return Flat(self)

    @flat.setter
    def flat(self: Any, values: Any) -> None:
        self.put(np.arange(self.size), values)

    # -- dtypes, copies and ways out of tensors ----------------------------------------------------
    def astype(
        self: Any,
        dtype: Any,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """Return the elements in another dtype; ``float`` is float64, as in NumPy."""
        wanted = np.dtype(numpy_dtype(dtype))
        if not np.can_cast(self.dtype.dtype, wanted, casting):
            required = f"a dtype that {self.dtype.name} can be cast to with casting={casting!r}"
            raise DTypeError(compose("astype", f"{required} required", wanted.name, ("x", self)))
        return data_types.astype(self, wanted, copy=copy)

    def copy(self: Any, order: str = "C") -> Any:
        """Return a copy that stays part of the graph."""
        return conversion.clone(self)

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is not None and np.dtype(dtype).kind in "biu":  # as astype: without a derivative
            return values_of(self).astype(dtype)
        return Tensor.__array__(self, dtype, copy)

    def __copy__(self: Any) -> Any:
        return conversion.clone(self)

    def __deepcopy__(self: Any, memo: Any) -> Any:
        return conversion.clone(self)

    def item(self: Any, *index: Any) -> Any:
        """Return one element as a Python number: the only one, or that at an index."""
        if not index:
            return Tensor.item(self)
        position = index[0] if len(index) == 1 else index
        number = values_of(self).item(position)
        warn_of_end("item", self)
        return number

    def conjugate(self: Any) -> Any:
        """Return the complex conjugate."""
        return self.conj()

    def view(self: Any, dtype: Any = None, type: Any = None) -> Any:
        """Return a view of the same elements; the bytes cannot be read as another dtype."""
        if type is None and (dtype is None or (not isinstance(dtype, int) and dtype == self.dtype)):
            return self[...]
        hint = "astype() converts the numbers, reshape() gives another shape"
        required = "no other dtype or class required, since bytes have no gradient"
        came = repr(dtype if type is None else type)
        raise ArgumentError(compose("view", required, came, hint=hint))

    # -- memory ------------------------------------------------------------------------------------
    tobytes, tofile = _of_array("tobytes"), _of_array("tofile")
    dump, dumps = _of_array("dump"), _of_array("dumps")
    byteswap = _refusing("byteswap", "convert the array before it becomes a tensor")
    getfield = _refusing("getfield", "use astype for other numbers, real and imag for parts")
    setfield = _refusing("setfield", "assign to an index: x[...] = value")
    setflags = _refusing("setflags", "a tensor that must not change is kept by copy()")
    resize = _refusing("resize", "np.resize(x, shape) and x.reshape(shape) return another tensor")

    @property
    def data(self: Any) -> Any:
        """The buffer of the array; raises if the tensor requires grad."""
        return self.numpy().data

    @property
    def ctypes(self: Any) -> Any:
        """The array for C; raises if the tensor requires grad."""
        return self.numpy().ctypes

    @property
    def base(self: Any) -> Any:
        """The tensor whose memory this one shows, None where it is no view."""
        return self._base

    @property
    def flags(self: Any) -> Any:
        """How the elements lie in memory."""
        return values_of(self).flags

    @property
    def strides(self: Any) -> Any:
        """How many bytes apart neighbours along each axis are."""
        return tuple(values_of(self).strides)

    @property
    def size(self: Any) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def shape(self: Any) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._data.shape  # type: ignore[no-any-return]

    @shape.setter
    def shape(self: Any, lengths: Any) -> None:
        required = "reshape() required, since a tensor keeps its shape"
        raise ArgumentError(
            compose("shape", required, f"an assignment of {lengths!r}", ("x", self))
        )

    # -- operators that mean something else, or nothing, to other tensors --------------------------
    __getitem__, __setitem__ = indexing.numpy_getitem, indexing.numpy_setitem

    def __iter__(self: Any) -> Any:
        rows = Tensor.__iter__(self)
        return rows if len(self.shape) > 1 else _elements(self, rows)

    def __contains__(self: Any, value: Any) -> bool:
        return bool(reductions.any(comparison.equal(self, value)))

    def __divmod__(self: Any, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self: Any, other: Any) -> Any:
        return other // self, other % self

    @property
    def real(self: Any) -> Any:
        """The real part, a view; a real tensor itself."""
        return complex_numbers.real(self)

    @property
    def imag(self: Any) -> Any:
        """The imaginary part, a view; zeros for a real tensor."""
        return computing.imag(self)

    def __str__(self: Any) -> str:
        return str(values_of(self))

    def __format__(self: Any, spec: str) -> str:
        return format(values_of(self)[()], spec)


for _name in (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
):
    setattr(NumPyTensor, f"__i{_name}__", _augmented(f"__i{_name}__"))
FOR_ARRAYS[ndarray] = NumPyTensor
