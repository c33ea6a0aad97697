"""`scipy.interpolate.interp1d`: steps, straight lines and splines of any order through samples.

The splines are SciPy's, B-splines whose knots follow from the places of the samples (C. de Boor,
"A Practical Guide to Splines" (2001), X and XIII): their coefficients and their values have
derivatives by places and samples of every order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    BatchedValueError,
    DTypeError,
    ShapeError,
    TensorIndexError,
    compose,
)
from pullback.interop.scipy.linalg import solve_banded
from pullback.interop.scipy.reading import array_as_scipy, as_scipy, in_one_precision, named
from pullback.ops.declare import by_sample
from pullback.ops.functions.creation import asarray, zeros
from pullback.ops.functions.joining import concat, stack
from pullback.ops.functions.manipulation import moveaxis
from pullback.ops.functions.pointwise import clamp, where
from pullback.ops.functions.sorting import searchsorted
from pullback.ops.primitives.comparison import isnan

__all__ = ["interp1d"]

_STEPS = ("nearest", "nearest-up", "previous", "next", "zero")
_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_KINDS = ("linear", *_STEPS, "slinear", "quadratic", "cubic")


class interp1d:  # noqa: N801 (SciPy's name)
    """A function through samples, as `scipy.interpolate.interp1d`.

    Parameters
    ----------
    x : (n,) array or Tensor
    y : array or Tensor
        Samples along `axis`.
    kind : str or int
        ``"linear"``; the steps ``"nearest"``, ``"nearest-up"``, ``"previous"``, ``"next"`` and
        ``"zero"``; the splines ``"slinear"``, ``"quadratic"`` and ``"cubic"``, or their order.
    axis : int
    copy : bool
        Nothing is ever overwritten.
    bounds_error : bool, optional
        Whether places outside are an error: by default, unless `fill_value` is "extrapolate".
    fill_value : array, pair of arrays or "extrapolate"
        What is outside, or below and above.
    assume_sorted : bool
        Whether `x` increases; it is sorted otherwise.

    Attributes
    ----------
    x, y : array or Tensor
        The places and the samples, in order.
    fill_value, bounds_error, axis
        As given, or what they are by default.

    Raises
    ------
    ArgumentError
        If a place is outside where that is an error, one comes twice or the kind is another.
    ShapeError, DTypeError, TensorIndexError
        If samples, places and what is outside do not fit.

    Notes
    -----
    It has derivatives by `x`, `y`, `fill_value` and the places where it is read. By the last, and
    by `x`, those of steps are 0. At a sample a derivative is that of the piece after it.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([0.0, 1.0, 3.0])
    >>> interp1d = pb.interop.scipy.interpolate.interp1d
    >>> interp1d(x, x**2)(pb.tensor([0.5, 2.0]))
    tensor([0.5000, 5.0000])
    >>> interp1d(x, x**2, "quadratic")(pb.tensor([0.5, 2.0]))
    tensor([0.2500, 4.0000])
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: Any = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = math.nan,
        assume_sorted: bool = False,
    ) -> None:
        self._kind, self._order = _kind_of(kind)
        self._knots, self._samples, self.axis = _in_order(x, y, axis, assume_sorted)
        self._given, self.copy, self.bounds_error = [x, y], copy, bounds_error
        self.dtype = np.complex128 if self._samples.is_complex() else np.float64
        goes_on = isinstance(fill_value, str) and fill_value == "extrapolate"
        if self._kind in ("previous", "next") and goes_on:
            self._check_extrapolation()
            # There is nothing before the first sample, or after the last.
            first, last = (as_scipy(self._samples[i], self._given) for i in (0, -1))
            fill_value = (math.nan, last) if self._kind == "previous" else (first, math.nan)
        n, least = self._knots.shape[0], self._order + 1
        if self._kind == "linear":
            least = 2 if goes_on else 1
        if n < least:
            required = f"{least} samples or more required for {kind!r}"
            raise ShapeError(compose("interp1d", required, f"{n}"))
        self.fill_value = fill_value
        if self._order > 1:
            self._spline = _spline(self._knots, self._samples, self._order)

    @property
    def x(self) -> Any:
        """The places of the samples, increasing."""
        return as_scipy(self._knots, self._given)

    @property
    def y(self) -> Any:
        """The samples, in the order of their places."""
        return as_scipy(moveaxis(self._samples, 0, self.axis), self._given)

    @property
    def fill_value(self) -> Any:
        """What is outside."""
        return self._fill

    @fill_value.setter
    def fill_value(self, fill: Any) -> None:
        self._outside: tuple[Tensor, Tensor] | None = None
        if isinstance(fill, str):
            if fill != "extrapolate":
                required = 'numbers, a pair of them or "extrapolate" required as fill_value'
                raise ArgumentError(compose("interp1d", required, repr(fill)))
            self._check_extrapolation()
        else:
            pair = fill if isinstance(fill, tuple) and len(fill) == 2 else (fill, fill)
            below, above = (_filling(value, self._samples) for value in pair)
            self._outside = (below, above)
            self.bounds_error = True if self.bounds_error is None else self.bounds_error
        self._fill = fill

    def _check_extrapolation(self) -> None:
        if self.bounds_error:
            required = "bounds_error=False required for fill_value='extrapolate'"
            raise ArgumentError(compose("interp1d", required, "True"))
        self.bounds_error = False

    def __call__(self, x: Any) -> Any:
        """Return the function at each element of `x`."""
        try:
            return self._read(x)
        except BatchedValueError as error:  # which of a batch is outside is asked for each sample
            return by_sample(error, self._read, (x,), {})

    def _read(self, x: Any) -> Any:
        at = named("interp1d", "x", x)
        if at.is_complex():
            raise DTypeError(compose("interp1d", "real places required", at.dtype.name, ("x", at)))
        low, high = self._knots[0].detach(), self._knots[-1].detach()
        below, above = at.detach() < low, at.detach() > high
        if self._outside is None:
            result = self._shaped(self._at(at.reshape((-1,))), at.shape)
            return array_as_scipy(result, [*self._given, x])
        if self.bounds_error and bool((below | above).any()):
            self._refuse(at, below | above)
        inside = where(below | above, low.to(at.dtype), at)
        result = self._shaped(self._at(inside.reshape((-1,))), at.shape)
        before, after = (1,) * self.axis, (1,) * (self._samples.ndim - 1 - self.axis)
        for mask, fill in zip((below, above), self._outside, strict=True):
            rest = fill.shape
            fill = fill.reshape((*rest[: self.axis], *(1,) * at.ndim, *rest[self.axis :]))
            mask = mask.reshape((*before, *at.shape, *after))
            result = where(mask, fill.to(result.dtype), result)
        pair = self._fill if isinstance(self._fill, tuple) else (self._fill,)
        return array_as_scipy(result, [*self._given, x, *pair])

    def _refuse(self, at: Tensor, outside: Tensor) -> None:
        low, high = float(self._knots[0].detach()), float(self._knots[-1].detach())
        required = f"places from {low:g} to {high:g} required"
        came = f"{at.detach().numpy()[outside.numpy()].ravel()[0]:g}"
        hint = 'give fill_value="extrapolate", or bounds_error=False and a number as fill_value'
        raise ArgumentError(compose("interp1d", required, came, ("x", at), hint=hint))

    def _shaped(self, result: Tensor, shape: Any) -> Tensor:
        result = result.reshape((*shape, *self._samples.shape[1:]))
        return with_axes_at(result, len(shape), self.axis)

    def _at(self, at: Tensor) -> Tensor:
        """Return the function at places of one axis, which comes first."""
        x, y, n = self._knots, self._samples, self._knots.shape[0]
        if self._kind in _STEPS or n == 1:
            result = y[_step(self._kind, x.detach(), at.detach())]
            where_read = at.reshape((-1, *(1,) * (y.ndim - 1)))
            if self._kind == "zero":  # as a spline, NaN at NaN
                result = where(isnan(where_read.detach()), math.nan, result)
            return _still(result, where_read, x[0])
        if self._order > 1:
            return _spline_at(*self._spline, self._order, at)
        after = clamp(searchsorted(x.detach(), at.detach(), side="right"), 1, n - 1)
        share = (at - x[after - 1]) / (x[after] - x[after - 1])
        first = y[after - 1]
        return first + (y[after] - first) * share.reshape((-1, *(1,) * (y.ndim - 1)))


