"""The arguments of an operation: any library, dtype and device brought to one, or refused.

Owns `coerce`, the kernels of an operation for each class of arrays, and the errors for arguments
that do not fit. Must not know any particular operation.
"""

from __future__ import annotations

import functools
import itertools
import reprlib
from collections.abc import Callable, Iterable, Sequence
from numbers import Number
from typing import Any

from pullback.arrays import (
    NUMPY,
    DType,
    Library,
    WrappingLibrary,
    is_array,
    join,
    library_of,
    library_of_class,
    ndarray,
    promote_scalar,
    promote_tensors,
    refuse_gradient,
)
from pullback.core.function.namespace import CORE_OPS
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import MAKING, STATE
from pullback.core.tensor.tensor import Tensor, box, tensor_class, unaliased
from pullback.core.tensor.versions import counter_of
from pullback.core.tensor.views import refresh
from pullback.core.tensor.writes import WRITES
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    AutogradError,
    DeviceError,
    DTypeError,
    ShapeError,
    TensorIndexError,
    compose,
    describe,
)

# -- kernels ---------------------------------------------------------------------------------------
_NO_KERNEL: tuple[Any, frozenset[Any]] = (None, frozenset())


def kernel_of(op: Primitive, cls: type) -> tuple[Any, frozenset[Any]]:
    """Return the forward of `op` on arrays of a class, and the dtypes that it takes.

    A generated call asks when it first meets the class, and finds it in ``op.kernels`` then. It
    leaves for `apply` where the dtype of its arguments is not among those.
    """
    library = library_of_class(cls)
    if library is None:  # it may be registered later
        return _NO_KERNEL
    op.kernels[cls] = result = (_kernel(op, library), library.quick_dtypes)
    return result


def _kernel(op: Primitive, library: Library) -> Callable[..., Any]:
    """Return the forward of `op` on floating arrays of one class, dtype and library."""
    run = library.run
    if run is not None:
        return lambda *arrays, **settings: run(op, arrays, settings)
    direct = (op.numpy_kernel or op.xp_name) if library is NUMPY else None
    if direct is not None:
        kernel: Callable[..., Any]
        kernel = getattr(library.xp, direct) if isinstance(direct, str) else direct
        return kernel
    unchecked = op.unchecked_forward if library is NUMPY else None
    forward = op.forward if unchecked is None else unchecked
    return functools.partial(forward, library.xp)


def plain_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with Python's numbers for NumPy's, which would widen the result's dtype."""
    for name, value in settings.items():
        is_number = isinstance(value, Number) or (value.__class__ is ndarray and not value.shape)
        if is_number and hasattr(value, "item"):
            settings[name] = value.item()
    return settings


# -- arguments -------------------------------------------------------------------------------------
def coerce(op: Primitive, args: Sequence[Any]) -> tuple[list[Tensor], Any]:
    """Return the arguments as up-to-date tensors of one library and dtype, and the library."""
    if not args:
        raise ArgumentTypeError(compose(op.name, "at least 1 array required", "none"))
    wrapping = STATE.get().library
    if wrapping is None and _need_nothing(op, args):
        for t in args:
            if t._base is not None:
                refresh(t)
        return list(args), library_of(args[0]._data)
    tensors, borrowed = _to_tensors(op, args)
    like = next((t for t in tensors if isinstance(t, Tensor)), None)
    if like is None:
        raise _only_numbers(op, args)
    libraries = [] if wrapping is None else [wrapping]
    libraries += [library_of(t._data) for t in tensors if isinstance(t, Tensor)]
    library: Any = libraries[0]
    if libraries.count(library) != len(libraries):
        if (library := join(libraries)) is None:
            raise mixed_error(op, args)
        for i, array in borrowed:
            tensors[i] = box(library_of(array).snapshot(array))
        borrowed = []
        if isinstance(library, WrappingLibrary) and not library.level_is_active():
            return coerce(op, [unwrap_escaped(t) for t in tensors])
        tensors = [wrap_in(t, library) if isinstance(t, Tensor) else t for t in tensors]
        like = wrap_in(like, library)
    if library is not NUMPY and not all(
        library.same_device(t._data, like._data) for t in tensors if isinstance(t, Tensor)
    ):
        raise mixed_error(op, args)
    promoted = _promoted(op, tensors, library, like)
    for i, array in borrowed:
        promoted[i] = box(library.snapshot(array, promoted[i]._data))
    return promoted, library


def _need_nothing(op: Primitive, args: Sequence[Any]) -> bool:
    """Return whether arguments are tensors of one library, device and dtype already."""
    array: Any = args[0]._data if isinstance(args[0], Tensor) else None
    if array.__class__ is not ndarray:
        return array is not None and len(args) == 1 and not op.floating
    if op.floating and array.dtype.kind not in "fc":
        return False
    for other in args[1:]:
        if not isinstance(other, Tensor) or other._data.__class__ is not ndarray:
            return False
        if other._data.dtype is not array.dtype:
            return False
    return True


