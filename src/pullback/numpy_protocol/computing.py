"""NumPy's element-wise functions that the standard lacks, interpolation and differences."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pullback.core.function.namespace import TENSOR_XP
from pullback.core.tensor.tensor import Tensor
from pullback.numpy_protocol.arguments import (
    adapter,
    as_tensor,
    beside,
    inexact,
    operand,
    together,
    values_of,
    with_rank,
)


# -- ufuncs ----------------------------------------------------------------------------------------
@adapter("divmod")
def divmod(x: Any, y: Any) -> Any:
    """Return the quotient rounded down, and the remainder."""
    return TENSOR_XP.floor_divide(x, y), TENSOR_XP.remainder(x, y)


@adapter("modf")
def modf(x: Any) -> Any:
    """Return the fractional and the integral part."""
    finite = TENSOR_XP.where(TENSOR_XP.isinf(x), TENSOR_XP.copysign(0.0, x), x)
    return TENSOR_XP.fmod(finite, 1.0), TENSOR_XP.trunc(x)


@adapter("matvec")
def matvec(x1: Any, x2: Any) -> Any:
    """Return matrices times vectors."""
    return TENSOR_XP.matmul(x1, as_tensor(x2)[..., None])[..., 0]


@adapter("vecmat")
def vecmat(x1: Any, x2: Any) -> Any:
    """Return vectors, conjugated, times matrices."""
    return TENSOR_XP.matmul(TENSOR_XP.conj(as_tensor(x1))[..., None, :], x2)[..., 0, :]


# -- element by element ----------------------------------------------------------------------------
@adapter("around round")
def round(a: Any, decimals: int = 0) -> Any:
    """Return rounded to decimals; whole numbers stay such, but for those before the point."""
    x, digits = as_tensor(a), operator.index(decimals)
    whole = x.dtype.kind in "biu" and digits >= 0
    return TENSOR_XP.clone(x) if whole else TENSOR_XP.round(x, decimals=digits)


@adapter("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Return limited to an interval; the bounds have two names each."""
    low, high = operand(min if a_min is None else a_min), operand(max if a_max is None else a_max)
    x = as_tensor(a)
    return TENSOR_XP.clone(x) if low is None and high is None else TENSOR_XP.clip(x, low, high)


@adapter("angle")
def angle(z: Any, deg: bool = False) -> Any:
    """Return the angle of complex numbers, which that of a negative zero depends on."""
    x = as_tensor(z)
    wide = np.result_type(x.dtype.dtype, np.complex64)
    result = TENSOR_XP.angle(TENSOR_XP.astype(x, wide, copy=False))
    return TENSOR_XP.rad2deg(result) if deg else result


@adapter("real")
def real(val: Any) -> Any:
    """Return the real part; a real tensor itself."""
    return TENSOR_XP.real(val) if val.dtype.is_complex else val


@adapter("imag")
def imag(val: Any) -> Any:
    """Return the imaginary part; zeros for a real tensor."""
    return TENSOR_XP.imag(val) if val.dtype.is_complex else TENSOR_XP.zeros_like(val)


@adapter("real_if_close")
def real_if_close(a: Any, tol: float = 100) -> Any:
    """Return the real part where the imaginary one is all but 0."""
    return real(a) if not np.iscomplexobj(np.real_if_close(values_of(a), tol)) else a


@adapter("nan_to_num")
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Return numbers in place of NaN and infinities, which get no gradient; tensors get theirs."""
    x = as_tensor(x)
    numbers = {"nan": nan, "posinf": posinf, "neginf": neginf}
    tensors = {name: value for name, value in numbers.items() if isinstance(value, Tensor)}
    if tensors and not x.dtype.is_complex:
        numbers.update(dict.fromkeys(tensors, 0.0))
    result = TENSOR_XP.nan_to_num(x, **numbers)
    if x.dtype.kind == "f":
        for name, value in tensors.items():
            where = TENSOR_XP.isnan(x) if name == "nan" else x == _INFINITIES[name]
            result = TENSOR_XP.where(where, value, result)
    return result


_INFINITIES = {"posinf": math.inf, "neginf": -math.inf}


@adapter("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Return angles without jumps: each less a constant multiple of the period."""
    x = as_tensor(p)
    values, size = values_of(x), values_of(period)
    turned = np.unwrap(values, values_of(discont), axis, period=size)
    shift = np.subtract(turned, values, where=turned != values, out=np.zeros_like(turned))
    return x + beside(np.round(shift / size), x) * operand(period)


