"""`scipy.interpolate`: piecewise cubic curves, differentiable in x, in y and where they are read.

The curves are SciPy's: its equations for the slopes at the knots, and its end conditions.
`interp1d` is in `sampled`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import linalg
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.interop.scipy.linalg import solve_banded
from pullback.interop.scipy.reading import (
    array_as_scipy,
    as_scipy,
    floating,
    in_one_dtype,
    in_one_precision,
    refuse,
)
from pullback.interop.scipy.sampled import interp1d, with_axes_at
from pullback.ops.functions.creation import asarray, zeros
from pullback.ops.functions.joining import concat, stack
from pullback.ops.functions.manipulation import moveaxis, roll
from pullback.ops.functions.pointwise import sign, where
from pullback.ops.primitives.rounding import absolute

__all__ = ["CubicSpline", "PPoly", "PchipInterpolator", "interp1d"]


class PPoly:
    """A piecewise polynomial, as `scipy.interpolate.PPoly`.

    Parameters
    ----------
    c : (k, m, ...) array or Tensor
        The coefficients, the highest power of ``x - x[i]`` first.
    x : (m + 1,) array or Tensor
        Where pieces meet, increasing.
    extrapolate : bool or "periodic"
        Whether the outer pieces go on; NaN is outside otherwise.

    Examples
    --------
    >>> import pullback as pb
    >>> p = pb.interop.scipy.interpolate.PPoly(pb.tensor([[1.0], [2.0]]), pb.tensor([0.0, 1.0]))
    >>> p(pb.tensor([0.5]))
    tensor([2.5000])
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = True, axis: int = 0) -> None:
        self._given = [c, x]
        self._c, self._x = in_one_dtype(c, x)
        self.extrapolate, self.axis = extrapolate, axis

    @property
    def c(self) -> Any:
        """The coefficients."""
        return as_scipy(self._c, self._given)

    @property
    def x(self) -> Any:
        """Where pieces meet."""
        return as_scipy(self._x, self._given)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return the polynomial, or its derivative of order `nu`, at each element of `x`."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if nu:
            return self.derivative(nu)(x, extrapolate=extrapolate)
        at = floating(x)
        shape, flat = at.shape, at.reshape((-1,))
        knots = self._x.detach().numpy()
        if extrapolate == "periodic":
            period = self._x[-1] - self._x[0]
            turns = np.floor((flat.detach().numpy() - knots[0]) / (knots[-1] - knots[0]))
            flat = flat - asarray(turns).to(flat.dtype) * period
        places = flat.detach().numpy()
        cell = np.clip(np.searchsorted(knots, places, side="right") - 1, 0, len(knots) - 2)
        index = asarray(cell)
        rest = self._c.shape[2:]
        step = (flat - self._x[index]).reshape((-1, *(1,) * len(rest)))
        result = self._c[0][index]
        for row in range(1, self._c.shape[0]):
            result = result * step + self._c[row][index]
        if extrapolate is False:
            outside = (places < knots[0]) | (places > knots[-1])
            mask = asarray(outside).reshape(step.shape)
            result = where(mask, math.nan, result)
        result = with_axes_at(result.reshape((*shape, *rest)), len(shape), self.axis)
        return array_as_scipy(result, [*self._given, x])

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative of order `nu`."""
        c = self._c
        for _ in range(nu):
            n = c.shape[0]
            if n == 1:
                c = c * 0.0
                break
            c = stack([c[i] * float(n - 1 - i) for i in range(n - 1)])
        return self._of(c)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the integral from the first knot, of order `nu`."""
        c = self._c
        widths = (self._x[1:] - self._x[:-1]).reshape((-1, *(1,) * (c.ndim - 2)))
        for _ in range(nu):
            n = c.shape[0]
            rows = [c[i] / float(n - i) for i in range(n)]
            ends = rows[0] * widths
            for row in rows[1:]:
                ends = (ends + row) * widths
            sums = ends.cumsum(0)
            c = stack([*rows, concat([sums[:1] * 0.0, sums[:-1]], axis=0)])
        return self._of(c)

    def integrate(self, a: Any, b: Any) -> Any:
        """Return the integral from `a` to `b`; the outer pieces go on."""
        whole = self.antiderivative()
        area = whole(b, extrapolate=True) - whole(a, extrapolate=True)
        return array_as_scipy(area, [*self._given, a, b])

    def _of(self, c: Tensor) -> PPoly:
        spline = PPoly(c, self._x, self.extrapolate, self.axis)
        spline._given = self._given
        return spline


