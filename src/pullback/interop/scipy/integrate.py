"""`scipy.integrate`: initial value problems and integrals of samples.

SciPy chooses the steps of `solve_ivp`, on values; they are taken again on tensors. The derivatives
are those of the numbers that were computed, of every order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as theirs

from pullback.arrays import real_of
from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.implicit import odeint as integrated
from pullback.interop.scipy import runge_kutta
from pullback.interop.scipy.reading import as_given, floating, in_one_dtype, refuse
from pullback.interop.scipy.runge_kutta import METHODS, Step, stepped
from pullback.ops.functions import scans
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.joining import stack
from pullback.ops.functions.manipulation import moveaxis
from pullback.transforms.results import value_as_given

__all__ = ["cumulative_trapezoid", "odeint", "simpson", "solve_ivp", "trapezoid"]


# -- initial value problems ------------------------------------------------------------------------
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    **options: Any,
) -> Any:
    """Solve ``dy/dt = fun(t, y, *args)``, as `scipy.integrate.solve_ivp`.

    Parameters
    ----------
    fun : callable
        Is given t as a tensor of shape () and y as one of shape (n,), and returns the shape of y.
    t_span : (number, number)
        May be tensors.
    y0 : (n,) array or Tensor
    method : str
        ``"RK45"``, ``"RK23"`` or ``"DOP853"``.
    t_eval : array or Tensor, optional
        Times at which y is returned.
    dense_output : bool
        Whether the result has a function ``sol(t)``.
    args : tuple, optional
    **options
        SciPy's: `rtol`, `atol`, `first_step`, `max_step`.

    Returns
    -------
    OdeResult
        SciPy's, with tensors for `y` (and `t`, where the times are tensors) where one came in or
        `fun` depends on one. It has derivatives by `y0`, `args`, `t_span`, `t_eval` and what `fun`
        closes over.

    Raises
    ------
    ArgumentError
        If an implicit method or events are asked for.

    Examples
    --------
    >>> import pullback as pb
    >>> rate = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    >>> solve_ivp = pb.interop.scipy.integrate.solve_ivp
    >>> end = solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0], rtol=1e-9, atol=1e-9).y[0, -1]
    >>> end.backward()
    >>> print(round(end.item(), 6), round(rate.grad.item(), 6))
    0.135335 -0.135335
    """
    _check(fun, method, events, vectorized)
    args = () if args is None else tuple(args)
    y = floating(y0)
    if y.ndim != 1:
        raise ShapeError(compose("solve_ivp", "y0 of one axis required", f"{tuple(y.shape)}"))

    def slope(t: Any, at: Any) -> Any:
        # A number of Python would have the default precision beside a tensor.
        now = t if isinstance(t, Tensor) else asarray(np.asarray(t)).to(real_of(y.dtype))
        return asarray(fun(now, at, *args))

    found = theirs.solve_ivp(
        _on_values(slope, y), [_number(t) for t in t_span], y.detach().numpy(), method, **options
    )
    times, curved = _times(t_span, found.t), t_eval is not None or dense_output
    steps = _replayed(METHODS[method], slope, times, y, curved)
    curve = Curve(METHODS[method], steps, found.t, y)
    if t_eval is None:
        found.y = stack([y, *(step.after for step in steps)], axis=1)
        if isinstance(times[-1], Tensor):
            found.t = stack([asarray(time) for time in times])
    else:
        found.t = _reached(t_eval, found.t, t_span)
        found.y = curve(found.t)
    found.y = value_as_given(found.y, [*t_span, y0, t_eval, *args])
    found.sol = curve if dense_output else None
    return found


def _reached(t_eval: Any, times: Any, t_span: Any) -> Any:
    """Return those of the times wanted that the steps reached: all, unless SciPy gave up."""
    wanted, way = _number(t_eval), 1 if times[-1] >= times[0] else -1
    low, high = sorted(float(_number(t)) for t in t_span)
    ordered = wanted.ndim == 1 and bool(np.all(np.diff(way * wanted) > 0))
    if not ordered or np.any((wanted < low) | (wanted > high)):
        required = f"times of one axis from {low} to {high}, in order, required in t_eval"
        raise ArgumentError(compose("solve_ivp", required, "others"))
    reached = way * wanted <= way * times[-1]
    return (t_eval if isinstance(t_eval, Tensor) else wanted)[: int(reached.sum())]


def _check(fun: Any, method: Any, events: Any, vectorized: bool) -> None:
    if not callable(fun):
        raise ArgumentTypeError(compose("solve_ivp", "a function required", type(fun).__name__))
    if method not in METHODS:
        required = f"an explicit method, {', '.join(METHODS)}, required"
        hint = "implicit.root solves the equations of implicit steps with derivatives"
        raise ArgumentError(compose("solve_ivp", required, repr(method), hint=hint))
    if events is not None or vectorized:
        required, came = "no events and vectorized=False required", "another call"
        hint = "find the event with scipy.integrate on values, then integrate up to it"
        raise ArgumentError(compose("solve_ivp", required, came, hint=hint))


def _number(value: Any) -> Any:
    """Return values without history."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    return np.asarray(value, dtype=float)


