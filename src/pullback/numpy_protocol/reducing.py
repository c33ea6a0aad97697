"""NumPy's reductions on tensors: their ``where``, ``initial``, ``ddof`` and NaNs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ArgumentTypeError, compose
from pullback.numpy_protocol.arguments import (
    adapter,
    as_tensor,
    beside,
    namespace,
    operand,
    position,
    values_of,
)
from pullback.ops.axes import normalize_axes, normalize_axis
from pullback.ops.functions import (
    creation,
    data_types,
    joining,
    manipulation,
    norms,
    pointwise,
    reductions,
    scans,
    sorting,
)
from pullback.ops.primitives import comparison as comparison_primitives
from pullback.ops.primitives import exponential
from pullback.ops.primitives import reductions as reductions_primitives
from pullback.ops.primitives.reductions import var_p


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
    return total if initial is None else total + initial


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
    return product if initial is None else product * initial


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
        x = _chosen(a, where, initial)
        if initial is None:
            return getattr(namespace(), name)(x, axis=axis, keepdims=keepdims)
        if 0 in x.shape:
            return beside(find(values_of(x), axis=axis, keepdims=keepdims, initial=initial), x)
        result = getattr(namespace(), name)(x, axis=axis, keepdims=keepdims)
        return getattr(namespace(), pick)(result, initial)


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


def _inexact(a: Any, dtype: Any = None) -> Any:
    """Return `a` in a dtype that holds a mean: NumPy's float64 for integers."""
    x = as_tensor(a)
    if dtype is None and not x.dtype.is_inexact:
        dtype = np.dtype(np.float64)
    return x if dtype is None else data_types.astype(x, dtype, copy=False)