def _samples(api: str, x: Any, y: Any, axis: int) -> tuple[Tensor, Tensor, int]:
    """Return the knots and the samples, their axis in front."""
    x, y = in_one_precision(x, y)
    axis = axis % y.ndim if y.ndim else 0
    y = moveaxis(y, axis, 0) if y.ndim else y
    n = x.shape[0] if x.ndim == 1 else 0
    if n < 2 or not y.ndim or y.shape[0] != n:
        required = "x of one axis and as many samples, two or more, required"
        raise ShapeError(compose(api, required, f"{tuple(x.shape)} and {tuple(y.shape)}"))
    if not bool((x[1:].detach() > x[:-1].detach()).all()):
        raise ArgumentError(compose(api, "increasing x required", "others"))
    return x, y, axis


def _hermite(x: Tensor, y: Tensor, slopes: Tensor) -> Tensor:
    """Return the coefficients of the cubics with these values and slopes."""
    width = (x[1:] - x[:-1]).reshape((-1, *(1,) * (y.ndim - 1)))
    rise = (y[1:] - y[:-1]) / width
    bend = (slopes[:-1] + slopes[1:] - 2 * rise) / width
    second = (rise - slopes[:-1]) / width - bend
    return stack([bend / width, second, slopes[:-1] * 1.0, y[:-1] * 1.0])


class CubicSpline(PPoly):
    """A cubic spline with two continuous derivatives, as `scipy.interpolate.CubicSpline`.

    Parameters
    ----------
    x : (n,) array or Tensor
        Increasing.
    y : array or Tensor
        Samples along `axis`.
    axis : int
    bc_type : str or pair
        ``"not-a-knot"``, ``"natural"``, ``"clamped"``, ``"periodic"``, or a pair of the first two
        or of ``(order, value)``, order 1 or 2: a derivative at the end.
    extrapolate : bool or "periodic", optional

    Raises
    ------
    ShapeError, ArgumentError
        If samples and knots do not fit, or an end condition is unknown.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([0.0, 1.0, 2.0, 3.0])
    >>> spline = pb.interop.scipy.interpolate.CubicSpline(x, x**3)
    >>> spline(pb.tensor([1.5])), spline(pb.tensor([1.5]), 1)
    (tensor([3.3750]), tensor([6.7500]))
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        knots, samples, axis = _samples("CubicSpline", x, y, axis)
        if extrapolate is None:
            extrapolate = "periodic" if bc_type == "periodic" else True
        slopes = _slopes(knots, samples, bc_type)
        super().__init__(_hermite(knots, samples, slopes), knots, extrapolate, axis)
        self._given = [x, y]


def _end(condition: Any) -> tuple[int, Any]:
    """Return order and value of a condition; order 0 is not-a-knot."""
    named = {"not-a-knot": (0, 0.0), "natural": (2, 0.0), "clamped": (1, 0.0)}
    if isinstance(condition, str) and condition in named:
        return named[condition]
    if not isinstance(condition, str) and len(condition) == 2 and condition[0] in (1, 2):
        return int(condition[0]), condition[1]
    required = f"a bc_type of {', '.join(named)}, periodic, (1, value) or (2, value) required"
    raise ArgumentError(compose("CubicSpline", required, repr(condition)))


def _slopes(x: Tensor, y: Tensor, bc_type: Any) -> Tensor:
    """Return the slopes at the knots, for which second derivatives are continuous."""
    shape = y.shape
    y = y.reshape((shape[0], -1))
    dx = x[1:] - x[:-1]
    rise = (y[1:] - y[:-1]) / dx.reshape((-1, 1))
    if isinstance(bc_type, str) and bc_type == "periodic":
        return _periodic(dx, rise, y).reshape(shape)
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    first, last = _end(ends[0]), _end(ends[1])
    if shape[0] == 2:  # a straight line has no knot to leave out
        first, last = (
            (1, rise[0].reshape(shape[1:])) if kind == 0 else (kind, value)
            for kind, value in (first, last)
        )
    if shape[0] == 3 and first[0] == last[0] == 0:
        return _parabola(dx, rise).reshape(shape)
    width = dx.reshape((-1, 1))
    inner = 3 * (width[1:] * rise[:-1] + width[:-1] * rise[1:])
    start = _row(dx, rise, first, shape, 1.0)
    # The end is the start of the same curve seen from the other side, where slopes are negative.
    end = _row(dx.flip(0), rise.flip(0), last, shape, -1.0)
    none = zeros((1,), dtype=x.dtype, device=x.device)
    above = concat([none, start[1], dx[:-1]], axis=0)
    middle = concat([start[0], 2 * (dx[:-1] + dx[1:]), end[0]], axis=0)
    below = concat([dx[1:], end[1], none], axis=0)
    right = concat([start[2], inner, end[2]], axis=0)
    slopes: Tensor = solve_banded((1, 1), stack([above, middle, below]), right)
    return slopes.reshape(shape)


def _row(dx: Tensor, rise: Tensor, end: tuple[int, Any], shape: Any, way: float) -> Any:
    """Return the equation of the first slope: its factor, that of the next, the right-hand side."""
    order, value = end
    if order == 0:
        span = dx[0] + dx[1]
        right = (dx[0] + 2 * span) * dx[1] * rise[0] + dx[0] ** 2 * rise[1]
        return dx[1:2], span.reshape((1,)), (right / span).reshape((1, -1))
    target = floating(value).to(dx.dtype)
    target = target.expand(shape[1:]).reshape((1, -1)) if shape[1:] else target.reshape((1, 1))
    if order == 1:
        return dx[:1] * 0.0 + 1.0, dx[:1] * 0.0, target + rise[:1] * 0.0
    right = 3 * rise[:1] * dx[0] - target * dx[0] ** 2 * (way / 2)
    return 2 * dx[:1], dx[:1], right


def _parabola(dx: Tensor, rise: Tensor) -> Tensor:
    """Return the slopes of the parabola through three points."""
    span = dx[0] + dx[1]
    bend = (rise[1] - rise[0]) / span
    start = rise[0] - dx[0] * bend
    return stack([start, rise[0] + dx[0] * bend, rise[1] + dx[1] * bend])


def _periodic(dx: Tensor, rise: Tensor, y: Tensor) -> Tensor:
    """Return the slopes of a curve that begins as it ends."""
    if not np.allclose(y[0].detach().numpy(), y[-1].detach().numpy(), rtol=1e-15, atol=1e-15):
        required = "y that ends as it begins required for bc_type='periodic'"
        raise ArgumentError(compose("CubicSpline", required, "others"))
    n = dx.shape[0]
    if n < 3:
        return _short(rise, n, dx)
    before = roll(dx, 1, axis=0)
    one = asarray(np.eye(n)).to(dx.dtype)
    column = dx.reshape((-1, 1))
    matrix = one * (2 * (before + dx)).reshape((-1, 1))
    matrix = (
        matrix + roll(one, -1, axis=1) * column + roll(one, 1, axis=1) * before.reshape((-1, 1))
    )
    right = 3 * (column * roll(rise, 1, axis=0) + before.reshape((-1, 1)) * rise)
    slopes = linalg.solve(matrix, right)
    return concat([slopes, slopes[:1]], axis=0)


def _short(rise: Tensor, n: int, dx: Tensor) -> Tensor:
    if n == 1:
        return concat([rise, rise], axis=0) * 0.0
    slope = (rise[:1] / dx[0] + rise[1:] / dx[1]) / (1 / dx[0] + 1 / dx[1])
    return concat([slope] * 3, axis=0)


class PchipInterpolator(PPoly):
    """A cubic curve that is monotone where the samples are, as SciPy's `PchipInterpolator`.

    Parameters
    ----------
    x : (n,) array or Tensor
        Increasing.
    y : array or Tensor
        Samples along `axis`.
    axis : int
    extrapolate : bool, optional

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([0.0, 1.0, 2.0])
    >>> pb.interop.scipy.interpolate.PchipInterpolator(x, 2 * x)(pb.tensor([0.5]))
    tensor([1.])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        knots, samples, axis = _samples("PchipInterpolator", x, y, axis)
        extrapolate = True if extrapolate is None else extrapolate
        slopes = _monotone(knots, samples)
        super().__init__(_hermite(knots, samples, slopes), knots, extrapolate, axis)
        self._given = [x, y]


