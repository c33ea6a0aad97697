"""NumPy's reductions on tensors: their ``where``, ``initial``, ``ddof`` and NaNs."""

from __future__ import annotations

import math
import operator
from functools import partial, wraps
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.numpy_protocol.arguments import (
    ADAPTERS,
    adapter,
    as_tensor,
    beside,
    flat,
    inexact,
    operand,
    together,
    truth,
    values_of,
    xp,
)
from pullback.numpy_protocol.renamings import renamed
from pullback.ops.axes import normalize_axes
from pullback.ops.functions import complex_numbers, data_types, statistics


def _chosen(a: Any, where: Any, neutral: float) -> Any:
    """Return `a` with `neutral` where it is not to be counted."""
    x = as_tensor(a)
    return x if where is True else xp.where(truth(where), x, neutral)


def _reduce(
    ours: Any,
    neutral: float,
    combine: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Reduce as ours does, with what NumPy adds: a start, and a mask."""
    result = ours(_chosen(a, where, neutral), axis=axis, dtype=dtype, keepdims=keepdims)
    return result if initial is None else combine(result, operand(initial))


adapter("sum")(partial(_reduce, xp.sum, 0, operator.add))
adapter("nansum")(partial(_reduce, xp.nansum, 0, operator.add))
adapter("prod")(partial(_reduce, xp.prod, 1, operator.mul))


def _reduce_bools(
    ours: Any, neutral: bool, a: Any, axis: Any = None, keepdims: bool = False, where: Any = True
) -> Any:
    return ours(_chosen(a, where, neutral), axis=axis, keepdims=keepdims)


adapter("any")(partial(_reduce_bools, xp.any, False))
adapter("all")(partial(_reduce_bools, xp.all, True))


def _extreme(
    name: str,
    a: Any,
    axis: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    if where is not True and initial is None:
        hint = "the value of a reduction over nothing is its start"
        required = "initial= with where= required"
        raise ArgumentError(compose(f"np.{name}", required, "none", hint=hint))
    x, over = _chosen(a, where, operand(initial)), {"axis": axis, "keepdims": keepdims}
    if 0 in x.shape and initial is not None:
        shape = getattr(np, name)(np.empty(x.shape), **over, initial=0).shape
        return xp.broadcast_to(as_tensor(initial, x), shape)
    result = getattr(xp, name)(x, **over)
    return result if initial is None else getattr(xp, f"{name}imum")(result, operand(initial))


adapter("max amax")(partial(_extreme, "max"))
adapter("min amin")(partial(_extreme, "min"))


@adapter("ptp")
def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    over = {"axis": axis, "keepdims": keepdims}
    return xp.max(as_tensor(a), **over) - xp.min(as_tensor(a), **over)


@adapter("mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    x = inexact(a, dtype)
    if where is True:
        return xp.mean(x, axis=axis, keepdims=keepdims)
    mask, over = xp.broadcast_to(truth(where), x.shape), {"axis": axis, "keepdims": keepdims}
    return xp.sum(_chosen(x, mask, 0), **over) / xp.sum(xp.astype(mask, x.dtype), **over)


def _spread(
    name: str,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    x, less = inexact(a, dtype), ddof if correction is None else correction
    if where is True and mean is None:
        return getattr(xp, name)(x, axis=axis, correction=less, keepdims=keepdims)
    deviation, freedom = _deviation(x, axis, less, keepdims, where, mean)
    if name == "std":
        return xp.vector_norm(deviation, axis=axis, keepdims=keepdims) / xp.sqrt(freedom)
    squares = complex_numbers.squared_size(deviation)
    return xp.sum(squares, axis=axis, keepdims=keepdims) / freedom


adapter("var")(partial(_spread, "var"))
adapter("std")(partial(_spread, "std"))


def _deviation(
    x: Any, axis: Any, less: float, keepdims: bool, where: Any, centre: Any
) -> tuple[Any, Any]:
    """Return `x` less its centre, 0 where the mask is False, and the degrees of freedom."""
    mask = xp.broadcast_to(truth(where), x.shape)
    centre = as_tensor(mean(x, axis, keepdims=True, where=mask) if centre is None else centre, x)
    deviation = xp.where(mask, x - centre, 0)
    real = data_types.finfo(x.dtype).dtype
    count = xp.sum(xp.astype(mask, real), axis=axis, keepdims=keepdims)
    return deviation, xp.where(count > less, count - less, math.nan)


@adapter("average")
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    x = inexact(a)
    if weights is None:
        result = xp.mean(x, axis=axis, keepdims=keepdims)
        total = xp.full_like(result, math.prod(x.shape) / max(math.prod(result.shape), 1))
        return (result, total) if returned else result
    w = as_tensor(weights, x)
    if w.shape != x.shape:
        axes = normalize_axes("np.average", axis, x.ndim)
        if tuple(x.shape[i] for i in axes) != w.shape or axis is None:
            required = "weights of the shape of a, or of its axis, required"
            inputs = (("a", x), ("weights", w))
            raise ArgumentError(compose("np.average", required, str(w.shape), *inputs))
        w = xp.permute_dims(w, tuple(np.argsort(np.argsort(axes)))) if len(axes) > 1 else w
        w = xp.reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
        w = xp.broadcast_to(w, x.shape)
    total = xp.sum(w, axis=axis, keepdims=keepdims)
    result = xp.sum(x * w, axis=axis, keepdims=keepdims) / total
    return (result, xp.broadcast_to(total, result.shape)) if returned else result


# -- what leaves NaNs out --------------------------------------------------------------------------
def _without_nans(name: str) -> None:
    """Register a reduction of what is not NaN: that of what a mask leaves."""
    reduction = ADAPTERS[name]

    @adapter(f"nan{name}")
    @wraps(reduction)
    def reduce(a: Any, *args: Any, where: Any = True, **settings: Any) -> Any:
        there = xp.logical_not(xp.isnan(as_tensor(a)))
        return reduction(a, *args, where=there if where is True else there & where, **settings)


for _name in ("prod", "var", "std"):
    _without_nans(_name)


@adapter("nanmean")
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    x = _chosen(inexact(a, dtype), where, math.nan)
    return xp.nanmean(x, axis=axis, keepdims=keepdims)


def _nan_scan(name: str, neutral: float, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    x = as_tensor(a)
    return renamed(name)(xp.where(xp.isnan(x), neutral, x), axis, dtype)


adapter("nancumsum")(partial(_nan_scan, "cumsum", 0))
adapter("nancumprod")(partial(_nan_scan, "cumprod", 1))


@wraps(_extreme)
def _nan_extreme(name: str, a: Any, axis: Any = None, keepdims: bool = False, **start: Any) -> Any:
    x, over = as_tensor(a), {"axis": axis, "keepdims": keepdims}
    if not x.dtype.is_inexact:
        return _extreme(name, x, **over, **start)
    there, worst = xp.logical_not(xp.isnan(x)), -math.inf if name == "max" else math.inf
    result = _extreme(name, xp.where(there, x, worst), **over, **start)
    if start.get("initial") is not None:
        return result
    return xp.where(xp.any(there, **over), result, math.nan)


adapter("nanmax")(partial(_nan_extreme, "max"))
adapter("nanmin")(partial(_nan_extreme, "min"))


# -- order statistics ------------------------------------------------------------------------------
# How much the place of a quantile among n sorted elements moves with q, less n; those of the other
# methods jump from one element, or from the middle of two, to the next.
_RATES = {
    "linear": -1.0,
    "interpolated_inverted_cdf": 0.0,
    "hazen": 0.0,
    "weibull": 1.0,
    "median_unbiased": 1 / 3,
    "normal_unbiased": 1 / 4,
}


def _quantile(
    skip_nan: bool,
    a: Any,
    q: Any,
    axis: Any = None,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Return quantiles by the positions that NumPy's method has for them."""
    x, q = inexact(a), operand(q)
    axes = normalize_axes("np.quantile", axis, x.ndim)
    others = [i for i in range(x.ndim) if i not in axes]
    rest, n = [x.shape[i] for i in others], math.prod(x.shape[i] for i in axes)
    rows = xp.reshape(xp.permute_dims(x, (*others, *axes)), (*rest, n))
    if not n:
        rows = xp.full((*rest, 1), math.nan, dtype=x.dtype, device=x.device)
    ordered = xp.sort(rows, axis=-1)
    result = statistics.between(ordered, _ranks(ordered, q, method, skip_nan), "linear")
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    result = xp.moveaxis(result, -1, 0)
    return xp.reshape(result, (*np.shape(q), *(shape if keepdims else rest)))


def _ranks(ordered: Any, q: Any, method: str, skip_nan: bool) -> Any:
    """Return where quantiles stand in sorted rows: at a NaN, if NaNs are not left out."""
    n = ordered.shape[-1]
    numbers = n - np.isnan(values_of(ordered)).sum(-1)
    counts, which = np.unique(numbers, return_inverse=True)
    levels = np.ravel(values_of(q))
    find: Any = partial(np.quantile, q=levels, method=method)
    places = np.stack(
        [
            find(np.arange(max(m, 1.0))) if m == n or skip_nan else np.full(levels.shape, n - 1.0)
            for m in counts
        ]
    )[which]
    ranks = beside(places, ordered)
    if isinstance(q, Tensor) and method in _RATES:
        rates = np.where(places % 1, numbers[..., None] + _RATES[method], 0)
        flat = xp.reshape(q, (-1,))
        ranks = ranks + (flat - flat.detach()) * beside(rates, ordered)
    return ranks


@wraps(_quantile)
def _percentile(skip_nan: bool, a: Any, q: Any, *settings: Any, **more: Any) -> Any:
    return _quantile(skip_nan, a, operand(q) / 100, *settings, **more)


def _median(skip_nan: bool, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _quantile(skip_nan, a, 0.5, axis, "linear", keepdims)


for _skips in (False, True):
    _prefix = "nan" if _skips else ""
    adapter(f"{_prefix}quantile")(partial(_quantile, _skips))
    adapter(f"{_prefix}percentile")(partial(_percentile, _skips))
    adapter(f"{_prefix}median")(partial(_median, _skips))


# -- differences -----------------------------------------------------------------------------------
@adapter("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x, begin, end = together(ary, to_begin, to_end)
    x = flat(x)
    parts = (begin, x[1:] - x[:-1], end)
    return xp.concat([flat(part) for part in parts if part is not None])
