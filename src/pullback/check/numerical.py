"""Derivatives by finite differences, with estimates of their errors.

Must not know of tensors or of backward: it works on a function along a line. Coordinates are real:
a complex number is two of them. `slope` measures the derivative of all outputs along one line at
once, by central differences extrapolated to step 0 (Richardson's extrapolation, `[1]`_), at as many
steps as needed, and distinguishes smooth points from kinks (the one-sided derivatives differ),
jumps and edges of the domain.

.. [1] W. H. Press et al., Numerical Recipes, 3rd ed., section 5.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.values import Array

Curve = Callable[[float], Array | None]

# Steps as powers of the rounding unit, the best first: with three halvings, truncation and
# rounding balance at about eps ** (1/5) for a function of scale 1.
_POWERS = (0.2, 0.25, 0.14, 0.33, 0.08, 0.4)
# The groups of equal values that are moved together.
_MAX_TIES = 2
# A step so small that only kinks, jumps and edges show.
_CLOSE = 0.45
_SMOOTH_ENOUGH = 1e-7
_SMALL_KINK = 1e-3  # relative to a slope: no more than its error
_TINY = 1e-300  # below it, results may have underflowed


class Slope(NamedTuple):
    """The derivative of the outputs along a line.

    Attributes
    ----------
    low, high : array (outputs,)
        The range of the derivative: the two one-sided derivatives at a kink, infinite where it
        cannot be measured, otherwise both equal.
    error : array (outputs,)
        An estimate of the error of these.
    kink : array of bool (outputs,)
        Where the one-sided derivatives differ, the function jumps, or nothing could be measured.
    """

    low: Array
    high: Array
    error: Array
    kink: Array

    @property
    def value(self) -> Array:
        """The middle of the range; NaN where it is unknown."""
        with np.errstate(invalid="ignore"):
            return (self.low + self.high) / 2


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


def typical_scale(size: Array) -> float:
    """Return the length scale of an array: its root mean square, 1 for zeros."""
    finite = size[np.isfinite(size)]
    largest = float(finite.max()) if finite.size else 0.0
    if not largest:
        return 1.0
    finite = finite / largest  # whose squares do not overflow
    return largest * float(np.sqrt(finite @ finite / finite.size))


def scales_of(size: float, typical: float) -> list[float]:
    """Return length scales for one coordinate, the most likely first."""
    return list(dict.fromkeys([max(size, 0.1 * typical), size or 1.0, 1.0]))


def direction_scales(size: Array) -> Array:
    """Return how far each coordinate is moved along a random direction."""
    return np.maximum(np.where(np.isfinite(size), size, 1.0), 0.1 * typical_scale(size))


def ties(flat: Array) -> Iterator[Array]:
    """Yield directions along which equal values stay equal, those of the most of them first.

    Alone, each of them may be at a kink; a rule that gives all of them the whole gradient shows
    when they move together.
    """
    values, groups, counts = np.unique(flat, return_inverse=True, return_counts=True)
    for k in np.argsort(-counts, kind="stable")[:_MAX_TIES]:
        if counts[k] > 1 and np.isfinite(values[k]):
            yield (groups == k).astype(np.float64)


def across(
    values: Callable[[Sequence[Array]], Sequence[Array]],
    arrays: Sequence[Array],
    steps: Mapping[int, Array],
) -> Array | None:
    """Return by how much a function's outputs differ on both sides of its arguments.

    Parameters
    ----------
    values : callable
        The function of all arguments.
    arrays : sequence of array
        Their values.
    steps : mapping of int to array
        By how much each of those that are moved is, in real coordinates.

    Returns
    -------
    array or None
        In coordinates of all outputs; None if their shapes differ.
    """
    sides, flat = [], {i: coordinates(arrays[i]) for i in steps}
    for sign in (1, -1):
        moved = list(arrays)
        for i, step in steps.items():
            moved[i] = from_coordinates(flat[i] + sign * step, arrays[i])
        sides.append(joined(values(moved)))
    return sides[0] - sides[1] if sides[0].shape == sides[1].shape else None


class _Best:
    """The best estimate so far of each output's derivative."""

    def __init__(self, count: int) -> None:
        self.value = np.full(count, np.nan)
        self.error = np.full(count, np.inf)
        self.step = np.full(count, np.inf)  # of the best estimate
        self.noise = np.full(count, np.inf)  # of the outputs themselves, as far as it showed
        self.size = np.zeros(count)  # of the outputs on the line
        self.jump = np.full(count, np.inf)  # how far the outputs move within the smallest step
        self.gap = np.zeros(count)  # between the two sides' slopes, at the smallest step with one
        self.gap_step = np.full(count, np.inf)
        self.gaps: list[tuple[float, Array]] = []  # with the steps at which they were seen
        self.done = np.zeros(count, bool)

    def offer(self, value: Array, error: Array, floor: Array, gap: Array, h: float) -> None:
        """Use an estimate at step h where it is better; `gap` is 0 where no kink shows."""
        closer = (gap > 0) & (h < self.gap_step)
        self.gap[closer], self.gap_step[closer] = gap[closer], h
        if gap.any():
            self.gaps.append((h, gap))
        self.jump = np.where(np.isfinite(value), np.fmin(np.abs(value) * h, self.jump), self.jump)
        better = np.isfinite(value) & (error + gap < self.error)
        self.value[better], self.step[better] = value[better], h
        self.error[better] = (error + gap)[better]
        self.noise = np.fmin(self.noise, error * h)
        accurate = error <= _SMOOTH_ENOUGH * np.abs(value) + 4 * floor
        self.done |= np.isfinite(value) & accurate & (gap == 0)

    def settle(self, line: Curve) -> None:
        """Widen the error of estimates at steps that span a kink seen at a smaller step."""
        doubtful = (self.gap > 0) & (self.step > self.gap_step)
        for h, gap in sorted(self.gaps, key=lambda pair: -pair[0]):
            # The largest step with a gap tells most: the closer, the more of it is rounding.
            here = doubtful & (gap > 0) & (h < self.step)
            if here.any():
                small = gap < _SMALL_KINK * np.abs(self.value)
                noisy = here & (small | (_roughness(line, h) > gap / 4))
                self.error[here] += np.where(noisy, gap, self.gap)[here]
                self.gap[noisy] = 0.0
                doubtful &= ~here
        self.noise[~np.isfinite(self.noise)] = 0.0


