"""`scipy.integrate`: initial value problems and integrals of samples.

`solve_ivp` is in `initial_values`, `quad` in `quadrature`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.implicit import odeint as integrated
from pullback.interop.scipy.initial_values import solve_ivp
from pullback.interop.scipy.quadrature import quad
from pullback.interop.scipy.reading import as_given, as_scipy, floating, in_one_dtype, refuse
from pullback.ops.functions import scans
from pullback.ops.functions.joining import stack
from pullback.ops.functions.manipulation import moveaxis

__all__ = ["cumulative_trapezoid", "odeint", "quad", "simpson", "solve_ivp", "trapezoid"]


# -- initial value problems ------------------------------------------------------------------------
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
    result = integrated(f, start, times, *args, **bounds)
    return as_scipy(result, [y0, t, *args])


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
    result = ((y[..., 1:] + y[..., :-1]) * steps / 2).cumsum(-1)
    if initial is not None:
        result = _with_zero(result)
    return moveaxis(result, -1, axis)


def _with_zero(totals: Tensor) -> Tensor:
    return stack(
        [totals[..., 0] * 0.0, *(totals[..., i] for i in range(totals.shape[-1]))], axis=-1
    )


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