def _to_tensors(op: Primitive, args: Sequence[Any]) -> tuple[list[Any], list[tuple[int, Any]]]:
    """Return the arguments as up-to-date tensors or numbers, and the arrays to be kept.

    Those are the caller's, who may write to them before backward reads them: which, and where.
    """
    tensors, bare = list(args), []
    for i, a in enumerate(args):
        if isinstance(a, Tensor):
            if a._base is not None:
                refresh(a)
        elif is_array(a):
            bare.append(i)
            tensors[i] = box(library_of(a).asarray(a))
        elif not isinstance(a, Number):
            return _to_tensors(op, _from_containers(op, args, i))
    if op.view or op.variadic:
        for i in bare:
            tensors[i] = unaliased(tensors[i])
        return tensors, []
    return tensors, [(i, tensors[i]._data) for i in bare if _is_kept(op, i, tensors)]


def _is_container(value: Any) -> bool:
    """Return whether NumPy's operators take something as an array: lists, what pandas has.

    A named tuple is no array: it is several results, of which one was meant.
    """
    return value.__class__ in (list, tuple) or hasattr(value, "__pandas_priority__")


def _from_containers(op: Primitive, args: Sequence[Any], i: int) -> list[Any]:
    """Return arguments with tensors for containers beside one; raise if `i` is no container."""
    like = next((a for a in args if isinstance(a, Tensor)), None)
    if like is None or not _is_container(args[i]):
        raise _argument_error(op, i, args[i])
    return [
        CORE_OPS.beside(a, like) if not isinstance(a, Tensor) and _is_container(a) else a
        for a in args
    ]


def unwrap_escaped(value: Any) -> Any:
    """Return a tensor of a level that is not active as the part that is computed with instead."""
    while isinstance(value, Tensor):
        array = value._data if value._base is None else value.data_array()
        if array.__class__ is ndarray:
            break
        library = library_of(array)
        if not isinstance(library, WrappingLibrary) or library.level_is_active():
            break
        value = library.unwrap_escaped(value)
    return value


def wrap_in(tensor: Tensor, library: Any) -> Tensor:
    """Return an up-to-date tensor with its array in `library`; edge and version stay its own.

    A tensor from outside of what the library wraps goes as a whole into it, with its graph.
    """
    array, node = tensor._data, tensor._node
    if library_of(array) is library:
        return tensor
    if node is not None and library.level and library.is_outer(node.levels):
        return box(library.wrap(tensor), cls=tensor.__class__)
    return box(library.wrap(array), node, counter_of(tensor), tensor.__class__)


def beside(tensor: Tensor, *others: Any) -> Tensor:
    """Return a tensor in the library of other tensors and arrays, where that wraps its own."""
    own = library_of(tensor.data_array())
    arrays = [x._data if isinstance(x, Tensor) else x for x in others]
    libraries = [library_of(a) for a in arrays if is_array(a)]
    if libraries.count(own) == len(libraries):
        return tensor
    library = join((own, *libraries))
    return tensor if library is None or library.level == own.level else wrap_in(tensor, library)


def box_beside(array: Any, tensor: Tensor) -> Tensor:
    """Return a bare array of the default library as a tensor of the class of one beside it.

    Its array is wrapped where the other's is. Of mixed libraries `coerce` tells.
    """
    data = tensor._data
    if data.__class__ is not ndarray and (library := library_of(data)).level:
        array = library.wrap(array)
    return box(array, cls=tensor.__class__)


def created(array: Any, cls: type[Tensor] = Tensor) -> Tensor:
    """Return a new tensor around a new array, in the library that the mode carries, if any."""
    library = STATE.get().library or MAKING.get()
    if library is not None and library.level > library_of(array).level:
        array = library.wrap(array)
    tensor = box(array, cls=cls)
    if (writes := WRITES.get()) is not None:
        writes.made(tensor)
    return tensor


def drawn_tensor(draw: Callable[[tuple[int, ...]], Any]) -> Tensor:
    """Return a new tensor of random numbers, as the library that the mode carries draws them."""
    library: Any = STATE.get().library or MAKING.get()
    return box(draw(()) if library is None else library.draw(draw))


def _is_kept(op: Primitive, i: int, tensors: list[Any]) -> bool:
    """Return whether the node of a call on these arguments will keep the one at `i`."""
    if not op.differentiable or not STATE.get().grad:
        return False
    tracked = [isinstance(t, Tensor) and t._node is not None for t in tensors]
    return op.saves(op.inputs[i], tracked)


