"""Which contributions to a gradient are wrong: what one element of an output gives to one of `x`.

Compares the Jacobian of backward with the numerical one, pair by pair, and looks for what the
wrong pairs have in common, or for how the rows are rearranged.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pullback.check.explain.alignment import aligned, fractions, multiple
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.predicates import of_values
from pullback.check.naming import axes_text
from pullback.check.numerical import joined
from pullback.check.report import Cause
from pullback.check.values import Array

_MAX_PAIRS = 250_000
_REPEATED = (
    "an index is repeated? Add up with np.add.at: `=`, or `x[index] += v`, keeps one of several"
)


class Pairs(NamedTuple):
    """The contributions to the gradient of one argument: a row for each output element.

    Attributes
    ----------
    right, got : array
        The numerical Jacobian and backward's.
    wrong : array of bool
    used : array of bool
        Where either is not 0: only there a pair tells anything.
    """

    right: Array
    got: Array
    wrong: Array
    used: Array

    @property
    def missing(self) -> Array:
        """Where backward gives nothing, though the output depends on the element."""
        return np.asarray(self.wrong & (np.abs(self.got) <= 1e-9 * np.abs(self.right).max()))


def pairs_of(e: Evidence, i: int) -> Pairs | None:
    """Return the contributions to the gradient of argument `i`; None if they are not all known."""
    arrays = (e.arrays[i], *e.outputs)
    rows, columns = joined(e.outputs).size, e.arrays[i].size
    if any(a.dtype.kind == "c" for a in arrays) or rows < 2 or rows * columns > _MAX_PAIRS:
        return None
    right, got = e.jacobians(i)
    if right is None or got is None or not (np.isfinite(right).all() and np.isfinite(got).all()):
        return None
    size = np.abs(right).max(initial=0.0)
    wrong = np.abs(got - right) > e.pattern_rtol * (np.abs(right) + 1e-3 * size)
    used = (np.abs(right) > 1e-6 * size) | (np.abs(got) > 1e-6 * size)
    return Pairs(right, got, wrong & used, used) if wrong.any() and size else None


# -- rearranged ------------------------------------------------------------------------------------
def rearranged(e: Evidence, i: int) -> Cause | None:
    """The gradient of each output element is used as that of another one."""
    pairs = pairs_of(e, i)
    if pairs is None or len(e.outputs) != 1:
        return None
    name = f"`{e.names[i]}`"
    for order, kept, words in _orders(e.outputs[0].shape):
        # A row that is 0 on one side may be hidden by a mask, or pushed over the end.
        both = kept & pairs.got.any(axis=1) & pairs.right[order].any(axis=1)
        enough = 2 * both.sum() >= pairs.got.any(axis=1).sum()
        moved = pairs.right[order[both]]
        if enough and _varied(moved) and e.matches(pairs.got[both], moved):
            return Cause("misplaced", f"{name}: grad_output is used as if it were {words}")
    rows = _matching(e, pairs) if _distinct(pairs.right) else None
    if rows is None:
        return None
    m = int(np.flatnonzero(rows != np.arange(rows.size))[0])
    text = (
        f"{name}: grad_output is permuted: that of output element {_index(e, m)} is used for "
        f"{_index(e, int(rows[m]))}"
    )
    return Cause("misplaced", text, "is an order used in place of its inverse, or the reverse?")


def _orders(shape: tuple[int, ...]) -> Iterator[tuple[Array, Array, str]]:
    """Yield orders of an array's elements, where they are known, and what each is called."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    every = np.ones(index.size, bool)
    axes = [axis for axis, n in enumerate(shape) if n > 1]
    for count in range(1, len(axes) + 1):
        for some in itertools.combinations(axes, count):
            yield np.flip(index, some).ravel(), every, f"reversed along {axes_text(some)}"
    for a, b in itertools.combinations(range(len(shape)), 2):
        turned = list(np.indices(shape))
        turned[a], turned[b] = turned[b], turned[a]
        inside = np.logical_and(turned[a] < shape[a], turned[b] < shape[b]).ravel()
        clipped = [np.minimum(k, n - 1) for k, n in zip(turned, shape, strict=True)]
        yield index[tuple(clipped)].ravel(), inside, "transposed"
    for axis in axes:
        n = shape[axis]
        along = np.indices(shape)[axis]
        for k in (1, -1, 2, -2):
            if abs(k) >= n:
                continue
            moved = np.roll(index, -k, axis).ravel()
            places = f"{'one place' if abs(k) == 1 else 'two places'} along axis {axis}"
            yield moved, every, f"rolled by {places} (an index off by {abs(k)}?)"
            inside = ((along + k >= 0) & (along + k < n)).ravel()
            yield moved, inside, f"shifted by {places} (an index off by {abs(k)}?)"


