"""Derivatives by finite differences, with estimates of their errors.

Must not know of tensors or of backward: it works on a function along a line. Coordinates are real:
a complex number is two of them. `slope` measures the derivative of all outputs along one line at
once, by central differences extrapolated to step 0 (Richardson's extrapolation, `[1]`_), at as many
steps as needed, and distinguishes smooth points from kinks (the one-sided derivatives differ),
jumps and edges of the domain.

.. [1] W. H. Press et al., Numerical Recipes, 3rd ed., section 5.7.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.values import Array, Arrays

Curve = Callable[[float], Array | None]

# Steps as powers of the rounding unit, the best first: with three halvings, truncation and
# rounding balance at about eps ** (1/5) for a function of scale 1.
_POWERS = (0.2, 0.25, 0.14, 0.33, 0.08, 0.4)
_ACCURATE = 1e-7
_ROOM = 1e-5  # relative to a slope: how far two measurements of it may differ
_SIGNS = np.array([-1.0, 1.0])
_TINY = 1e-300  # below it, results may have underflowed


class Slope(NamedTuple):
    """The derivative along a line, of each output.

    From low to high are the two one-sided derivatives at a kink; these are infinite where it cannot
    be measured, otherwise both equal.
    """

    low: Array
    high: Array
    error: Array  # an estimate, of these
    kink: Array  # where they differ, the function jumps, or nothing could be measured

    @property
    def value(self) -> Array:
        """The middle of the range; NaN where it is unknown."""
        with np.errstate(invalid="ignore"):
            return (self.low + self.high) / 2

    @property
    def room(self) -> Array:
        """How far another measurement of the same derivative may be from its middle."""
        sizes = np.maximum(np.abs(self.low), np.abs(self.high))
        return np.asarray((self.high - self.low) / 2 + 10 * self.error + _ROOM * sizes)


def is_range(low: Any, high: Any) -> Any:
    """Return whether two bounds say anything, or where those of several do."""
    return ~(np.isnan(low) | np.isnan(high) | (np.isinf(low) & np.isinf(high)))


def double(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of double precision, complex for a complex one."""
    return np.dtype(np.complex128 if dtype.kind == "c" else np.float64)


def coordinates(array: Array) -> Array:
    """Return the real coordinates of an array, flat and in float64."""
    flat = np.array(array, double(array.dtype)).ravel()
    return flat.view(np.float64)


def joined(arrays: Sequence[Array]) -> Array:
    """Return the real coordinates of several arrays one after the other."""
    return np.concatenate([coordinates(a) for a in arrays]) if arrays else np.zeros(0)


def from_coordinates(flat: Array, like: Array) -> Array:
    """Return real coordinates as an array of the shape and dtype of `like`."""
    wide = np.array(flat, np.float64).view(double(like.dtype))
    return wide.reshape(like.shape).astype(like.dtype, copy=False)


def max_abs(*arrays: Array) -> float:
    """Return the largest finite absolute value, 0 if there is none."""
    sizes = [np.abs(a[np.isfinite(a)]) for a in arrays]
    return max((float(np.max(size, initial=0.0)) for size in sizes), default=0.0)


def direction_scales(size: Array) -> Array:
    """Return how far each coordinate of those sizes is moved along a random direction."""
    least = 0.1 * (max_abs(size) or 1.0)
    return np.maximum(np.where(np.isfinite(size), size, 1.0), least)


def away_from_zero(shape: int | tuple[int, ...], rng: np.random.Generator) -> Any:
    """Draw numbers between 0.5 and 1.5 and their negatives."""
    return rng.uniform(0.5, 1.5, shape) * _SIGNS[rng.integers(0, 2, shape)]


def random_like(array: Array, rng: np.random.Generator) -> Array:
    """Draw numbers away from zero, of the shape and dtype of `array`."""
    values = away_from_zero(array.shape, rng)
    if array.dtype.kind == "c":
        values = values + 1j * rng.uniform(0.5, 1.5, array.shape)
    return np.asarray(values).astype(array.dtype)


def kept_equal(flat: Array, rng: np.random.Generator) -> Array:
    """Draw a direction along which equal values stay equal.

    Alone, each of them may be at a kink; a rule that gives all of them the whole gradient shows
    when they move together. Slopes of a median of equal values only add up along such directions.
    """
    values, groups = np.unique(flat, return_inverse=True)
    return np.asarray(away_from_zero(values.size, rng)[groups])


def beside(array: Array, by: float, salt: float = 1.0, apart: bool = False) -> Array:
    """Return an array a little beside: each element changed by up to `by` of itself.

    Equal elements stay equal, and zeros stay; with `apart`, no elements are equal or 0.
    """
    with np.errstate(all="ignore"):
        phase = np.asarray(array.real + 2 * array.imag).astype(np.float64)
        if apart:
            phase = np.arange(array.size, dtype=np.float64).reshape(array.shape)
            array = np.where(array == 0, by * (max_abs(array) or 1.0), array).astype(array.dtype)
        factor = 1 + by * np.nan_to_num(np.cos(salt + 1e3 * phase))
        return np.asarray(array * factor).astype(array.dtype)