def _on_values(slope: Callable[..., Any], like: Tensor) -> Callable[..., Any]:
    """Return the function of arrays that SciPy calls."""

    def call(t: float, y: Any) -> Any:
        with no_grad():
            return slope(t, asarray(y).to(like.dtype)).detach().numpy()

    return call


def _times(t_span: Any, times: Any) -> list[Any]:
    """Return the times of the steps, as shares of a span that has a derivative."""
    first, last = t_span
    if not isinstance(first, Tensor) and not isinstance(last, Tensor):
        return [float(t) for t in times]
    whole = float(_number(last)) - float(_number(first))
    return [first + (last - first) * ((float(t) - float(times[0])) / whole) for t in times]


def _replayed(method: Any, f: Any, times: list[Any], y: Tensor, curved: bool) -> list[Step]:
    """Take the steps on tensors; the last slope of each is the first of the next."""
    steps: list[Step] = []
    slope = f(times[0], y)
    for start, end in itertools.pairwise(times):
        step = stepped(method, f, start, end - start, y, slope, curved)
        y, slope = step.after, step.slopes[-1]
        steps.append(step)
    return steps


class Curve:
    """The solution between its steps, a function of time."""

    def __init__(self, method: Any, steps: list[Step], times: Any, y: Tensor) -> None:
        self._method, self._steps, self._y = method, steps, y
        self.ts = times

    def __call__(self, t: Any) -> Any:
        """Return y at a time, of shape (n,), or at several, of shape (n, m)."""
        if np.ndim(t) == 0:
            return self._at(t)
        return stack([self._at(t[i]) for i in range(len(t))], axis=1)

    def _at(self, t: Any) -> Tensor:
        way = 1 if self.ts[-1] >= self.ts[0] else -1
        place = int(np.searchsorted(way * self.ts, way * _number(t), side="left")) - 1
        if not self._steps:
            return self._y
        step = self._steps[min(max(place, 0), len(self._steps) - 1)]
        return runge_kutta.at(step, self._method, t if isinstance(t, Tensor) else float(t))


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    *,
    tfirst: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
) -> Any:
    """Solve ``dy/dt = func(y, t, *args)``, as `scipy.integrate.odeint`.

    By the method of Dormand and Prince, where SciPy has LSODA: values agree to the tolerances,
    which are SciPy's 1.49e-8 by default. See `pb.implicit.odeint`.

    Examples
    --------
    >>> import pullback as pb
    >>> import numpy as np
    >>> odeint = pb.interop.scipy.integrate.odeint
    >>> y = odeint(lambda y, t, k: -k * y, [1.0], np.array([0.0, 1.0]), args=(2.0,))
    >>> y.shape, round(float(y[-1, 0]), 6)
    ((2, 1), 0.135335)
    """
    f = (lambda y, t, *rest: func(t, y, *rest)) if tfirst else func
    tolerance = 1.49012e-8
    bounds = {
        "rtol": tolerance if rtol is None else rtol,
        "atol": tolerance if atol is None else atol,
    }
    start, times = floating(y0), floating(t)
    start = start if start.ndim else start.reshape((1,))
    found = integrated(f, start, times, *args, **bounds)
    return value_as_given(found, [y0, t, *args])


