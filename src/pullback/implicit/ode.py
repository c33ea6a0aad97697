"""Ordinary differential equations, differentiated by the adjoint of the steps that were taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ConvergenceError, compose
from pullback.implicit.limits import solution_at, solution_from
from pullback.implicit.reading import state_of, tensor_of
from pullback.ops.declare import sampled
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.data_types import finfo
from pullback.ops.functions.joining import stack
from pullback.transforms.api.arguments import name_of
from pullback.transforms.api.checkpoint import checkpoint
from pullback.transforms.api.recording import value_as_given

__all__ = ["odeint"]

# Dormand and Prince (1980), A family of embedded Runge-Kutta formulae,
# doi:10.1016/0771-050X(80)90013-3
_A = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_C = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0)
_B = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_FOURTH = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
_MOST = 100_000  # steps


@sampled
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *theta: Any,
    rtol: float | None = None,
    atol: float | None = None,
) -> Any:
    """Solve ``dy/dt = f(y, t, *theta)`` from ``y(t[0]) = y0``.

    Parameters
    ----------
    f : callable
        Returns the shape of `y0`.
    y0 : array or Tensor
        The values at the first time, of any shape.
    t : array or Tensor
        Times, of one axis, increasing or decreasing; the first belongs to `y0`.
    *theta : any
        Parameters.
    rtol, atol : float, optional
        Bounds of the error of a step, relative to `y` and absolute; by default the root of the
        dtype's rounding unit, and a hundredth of that.

    Returns
    -------
    array or Tensor
        The solution at each time, of the shape ``t.shape + y0.shape``. It has derivatives of any
        order by `y0`, `t`, theta and what `f` closes over.

    Raises
    ------
    ConvergenceError
        If the steps become too small or too many.
    ArgumentError
        If the times do not increase or decrease.

    Notes
    -----
    The steps are chosen unrecorded; backward is the adjoint of these steps, which is exact for the
    numbers that were computed: Hager (2000), Runge-Kutta methods in optimal control and the
    transformed adjoint system, doi:10.1007/s002110000178. A step keeps y alone and runs once more.

    The derivatives by times are those of the solution, ``dy(t)/dt = f(y(t), t)`` and ``dy(t)/dt0 =
    -dy(t)/dy0 f(y0, t0)``: a first derivative needs none of `f` by t, which may be infinite there.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def end(rate):
    ...     return pb.implicit.odeint(lambda y, t, k: -k * y, 1.0, np.array([0.0, 1.0]), rate)[-1]
    >>> round(float(end(2.0)), 6), round(pb.grad(end)(2.0), 6)
    (0.135335, -0.135335)
    """
    if not callable(f):
        raise ArgumentTypeError(compose("odeint", "a function required", type(f).__name__))
    times, y = tensor_of(t), state_of(y0, theta)
    if not y.dtype.is_inexact:
        required, hint = "floating-point numbers required in y0", "write 1.0 for 1"
        raise ArgumentTypeError(compose("odeint", required, y.dtype.name, hint=hint))
    steps = times[1:].detach() - times[:-1].detach()
    if times.ndim != 1 or not (bool((steps > 0).all()) or bool((steps < 0).all())):
        required = "increasing or decreasing times of one axis required in t"
        raise ArgumentError(compose("odeint", required, f"shape {tuple(times.shape)}", ("t", t)))

    def step(y: Any, start: Any, length: Any) -> Any:
        return _advanced(f, theta, y, start, length)[0]

    def slope(y: Any, at: Any) -> Any:
        return asarray(f(y, at, *theta))

    rtol = float(finfo(y.dtype).eps) ** 0.5 if rtol is None else rtol
    atol = rtol / 100 if atol is None else atol
    checkpointed, result, size = checkpoint(step), [y], 1.0
    values, y = times.detach(), solution_from(slope, y, times[0])
    for k in range(times.numel() - 1):
        start, whole = values[k], values[k + 1] - values[k]
        with no_grad():
            shares, size = _shares(f, theta, y, start, whole, size, (rtol, atol))
        done = 0.0
        for share in shares:
            y = checkpointed(y, start + done * whole, share * whole)
            done += share
        result.append(solution_at(slope, y, times[k + 1]))
    return value_as_given(stack(result), [y0, *theta])


def _advanced(f: Any, theta: Any, y: Any, start: Any, length: Any) -> tuple[Any, Any]:
    """Return y after one step, and its slopes."""
    slopes: list[Any] = []
    for row, c in zip(_A, _C, strict=True):
        at = y
        for a, slope in zip(row, slopes, strict=True):
            at = at + (length * a) * slope
        slopes.append(asarray(f(at, start + c * length, *theta)))
    for b, slope in zip(_B, slopes, strict=True):
        if b:
            y = y + (length * b) * slope
    return y, slopes


def _shares(
    f: Any, theta: Any, y: Any, start: Any, whole: Any, size: float, bounds: tuple[float, float]
) -> tuple[list[float], float]:
    """Return the lengths of the steps from one time to the next, as shares of the whole."""
    y, start, whole = y.detach(), start.detach(), whole.detach()
    shares: list[float] = []
    done = 0.0
    while done < 1.0 - 1e-12:
        share = min(size, 1.0 - done)
        result, slopes = _advanced(f, theta, y, start + done * whole, share * whole)
        result = result.detach()
        last = asarray(f(result, start + (done + share) * whole, *theta))
        error = _error(y, result, [*slopes, last], share * whole, bounds)
        if error <= 1.0:
            shares.append(share)
            y, done = result, done + share
        # Of fifth order; a factor that the next step is likely to be accepted with.
        factor = 5.0 if error == 0 else min(5.0, max(0.2, 0.9 * error**-0.2))
        size = share * factor if error == error else share * 0.2
        if size < 1e-12 or len(shares) > _MOST:
            required = f"steps above 1e-12 of the time between outputs required for {name_of(f)}"
            hint = "the solution may blow up or be stiff; raise rtol and atol"
            raise ConvergenceError(compose("odeint", required, f"{size:.3g}", hint=hint))
    return shares, size


def _error(
    y: Tensor, y_next: Tensor, slopes: list[Any], length: Any, bounds: tuple[float, float]
) -> float:
    """Return the error of a step, 1 where it is just allowed."""
    weights = zip((*_B, 0.0), _FOURTH, slopes, strict=True)
    error = length * sum((b - low) * slope.detach() for b, low, slope in weights)
    scale = bounds[1] + bounds[0] * abs(y_next).maximum(abs(y))
    return float(abs(error / scale).max()) if y.numel() else 0.0
