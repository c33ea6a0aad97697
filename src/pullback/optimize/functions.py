"""A user's function of a container as functions of a vector, which SciPy calls.

Owns what is kept of a point: the call is recorded once there, and value and derivatives are taken
from that record, each when it is asked for. Must not know which method asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np

from pullback.arrays import is_array
from pullback.core.custom.pytree import flatten, leaves, unflatten
from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    UntrackedTensorWarning,
    compose,
    warn_user,
)
from pullback.implicit.reading import tensor_of
from pullback.ops.functions.creation import ones_like
from pullback.optimize.vector import Array, Vector, flat
from pullback.transforms.api.arguments import Arguments, name_of
from pullback.transforms.api.grad import Gradient
from pullback.transforms.api.jacobian import blocks_of
from pullback.transforms.api.recording import (
    Recording,
    check_real,
    check_scalar,
    check_tensor,
    detached,
    leaves_as_given,
)

__all__ = ["Objective", "Residual"]


class _Point:
    """What is computed at one point, each at most once."""

    def __init__(self, function: _Function, vector: Array) -> None:
        self._function, self.vector = function, vector.copy()
        self.arguments = self._arguments(function.fun)

    @cached_property
    def recording(self) -> Recording:
        """The call, recorded."""
        return Recording(self.arguments)

    @cached_property
    def gradients(self) -> Recording:
        """The gradient of a scalar function, recorded."""
        gradient = Gradient(self._function.transform, self._function.fun, argnum=0)
        return Recording(self._arguments(gradient))

    @cached_property
    def out(self) -> Any:
        """What the function returned: recorded, if derivatives will be asked for."""
        if self._function.recorded:
            return self.recording.out
        return self.arguments.call(self.arguments.sources())

    @cached_property
    def value(self) -> Any:
        """The same as SciPy gets it."""
        return self._function.value_of(self.arguments, self.out)

    @property
    def is_outside(self) -> bool:
        """Whether a number said that the point is outside of the function's domain."""
        return not isinstance(self.out, Tensor)

    @cached_property
    def gradient(self) -> Array:
        """The gradient of a scalar function."""
        out = self.recording.out
        if self.is_outside:
            return np.zeros(self.vector.size)
        return flat(self.recording.pull([out], [ones_like(out.detach())], retain=True))

    def _arguments(self, fun: Callable[..., Any]) -> Arguments:
        container = self._function.vector.container(self.vector)
        return Arguments(self._function.api, fun, 0, (container, *self._function.args), {})


class _Function:
    """What both kinds of functions have in common.

    Parameters
    ----------
    transform : callable
        What the user called; errors name it.
    fun : callable
        The user's function, of a container and `args`.
    args : tuple
    vector : Vector
        The form of the container.
    recorded : bool
        Whether derivatives will be asked for.
    """

    def __init__(
        self,
        transform: Callable[..., Any],
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        vector: Vector,
        recorded: bool = True,
    ) -> None:
        self.transform, self.api = transform, transform.__name__
        if not callable(fun):
            raise ArgumentTypeError(compose(self.api, "a function required", type(fun).__name__))
        self.fun, self.args, self.vector, self.recorded = fun, args, vector, recorded
        self._point: _Point | None = None

    def value_of(self, arguments: Arguments, out: Any) -> Any:
        """Return what the function returned as SciPy gets it."""
        raise NotImplementedError

    def at(self, vector: Array) -> _Point:
        """Return what is known of a point; the last one is kept."""
        if self._point is None or not np.array_equal(self._point.vector, vector):
            self._point = _Point(self, vector)
        return self._point

    @no_grad()
    def value(self, vector: Array) -> Any:
        """Return the value."""
        return self.at(vector).value

    def begin(self) -> None:
        """Compute the value where the search starts, and warn of gradients that would be lost."""
        point = self.at(self.vector.start)
        out = point.out  # in the caller's mode
        if isinstance(out, float) and not math.isfinite(out):
            required = f"a finite value of {name_of(self.fun)} at {self.vector.name} required"
            hint = "start where the function is defined"
            raise ArgumentError(compose(self.api, required, str(out), hint=hint))
        if point.recording.keeps if self.recorded else _requires_grad(out):
            warn_user(
                f"{self.api}: {name_of(self.fun)} depends on a tensor that requires grad; the "
                "solution carries no gradient to it.\nhint: pullback.implicit has solutions with "
                "derivatives; detach() the tensor where none is needed.",
                UntrackedTensorWarning,
            )
        self.value(self.vector.start)


