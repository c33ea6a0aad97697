"""Arrays that wrap others: what those with a tangent and those with a batch axis have in common.

Owns their operators, which are the operations on tensors around them, the namespace over them, and
the ways between arrays, tensors around them and what they hold. A part of an array is a tensor
exactly where it requires grad: computing with it is then recorded.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from traceback import clear_frames
from typing import Any, Self

from pullback.arrays import (
    DTYPES,
    NUMPY,
    DType,
    WrappingLibrary,
    constant,
    dtype_of,
    is_array,
    join,
    library_of,
    ndarray,
    register,
)
from pullback.core.custom.pytree import children, map_leaves, rebuild
from pullback.core.function.dispatch import THEIRS, UNFIT, beside, kernel_of, wrap_in
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.function.primitive import Primitive
from pullback.core.function.record import apply
from pullback.core.function.tensor_library import TENSOR_LIBRARY, library_of_part, on_parts
from pullback.core.graph.modes import MAKING, STATE, mode_of_parts, run_with
from pullback.core.graph.node import levels_of
from pullback.core.tensor.endings import run_in_call
from pullback.core.tensor.tensor import Tensor, as_array, box, in_class
from pullback.core.tensor.versions import shared_counter
from pullback.core.tensor.writes import WRITES, Writes
from pullback.errors import GraphError, compose
from pullback.ops.functions import data_types
from pullback.ops.primitives.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from pullback.ops.primitives.arranging import diagonal_p
from pullback.ops.primitives.conversion import clone_p
from pullback.ops.primitives.indexing import index_put_p, reader, setitem_p
from pullback.ops.primitives.products import matmul_p
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.primitives.shape import broadcast_to_p, permute_p, reshape_p
from pullback.transforms.levels import LEVEL, WRAPPING, Running
from pullback.transforms.user_calls import UserCall, call_function

numpy_scalar = NUMPY.xp.generic
_BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lt le gt ge eq ne"
_UNARY = "neg pos invert abs"


# Those of the default library's arrays by the class of the native one, which is quicker than
# `dtype_of`; natives of other libraries are not to be compared with them.
_BY_CLASS = {dtype.dtype.__class__: dtype for dtype in DTYPES.values()}


class Wrapped:
    """An array that wraps one of a lower level, or a tensor; a subclass of it for each level.

    Attributes
    ----------
    value : array or Tensor
        What is wrapped.
    running : Running, optional
        The run that it is of; None for what is a constant to every run.
    """

    __array_ufunc__ = None
    __slots__ = ("running", "value")
    __hash__ = None  # type: ignore[assignment]
    library: TransformLibrary
    running: Running | None
    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return functools.reduce(operator.mul, self.shape, 1)

    @property
    def dtype(self) -> DType:
        native = self.value.dtype
        return _BY_CLASS.get(native.__class__) or dtype_of(native)

    @property
    def device(self) -> str:
        return self.library.device(self)

    def _one(self) -> Any:
        """Return the value that a number is read of."""
        return self.value

    def __bool__(self) -> bool:
        return bool(self._one())

    def __int__(self) -> int:
        return int(self._one())

    def __float__(self) -> float:
        return float(self._one())

    def __complex__(self) -> complex:
        return complex(self._one())

    def __index__(self) -> int:
        return operator.index(self._one())

    @property
    def mT(self) -> Any:  # noqa: N802  (the standard's name)
        if self.ndim < 2:
            return to_arrays(to_tensor(self).mT)  # raises
        last = self.ndim - 1
        axes = (*range(last - 1), last, last - 1)
        return self.library.run(permute_p, (self,), {"axes": axes})

    T = mT

    def __getitem__(self, index: Any) -> Any:
        return self.library.getitem(self, index)


def _is_quick(arrays: Sequence[Any]) -> bool:
    """Return whether nothing is to be brought to one dtype: of arrays of a class, and numbers."""
    cls: Any = None
    for a in arrays:
        if a.__class__ is int or a.__class__ is float:
            continue
        if cls is None and isinstance(a, Wrapped):
            cls, dtype = a.__class__, a.dtype
            if dtype not in a.library.quick_dtypes:
                return False
        elif a.__class__ is not cls or a.dtype is not dtype:
            return False
    return cls is not None


def _operator(name: str, reflected: bool) -> Callable[..., Any]:
    """Return an operator: the operation itself where it is quick, else that of tensors."""
    function, op = getattr(operator, name), _OPERATIONS.get(name)

    def method(self: Wrapped, *others: Any) -> Any:
        operands = (*others, self) if reflected else (self, *others)
        if op is not None and _is_quick(operands):
            return self.library.run(op, operands, {})
        if any(isinstance(a, Wrapped) and a.library.level > self.library.level for a in others):
            return NotImplemented
        return to_arrays(function(*[to_tensor(a) if is_array(a) else a for a in operands]))

    return method


_OPERATIONS = {"add": add_p, "sub": sub_p, "mul": mul_p, "truediv": div_p, "neg": neg_p}
for _name in [*_BINARY.split(), *_UNARY.split()]:
    _bare_name = _name.strip("_")
    setattr(Wrapped, f"__{_bare_name}__", _operator(_name, False))
    if _name in _BINARY and _name not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Wrapped, f"__r{_bare_name}__", _operator(_name, True))


# -- tensors around arrays, and back ---------------------------------------------------------------
def part_of(tensor: Tensor) -> Any:
    """Return what an array holds of a tensor: its array, or a plain tensor where it has a graph."""
    if tensor._base is None and tensor._node is None:
        return tensor._data
    return in_class(tensor, Tensor) if tensor.requires_grad else tensor.data_array()


def tensor_of_part(part: Any, cls: type[Tensor]) -> Tensor:
    """Return what an array holds as a tensor of a class."""
    return in_class(part, cls) if isinstance(part, Tensor) else box(part, cls=cls)


def part_with_graph_of(before: Any, after: Any) -> Any:
    """Return a part of new values with the graph of another, and so inside of it."""
    old, new = (p.data_array() if isinstance(p, Tensor) else p for p in (before, after))
    if isinstance(new, Wrapped) and new.__class__ is old.__class__:
        new = new.library.with_graph_of(old, new)
    tracked = isinstance(before, Tensor) and before.requires_grad
    return box(new, before._node) if tracked else new


def to_arrays(value: Any) -> Any:
    """Return what functions of tensors returned as arrays."""
    if isinstance(value, Tensor):
        return value.data_array()
    items = children(value)
    return value if items is None else rebuild(value, [to_arrays(item) for _, item in items])


def plain(setting: Any) -> Any:
    """Return a setting of an operation, such as an index, without wrapped arrays."""
    if isinstance(setting, tuple) and any(isinstance(x, Wrapped) for x in setting):
        return tuple(map(plain, setting))
    return constant(setting) if isinstance(setting, Wrapped) else setting


def to_tensors(value: Any) -> Any:
    """Return wrapped arrays in nested containers as tensors."""
    if isinstance(value, Wrapped):
        return box(value)
    items = None if value.__class__ in _SINGLE else children(value)
    return value if items is None else rebuild(value, [to_tensors(item) for _, item in items])


_SINGLE = frozenset((type(None), bool, int, float, DType))


def to_tensor(value: Any) -> Any:
    """Return an array, or a part of one, as a tensor."""
    return value if isinstance(value, Tensor) else box(value)


def in_one_library(values: Sequence[Any]) -> Sequence[Any]:
    """Return values, the tensors among them in the array library of all of these.

    A leaf that is wrapped only later would be taken for one from outside, see `wrap_in`.
    """
    if len(values) < 2:
        return values
    libraries = {library_of(t.data_array()) for t in values if isinstance(t, Tensor)}
    library = join(libraries) if len(libraries) > 1 else None
    if library is None:
        return values
    return [wrap_in(t, library) if isinstance(t, Tensor) else t for t in values]


def is_part(value: Any) -> bool:
    """Return whether an array may hold a value; else it is one of Python's numbers."""
    return isinstance(value, Tensor) or is_array(value)


