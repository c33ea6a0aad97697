"""Calls that differ from the user's: other settings one by one, then several things at random.

Other values of an array keep what the array is: sorted, a simplex, symmetric, within 0 and 1,
positive, within the table it is looked up in. All else is stretched, moved, put in another order,
of another size and sign, with equal ones and zeros among them; indices and masks are drawn anew.
Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Change, Inputs, taken
from pullback.check.inputs.domains import DOMAINS, from_end_to_end, recognised
from pullback.check.inputs.settings import other_settings
from pullback.check.naming import labels_of
from pullback.check.numerical import joined, slope
from pullback.check.values import Array, holds_numbers, host, in_place_of, points_into
from pullback.core.custom import pytree as tree

_DRAWS = 80
_OFTEN, _SELDOM = 0.6, 0.15
_SETTINGS = (0.4, 0.45, 0.15)  # how often none, one and two of them differ
_INSIDE = 1e-3  # of an interval: how close to its ends values are
_FAR = 1e3
_SMALLEST = 1e-2  # numbers that are smaller say how exact forward is, or keep it from dividing by 0
_NEAR_ZERO = 1e-3  # of an argument
_OTHER, _MOVED, _SIGNS = "other values of", "moved values of", "other signs of"
_SMALLER, _LARGER, _EQUAL = "smaller values of", "larger values of", "equal values in"
_ZERO, _ROW = "a zero in", "a row of another argument in"


# -- calls -----------------------------------------------------------------------------------------
def changed(inputs: Inputs, changes: Sequence[Change]) -> Inputs:
    """Return a call with some changes."""
    return functools.reduce(lambda call, change: change.put(call), changes, inputs)


def vary(fn: Callable[..., Any], inputs: Inputs, seed: int = 0) -> Iterator[tuple[Change, ...]]:
    """Yield the changes of a call: of one setting each, then of several and of values."""
    settings = []
    for change in other_settings(fn, inputs):
        settings.append(change)
        yield (change,)
    rng = np.random.default_rng(seed)
    drawers = drawers_of(fn, inputs, rng)
    for _ in range(_DRAWS if settings or drawers else 0):
        count = int(rng.choice(len(_SETTINGS), p=_SETTINGS)) if settings else 0
        chosen: dict[str, Change] = {}
        for k in rng.permutation(len(settings))[:count]:
            chosen.setdefault(settings[k].name, settings[k])
        numbers = _numbers([inputs, *(change.put(inputs) for change in chosen.values())])
        values: dict[str, tuple[str, Array]] = {}
        for name, drawer in drawers.items():
            zero = any(what == _ZERO for what, _ in values.values())  # 0 / 0 is no mistake
            found = drawer(numbers, zero) if rng.random() < _OFTEN else None
            if found is not None:
                values[name] = found
        if rng.random() < _SELDOM:
            values |= _alike(drawers, values, rng)
        others = [
            Change(f"{what} `{name}`", name, partial(replaced, fn, name, other))
            for name, (what, other) in values.items()
            if name not in chosen
        ]
        if chosen or others:
            yield (*chosen.values(), *others)


def _numbers(calls: Sequence[Inputs]) -> list[float]:
    """Return the numbers among the settings of some calls."""
    values = [v for call in calls for v in (*call.args, *call.kwargs.values())]
    return [float(v) for v in values if type(v) in (int, float) and np.isfinite(v)]


def _alike(
    drawers: dict[str, Drawer], values: dict[str, tuple[str, Array]], rng: np.random.Generator
) -> dict[str, tuple[str, Array]]:
    """Return an argument with a row of another of its shape: points that coincide."""
    free = {n: values[n][1] if n in values else d.array for n, d in drawers.items() if d.is_free}
    pairs = [p for p in itertools.permutations(free, 2) if free[p[0]].shape == free[p[1]].shape]
    if not pairs:
        return {}
    name, source = pairs[rng.integers(len(pairs))]
    found, row, own = free[name].copy(), free[source][0], drawers[name]
    found[0] = row
    fits = (row != 0).all() and own.low <= row.min() and row.max() <= own.high
    return {name: (_ROW, found)} if fits else {}


# -- values ----------------------------------------------------------------------------------------
def replaced(fn: Callable[..., Any], name: str, other: Any, inputs: Inputs) -> Inputs:
    """Return a call with another value of one leaf, if it has that, as what the first is."""
    labels = iter(labels_of(fn, inputs.args, inputs.kwargs))

    def put(value: Any) -> Any:
        if next(labels) != name:
            return value
        if not holds_numbers(value):
            return float(other[0]) if isinstance(value, float) else value
        own = host(value)
        if np.size(other) != own.size:  # with another setting
            return value
        return in_place_of(value, np.array(other, dtype=own.dtype).reshape(own.shape))

    args, kwargs = tree.map_leaves(put, (inputs.args, inputs.kwargs))
    return inputs._replace(args=args, kwargs=kwargs)


def drawers_of(
    fn: Callable[..., Any], inputs: Inputs, rng: np.random.Generator
) -> dict[str, Drawer]:
    """Return what draws other values of each argument that may have some."""
    labels = labels_of(fn, inputs.args, inputs.kwargs)
    leaves = dict(zip(labels, tree.leaves((inputs.args, inputs.kwargs)), strict=False))
    arrays = {name: host(v) for name, v in leaves.items() if holds_numbers(v)}
    stay = _parts_of_one(list(arrays.values()))
    found: dict[str, Drawer] = {}
    for name, value in leaves.items():
        if isinstance(value, float) and _SMALLEST < abs(value) < np.inf and "[" not in name:
            found[name] = Drawer(np.array([value]), [], rng)
        elif name in arrays and arrays[name].size and not any(arrays[name] is a for a in stay):
            others = [a for key, a in arrays.items() if key != name]
            bounded = name.split("[")[0] in inputs.bounded
            word = inputs.domains.get(name, "")
            found[name] = drawer = Drawer(arrays[name], others, rng, word, bounded)
            positive = drawer.is_free and (drawer.low, drawer.high) == (0.0, np.inf)
            if positive and _has_kink_at_zero(fn, inputs, name, arrays[name]):
                drawer.low = -np.inf
    return found


def _parts_of_one(arrays: Sequence[Array]) -> list[Array]:
    """Return the indices that say with others, and with values, what one sparse matrix is.

    Pointers rise from 0 to how many indices there are; rows and columns are as many as the values.
    """
    whole = [a for a in arrays if a.dtype.kind in "iu" and a.ndim == 1 and a.size > 1]
    values = {a.shape for a in arrays if a.dtype.kind in "fc"}
    found = []
    for one, other in itertools.permutations(whole, 2):
        if points_into(one, other) or (one.size == other.size and one.shape in values):
            found += [one, other]
    return found


class Drawer:
    """Draws other values of one array of a call; what holds for its own is looked up once."""

    def __init__(
        self,
        array: Array,
        others: Sequence[Array],
        rng: np.random.Generator,
        word: str = "",
        bounded: bool = False,
    ) -> None:
        self.array, self.rng = np.atleast_1d(array), rng
        self.word = word or _word(self.array)
        self.is_free = self.array.dtype.kind == "f" and not self.word
        rows = self.array.reshape(-1, self.array.shape[-1])
        self.repeats = any(np.unique(row).size < row.size for row in rows)
        # An index of each value, of which none is repeated, as in a scatter: it stays so.
        own = any(a.shape == self.array.shape and a.dtype.kind in "fc" for a in others)
        order = array.size > 2 and np.array_equal(np.sort(self.array), np.arange(array.size))
        self.is_order = not self.repeats and (own or bounded or order)
        floats = [a for a in others if a.dtype.kind == "f" and a.size]
        self.low, self.high = _limits(self.array, floats, bounded)

    def __call__(self, numbers: Sequence[float], no_zero: bool) -> tuple[str, Array] | None:
        """Return what is different, and the array; None where it stays as it is."""
        array, kind, what = self.array, self.array.dtype.kind, _OTHER
        if kind == "f" and not np.isfinite(array).all():
            return None
        with np.errstate(all="ignore"):
            if kind == "b":
                other = self.rng.random(array.shape) < self.rng.choice([0.3, 0.7])
            elif kind in "iu":
                other = self._integers()
            elif kind == "c":
                other = self._complex()
            elif self.word:
                other = self._structured()
            else:
                what, other = self._real(numbers, no_zero)
            other = np.asarray(other).astype(array.dtype)
        if np.array_equal(other, array) or not np.isfinite(other).all():
            return None
        empty = kind == "b" and (other.all() or not other.any())  # of nothing, a mean is undefined
        return None if empty else (what, other)

    def _integers(self) -> Array:
        """Return other indices: what rises or differs within a row of a table still does."""
        array, rng = self.array, self.rng
        numbers, places = np.unique(array, return_inverse=True)
        if self.is_order or rng.random() < 0.3:
            other = rng.permuted(numbers)[places].reshape(array.shape)
        elif array.ndim > 1 and not self.repeats:
            ranks = rng.random((*array.shape[:-1], numbers.size)).argsort(axis=-1)
            other = numbers[ranks[..., : array.shape[-1]]]
        else:
            other = rng.integers(int(array.min()), int(array.max()) + 1, array.shape)
        rises = (np.diff(array, axis=-1) >= 0).all() and not self.is_order
        return np.asarray(np.sort(other, axis=-1) if rises else other)

    def _complex(self) -> Array:
        array = self.array
        if array.ndim == 2 and np.array_equal(array, array.conj().T):
            d = self._stretch(len(array))
            return np.asarray(d[:, None] * array * d)
        return np.asarray(array * np.exp(1j * self.rng.normal(size=array.shape)))

    def _structured(self) -> Array:
        """Return another member of the set, about as large; what is sorted has the same ends."""
        array, domain = self.array, DOMAINS[self.word]
        drawn = domain.draw(self.rng.normal(size=array.shape))
        if self.word == "sorted":
            return from_end_to_end(drawn, array[..., :1], array[..., -1:])
        large = np.asarray(drawn * (np.abs(array).max() / np.abs(drawn).max()))
        return large if domain.holds(large) else drawn

    def _real(self, numbers: Sequence[float], no_zero: bool) -> tuple[str, Array]:
        """Return real values of another order, size, place or sign, with equal ones among them."""
        array, rng, what = self.array, self.rng, _OTHER
        other = rng.permuted(array) if rng.random() < 0.5 else array
        if np.isfinite(self.low) and np.isfinite(self.high):  # some of them close to these
            a, b = rng.choice([0.4, 1.0, 2.5], 2)
            share = rng.beta(a, b, array.shape)
            share = np.clip(share, _INSIDE, 1 - _INSIDE)
            other = self.low + (self.high - self.low) * share
        elif array.size == 1:  # a scale or an exponent
            return what, array * self._stretch(array.shape)
        else:
            if rng.random() < 0.5:
                other = other * self._stretch(array.shape)
            if rng.random() < 0.4:
                factor = _FAR if rng.random() < _SELDOM else 10.0 ** rng.uniform(-1.5, 1.5)
                what, other = _LARGER if factor > 1 else _SMALLER, other * factor
            if rng.random() < 0.4:
                spread = float(np.ptp(array)) or float(np.abs(array).max()) or 1.0
                by = spread * rng.uniform(-1.0, 1.0)
                if numbers and rng.random() < 0.3:
                    by = rng.choice(numbers) - float(other.mean())
                what, other = _MOVED, other + by
            if self.low < 0 < self.high and rng.random() < 0.3:
                what, other = _SIGNS, other * rng.choice([-1.0, 1.0], array.shape)
            other = np.abs(other) if self.low == 0 else -np.abs(other) if self.high == 0 else other
        return self._equal(what, other, no_zero) if rng.random() < 0.3 else (what, other)

    def _equal(self, what: str, other: Array, no_zero: bool) -> tuple[str, Array]:
        """Return values of which some are equal: to one another, to others, or to 0."""
        rng, found = self.rng, other.copy()
        which = rng.integers(3)
        if which == 0 and len(other) > 1:
            what, found[1] = _EQUAL, found[0]
        elif which == 1 and other.shape[-1] > 1:  # the two smallest, or the two largest
            order, k = np.argsort(other, axis=-1), rng.choice([0, other.shape[-1] - 2])
            values = np.take_along_axis(found, order[..., [k]], -1)
            np.put_along_axis(found, order[..., [k + 1]], values, -1)
            what = _EQUAL
        elif which == 2 and not no_zero and self.array.min() < 0 < self.array.max():
            what, found.flat[rng.integers(other.size)] = _ZERO, 0.0
        return what, found

    def _stretch(self, shape: int | tuple[int, ...]) -> Any:
        return self.rng.lognormal(0.0, 0.7, shape)


def _word(array: Array) -> str:
    """Return the word for the structure of an array; three numbers may be sorted as well."""
    rising = array.ndim == 1 and array.size > 2 and array.dtype.kind == "f"
    return recognised(array) or ("sorted" if rising and (np.diff(array) > 0).all() else "")


def _limits(array: Array, others: Sequence[Array], bounded: bool) -> tuple[float, float]:
    """Return the limits that values keep: their own, those of 0 and 1, of a table, or 0."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return -np.inf, np.inf
    low, high = float(array.min()), float(array.max())
    if bounded:
        return low, high
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    for table in others:
        if _word(table) == "sorted" and table.min() <= low and high <= table.max():
            return float(table.min()), float(table.max())
    return (0.0 if low > 0 else -np.inf), (0.0 if high < 0 else np.inf)


def _has_kink_at_zero(fn: Callable[..., Any], inputs: Inputs, name: str, array: Array) -> bool:
    """Return whether forward treats the signs of a positive argument differently, without a pole.

    As with an absolute value or a comparison with 0. Of what is smooth as the argument goes through
    0 nobody can tell whether values below 0 are meant.
    """

    def at(t: float) -> Array | None:
        found = taken(fn, replaced(fn, name, t * array, inputs))
        return None if isinstance(found, str) else joined(found[1].values())

    ends = [at(t) for t in (-_NEAR_ZERO, 0.0, _NEAR_ZERO)]
    defined = len({getattr(end, "shape", k) for k, end in enumerate(ends)}) == 1
    eps = float(np.finfo(array.dtype).eps)
    return defined and bool(slope(at, [_NEAR_ZERO], eps).kink.any())