def _distinct(rows: Array) -> bool:
    """Return whether no two rows are alike, and none is zero."""
    size = np.abs(rows).max(initial=0.0)
    rounded = np.round(rows / size, 6) if size else rows
    return bool(rounded.any(axis=1).all()) and len(np.unique(rounded, axis=0)) == len(rows)


def _varied(rows: Array) -> bool:
    """Return whether at least two rows differ."""
    size = np.abs(rows).max(initial=0.0)
    return bool(size) and len(np.unique(np.round(rows / size, 6), axis=0)) > 1


def _matching(e: Evidence, pairs: Pairs) -> Array | None:
    """Return the row of the numerical Jacobian that each row of backward's equals."""
    order = np.zeros(len(pairs.right), int)
    for m, row in enumerate(pairs.got):
        k = int(np.argmin(np.abs(pairs.right - row).sum(axis=1)))
        if not e.matches(row, pairs.right[k]):
            return None
        order[m] = k
    return order if np.unique(order).size == order.size else None


def _index(e: Evidence, m: int) -> str:
    return str([int(k) for k in np.unravel_index(m, e.outputs[0].shape)])


# -- by pairs --------------------------------------------------------------------------------------
def contributions(e: Evidence, i: int) -> Cause | None:
    """Some output elements contribute wrongly to elements to which others contribute rightly."""
    pairs = pairs_of(e, i)
    if pairs is None:
        return None
    beside = pairs.used & ~pairs.wrong
    found = _sole(e, i, pairs, "first") or _exchanged(e, i, pairs)
    # Where all of an element's contributions are wrong, what the elements have in common says more.
    partly = (beside.any(axis=0) & pairs.wrong.any(axis=0)).any()
    if found is None and partly and min(pairs.wrong.sum(), beside.sum()) > 1:
        where = next((w for w, holds in _places(e, i) if _same(holds, pairs)), None)
        name, what = _verdict(e, pairs)
        if where is not None:
            found = Cause(name, f"`{e.names[i]}`: what comes from {where} {what}")
    return found


def wrong_output(e: Evidence, i: int) -> int | None:
    """Return the only one of several outputs whose contributions are wrong, None if all are."""
    pairs = pairs_of(e, i) if len(e.outputs) > 1 else None
    if pairs is None:
        return None
    ends = np.cumsum([out.size for out in e.outputs])[:-1]
    wrong = [bool(rows.any()) for rows in np.split(pairs.wrong, ends)]
    used = [bool(rows.any()) for rows in np.split(pairs.used, ends)]
    return wrong.index(True) if sum(wrong) == 1 < sum(used) else None


def _same(holds: Array, pairs: Pairs) -> bool:
    return bool(np.array_equal(holds[pairs.used], pairs.wrong[pairs.used]))


def clause(e: Evidence, i: int) -> tuple[str, str]:
    """Return in words how the wrong contributions are wrong, with the name of such a cause."""
    pairs = pairs_of(e, i)
    if pairs is None:
        return "", ""
    name, what = _verdict(e, pairs)
    missing, wrong = int(pairs.missing.sum()), int(pairs.wrong.sum())
    total = f"of the {int(pairs.used.sum())} contributions of single output elements"
    if what != "is wrong":
        text = re.sub("^is ", "are ", re.sub("^has ", "have ", re.sub("^lacks ", "lack ", what)))
        where = next((w for w, holds in _places(e, i) if _same(holds, pairs)), None)
        return name, f"{wrong} {total} {text}" + (f", those from {where}" if where else "")
    if 3 * missing >= wrong and missing > 1:
        text = f"terms are missing: {missing} {total} are not there, others are wrong"
        return "missing-term", text
    return "", ""


def _verdict(e: Evidence, pairs: Pairs) -> tuple[str, str]:
    """Return the name of a cause, and how all the wrong contributions are wrong."""
    right, got = pairs.right[pairs.wrong], pairs.got[pairs.wrong]
    size = np.abs(pairs.right).max()
    if pairs.missing[pairs.wrong].all():
        return "missing-term", "is missing"
    if np.all(np.abs(right) <= 1e-6 * size):
        return "elements", "should be zero"
    if e.matches(got, -right):
        return "sign", "has the wrong sign"
    ratio = multiple(got, right).real
    if got.size > 1 and e.matches(got, ratio * right):
        return "factor", f"is off by the factor {ratio:.3f}"
    numbered = _numbered(e, pairs)
    if numbered:
        return "factor", numbered
    counted = _counted(e, right, got)
    if counted:
        return "elements", counted
    several = fractions(got, right, e.pattern_rtol)
    if several:
        listed = ", ".join(map(str, several))
        return "factor", f"is off by a simple factor ({listed}): another count or size is meant?"
    return "elements", "is wrong"