@adapter("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Return the area under a curve by the trapezoidal rule; `dx` counts without `x` alone."""
    y, x = together(y, x)
    return TENSOR_XP.trapezoid(y, x, dx=dx if x is None else None, dim=axis)


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
    first, last = map(inexact, together(start, stop))
    num = operator.index(num)
    parts = num - 1 if endpoint else num
    step = (last - first) / (parts if parts > 0 else math.nan)
    numbers = beside(np.arange(num, dtype=values_of(step).real.dtype), step)
    numbers = TENSOR_XP.reshape(numbers, (-1,) + (1,) * step.ndim)
    result = first + numbers * (step if parts > 0 else last - first)
    if endpoint and num > 1:
        result = TENSOR_XP.where(numbers == num - 1, last, result)
    if dtype is not None:
        result = TENSOR_XP.floor(result) if np.dtype(dtype).kind in "iu" else result
        result = TENSOR_XP.astype(result, dtype, copy=False)
    result = TENSOR_XP.moveaxis(result, 0, axis) if axis else result
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
    start, stop, base = map(inexact, together(start, stop, base))
    if base.ndim:
        rank = max(start.ndim, stop.ndim, base.ndim)
        start, stop, base = (with_rank(x, rank) for x in (start, stop, base))
        base = TENSOR_XP.expand_dims(base, axis=axis)
    result = TENSOR_XP.pow(base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else TENSOR_XP.astype(result, dtype, copy=False)


@adapter("geomspace")
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Return points between two of one sign, of one ratio to the next."""
    first, last = map(inexact, together(start, stop))
    sign = TENSOR_XP.sign(first.detach())
    low, high = (TENSOR_XP.log(x / sign) for x in (first, last))
    result = sign * TENSOR_XP.exp(linspace(low, high, num, endpoint))
    ends = [(0, first), (num - 1, last)] if endpoint and num > 1 else [(0, first)]
    numbers = TENSOR_XP.reshape(beside(np.arange(num), result), (-1,) + (1,) * (result.ndim - 1))
    for i, end in ends:
        result = TENSOR_XP.where(numbers == i, end, result)
    result = TENSOR_XP.moveaxis(result, 0, axis) if axis else result
    return result if dtype is None else TENSOR_XP.astype(result, dtype, copy=False)


@adapter("interp")
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Interpolate linearly between the points (xp, fp), `xp` ascending; constant outside.

    With a period, of the numbers modulo it, in any order; then there is no outside.
    """
    x, places, heights = map(inexact, together(x, xp, fp))
    if period is not None:
        left = right = None
        period = TENSOR_XP.abs(as_tensor(period, x))
        x, places = x % period, places % period
        order = np.argsort(values_of(places))
        places, heights = places[order], heights[order]
        places = TENSOR_XP.concat([places[-1:] - period, places, places[:1] + period])
        heights = TENSOR_XP.concat([heights[-1:], heights, heights[:1]])
    count = places.shape[0]
    if count == 1:
        return TENSOR_XP.broadcast_to(heights, x.shape) if x.ndim else heights[0]
    cell = np.searchsorted(values_of(places), values_of(x), side="right") - 1
    cell = np.clip(cell, 0, count - 2)
    low, high = places[cell], places[cell + 1]
    share = (x - low) / (high - low)
    result = heights[cell] + share * (heights[cell + 1] - heights[cell])
    result = TENSOR_XP.where(x < places[0], heights[0] if left is None else operand(left), result)
    return TENSOR_XP.where(x > places[-1], heights[-1] if right is None else operand(right), result)


@adapter("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the slopes by differences of neighbours; the spacings are one, or one an axis."""
    x = inexact(f)
    spacings = [as_tensor(h, x) if np.ndim(h) else operand(h) for h in varargs]
    spacing = spacings[0] if len(spacings) == 1 else spacings or 1
    result = TENSOR_XP.gradient(x, spacing=spacing, dim=axis, edge_order=edge_order)
    return result[0] if len(result) == 1 else result


# -- polynomials -----------------------------------------------------------------------------------
@adapter("polyval")
def polyval(p: Any, x: Any) -> Any:
    """Return the polynomial of coefficients `p`, the highest first, at `x`, by Horner's rule."""
    coefficients, x = together(p, x)
    result = TENSOR_XP.zeros_like(x)
    for i in range(coefficients.shape[0]):
        result = result * x + coefficients[i]
    return result
