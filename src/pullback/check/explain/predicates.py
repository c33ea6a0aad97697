"""Predicates over the values and indices of elements.

Those over signs, masks, bounds and index arguments come before those over the element's own index
(parity, ends, diagonals) and the less likely ones (ties, extremes, thresholds). Of gradients they
know only which are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.explain.alignment import aligned
from pullback.check.values import Array

_PERIODS = (2, 3, 4, 8, 16, 32, 64)


class Predicate(NamedTuple):
    """A property of elements.

    Attributes
    ----------
    text : str
        The property in words.
    holds : array of bool
        Where it holds, of the argument's shape.
    """

    text: str
    holds: Array

    def fits(self, s: Sample) -> bool:
        """Return whether it holds at exactly the wrong ones of the informative elements."""
        return bool(np.array_equal(self.holds[s.informative], s.wrong[s.informative]))

    def covers(self, s: Sample) -> bool:
        """Return whether it holds at every wrong element, and perhaps at others."""
        return bool(self.holds[s.wrong].all())


class Sample(NamedTuple):
    """One argument's elements, and which of them have a wrong gradient.

    Attributes
    ----------
    name : str
    x : array
    others : list of (str, array)
        The call's other arguments, as arrays.
    outputs : list of (str, array)
    wrong, informative : array of bool
        Where the gradient is wrong; and where that can be seen: not where it is unknown, and where
        it is 0 only if NaN is looked for.
    """

    name: str
    x: Array
    others: list[tuple[str, Array]]
    outputs: list[tuple[str, Array]]
    wrong: Array
    informative: Array


# -- the predicates, the simplest first ------------------------------------------------------------
def predicates(s: Sample, first: Sample) -> Iterator[Predicate]:
    """Yield the predicates that could separate the wrong elements from the right ones.

    The numbers in them are taken from the first sample.
    """
    shape = s.x.shape
    yield from _signs(s.name, s.x)
    for name, mask in _fitting(s.others, shape, "b"):
        yield Predicate(f"{name} is true", mask)
        yield Predicate(f"{name} is false", ~mask)
    for name, values in _fitting(s.others, shape, "iufc"):
        yield from _signs(name, values)
    before = _fitting(first.others, shape, "iu")
    for (name, values), (_, was) in zip(_fitting(s.others, shape, "iu"), before, strict=True):
        yield from _labels(name, values, np.unique(was[first.wrong]))
    yield from _comparisons(s)
    for name, values in _fitting(s.outputs, shape, "fc"):
        yield from _signs(name, values)
    yield from _reached(s)
    yield from _indexed(s)
    yield from _positions(shape, first.wrong)
    yield from _ties(s)
    for name, values in _real_parts(s.name, s.x):
        yield Predicate(f"{name} is a whole number", values == np.round(values))
    yield from _thresholds(s, first)


def of_values(name: str, x: Array, others: list[tuple[str, Array]]) -> Iterator[Predicate]:
    """Yield predicates over the sign of an array, and comparisons with others."""
    nowhere = np.zeros(x.shape, bool)
    yield from _signs(name, x)
    yield from _comparisons(Sample(name, x, others, [], nowhere, nowhere))


def _signs(name: str, array: Array) -> Iterator[Predicate]:
    if array.dtype.kind == "c":
        yield Predicate(f"{name} == 0", array == 0)
    for part, values in _real_parts(name, array):
        yield Predicate(f"{part} == 0", values == 0)
        yield Predicate(f"{part} < 0", values < 0)
        yield Predicate(f"{part} > 0", values > 0)
        yield Predicate(f"{part} <= 0", values <= 0)
        yield Predicate(f"{part} >= 0", values >= 0)


def _labels(name: str, values: Array, common: Array) -> Iterator[Predicate]:
    """Yield whether a whole number has a certain value, or is repeated."""
    if common.size == 1:
        yield Predicate(f"{name} == {common[0]}", values == common[0])
    repeated, again = _repeated(values, None)
    yield Predicate(f"{name} is repeated", repeated)
    yield Predicate(f"{name} is repeated further on", again)


def _comparisons(s: Sample) -> Iterator[Predicate]:
    """Yield comparisons with other arguments: numbers such as bounds, and arrays."""
    for name, values in _fitting(s.others, s.x.shape, "iuf"):
        if s.x.dtype.kind == "c":
            yield Predicate(f"{s.name} == {name}", s.x == values)
            continue
        for left, x in ((s.name, s.x), (f"|{s.name}|", np.abs(s.x))):
            for sign, compare in _COMPARISONS:
                yield Predicate(f"{left} {sign} {name}", compare(x, values))


_COMPARISONS: tuple[tuple[str, Any], ...] = (
    ("<", np.less),
    (">", np.greater),
    ("==", np.equal),
    ("<=", np.less_equal),
    (">=", np.greater_equal),
)


def _ties(s: Sample) -> Iterator[Predicate]:
    """Yield whether values are repeated, or the largest or smallest, in the array and its lines."""
    for part, values in _real_parts(s.name, s.x):
        lines = range(values.ndim) if values.ndim > 1 else ()
        for axis in (*lines, None):
            along = "" if axis is None else f" along axis {axis}"
            repeated, _ = _repeated(values, axis)
            yield Predicate(f"{part} occurs more than once{along}", repeated)
            for word, end in (("largest", np.max), ("smallest", np.min)):
                extreme = values == end(values, axis=axis, keepdims=True)
                yield Predicate(f"{part} is the {word}{along}", extreme)
                yield Predicate(f"{part} ties for the {word}{along}", extreme & repeated)


def _indexed(s: Sample) -> Iterator[Predicate]:
    """Yield how often an element is taken by an argument of whole numbers."""
    for name, index in s.others:
        if index.dtype.kind not in "iu" or not index.ndim:
            continue
        for axis, n in enumerate(s.x.shape):
            if not index.size or index.min() < -n or index.max() >= n:
                continue
            position = f"the index along axis {axis}"
            count = _count(index, index >= -n, s.x.shape, axis)
            backwards = _count(index, index < 0, s.x.shape, axis)
            yield Predicate(f"{position} is repeated in {name}", count > 1)
            yield Predicate(f"{position} occurs in {name}", count > 0)
            yield Predicate(f"{position} does not occur in {name}", count == 0)
            yield Predicate(f"{position} occurs in {name} as a negative number", backwards > 0)


def _reached(s: Sample) -> Iterator[Predicate]:
    """Yield comparisons of the index along an axis with whole numbers: labels, lengths, lags."""
    indices, shape = np.indices(s.x.shape), s.x.shape
    for name, array in s.others:
        if array.dtype.kind not in "iu" or not array.size or array.min() < 0:
            continue
        for axis, n in enumerate(shape):
            if n < 2 or array.max() > n:
                continue
            for values in (*aligned(array, shape), *_of_lines(array, shape, axis)):
                yield from _places_beside(name, values, axis, indices[axis])


def _of_lines(array: Array, shape: tuple[int, ...], axis: int) -> Iterator[Array]:
    """Yield a number for each line of an array of many axes, broadcast to its shape."""
    for other, n in enumerate(shape) if array.ndim == 1 and len(shape) > 2 else ():
        if other != axis and n == len(array):
            column = array.reshape([-1 if k == other else 1 for k in range(len(shape))])
            yield np.broadcast_to(column, shape)


def _places_beside(name: str, values: Array, axis: int, index: Array) -> Iterator[Predicate]:
    n = index.shape[axis]
    for from_end, place in (("", index), (" from the end", n - 1 - index)):
        for sign, compare in _COMPARISONS:
            text = f"the index{from_end} along axis {axis} {sign} {name}"
            yield Predicate(text, compare(place, values))


def _thresholds(s: Sample, first: Sample) -> Iterator[Predicate]:
    """Yield bounds on the argument that separate the wrong elements from the right ones."""
    wrong, right = first.wrong & first.informative, ~first.wrong & first.informative
    if not wrong.any() or not right.any():
        return
    for (name, values), (_, now) in zip(_sized(first), _sized(s), strict=True):
        for sign, compare, inner, outer in _SIDES:
            groups = {"right": values[right], "wrong": values[wrong]}
            low, high = float(groups[inner].max()), float(groups[outer].min())
            if low < high:
                bound = _roundest(low, high)
                yield Predicate(f"{name} {sign} {bound:g}", compare(now, bound))


_SIDES: tuple[tuple[str, Any, str, str], ...] = (
    (">", np.greater, "right", "wrong"),
    ("<", np.less, "wrong", "right"),
)


def _sized(s: Sample) -> list[tuple[str, Array]]:
    """Return candidates for bounds: the argument, others of its shape, and differences."""
    found = _real_parts(s.name, s.x)
    for name, values in s.others:
        if values.shape == s.x.shape and values.dtype.kind in "fc":
            found += [*_real_parts(name, values), (f"{s.name} - {name}", s.x - values)]
    sizes = [(f"|{name}|", np.abs(values)) for name, values in found]
    return [(name, values) for name, values in (*found, *sizes) if values.dtype.kind != "c"]


def _positions(shape: tuple[int, ...], wrong: Array) -> Iterator[Predicate]:
    """Yield predicates over the index alone."""
    indices = np.indices(shape)
    for axis in range(len(shape)):
        yield from _along(axis, shape[axis], indices[axis], wrong)
    if len(shape) > 1:
        flat = np.arange(wrong.size).reshape(shape)
        yield Predicate("the flat index is odd", flat % 2 == 1)
        yield Predicate("the flat index is even", flat % 2 == 0)
        row, column = indices[-2:]
        for where, holds in (
            ("on", row == column),
            ("off", row != column),
            ("above", row < column),
            ("below", row > column),
            ("on or above", row <= column),
            ("on or below", row >= column),
        ):
            yield Predicate(f"the element is {where} the diagonal", holds)
        ends = [(k == 0) | (k == n - 1) for k, n in zip(indices, shape, strict=True)]
        border = np.logical_or.reduce(ends)
        yield Predicate("the element is at the border", border)
        yield Predicate("the element is not at the border", ~border)
        corner = np.logical_and.reduce(ends)
        yield Predicate("the element is at the border, but in no corner", border & ~corner)


def _along(axis: int, n: int, index: Array, wrong: Array) -> Iterator[Predicate]:
    """Yield predicates over the index along one axis that hold at the wrong elements."""
    found = np.unique(index[wrong])
    if not found.size or n < 2:
        return
    name = f"the index along axis {axis}"
    first, last = int(found[0]), int(found[-1])
    if first == last:
        word = {0: "the first", n - 1: "the last"}.get(first, str(first))
        yield Predicate(f"{name} is {word}", index == first)
    yield Predicate(f"{name} is the first or the last", (index == 0) | (index == n - 1))
    yield Predicate(f"{name} is less than {last + 1}", index <= last)
    yield Predicate(f"{name} is at least {first}", index >= first)
    for period in (p for p in _PERIODS if 2 * p <= n or p == 2):
        rest = np.unique(found % period)
        if rest.size == 1:
            r = int(rest[0])
            word = ("even", "odd")[r] if period == 2 else f"{r} modulo {period}"
            yield Predicate(f"{name} is {word}", index % period == r)


# -- arrays ----------------------------------------------------------------------------------------
def _real_parts(name: str, array: Array) -> list[tuple[str, Array]]:
    if array.dtype.kind != "c":
        return [(name, array)]
    return [(f"{name}.real", array.real), (f"{name}.imag", array.imag)]


def _fitting(
    arrays: list[tuple[str, Array]], shape: tuple[int, ...], kinds: str
) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of some kinds of dtype that can be compared element by element."""
    for name, array in arrays:
        if array.dtype.kind in kinds:
            yield from ((name, values) for values in aligned(array, shape))