def slope(line: Curve, scales: Sequence[float], eps: float) -> Slope:
    """Measure the derivative of ``line(t)``, the outputs' coordinates or None, at 0.

    Of the steps that are tried, each output's derivative is taken from the one that leaves least
    doubt. A smooth one at a step that spans a kink, as a smaller step shows, does not count. Length
    scales of the function are given with the most likely first, and the outputs' rounding unit.
    """
    center = line(0.0)
    assert center is not None
    steps, size = list[float](), np.abs(center)
    found, floors = list[Slope](), list[Array]()
    with np.errstate(all="ignore"):
        for scale, power in itertools.product(dict.fromkeys(scales), _POWERS):
            steps.append(scale * eps**power)
            here, floor, reach = _at_step(line, center, steps[-1], eps)
            found, floors, size = [*found, here], [*floors, floor], np.fmax(size, reach)
            best, accurate = _least_doubtful(np.array(steps)[:, None], found, floors)
            if accurate.all():
                break
        rough = max(1e-4, 30 * eps**0.5) * _rounded(size) + 1e7 * _TINY
        sizes = np.fmax(np.abs(best.low), np.abs(best.high))
        known = best.error <= 0.1 * sizes + rough / min(scales)
    unknown = Slope(*(np.full(size.shape, value) for value in (-np.inf, np.inf, 0.0, True)))
    return Slope(*(np.where(known, *pair) for pair in zip(best, unknown, strict=True)))


def _least_doubtful(steps: Array, found: Sequence[Slope], floors: Arrays) -> tuple[Slope, Array]:
    """Return, for each output, the best of the slopes at some steps, and whether it is accurate."""
    low, high, error, kink = (np.stack(each) for each in zip(*found, strict=True))
    sizes, bent = np.fmax(np.abs(low), np.abs(high)), kink & (high > low)
    bend = np.min(np.where(bent, steps, np.inf), axis=0)
    # Of the edge of a domain, the other side is not known.
    doubt = error + np.where(kink & ~bent, sizes, high - low)
    doubt = np.where(bent | (steps <= bend), doubt, np.inf)
    best = np.argmin(np.nan_to_num(doubt, nan=np.inf), axis=0), np.arange(low.shape[1])
    accurate = (bent | ~kink) & (error <= _ACCURATE * sizes + 4 * np.stack(floors))
    # Errors at smaller steps are of noise, which is as large at the step that is taken.
    taken = steps[best[0], 0]
    noise = np.fmax.reduce(np.where(steps < taken, error * steps / taken, 0.0))
    error = np.fmax(error[best], noise)
    return Slope(low[best], high[best], error, kink[best]), accurate[best]


def _at_step(line: Curve, center: Array, h: float, eps: float) -> tuple[Slope, Array, Array]:
    """Return slopes from differences at h, h/2 and h/4, their rounding errors, and outputs' sizes.

    A kink without a range is the edge of the domain.
    """
    steps = h * np.array([[1.0], [0.5], [0.25]])
    ends = [line(float(t)) for t in np.ravel([steps, -steps])]
    right, left = np.split(np.array([center * np.nan if e is None else e for e in ends]), 2)
    size = np.fmax(np.abs(center), np.fmax(np.abs(right[0]), np.abs(left[0])))
    floor = (8 * eps * _rounded(size) + _TINY) / h
    right, left = (right - center) / steps, (center - left) / steps
    value, error = _to_zero((right + left) / 2, 4)
    # The slopes of the two sides approach each other as the step shrinks; at a kink they do not,
    # and noise and jumps drive them apart.
    gaps = np.abs(right - left)
    gap = np.where((gaps[2] > 0.7 * gaps[0]) & (gaps[2] > 8 * floor), gaps[2], 0.0)
    smooth = Slope(value, value.copy(), error + gap + floor, np.isnan(value))
    if not (smooth.kink | (gap > 0)).any():
        return smooth, floor, size
    (a, error_a), (b, error_b) = _to_zero(right, 2), _to_zero(left, 2)
    sides = np.fmax(error_a, error_b)
    kink = (gap > 0) & (gaps[2] < 1.5 * gaps[0]) & (np.abs(a - b) > 8 * sides)
    kink |= smooth.kink
    bent = Slope(np.fmin(a, b), np.fmax(a, b), sides + floor, kink)
    found = [np.where(kink, *pair) for pair in zip(bent, smooth, strict=True)]
    return Slope(*found), floor, size


def _rounded(size: Array) -> Array:
    """Return outputs' sizes; small ones, whose terms may cancel, are rounded like the others."""
    return np.asarray(np.maximum(size, 0.1 * np.max(size, initial=0.0, where=np.isfinite(size))))


def _to_zero(slopes: Array, factor: int) -> tuple[Array, Array]:
    """Extrapolate slopes at h, h/2 and h/4, whose error shrinks by that factor, and its square."""
    once = (factor * slopes[1:] - slopes[:-1]) / (factor - 1)
    return (factor**2 * once[1] - once[0]) / (factor**2 - 1), np.abs(once[1] - once[0])
