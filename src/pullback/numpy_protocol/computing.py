"""NumPy's element-wise functions that the standard lacks, interpolation and differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.numpy_protocol.arguments import (
    adapter,
    as_tensor,
    beside,
    namespace,
    operand,
    position,
    together,
    values_of,
)
from pullback.ops.axes import normalize_axes, normalize_axis
from pullback.ops.functions import (
    complex_numbers,
    creation,
    data_types,
    joining,
    manipulation,
    pointwise,
    products,
)
from pullback.ops.primitives import arithmetic, conversion, exponential, rounding, trigonometric
from pullback.ops.primitives import comparison as comparison_primitives
from pullback.ops.primitives import complex_numbers as complex_numbers_primitives


# -- ufuncs ----------------------------------------------------------------------------------------
@adapter("cbrt")
def cbrt(x: Any) -> Any:
    """Return the real cube root; the derivative at 0 is inf."""
    below = x < 0
    root = pointwise.where(below, -x, x) ** (1 / 3)
    return pointwise.where(below, -root, root)


@adapter("exp2")
def exp2(x: Any) -> Any:
    """Return 2 ** x."""
    return arithmetic.pow(2.0, x)


@adapter("deg2rad radians")
def radians(x: Any) -> Any:
    """Return degrees as radians."""
    return x * (math.pi / 180)


@adapter("rad2deg degrees")
def degrees(x: Any) -> Any:
    """Return radians as degrees."""
    return x * (180 / math.pi)


@adapter("divmod")
def divmod(x: Any, y: Any) -> Any:
    """Return the quotient rounded down, and the remainder."""
    return arithmetic.floor_divide(x, y), arithmetic.remainder(x, y)


@adapter("modf")
def modf(x: Any) -> Any:
    """Return the fractional and the integral part."""
    whole = rounding.trunc(x)
    return x - whole, whole


@adapter("float_power")
def float_power(x: Any, y: Any) -> Any:
    """Return x ** y in double precision."""
    base = as_tensor(x)
    wide = np.result_type(values_of(base), np.float64)
    return arithmetic.pow(data_types.astype(base, wide, copy=False), y)


@adapter("fmod")
def fmod(x: Any, y: Any) -> Any:
    """Return the remainder with the sign of x."""
    return x - rounding.trunc(arithmetic.divide(x, y)) * y


def _ignoring_nan(name: str) -> None:
    @adapter(f"f{name[:3]}")
    def choose(x: Any, y: Any) -> Any:
        x, y = together(x, y)
        first = pointwise.where(comparison_primitives.isnan(x), y, x)
        return getattr(namespace(), name)(
            first, pointwise.where(comparison_primitives.isnan(y), first, y)
        )


_ignoring_nan("maximum")
_ignoring_nan("minimum")


@adapter("heaviside")
def heaviside(x1: Any, x2: Any) -> Any:
    """Return 0 below 0, 1 above, x2 at 0; flat in x1."""
    x = as_tensor(x1)
    step = data_types.astype(x > 0, x.dtype if x.dtype.is_inexact else "float64")
    return pointwise.where(x == 0, x2, step)


@adapter("ldexp")
def ldexp(x1: Any, x2: Any) -> Any:
    """Return x1 * 2 ** x2."""
    x, power = together(x1, x2)
    return x * arithmetic.pow(2.0, data_types.astype(power, x.dtype))


@adapter("logaddexp2")
def logaddexp2(x1: Any, x2: Any) -> Any:
    """Return log2(2 ** x1 + 2 ** x2), without overflow."""
    unit = math.log(2)
    return exponential.logaddexp(x1 * unit, x2 * unit) / unit


@adapter("matvec")
def matvec(x1: Any, x2: Any) -> Any:
    """Return matrices times vectors."""
    return products.matmul(x1, as_tensor(x2)[..., None])[..., 0]


@adapter("vecmat")
def vecmat(x1: Any, x2: Any) -> Any:
    """Return vectors, conjugated, times matrices."""
    return products.matmul(complex_numbers_primitives.conj(as_tensor(x1))[..., None, :], x2)[
        ..., 0, :
    ]


# -- element by element ----------------------------------------------------------------------------
@adapter("around round")
def round(a: Any, decimals: int = 0) -> Any:
    """Return rounded to decimals; the derivative is 0."""
    x = as_tensor(a)
    if not decimals:
        return pointwise.round(x)
    scale = 10.0**decimals
    return pointwise.round(x * scale) / scale


@adapter("fix")
def fix(x: Any) -> Any:
    """Return rounded towards 0; the derivative is 0."""
    return rounding.trunc(as_tensor(x))


@adapter("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Return limited to an interval; the bounds have two names each."""
    low, high = operand(min if a_min is None else a_min), operand(max if a_max is None else a_max)
    x = as_tensor(a)
    return conversion.clone(x) if low is None and high is None else pointwise.clip(x, low, high)


