"""NumPy's reductions on tensors: their ``where``, ``initial``, ``ddof`` and NaNs."""

from __future__ import annotations

import functools
import math
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
    namespace,
    operand,
    values_of,
)
from pullback.numpy_protocol.renamings import renamed
from pullback.ops.axes import normalize_axes
from pullback.ops.functions import (
    complex_numbers,
    creation,
    data_types,
    joining,
    manipulation,
    norms,
    pointwise,
    reductions,
    sorting,
)
from pullback.ops.primitives import (
    comparison as comparison_primitives,
    exponential,
    reductions as reductions_primitives,
)
from pullback.ops.primitives.gathering import gather_p
from pullback.ops.primitives.reductions import std_p, var_p


def _chosen(a: Any, where: Any, neutral: float) -> Any:
    """Return `a` with `neutral` where it is not to be counted."""
    x = as_tensor(a)
    return x if where is True else pointwise.where(_truth(where), x, neutral)


def _truth(mask: Any) -> Any:
    mask = as_tensor(mask)
    return mask if mask.dtype.kind == "b" else mask != 0


@adapter("sum")
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Sum with what NumPy adds: a start, and a mask."""
    total = reductions.sum(_chosen(a, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
    return total if initial is None else total + operand(initial)


@adapter("prod")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Multiply with what NumPy adds: a start, and a mask."""
    product = reductions.prod(_chosen(a, where, 1), axis=axis, dtype=dtype, keepdims=keepdims)
    return product if initial is None else product * operand(initial)


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
            return manipulation.broadcast_to(as_tensor(initial, x), shape)
        result = getattr(namespace(), name)(x, axis=axis, keepdims=keepdims)
        return result if initial is None else getattr(namespace(), pick)(result, operand(initial))


_extreme("max")
_extreme("min")


@adapter("ptp")
def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the largest less the smallest element."""
    x = as_tensor(a)
    settings = {"axis": axis, "keepdims": keepdims}
    return reductions_primitives.max(x, **settings) - reductions_primitives.min(x, **settings)


@adapter("any")
def any(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    """Return whether any element is true."""
    return reductions_primitives.any(_chosen(a, where, False), axis=axis, keepdims=keepdims)


@adapter("all")
def all(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    """Return whether all elements are true."""
    return reductions_primitives.all(_chosen(a, where, True), axis=axis, keepdims=keepdims)


@adapter("mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return the mean, of what a mask leaves."""
    x = inexact(a, dtype)
    if where is True:
        return reductions_primitives.mean(x, axis=axis, keepdims=keepdims)
    mask = manipulation.broadcast_to(_truth(where), x.shape)
    count = reductions.sum(data_types.astype(mask, x.dtype), axis=axis, keepdims=keepdims)
    return sum(x, axis, keepdims=keepdims, where=mask) / count


_mean = mean