def slope(line: Curve, scales: Sequence[float], eps: float) -> Slope:
    """Measure the derivative of ``line(t)`` at 0.

    Parameters
    ----------
    line : callable
        ``line(t)`` returns the outputs' coordinates, or None where the function is not defined.
    scales : sequence of float
        Length scales of the function, the most likely first.
    eps : float
        The rounding unit of the outputs.

    Returns
    -------
    Slope

    Examples
    --------
    >>> import numpy as np
    >>> found = slope(lambda t: np.array([np.sin(t), abs(t)]), [1.0], 2.2e-16)
    >>> found.low.round(6).tolist(), found.high.round(6).tolist(), found.kink.tolist()
    ([1.0, -1.0], [1.0, 1.0], [False, True])
    """
    center = line(0.0)
    assert center is not None
    best = _Best(center.size)
    with np.errstate(all="ignore"):
        for scale in scales:
            for power in _POWERS:
                _romberg(line, center, scale * eps**power, eps, best)
                if best.done.all():
                    break
            if best.done.all():
                break
        best.settle(line)
        return _with_kinks(line, center, scales, eps, best)


def _romberg(line: Curve, center: Array, h: float, eps: float, best: _Best) -> None:
    """Offer the derivative from central differences at h, h/2 and h/4, extrapolated."""
    steps = (h, h / 2, h / 4)
    found = [(line(t), line(-t)) for t in steps]
    sides = [(r, left) for r, left in found if r is not None and left is not None]
    if len(sides) < len(steps):
        return
    central = [(r - left) / (2 * t) for (r, left), t in zip(sides, steps, strict=True)]
    once = [(4 * central[k + 1] - central[k]) / 3 for k in (0, 1)]
    size = np.maximum(np.abs(center), np.maximum(np.abs(sides[0][0]), np.abs(sides[0][1])))
    best.size = np.fmax(best.size, size)
    floor = (8 * eps * size + _TINY) / h
    # The two sides' slopes approach each other as the step shrinks, unless a kink is within it.
    wide, close = [np.abs(sides[k][0] + sides[k][1] - 2 * center) / steps[k] for k in (0, 2)]
    # An output that is small because its terms cancel is rounded like the others.
    noise = np.maximum(floor, 0.1 * np.max(floor, initial=0.0, where=np.isfinite(floor)))
    still = (sides[0][0] == center) & (sides[0][1] == center) & (center != 0)
    floor = np.where(still, noise, floor)
    error = np.abs(once[1] - once[0]) + floor
    kink = (close > 0.7 * wide) & (close > 8 * noise)
    value = (16 * once[1] - once[0]) / 15
    best.offer(value, error, floor, np.where(kink, close, 0.0), h)