@adapter("angle")
def angle(z: Any, deg: bool = False) -> Any:
    """Return the angle of complex numbers."""
    x = as_tensor(z)
    imaginary = complex_numbers.imag(x) if x.dtype.is_complex else creation.zeros_like(x)
    result = trigonometric.atan2(imaginary, complex_numbers.real(x) if x.dtype.is_complex else x)
    return degrees(result) if deg else result


@adapter("real")
def real(val: Any) -> Any:
    """Return the real part; a real tensor itself."""
    return complex_numbers.real(val) if val.dtype.is_complex else val


@adapter("imag")
def imag(val: Any) -> Any:
    """Return the imaginary part; zeros for a real tensor."""
    return complex_numbers.imag(val) if val.dtype.is_complex else creation.zeros_like(val)


@adapter("real_if_close")
def real_if_close(a: Any, tol: float = 100) -> Any:
    """Return the real part where the imaginary one is all but 0."""
    return real(a) if not np.iscomplexobj(np.real_if_close(values_of(a), tol)) else a


@adapter("sinc")
def sinc(x: Any) -> Any:
    """Return sin(pi x) / (pi x), near 0 by its series, which has the right derivatives."""
    y = math.pi * as_tensor(x)
    near = rounding.abs(y) < 0.02
    z = exponential.square(pointwise.where(near, y, 0.0))
    series = 1 - z / 6 * (1 - z / 20 * (1 - z / 42))
    safe = pointwise.where(near, 1.0, y)
    return pointwise.where(near, series, trigonometric.sin(safe) / safe)


@adapter("nan_to_num")
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Return numbers in place of NaN and infinities, which get no gradient."""
    return pointwise.nan_to_num(as_tensor(x), nan=nan, posinf=posinf, neginf=neginf)


@adapter("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Return angles without jumps: each less a constant multiple of the period."""
    x = as_tensor(p)
    values = values_of(x)
    return x + beside(np.unwrap(values, discont, axis, period=period) - values, x)