def _promoted(op: Primitive, tensors: list[Any], library: Any, like: Tensor) -> list[Tensor]:
    """Bring tensors and Python scalars to one dtype, by recorded casts."""
    if not op.promotes:
        return [
            t if isinstance(t, Tensor) else _scalar(op, t, like.dtype, library, like)
            for t in tensors
        ]
    for i in op.nondifferentiable_inputs:
        if not isinstance(tensors[i], Tensor):  # one of Python's, of a dtype of its own
            device = library.native_device(library.device(like._data))
            tensors[i] = box(library.asarray(tensors[i], device=device))
    joining = [t for i, t in enumerate(tensors) if i not in op.nondifferentiable_inputs]
    arrays = [t._data for t in joining if isinstance(t, Tensor)] or [like._data]
    full = [library.dtype(a) for a in arrays if a.shape]
    dtype = promote_tensors(full, [library.dtype(a) for a in arrays if not a.shape])
    for t in joining:
        if not isinstance(t, Tensor):
            dtype = promote_scalar(dtype, t, tensor_class(tensors)._default_dtype)
    if op.floating and not dtype.is_inexact:
        dtype = tensor_class(tensors)._default_dtype()
    native = library.native(dtype)
    return [
        _scalar(op, t, dtype, library, like)
        if not isinstance(t, Tensor)
        else t
        if i in op.nondifferentiable_inputs or t._data.dtype == native
        else _cast(t, dtype, library)
        for i, t in enumerate(tensors)
    ]


def _cast(tensor: Tensor, dtype: DType, library: Library) -> Tensor:
    """Return a tensor of another dtype; its cast is recorded where it is tracked."""
    if tensor._node is None and STATE.get().observer is None:
        return box(library.astype(tensor._data, dtype), cls=tensor.__class__)
    cast: Tensor = CORE_OPS.astype(tensor, dtype)
    return cast


def _scalar(op: Primitive, value: Any, dtype: Any, library: Any, like: Tensor) -> Tensor:
    device = library.native_device(library.device(like._data))
    try:
        return box(library.asarray(value, dtype=dtype, device=device))
    except OverflowError as error:
        raise DTypeError(
            f"{op.name}: a Python number must fit the dtype it is used with, {dtype.name}, got "
            f"{value}.\nhint: convert the tensor to a wider dtype first."
        ) from error


def is_left_to(operand: Any, method: str) -> bool:
    """Return whether an operator is left to an operand: one that no operation knows.

    It must have the method itself: those of Python's own classes, a list's ``*``, mean no
    arithmetic, and the operation says what is wrong; it does of another library's arrays.
    """
    known = isinstance(operand, (Tensor, Number)) or is_array(operand)
    if known or _is_container(operand) or _is_foreign(operand):
        return False
    owner = next((cls for cls in type(operand).__mro__ if method in vars(cls)), object)
    return owner.__module__ != "builtins" and getattr(owner, method) is not None


def mixed_error(op: Any, args: Sequence[Any]) -> DeviceError:
    """Return the error for arguments on different devices or of different libraries."""
    return mixed(op.name, named(op, args))


def mixed(op: str, inputs: Sequence[tuple[str, Any]]) -> DeviceError:
    """Return the error for tensors and arrays on different devices or of different libraries."""
    text = f"{op}: all tensors must be on one device and of one array library, got"
    libraries: list[Any] = []
    for name, a in inputs:
        array = a._data if isinstance(a, Tensor) else a
        if is_array(array):
            libraries.append(library := library_of(array))
            device = library.device(array) if isinstance(a, Tensor) else "its device"
            text += f"\n  {describe(name, a)}, {library.name} on {device}"
    library = max(libraries, key=lambda library: library.level)
    hint = "move them first, for instance with x.to(device) or x.cpu()."
    return DeviceError(f"{text}\nhint: {library.mixed_hint() if library.level else hint}")


def _only_numbers(op: Primitive, args: Sequence[Any]) -> ArgumentTypeError:
    names = " or ".join(f"'{name}'" for name in _names(op, args))
    came = " and ".join(type(a).__name__ for a in args)
    required = f"a Tensor or an array required as {names}"
    hint = "make a tensor of it with pullback.tensor"
    return ArgumentTypeError(compose(op.name, required, came, hint=hint))


def _argument_error(op: Primitive, i: int, value: Any) -> ArgumentTypeError:
    name = _names(op, range(i + 1))[i]
    refuse_gradient(op.name, name, value)
    kind, way = type(value).__name__, "pullback.tensor"
    if _is_foreign(value):
        kind, way = f"{type(value).__module__}.{kind}", "pb.from_dlpack, detached if it has a graph"
    elif hasattr(value, "__array__"):
        way = f"pb.asarray(np.asarray({name}))"
    hint = getattr(type(value), "_hint_as_argument", f"make a tensor of it with {way}")
    return ArgumentTypeError(
        f"{op.name}: the argument '{name}' must be a Tensor, an array or a Python number, got "
        f"{kind}.\nhint: {hint}."
    )