class Space:
    """The functions of wrapped arrays: those of tensors."""

    def __init__(self, functions: Any = TENSOR_XP) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        if name in ("finfo", "iinfo"):
            return getattr(data_types, name)
        if name in DTYPES:
            return DTYPES[name]
        result = getattr(self._functions, name)
        if name in ("linalg", "fft"):
            return Space(result)
        if not callable(result) or isinstance(result, DType):
            return result
        return lambda *args, **kwargs: to_arrays(
            result(*map(to_tensors, args), **{k: to_tensors(v) for k, v in kwargs.items()})
        )

    # What rules ask for most, without the tensors between.
    def broadcast_to(self, x: Any, shape: Any) -> Any:
        if isinstance(x, Wrapped) and shape.__class__ is tuple:
            return x.library.run(broadcast_to_p, (x,), {"shape": shape})
        return self.__getattr__("broadcast_to")(x, shape)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False, **others: Any) -> Any:
        if axis.__class__ in (int, tuple) and not others and _is_quick((x,)):
            return x.library.run(sum_p, (x,), {"axis": axis, "keepdims": keepdims})
        return self.__getattr__("sum")(x, axis=axis, keepdims=keepdims, **others)

    def reshape(self, x: Any, shape: Any) -> Any:
        if isinstance(x, Wrapped) and shape.__class__ is tuple:
            return x.library.run(reshape_p, (x,), {"shape": shape})
        return self.__getattr__("reshape")(x, shape)

    def matmul(self, x: Any, y: Any) -> Any:
        if x.__class__ is y.__class__ and _is_quick((x, y)):
            return x.library.run(matmul_p, (x, y), {})
        return self.__getattr__("matmul")(x, y)

    def matrix_transpose(self, x: Any) -> Any:
        return x.mT if isinstance(x, Wrapped) else self.__getattr__("matrix_transpose")(x)

    def operation(self, op: Primitive) -> Callable[..., Any]:
        """Return a built-in operation on such arrays."""
        return lambda *arrays, **settings: to_arrays(op.public(*to_tensors(arrays), **settings))