def _with_kinks(
    line: Curve, center: Array, scales: Sequence[float], eps: float, best: _Best
) -> Slope:
    """Return the estimate, refined by one-sided differences close to the point."""
    low, high, error = best.value.copy(), best.value.copy(), best.error
    kink = np.zeros(center.size, bool)
    h = min(scales) * eps**_CLOSE
    if (best.gap > 0).any():
        right, left = _one_sided(line, center, h), _one_sided(line, center, -h)
        noise = 16 * np.maximum(eps * np.abs(center), best.noise) / h
        differ = np.abs(right - left) > 1e-3 * (np.abs(right) + np.abs(left)) + 4 * noise
        differ &= best.gap > 0  # at so small a step, rounding alone may make a difference
        # A smooth function's one-sided differences approach each other as the step shrinks.
        wide_r, wide_l = _one_sided(line, center, 8 * h), _one_sided(line, center, -8 * h)
        kink = differ & (np.abs(right - left) > 0.5 * np.abs(wide_r - wide_l))
        low = np.where(kink, np.minimum(right, left), low)
        high = np.where(kink, np.maximum(right, left), high)
        error = np.where(kink, noise + 1e-6 * (np.abs(right) + np.abs(left)), error)
        # At a jump one of them grows as the step shrinks.
        jump = kink & (np.maximum(abs(right), abs(left)) > 4 * np.maximum(abs(wide_r), abs(wide_l)))
        low, high = np.where(jump, -np.inf, low), np.where(jump, np.inf, high)
    edge = np.isnan(low)
    low, high = np.where(edge, -np.inf, low), np.where(edge, np.inf, high)
    if edge.any():
        low, high, error = _at_edge(line, center, h, (low, high, error), edge)
    kink |= edge
    # Outputs that change as much however small the step is: a jump symmetric about the point.
    jump = (error > 0.1 * np.abs(best.value)) & (best.jump > 1e-2 * best.size)
    low, high = np.where(jump, -np.inf, low), np.where(jump, np.inf, high)
    rough = max(1e-4, 30 * eps**0.5)
    kink |= error > 0.1 * np.abs(best.value) + (rough * best.size + 1e7 * _TINY) / min(scales)
    return Slope(low, high, np.where(np.isfinite(error), error, 0.0), kink)


def sharpened(found: Slope, tilted: Curve, step: float) -> Slope:
    """Replace rough slopes by those of the complex step, Im f(x + ih) / h, where both agree.

    It has no rounding error `[1]`_, but is silently wrong where the function takes a conjugate or
    an absolute value: so it has to be within the error of the differences.

    Parameters
    ----------
    found : Slope
    tilted : callable
        ``tilted(h)`` returns the imaginary parts of the outputs at the point ih of the line, or
        None where the function does not take complex numbers.
    step : float

    .. [1] W. Squire and G. Trapp, SIAM Review 40 (1998), 110-112.
    """
    size = np.abs(found.value)
    rough = (found.error > _SMOOTH_ENOUGH * size) & (found.error < 0.1 * size) & ~found.kink
    parts = tilted(step) if rough.any() else None
    if parts is None:
        return found
    with np.errstate(all="ignore"):
        exact = parts / step
        good = rough & (np.abs(exact - found.value) <= 3 * found.error)
    low, high, error = found.low.copy(), found.high.copy(), found.error.copy()
    low[good] = high[good] = exact[good]
    error[good] = 1e-12 * size[good]
    return Slope(low, high, error, found.kink)


def _roughness(line: Curve, h: float) -> Array | float:
    """Return how far slopes within steps of one side lie off a parabola: noise does, no kink."""
    rough: Array | float = 0.0
    for side in (h, -h):
        a, b, c, d = (line(k * side) for k in (1, 2, 3, 4))
        if a is None or b is None or c is None or d is None:
            return 0.0
        rough = np.fmax(rough, np.abs(a - 3 * b + 3 * c - d) / h)
    return rough


def _one_sided(line: Curve, center: Array, h: float) -> Array:
    moved = line(h)
    return np.full(center.size, np.nan) if moved is None else (moved - center) / h


def _at_edge(
    line: Curve, center: Array, h: float, known: tuple[Array, Array, Array], edge: Array
) -> tuple[Array, Array, Array]:
    """Fill in one-sided derivatives where the function is defined on one side only."""
    low, high, error = (a.copy() for a in known)
    low[edge], high[edge], error[edge] = -np.inf, np.inf, 0.0
    for sign in (1, -1):
        steps = [_one_sided(line, center, sign * h * k) for k in (16, 4, 1)]
        fine = (4 * steps[2] - steps[1]) / 3
        coarse = (4 * steps[1] - steps[0]) / 3
        good = edge & np.isfinite(fine) & (np.abs(fine - coarse) <= 1e-4 * np.abs(fine) + 1e-9)
        low[good], high[good] = fine[good], fine[good]
        error[good] = np.abs(fine - coarse)[good] + 1e-5 * np.abs(fine)[good]
    return low, high, error
