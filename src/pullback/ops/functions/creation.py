"""Creating tensors: from data, around arrays, in ranges, and of one number.

Numbers are read by NumPy; what is made is then brought to the array library of the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.arrays import (
    DTYPES,
    NUMPY,
    DType,
    Library,
    as_dtype,
    dtype_of,
    get_default_dtype,
    is_array,
    library_for,
    library_of,
    promote,
    promote_scalar,
    refuse_gradient,
)
from pullback.core.function.dispatch import created
from pullback.core.graph.modes import STATE
from pullback.core.tensor.endings import carries
from pullback.core.tensor.tensor import Tensor, tensor_class
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GraphError,
    UntrackedTensorWarning,
    compose,
    warn_user,
)
from pullback.hints import hinted
from pullback.ops.arguments import array_to_tensor
from pullback.ops.axes import merge_axis_args
from pullback.ops.declare import needs_tensor, register_xp, worded
from pullback.ops.functions.data_types import astype, to
from pullback.ops.functions.joining import stack
from pullback.ops.primitives.conversion import clone


# -- data ------------------------------------------------------------------------------------------
def tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Return a new tensor with a copy of `data`.

    No gradient flows from a copy: a warning says so where `data` is or holds tensors that require
    grad. `asarray` and `stack` keep them in the graph.

    Parameters
    ----------
    data : number, nested lists, array or Tensor
        Python floats become the default dtype, integers int64; arrays keep their dtype.
    dtype : dtype, optional
        Another element type.
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; by default where the data is.
    requires_grad : bool
        Whether gradients are computed for it.

    Raises
    ------
    ArgumentTypeError
        If `data` is no numbers.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensor([1, 2, 3])
    tensor([1, 2, 3])
    >>> pb.tensor([1.0, 2.0], requires_grad=True)
    tensor([1., 2.], requires_grad=True)
    """
    data = _as_lists(data)
    if isinstance(data, Tensor):
        _warn_of_copy([data])
        array = data.detach().data_array()
        result = created(library_of(array).copy(array))
    elif is_array(data):
        library = library_of(data)
        library.dtype(data)  # raises for text, objects, dates
        result = created(library.asarray(data, copy=True))
    else:
        result = created(_from_python("tensor", data, None if dtype is None else as_dtype(dtype)))
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    if device is not None:
        result = to(result, device=device).detach()
    return result.requires_grad_() if requires_grad else result


def _from_python(op: str, data: Any, dtype: DType | None) -> Any:
    """Return numbers or nested lists of them as a NumPy array of its own."""
    if isinstance(data, (list, tuple)):
        tensors: list[Tensor] = []
        data = _unboxed(data, tensors)
        _warn_of_copy(tensors)
    refuse_gradient(op, "data", data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ArgumentError(f"{op}: data must be a regular nest of numbers: {error}") from None
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"{op}: data must be numbers, got {type(data).__name__} of dtype {array.dtype}"
        )
    dtypes = _dtypes_of_typed([data])
    if dtype is None:
        dtype = _dtype_beside(dtypes, data) if dtypes else _dtype_of_numbers(array)
    if array.dtype.kind == "c" and not dtype.is_complex:
        required = f"numbers that dtype {dtype.name} can hold required"
        raise DTypeError(compose(op, required, "complex numbers", hint="take the real part"))
    cast = array.astype(dtype.dtype, copy=False)
    if not dtypes and dtype.kind in "iu" and array.dtype.kind in "iu" and (cast != array).any():
        hint = "pass a dtype that holds every number"
        required = f"integers that dtype {dtype.name} can hold required"
        raise DTypeError(compose(op, required, f"{array.min()} to {array.max()}", hint=hint))
    return cast