def _numbered(e: Evidence, pairs: Pairs) -> str:
    """Return in words that each contribution is off by the index of its output element."""
    if len(e.outputs) != 1 or pairs.missing.any():
        return ""
    rows = np.nonzero(pairs.wrong)[0]
    right, got = pairs.right[pairs.wrong], pairs.got[pairs.wrong]
    shape = e.outputs[0].shape
    for axis, index in enumerate(np.indices(shape)):
        for start in (0, 1):
            number = (index.reshape(-1) + start)[rows]
            if np.unique(number).size < 3:
                continue
            words = f"the index (from {start}) of the output element along axis {axis}"
            if e.matches(number * got, right):
                return f"lacks a factor: {words}"
            if e.matches(got, number * right):
                return f"has a factor too many: {words}"
    return ""


def _counted(e: Evidence, right: Array, got: Array) -> str:
    """Return in words that each contribution is off by a whole number, as a sum for a mean is."""
    if not (right.all() and got.all()):
        return ""
    for a, b, words in ((got, right, "times too large"), (right, got, "times too small")):
        counts = np.round(a / b)
        several = np.unique(counts)
        if counts.min() >= 1 and 1 < several.size <= 6 and e.matches(a, counts * b):
            listed = ", ".join(f"{n:g}" for n in several if n > 1)
            return f"is a whole number of {words} (the factor {listed}: a count left out?)"
    return ""


def overwritten(e: Evidence, i: int) -> Cause | None:
    """Of the outputs that an element feeds, only the last contributes."""
    pairs = pairs_of(e, i)
    return None if pairs is None else _sole(e, i, pairs, "last")


def _sole(e: Evidence, i: int, pairs: Pairs, word: str) -> Cause | None:
    """Of the outputs that an element feeds, only the last contributes, or only the first."""
    if not np.array_equal(pairs.missing, pairs.wrong):
        return None
    kept, step = pairs.used & ~pairs.wrong, -1 if word == "last" else 1
    for lead in _leads(e):
        used, there = (a.reshape(lead, -1, a.shape[-1]) for a in (pairs.used, kept))
        several = np.broadcast_to((used.sum(axis=1) > 1)[:, None], used.shape)
        chosen = np.zeros(used.shape, bool)
        np.put_along_axis(chosen, used[:, ::step].argmax(axis=1)[:, None], True, axis=1)
        alone = chosen[:, ::step] & used
        if alone[several].sum() > 1 and np.array_equal(there[several], alone[several]):
            text = (
                f"`{e.names[i]}`: of the output elements that one element goes into, only the "
                f"{word} contributes; the others are missing: overwritten, not accumulated"
            )
            return Cause("missing-sum", text, _REPEATED)
    return None


def repeated(e: Evidence, i: int) -> Cause | None:
    """With indices that repeat, some of what an element feeds is missing, never the last of it."""
    pairs = pairs_of(e, i)
    if pairs is None or not pairs.missing.any() or not np.array_equal(pairs.missing, pairs.wrong):
        return None
    arrays = [a for _, a in e.session.subject.array_arguments() if a.dtype.kind in "iu"]
    if not any(np.unique(a).size < a.size for a in arrays):
        return None
    kept = pairs.used & ~pairs.wrong
    last = pairs.used.shape[0] - 1 - pairs.used[::-1].argmax(axis=0)
    short = pairs.missing.any(axis=0)
    if not kept[last, np.arange(last.size)][short].all():
        return None
    text = (
        f"`{e.names[i]}`: where an index repeats, some of what comes from the output elements is "
        "missing: overwritten, not accumulated"
    )
    return Cause("missing-sum", text, _REPEATED)


def _leads(e: Evidence) -> list[int]:
    """Return how many groups the output's leading axes make: each may be written on its own."""
    shape = e.outputs[0].shape if len(e.outputs) == 1 else ()
    return list(dict.fromkeys(int(np.prod(shape[:k])) for k in range(max(len(shape), 1))))


def _exchanged(e: Evidence, i: int, pairs: Pairs) -> Cause | None:
    """Each output's contributions are the right numbers, exchanged among its elements."""
    off = pairs.wrong.any(axis=1)
    few = pairs.used[off].sum(axis=1).max(initial=0)
    right, got = np.sort(pairs.right[off], axis=1), np.sort(pairs.got[off], axis=1)
    distinct = np.unique(np.round(right[np.abs(right) > 0], 9)).size > 2
    same_places = not (pairs.missing.any() or np.any(pairs.wrong & (np.abs(pairs.right) == 0)))
    if not (off.sum() > 1 and same_places and distinct and e.matches(got, right)):
        return None
    between = "its two neighbours" if few == 2 else "the elements that an output depends on"
    text = f"`{e.names[i]}`: the weights of {between} are exchanged in each output's contribution"
    return Cause("misplaced", text)