def with_axes_at(result: Tensor, count: int, axis: int) -> Tensor:
    """Bring the first axes, those of the places, to where the axis of the samples was."""
    if not count or not axis:
        return result
    return moveaxis(result, tuple(range(count)), tuple(range(axis, axis + count)))


def _kind_of(kind: Any) -> tuple[str, int]:
    """Return a word of the kind, and the order of a spline."""
    if isinstance(kind, int) and kind >= 0:
        return {0: "zero", 1: "slinear"}.get(kind, "spline"), int(kind)
    if not isinstance(kind, str) or kind not in _KINDS:
        required = f"a kind of {', '.join(_KINDS)}, or the order of a spline, required"
        hint = "CubicSpline and PchipInterpolator of pb.interop.scipy.interpolate are others"
        raise ArgumentError(compose("interp1d", required, repr(kind), hint=hint))
    return kind, _ORDERS.get(kind, 0)


# -- what is given ---------------------------------------------------------------------------------
def _in_order(x: Any, y: Any, axis: int, assume_sorted: bool) -> tuple[Tensor, Tensor, int]:
    """Return increasing places, the samples with their axis in front, and which it was."""
    x, y = in_one_precision(named("interp1d", "x", x), named("interp1d", "y", y))
    if not y.ndim or not -y.ndim <= axis < y.ndim:
        required = "an axis of y required"
        raise TensorIndexError(compose("interp1d", required, f"{axis}", ("y", y)))
    axis, y = axis % y.ndim, moveaxis(y, axis, 0)
    if x.is_complex() or x.ndim != 1 or not 0 < x.shape[0] == y.shape[0]:
        required = "real x of one axis and as many samples, one or more, required"
        came = f"{tuple(x.shape)} and {y.shape[0]} along axis {axis}"
        raise ShapeError(compose("interp1d", required, came, ("x", x), ("y", y)))
    values = x.detach().numpy()
    order = np.argsort(values, kind="stable")
    if not assume_sorted and not np.array_equal(order, np.arange(len(order))):
        x, y, values = x[asarray(order)], y[asarray(order)], values[order]
    if np.isnan(values).any() or not (values[1:] > values[:-1]).all():
        required = "increasing x required" if assume_sorted else "x without NaN or repeats required"
        wrong = np.isnan(values) | np.append(False, values[1:] <= values[:-1])
        raise ArgumentError(compose("interp1d", required, f"{values[wrong][0]:g}", ("x", x)))
    return x, y, axis


