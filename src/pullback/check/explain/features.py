"""What elements of an array have in common: features of values, masks, ties and indices.

A feature explains a wrong gradient if it holds at each wrong element and at no right one. To rule
out accidents the call is run again with its values rearranged: they stay in the domain, and
features of values and of indices no longer coincide.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.evidence import Evidence, like
from pullback.check.subject import Subject
from pullback.check.values import Array

_PERIODS = (2, 3, 4, 8, 16, 32, 64)
_ENOUGH = 64  # elements, to distinguish causes from accidents
_SECONDS = 1.0  # of the processor, for one argument
_COMPARISONS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("==", np.equal),
    ("<", np.less),
    (">", np.greater),
    ("<=", np.less_equal),
    (">=", np.greater_equal),
)
Named = list[tuple[str, Array]]
WrongOf = Callable[[Evidence, int], Array]


class Feature(NamedTuple):
    """A property of elements in words, where it holds, and whether it is one of the index."""

    text: str
    holds: Array
    of_index: bool = False


class Sample(NamedTuple):
    """An array's elements, and which of them are wrong.

    Attributes
    ----------
    name : str
    x : array
    others, outputs : list of (str, array)
        The other arguments of the call and its outputs.
    wrong, informative : array of bool
        Where something is wrong, and where that could be seen: not where a gradient is 0.
    """

    name: str
    x: Array
    others: Named
    outputs: Named
    wrong: Array
    informative: Array

    def fits(self, f: Feature) -> bool:
        """Return whether a feature holds at exactly the wrong ones of the informative elements."""
        return bool(np.array_equal(f.holds[self.informative], self.wrong[self.informative]))


def explanation(e: Evidence, i: int, wrong_of: WrongOf) -> Feature | None:
    """Return the feature that holds where the gradient of argument `i` is wrong."""
    first = _sample(e, i, wrong_of)
    with np.errstate(all="ignore"):
        found = {f.text: f for f in features(first, first) if first.fits(f)}
        exact, covering = set(found), set(found)
        for s in () if not found or e.session.options.fast else _samples(e, i, wrong_of):
            now = list(features(s, first))
            exact &= {f.text for f in now if s.fits(f)}
            covering &= {f.text for f in now if f.holds[s.wrong].all()}
    return next((found[text] for some in (exact, covering) for text in found if text in some), None)


def wrong_elements(e: Evidence, i: int) -> Array:
    """Return where the gradient of argument `i` is wrong."""
    return e.wrong[i]


def not_finite(e: Evidence, i: int) -> Array:
    """Return where the gradient of argument `i` is not finite though the derivative is."""
    return np.asarray(e.known(i) & ~np.isfinite(e.got[i]))


def _sample(e: Evidence, i: int, wrong_of: WrongOf) -> Sample:
    name, wrong = e.names[i], wrong_of(e, i)
    with np.errstate(invalid="ignore"):
        visible = (np.abs(e.expected[i]) > e.tolerance[i]) | ~np.isfinite(e.got[i][wrong]).all()
    informative = e.known(i) & (wrong | visible)
    return Sample(name, e.arrays[i], e.arguments(name), e.named_outputs, wrong, informative)


def _samples(e: Evidence, i: int, wrong_of: WrongOf) -> Iterator[Sample]:
    """Yield samples for other arrangements of the values, where the function is defined."""
    time = Budget(_SECONDS)
    for subject in _arrangements(e, i):
        if not time.lasts():
            return
        with contextlib.suppress(BackwardError, ForwardError):
            yield _sample(Evidence(e.session_of(subject)), i, wrong_of)


def _arrangements(e: Evidence, i: int) -> Iterator[Subject]:
    """Yield the call with the argument's values in other places, and other arrays' so, too.

    With other ties, with other extremes, without whole numbers.
    """
    rng, x, subject = e.session.rng(f"arrangements {i}"), e.arrays[i], e.session.subject
    inner = x[(x != x.max()) & (x != x.min())]

    def moved_to(array: Array) -> Subject:
        return subject.with_arrays([*e.arrays[:i], *like([array], [x]), *e.arrays[i + 1 :]])

    def permuted(array: Array) -> Array:
        return rng.permutation(array.ravel()).reshape(array.shape)

    for _ in range(min(max(_ENOUGH // x.size, 1), 4)):  # accidents are likely at few elements
        yield moved_to(permuted(x))
        ties, own = moved_to(rng.choice(x.ravel(), x.shape)), subject.tracked[i]
        leaves = enumerate(ties.leaves_on_host())
        yield ties.with_leaves(
            [permuted(v) if isinstance(v, np.ndarray) and k != own else v for k, v in leaves]
        )
        yield moved_to(rng.choice(inner if inner.size else x.ravel(), x.shape))
        yield moved_to(permuted(x) * (1 - 1 / 27))


# -- the features, the simplest first --------------------------------------------------------------
def features(s: Sample, first: Sample) -> Iterator[Feature]:
    """Yield the features that could separate the wrong elements from the right ones.

    The numbers in them are taken from the first sample.
    """
    yield from _signs(s.name, s.x)
    for name, values in _fitting(s.others, s.x.shape, "iufcb"):
        yield from _masks(name, values) if values.dtype.kind == "b" else _signs(name, values)
    yield from _labels(s, first)
    for name, values in _fitting(s.others, s.x.shape, "iuf"):
        for left, x in ((s.name, s.x), (f"|{s.name}|", np.abs(s.x))):
            for sign, compare in _COMPARISONS[: 1 if s.x.dtype.kind == "c" else None]:
                yield Feature(f"{left} {sign} {name}", compare(x, values))
    for name, values in _fitting(s.outputs, s.x.shape, "fc"):
        yield from _signs(name, values)
    yield from _indices(s)
    yield from _positions(s.x.shape, first.wrong)
    for name, values in _real_parts(s.name, s.x):
        yield from _ties(name, values)
        yield Feature(f"{name} is a whole number", values == np.round(values))
    yield from _thresholds(s, first)


def _signs(name: str, array: Array) -> Iterator[Feature]:
    if array.dtype.kind == "c":
        yield Feature(f"{name} == 0", array == 0)
    for part, values in _real_parts(name, array):
        for sign, compare in _COMPARISONS:
            yield Feature(f"{part} {sign} 0", compare(values, 0))


def _masks(name: str, mask: Array) -> Iterator[Feature]:
    """Yield where a mask is true, and where it hides a whole line."""
    yield Feature(f"{name} is true", mask)
    yield Feature(f"{name} is false", ~mask)
    for axis in range(mask.ndim):
        line = np.broadcast_to(~mask.any(axis=axis, keepdims=True), mask.shape)
        yield Feature(f"{name} is false everywhere along axis {axis}", line)


def _labels(s: Sample, first: Sample) -> Iterator[Feature]:
    """Yield whether a whole number has a certain value, or is repeated."""
    before = _fitting(first.others, s.x.shape, "iu")
    for (name, values), (_, was) in zip(_fitting(s.others, s.x.shape, "iu"), before, strict=True):
        common = np.unique(was[first.wrong])
        if common.size == 1:
            yield Feature(f"{name} == {common[0]}", values == common[0])
        repeated, again = _repeated(values, None)
        yield Feature(f"{name} is repeated", repeated)
        yield Feature(f"{name} is repeated further on", again)


def _indices(s: Sample) -> Iterator[Feature]:
    """Yield what whole numbers say of an index: how often it occurs, and comparisons with it."""
    for name, array in s.others:
        if array.dtype.kind not in "iu" or not array.size:
            continue
        for axis, n in enumerate(s.x.shape):
            place, index = f"the index along axis {axis}", np.indices(s.x.shape)[axis]
            for values in aligned(array, s.x.shape) if 0 <= array.min() <= array.max() <= n else ():
                for end, at in (("", index), (" from the end", n - 1 - index)):
                    for sign, compare in _COMPARISONS:
                        yield Feature(f"{place}{end} {sign} {name}", compare(at, values))
                    yield Feature(f"{place}{end} == {name} - 1 (off by one?)", at == values - 1)
            if array.ndim and -n <= array.min() <= array.max() < n:
                count = _count(array, array < n, s.x.shape, axis)
                backwards = _count(array, array < 0, s.x.shape, axis)
                yield Feature(f"{place} is repeated in {name}", count > 1)
                yield Feature(f"{place} occurs in {name}", count > 0)
                yield Feature(f"{place} does not occur in {name}", count == 0)
                yield Feature(f"{place} occurs in {name} as a negative number", backwards > 0)


def _positions(shape: tuple[int, ...], wrong: Array) -> Iterator[Feature]:
    """Yield features of the index alone."""
    indices = np.indices(shape)
    for axis, n in enumerate(shape):
        found = np.unique(indices[axis][wrong])
        if found.size and n > 1:
            for text, holds in _along(n, indices[axis], found):
                yield Feature(f"the index along axis {axis} is {text}", holds, True)
    if len(shape) > 1:
        flat, (row, column) = np.arange(wrong.size).reshape(shape), indices[-2:]
        ends = [(k == 0) | (k == n - 1) for k, n in zip(indices, shape, strict=True)]
        border = np.logical_or.reduce(ends)
        yield Feature("the flat index is odd", flat % 2 == 1, True)
        yield Feature("the flat index is even", flat % 2 == 0, True)
        yield Feature("the element is on the diagonal", row == column, True)
        yield Feature("the element is off the diagonal", row != column, True)
        yield Feature("the element is above the diagonal", row < column, True)
        yield Feature("the element is below the diagonal", row > column, True)
        yield Feature("the element is on or above the diagonal", row <= column, True)
        yield Feature("the element is on or below the diagonal", row >= column, True)
        yield Feature("the element is at the border", border, True)
        yield Feature("the element is not at the border", ~border, True)


def _along(n: int, index: Array, found: Array) -> Iterator[tuple[str, Array]]:
    """Yield features of the index along one axis that hold at the wrong elements."""
    first, last = int(found[0]), int(found[-1])
    if first == last:
        yield {0: "the first", n - 1: "the last"}.get(first, str(first)), index == first
    yield "the first or the last", (index == 0) | (index == n - 1)
    yield f"less than {last + 1}", index <= last
    yield f"at least {first}", index >= first
    for period in (p for p in _PERIODS if 2 * p <= n or p == 2):
        for r in np.unique(found % period) if np.unique(found % period).size == 1 else ():
            word = ("even", "odd")[r] if period == 2 else f"{r} modulo {period}"
            yield word, index % period == r


def _ties(name: str, x: Array) -> Iterator[Feature]:
    """Yield whether values are repeated, or the largest or smallest, in the array and its lines."""
    for axis in (*(range(x.ndim) if x.ndim > 1 else ()), None):
        along = "" if axis is None else f" along axis {axis}"
        repeated, _ = _repeated(x, axis)
        yield Feature(f"{name} occurs more than once{along}", repeated)
        for word, end in (("largest", np.max), ("smallest", np.min)) if x.size else ():
            extreme = x == end(x, axis=axis, keepdims=True)
            yield Feature(f"{name} is the {word}{along}", extreme)
            yield Feature(f"{name} ties for the {word}{along}", extreme & repeated)


def _thresholds(s: Sample, first: Sample) -> Iterator[Feature]:
    """Yield bounds on the argument that separate the wrong elements from the right ones."""
    wrong, right = first.wrong & first.informative, ~first.wrong & first.informative
    for (name, then), (_, now) in zip(_sized(first), _sized(s), strict=True):
        for k, (below, above) in enumerate(((wrong, right), (right, wrong))):
            if wrong.any() and right.any() and then[below].max() < then[above].min():
                bound = _roundest(float(then[below].max()), float(then[above].min()))
                sign, compare = _COMPARISONS[1 + k]
                yield Feature(f"{name} {sign} {bound:g}", compare(now, bound))


def _sized(s: Sample) -> Named:
    """Return candidates for bounds: the argument, others of its shape, and differences."""
    found = _real_parts(s.name, s.x)
    for name, values in s.others:
        if values.shape == s.x.shape and values.dtype.kind in "f":
            found += [(name, values), (f"{s.name} - {name}", s.x - values)]
    sizes = [(f"|{name}|", np.abs(values)) for name, values in found]
    return [(name, values) for name, values in (*found, *sizes) if values.dtype.kind != "c"]


def _roundest(low: float, high: float) -> float:
    """Return the number with the fewest digits between two numbers."""
    middle = low + (high - low) / 2
    rounded = (round(middle, digits) for digits in range(-12, 18))
    return next((r for r in rounded if low < r < high), middle)


# -- arrays ----------------------------------------------------------------------------------------
def aligned(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array broadcast to a shape: unchanged, and with a reduced axis restored."""
    reduced = range(len(shape)) if 0 < array.ndim == len(shape) - 1 else ()
    for fitted in (array, *(np.expand_dims(array, axis) for axis in reduced)):
        sizes = zip(reversed(fitted.shape), reversed(shape), strict=False)
        if fitted.ndim <= len(shape) and all(m in (1, n) for m, n in sizes):
            yield np.broadcast_to(fitted, shape)