# Ours for PyTorch's names of settings: what a function has of these.
_WORDS = {
    **dict.fromkeys(("dim", "dims"), ("axis", "axes")),
    "keepdim": ("keepdims",),
    "diagonal": ("k",),
    "shifts": ("shift",),
    "steps": ("num",),
    "unbiased": ("correction",),  # True is 1
}


def own_word(word: str, settings: Iterable[str]) -> str:
    """Return which of some settings is what PyTorch calls `word`; empty if none is."""
    return next((own for own in _WORDS.get(word, ()) if own in settings), "")


def merge_axis_args(name: str, dim: Any, axis: Any) -> Any:
    """Return the axis, given under PyTorch's name or the standard's."""
    if axis is not None and dim is not None:
        raise ArgumentError(f"{name}: give dim or axis, not both")
    return axis if dim is None else dim


def unlike_pytorch(
    name: str, inputs: Sequence[str], settings: Sequence[str], more: Sequence[Any], **keywords: Any
) -> ArgumentTypeError:
    """Return the error for settings by position, or by the keywords that PyTorch has for them."""
    keywords = {key: value for key, value in keywords.items() if value is not None}
    arrays = [x for x in more if hasattr(x, "shape") and x.shape]
    in_order = [s for s in settings if s != "dtype" or "axis" not in settings]  # as PyTorch's
    pairs = [*zip(in_order, more, strict=False)]
    pairs += [(own_word(key, settings) or key, value) for key, value in keywords.items()]
    named = [
        f"{key}={'...' if hasattr(value, 'shape') else reprlib.repr(value)}" for key, value in pairs
    ]
    as_method = [n.replace("axis=", "dim=").replace("keepdims=", "keepdim=") for n in named]
    hint = f"pb.{name}({', '.join([*inputs, *named])})"
    if name in _OF_TWO and arrays:
        hint = f"pb.{_OF_TWO[name]}(x, y) of two tensors"
    elif hasattr(Tensor, name) and len(inputs) == 1:
        hint += f", or {inputs[0]}.{name}({', '.join(as_method)})"
    required = f"{', '.join(settings)} by keyword required"
    came = [f"{len(more)} more by position"] * bool(more) + [f"{key}=" for key in keywords]
    return ArgumentTypeError(compose(name, required, " and ".join(came), hint=hint))


# What PyTorch's functions of a tensor do with two.
_OF_TWO = {"max": "maximum", "min": "minimum"}


def _is_foreign(value: Any) -> bool:
    """Return whether a value is an array of a library that is not supported."""
    return hasattr(type(value), "__dlpack__") and not isinstance(value, Tensor)


def named(op: Primitive, args: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the arguments of an operation, each with its name."""
    return list(zip(_names(op, args), args, strict=True))


def _names(op: Primitive, args: Sequence[Any]) -> Sequence[str]:
    if op.variadic:
        return [f"{op.inputs[0] if op.inputs else 'arrays'}[{i}]" for i in range(len(args))]
    if len(args) == len(op.inputs):
        return op.inputs
    return [op.inputs[i] if i < len(op.inputs) else f"argument {i}" for i in range(len(args))]


_OURS: dict[type[Exception], type[AutogradError]] = {
    IndexError: TensorIndexError,
    TypeError: DTypeError,
    ValueError: ShapeError,
}
THEIRS = tuple(_OURS)
# What a quick way gets where it does not fit: the general way says what is wrong, or does it.
UNFIT: tuple[type[Exception], ...] = (OverflowError, *THEIRS)


def kernel_error(op: Primitive, args: Sequence[Any], error: Exception) -> AutogradError:
    """Return the array library's error as one of ours, naming the operation and its inputs."""
    ours = next(mine for theirs, mine in _OURS.items() if isinstance(error, theirs))
    shapes = [tuple(getattr(a, "shape", ())) for a in args]
    says = str(error).strip()
    if ours is DTypeError:
        required = "a dtype that it is defined for"
        dtypes = [str(getattr(a, "dtype", type(a).__name__)) for a in args]
        came = " and ".join(dtype.rpartition(".")[2] for dtype in dtypes)
    elif op.broadcasts and not _broadcast(shapes):
        required, came, says = "shapes that broadcast", " and ".join(map(str, shapes)), ""
    else:
        required, came, says = "arguments that the array library takes", says, ""
        ours = ArgumentError if op.broadcasts else ours
    message = compose(op.name, f"{required} required", came, *named(op, args))
    return ours(f"{message}\nthe array library: {says}" if says else message)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether shapes can be broadcast together."""
    axes = itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)
    return all(len({*lengths} - {1}) < 2 for lengths in axes)