@adapter("mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """Return the mean, of what a mask leaves."""
    x = _inexact(a, dtype)
    if where is True:
        return reductions_primitives.mean(x, axis=axis, keepdims=keepdims)
    mask = manipulation.broadcast_to(_truth(where), x.shape)
    count = reductions.sum(data_types.astype(mask, x.dtype), axis=axis, keepdims=keepdims)
    return sum(x, axis, keepdims=keepdims, where=mask) / count


@adapter("var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Return the variance; `correction` is the standard's name for `ddof`."""
    less = ddof if correction is None else correction
    return var_p.public(_inexact(a, dtype), axis=axis, correction=less, keepdims=keepdims)


@adapter("std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
) -> Any:
    """Return the standard deviation; `correction` is the standard's name for `ddof`."""
    less = ddof if correction is None else correction
    return reductions_primitives.std(
        _inexact(a, dtype), axis=axis, correction=less, keepdims=keepdims
    )


@adapter("average")
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Return the mean weighted by `weights`, of the shape of `a` or of its axis."""
    x = _inexact(a)
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


# -- running sums and products ---------------------------------------------------------------------
def _flat_where_no_axis(a: Any, axis: Any, dtype: Any) -> tuple[Any, int]:
    x = as_tensor(a)
    if dtype is not None:
        x = data_types.astype(x, dtype, copy=False)
    if axis is None:
        x, axis = manipulation.reshape(x, (-1,)), 0
    return x, axis


@adapter("cumsum")
def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return the running sum, of the flat array where no axis is given."""
    x, along = _flat_where_no_axis(a, axis, dtype)
    return scans.cumulative_sum(x, axis=along)


@adapter("cumprod")
def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return the running product, of the flat array where no axis is given."""
    x, along = _flat_where_no_axis(a, axis, dtype)
    return scans.cumulative_prod(x, axis=along)


# -- what leaves NaNs out --------------------------------------------------------------------------
def _without_nans(a: Any, value: float) -> tuple[Any, Any]:
    """Return `a` with `value` in place of NaNs, which get no gradient, and where they are not."""
    x = as_tensor(a)
    there = comparison_primitives.logical_not(comparison_primitives.isnan(x))
    return pointwise.where(there, x, value), there


@adapter("nansum")
def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the sum of what is not NaN."""
    return reductions.sum(_without_nans(a, 0)[0], axis=axis, dtype=dtype, keepdims=keepdims)


@adapter("nanprod")
def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the product of what is not NaN."""
    return reductions.prod(_without_nans(a, 1)[0], axis=axis, dtype=dtype, keepdims=keepdims)


@adapter("nancumsum")
def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return the running sum of what is not NaN."""
    return cumsum(_without_nans(a, 0)[0], axis, dtype)


@adapter("nancumprod")
def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Return the running product of what is not NaN."""
    return cumprod(_without_nans(a, 1)[0], axis, dtype)


@adapter("nanmean")
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Return the mean of what is not NaN."""
    x, there = _without_nans(_inexact(a, dtype), 0)
    count = reductions.sum(data_types.astype(there, x.dtype), axis=axis, keepdims=keepdims)
    return reductions.sum(x, axis=axis, keepdims=keepdims) / count


@adapter("nanvar")
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    """Return the variance of what is not NaN."""
    deviation, freedom = _deviation(a, axis, dtype, ddof, keepdims)
    return reductions.sum(exponential.square(deviation), axis=axis, keepdims=keepdims) / freedom


@adapter("nanstd")
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    """Return the standard deviation of what is not NaN."""
    deviation, freedom = _deviation(a, axis, dtype, ddof, keepdims)
    return norms.vector_norm(deviation, axis=axis, keepdims=keepdims) / exponential.sqrt(freedom)


def _deviation(a: Any, axis: Any, dtype: Any, ddof: float, keepdims: bool) -> tuple[Any, Any]:
    """Return what is not NaN less its mean, 0 for the others, and the degrees of freedom."""
    x, there = _without_nans(_inexact(a, dtype), 0)
    deviation = pointwise.where(there, x - nanmean(a, axis, dtype, keepdims=True), 0)
    count = reductions.sum(data_types.astype(there, x.dtype), axis=axis, keepdims=keepdims)
    return deviation, count - ddof


def _nan_extreme(name: str, worst: float) -> None:
    @adapter(f"nan{name}")
    def reduce(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        x, there = _without_nans(a, worst)
        found = reductions_primitives.any(there, axis=axis, keepdims=keepdims)
        return pointwise.where(
            found, getattr(namespace(), name)(x, axis=axis, keepdims=keepdims), math.nan
        )


_nan_extreme("max", -math.inf)
_nan_extreme("min", math.inf)


# -- order statistics ------------------------------------------------------------------------------
@adapter("quantile")
def quantile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """Interpolate between the sorted elements around ``q * (n - 1)``; `q` has no gradient."""
    if method != "linear":
        raise ArgumentError(compose("np.quantile", "method='linear' required", repr(method)))
    if tensors := [x for x in (q,) if getattr(x, "requires_grad", False)]:
        hint = "detach() it: no gradient with respect to q is known"
        raise ArgumentTypeError(
            compose(
                "np.quantile",
                "constant q required",
                "one in the graph",
                ("q", tensors[0]),
                hint=hint,
            )
        )
    x = _inexact(a)
    axes = normalize_axes("np.quantile", axis, x.ndim)
    others = [i for i in range(x.ndim) if i not in axes]
    rows = manipulation.permute_dims(x, (*others, *axes))
    rows = manipulation.reshape(rows, (*(x.shape[i] for i in others), -1))
    ordered = sorting.sort(rows, axis=-1)
    levels = np.asarray(values_of(q), float)
    places = levels.ravel() * (rows.shape[-1] - 1)
    low = np.floor(places).astype(int)
    high = np.ceil(places).astype(int)
    weight = beside((places - low).astype(values_of(x).real.dtype), x)
    found = ordered[..., low] * (1 - weight) + ordered[..., high] * weight
    bad = reductions_primitives.any(comparison_primitives.isnan(rows), axis=-1, keepdims=True)
    found = manipulation.moveaxis(pointwise.where(bad, math.nan, found), -1, 0)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    rest = kept if keepdims else found.shape[1:]
    return manipulation.reshape(found, (*levels.shape, *rest))


@adapter("percentile")
def percentile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Any:
    """Return quantiles of hundredths."""
    return quantile(a, operand(q) / 100, axis, method, keepdims)


@adapter("median")
def median(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the middle element, or the mean of the two in the middle."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


# -- differences and areas -------------------------------------------------------------------------
@adapter("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """Return the area under a curve by the trapezoidal rule."""
    values = as_tensor(y)
    along = normalize_axis("np.trapezoid", axis, values.ndim)
    width: Any = dx
    if x is not None:
        places = as_tensor(x, values)
        if places.ndim == 1:
            gaps = places[1:] - places[:-1]
            width = manipulation.reshape(gaps, (-1,) + (1,) * (values.ndim - along - 1))
        else:
            ahead, behind = _neighbours(places, along)
            width = ahead - behind
    ahead, behind = _neighbours(values, along)
    return reductions.sum(width * (ahead + behind) / 2.0, axis=along)


def _neighbours(x: Any, axis: int) -> tuple[Any, Any]:
    return x[position(axis, slice(1, None))], x[position(axis, slice(None, -1))]


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
