"""What callers give as tensors, what they get back, and names that are not there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar, cast

from pullback.arrays import DTYPES, NUMPY, WrappingLibrary, is_array, library_of
from pullback.core.custom.pytree import leaves
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, AutogradError, GraphError, compose
from pullback.implicit.reading import tensor_of
from pullback.ops.functions.data_types import astype, result_type
from pullback.ops.functions.joining import stack
from pullback.transforms.api.recording import value_as_given

__all__ = [
    "are_scipys",
    "array_as_scipy",
    "as_given",
    "as_scipy",
    "floating",
    "in_one_dtype",
    "in_one_precision",
    "may_be_derived",
    "named",
    "refuse",
]

# NumPy's, not Python's, are the numbers that SciPy returns.
_NUMPY_SCALAR = NUMPY.xp.float64(0.0)

F = TypeVar("F", bound=Callable[..., Any])


def floating(x: Any) -> Tensor:
    """Return what a caller gave as a tensor of floating-point numbers, integers as float64."""
    result = tensor_of(x)
    return result if result.dtype.is_inexact else astype(result, DTYPES["float64"])


def named(api: str, name: str, x: Any) -> Tensor:
    """Return an argument as floating-point numbers, a list of tensors too; an error names it."""
    try:
        is_row = isinstance(x, (list, tuple)) and any(isinstance(v, Tensor) for v in x)
        return _row(x) if is_row else floating(x)
    except (AutogradError, TypeError, ValueError) as error:
        if isinstance(error, GraphError):  # of a batch, not of the argument
            raise
        required = f"numbers required as {name}"
        raise ArgumentTypeError(compose(api, required, _kind(x))) from None


def _row(values: Iterable[Any]) -> Tensor:
    """Return tensors and numbers side by side; numbers take the precision of the tensors."""
    listed = list(values)
    result = [floating(v) for v in listed]
    pairs = list(zip(listed, result, strict=True))
    dtype = result_type(*(x for v, x in pairs if isinstance(v, Tensor) or x.is_complex()))
    return stack([astype(x, dtype, copy=False) for x in result])


def _kind(x: Any) -> str:
    dtype = getattr(x, "dtype", None)
    return type(x).__name__ if dtype is None else f"an array of {dtype}"


def in_one_dtype(*values: Any) -> list[Tensor]:
    """Return several arguments as tensors of the dtype that holds them all."""
    result = [floating(x) for x in values]
    dtype = result_type(*result)
    return [astype(x, dtype, copy=False) for x in result]


def in_one_precision(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return places and samples in one dtype; places stay real where samples are complex."""
    is_real = not floating(x).is_complex()
    x, y = in_one_dtype(x, y)
    return (x.real if is_real and x.is_complex() else x), y


def may_be_derived(x: Tensor) -> bool:
    """Return whether something may be derived from a tensor."""
    return x.requires_grad or isinstance(library_of(x.data_array()), WrappingLibrary)


def as_given(function: F) -> F:
    """Let a function return NumPy's arrays and scalars where it was given no tensor."""

    @functools.wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        return as_scipy(function(*args, **settings), [*args, *settings.values()])

    return cast(F, call)


def are_scipys(values: Sequence[Any]) -> bool:
    """Return whether there is no tensor and no other library's array in values and containers."""
    return not any(
        isinstance(x, Tensor) or (is_array(x) and library_of(x) is not NUMPY)
        for x in leaves(list(values))
    )


def as_scipy(out: Any, inputs: Sequence[Any]) -> Any:
    """Return the tensors of a result as tensors if an argument has one, else as NumPy's."""
    return value_as_given(out, [_NUMPY_SCALAR, *leaves(list(inputs))])


def array_as_scipy(out: Any, inputs: Sequence[Any]) -> Any:
    """Return a tensor as `as_scipy` does, but one element as an array of no dimensions."""
    result = as_scipy(out, inputs)
    return result if isinstance(result, Tensor) else NUMPY.asarray(result)


def refuse(module: str, names: Iterable[str], name: str) -> NoReturn:
    """Raise for a name that a module here does not have."""
    own = module.rpartition(".")[2]
    hint = f"for values alone: scipy.{own}.{name} of t.detach().numpy(); or define an operation"
    required = f"one of {', '.join(sorted(names))} required"
    raise AttributeError(compose(module, required, repr(name), hint=f"{hint} (autograd_function)"))