def _monotone(x: Tensor, y: Tensor) -> Tensor:
    """Return Fritsch and Butland's slopes (1984), 0 at turns."""
    h = (x[1:] - x[:-1]).reshape((-1, *(1,) * (y.ndim - 1)))
    m = (y[1:] - y[:-1]) / h
    if y.shape[0] == 2:
        return concat([m, m], axis=0)
    turns = (sign(m[:-1]) != sign(m[1:])) | (m[:-1] == 0) | (m[1:] == 0)
    left, right = where(turns, 1.0, m[:-1]), where(turns, 1.0, m[1:])
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    inner = where(turns, 0.0, (w1 + w2) / (w1 / left + w2 / right))
    start = _edge(h[0], h[1], m[0], m[1])
    end = _edge(h[-1], h[-2], m[-1], m[-2])
    return concat([start[None], inner, end[None]], axis=0)


def _edge(h0: Tensor, h1: Tensor, m0: Tensor, m1: Tensor) -> Tensor:
    """Return a slope at an end, by three points, that keeps the shape."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (sign(m0) != sign(m1)) & (absolute(d) > 3 * absolute(m0))
    return where(sign(d) != sign(m0), 0.0, where(steep, 3 * m0, d))


def __getattr__(name: str) -> Any:
    return refuse(__name__, __all__, name)
