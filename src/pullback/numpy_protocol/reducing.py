"""NumPy's reductions on tensors: their ``where``, ``initial``, ``ddof`` and NaNs."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.numpy_protocol.arguments import (
    ADAPTERS,
    adapter,
    as_tensor,
    beside,
    inexact,
    operand,
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


def _reduction(name: str, ours: Any, neutral: float, combined: Any) -> None:
    """Register a reduction of ours with what NumPy adds: a start, and a mask."""

    @adapter(name)
    def reduce(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        result = ours(_chosen(a, where, neutral), axis=axis, dtype=dtype, keepdims=keepdims)
        return result if initial is None else combined(result, operand(initial))


_reduction("sum", xp.sum, 0, operator.add)
_reduction("nansum", xp.nansum, 0, operator.add)
_reduction("prod", xp.prod, 1, operator.mul)


def _logical(name: str, ours: Any, neutral: bool) -> None:
    @adapter(name)
    def reduce(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
        return ours(_chosen(a, where, neutral), axis=axis, keepdims=keepdims)


_logical("any", xp.any, False)
_logical("all", xp.all, True)


def _extreme(name: str) -> None:
    find, pick = getattr(np, name), f"{name}imum"

    @adapter(f"{name} a{name}")
    def reduce(
        a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        if where is not True and initial is None:
            hint = "the value of a reduction over nothing is its start"
            required = "initial= with where= required"
            raise ArgumentError(compose(f"np.{name}", required, "none", hint=hint))
        x = _chosen(a, where, operand(initial))
        if 0 in x.shape and initial is not None:
            shape = find(np.empty(x.shape), axis=axis, keepdims=keepdims, initial=0).shape
            return xp.broadcast_to(as_tensor(initial, x), shape)
        result = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        return result if initial is None else getattr(xp, pick)(result, operand(initial))


_extreme("max")
_extreme("min")


@adapter("ptp")
def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the largest less the smallest element."""
    x = as_tensor(a)
    settings = {"axis": axis, "keepdims": keepdims}
    return xp.max(x, **settings) - xp.min(x, **settings)


@adapter("mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return the mean, of what a mask leaves."""
    x = inexact(a, dtype)
    if where is True:
        return xp.mean(x, axis=axis, keepdims=keepdims)
    mask = xp.broadcast_to(truth(where), x.shape)
    count = xp.sum(xp.astype(mask, x.dtype), axis=axis, keepdims=keepdims)
    return xp.sum(_chosen(x, mask, 0), axis=axis, keepdims=keepdims) / count


@adapter("nanmean")
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return the mean of what is not NaN, of what a mask leaves."""
    x = _chosen(inexact(a, dtype), where, math.nan)
    return xp.nanmean(x, axis=axis, keepdims=keepdims)


def _spread(name: str, ours: Any, measured: Any) -> None:
    """Register a measure of spread; `measured` has deviations, and the degrees of freedom."""

    @adapter(name)
    def spread(
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
            return ours(x, axis=axis, correction=less, keepdims=keepdims)
        deviation, freedom = _deviation(x, axis, less, keepdims, where, mean)
        return measured(deviation, freedom, axis=axis, keepdims=keepdims)


def _variance(deviation: Any, freedom: Any, **over: Any) -> Any:
    return xp.sum(complex_numbers.squared_size(deviation), **over) / freedom


def _standard_deviation(deviation: Any, freedom: Any, **over: Any) -> Any:
    return xp.vector_norm(deviation, **over) / xp.sqrt(freedom)


_spread("var", xp.var, _variance)
_spread("std", xp.std, _standard_deviation)


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
    """Return the mean weighted by `weights`, of the shape of `a` or of its axis."""
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
    @functools.wraps(reduction)
    def reduce(a: Any, *args: Any, where: Any = True, **settings: Any) -> Any:
        x = as_tensor(a)
        there = xp.logical_not(xp.isnan(x))
        return reduction(x, *args, where=there if where is True else there & where, **settings)


for _name in ("prod", "var", "std"):
    _without_nans(_name)


def _nan_scan(name: str, neutral: float) -> None:
    @adapter(f"nan{name}")
    def scan(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = as_tensor(a)
        numbers = xp.where(xp.isnan(x), neutral, x)
        return renamed(name)(numbers, axis, dtype)


_nan_scan("cumsum", 0)
_nan_scan("cumprod", 1)


def _nan_extreme(name: str, worst: float) -> None:
    @adapter(f"nan{name}")
    def reduce(
        a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        x, settings = as_tensor(a), {"axis": axis, "keepdims": keepdims}
        find = ADAPTERS[name]
        if not x.dtype.is_inexact:
            return find(x, **settings, initial=initial, where=where)
        there = xp.logical_not(xp.isnan(x))
        result = find(xp.where(there, x, worst), **settings, initial=initial, where=where)
        if initial is not None:
            return result
        is_number = xp.any(there, **settings)
        return xp.where(is_number, result, math.nan)


_nan_extreme("max", -math.inf)
_nan_extreme("min", math.inf)


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


def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool, skip_nan: bool) -> Any:
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
    find: Any = functools.partial(np.quantile, q=levels, method=method)
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


def _quantiles(name: str, skip_nan: bool) -> None:
    @adapter(f"{name}quantile")
    def quantile(
        a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
    ) -> Any:
        return _quantile(a, q, axis, method, keepdims, skip_nan)

    @adapter(f"{name}percentile")
    def percentile(
        a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
    ) -> Any:
        return _quantile(a, operand(q) / 100, axis, method, keepdims, skip_nan)

    @adapter(f"{name}median")
    def median(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return _quantile(a, 0.5, axis, "linear", keepdims, skip_nan)


_quantiles("", skip_nan=False)
_quantiles("nan", skip_nan=True)


# -- differences -----------------------------------------------------------------------------------
@adapter("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of neighbours in the flat array, between two ends."""
    x = xp.reshape(as_tensor(ary), (-1,))
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, xp.reshape(as_tensor(to_begin, x), (-1,)))
    if to_end is not None:
        parts.append(xp.reshape(as_tensor(to_end, x), (-1,)))
    return xp.concat(parts)