def _repeated(array: Array, axis: int | None) -> tuple[Array, Array]:
    """Return where a value is repeated in the array or along an axis; and repeated later on."""
    if axis is None:
        flat = _repeated(array.reshape(-1, 1), 0)
        return flat[0].reshape(array.shape), flat[1].reshape(array.shape)
    order = np.argsort(array, axis=axis, kind="stable")
    lines = np.moveaxis(np.take_along_axis(array, order, axis), axis, 0)
    again = np.zeros(lines.shape, bool)
    again[:-1] = lines[1:] == lines[:-1]
    repeated = again | np.roll(again, 1, 0)
    found = np.zeros(array.shape, bool), np.zeros(array.shape, bool)
    for out, there in zip(found, (repeated, again), strict=True):
        np.put_along_axis(out, order, np.moveaxis(there, 0, axis), axis)
    return found


def _count(index: Array, taken: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Return how often each element of an array is taken by an index along an axis.

    An index of as many axes takes single elements, as `gather` does; any other takes slices.
    """
    count = np.zeros(shape, int)
    indices = index % shape[axis]
    others = [k for k in range(len(shape)) if k != axis]
    if index.ndim == len(shape) and all(index.shape[k] <= shape[k] for k in others):
        grid = np.indices(index.shape)
        grid[axis] = indices
        np.add.at(count, tuple(grid[:, taken]), 1)
    else:
        np.add.at(np.moveaxis(count, axis, 0), indices[taken], 1)
    return count


def _roundest(low: float, high: float) -> float:
    """Return the number with the fewest digits between two numbers."""
    middle = low + (high - low) / 2
    for digits in range(-12, 18):
        rounded = round(middle, digits)
        if low < rounded < high:
            return rounded
    return middle
