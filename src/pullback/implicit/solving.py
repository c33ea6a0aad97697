"""Solutions of equations, differentiable by the implicit function theorem.

Owns the iterations, which are not recorded. The derivatives of what they find are `solution`'s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Never

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ConvergenceError, ShapeError, compose
from pullback.implicit.reading import state_of, tensor_of
from pullback.implicit.refinement import Residual, jacobian_of
from pullback.implicit.solution import solution
from pullback.ops.declare import sampled
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.data_types import finfo
from pullback.ops.functions.diagonals import diag
from pullback.ops.functions.linear_algebra import eigvalsh
from pullback.ops.functions.matrix_functions import cholesky_solve
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.decompositions import cholesky
from pullback.ops.primitives.solving import solve
from pullback.transforms.api.arguments import name_of
from pullback.transforms.api.grad import grad
from pullback.transforms.api.recording import value_as_given

__all__ = ["argmin", "fixed_point", "linear_solve", "root"]

_HALVINGS = 30
_GROWTH = 10.0  # of the share that makes a Hessian positive
_LOCAL = 1e-3  # a step, relative to x, after which a smaller gradient says that the minimum is near


# -- what is solved --------------------------------------------------------------------------------
@sampled
def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    *theta: Any,
    tol: float | None = None,
    max_iter: int = 1000,
    **others: Never,
) -> Any:
    """Solve ``x = f(x, *theta)`` by iterating `f`.

    Parameters
    ----------
    f : callable
        A contraction near the solution; returns the shape of `x0`.
    x0 : array or Tensor
        Where to start; the solution has no derivative by it.
    *theta : any
        Parameters. It has derivatives of any order by them and by what `f` closes over.
    tol : float, optional
        The largest change of an element, relative to 1 and its size, in the last iteration; by
        default the rounding unit of the dtype to the power of 2/3.
    max_iter : int
        The most iterations.
    **others : any
        None: an error names what has SciPy's arguments.

    Returns
    -------
    array or Tensor
        The solution, of the shape of `x0`.

    Raises
    ------
    ConvergenceError
        If it did not converge.
    ShapeError
        If `f` returns another shape.

    Notes
    -----
    By the implicit function theorem dx = (1 - df/dx)^-1 df/dtheta dtheta: Christianson (1994),
    Reverse accumulation and attractive fixed points, doi:10.1080/10556789408805572. The Jacobian
    is a dense matrix of the elements of x.

    Examples
    --------
    >>> import pullback as pb
    >>> import numpy as np
    >>> def square_root(a):
    ...     return pb.implicit.fixed_point(lambda x, a: (x + a / x) / 2, 1.0, a)
    >>> square_root(4.0), pb.grad(square_root)(4.0)
    (2.0, 0.25)
    """
    _refuse("fixed_point", others)
    start = _start("fixed_point", f, x0, theta)

    def residual(x: Any) -> Any:
        return x - _of_shape("fixed_point", f, x, theta)

    with no_grad():
        x = start
        for _ in range(max_iter):
            change = residual(x).detach()
            x = x - change
            if _is_small(change, x, _tolerance(tol, x)):
                break
        else:
            raise _not_converged("fixed_point", f, max_iter, _size(change))
    return value_as_given(solution("fixed_point", residual, x), [x0, *theta])


@sampled
def root(
    f: Callable[..., Any],
    x0: Any,
    *theta: Any,
    tol: float | None = None,
    max_iter: int = 100,
    **others: Never,
) -> Any:
    """Solve ``f(x, *theta) = 0`` by Newton's method with halved steps.

    Parameters
    ----------
    f : callable
        Returns the shape of `x0`.
    x0, *theta, tol, max_iter, **others
        As in `fixed_point`; `tol` is for the step.

    Returns
    -------
    array or Tensor
        The solution, of the shape of `x0`.

    Raises
    ------
    ConvergenceError
        If it did not converge.
    ShapeError
        If `f` returns another shape.

    Examples
    --------
    >>> import pullback as pb
    >>> def cube_root(a):
    ...     return pb.implicit.root(lambda x, a: x**3 - a, 1.0, a)
    >>> round(cube_root(8.0), 6), round(pb.grad(cube_root)(8.0), 6)
    (2.0, 0.083333)
    """
    _refuse("root", others)
    start = _start("root", f, x0, theta)

    def residual(x: Any) -> Any:
        return _of_shape("root", f, x, theta)

    with no_grad():
        x = _newton(f, residual, start, _tolerance(tol, start), max_iter)
    return value_as_given(solution("root", residual, x), [x0, *theta])


@sampled
def linear_solve(matvec: Callable[..., Any], b: Any, *theta: Any) -> Any:
    """Solve ``matvec(x, *theta) = b``, which is linear in x.

    Parameters
    ----------
    matvec : callable
        Returns the shape of `b`.
    b : array or Tensor
        The right-hand side, of any shape.
    *theta : any
        As in `fixed_point`; the solution has derivatives by `b` as well.

    Returns
    -------
    array or Tensor
        The solution, of the shape of `b`.

    Raises
    ------
    ShapeError
        If `matvec` returns another shape.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> d = np.array([2.0, 4.0])
    >>> pb.implicit.linear_solve(lambda x, d: d * x, np.array([1.0, 1.0]), d)
    array([0.5 , 0.25])
    """
    right = tensor_of(b)

    def residual(x: Any) -> Any:
        return _of_shape("linear_solve", matvec, x, theta) - right

    with no_grad():
        zero = _start("linear_solve", matvec, b, theta) * 0
        matrix = jacobian_of(residual, zero)
        x = zero - _step("linear_solve", matvec, matrix, residual(zero))
    return value_as_given(solution("linear_solve", residual, x), [b, *theta])


@sampled
def argmin(
    f: Callable[..., Any],
    x0: Any,
    *theta: Any,
    tol: float | None = None,
    max_iter: int = 100,
    **others: Never,
) -> Any:
    """Return the x near `x0` that minimises the scalar ``f(x, *theta)``.

    Newton's method, with a share of its diagonal added to the Hessian until a step descends.

    Parameters
    ----------
    f : callable
        Returns a scalar; twice differentiable, with a Hessian that can be inverted at the minimum.
    x0, *theta, tol, max_iter, **others
        As in `fixed_point`; `tol` is for the step.

    Returns
    -------
    array or Tensor
        The minimiser, of the shape of `x0`.

    Raises
    ------
    ConvergenceError
        If it did not converge.

    Examples
    --------
    >>> import pullback as pb
    >>> def mean(a):
    ...     return pb.implicit.argmin(lambda x, a: ((x - a) ** 2).sum(), 0.0, a)
    >>> pb.grad(mean)(pb.tensor([1.0, 3.0]))
    tensor([0.5000, 0.5000])
    """
    _refuse("argmin", others)
    start = _start("argmin", f, x0, theta)
    residual = grad(lambda x: f(x, *theta))
    with no_grad():
        x = _descend(f, residual, start, theta, _tolerance(tol, start), max_iter)
    return value_as_given(solution("argmin", residual, x), [x0, *theta])


# -- iterations, which are not recorded ------------------------------------------------------------
def _newton(f: Any, residual: Residual, x: Tensor, tol: float, max_iter: int) -> Tensor:
    value = residual(x).detach()
    for _ in range(max_iter):
        if not _size(value):
            return x
        step = _step("root", f, jacobian_of(residual, x), value)
        for halving in range(_HALVINGS):
            moved = x - step * 0.5**halving
            result = residual(moved).detach()
            if _size(result) < _size(value) or _is_small(step, x, tol):
                break
        else:
            if _is_small(step, x, _rounding(x)):
                return x
            raise _not_converged("root", f, max_iter, _size(value))
        x, value = moved, result
        if _is_small(step, x, tol):
            return x
    raise _not_converged("root", f, max_iter, _size(value))


def _descend(
    f: Any, residual: Residual, x: Tensor, theta: Any, tol: float, max_iter: int
) -> Tensor:
    """Return where f is least: Newton's method with a share of its diagonal added to the Hessian.

    Near the minimum rounding hides whether f descends, but not whether its gradient vanishes.
    """
    share = 0.0
    least, slope = _value(f, x, theta), residual(x).detach()
    for _ in range(max_iter):
        hessian = jacobian_of(residual, x).detach()
        if not _size(slope):
            return _if_minimum(hessian, x)
        for _ in range(_HALVINGS):
            matrix = _with_share(hessian, share)
            step = _descent(matrix, slope)
            if step is not None:
                moved = x - step
                value, result = _value(f, moved, theta), residual(moved).detach()
                settled = share == 0 and _is_small(step, x, tol)
                if (
                    settled
                    or value < least
                    or (
                        share == 0
                        and _is_small(step, x, _LOCAL)
                        and _vanishes(matrix, slope, step, result)
                    )
                ):
                    break
            share = max(_GROWTH * share, 1e-3)
        else:
            step = _descent(_with_share(hessian, float(finfo(x.dtype).eps) ** 0.5), slope)
            if step is not None and _is_small(step, x, _rounding(x)):
                return _if_minimum(hessian, x)
            raise _not_converged("argmin", f, max_iter, _size(slope))
        x, least, slope = moved, value, result
        if settled:
            return x
        share = 0.0 if share < 1e-2 else share / _GROWTH
    raise _not_converged("argmin", f, max_iter, _size(slope))


def _value(f: Any, x: Tensor, theta: Any) -> float:
    return float(asarray(f(x, *theta)).detach())


def _with_share(hessian: Tensor, share: float) -> Tensor:
    """Return a Hessian with a share of its diagonal added: so the units of x do not matter."""
    if not share:
        return hessian
    diagonal = abs(hessian.diagonal())
    result: Tensor = hessian + diag(where(diagonal > 0, diagonal, _size(diagonal) or 1.0) * share)
    return result


def _descent(matrix: Tensor, slope: Tensor) -> Tensor | None:
    """Return the step of Newton's method, None if the matrix is not positive definite."""
    try:
        factor = cholesky(matrix)
    except ArgumentError:
        return None
    result: Tensor = cholesky_solve(slope.reshape((-1, 1)), factor).reshape(slope.shape)
    return result