# -- integrals of samples --------------------------------------------------------------------------
@as_given
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral of samples by the trapezoidal rule, as `scipy.integrate.trapezoid`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.integrate.trapezoid(pb.tensor([1.0, 3.0]))
    tensor(2.)
    """
    if x is None:
        return scans.trapezoid(floating(y), dim=axis) * dx
    y, x = in_one_dtype(y, x)
    return scans.trapezoid(y, x, dim=axis)


@as_given
def cumulative_trapezoid(
    y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Any:
    """Return the integrals up to each sample, as `scipy.integrate.cumulative_trapezoid`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.integrate.cumulative_trapezoid(pb.tensor([1.0, 3.0, 5.0]))
    tensor([2., 6.])
    """
    if initial not in (None, 0):
        required = "initial None or 0 required"
        raise ArgumentError(compose("cumulative_trapezoid", required, repr(initial)))
    y, x = _along(y, x, axis)
    steps = dx if x is None else x[..., 1:] - x[..., :-1]
    found = ((y[..., 1:] + y[..., :-1]) * steps / 2).cumsum(-1)
    if initial is not None:
        found = _with_zero(found)
    return moveaxis(found, -1, axis)


def _with_zero(found: Tensor) -> Tensor:
    return stack([found[..., 0] * 0.0, *(found[..., i] for i in range(found.shape[-1]))], axis=-1)


def _along(y: Any, x: Any, axis: int) -> tuple[Tensor, Any]:
    """Return the samples with their axis last, and where they are, beside them."""
    if x is None:
        return moveaxis(floating(y), axis, -1), None
    y, x = in_one_dtype(y, x)
    y = moveaxis(y, axis, -1)
    x = moveaxis(x, axis, -1) if x.ndim > 1 else x
    if x.shape[-1] != y.shape[-1]:
        required = f"as many places in x as samples, {y.shape[-1]}, required"
        raise ShapeError(compose("integrate", required, str(x.shape[-1])))
    return y, x


@as_given
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the integral of samples by Simpson's rule, as `scipy.integrate.simpson`.

    An even number of samples gets Cartwright's correction of the last interval.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.integrate.simpson(pb.tensor([0.0, 1.0, 4.0]))
    tensor(2.6667)
    """
    y, x = _along(y, x, axis)
    n = y.shape[-1]
    widths = None if x is None else x[..., 1:] - x[..., :-1]
    if n == 1:
        return y[..., 0] * 0.0
    if n == 2:
        width = dx if widths is None else widths[..., 0]
        return (y[..., 0] + y[..., 1]) * width / 2
    if n % 2:
        return _parabolas(y, widths, dx)
    inner = None if widths is None else widths[..., :-1]
    h0, h1 = (dx, dx) if widths is None else (widths[..., -2], widths[..., -1])
    last = y[..., -1] * ((2 * h1**2 + 3 * h0 * h1) / (6 * (h0 + h1)))
    last = last + y[..., -2] * ((h1**2 + 3 * h0 * h1) / (6 * h0))
    last = last - y[..., -3] * (h1**3 / (6 * h0 * (h0 + h1)))
    return _parabolas(y[..., :-1], inner, dx) + last


def _parabolas(y: Tensor, widths: Any, dx: Any) -> Any:
    """Return the integral of the parabolas through each three neighbours."""
    y0, y1, y2 = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if widths is None:
        return (y0 + 4 * y1 + y2).sum(-1) * (dx / 3)
    h0, h1 = widths[..., ::2], widths[..., 1::2]
    both, ratio = h0 + h1, h0 / h1
    terms = y0 * (2 - 1 / ratio) + y1 * (both * both / (h0 * h1)) + y2 * (2 - ratio)
    return (terms * both / 6).sum(-1)


def __getattr__(name: str) -> Any:
    return refuse(__name__, __all__, name)
