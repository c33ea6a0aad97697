"""Making tensors of one number: zeros, ones, empty, full, and in the shape of another tensor."""

from __future__ import annotations

from typing import Any

from pullback.arrays import (
    DTYPES,
    DType,
    Library,
    as_dtype,
    get_default_dtype,
    library_for,
    library_of,
    promote_scalar,
)
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, compose
from pullback.ops._declare import needs_tensor

__all__ = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


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


def number_of(op: str, name: str, value: Any) -> Any:
    """Return a number, given as one or as a tensor of one element without history."""
    if isinstance(value, Tensor):
        if value.requires_grad:
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
    op: str, shape: tuple[int, ...], value: Any, dtype: DType, library: Library, native: Any
) -> Tensor:
    try:
        return box(library.full(shape, _PYTHON[dtype.kind](value), dtype, native))
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
    return tracked(_filled(op, tuple(array.shape), value, kind, library, native), requires_grad)


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


for _f in (empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like):
    setattr(TENSORS, _f.__name__, _f)