def _vanishes(matrix: Tensor, slope: Tensor, step: Tensor, direction: Tensor) -> bool:
    """Return whether a step has halved the gradient, in the measure of the Hessian."""
    after = _descent(matrix, direction)
    return after is not None and bool((direction * after).sum() < (slope * step).sum() / 4)


def _if_minimum(hessian: Tensor, x: Tensor) -> Tensor:
    """Return where the gradient vanishes, if f does not descend from there."""
    least = float(eigvalsh(hessian).min()) if x.numel() else 0.0
    if least < -(float(finfo(x.dtype).eps) ** 0.5) * _size(hessian):
        required = "a minimum required where the gradient vanishes"
        came = f"a Hessian with the eigenvalue {least:.3g}"
        hint = "x0 is a maximum or a saddle point: start beside it"
        raise ConvergenceError(compose("argmin", required, came, ("x", x), hint=hint))
    return x


def _tolerance(tol: float | None, x: Tensor) -> float:
    return float(finfo(x.dtype).eps) ** (2 / 3) if tol is None else tol


def _rounding(x: Tensor) -> float:
    """Return the size of a last step, relative to x, that no iteration can improve on."""
    rounding: float = float(finfo(x.dtype).eps) ** (1 / 3)
    return rounding


def _step(api: str, f: Any, matrix: Tensor, value: Tensor) -> Tensor:
    try:
        step: Tensor = solve(matrix, value.reshape((-1, 1))).reshape(value.shape).detach()
    except ArgumentError:
        required, hint = "a Jacobian that can be inverted required", "start elsewhere"
        if not _size(matrix):
            required = f"a result of {name_of(f)} that depends on x required"
            hint = "float(), detach() and numpy() leave the graph; or the slope is 0 at this x"
            raise ConvergenceError(compose(api, required, "the derivative 0", hint=hint)) from None
        if api == "linear_solve":
            hint = "the equations contradict each other, or leave x open: add what determines it"
        raise ConvergenceError(compose(api, required, "a singular one", hint=hint)) from None
    return step


