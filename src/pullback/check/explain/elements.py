"""Gradients that are imprecise, not finite, or wrong at some elements; what these have in common.

A feature of values, masks, ties and indices explains a wrong gradient if it holds at each wrong
element and at no right one. To rule out accidents the call is run again with its values rearranged:
they stay in the domain, and features of values and of indices no longer coincide.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.explain.calls import other_value
from pullback.check.explain.candidates import factors, multiple
from pullback.check.explain.evidence import Evidence, aligned
from pullback.check.report import Cause
from pullback.check.subject import BackwardError, ForwardError, Subject
from pullback.check.values import Array

_MAX_LISTED = 4
# Relative errors above which a gradient is wrong, not imprecise; and above which it may be.
_FEW_DIGITS, _MANY_DIGITS = 1e-2, 1e-9
_A_FACTOR = 1e-3  # from 1 that is no error of rounding
_PERIODS = (2, 3, 4, 8, 16, 32, 64)
_ENOUGH = 64  # elements, to distinguish causes from accidents
_SECONDS = 1.0  # of the processor, for one argument
_COMPARISONS = {"==": eq, "<": lt, ">": gt, "<=": le, ">=": ge, "!=": ne}
Named = list[tuple[str, Array]]
Features = Iterator[tuple[str, Array]]  # in words, and where it holds


def nan(e: Evidence, i: int) -> Cause | None:
    """The gradient is NaN or infinite where the derivative is finite."""
    wrong = np.isfinite(e.expected[i]) & ~np.isfinite(e.got[i])
    if not wrong.any():
        return None
    found, alone = np.isnan(e.got[i][wrong]), np.array_equal(wrong, e.wrong[i])
    what = "NaN" if found.all() else "NaN or infinite" if found.any() else "infinite"
    places = _places(e, i, wrong, feature_of(e, i) if alone else "")
    hint = "where a term may divide by 0 (a pole) or overflow, replace its argument, not its value"
    return Cause("nan", f"`{e.names[i]}` is {what} {places}", hint)


def precision(e: Evidence, i: int) -> Cause | None:
    """A gradient is close to the right one everywhere."""
    known = np.isfinite(e.expected[i])
    got, right = e.got[i][known], e.expected[i][known]
    if not e.wrong[i].any() or not np.isfinite(got).all() or not np.any(right):
        return None
    size, c = np.abs(right), multiple(got, right).real
    error = float(np.max(np.abs(got - right) / (size + 1e-3 * size.max())))
    is_factor = abs(c - 1) > _A_FACTOR and e.matches(got, c * right)
    if is_factor or not _MANY_DIGITS < error < _FEW_DIGITS:
        return None
    text = (
        f"`{e.names[i]}` is right to {error:.0e} only: backward computes in float32, by finite "
        "differences, or with an eps of its own"
    )
    hint = "write the exact derivative, in the dtype of grad_output"
    return other_value(e, i) or Cause("precision", text.replace("e-0", "e-"), hint)


def elements(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at elements that have something in common."""
    where = feature_of(e, i) if _is_right_somewhere(e, i) else ""
    return _except_at(e, i, where) if where else None