# -- points on lines -------------------------------------------------------------------------------
@adapter("linspace")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return points between two, which may be tensors in the graph."""
    first, last = together(start, stop)
    parts = num - 1 if endpoint else num
    step = (last - first) / (parts if parts > 0 else math.nan)
    places = beside(np.arange(num, dtype=values_of(step).dtype), first)
    places = manipulation.reshape(places, (-1,) + (1,) * step.ndim)
    result = first + places * step if parts > 0 else first + places * 0 * last
    result = result if dtype is None else data_types.astype(result, dtype, copy=False)
    result = manipulation.moveaxis(result, 0, axis) if axis else result
    return (result, step) if retstep else result


@adapter("logspace")
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return powers of the base between two exponents."""
    result = arithmetic.pow(operand(base), linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else data_types.astype(result, dtype, copy=False)


@adapter("geomspace")
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Return points between two positive ones, of one ratio to the next."""
    low, high = map(exponential.log, together(start, stop))
    result = exponential.exp(linspace(low, high, num, endpoint, axis=axis))
    return result if dtype is None else data_types.astype(result, dtype, copy=False)


@adapter("interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    """Interpolate linearly between the points (xp, fp), `xp` ascending; constant outside."""
    x, places, heights = together(x, xp, fp)
    count = places.shape[0]
    if count == 1:
        return manipulation.broadcast_to(heights, x.shape) if x.ndim else heights[0]
    cell = np.searchsorted(values_of(places), values_of(x), side="right") - 1
    cell = np.clip(cell, 0, count - 2)
    low, high = places[cell], places[cell + 1]
    share = (x - low) / (high - low)
    result = heights[cell] + share * (heights[cell + 1] - heights[cell])
    result = pointwise.where(x < places[0], heights[0] if left is None else operand(left), result)
    return pointwise.where(x > places[-1], heights[-1] if right is None else operand(right), result)


@adapter("diff")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Return the differences of neighbours, `n` times."""
    x = as_tensor(a)
    along = normalize_axis("np.diff", axis, x.ndim)
    if n < 0:
        raise ArgumentError(compose("np.diff", "n of at least 0 required", str(n), ("a", x)))
    ends = [as_tensor(end, x) for end in (prepend, append) if end is not None]
    one = (*x.shape[:along], 1, *x.shape[along + 1 :])
    ends = [end if end.ndim else manipulation.broadcast_to(end, one) for end in ends]
    if ends and n:
        parts = [ends[0], x] if prepend is not None else [x]
        x = joining.concat(parts if append is None else [*parts, ends[-1]], axis=along)
    for _ in range(n):
        ahead, behind = x[position(along, slice(1, None))], x[position(along, slice(None, -1))]
        x = (
            comparison_primitives.not_equal(ahead, behind)
            if x.dtype.kind == "b"
            else ahead - behind
        )
    return x


@adapter("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None) -> Any:
    """Return the slopes by central differences, one-sided at the ends.

    The spacing is a number or the coordinates of the points, one for all axes or one for each.
    """
    x = as_tensor(f)
    axes = normalize_axes("np.gradient", axis, x.ndim)
    spacings = varargs or (1.0,)
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    if len(spacings) != len(axes):
        required = f"one spacing, or one for each of {len(axes)} axes, required"
        raise ArgumentError(compose("np.gradient", required, str(len(spacings)), ("f", x)))
    found = tuple(_slopes(x, i, operand(h)) for i, h in zip(axes, spacings, strict=True))
    return found[0] if len(found) == 1 else found


def _slopes(x: Any, axis: int, spacing: Any) -> Any:
    """Return the derivative of the parabola through each point and its two neighbours."""
    n = x.shape[axis]
    if n < 2:
        raise ArgumentError(compose("np.gradient", "at least 2 points required", str(n), ("f", x)))
    gaps: Any = spacing
    if isinstance(spacing, Tensor) and spacing.ndim:
        gaps = manipulation.reshape(spacing[1:] - spacing[:-1], (-1,) + (1,) * (x.ndim - axis - 1))
    slopes = (x[position(axis, slice(1, None))] - x[position(axis, slice(None, -1))]) / gaps
    before = slopes[position(axis, slice(None, -1))]
    after = slopes[position(axis, slice(1, None))]
    inner = (before + after) / 2
    if isinstance(gaps, Tensor) and gaps.ndim:
        behind, ahead = gaps[:-1], gaps[1:]
        inner = (before * ahead + after * behind) / (behind + ahead)
    first, last = slopes[position(axis, slice(0, 1))], slopes[position(axis, slice(-1, None))]
    return joining.concat([first, inner, last], axis=axis)


# -- polynomials -----------------------------------------------------------------------------------
@adapter("polyval")
def polyval(p: Any, x: Any) -> Any:
    """Return the polynomial of coefficients `p`, the highest first, at `x`, by Horner's rule."""
    coefficients, x = together(p, x)
    result = creation.zeros_like(x)
    for i in range(coefficients.shape[0]):
        result = result * x + coefficients[i]
    return result


@adapter("vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers of each element in a row, the highest first unless `increasing`."""
    x = as_tensor(x)
    count = x.shape[0] if N is None else N
    powers = np.arange(count) if increasing else np.arange(count)[::-1].copy()
    return arithmetic.pow(x[:, None], data_types.astype(beside(powers, x), x.dtype))
