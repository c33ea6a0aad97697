"""Other values of an array, drawn at random, that keep what the array is.

Sorted, a simplex, symmetric, within 0 and 1, positive, within the table it is looked up in: so it
stays. All else is stretched, moved, put in another order, of another size and sign, with equal ones
and zeros among them; indices and masks are drawn anew. Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Inputs, keeps_bounds
from pullback.check.inputs.domains import recognised
from pullback.check.inputs.settings import taken
from pullback.check.naming import labels_of
from pullback.check.numerical import joined
from pullback.check.values import Array, holds_numbers, host, in_place_of
from pullback.core.custom import pytree as tree

_SELDOM = 0.15
_SMALL = 1e-4  # of a share: what is less is as good as nothing
_FAR = 1e3
_SMALLEST = 1e-2  # numbers that are smaller say how exact forward is, or keep it from dividing by 0
_NEAR_ZERO = 1e-3  # of an argument
_OTHER, _MOVED, _SIGNS = "other values of", "moved values of", "other signs of"
_SMALLER, _LARGER, _EQUAL = "smaller values of", "larger values of", "equal values in"
ZERO = "a zero in"


def drawers_of(
    fn: Callable[..., Any], inputs: Inputs, zeros: bool, rng: np.random.Generator
) -> dict[str, Drawer]:
    """Return what draws other values of each argument that may have some."""
    labels = labels_of(fn, inputs.args, inputs.kwargs)
    leaves = dict(zip(labels, tree.leaves((inputs.args, inputs.kwargs)), strict=False))
    arrays = {name: host(v) for name, v in leaves.items() if holds_numbers(v)}
    stay = _parts_of_one(list(arrays.values()))
    found: dict[str, Drawer] = {}
    for name, value in leaves.items():
        if isinstance(value, float) and _SMALLEST < abs(value) < np.inf and "[" not in name:
            found[name] = NumberDrawer(value, rng)
        elif name in arrays and arrays[name].size and not any(arrays[name] is a for a in stay):
            found[name] = ArrayDrawer(fn, inputs, name, arrays, zeros, rng)
    return found


def _parts_of_one(arrays: Sequence[Array]) -> list[Array]:
    """Return the indices that say with others, and with values, what one sparse matrix is.

    Pointers rise from 0 to how many indices there are; rows and columns are as many as the values.
    """
    whole = [a for a in arrays if a.dtype.kind in "iu" and a.ndim == 1 and a.size > 1]
    found = []
    for pointers in whole:
        ends = [a for a in whole if a is not pointers and a.size == pointers[-1]]
        if pointers[0] == 0 and (np.diff(pointers) >= 0).all() and ends:
            found += [pointers, *ends]
    for one, other in itertools.permutations(whole, 2):
        if one.size == other.size and any(
            a.shape == one.shape and a.dtype.kind in "fc" for a in arrays
        ):
            found.append(one)
    return found


class NumberDrawer:
    """Draws other values of a number."""

    def __init__(self, value: float, rng: np.random.Generator) -> None:
        self.value, self.rng = value, rng

    def __call__(self, numbers: Sequence[float], zero: bool) -> tuple[str, Any]:
        """Return what is different, and the value."""
        by = self.rng.lognormal(0.0, 0.5)
        return _OTHER, self.value**by if 0 < self.value < 1 else self.value * by


class ArrayDrawer:
    """Draws other values of one array; what holds for its own is looked up once."""

    def __init__(
        self,
        fn: Callable[..., Any],
        inputs: Inputs,
        name: str,
        arrays: dict[str, Array],
        zeros: bool,
        rng: np.random.Generator,
    ) -> None:
        self.array = array = np.atleast_1d(arrays[name])
        self.keeps = functools.partial(keeps_bounds, inputs, name, array)
        self.rng, self.word, self.zeros = rng, _word(array), zeros
        self.is_free = array.dtype.kind == "f" and not self.word
        # An index of each value, of which none is repeated, as in a scatter: it stays so.
        own = any(a.shape == array.shape and a.dtype.kind in "fc" for a in arrays.values())
        self.distinct = _all_distinct(array) and (own or name in inputs.bounded)
        others = [a for k, a in arrays.items() if k != name and a.dtype.kind == "f" and a.size]
        self.low, self.high = _limits(array, others)
        self.is_table = any(_is_within(a, array) for a in others)
        if name.split("[")[0] in inputs.bounded and array.dtype.kind == "f":
            self.low, self.high = float(array.min()), float(array.max())
        positive = self.is_free and (self.low, self.high) == (0.0, np.inf)
        if positive and _takes_both_signs(fn, inputs, name):
            self.low = -np.inf

    def __call__(self, numbers: Sequence[float], zero: bool) -> tuple[str, Array] | None:
        """Return what is different, and the array; None where it stays as it is."""
        array, kind = self.array, self.array.dtype.kind
        if kind == "f" and not np.isfinite(array).all():
            return None
        with np.errstate(all="ignore"):
            if kind == "b":
                what, other = _OTHER, self._mask()
            elif kind in "iu":
                what, other = _OTHER, self._integers()
            elif kind == "c":
                what, other = _OTHER, self._complex()
            elif self.word:
                what, other = _OTHER, self._structured()
            else:
                what, other = self._real(numbers, zero or not self.zeros)
            other = np.asarray(other).astype(array.dtype)
        same = np.array_equal(other, array) or (kind in "fc" and not np.isfinite(other).all())
        return None if same or not self.keeps(other) else (what, other)

    def _mask(self) -> Array:
        other = self.rng.random(self.array.shape) < self.rng.choice([0.3, 0.7])
        both = bool(other.any() and not other.all())  # of nothing, a mean is not defined
        return other if both else self.array

    def _integers(self) -> Array:
        """Return other indices; what differs within a row of a table still does."""
        array, rng = self.array, self.rng
        rising = bool((np.diff(array, axis=-1) >= 0).all())  # from, to
        order = np.array_equal(np.sort(array, axis=None), np.arange(array.size)) and array.size > 2
        if array.ndim > 1:
            numbers, places = np.unique(array, return_inverse=True)
            if not self.distinct and _all_distinct(array) and rng.random() < 0.5:
                rows = array.reshape(-1, array.shape[-1])
                drawn = [rng.choice(numbers, row.size, replace=False) for row in rows]
                other = np.reshape(drawn, array.shape)
            else:
                other = rng.permuted(numbers)[places].reshape(array.shape)
            return np.sort(other, axis=-1) if rising else other
        if order or self.distinct or (not rising and rng.random() < 0.3):
            return rng.permuted(array)
        other = rng.integers(int(array.min()), int(array.max()) + 1, array.shape)
        return np.asarray(np.sort(other) if rising and array.size > 2 else other)

    def _complex(self) -> Array:
        array = self.array
        if array.ndim == 2 and np.array_equal(array, array.conj().T):
            d = self._stretch(len(array))
            return np.asarray(d[:, None] * array * d)
        return np.asarray(array * np.exp(1j * self.rng.normal(size=array.shape)))

    def _structured(self) -> Array:
        array, rng = self.array, self.rng
        if self.word == "sorted":
            steps = np.diff(array, axis=-1)
            steps = rng.permuted(steps, axis=-1) * self._stretch(steps.shape)
            if self.is_table or self.high < np.inf:  # with the ends that it has
                steps *= (array[..., -1:] - array[..., :1]) / steps.sum(-1, keepdims=True)
                other = np.cumsum(np.concatenate([array[..., :1], steps], -1), -1)
                return np.asarray(np.minimum(other, array[..., -1:]))
            start = array[..., :1] * rng.choice([1.0, self._stretch(())])
            other = np.cumsum(np.concatenate([start, steps], -1), -1)
            return np.asarray(other * 10.0 ** rng.choice([0.0, rng.uniform(-1.0, 1.0)]))
        if self.word == "simplex":
            power = array ** rng.lognormal(0.0, 0.6)
            return rng.permuted(power / power.sum(-1, keepdims=True), axis=-1)
        if self.word in ("spd", "symmetric"):
            d = self._stretch(array.shape[:-1])
            return np.asarray(d[..., :, None] * array * d[..., None, :])
        return rng.permuted(array, axis=-1) if self.word == "normalized" else array

    def _real(self, numbers: Sequence[float], no_zero: bool) -> tuple[str, Array]:
        """Return real values of another order, size, place or sign, with equal ones among them."""
        array, rng = self.array, self.rng
        what, other = _OTHER, rng.permuted(array) if rng.random() < 0.5 else array
        if np.isfinite(self.low) and np.isfinite(self.high):
            other = self._within(other)
        else:
            if rng.random() < 0.5:
                other = other * self._stretch(array.shape)
            if rng.random() < 0.4:
                factor = _FAR if rng.random() < _SELDOM else 10.0 ** rng.uniform(-1.5, 1.5)
                what, other = _LARGER if factor > 1 else _SMALLER, other * factor
            if rng.random() < 0.4:
                spread = float(np.ptp(array)) or float(np.abs(array).max()) or 1.0
                by = spread * rng.uniform(-1.0, 1.0)
                if numbers and array.size > 1 and rng.random() < 0.3:
                    by = rng.choice(numbers) - float(other.mean())
                what, other = _MOVED, other + by
            if self.low < 0 < self.high and rng.random() < 0.3:
                what, other = _SIGNS, other * rng.choice([-1.0, 1.0], array.shape)
            other = np.abs(other) if self.low == 0 else -np.abs(other) if self.high == 0 else other
        return self._equal(what, other, no_zero) if rng.random() < 0.3 else (what, other)

    def _within(self, other: Array) -> Array:
        """Return values within limits, some of them close to these."""
        low, high = self.low, self.high
        if self.rng.random() < 0.5:
            return np.asarray(low + (high - low) * self.rng.random(other.shape))
        share = (other - low) / (high - low)
        share = np.maximum(share ** self.rng.lognormal(0.0, 1.0), np.minimum(share, _SMALL))
        return np.asarray(low + (high - low) * share)

    def _equal(self, what: str, other: Array, no_zero: bool) -> tuple[str, Array]:
        """Return values of which some are equal: to one another, to others, or to 0."""
        rng, found = self.rng, other.copy()
        which = rng.integers(1, 4)
        if which == 1 and len(other) > 1:
            found[1] = found[0]
            return _EQUAL, found
        elif which == 2 and other.shape[-1] > 1:  # the two smallest, or the two largest
            order, k = np.argsort(other, axis=-1), rng.choice([0, other.shape[-1] - 2])
            first, second = order[..., [k]], order[..., [k + 1]]
            np.put_along_axis(found, second, np.take_along_axis(found, first, -1), -1)
            return _EQUAL, found
        elif which == 3 and not no_zero and self.array.min() < 0 < self.array.max():
            found.flat[rng.integers(other.size)] = 0.0
            return ZERO, found
        return what, other

    def _stretch(self, shape: int | tuple[int, ...]) -> Any:
        return self.rng.lognormal(0.0, 0.7, shape)


Drawer = NumberDrawer | ArrayDrawer


def _all_distinct(array: Array) -> bool:
    """Return whether no number is repeated in an array, or in a row of it."""
    rows = array.reshape(-1, array.shape[-1])
    return all(np.unique(row).size == row.size for row in rows)


def _word(array: Array) -> str:
    """Return the word for the structure of an array; three numbers may be sorted as well."""
    rising = array.ndim == 1 and array.size > 2 and array.dtype.kind == "f"
    return recognised(array) or ("sorted" if rising and (np.diff(array) > 0).all() else "")


def _is_within(array: Array, table: Array) -> bool:
    return bool(table.min() <= array.min() and array.max() <= table.max())


def _limits(array: Array, others: Sequence[Array]) -> tuple[float, float]:
    """Return the limits that values keep: those of 0 and 1, of a table, or 0."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return -np.inf, np.inf
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    for table in others:
        if _word(table) == "sorted" and _is_within(array, table):
            return float(table.min()), float(table.max())
    return (0.0 if low > 0 else -np.inf), (0.0 if high < 0 else np.inf)


