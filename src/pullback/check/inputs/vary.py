"""Calls that differ from the user's: other settings one by one, then several things at random.

Other values of an array keep what the array is: sorted, if forward does not take any order, a
simplex, symmetric, within 0 and 1, positive, within the table it is looked up in. All else is
stretched, moved, put in another order, of another size and sign, with equal ones and zeros among
them; indices and masks are drawn anew. Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Change, Inputs, taken
from pullback.check.inputs.domains import DOMAINS, from_end_to_end, recognised
from pullback.check.inputs.settings import other_settings
from pullback.check.numerical import joined, slope
from pullback.check.subject import labels_of
from pullback.check.values import Array, holds_numbers, host, in_place_of, points_into
from pullback.core.custom import pytree as tree

_DRAWS = 40
_OFTEN, _SOMETIMES, _SELDOM = 0.6, 0.4, 0.15
_SETTINGS = (0.4, 0.45, 0.15)  # how often none, one and two of them differ
_INSIDE = 1e-3  # of an interval: how close to its ends values are
_FAR = 1e3
_NEAR_ZERO = 1e-3  # of an argument
_SMALLEST = 1e-2  # numbers that are smaller say how exact forward is, or keep it from dividing by 0


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
        others, drawn = [], dict[str, Array]()
        for name, drawer in drawers.items():
            other = drawer(drawn) if rng.random() < _OFTEN else None
            if other is not None and name not in chosen:
                drawn[name] = other
                what = f"{_difference(drawer.array, other)} `{name}`"
                others.append(Change(what, name, partial(replaced, fn, name, other)))
        if chosen or others:
            yield (*chosen.values(), *others)


def _difference(own: Array, other: Array) -> str:
    """Return how other values of an argument differ, in words."""
    if own.dtype.kind != "f":
        return "other values of"
    if (other == 0).any() and not (own == 0).any():
        return "a zero in"
    if np.unique(other).size < np.unique(own).size:
        return "equal values in"
    growth = np.abs(other).max() / (np.abs(own).max() or 1.0)
    return f"{'larger' if growth > 2 else 'smaller' if growth < 0.5 else 'other'} values of"


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
    arrays: dict[str, Array] = {}
    for name, value in zip(labels, tree.leaves((inputs.args, inputs.kwargs)), strict=False):
        if holds_numbers(value) and host(value).size:
            arrays[name] = np.atleast_1d(host(value))
        elif isinstance(value, float) and _SMALLEST < abs(value) < np.inf and "[" not in name:
            arrays[name] = np.array([value])
    kept = {n for n in arrays if n in inputs.domains or n.split("[")[0] in inputs.bounded}
    words = {name: inputs.domains.get(name) or _word(a) for name, a in arrays.items()}
    for name in arrays.keys() - kept:
        if words[name] == "sorted" and _takes_any_order(fn, inputs, arrays[name]):
            words[name] = ""
    stay, found = _parts_of_one(arrays), dict[str, Drawer]()
    for name in (n for n in arrays if n not in stay):
        others = {key: a for key, a in arrays.items() if key != name}
        tables = [a for key, a in others.items() if words[key] == "sorted"]
        limits = _limits(arrays[name], tables, name in kept)
        if not words[name] and _goes_through_zero(fn, inputs, name, arrays[name], limits):
            limits = -np.inf, np.inf
        found[name] = Drawer(arrays[name], others, rng, words[name], limits, name in kept)
    return found


def _takes_any_order(fn: Callable[..., Any], inputs: Inputs, array: Array) -> bool:
    """Return whether a sorted array is so by chance.

    Then the results are the same ones if all arrays of its length are in another order.
    """
    order = np.random.default_rng(0).permutation(array.shape[-1])

    def put(value: Any) -> Any:
        own = host(value) if holds_numbers(value) else np.empty(())
        axes = [axis for axis, length in enumerate(own.shape) if length == order.size]
        return in_place_of(value, np.take(own, order, axes[-1])) if axes else value

    args, kwargs = tree.map_leaves(put, (inputs.args, inputs.kwargs))
    runs = [taken(fn, call) for call in (inputs, inputs._replace(args=args, kwargs=kwargs))]
    both = [np.sort(joined(run[1].values())) for run in runs if not isinstance(run, str)]
    return len({r.shape for r in both}) == 1 < len(both) and np.allclose(both[0], both[1])


def _parts_of_one(arrays: Mapping[str, Array]) -> set[str]:
    """Return the indices that say with others, and with values, what one sparse matrix is.

    Pointers rise from 0 to how many indices there are; rows and columns are as many as the values.
    """
    whole = [n for n, a in arrays.items() if a.dtype.kind in "iu" and a.ndim == 1 and a.size > 1]
    shapes = {a.shape for a in arrays.values() if a.dtype.kind in "fc"}
    found: set[str] = set()
    for one, other in itertools.permutations(whole, 2):
        a, b = arrays[one], arrays[other]
        if points_into(a, b) or (a.shape == b.shape and a.shape in shapes):
            found |= {one, other}
    return found


class Drawer:
    """Draws other values of one array of a call; what holds for its own is looked up once."""

    def __init__(
        self,
        array: Array,
        others: Mapping[str, Array],
        rng: np.random.Generator,
        word: str,
        limits: tuple[float, float],
        kept: bool,
    ) -> None:
        self.array, self.rng, self.word = array, rng, word
        self.low, self.high = limits
        rows = array.reshape(-1, array.shape[-1])
        self.repeats = any(np.unique(row).size < row.size for row in rows)
        order = array.size > 2 and np.array_equal(np.sort(array), np.arange(array.size))
        self.is_order = order or (kept and not self.repeats)
        like = array.shape, array.dtype
        self.peers = {name: a for name, a in others.items() if (a.shape, a.dtype) == like}

    def __call__(self, drawn: Mapping[str, Array]) -> Array | None:
        """Return other values beside those drawn so far, None where they stay as they are."""
        array, kind = self.array, self.array.dtype.kind
        if kind == "f" and not np.isfinite(array).all():
            return None
        with np.errstate(all="ignore"):
            if kind == "b":
                other = self.rng.random(array.shape) < self.rng.choice([0.3, 0.7])
            elif kind in "iu":
                other = self._integers()
            elif self.word:
                other = self._structured()
            elif kind == "c":
                other = array * np.exp(1j * self.rng.normal(size=array.shape))
            else:
                other = self._real()
                other = self._equal(other, drawn) if self.rng.random() < _SOMETIMES else other
            other = np.asarray(other).astype(array.dtype)
        empty = kind == "b" and (other.all() or not other.any())  # of nothing, a mean is undefined
        same = np.array_equal(other, array) or not np.isfinite(other).all()
        return None if empty or same else other

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
            other = np.asarray(rng.integers(int(array.min()), int(array.max()) + 1, array.shape))
        rises = (np.diff(array, axis=-1) >= 0).all() and not self.is_order
        return np.asarray(np.sort(other, axis=-1) if rises else other)

    def _structured(self) -> Array:
        """Return another member of the set, about as large; what is sorted has the same ends."""
        array, domain = self.array, DOMAINS[self.word]
        normal = self.rng.normal(size=(2, *array.shape))
        drawn = domain.draw(normal[0] + 1j * normal[1] if array.dtype.kind == "c" else normal[0])
        if self.word == "sorted":
            return from_end_to_end(drawn, array[..., :1], array[..., -1:])
        large = np.asarray(drawn * (np.abs(array).max() / np.abs(drawn).max()))
        return large if domain.holds(large) else drawn

    def _real(self) -> Array:
        """Return real values of another order, size, place or sign."""
        array, rng = self.array, self.rng
        other = rng.permuted(array) if rng.random() < 0.5 else array
        if np.isfinite(self.low) and np.isfinite(self.high):  # some of them close to these
            a, b = rng.choice([0.4, 1.0, 2.5], 2)
            share = np.clip(rng.beta(a, b, array.shape), _INSIDE, 1 - _INSIDE)
            return np.asarray(self.low + (self.high - self.low) * share)
        one = array.size == 1  # a scale or an exponent
        if one or rng.random() < 0.5:
            other = other * rng.lognormal(0.0, 0.7, array.shape)
        if not one and rng.random() < 0.4:
            other = other * (_FAR if rng.random() < _SELDOM else 10.0 ** rng.uniform(-1.5, 1.5))
        if not one and rng.random() < 0.4:
            spread = float(np.ptp(array)) or float(np.abs(array).max()) or 1.0
            other = other + spread * rng.uniform(-1.0, 1.0)
        if self.low < 0 < self.high and rng.random() < 0.3:  # all of one sign, or of both
            signs = rng.choice([-1.0, 1.0], array.shape)
            other = np.abs(other) * (signs.flat[0] if rng.random() < 0.4 else signs)
        return np.abs(other) if self.low == 0 else -np.abs(other) if self.high == 0 else other

    def _equal(self, other: Array, drawn: Mapping[str, Array]) -> Array:
        """Return values of which some are equal: to one another, to an argument's, or to 0."""
        found = other.copy()
        zero = self.array.min() < 0 < self.array.max() and all(map(np.all, drawn.values()))
        may = (len(other) > 1, other.shape[-1] > 1, zero, bool(self.peers))  # 0 / 0 is no mistake
        which = self.rng.choice(np.flatnonzero(may)) if any(may) else None
        if which == 0:
            found[1] = found[0]
        elif which == 1:  # the two smallest, or the two largest
            order, k = np.argsort(other, axis=-1), self.rng.choice([0, other.shape[-1] - 2])
            values = np.take_along_axis(found, order[..., [k]], -1)
            np.put_along_axis(found, order[..., [k + 1]], values, -1)
        elif which == 2:
            found.flat[self.rng.integers(other.size)] = 0.0
        elif which == 3:  # to what another argument has there
            row = {**self.peers, **drawn}[str(self.rng.choice([*self.peers]))][0]
            least = np.abs(self.array).max() / _FAR
            if (abs(row) > least).all() and ((self.low <= row) & (row <= self.high)).all():
                found[0] = row
        return found