def listed(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at a few elements, and nothing known separates them."""
    few = 2 * e.wrong[i].sum() <= np.isfinite(e.expected[i]).sum()
    return _except_at(e, i, "") if few and _is_right_somewhere(e, i) else None


def _is_right_somewhere(e: Evidence, i: int) -> bool:
    """Return whether the gradient is right where it is not 0: a 0 may be right by accident."""
    with np.errstate(invalid="ignore"):
        right = ~e.wrong[i] & (np.abs(e.expected[i]) > e.tolerance[i])
    return bool(e.wrong[i].any() and right.any())


def _except_at(e: Evidence, i: int, where: str) -> Cause:
    how = _how(e, i)
    text = f"`{e.names[i]}` is right except {_places(e, i, e.wrong[i], where)}"
    return Cause("elements", text + (f"; there it {how}" if how else ""))


def _how(e: Evidence, i: int) -> str:
    """Return in words what the gradient is where it is wrong, the same at each look; or ""."""
    looks = [(look, look.wrong[i]) for look in e.looks() if look.wrong[i].any()]
    pairs = [(look.got[i][off], look.expected[i][off]) for look, off in looks]
    c = multiple(*pairs[0]).real
    if not any(got.any() for got, _ in pairs):
        return "is zero"
    if all(np.abs(right).max() <= 1e-6 * np.abs(got).max() for got, right in pairs):
        return "should be zero"
    if all(e.matches(got, c * right) for got, right in pairs):
        negated = abs(c + 1) < e.pattern_rtol
        return "has the wrong sign" if negated else f"is off by the factor {c:.3f}"
    known: list[list[str]] = []
    with np.errstate(all="ignore"):
        for look, off in looks:
            got = look.got[i][off]
            known.append([w for w, p in factors(i, look, off) if e.matches(got, p[off])])
    return next((words for words in known[0] if all(words in here for here in known)), "")


def _places(e: Evidence, i: int, wrong: Array, where: str) -> str:
    """Return how many elements are wrong, and which, as the end of a sentence."""
    total, count = int(np.isfinite(e.expected[i]).sum()), int(wrong.sum())
    kind = "elements" if total == wrong.size else "elements measured"
    if count == total:
        return f"at all {total} {kind}"
    text = f"at {count} of {total} {kind}"
    if where:
        return f"{text}, all where {where}"
    places = [str(place) for place in np.argwhere(wrong)[:_MAX_LISTED].tolist()]
    return f"{text}: {', '.join(places)}{', ...' if count > _MAX_LISTED else ''}"


# -- what wrong elements have in common ------------------------------------------------------------
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
            with contextlib.suppress(BackwardError, ForwardError):
                s = _sample(e.on(subject), i)
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
    zero, shape, of = [("0", np.zeros(()))], s.wrong.shape, first.wrong
    whole, then = (_fitting(each.others, shape, "iu") for each in (s, first))
    yield from _compared(s.own, zero)
    for name, mask in _fitting(s.others, shape, "b"):
        yield f"{name} is true", mask
        yield f"{name} is false", ~mask
    yield from _compared(_fitting(s.others, shape, "iuf"), zero)
    for (name, values), (_, was) in zip(whole, then, strict=True):
        repeated, again = _repeated(values)
        yield f"{name} == {was[of][0]}", values == was[of][0]
        yield f"{name} is repeated", repeated
        yield f"{name} is repeated further on", again
    sizes = [(f"|{name}|", np.abs(values)) for name, values in s.own]
    yield from _compared([*s.own, *sizes], _fitting(s.others, shape, "iuf"))
    yield from _compared(_fitting(s.outputs, shape, "f"), zero)
    yield from _of_index(s)
    places = _indices(shape)
    for n, (name, index) in zip(shape, places, strict=True):
        yield f"{name} is the first", index == 0
        yield f"{name} is the last", index == n - 1
        yield f"{name} is the first or the last", (index == 0) | (index == n - 1)
        for period in (p for p in _PERIODS if p < n):
            r = index[of][0] % period
            yield f"{name} is {r} modulo {period}", index % period == r
        yield f"{name} is {index[of][0]}", index == index[of][0]
    for pair in itertools.pairwise(places):
        yield from _compared(*([place] for place in pair))
    for name, values in s.own:
        yield from _ties(name, values)
        yield f"{name} is a whole number", values == np.round(values)
    yield from _thresholds(s, first)


def _indices(shape: tuple[int, ...]) -> Named:
    return [(f"the index along axis {axis}", each) for axis, each in enumerate(np.indices(shape))]


def _compared(left: Named, right: Named) -> Features:
    for (name, x), (other, y) in itertools.product(left, right):
        for sign, compare in _COMPARISONS.items():
            yield f"{name} {sign} {other}", compare(x, y)


def _of_index(s: Sample) -> Features:
    """Yield what whole numbers say of an index: how often it occurs, and comparisons with it."""
    shape = s.wrong.shape
    for (name, array), (axis, place) in itertools.product(s.others, enumerate(_indices(shape))):
        n = shape[axis]
        if array.dtype.kind not in "iu" or not array.size or array.max() > n or array.min() < -n:
            continue
        for values in aligned(array, shape):
            right = [(name, values), (f"{name} - 1 (off by one?)", values - 1)]
            yield from _compared([place], right)
        if array.ndim and array.max() < n:
            count, backwards = (_count(array, a, shape, axis) for a in (array < n, array < 0))
            yield f"{place[0]} is repeated in {name}", count > 1
            yield f"{place[0]} occurs in {name}", count > 0
            yield f"{place[0]} does not occur in {name}", count == 0
            yield f"{place[0]} occurs in {name} as a negative number", backwards > 0


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
        for sign, below, above in (("<", wrong, right), (">=", right, wrong)):
            low, high = float(then[below].max()), float(then[above].min())
            rounded = (float(f"{(low + high) / 2:.{digits}g}") for digits in range(1, 18))
            for bound in itertools.islice((b for b in rounded if low < b <= high), 1):
                yield f"{name} {sign} {bound:g}", _COMPARISONS[sign](now, bound)


def _sized(s: Sample) -> Named:
    """Return what may have a bound: the argument, its differences from others, and its indices."""
    found, others = list(s.own), _fitting(s.others, s.wrong.shape, "f")
    found += [(f"{n} - {m}", x - y) for (n, x), (m, y) in itertools.product(s.own, others)]
    sizes = [(f"|{name}|", np.abs(values)) for name, values in found]
    return [*found, *sizes, *_indices(s.wrong.shape)]


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
