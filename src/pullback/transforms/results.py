"""What a function returned: its parts, whether it can be differentiated, and values as given.

Owns the checks of results and the types in which values and gradients go back to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY, is_array, library_of
from pullback.core.custom.pytree import Structure, flatten, unflatten
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, DTypeError, GraphError, compose
from pullback.transforms.arguments import Arguments, class_for, in_class, numpy_scalar
from pullback.transforms.transformed import name_of

__all__ = [
    "as_given",
    "check_differentiable",
    "check_real",
    "check_scalar",
    "check_tensor",
    "detached",
    "leaves_as_given",
    "parts",
    "value_as_given",
]

_ndarray = NUMPY.array_types[0]


def parts(arguments: Arguments, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the result to differentiate, and the second object where there is one."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        fun = name_of(arguments.fun)
        required = f"a pair (result, rest) from {fun} required with has_aux=True"
        raise ArgumentTypeError(compose(arguments.api, required, type(result).__name__))
    return result[0], result[1]


def check_tensor(
    arguments: Arguments, out: Any, way_out: str = "return the scalar alone or set has_aux"
) -> None:
    """Raise if the result is no tensor."""
    if not isinstance(out, Tensor):
        raise _independent(arguments, out, way_out)


def check_differentiable(
    arguments: Arguments, outs: Sequence[Any], structure: Structure | None
) -> None:
    """Raise if none of the leaves of a result is a tensor that can have a derivative."""
    found = [x for x in outs if isinstance(x, Tensor)]
    if not found:
        out = unflatten(structure, outs)
        raise _independent(arguments, out, "return the result, or a container of results")
    if True not in [x.dtype.is_inexact for x in found]:
        required = f"a floating-point or complex result of {name_of(arguments.fun)} required"
        came = found[0].dtype.name
        raise DTypeError(compose(arguments.api, required, came, ("result", found[0])))


def _independent(arguments: Arguments, out: Any, way_out: str) -> ArgumentTypeError:
    fun, names = name_of(arguments.fun), " and ".join(arguments.names)
    if out is None:
        required, hint = f"a result of {fun} required", "end it with return"
        return ArgumentTypeError(compose(arguments.api, required, "None", hint=hint))
    if isinstance(getattr(out, "data", None), Tensor):
        required, came = f"a Tensor required as the result of {fun}", type(out).__name__
        hint = "return the tensor that it holds: result.data"
        return ArgumentTypeError(compose(arguments.api, required, came, hint=hint))
    return ArgumentTypeError(
        f"{arguments.api}: the result of {fun} does not depend on {names}: it must be a Tensor, "
        f"got {type(out).__name__}.\n"
        "hint: float(), item() and numpy() leave the graph; compute with functions of pullback "
        f"or NumPy, and {way_out}."
    )


def check_real(arguments: Arguments, out: Tensor) -> None:
    """Raise if the result is complex, or holds integers."""
    if out.is_complex() or not out.dtype.is_inexact:
        required = f"a real floating-point result of {name_of(arguments.fun)} required"
        hint = "take real(), imag() or abs() of it" if out.is_complex() else None
        message = compose(arguments.api, required, out.dtype.name, ("result", out), hint=hint)
        raise DTypeError(message)


def check_scalar(arguments: Arguments, out: Tensor, instead: str) -> None:
    """Raise if the result has more than one element."""
    if out.numel() != 1:
        required = f"a scalar result of {name_of(arguments.fun)} required"
        hint = f"reduce it, for instance with sum(), or use {instead}"
        came = f"shape {out.shape}"
        raise GraphError(compose(arguments.api, required, came, ("result", out), hint=hint))


# -- values as the caller gets them ----------------------------------------------------------------
def as_given(derivative: Tensor, given: Any) -> Any:
    """Return a derivative in the type of the argument that it belongs to."""
    if isinstance(given, Tensor) or _goes_on(derivative):
        return in_class(derivative, class_for(given))
    array = derivative.data_array()
    if is_array(given) or array.shape:
        return array
    return derivative.numpy()[()] if isinstance(given, numpy_scalar) else derivative.item()


def value_as_given(out: Any, given: Sequence[Any]) -> Any:
    """Return the tensors of a result as tensors if an argument is one, else as arrays."""
    found, structure = flatten(out)
    return unflatten(structure, leaves_as_given(found, given))


def leaves_as_given(outs: Sequence[Any], given: Sequence[Any]) -> Sequence[Any]:
    """Do the same to the leaves of a result."""
    numbers = bool(given)
    for g in given:
        if isinstance(g, Tensor):
            return outs
        if isinstance(g, numpy_scalar) or not isinstance(g, (float, complex)):
            numbers = False
    if not given:
        return outs
    return [_bare(x, numbers) if isinstance(x, Tensor) else x for x in outs]


def _bare(out: Tensor, numbers: bool) -> Any:
    array = out._data
    if array.__class__ is _ndarray and out._node is None and out._base is None:
        return array.item() if numbers and not array.shape else array[()]
    array = out.data_array()
    if _goes_on(out):
        return out
    if library_of(array) is not NUMPY:
        return array
    return array.item() if numbers and not array.shape else array[()]


def _goes_on(tensor: Tensor) -> bool:
    """Return whether something outside may still be derived from a tensor: it stays one."""
    return tensor.requires_grad or library_of(tensor.data_array()).rank > 0


def detached(outs: Sequence[Any]) -> list[Any]:
    """Return the leaves of a result outside of the graph."""
    return [x._alias() if isinstance(x, Tensor) else x for x in outs]