def _word(array: Array) -> str:
    """Return the word for the structure of an array; three numbers may be sorted as well."""
    rising = array.ndim == 1 and array.size > 2 and array.dtype.kind == "f"
    return recognised(array) or ("sorted" if rising and (np.diff(array) > 0).all() else "")


def _limits(array: Array, tables: Sequence[Array], bounded: bool) -> tuple[float, float]:
    """Return the limits that values keep: their own, those of 0 and 1, of a table, or 0."""
    if array.dtype.kind != "f":
        return -np.inf, np.inf
    low, high = float(array.min()), float(array.max())
    if bounded:
        return low, high
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    for table in tables:
        if table.min() <= low and high <= table.max():
            return float(table.min()), float(table.max())
    return (0.0 if low > 0 else -np.inf), (0.0 if high < 0 else np.inf)


def _goes_through_zero(
    fn: Callable[..., Any], inputs: Inputs, name: str, array: Array, limits: tuple[float, float]
) -> bool:
    """Return whether an array of one sign may have both: there is no pole between.

    Whether negative values are meant, where forward is smooth at 0, nobody can tell. Where it
    treats the signs differently they are, as with an absolute value or a comparison.
    """
    positive = limits == (0.0, np.inf) and array.size > 1
    if not positive and limits != (-np.inf, 0.0):
        return False

    def at(t: float) -> Array | None:
        found = taken(fn, replaced(fn, name, t * array, inputs))
        return None if isinstance(found, str) else joined(found[1].values())

    ends = [at(t) for t in (-_NEAR_ZERO, 0.0, _NEAR_ZERO)]
    if len({getattr(end, "shape", k) for k, end in enumerate(ends)}) > 1:
        return False
    eps = float(np.finfo(array.dtype).eps)
    return not positive or bool(slope(at, [_NEAR_ZERO], eps).kink.any())