def _filling(value: Any, samples: Tensor) -> Tensor:
    """Return what is outside, of the shape of one sample."""
    result, shape = named("interp1d", "fill_value", value), samples.shape[1:]
    if result.is_complex() and not samples.is_complex():
        required = "a real fill_value required for real y"
        raise DTypeError(compose("interp1d", required, result.dtype.name))
    if not shape and result.shape == (1,):
        return result.reshape(())
    pairs = zip(reversed(result.shape), reversed(shape), strict=False)
    if result.ndim > len(shape) or any(n not in (1, m) for n, m in pairs):
        required = (
            f"a fill_value that broadcasts to the shape of a sample, {tuple(shape)}, required"
        )
        hint = "a tuple of two is what is below and above"
        raise ShapeError(compose("interp1d", required, f"{tuple(result.shape)}", hint=hint))
    return result.expand(shape)


# -- steps -----------------------------------------------------------------------------------------
def _step(kind: str, x: Tensor, at: Tensor) -> Tensor:
    """Return which sample counts at each place."""
    if kind in ("nearest", "nearest-up"):
        half = x / 2.0
        middle = half[1:] + half[:-1]
        result = searchsorted(middle, at, side="left" if kind == "nearest" else "right")
    elif kind == "next":
        result = searchsorted(x, at, side="left")
    else:
        result = searchsorted(x, at, side="right") - 1
    return clamp(result, 0, x.shape[0] - 1)


def _still(result: Tensor, *others: Tensor) -> Tensor:
    """Return a result whose derivatives by others are there, and 0."""
    never = asarray(np.asarray(False))
    for other in others:
        result = where(never, other.to(result.dtype), result)
    return result


# -- splines ---------------------------------------------------------------------------------------
def _spline(x: Tensor, y: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Return knots and coefficients of the spline that is not-a-knot, all NaN where a sample is."""
    half = order // 2 + order % 2
    inner = x if order % 2 else (x[1:] + x[:-1]) / 2
    knots = concat([x[:1]] * (order + 1) + [inner[half:-half]] + [x[-1:]] * (order + 1), axis=0)
    n, cell = x.shape[0], _cells(knots, x, order)
    weights = stack(_weights(knots, cell, order, x), axis=1)
    # Row r of the banded matrix holds the elements (i, j) with i = j + r - order; others are 0.
    i = np.arange(n) + np.arange(2 * order + 1)[:, None] - order
    which = np.arange(n) - (cell.numpy()[np.clip(i, 0, n - 1)] - order)
    is_zero = (i < 0) | (i >= n) | (which < 0) | (which > order)
    source = np.where(is_zero, n * (order + 1), i * (order + 1) + which)
    elements = concat([weights.reshape((-1,)), zeros((1,), dtype=weights.dtype)], axis=0)
    is_nan = isnan(y.detach())
    samples = where(is_nan, 0.0, y).reshape((n, -1))
    result: Tensor = solve_banded((order, order), elements[asarray(source)], samples)
    return knots, where(is_nan.any(), math.nan, result).reshape(y.shape)


def _cells(knots: Tensor, at: Tensor, order: int) -> Tensor:
    """Return the number of the last knot before each place; the outer pieces go on."""
    result = searchsorted(knots.detach(), at.detach(), side="right") - 1
    return clamp(result, order, knots.shape[0] - order - 2)


def _weights(knots: Tensor, cell: Tensor, order: int, at: Tensor) -> list[Tensor]:
    """Return the B-splines that are not 0 at each place, by de Boor's recursion."""
    result = [at * 0.0 + 1.0]
    for degree in range(1, order + 1):
        grown: list[Any] = []
        carried: Any = 0.0
        for r, weight in enumerate(result):
            low, high = knots[cell + (r + 1 - degree)], knots[cell + (r + 1)]
            share = weight / (high - low)
            grown.append(carried + share * (high - at))
            carried = share * (at - low)
        result = [*grown, carried]
    return result


def _spline_at(knots: Tensor, coefficients: Tensor, order: int, at: Tensor) -> Tensor:
    cell = _cells(knots, at, order)
    shape = (-1, *(1,) * (coefficients.ndim - 1))
    terms = [
        coefficients[cell + (r - order)] * weight.reshape(shape)
        for r, weight in enumerate(_weights(knots, cell, order, at))
    ]
    return sum(terms[1:], terms[0])