def _real_parts(name: str, array: Array) -> Named:
    if array.dtype.kind != "c":
        return [(name, array)]
    return [(f"{name}.real", array.real), (f"{name}.imag", array.imag)]


def _fitting(arrays: Named, shape: tuple[int, ...], kinds: str) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of some kinds of dtype that can be compared element by element."""
    for name, array in arrays:
        if array.dtype.kind in kinds:
            yield from ((name, values) for values in aligned(array, shape))


def _repeated(array: Array, axis: int | None) -> tuple[Array, Array]:
    """Return where a value is repeated in the array or along an axis; and repeated later on."""
    flat = np.arange(array.size).reshape(array.shape)
    line = (
        np.zeros_like(flat)
        if axis is None
        else flat - np.indices(array.shape)[axis] * (flat.strides[axis] // flat.itemsize)
    )
    _, value = np.unique(array, return_inverse=True)
    key = value.reshape(-1) * (array.size + 1) + line.reshape(-1)
    _, group, counts = np.unique(key, return_inverse=True, return_counts=True)
    last = np.zeros(counts.size, int)
    np.maximum.at(last, group, flat.reshape(-1))
    again = flat.reshape(-1) < last[group]
    return (counts[group] > 1).reshape(array.shape), again.reshape(array.shape)


def _count(index: Array, taken: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Return how often each element of an array is taken by an index along an axis.

    An index of as many axes takes single elements, as `gather` does; any other takes slices.
    """
    count = np.zeros(shape, int)
    others = [k for k in range(len(shape)) if k != axis]
    if index.ndim == len(shape) and all(index.shape[k] <= shape[k] for k in others):
        grid = np.indices(index.shape)
        grid[axis] = index % shape[axis]
        np.add.at(count, tuple(grid[:, taken]), 1)
    else:
        np.add.at(np.moveaxis(count, axis, 0), index[taken] % shape[axis], 1)
    return count