@adapter("var")
def var(
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
    """Return the variance, about `mean`; `correction` is the standard's name for `ddof`."""
    less = ddof if correction is None else correction
    if where is True and mean is None:
        return var_p.public(inexact(a, dtype), axis=axis, correction=less, keepdims=keepdims)
    deviation, freedom = _deviation(a, axis, dtype, less, keepdims, where, mean)
    squares = complex_numbers.squared_size(deviation)
    return reductions.sum(squares, axis=axis, keepdims=keepdims) / freedom


@adapter("std")
def std(
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
    """Return the standard deviation, about `mean`; `correction` is an alias of `ddof`."""
    less = ddof if correction is None else correction
    if where is True and mean is None:
        return std_p.public(inexact(a, dtype), axis=axis, correction=less, keepdims=keepdims)
    deviation, freedom = _deviation(a, axis, dtype, less, keepdims, where, mean)
    root = exponential.sqrt(freedom)
    return norms.vector_norm(deviation, axis=axis, keepdims=keepdims) / root


def _deviation(
    a: Any, axis: Any, dtype: Any, less: float, keepdims: bool, where: Any, mean: Any
) -> tuple[Any, Any]:
    """Return `a` less its mean, 0 where the mask is False, and the degrees of freedom."""
    x = inexact(a, dtype)
    mask = manipulation.broadcast_to(_truth(where), x.shape)
    centre = _mean(x, axis, keepdims=True, where=mask) if mean is None else as_tensor(mean, x)
    deviation = pointwise.where(mask, x - centre, 0)
    real = data_types.finfo(x.dtype).dtype
    count = reductions.sum(data_types.astype(mask, real), axis=axis, keepdims=keepdims)
    return deviation, pointwise.where(count > less, count - less, math.nan)


@adapter("average")
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Return the mean weighted by `weights`, of the shape of `a` or of its axis."""
    x = inexact(a)
    if weights is None:
        result = reductions_primitives.mean(x, axis=axis, keepdims=keepdims)
        total = creation.full_like(result, math.prod(x.shape) / max(math.prod(result.shape), 1))
        return (result, total) if returned else result
    w = as_tensor(weights, x)
    if w.shape != x.shape:
        axes = normalize_axes("np.average", axis, x.ndim)
        if tuple(x.shape[i] for i in axes) != w.shape or axis is None:
            required = "weights of the shape of a, or of its axis, required"
            inputs = (("a", x), ("weights", w))
            raise ArgumentError(compose("np.average", required, str(w.shape), *inputs))
        w = (
            manipulation.permute_dims(w, tuple(np.argsort(np.argsort(axes))))
            if len(axes) > 1
            else w
        )
        w = manipulation.reshape(w, tuple(n if i in axes else 1 for i, n in enumerate(x.shape)))
        w = manipulation.broadcast_to(w, x.shape)
    total = reductions.sum(w, axis=axis, keepdims=keepdims)
    result = reductions.sum(x * w, axis=axis, keepdims=keepdims) / total
    return (result, manipulation.broadcast_to(total, result.shape)) if returned else result


# -- what leaves NaNs out --------------------------------------------------------------------------
def _without_nans(name: str) -> None:
    """Register a reduction of what is not NaN: that of what a mask leaves."""
    reduction = ADAPTERS[name]

    @adapter(f"nan{name}")
    @functools.wraps(reduction)
    def reduce(a: Any, *args: Any, where: Any = True, **settings: Any) -> Any:
        x = as_tensor(a)
        there = comparison_primitives.logical_not(comparison_primitives.isnan(x))
        return reduction(x, *args, where=there if where is True else there & where, **settings)


for _name in ("sum", "prod", "mean", "var", "std"):
    _without_nans(_name)


def _nan_scan(name: str, neutral: float) -> None:
    @adapter(f"nan{name}")
    def scan(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        x = as_tensor(a)
        numbers = pointwise.where(comparison_primitives.isnan(x), neutral, x)
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
        there = comparison_primitives.logical_not(comparison_primitives.isnan(x))
        result = find(pointwise.where(there, x, worst), **settings, initial=initial, where=where)
        if initial is not None:
            return result
        found = reductions_primitives.any(there, **settings)
        return pointwise.where(found, result, math.nan)


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


def _places(n: int, q: Any, method: str) -> Any:
    """Return where quantiles stand among n sorted elements: those of the places themselves."""
    return np.quantile(np.arange(max(n, 1), dtype=float), values_of(q), method=method)  # type: ignore[call-overload]


def _ordered_rows(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the elements along axes sorted in the last one, and the shape with axes kept."""
    x = inexact(a)
    axes = normalize_axes("np.quantile", axis, x.ndim)
    others = [i for i in range(x.ndim) if i not in axes]
    rows = manipulation.permute_dims(x, (*others, *axes))
    shape = (*(x.shape[i] for i in others), math.prod(x.shape[i] for i in axes))
    rows = sorting.sort(manipulation.reshape(rows, shape), axis=-1)
    if not shape[-1]:
        rows = creation.full((*shape[:-1], 1), math.nan, dtype=x.dtype, device=x.device)
    return rows, tuple(1 if i in axes else n for i, n in enumerate(x.shape))


def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool, skip_nan: bool) -> Any:
    rows, kept = _ordered_rows(a, axis)
    n, q = rows.shape[-1], operand(q)
    nans = comparison_primitives.isnan(rows)
    if skip_nan:
        counts, which = np.unique(n - values_of(nans).sum(-1), return_inverse=True)
        places = np.stack([_places(m, q, method).ravel() for m in counts])[which]
        n = counts[which][..., None]
    else:
        places = _places(n, q, method).ravel()
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, np.maximum(n - 1, 0))

    def at(index: Any) -> Any:
        wanted = np.broadcast_to(index, (*rows.shape[:-1], index.shape[-1]))
        return gather_p.public(rows, beside(wanted.copy(), rows), axis=-1)

    found = below = at(low)
    if method in _RATES or (places != low).any():
        weight = beside(places - low, rows)
        if isinstance(q, Tensor) and method in _RATES:
            rate = np.where(places != low, n + _RATES[method], 0)
            flat = manipulation.reshape(q, (-1,))
            weight = weight + (flat - flat.detach()) * beside(rate, rows)
        weight = data_types.astype(weight, rows.dtype)
        above = at(high)
        step = above - below
        found = pointwise.where(weight < 0.5, below + step * weight, above - step * (1 - weight))
    bad = (reductions_primitives.all if skip_nan else reductions_primitives.any)(
        nans, axis=-1, keepdims=True
    )
    found = manipulation.moveaxis(pointwise.where(bad, math.nan, found), -1, 0)
    return manipulation.reshape(found, (*np.shape(q), *(kept if keepdims else found.shape[1:])))


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


# -- differences and areas -------------------------------------------------------------------------


@adapter("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of neighbours in the flat array, between two ends."""
    x = manipulation.reshape(as_tensor(ary), (-1,))
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, manipulation.reshape(as_tensor(to_begin, x), (-1,)))
    if to_end is not None:
        parts.append(manipulation.reshape(as_tensor(to_end, x), (-1,)))
    return joining.concat(parts)
