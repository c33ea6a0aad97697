"""Making tensors: from data, filled, in ranges, at random.

Random numbers come from the array library's own generator; `manual_seed` seeds the default one
of every library and device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.arrays import (
    NUMPY,
    DType,
    as_dtype,
    get_default_dtype,
    is_array,
    library_for,
    library_of,
)
from pullback.core.primitive import TENSORS
from pullback.core.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, GraphError
from pullback.ops.conversion import astype, clone, to

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


def tensor(
    data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a new tensor with a copy of `data`.

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
    if isinstance(data, Tensor):
        result = box(library_of(data._data).copy(data.data_array()))
    elif is_array(data):
        library = library_of(data)
        library.dtype(data)  # raises for text, objects, dates
        result = box(library.asarray(data, copy=True))
    else:
        result = box(_from_python(data, None if dtype is None else as_dtype(dtype)))
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    if device is not None:
        result = to(result, device=device).detach()
    return result.requires_grad_() if requires_grad else result


def _from_python(data: Any, dtype: DType | None) -> Any:
    if isinstance(data, (list, tuple)):
        data = _unboxed(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ArgumentError(f"tensor: data must be a regular nest of numbers: {error}") from None
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"tensor: data must be numbers, got {type(data).__name__} of dtype {array.dtype}"
        )
    if dtype is not None:
        return array.astype(dtype.dtype)
    typed = isinstance(data, np.generic) or _holds_typed(data)
    if not typed and (array.dtype.kind == "f" or array.size == 0):
        array = array.astype(get_default_dtype().dtype)
    elif not typed and array.dtype.kind == "c":
        array = array.astype(as_dtype(complex).dtype)
    return array


def _unboxed(data: Sequence[Any]) -> list[Any]:
    return [
        _unboxed(d)
        if isinstance(d, (list, tuple))
        else d.detach().cpu().numpy()
        if isinstance(d, Tensor)
        else d
        for d in data
    ]


def _holds_typed(data: Any) -> bool:
    """Whether the first element of nested lists already has a NumPy dtype."""
    while isinstance(data, list) and data:
        data = data[0]
    return isinstance(data, (np.generic, np.ndarray))


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
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
    if isinstance(obj, Tensor):
        result = obj
    elif is_array(obj):
        library = library_of(obj)
        library.dtype(obj)  # raises for text, objects, dates
        result = box(library.asarray(obj))
    else:
        if copy is False:
            raise ArgumentError(f"asarray: copy=False, but a {type(obj).__name__} must be copied")
        result, copy = tensor(obj, dtype), None
    converted = to(result, dtype=dtype, device=device)
    if copy is False and converted is not result:
        raise ArgumentError("asarray: copy=False, but another dtype or device needs a copy")
    return clone(converted) if copy and converted is result else converted


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
    """Return a tensor around an array of any library that exports DLPack on the CPU.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> pb.from_dlpack(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    return asarray(np.from_dlpack(x), device=device, copy=copy)


# -- filled ----------------------------------------------------------------------------------------
def shape_of(op: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes given one by one or as one sequence."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    try:
        result = tuple(int(n.__index__()) for n in sizes)
    except AttributeError:
        raise ArgumentTypeError(f"{op}: sizes must be integers, got {shape!r}") from None
    if any(n < 0 for n in result):
        raise ArgumentError(f"{op}: sizes must not be negative, got {result}")
    return result


def _filled(
    op: str,
    shape: tuple[Any, ...],
    value: Any,
    dtype: Any,
    device: str | None,
    requires_grad: bool,
) -> Tensor:
    library, native = library_for(None if device is None else str(device))
    kind = get_default_dtype() if dtype is None else as_dtype(dtype)
    result = box(library.full(shape_of(op, shape), value, kind, native))
    return result.requires_grad_() if requires_grad else result


def zeros(
    *shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    return _filled("zeros", shape, 0, dtype, device, requires_grad)


def ones(
    *shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ones((2,))
    tensor([1., 1.])
    """
    return _filled("ones", shape, 1, dtype, device, requires_grad)


def empty(
    *shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor whose values are to be written; they are zeros until then.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.empty(3).shape
    (3,)
    """
    return _filled("empty", shape, 0, dtype, device, requires_grad)


def full(
    shape: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor filled with a number; the dtype is by default that of the number.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.full((2,), 7.0)
    tensor([7., 7.])
    """
    kind = (
        type(fill_value)
        if dtype is None and isinstance(fill_value, (bool, int, complex))
        else dtype
    )
    sizes = (shape,) if isinstance(shape, int) else (tuple(shape),)
    return _filled("full", sizes, fill_value, kind, device, requires_grad)


def _like(x: Tensor, value: Any, dtype: Any, device: str | None, requires_grad: bool) -> Tensor:
    array = x.data_array()
    library = library_of(array)
    native = library.native_device(library.device(array))
    if device is not None:
        library, native = library_for(str(device))
    kind = x.dtype if dtype is None else as_dtype(dtype)
    result = box(library.full(array.shape, value, kind, native))
    return result.requires_grad_() if requires_grad else result


def zeros_like(
    x: Tensor, /, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return zeros of the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeros_like(pb.tensor([1, 2]))
    tensor([0, 0])
    """
    return _like(x, 0, dtype, device, requires_grad)


def ones_like(
    x: Tensor, /, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return ones of the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ones_like(pb.tensor([1, 2]))
    tensor([1, 1])
    """
    return _like(x, 1, dtype, device, requires_grad)


def full_like(
    x: Tensor,
    /,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a number in the shape, dtype and device of `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.full_like(pb.tensor([1, 2]), 5)
    tensor([5, 5])
    """
    return _like(x, fill_value, dtype, device, requires_grad)


def empty_like(
    x: Tensor, /, *, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """Return a tensor like `x` whose values are to be written; they are zeros until then.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.empty_like(pb.tensor([1, 2])).shape
    (2,)
    """
    return _like(x, 0, dtype, device, requires_grad)


# -- ranges ----------------------------------------------------------------------------------------
def _made(array: Any, dtype: Any, device: str | None, requires_grad: bool) -> Tensor:
    kind = None if dtype is None else as_dtype(dtype)
    if kind is None and array.dtype.kind == "f":
        kind = get_default_dtype()
    library, native = library_for(None if device is None else str(device))
    cast = array if kind is None else array.astype(kind.dtype)
    result = box(cast if library is NUMPY else library.from_numpy(cast, native))
    return result.requires_grad_() if requires_grad else result


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from `start` (0 if only one is given) up to, not including, `stop`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.arange(3)
    tensor([0, 1, 2])
    """
    begin, end = (0, start) if stop is None else (start, stop)
    return _made(np.arange(begin, end, step), dtype, device, requires_grad)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
    requires_grad: bool = False,
) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linspace(0.0, 1.0, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _made(np.linspace(start, stop, num, endpoint=endpoint), dtype, device, requires_grad)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
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
    return _made(np.eye(n_rows, n_cols, k), dtype, device, requires_grad)


# -- tensors that follow another's library ---------------------------------------------------------
def new_tensor(like: Tensor, data: Any) -> Tensor:
    """Return `data` as a tensor of the dtype and device of `like`, without history."""
    if isinstance(data, Tensor):
        raise GraphError("new_tensor: takes numbers, got a Tensor; use clone() or detach()")
    return to(tensor(data, dtype=like.dtype), device=like.device)


for _f in (zeros, ones, full, zeros_like, ones_like, full_like, arange, asarray, tensor):
    setattr(TENSORS, _f.__name__, _f)
