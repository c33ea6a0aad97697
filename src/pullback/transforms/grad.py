"""Gradients of functions: `grad`, `value_and_grad`, `elementwise_grad`.

Owns the conversion of arguments and results: arguments become tensors that the function computes
with, and gradients are returned in the structure and types of the arguments. Must not know how a
gradient is computed. Invariants: no global state; no ``.grad`` is changed; a result that can be
differentiated again (by an enclosing transform, or with respect to a tensor in the function's
closure) stays part of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import MethodType
from typing import Any, NamedTuple

from pullback.arrays import NUMPY, is_array, library_of
from pullback.core.backward import api as engine
from pullback.core.backward.collect import collect
from pullback.core.custom.pytree import children, leaves, map_leaves
from pullback.core.graph.modes import STATE, run_in_mode
from pullback.core.graph.node import AccumulateGrad
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import shared_counter
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, compose
from pullback.ops.functions.creation import asarray, ones_like, zeros_like
from pullback.ops.primitives.conversion import clone

__all__ = ["elementwise_grad", "grad", "value_and_grad"]

Function = Callable[..., Any]
Argnum = int | Sequence[int]

_RECORDING = {"grad": True, "inference": False}
# Marks the leaf that replaced an argument, once the call that made it has returned.
_CONSTANT = "stood for an argument"
_numpy_scalar = NUMPY.xp.generic


def grad(fun: Function, argnum: Argnum = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        Returns a real scalar Tensor, or with `has_aux` a pair of that and any other object.
    argnum : int or sequence of int, default 0
        The positional arguments to differentiate with respect to. Each may be a Tensor, an array,
        a float, or a tuple, list, dict, NamedTuple or dataclass of those. `fun` is called with
        tensors instead of them.
    has_aux : bool, default False
        Whether `fun` returns a second object besides the scalar.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns the gradient in the structure and type of the
        differentiated argument: an array for an array, a float for a float, zeros if the result
        does not depend on it. If `argnum` is a sequence, a tuple of gradients; with `has_aux` a
        pair of the gradient and the second object. If the gradient can be differentiated again
        (inside an enclosing `grad`, or with respect to a tensor that requires grad among the
        arguments or in the closure), it is a Tensor that is part of the graph.

    Raises
    ------
    DTypeError
        If a differentiated argument holds integers, or the result is complex.
    GraphError
        If the result is not a scalar.
    ArgumentTypeError
        If the result is not a Tensor, so that it depends on no argument.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import grad
    >>> grad(np.tanh)(0.0), grad(grad(np.sin))(np.float64(0.5))
    (1.0, np.float64(-0.479425538604203))
    >>> grad(lambda w: np.sum(w["a"] ** 2))({"a": np.array([1.0, 2.0])})
    {'a': array([2., 4.])}
    """
    return _Transformed(grad, fun, argnum, has_aux)