def _size(x: Tensor) -> float:
    return float(abs(x).max()) if x.numel() else 0.0


def _is_small(change: Tensor, x: Tensor, tol: float) -> bool:
    return bool((abs(change) <= tol * (1 + abs(x))).all()) and math.isfinite(_size(x))


def _not_converged(api: str, f: Any, max_iter: int, size: float) -> ConvergenceError:
    required = f"{name_of(f)} to converge within {max_iter} iterations required"
    hint = "start nearer to the solution, raise max_iter, or raise tol above rounding"
    if api != "fixed_point":
        hint += "; a singular Jacobian (a multiple root, a flat minimum) makes it slow"
    came = f"a residual of {size:.3g}"
    return ConvergenceError(compose(api, required, came, hint=hint))


# -- reading ---------------------------------------------------------------------------------------
def _refuse(api: str, others: dict[str, Any]) -> None:
    """Raise if there are arguments of SciPy's function of the name."""
    for name in others:
        there = {"root": "root", "argmin": "minimize"}.get(api)
        hint = f"parameters follow x0: {api}(f, x0, a)"
        if there:
            hint += f"; pb.optimize.{there} has SciPy's methods and options, without derivatives"
        required = "no keyword but tol and max_iter required"
        raise ArgumentTypeError(compose(api, required, name, hint=hint))


def _start(api: str, f: Any, x0: Any, theta: Any) -> Tensor:
    if not callable(f):
        raise ArgumentTypeError(compose(api, "a function required", type(f).__name__))
    start = state_of(x0, theta).detach()
    if not start.dtype.is_inexact:
        required, hint = "floating-point numbers required in x0", "write 1.0 for 1"
        raise ArgumentTypeError(compose(api, required, start.dtype.name, hint=hint))
    return start


def _of_shape(api: str, f: Any, x: Any, theta: Any) -> Any:
    value = asarray(f(x, *theta))
    if value.shape != x.shape:
        required = f"a result of the shape {tuple(x.shape)} of {name_of(f)} required"
        raise ShapeError(compose(api, required, str(tuple(value.shape)), ("x", x)))
    return value
