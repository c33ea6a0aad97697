"""NumPy's element-wise functions that the standard lacks, interpolation and differences."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

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
    xp,
)

# -- ufuncs ----------------------------------------------------------------------------------------
adapter("divmod")(lambda x, y: (xp.floor_divide(x, y), xp.remainder(x, y)))
adapter("matvec")(lambda x1, x2: xp.matmul(x1, as_tensor(x2)[..., None])[..., 0])
adapter("vecmat")(lambda x1, x2: xp.matmul(xp.conj(as_tensor(x1))[..., None, :], x2)[..., 0, :])


@adapter("modf")
def modf(x: Any) -> Any:
    finite = xp.where(xp.isinf(x), xp.copysign(0.0, x), x)
    return xp.fmod(finite, 1.0), xp.trunc(x)


# -- element by element ----------------------------------------------------------------------------
@adapter("around round")
def round(a: Any, decimals: int = 0) -> Any:
    """Return rounded to decimals; whole numbers stay such, but for those before the point."""
    x, digits = as_tensor(a), operator.index(decimals)
    whole = x.dtype.kind in "biu" and digits >= 0
    return xp.clone(x) if whole else xp.round(x, decimals=digits)


@adapter("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = operand(min if a_min is None else a_min), operand(max if a_max is None else a_max)
    x = as_tensor(a)
    return xp.clone(x) if low is None and high is None else xp.clip(x, low, high)


@adapter("angle")
def angle(z: Any, deg: bool = False) -> Any:
    """Return the angle of complex numbers, which that of a negative zero depends on."""
    wide = np.result_type(z.dtype.dtype, np.complex64)
    result = xp.angle(xp.astype(z, wide, copy=False))
    return xp.rad2deg(result) if deg else result


@adapter("imag")
def imag(val: Any) -> Any:
    return xp.imag(val) if val.dtype.is_complex else xp.zeros_like(val)


@adapter("real_if_close")
def real_if_close(a: Any, tol: float = 100) -> Any:
    return a if np.iscomplexobj(np.real_if_close(values_of(a), tol)) else xp.real(a)


@adapter("nan_to_num")
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Return numbers in place of NaN and infinities, which get no gradient; tensors get theirs.

    Without `copy`, `x` gets them in place, unless it is a scalar.
    """
    x = as_tensor(x)
    if not copy and x.ndim:
        x[...] = nan_to_num(xp.clone(x), True, nan, posinf, neginf)
        return x
    numbers = {"nan": nan, "posinf": posinf, "neginf": neginf}
    tensors = {name: value for name, value in numbers.items() if isinstance(value, Tensor)}
    if tensors and not x.dtype.is_complex:
        numbers.update(dict.fromkeys(tensors, 0.0))
    result = xp.nan_to_num(x, **numbers)
    if x.dtype.kind == "f":
        for name, value in tensors.items():
            where = xp.isnan(x) if name == "nan" else x == _INFINITIES[name]
            result = xp.where(where, value, result)
    return result


_INFINITIES = {"posinf": math.inf, "neginf": -math.inf}


@adapter("unwrap")
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Any:
    """Return angles without jumps: each less a constant multiple of the period."""
    values, size = values_of(p), values_of(period)
    turned = np.unwrap(values, values_of(discont), axis, period=size)
    shift = np.subtract(turned, values, where=turned != values, out=np.zeros_like(turned))
    return p + beside(np.round(shift / size), p) * operand(period)


@adapter("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y, x = together(y, x)
    return xp.trapezoid(y, x, dx=dx if x is None else None, dim=axis)


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
    first, last = map(inexact, together(start, stop))
    num = operator.index(num)
    parts = num - 1 if endpoint else num
    step = (last - first) / (parts if parts > 0 else math.nan)
    numbers = beside(np.arange(num, dtype=values_of(step).real.dtype), step)
    numbers = xp.reshape(numbers, (-1,) + (1,) * step.ndim)
    result = first + numbers * (step if parts > 0 else last - first)
    if endpoint and num > 1:
        result = xp.where(numbers == num - 1, last, result)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        result = xp.floor(result)
    result = _in_place(result, dtype, axis)
    return (result, step) if retstep else result


def _in_place(points: Any, dtype: Any, axis: int) -> Any:
    """Return points in a dtype, along an axis instead of the first."""
    points = points if dtype is None else xp.astype(points, dtype, copy=False)
    return xp.moveaxis(points, 0, axis) if axis else points


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
    start, stop, base = map(inexact, together(start, stop, base))
    if base.ndim:
        rank = max(start.ndim, stop.ndim, base.ndim)
        start, stop, base = (with_rank(x, rank) for x in (start, stop, base))
        base = xp.expand_dims(base, axis=axis)
    return _in_place(xp.pow(base, linspace(start, stop, num, endpoint, axis=axis)), dtype, 0)


@adapter("geomspace")
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    first, last = map(inexact, together(start, stop))
    sign = xp.sign(first.detach())
    low, high = (xp.log(x / sign) for x in (first, last))
    result = sign * xp.exp(linspace(low, high, num, endpoint))
    ends = [(0, first), (num - 1, last)] if endpoint and num > 1 else [(0, first)]
    numbers = xp.reshape(beside(np.arange(num), result), (-1,) + (1,) * (result.ndim - 1))
    for i, end in ends:
        result = xp.where(numbers == i, end, result)
    return _in_place(result, dtype, axis)


@adapter("interp")
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    x, places, heights = map(inexact, together(x, xp, fp))
    if period is not None:  # then there is no outside
        return _interpolated(*_repeated(x, places, heights, period), None, None)
    return _interpolated(x, places, heights, operand(left), operand(right))


def _repeated(x: Any, places: Any, heights: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return numbers modulo a period, and points in order with a neighbour on either side."""
    period = xp.abs(as_tensor(period, x))
    x, places = x % period, places % period
    order = np.argsort(values_of(places))
    places, heights = places[order], heights[order]
    places = xp.concat([places[-1:] - period, places, places[:1] + period])
    return x, places, xp.concat([heights[-1:], heights, heights[:1]])


def _interpolated(x: Any, places: Any, heights: Any, left: Any, right: Any) -> Any:
    count = places.shape[0]
    if count == 1:
        return xp.broadcast_to(heights, x.shape) if x.ndim else heights[0]
    cell = np.searchsorted(values_of(places), values_of(x), side="right") - 1
    cell = np.clip(cell, 0, count - 2)
    low, high = places[cell], places[cell + 1]
    share = (x - low) / (high - low)
    result = heights[cell] + share * (heights[cell + 1] - heights[cell])
    result = xp.where(x < places[0], heights[0] if left is None else left, result)
    return xp.where(x > places[-1], heights[-1] if right is None else right, result)


@adapter("gradient")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = inexact(f)
    spacings = [as_tensor(h, x) if np.ndim(h) else operand(h) for h in varargs]
    spacing = spacings[0] if len(spacings) == 1 else spacings or 1
    result = xp.gradient(x, spacing=spacing, dim=axis, edge_order=edge_order)
    return result[0] if len(result) == 1 else result