class Objective(_Function):
    """A scalar function, of which there may be derivatives of first and second order.

    Attributes
    ----------
    lowest : float
        The lowest value so far.
    """

    lowest = math.inf

    def value_of(self, arguments: Arguments, out: Any) -> float:
        """Return the value; an infinite or undefined number marks what is outside of the domain."""
        if isinstance(out, tuple):
            required = f"the value alone required from {name_of(self.fun)}"
            hint = "derivatives are filled in: give f in place of pb.value_and_grad(f)"
            raise ArgumentTypeError(compose(self.api, required, "a tuple", hint=hint))
        outside = isinstance(out, float) and not math.isfinite(out) and self.lowest < math.inf
        if not self.recorded or outside:
            out = _tensor_of(arguments, out)
        check_tensor(arguments, out, "return the value")
        check_scalar(arguments, out, "least_squares or root")
        if self.recorded or out.is_complex():
            check_real(arguments, out)
        value = float(flat([out])[0])
        self.lowest = min(self.lowest, value)
        return value

    @no_grad()
    def gradient(self, vector: Array) -> Array:
        """Return the gradient."""
        return self.at(vector).gradient

    @no_grad()
    def hessian(self, vector: Array) -> Array:
        """Return the matrix of second derivatives."""
        if self.at(vector).is_outside:
            return np.zeros((vector.size, vector.size))
        return _matrix(self.at(vector).gradients)

    @no_grad()
    def product(self, vector: Array, direction: Array) -> Array:
        """Return the product of that matrix and a vector."""
        if self.at(vector).is_outside:
            return np.zeros(vector.size)
        recording = self.at(vector).gradients
        container = self.vector.container(np.ravel(direction))
        along = Arguments(self.api, self.fun, 0, (container,), {}).sources()
        pairs = zip(leaves(recording.out), along, strict=True)
        chosen = [(gradient, v) for gradient, v in pairs if v is not None]
        return flat(recording.pull([g for g, _ in chosen], [v for _, v in chosen], retain=True))


class Residual(_Function):
    """A function of any number of results: an array, a number, or a container of those.

    Attributes
    ----------
    form : Vector or None
        The form of the results, once there were some.
    """

    form: Vector | None = None

    def value_of(self, arguments: Arguments, out: Any) -> Array:
        """Return the results, one after the other."""
        tensors = [_tensor_of(arguments, leaf) for leaf in leaves(out)]
        for tensor in tensors:
            check_real(arguments, tensor)
        if self.form is None:
            result, structure = flatten(out)
            value = leaves_as_given(detached(result), arguments.leaves)
            value = unflatten(structure, value)
            self.form = Vector(self.api, f"the result of {name_of(self.fun)}", value)
        return flat(tensors)

    @no_grad()
    def jacobian(self, vector: Array) -> Array:
        """Return the matrix of first derivatives, of the results by the numbers of the vector."""
        return _matrix(self.at(vector).recording)

    def as_returned(self, values: Array) -> Any:
        """Return results in the form in which the function returned them."""
        assert self.form is not None
        return self.form.as_given(values)

    def weighted(self, weights: Array) -> Objective:
        """Return the sum of the results, each times a weight, as a function of the container."""
        assert self.form is not None
        factors = list(leaves(self.form.container(weights)))

        def total(*arguments: Any) -> Any:
            parts = zip(leaves(self.fun(*arguments)), factors, strict=True)
            return sum((tensor_of(part) * factor).sum() for part, factor in parts)

        return Objective(self.transform, total, self.args, self.vector)


def _matrix(recording: Recording) -> Array:
    """Return the derivatives of a recorded result by what it was computed from, as a matrix."""
    rows = [
        np.hstack([flat([b]).reshape((-1, i.leaf.numel())) for b, i in pairs])
        for pairs in (
            list(zip(blocks, recording.inputs, strict=True)) for blocks in blocks_of(recording)
        )
    ]
    return np.vstack(rows)


def _tensor_of(arguments: Arguments, leaf: Any) -> Tensor:
    """Return a leaf of a result as a tensor, or raise."""
    if is_array(leaf) or isinstance(leaf, Number):
        return tensor_of(float(leaf) if isinstance(leaf, int) else leaf)
    check_tensor(arguments, leaf, "return numbers, or containers of numbers")
    return leaf  # type: ignore[no-any-return]


def _requires_grad(out: Any) -> bool:
    return any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves(out))