def value_and_grad(fun: Function, argnum: Argnum = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the value of `fun` and its gradient in one evaluation.

    Parameters and errors are those of `grad`. The value is a Tensor if a differentiated argument
    holds one; otherwise it is a NumPy scalar, or a Python float if all differentiated arguments
    are. With `has_aux` it is a pair of the value and the second object.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import value_and_grad
    >>> value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    return _Transformed(value_and_grad, fun, argnum, has_aux)


def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """Return the derivative of a function that works element by element.

    It is the gradient of the sum of the result. If each element of the result depends on the same
    element of the argument only, element i of the gradient is the derivative at element i.

    Parameters and errors are those of `grad`, except that the result may have any shape.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback import elementwise_grad
    >>> elementwise_grad(np.tanh)(np.array([0.0, 1.0]))
    array([1.        , 0.41997434])
    """
    return _Transformed(elementwise_grad, fun, argnum)


class _Transformed:
    """What a transform makes of a function: pickled and copied as the call that made it."""

    def __init__(
        self, transform: Callable[..., Any], fun: Function, argnum: Argnum, *has_aux: bool
    ) -> None:
        api = transform.__name__
        if not callable(fun):
            raise ArgumentTypeError(compose(api, "a function required", type(fun).__name__))
        self.__name__ = self.__qualname__ = api  # where the function has no name
        functools.update_wrapper(self, fun)
        self._made = (transform, fun, argnum, *has_aux)
        self._api, self._fun, self._has_aux = api, fun, any(has_aux)
        self._several = isinstance(argnum, (tuple, list))
        self._wanted: tuple[Any, ...] = tuple(argnum) if self._several else (argnum,)  # type: ignore[arg-type]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        value, gradients, aux = self._differentiate(args, kwargs)
        if self._made[0] is value_and_grad:
            return ((value, aux) if self._has_aux else value), gradients
        return (gradients, aux) if self._has_aux else gradients

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the method of an instance: in the body of a class this is one, like a function."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        transform, *arguments = self._made
        return transform, tuple(arguments)

    def __repr__(self) -> str:
        fun, argnum = self._fun, self._made[2]
        settings = "" if argnum == 0 else f", argnum={argnum!r}"
        settings += ", has_aux=True" if self._has_aux else ""
        shown = repr(fun) if isinstance(fun, _Transformed) else _name(fun)
        return f"{self._api}({shown}{settings})"

    def _differentiate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Return the value, the gradients and the second object of a call."""
        api, fun = self._api, self._fun
        numbers = [_position(api, n, len(args)) for n in self._wanted]
        if len(set(numbers)) != len(numbers):
            required = "each argument once in argnum required"
            raise ArgumentError(compose(api, required, str(self._wanted)))
        given = [args[n] for n in numbers]
        names = [f"argument {n}" for n in numbers]
        inputs = [
            _input(api, path, leaf)
            for name, value in zip(names, given, strict=True)
            for path, leaf in _named_leaves(name, value)
        ]
        standing = iter([i.tensor for i in inputs])
        args = _replaced(args, numbers, [map_leaves(lambda _: next(standing), g) for g in given])
        mode = STATE.get()
        result = run_in_mode(_RECORDING, fun, *args, **kwargs)
        out, aux = _parts(api, fun, result, self._has_aux)
        _check(api, fun, out, " and ".join(names), self._made[0] is not elementwise_grad)
        keeps = mode.grad and any(_reaches_others(t, inputs) for t in _tracked((out, aux)))
        gradients = iter(_gradients(out, inputs, keeps))
        found = tuple(map_leaves(lambda _: next(gradients), value) for value in given)
        if not keeps:
            out, aux = _value(out, inputs), map_leaves(_detached, aux)
        return out, found if self._several else found[0], aux


# -- the arguments ---------------------------------------------------------------------------------
class _Input(NamedTuple):
    """One leaf of a differentiated argument: the original, and the tensor that replaces it."""

    given: Any
    tensor: Tensor
    place: Tensor  # the leaf itself, in case the function changes the tensor in place


def _position(api: str, number: Any, count: int) -> int:
    if not hasattr(number, "__index__") or isinstance(number, bool):
        came = f"{type(number).__name__} {number!r}"
        raise ArgumentTypeError(compose(api, "argnum of integers required", came))
    if not -count <= number < count:
        required = f"the positional argument that argnum={number} names required"
        hint = "arguments to differentiate with respect to are given by position"
        raise ArgumentError(compose(api, required, f"{count} positional arguments", hint=hint))
    return int(number) % count


def _named_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything that is not a container, each with its path."""
    items = children(value)
    if items is None:
        yield name, value
        return
    by_key = isinstance(value, (dict, list)) or (
        isinstance(value, tuple) and not hasattr(value, "_fields")
    )
    for key, item in items:
        yield from _named_leaves(f"{name}[{key!r}]" if by_key else f"{name}.{key}", item)


def _input(api: str, name: str, given: Any) -> _Input:
    """Return the tensor that replaces an argument: a new leaf, or a clone in the graph."""
    if isinstance(given, Tensor):
        source = given
    elif is_array(given):
        source = asarray(given)
    elif isinstance(given, (int, float, complex, _numpy_scalar)):
        source = box(NUMPY.asarray(given))
    else:
        hint = "give what is constant in another argument, or close over it"
        required = f"floating-point numbers required in {name}"
        raise ArgumentTypeError(compose(api, required, type(given).__name__, hint=hint))
    if not source.dtype.is_inexact:
        came = f"{type(given).__name__} of dtype {source.dtype.name}"
        hint = "only floating-point and complex numbers have a gradient: write 2.0 for 2"
        required = f"floating-point numbers required in {name}"
        raise DTypeError(compose(api, required, came, (name, given), hint=hint))
    if source.requires_grad:
        tensor = run_in_mode(_RECORDING, clone, source)
    else:
        tensor = box(source.data_array(), None, shared_counter(source)).requires_grad_()
    return _Input(given, tensor, box(tensor._data, tensor._node, shared_counter(tensor)))


def _replaced(args: tuple[Any, ...], numbers: list[int], values: list[Any]) -> tuple[Any, ...]:
    result = list(args)
    for number, value in zip(numbers, values, strict=True):
        result[number] = value
    return tuple(result)


# -- the result ------------------------------------------------------------------------------------
def _parts(api: str, fun: Function, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        required = f"a pair (scalar, rest) from {_name(fun)} required with has_aux=True"
        raise ArgumentTypeError(compose(api, required, type(result).__name__))
    return result[0], result[1]


def _name(fun: Function) -> str:
    return str(getattr(fun, "__qualname__", None) or getattr(fun, "__name__", None) or repr(fun))


def _check(api: str, fun: Function, out: Any, arguments: str, scalar: bool) -> None:
    """Raise if the result cannot be differentiated."""
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(
            f"{api}: the result of {_name(fun)} does not depend on {arguments}: it must be a "
            f"Tensor, got {type(out).__name__}.\n"
            "hint: float(), item() and numpy() leave the graph; compute with functions of "
            "pullback or NumPy, and return the scalar alone or set has_aux."
        )
    if out.is_complex() or not out.dtype.is_inexact:
        required = f"a real floating-point result of {_name(fun)} required"
        hint = "take real(), imag() or abs() of it" if out.is_complex() else None
        raise DTypeError(compose(api, required, out.dtype.name, ("result", out), hint=hint))
    if scalar and out.numel() != 1:
        required = f"a scalar result of {_name(fun)} required"
        hint = "reduce it, for instance with sum(), or use elementwise_grad"
        raise GraphError(compose(api, required, f"shape {out.shape}", ("result", out), hint=hint))


def _tracked(value: Any) -> list[Tensor]:
    return [x for x in leaves(value) if isinstance(x, Tensor) and x.requires_grad]


def _reaches_others(tensor: Tensor, inputs: list[_Input]) -> bool:
    """Return whether a tensor depends on a leaf that this call did not make."""
    ours = {i.place._node for i in inputs}
    return any(
        node.__class__ is AccumulateGrad
        and node not in ours
        and not (node.extra is not None and _CONSTANT in node.extra.metadata)
        for node in collect([tensor._node])[0]
    )


def _gradients(out: Tensor, inputs: list[_Input], keeps: bool) -> list[Any]:
    """Return the gradient of each input: in the graph if `keeps`, else of the argument's type."""
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if inputs and out.requires_grad:
        places = [i.place for i in inputs]
        seed = ones_like(out.detach())
        found = engine.grad(out, places, seed, create_graph=keeps, allow_unused=True)
    gradients = [
        zeros_like(i.place.detach()) if g is None else g for i, g in zip(inputs, found, strict=True)
    ]
    if keeps:
        for i in inputs:
            if i.place.is_leaf:
                i.place._node.metadata[_CONSTANT] = True
        return gradients
    return [_as_given(g, i.given) for g, i in zip(gradients, inputs, strict=True)]


def _as_given(gradient: Tensor, given: Any) -> Any:
    if isinstance(given, Tensor):
        return gradient
    if is_array(given):
        return gradient.data_array()
    return gradient.numpy()[()] if isinstance(given, _numpy_scalar) else gradient.item()


def _value(out: Tensor, inputs: list[_Input]) -> Any:
    """Return the value as a Tensor if an argument holds one, else as its library's scalar."""
    given = [i.given for i in inputs]
    if not given or any(isinstance(g, Tensor) for g in given):
        return out.detach()
    array = out.data_array()
    if library_of(array) is not NUMPY:
        return array
    numbers = all(
        isinstance(g, (float, complex)) and not isinstance(g, _numpy_scalar) for g in given
    )
    return array.item() if numbers and array.size == 1 else array[()]


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value
