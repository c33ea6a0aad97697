"""What elements of an array have in common: features of values, masks, ties and indices.

A feature explains a wrong gradient if it holds at each wrong element and at no right one. To rule
out accidents the call is run again with its values rearranged: they stay in the domain, and
features of values and of indices no longer coincide.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
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
    ("!=", np.not_equal),
)
Named = list[tuple[str, Array]]
WrongOf = Callable[[Evidence, int], Array]


class Feature(NamedTuple):
    """A property of elements in words, where it holds, and whether it is one of the index."""

    text: str
    holds: Array
    of_index: bool = False


class Sample(NamedTuple):
    """An array `x`, the other arguments and the outputs, and which of its elements are wrong.

    `informative` is where that could be seen: not where a gradient is 0.
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
    """Return the feature that holds where the gradient of argument `i` is wrong; sought once."""
    if (i, wrong_of) not in e.found:
        e.found[i, wrong_of] = _explanation(e, i, wrong_of)
    found: Feature | None = e.found[i, wrong_of]
    return found


def _explanation(e: Evidence, i: int, wrong_of: WrongOf) -> Feature | None:
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
    """Yield the call with values in other places: with other ties, extremes, no whole numbers."""
    rng, x, subject = e.session.rng(f"arrangements {i}"), e.arrays[i], e.session.subject
    inner, own = x[(x != x.max()) & (x != x.min())], subject.tracked[i]

    def permuted(array: Array) -> Array:
        return rng.permutation(array.ravel()).reshape(array.shape)

    for _ in range(min(max(_ENOUGH // x.size, 1), 4)):  # accidents are likely at few elements
        ties = rng.choice(x.ravel(), x.shape)
        few = rng.choice(inner if inner.size else x.ravel(), x.shape)
        for k, array in enumerate((permuted(x), ties, few, permuted(x) * (1 - 1 / 27))):
            leaves = subject.leaves_on_host()
            if k == 1:
                leaves = [permuted(v) if isinstance(v, np.ndarray) else v for v in leaves]
            leaves[own] = like([array], [x])[0]
            yield subject.with_leaves(leaves)


# -- the features, the simplest first --------------------------------------------------------------
def features(s: Sample, first: Sample) -> Iterator[Feature]:
    """Yield the features that could separate the wrong elements from the right ones.

    The numbers in them are taken from the first sample.
    """
    zero, own, whole = [("0", np.zeros(()))], _real_parts(s.name, s.x), "iu"
    yield from _compared([(s.name, s.x)], zero)
    for name, mask in _fitting(s.others, s.x.shape, "b"):
        yield Feature(f"{name} is true", mask)
        yield Feature(f"{name} is false", ~mask)
        for axis in range(mask.ndim):
            line = np.broadcast_to(~mask.any(axis=axis, keepdims=True), mask.shape)
            yield Feature(f"{name} is false everywhere along axis {axis}", line)
    yield from _compared(_fitting(s.others, s.x.shape, "iufc"), zero)
    before = _fitting(first.others, s.x.shape, whole)
    for (name, values), (_, was) in zip(_fitting(s.others, s.x.shape, whole), before, strict=True):
        common, (repeated, again) = np.unique(was[first.wrong]), _repeated(values, None)
        for label in common[: 1 if common.size == 1 else 0]:
            yield Feature(f"{name} == {label}", values == label)
        yield Feature(f"{name} is repeated", repeated)
        yield Feature(f"{name} is repeated further on", again)
    left = [(s.name, s.x), (f"|{s.name}|", np.abs(s.x))]
    yield from _compared(left, list(_fitting(s.others, s.x.shape, "iuf")))
    yield from _compared(_fitting(s.outputs, s.x.shape, "fc"), zero)
    yield from _indices(s)
    yield from _positions(s.x.shape, first.wrong)
    for name, values in own:
        yield from _ties(name, values)
        yield Feature(f"{name} is a whole number", values == np.round(values))
    yield from _thresholds(s, first)


def _compared(left: Iterable[tuple[str, Array]], right: Named) -> Iterator[Feature]:
    """Yield comparisons of arrays with others; of complex ones for equality, and their parts."""
    for name, x in left:
        for other, y in right:
            if x.dtype.kind == "c":
                yield Feature(f"{name} == {other}", x == y)
            for part, values in _real_parts(name, x):
                for sign, compare in _COMPARISONS if y.dtype.kind != "c" else ():
                    yield Feature(f"{part} {sign} {other}", compare(values, y))


def _indices(s: Sample) -> Iterator[Feature]:
    """Yield what whole numbers say of an index: how often it occurs, and comparisons with it."""
    for name, array in s.others:
        if array.dtype.kind not in "iu" or not array.size:
            continue
        for axis, n in enumerate(s.x.shape):
            place, index = f"the index along axis {axis}", np.indices(s.x.shape)[axis]
            for values in aligned(array, s.x.shape) if 0 <= array.min() <= array.max() <= n else ():
                right = [(name, values), (f"{name} - 1 (off by one?)", values - 1)]
                places = [(place, index), (f"{place} from the end", n - 1 - index)]
                yield from _compared(places, right)
            if array.ndim and -n <= array.min() <= array.max() < n:
                count = _count(array, array < n, s.x.shape, axis)
                yield Feature(f"{place} is repeated in {name}", count > 1)
                yield Feature(f"{place} occurs in {name}", count > 0)
                yield Feature(f"{place} does not occur in {name}", count == 0)
                backwards = _count(array, array < 0, s.x.shape, axis)
                yield Feature(f"{place} occurs in {name} as a negative number", backwards > 0)


def _positions(shape: tuple[int, ...], wrong: Array) -> Iterator[Feature]:
    """Yield features of the index alone."""
    indices = [(f"the index along axis {k}", index) for k, index in enumerate(np.indices(shape))]
    for (name, index), n in zip(indices, shape, strict=True):
        found = np.unique(index[wrong])
        for text, holds in _along(n, index, found) if found.size and n > 1 else ():
            yield Feature(f"{name} is {text}", holds, True)
    for (name, row), (other, column) in itertools.pairwise(indices):
        for sign, compare in _COMPARISONS:
            yield Feature(f"{name} {sign} {other} (the diagonal)", compare(row, column), True)
    if len(shape) > 1:
        pairs = zip(indices, shape, strict=True)
        border = np.logical_or.reduce([(k == 0) | (k == n - 1) for (_, k), n in pairs])
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
        if np.unique(found % period).size == 1:
            r = int(found[0] % period)
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
    """Yield bounds that separate the wrong elements from the right ones."""
    wrong, right = first.wrong & first.informative, ~first.wrong & first.informative
    for (name, then), (_, now) in zip(_sized(first), _sized(s), strict=True):
        for k, (below, above) in enumerate(((wrong, right), (right, wrong))):
            if wrong.any() and right.any() and then[below].max() < then[above].min():
                low, high = float(then[below].max()), float(then[above].min())
                middle = low + (high - low) / 2  # the bound has the fewest digits
                rounded = (round(middle, digits) for digits in range(-12, 18))
                bound = next((r for r in rounded if low < r < high), middle)
                sign, compare = _COMPARISONS[1 + k]
                yield Feature(f"{name} {sign} {bound:g}", compare(now, bound))


def _sized(s: Sample) -> Named:
    """Return what may have a bound: the argument, and its differences from others."""
    found = [(s.name, s.x)] if s.x.dtype.kind != "c" else []
    for name, values in s.others if found else ():
        if values.shape == s.x.shape and values.dtype.kind in "f":
            found += [(name, values), (f"{s.name} - {name}", s.x - values)]
    return [*found, *((f"|{name}|", np.abs(values)) for name, values in found)]


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
    line = 0 * flat if axis is None else flat.min(axis=axis, keepdims=True, initial=array.size)
    _, value = np.unique(array, return_inverse=True)
    key = value.reshape(array.shape) * (array.size + 1) + line
    _, group, counts = np.unique(key, return_inverse=True, return_counts=True)
    last = np.zeros(counts.size, int)
    np.maximum.at(last, group.reshape(-1), flat.reshape(-1))
    group = group.reshape(array.shape)
    return counts[group] > 1, flat < last[group]


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