# -- places ----------------------------------------------------------------------------------------
def _places(e: Evidence, i: int) -> Iterator[tuple[str, Array]]:
    """Yield sets of pairs in words: by the output element alone, and beside the argument's."""
    shape = e.arrays[i].shape
    columns = int(np.prod(shape))
    start, total = 0, joined(e.outputs).size
    for k, out in enumerate(e.outputs):
        rows = np.zeros(total, bool)
        rows[start : start + out.size] = True
        if len(e.outputs) > 1:
            yield f"output {k}", np.repeat(rows[:, None], columns, axis=1)
        several = len(e.outputs) > 1
        for where, holds in (*_of_output(out, k if several else None), *_of_arguments(e, out)):
            found = np.zeros((total, columns), bool)
            found[start : start + out.size] = holds.reshape(-1, 1)
            yield where, found
        for where, between in _between(out.shape, shape):
            found = np.zeros((total, columns), bool)
            found[start : start + out.size] = between
            yield where + (f" of output {k}" if len(e.outputs) > 1 else ""), found
        start += out.size


def _of_output(out: Array, number: int | None) -> Iterator[tuple[str, Array]]:
    """Yield sets of the elements of an output, in words."""
    whole = "the output" if number is None else f"output {number}"
    yield f"elements of {whole} below zero", out < 0
    yield f"elements of {whole} above zero", out > 0
    yield f"elements of {whole} that are zero", out == 0
    for word, bound in (("smallest", out.min()), ("largest", out.max())) if out.size else ():
        if 1 < (out == bound).sum() < out.size:
            yield f"elements of {whole} that are clipped to its {word} value", out == bound
    indices = np.indices(out.shape)
    for axis, n in enumerate(out.shape):
        index: Array = indices[axis]
        of = f"of {whole}" + (f" along axis {axis}" if out.ndim > 1 else "")
        yield f"the first element {of}", index == 0
        yield f"the last element {of}", index == n - 1
        yield f"all but the first element {of}", index > 0
        yield f"all but the last element {of}", index < n - 1
        yield f"the first and the last element {of}", (index == 0) | (index == n - 1)
        yield f"the odd elements {of}", index % 2 == 1
        yield f"the even elements {of}", index % 2 == 0
    if out.ndim > 1:
        ends = [(k == 0) | (k == n - 1) for k, n in zip(indices, out.shape, strict=True)]
        border = np.logical_or.reduce(ends)
        yield f"the border (boundary) of {whole}", border
        yield f"the inside of {whole}, away from its border", ~border


def _of_arguments(e: Evidence, out: Array) -> Iterator[tuple[str, Array]]:
    """Yield sets of an output's elements, by the values of arguments there, in words."""
    if not out.ndim:
        return
    arrays = e.session.subject.array_arguments()
    numbers = [(name, np.asarray(v)) for name, v in e.numbers]
    for k, (name, array) in enumerate(arrays):
        if array.shape != out.shape or array.dtype.kind not in "iuf":
            continue
        others = [*arrays[:k], *arrays[k + 1 :], *numbers]
        for found in of_values(name, array, others):
            yield f"output elements where {found.text}", found.holds
    for name, number in [(n, a) for n, a in [*arrays, *numbers] if a.size == 1]:
        yield f"output elements equal to {name}", np.isclose(out, number.reshape(()))
    for name, mask in [(n, a) for n, a in arrays if a.dtype.kind == "b"]:
        for values in aligned(mask, out.shape):
            yield f"output elements where {name} is true", values
            yield f"output elements where {name} is false", ~values


def _between(out: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield sets of pairs by the place of the output's element beside that of the argument's."""
    rows, columns = np.indices(out), np.indices(shape)
    for a, b in itertools.product(range(len(out)), range(len(shape))):
        if a != b and (len(out) == len(shape) or out[a] != shape[b]):
            continue
        step: Array = rows[a].reshape(-1, 1) - columns[b].reshape(1, -1)
        along = f" along axis {b}" if len(shape) > 1 else ""
        names = {1: ("elements",), 2: ("rows", "columns")}.get(len(shape))
        line = names[b] if names else ""
        yield f"the output element at the same index{along}", step == 0
        yield f"the other {line} of the output" if line else f"other indices{along}", step != 0
        yield f"later {line} of the output" if line else f"later indices{along}", step > 0
        yield f"earlier {line} of the output" if line else f"earlier indices{along}", step < 0
        for k in (1, -1):
            words = "one step later" if k > 0 else "one step earlier"
            yield f"the neighbouring output element, {words}{along},", step == k
            side = "after" if k > 0 else "before"
            far = step > 1 if k > 0 else step < -1
            yield f"output elements more than one step {side}{along}", far