def _dtype_of_numbers(array: np.ndarray[Any, Any]) -> DType:
    """Return the dtype that Python's numbers become, read by NumPy as `array`."""
    kind = array.dtype.kind if array.size else "f"
    return as_dtype({"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind])


def _as_lists(data: Any) -> Any:
    """Return an array of objects that holds tensors as nested lists, anything else as it is."""
    if isinstance(data, np.ndarray) and data.dtype == object and _tensors_in(data.tolist()):
        return data.tolist()
    return data


def _unboxed(data: Sequence[Any], tensors: list[Tensor]) -> list[Any]:
    """Return nested lists with arrays for tensors, which are added to `tensors`."""
    plain = []
    for item in data:
        if isinstance(item, (list, tuple)):
            plain.append(_unboxed(item, tensors))
        elif isinstance(item, Tensor):
            tensors.append(item)
            plain.append(item.detach().cpu().numpy())
        else:
            plain.append(item)
    return plain


def _warn_of_copy(tensors: Sequence[Tensor]) -> None:
    """Warn where tensors that have a derivative are copied, which leaves the graph."""
    recorded = STATE.get().grad
    if any((recorded and t.requires_grad) or carries(t) for t in tensors):
        warn_user(
            "tensor: copies the values of a tensor that requires grad, and no gradient flows from "
            "the copy. Use asarray or stack, which stay in the graph, or detach() what is meant to "
            "be constant.",
            UntrackedTensorWarning,
        )


def _dtypes_of_typed(data: Sequence[Any]) -> set[DType]:
    """Return the dtypes of NumPy's numbers and arrays in nested lists."""
    result: set[DType] = set()
    for item in () if set(map(type, data)) <= _NUMBERS else data:
        if isinstance(item, list):
            result |= _dtypes_of_typed(item)
        elif isinstance(item, (np.generic, np.ndarray)):
            result.add(dtype_of(item.dtype))
    return result


def _dtype_beside(dtypes: set[DType], data: Any) -> DType:
    """Return the dtype of nested lists in which these dtypes and Python's numbers stand."""
    if isinstance(data, list):
        return promote(*dtypes, *(_dtype_beside(dtypes, item) for item in data))
    number = not isinstance(data, (np.generic, np.ndarray))
    return promote(*dtypes, *([_dtype_of_numbers(np.asarray(data))] if number else ()))


_NUMBERS = {bool, int, float, complex}
# What a Python number is beside tensors of double precision.
_DOUBLE = {float: "float64", complex: "complex128"}


def asarray(
    obj: Any,
    /,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `obj` as a tensor, without copying where that can be.

    Parameters
    ----------
    obj : array, number, nested lists or Tensor
        An array of any supported library is wrapped and stays where it is.
    dtype : dtype, optional
        Another element type (a copy where it differs).
    device : str, optional
        Another device (a copy where it differs).
    copy : bool, optional
        True: always copy. False: raise where a copy is needed.
    requires_grad : bool, default False
        Whether the result, where it is no part of a graph, is to be a leaf that requires grad.

    Raises
    ------
    ArgumentError
        If `copy` is False and a copy is needed.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> a = np.zeros(2)
    >>> x = pb.asarray(a)
    >>> a[0] = 7.0
    >>> x
    tensor([7., 0.], dtype=float64)
    """
    obj = _as_lists(obj)
    if isinstance(obj, Tensor):
        result = obj
    elif is_array(obj):
        result = array_to_tensor(obj)
    elif copy is False and not _has_memory(obj):
        raise ArgumentError(f"asarray: copy=False, but a {type(obj).__name__} must be copied")
    else:
        result, copy = _converted(obj, dtype, copy), None if copy else copy
    plain = dtype is None and device is None
    converted = result if plain else to(result, dtype=dtype, device=device)
    if copy is False and converted is not result:
        raise ArgumentError("asarray: copy=False, but another dtype or device needs a copy")
    output = clone(converted) if copy and converted is result else converted
    if requires_grad and not output.requires_grad:
        return (output.detach() if output is obj else output).requires_grad_()
    return output


def _converted(obj: Any, dtype: Any, copy: bool | None) -> Tensor:
    """Return as a tensor what is neither one nor an array of a known library."""
    refuse_gradient("asarray", "obj", obj)
    tensors = _tensors_in(obj)
    if tensors:
        dtypes = {t.dtype.name for t in tensors} | ({as_dtype(dtype).name} if dtype else set())
        return _stacked(obj, tensors[0], not dtypes.isdisjoint(_DOUBLE.values()))
    if not _has_memory(obj):
        return created(_from_python("asarray", obj, None if dtype is None else as_dtype(dtype)))
    try:
        array = np.asarray(obj, copy=copy)
    except ValueError as error:
        raise ArgumentError(f"asarray: {error}") from None
    NUMPY.dtype(array)  # raises for text, objects, dates
    return created(array)


def _has_memory(obj: Any) -> bool:
    """Whether NumPy can read the elements where they are: of another library, in a buffer."""
    if isinstance(obj, (list, tuple, int, float, complex, str, bytes, np.generic)):
        return False
    try:
        return hasattr(obj, "__array__") or memoryview(obj).nbytes >= 0
    except TypeError:
        return False


def _tensors_in(obj: Any) -> list[Tensor]:
    """Return the tensors in nested lists."""
    if isinstance(obj, Tensor):
        return [obj]
    if isinstance(obj, (list, tuple)):
        return [t for item in obj for t in _tensors_in(item)]
    return []


def _stacked(obj: Any, like: Tensor, double: bool) -> Tensor:
    """Return nested lists of tensors and numbers as one tensor, recorded.

    Beside tensors of double precision a Python number is not rounded to the default dtype first.
    """
    if isinstance(obj, (list, tuple)):
        stacked: Tensor = stack([_stacked(item, like, double) for item in obj])
        return stacked
    if isinstance(obj, Tensor):
        return obj
    return to(asarray(obj, dtype=_DOUBLE.get(type(obj)) if double else None), device=like.device)


def beside(values: Any, like: Tensor) -> Tensor:
    """Return nested lists, or an object of pandas, as a tensor beside another.

    Floats in a list take its dtype, as a Python number does; tensors in it stay in the graph.
    """
    if hasattr(values, "__pandas_priority__"):
        return asarray(np.array(values), device=like.device)
    if tensors := _tensors_in(values):
        double = any(t.dtype.name in _DOUBLE.values() for t in (like, *tensors))
        return _stacked(values, like, double)
    result = asarray(values, device=like.device)
    if not result.dtype.is_inexact:
        return result
    number = 0j if result.dtype.is_complex else 0.0
    dtype = promote_scalar(like.dtype, number, like._default_dtype)
    return asarray(values, dtype=dtype, device=like.device)


def from_numpy(array: Any) -> Tensor:
    """Return a tensor that shares memory with a NumPy array.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.from_numpy(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"from_numpy: needs a NumPy array, got {type(array).__name__}")
    return asarray(array)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of an array of any library that exports DLPack.

    Parameters
    ----------
    x : object
        With `__dlpack__` and `__dlpack_device__`, on the CPU or on a GPU that CuPy sees.
    device : str, optional
        Another device to copy to.
    copy : bool, optional
        True: always copy. False: raise where a copy is needed.

    Raises
    ------
    ArgumentTypeError
        If `x` does not export DLPack.
    DeviceError
        If it lives on a device of another kind.
    BufferError
        If `x` refuses to be exported so.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.from_dlpack(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        required = "an array that exports DLPack required"
        raise ArgumentTypeError(compose("from_dlpack", required, type(x).__name__))
    kind, number = x.__dlpack_device__()
    name = _DLPACK_DEVICES.get(int(kind))
    if name is None:
        required = "an array on the CPU or on a CUDA device required"
        came = f"the device ({int(kind)}, {number}) of DLPack"
        raise DeviceError(compose("from_dlpack", required, came))
    library, _ = library_for(name.format(number))
    options = {"copy": False} if copy is False else {}
    return asarray(library.xp.from_dlpack(x, **options), device=device, copy=copy)


# DLPack's numbers for kinds of devices: CPU, CUDA, pinned host memory, managed memory.
_DLPACK_DEVICES = {1: "cpu", 2: "cuda:{}", 3: "cpu", 13: "cuda:{}"}


# -- ranges ----------------------------------------------------------------------------------------
def _from_array(array: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    kind = _dtype_of_numbers(array) if dtype is None else as_dtype(dtype)
    library, native = library_for(device)
    cast = array.astype(kind.dtype, copy=False)
    return tracked(created(library.from_numpy(cast, native)), requires_grad)


@hinted
def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    end: float | None = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from `start` (0 if only one is given) up to, not including, `stop`.

    `end` is PyTorch's name of `stop`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.arange(3)
    tensor([0, 1, 2])
    """
    stop = merge_axis_args("arange", stop, end)
    begin, end = (0, start) if stop is None else (start, stop)
    names = {"start": begin, "stop": end, "step": step}
    numbers = [number_of("arange", name, value) for name, value in names.items()]
    if step == 0:
        raise ArgumentError("arange: step must not be 0, got 0")
    kind = None if dtype is None else as_dtype(dtype)
    if kind is None and not any(isinstance(n, (float, np.floating)) for n in numbers):
        kind = DTYPES["int64"]
    return _from_array(np.arange(*numbers), kind, device, requires_grad)


@worded
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
    requires_grad: bool = False,
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`; PyTorch's word for it is `steps`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linspace(0.0, 1.0, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    (count,) = shape_of("linspace", (num,))
    ends = number_of("linspace", "start", start), number_of("linspace", "stop", stop)
    return _from_array(np.linspace(*ends, count, endpoint=endpoint), dtype, device, requires_grad)


@hinted
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ones on a diagonal and zeros elsewhere.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = shape_of("eye", (n_rows, n_rows if n_cols is None else n_cols))
    return _from_array(np.eye(rows, columns, k), dtype, device, requires_grad)


# -- tensors that follow another's library ---------------------------------------------------------
def new_tensor(like: Tensor, data: Any, **options: Any) -> Tensor:
    """Return `data` as a tensor of the dtype and device of `like`, outside the graph."""
    if isinstance(data, Tensor):
        raise GraphError("new_tensor: takes numbers, got a Tensor; use clone() or detach()")
    return tensor(data, **{"dtype": like.dtype, "device": like.device, **options})


# -- one number everywhere -------------------------------------------------------------------------
def shape_of(op: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given one by one or as one sequence."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    try:
        result = tuple(int(n.__index__()) for n in sizes)
    except AttributeError:
        is_more = len(shape) > 1 and isinstance(shape[0], (tuple, list))
        hint = f"\nhint: what follows them by keyword: pb.{op}({shape[0]}, dtype=...)"
        came = f"{op}: sizes must be integers, got {shape!r}{hint if is_more else ''}"
        raise ArgumentTypeError(came) from None
    if any(n < 0 for n in result):
        raise ArgumentError(f"{op}: sizes must not be negative, got {result}")
    return result


def number_of(op: str, name: str, value: Any) -> Any:
    """Return a number, given as one or as a tensor of one element outside the graph."""
    if isinstance(value, Tensor):
        if value.requires_grad or carries(value):
            required = f"a number required as '{name}'"
            came = "a Tensor that requires grad, whose graph would be lost"
            hint = f"detach() it, or compute with the result of {op}"
            raise GraphError(compose(op, required, came, (name, value), hint=hint))
        return value.item()
    try:
        promote_scalar(DTYPES["bool"], value)
    except ArgumentTypeError:
        came = type(value).__name__
        raise ArgumentTypeError(compose(op, f"a number required as '{name}'", came)) from None
    return value


def tracked(result: Tensor, requires_grad: bool) -> Tensor:
    """Return a new tensor, which requires grad if so wished."""
    return result.requires_grad_() if requires_grad else result


# What NumPy would do with a warning only, such as dropping an imaginary part, these refuse.
_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def _filled(
    op: str,
    shape: tuple[int, ...],
    value: Any,
    dtype: DType,
    library: Library,
    native: Any,
    cls: type[Tensor] = Tensor,
) -> Tensor:
    try:
        return created(library.full(shape, _PYTHON[dtype.kind](value), dtype, native), cls)
    except (OverflowError, TypeError, ValueError) as error:
        required = f"a number that dtype {dtype.name} can hold required"
        raise DTypeError(compose(op, required, f"{value} ({error})")) from None


def _of_shape(
    op: str, shape: tuple[Any, ...], value: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    library, native = library_for(device)
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    result = _filled(op, shape_of(op, shape), value, kind, library, native)
    return tracked(result, requires_grad)


@hinted
def zeros(
    shape: Any, *more: int, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros.

    Parameters
    ----------
    shape : int or tuple of int
    *more : int
        Further sizes, where they are given one by one.
    dtype : dtype, optional
        By default the default dtype.
    device : str, optional
        By default the CPU.
    requires_grad : bool
        Whether gradients are computed for it.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    return _of_shape("zeros", (shape, *more), 0, dtype, device, requires_grad)


@hinted
def ones(
    shape: Any, *more: int, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ones; the arguments are those of `zeros`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ones((2,))
    tensor([1., 1.])
    """
    return _of_shape("ones", (shape, *more), 1, dtype, device, requires_grad)


@hinted
def empty(
    shape: Any, *more: int, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor whose values are to be written, zeros until then; arguments as for `zeros`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.empty(3).shape
    (3,)
    """
    return _of_shape("empty", (shape, *more), 0, dtype, device, requires_grad)


@hinted
def full(
    shape: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor filled with a number; the dtype is by default that of the number.

    Raises
    ------
    DTypeError
        If the dtype cannot hold the number.
    GraphError
        If the number is a Tensor that requires grad.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.full((2,), 7.0)
    tensor([7., 7.])
    """
    value = number_of("full", "fill_value", fill_value)
    kind = promote_scalar(DTYPES["bool"], value) if dtype is None else dtype
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return _of_shape("full", (sizes,), value, kind, device, requires_grad)


def _like(op: str, x: Any, value: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    needs_tensor(op, x)
    array = x.data_array() if isinstance(x, Tensor) else x
    library = library_of(array)
    kind = library.dtype(array) if dtype is None else as_dtype(dtype)
    if device is None:
        native = library.native_device(library.device(array))
    else:
        library, native = library_for(device)
    filled = _filled(op, tuple(array.shape), value, kind, library, native, tensor_class((x,)))
    return tracked(filled, requires_grad)


def zeros_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros of the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeros_like(pb.tensor([1, 2]))
    tensor([0, 0])
    """
    return _like("zeros_like", x, 0, dtype, device, requires_grad)


def ones_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ones of the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ones_like(pb.tensor([1, 2]))
    tensor([1, 1])
    """
    return _like("ones_like", x, 1, dtype, device, requires_grad)


def full_like(
    x: Any,
    /,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a number in the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.full_like(pb.tensor([1, 2]), 5)
    tensor([5, 5])
    """
    value = number_of("full_like", "fill_value", fill_value)
    return _like("full_like", x, value, dtype, device, requires_grad)


def empty_like(
    x: Any, /, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor like `x` whose values are to be written; they are zeros until then.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.empty_like(pb.tensor([1, 2])).shape
    (2,)
    """
    return _like("empty_like", x, 0, dtype, device, requires_grad)


# -- PyTorch's names -------------------------------------------------------------------------------
def as_tensor(
    data: Any, dtype: Any = None, device: Any = None, *, requires_grad: bool = False
) -> Tensor:
    """Return `data` as a tensor, without copying where that can be: `asarray` by another name.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.as_tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    return asarray(data, dtype=dtype, device=device, requires_grad=requires_grad)


@hinted
def logspace(start: float, end: float, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """Return base to the power of `steps` evenly spaced numbers from `start` to `end`.

    Parameters
    ----------
    start, end : float
    steps : int
    base : float
    **options
        `dtype`, `device` and `requires_grad`, as for `linspace`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    requires_grad = options.pop("requires_grad", False)
    dtype = options.pop("dtype", None)
    numbers = linspace(start, end, steps, dtype="float64", **options)
    numbers = astype(base**numbers, get_default_dtype() if dtype is None else dtype, copy=False)
    return numbers.requires_grad_() if requires_grad else numbers


register_xp(arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, ones)
register_xp(ones_like, tensor, zeros, zeros_like)