_LIBRARY = operator.attrgetter("library")


class TransformLibrary(WrappingLibrary):
    """What the libraries of such arrays have in common, one library for each level.

    Attributes
    ----------
    kind, api : str
        What the libraries are called, and what errors call the transform.
    base, array_class : type
        The class of arrays of every level, and of this one.
    """

    kind: str
    api: str
    base: type[Wrapped]

    def __init__(self, level: int) -> None:
        super().__init__(f"{self.kind}{level}", Space(), level)
        name = f"{self.base.__name__}{level}"
        self.array_class: Callable[..., Any] = type(
            name, (self.base,), {"__slots__": (), "library": self}
        )
        self.array_types = (self.array_class,)

    @classmethod
    @functools.cache
    def at_level(cls, level: int) -> Self:
        """Return the library of a level, from 1, made and registered once."""
        library = cls(level)
        register(library)
        return library

    # By each kind of library:
    run: Callable[..., Any]  # run(op, arrays, settings): the results of an operation
    step: Callable[..., Any]  # step(user_call): the function that `call_function` gets for it
    each_part: Callable[..., Any]  # each_part(name, a, *settings), by the library of the parts
    with_graph_of: Callable[..., Any]  # with_graph_of(before, after): the parts have that graph
    is_constant: Callable[..., bool]  # is_constant(a): whether it is one part and nothing more
    closed_over: Callable[..., GraphError]  # of a function of parts that closes over more

    def call(self, op: Any, arguments: Any, values: Sequence[Any]) -> Any:
        """Return the result of a user's operation, which is called on what is wrapped."""
        args, keywords = op.signature.spread(arguments, values)
        called = UserCall(op, args, keywords, self.api, op.traverse)
        if not self.level_is_active():
            return called.on_parts()
        return called.result(call_function(self.step(called), called.tensors, self))

    def parts(self, a: Any) -> tuple[Any, ...]:
        return (a.value,)

    def one_run(self, arrays: Iterable[Any]) -> Running | None:
        """Return the run that arrays are of; raise where it has ended, or they are of several."""
        found: Running | None = None
        for a in arrays:
            own = a.running if a.__class__ is self.array_class else None
            if own is not None and own is not found and not self.is_constant(a):
                if found is not None or own.ended:
                    raise escaped(a)
                found = own
        return found

    # -- by the operations -------------------------------------------------------------------------
    def copy(self, a: Any) -> Any:
        return self.run(clone_p, [a], {})

    def getitem(self, a: Any, index: Any) -> Any:
        return self.run(reader(index), [a], {"index": index})

    def assign(self, a: Any, index: Any, value: Any) -> Any:
        return self.run(setitem_p, [a, value], {"index": index})

    def add_at(self, a: Any, index: Any, value: Any) -> Any:
        """Return `a` with `value` added at `index`, as often as it names a place."""
        place = self.getitem(a, index).shape
        value = value if is_part(value) or self.has(value) else self.asarray(value, a.dtype)
        extra = len(value.shape) - len(place)  # leading axes of length 1, which NumPy drops
        value = self.reshape(self.wrap(value), value.shape[extra:])[0] if extra > 0 else value
        value = self.broadcast_to(self.wrap(value), place)
        return a + self.run(index_put_p, [value], {"index": index, "shape": a.shape})

    def broadcast_to(self, a: Any, shape: tuple[int, ...]) -> Any:
        return self.run(broadcast_to_p, [a], {"shape": tuple(shape)})

    def diagonal(self, a: Any, offset: int = 0) -> Any:
        return self.run(diagonal_p, [a], {"offset": offset})

    def reshape(self, a: Any, shape: tuple[int, ...]) -> tuple[Any, bool]:
        """Return `a` in another shape; nothing is written in place, so that is a view."""
        return self.run(reshape_p, [a], {"shape": tuple(shape)}), True

    # -- by the library of the parts ---------------------------------------------------------------
    def fold(self, a: Any, *settings: Any) -> Any:
        return self.each_part("fold", a, *settings)

    def windows(self, a: Any, *settings: Any) -> Any:
        return self.each_part("windows", a, *settings)

    def moved(self, a: Any, name: str, target: Any, device: Any = None) -> Any:
        return self.each_part("moved", a, name, target, device)

    # -- random numbers, dtypes --------------------------------------------------------------------

    def draw(self, draw: Callable[[tuple[int, ...]], Any]) -> Any:
        """Return an array of random numbers, as the transform around this one draws them."""
        return self.wrap(self._drawn_outside(draw))

    def _drawn_outside(self, draw: Callable[[tuple[int, ...]], Any]) -> Any:
        libraries = map(_LIBRARY, reversed(WRAPPING.get()))
        outer = next((library for library in libraries if library.level < self.level), None)
        return outer.draw(draw) if outer is not None else draw(())

    def astype(self, a: Any, dtype: DType, copy: bool = False) -> Any:
        return a if a.dtype is dtype and not copy else to_arrays(TENSOR_XP.astype(box(a), dtype))

    def special(self, name: str, *arrays: Any) -> Any:
        """Return SciPy's special function, by the operation of that name."""
        return to_arrays(TENSOR_LIBRARY.special(name, *map(to_tensors, arrays)))

    def rewritten(self, before: Any, after: Any) -> Any:
        """Return an array that was written to with the graph of its parts, unless it is recorded.

        A change under `no_grad` changes values, not the graph, also where new arrays hold them.
        """
        mode = STATE.get()
        if mode.grad or mode.parts or not self.has(before):
            return after
        return self.with_graph_of(before, after)

    def is_outer(self, levels: int) -> bool:
        return levels % (1 << self.level) != 0 or not self.level_is_active()

    def level_is_active(self) -> bool:
        return self in map(_LIBRARY, WRAPPING.get())

    def is_beside_parts(self) -> bool:
        """Say whether a function of parts is running, of which such arrays are none."""
        return self.level in _INACTIVE.get()

    def unwrap_escaped(self, tensor: Any) -> Any:
        """Return what a tensor from a closure wraps, where that is one constant."""
        if not isinstance(tensor, Tensor) or not self.has(tensor.data_array()):
            return tensor
        tracked = tensor.requires_grad and STATE.get().grad
        if tracked or not self.is_constant(tensor.data_array()):
            raise self.closed_over() if self.is_beside_parts() else _returned(tensor)
        return in_class(to_tensor(tensor.data_array().value), tensor.__class__)

    def check_closures(self, arrays: Sequence[Any]) -> None:
        """Raise where arrays, in a function of parts, are no constants: they are not its own."""
        if any(self.has(a) and not self.is_constant(a) for a in arrays):
            raise self.closed_over()