def _takes_both_signs(fn: Callable[..., Any], inputs: Inputs, name: str) -> bool:
    """Return whether forward treats the signs of a positive argument differently, without a pole.

    As the argument goes through 0, the slopes on both sides differ the less, the closer they are,
    unless forward has a kink or a jump there: an absolute value, a comparison with 0. Of what is
    smooth across nobody can tell whether values below 0 are meant.
    """
    labels = labels_of(fn, inputs.args, inputs.kwargs)

    def at(t: float) -> Array:
        names = iter(labels)

        def scaled(value: Any) -> Any:
            return in_place_of(value, np.asarray(host(value) * t)) if next(names) == name else value

        args, kwargs = tree.map_leaves(scaled, (inputs.args, inputs.kwargs))
        found = taken(fn, Inputs(args, kwargs))
        return np.full(1, np.nan) if isinstance(found, str) else joined(found.values)

    gaps, size = [], 0.0
    for t in (_NEAR_ZERO, _NEAR_ZERO / 8):
        points: list[Array] = []
        for k in (-2, -1, 1, 2):
            points.append(at(k * t))
            if points[-1].shape != points[0].shape or not np.isfinite(points[-1]).all():
                return False
        left, right = (points[1] - points[0]) / t, (points[3] - points[2]) / t
        gaps.append(float(np.abs(right - left).max(initial=0.0)))
        size = float(np.abs(right).max(initial=0.0))
    far, close = gaps
    return 0.5 * far < close < 10.0 * far and close > 1e-3 * size
