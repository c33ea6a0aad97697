"""Constraints: SciPy's, of functions of the container, with the derivatives that they lack."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.extras import optional
from pullback.implicit.reading import tensor_of
from pullback.optimize.functions import Residual
from pullback.optimize.vector import Array, Vector, flat

__all__ = ["constraints_of"]

_NUMERICAL = "2-point"  # what a constraint has by default


def constraints_of(
    transform: Callable[..., Any], constraints: Any, vector: Vector, scipy: Any, order: int
) -> list[Any]:
    """Return constraints on the vector for constraints on the container.

    Parameters
    ----------
    transform : callable
        What the user called.
    given : any
        A constraint, or a sequence: dicts, `NonlinearConstraint`, `LinearConstraint` (whose matrix
        has a column for each number of the vector).
    vector : Vector
    scipy : module
        ``scipy.optimize``.
    order : int
        Of the highest derivatives that the method takes.
    """
    several = isinstance(constraints, (list, tuple))
    result = []
    for item in constraints if several else [constraints]:
        if isinstance(item, scipy.LinearConstraint):
            result.append(item)
        elif isinstance(item, dict):
            result.append(_of_dict(transform, item, vector, order > 0))
        elif isinstance(item, scipy.NonlinearConstraint):
            result.append(_nonlinear(transform, item, vector, scipy, order))
        else:
            required = "dicts, NonlinearConstraint or LinearConstraint required in constraints"
            raise ArgumentTypeError(compose(transform.__name__, required, type(item).__name__))
    return result


def _of_dict(
    transform: Callable[..., Any], item: dict[str, Any], vector: Vector, recorded: bool
) -> dict[str, Any]:
    if not {"type", "fun"} <= item.keys():
        required = "a dict with 'type' ('eq' or 'ineq') and 'fun' required as a constraint"
        came = f"one of {', '.join(map(repr, item)) or 'nothing'}"
        raise ArgumentError(compose(transform.__name__, required, came))
    if str(item["type"]).lower() not in ("eq", "ineq"):
        required = "'eq' or 'ineq' required as the type of a constraint"
        raise ArgumentError(compose(transform.__name__, required, repr(item["type"])))
    args = item.get("args", ())
    args = args if isinstance(args, tuple) else (args,)
    function = _function(transform, item["fun"], args, vector, recorded)
    result = {"type": item["type"], "fun": function.value}
    if recorded:
        result["jac"] = _jacobian(function, item.get("jac"), args)
    return result


def _nonlinear(
    transform: Callable[..., Any], item: Any, vector: Vector, scipy: Any, order: int
) -> Any:
    function = _function(transform, item.fun, (), vector, order > 0)
    result = copy.copy(item)
    result.fun = function.value
    if callable(item.jac) or (order > 0 and item.jac == _NUMERICAL):
        result.jac = _jacobian(function, item.jac, ())
    if callable(item.hess):
        result.hess = lambda x, weights: item.hess(vector.container(x), weights)
    elif order > 1 and type(item.hess) is scipy.BFGS:  # what a constraint has by default
        result.hess = _curvature(function, vector)
    return result


def _function(
    transform: Callable[..., Any], fun: Any, args: tuple[Any, ...], vector: Vector, recorded: bool
) -> Residual:
    """Return the function of a constraint, computed once where the search starts."""
    function = Residual(transform, fun, args, vector, recorded)
    function.begin()
    return function


def _jacobian(function: Residual, jac: Any, args: tuple[Any, ...]) -> Any:
    """Return the Jacobian of a constraint, or its own: a container or a matrix."""
    if not callable(jac):
        return function.jacobian
    vector = function.vector

    def own(x: Array) -> Array:
        result = jac(vector.container(x), *args)
        pairs = zip(vector.matched("derivatives", "jac", result), vector.shapes(), strict=True)
        wanted = [(item, math.prod(shape)) for (_, item), shape in pairs if shape is not None]
        sizes = [size for _, size in wanted]
        parts = [flat([tensor_of(item)]) for item, _ in wanted if item is not None]
        rows = sum(part.size for part in parts) // vector.size
        if [part.size for part in parts] != [rows * size for size in sizes]:
            required = f"derivatives by {vector.size} numbers required from jac of a constraint"
            came = f"{sum(part.size for part in parts)} numbers"
            raise ShapeError(compose(function.api, required, came))
        return np.hstack([part.reshape((rows, -1)) for part in parts])

    return own


def _curvature(function: Residual, vector: Vector) -> Any:
    """Return the second derivatives of a constraint as SciPy asks for them."""
    linear = optional(function.api, "scipy.sparse.linalg", "SciPy", "scipy")

    def curvature(x: Array, weights: Array) -> Any:
        weighted, at = function.weighted(weights), x.copy()
        return linear.LinearOperator(
            (vector.size, vector.size), matvec=lambda v: weighted.product(at, v), dtype=np.float64
        )

    return curvature