def escaped(array: Any) -> GraphError:
    """Return the error for an array of a run that has ended, or is none of those running here."""
    return _returned(box(array))


def _returned(tensor: Tensor) -> GraphError:
    required = "a tensor of a transform that is running, in this thread, required beside others"
    hint = "return what is computed in a function of vmap or jvp, and compute on with the result"
    came = "one of a call that has returned"
    return GraphError(compose("pullback", required, came, ("tensor", tensor), hint=hint))


# -- operations on parts ---------------------------------------------------------------------------
def results_of(op: Primitive, tensors: Sequence[Any], settings: dict[str, Any]) -> list[Tensor]:
    """Return the results of a built-in operation, a list also of one."""
    if "index" in settings:  # its arrays may be wrapped where what is read is not
        index = settings["index"]
        arrays = index if isinstance(index, tuple) else (index,)
        tensors = [beside(tensors[0], *arrays), *tensors[1:]]
    if op.variadic or op.multi:
        result = apply(op, tensors, settings)
        return list(result) if op.multi else [result]
    return [op.public(*tensors, **settings)]


def is_numbers(value: Any) -> bool:
    """Return whether an input of an operation has axes; else it is one of Python's numbers."""
    return hasattr(value, "shape")


def results_in(xp: Any, op: Primitive, values: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Return the list of results of an operation on tensors, or on the default library's arrays."""
    if xp is TENSOR_XP:
        return results_of(op, values, settings)
    kernel, floats = op.kernels.get(ndarray) or kernel_of(op, ndarray)
    is_quick = True
    for value in values:
        if value.__class__ is ndarray and value.dtype not in floats:
            is_quick = False
    try:
        result = kernel(*values, **settings) if is_quick else op.forward(xp, *values, **settings)
    except (*UNFIT, *THEIRS):  # says what is wrong, or does what the kernel cannot
        tensors = [to_tensor(v) if is_numbers(v) else v for v in values]
        return [t.data_array() for t in results_of(op, tensors, settings)]
    if result.__class__ is ndarray and not op.multi:
        return (result,)
    return [NUMPY.tidy(r) for r in (result if op.multi else (result,))]


def on_part(name: str, part: Any, *settings: Any) -> Any:
    """Call a method of the library of what an array holds, in the mode of parts."""
    result = on_parts(getattr(library_of_part(part), name), part, *settings)
    return part_of(result) if isinstance(result, Tensor) else as_array(result)


# -- inside and outside of a transform -------------------------------------------------------------
# The depths that functions of parts are running outside of: no transform in them is of one, since
# they may close over arrays of those.
_INACTIVE: ContextVar[frozenset[int]] = ContextVar("pullback_apart", default=frozenset())


def run_wrapped(running: Running, function: Callable[[], Any], given: Sequence[Tensor] = ()) -> Any:
    """Call the function of a transform, in which new tensors are arrays of its library.

    Tensors that it is given as they came may have a derivative by what is outside.
    """
    library: Any = running.library
    writes = Writes(WRITES.get(), library)
    levels = levels_of([t._node for t in given if t.requires_grad]) if given else 0

    def run() -> Any:
        try:
            result = function()
            return _apart_from(writes, result) if writes.adopted else result
        except BaseException as raised:
            if writes.adopted:
                clear_frames(raised.__traceback__)  # which hold what the function made
                if (error := writes.put_back()) is not None:
                    raise error from raised
            raise
        finally:
            running.ended = True

    inside = functools.partial(run_in_call, levels, run_with, LEVEL, library.level, run)
    inside = functools.partial(run_with, MAKING, library, run_with, WRITES, writes, inside)
    result = run_with(WRAPPING, (*WRAPPING.get(), running), inside)
    if writes.adopted and (error := writes.put_back()) is not None:
        raise error
    return result


def _apart_from(writes: Writes, result: Any) -> Any:
    """Return a result with other tensors for those that were brought into the library, or views."""
    adopted = {id(tensor) for a in writes.adopted if (tensor := a.tensor()) is not None}

    def other(leaf: Any) -> Any:
        if adopted.isdisjoint((id(leaf), id(getattr(leaf, "_base", None)))):
            return leaf
        return box(leaf.data_array(), leaf._node, shared_counter(leaf), leaf.__class__)

    return map_leaves(other, result)


def run_within(library: TransformLibrary, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, perhaps a user's, of what arrays of a library hold: outside of its depth.

    Arrays of this depth that the function closes over are none of its own: see `level_is_active`.
    """
    outer, inner = WRAPPING.get(), [library.level]
    while outer and outer[-1].library.level >= library.level:
        inner.append(outer[-1].library.level)
        outer = outer[:-1]
    making = outer[-1].library if outer else None
    inside = functools.partial(run_with, STATE, mode_of_parts(STATE.get()), function, *args)
    inside = functools.partial(run_with, MAKING, making, inside)
    inside = functools.partial(run_with, _INACTIVE, _INACTIVE.get().union(inner), inside)
    return run_with(WRAPPING, outer, inside)  # of this depth none runs where the parts are
