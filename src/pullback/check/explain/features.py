"""What the wrong elements of an array have in common: features of values, masks, ties and indices.

A feature explains a wrong gradient if it holds at each wrong element and at no right one. To rule
out accidents the call is run again with its values rearranged: they stay in the domain, and
features of values and of indices no longer coincide.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.evidence import Evidence, aligned
from pullback.check.subject import Subject
from pullback.check.values import Array

_PERIODS = (2, 3, 4, 8, 16, 32, 64)
_ENOUGH = 64  # elements, to distinguish causes from accidents
_SECONDS = 1.0  # of the processor, for one argument
_COMPARISONS = {"==": eq, "<": lt, ">": gt, "<=": le, ">=": ge, "!=": ne}
Named = list[tuple[str, Array]]
Features = Iterator[tuple[str, Array]]  # in words, and where it holds


class Sample(NamedTuple):
    """An array, the other arguments and the outputs, and which of its elements are wrong.

    Of complex arrays there are both parts. `informative` is where it could be seen that a gradient
    is wrong: not where it is 0.
    """

    own: Named
    others: Named
    outputs: Named
    wrong: Array
    informative: Array

    def fits(self, holds: Array) -> bool:
        """Return whether a feature holds at exactly the wrong ones of the informative elements."""
        return np.array_equal(holds[self.informative], self.wrong[self.informative])


def feature_of(e: Evidence, i: int) -> str:
    """Return the feature that holds where the gradient of argument `i` is wrong; "" if none."""
    s = first = _sample(e, i)
    with np.errstate(all="ignore"):
        exact = covering = [text for text, holds in features(s, s) if s.fits(holds)]
        time = Budget(_SECONDS)
        for subject in () if not exact or e.session.options.fast else _arrangements(e, i):
            if not time.lasts():
                break
            try:
                s = _sample(Evidence(e.session_of(subject)), i)
            except (BackwardError, ForwardError):
                continue
            now = dict(features(s, first))
            exact = [text for text in exact if text in now and s.fits(now[text])]
            covering = [text for text in covering if text in now and now[text][s.wrong].all()]
    return next(iter(exact or covering), "")


def _sample(e: Evidence, i: int) -> Sample:
    name, wrong, subject = e.names[i], e.wrong[i], e.session.subject
    with np.errstate(invalid="ignore"):
        visible = (np.abs(e.expected[i]) > e.tolerance[i]) | ~np.isfinite(e.got[i][wrong]).all()
    known = subject.array_arguments()
    known += [(label, np.asarray(value)) for label, value in subject.number_arguments()]
    others = _real([(label, array) for label, array in known if label != name])
    informative = np.isfinite(e.expected[i]) & (wrong | visible)
    return Sample(_real([(name, e.arrays[i])]), others, _real(e.named_outputs), wrong, informative)


def _real(arrays: Named) -> Named:
    """Return arrays in words, and the parts of complex ones."""
    parts = (
        [(f"{name}.real", a.real), (f"{name}.imag", a.imag)] if a.dtype.kind == "c" else [(name, a)]
        for name, a in arrays
    )
    return list(itertools.chain(*parts))


def _arrangements(e: Evidence, i: int) -> Iterator[Subject]:
    """Yield the call with values in other places: with other ties, extremes, no whole numbers."""
    rng, x, subject = e.session.rng(f"arrangements {i}"), e.arrays[i], e.session.subject
    inner = x[(x != x.max()) & (x != x.min())].ravel()
    for k in range(4 * min(max(_ENOUGH // x.size, 1), 4)):  # accidents are likely at few elements
        leaves, values = subject.leaves_on_host(), rng.permuted(x)
        if k % 2:
            leaves = [rng.permuted(v) if np.ndim(v) else v for v in leaves]
        if k % 4 < 2:
            values = rng.choice(inner if k % 4 == 0 and inner.size else x.ravel(), x.shape)
        values = values * (26 / 27 if k % 4 == 2 else 1)
        leaves[subject.tracked[i]] = np.asarray(values, x.dtype)
        yield subject.with_leaves(leaves)


# -- the features, the simplest first --------------------------------------------------------------
def features(s: Sample, first: Sample) -> Features:
    """Yield what could separate the wrong elements from the right ones; numbers as at first."""
    zero, shape = [("0", np.zeros(()))], s.wrong.shape
    yield from _compared(s.own, zero)
    for name, mask in _fitting(s.others, shape, "b"):
        yield f"{name} is true", mask
        yield f"{name} is false", ~mask
    yield from _compared(_fitting(s.others, shape, "iuf"), zero)
    before = _fitting(first.others, shape, "iu")
    for (name, values), (_, was) in zip(_fitting(s.others, shape, "iu"), before, strict=True):
        labels, (repeated, again) = np.unique(was[first.wrong]), _repeated(values)
        if labels.size == 1:
            yield f"{name} == {labels[0]}", values == labels[0]
        yield f"{name} is repeated", repeated
        yield f"{name} is repeated further on", again
    sizes = [(f"|{name}|", np.abs(values)) for name, values in s.own]
    yield from _compared([*s.own, *sizes], _fitting(s.others, shape, "iuf"))
    yield from _compared(_fitting(s.outputs, shape, "f"), zero)
    yield from _indices(s)
    yield from _positions(shape, first.wrong)
    for name, values in s.own:
        yield from _ties(name, values)
        yield f"{name} is a whole number", values == np.round(values)
    yield from _thresholds(s, first)


def _compared(left: Named, right: Named) -> Features:
    for (name, x), (other, y) in itertools.product(left, right):
        for sign, compare in _COMPARISONS.items():
            yield f"{name} {sign} {other}", compare(x, y)


def _indices(s: Sample) -> Features:
    """Yield what whole numbers say of an index: how often it occurs, and comparisons with it."""
    shape = s.wrong.shape
    for (name, array), (axis, n) in itertools.product(s.others, enumerate(shape)):
        if array.dtype.kind not in "iu" or not array.size or array.max() > n or array.min() < -n:
            continue
        place = f"the index along axis {axis}"
        for values in aligned(array, shape):
            right = [(name, values), (f"{name} - 1 (off by one?)", values - 1)]
            yield from _compared([(place, np.indices(shape)[axis])], right)
        if array.ndim and array.max() < n:
            count, backwards = (_count(array, a, shape, axis) for a in (array < n, array < 0))
            yield f"{place} is repeated in {name}", count > 1
            yield f"{place} occurs in {name}", count > 0
            yield f"{place} does not occur in {name}", count == 0
            yield f"{place} occurs in {name} as a negative number", backwards > 0


def _positions(shape: tuple[int, ...], wrong: Array) -> Features:
    """Yield features of the index alone."""
    indices = np.indices(shape)
    for axis, n in enumerate(shape):
        name, index = f"the index along axis {axis}", indices[axis]
        found = np.unique(index[wrong])
        if n == 1 or not found.size:
            continue
        first, last = int(found[0]), int(found[-1])
        yield f"{name} is {({0: 'the first', n - 1: 'the last'}).get(first, first)}", index == first
        yield f"{name} is the first or the last", (index == 0) | (index == n - 1)
        yield f"{name} is less than {last + 1}", index <= last
        yield f"{name} is at least {first}", index >= first
        for period in (p for p in _PERIODS if 2 * p <= n or p == 2):
            r = first % period
            words = ("even", "odd")[r] if period == 2 else f"{r} modulo {period}"
            yield f"{name} is {words}", index % period == r
        for sign, compare in _COMPARISONS.items() if axis else ():
            words = f"the index along axis {axis - 1} {sign} {name} (the diagonal)"
            yield words, compare(indices[axis - 1], index)


def _ties(name: str, x: Array) -> Features:
    """Yield whether values are repeated, or the largest or smallest, in the array and its lines."""
    yield f"{name} occurs more than once", _repeated(x)[0]
    for axis in (*(range(x.ndim) if x.ndim > 1 else ()), None):
        along = "" if axis is None else f" along axis {axis}"
        for word, end in (("largest", np.max), ("smallest", np.min)):
            extreme = x == end(x, axis=axis, keepdims=True)
            several = extreme.sum(axis=axis, keepdims=True) > 1
            yield f"{name} is the {word}{along}", extreme
            yield f"{name} ties for the {word}{along}", extreme & several


def _thresholds(s: Sample, first: Sample) -> Features:
    """Yield bounds that separate the wrong elements from the right ones."""
    wrong, right = first.wrong & first.informative, ~first.wrong & first.informative
    known = zip(_sized(first), _sized(s), strict=True) if wrong.any() and right.any() else ()
    for (name, then), (_, now) in known:
        for sign, below, above in (("<", wrong, right), (">", right, wrong)):
            low, high = float(then[below].max()), float(then[above].min())
            rounded = (float(f"{(low + high) / 2:.{digits}g}") for digits in range(1, 18))
            for bound in itertools.islice((b for b in rounded if low < b < high), 1):
                yield f"{name} {sign} {bound:g}", _COMPARISONS[sign](now, bound)


def _sized(s: Sample) -> Named:
    """Return what may have a bound: the argument, and its differences from others."""
    found, others = list(s.own), _fitting(s.others, s.wrong.shape, "f")
    found += [(f"{n} - {m}", x - y) for (n, x), (m, y) in itertools.product(s.own, others)]
    return [*found, *((f"|{name}|", np.abs(values)) for name, values in found)]


def _fitting(arrays: Named, shape: tuple[int, ...], kinds: str) -> Named:
    """Return the arrays of some kinds of dtype that can be compared element by element."""
    return [(name, a) for name, b in arrays if b.dtype.kind in kinds for a in aligned(b, shape)]


def _repeated(array: Array) -> tuple[Array, Array]:
    """Return where a value is repeated; and where it is repeated further on."""
    _, last, group, counts = np.unique(
        array.ravel()[::-1], return_index=True, return_inverse=True, return_counts=True
    )
    group = group.ravel()[::-1]
    again = array.size - 1 - last[group] > np.arange(array.size)
    return (counts[group] > 1).reshape(array.shape), again.reshape(array.shape)


def _count(index: Array, taken: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Return how often each element of an array is taken by an index along an axis."""
    count = np.bincount(index[taken] % shape[axis], minlength=shape[axis])
    return np.broadcast_to(np.expand_dims(count, [*range(1, len(shape) - axis)]), shape)
