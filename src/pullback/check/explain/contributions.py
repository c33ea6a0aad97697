"""Which contributions to a gradient are wrong: what one element of an output gives to one of `x`.

Compares the Jacobian of backward with the numerical one, pair by pair: what the wrong pairs have in
common, and by which known quantity of the call their ratio, or the difference, can be expressed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pullback.check.explain.candidates import multiple
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.features import Sample, aligned, features
from pullback.check.report import Cause
from pullback.check.values import Array

_MAX_PAIRS = 100_000
_SIMPLE = 8  # the largest number in a simple fraction
_FEW = 3  # pairs that another formula may have by accident
_ADD_UP = (
    "an index is repeated? Add up with np.add.at: `=`, or `x[index] += v`, keeps one of several"
)


class Pairs(NamedTuple):
    """The contributions to the gradient of argument `i`: a row for each output element.

    Attributes
    ----------
    right, got : array
        The numerical Jacobian and backward's; where these are not known, or complex, the gradients
        for two output gradients in their place.
    wrong, used : array of bool
        Where they differ, and where either is not 0: only there a pair tells anything.
    whole : bool
        Whether these are the Jacobians.
    """

    e: Evidence
    i: int
    right: Array
    got: Array
    wrong: Array
    used: Array
    whole: bool

    @property
    def missing(self) -> Array:
        """Where backward gives nothing, though the output depends on the element."""
        return np.asarray(self.wrong & (np.abs(self.got) <= 1e-9 * np.abs(self.right).max()))

    def known(self) -> Iterator[tuple[str, Array]]:
        """Yield quantities of the call at the wrong pairs, in words."""
        rows, columns = np.nonzero(self.wrong)
        spaces = [(self.e.arrays[self.i].shape, columns)]
        if self.whole and len(self.e.outputs) == 1 and self.e.outputs[0].size > 1:
            spaces.append((self.e.outputs[0].shape, rows))
        seen: set[str] = set()
        for shape, place in spaces:
            for words, values in _quantities(self.e, shape):
                words += " at the output element" if words in seen else ""
                seen.add(words)
                yield words, values.reshape(-1)[place]


def pairs_of(e: Evidence, i: int) -> Pairs | None:
    """Return the contributions to the gradient of argument `i`; None if none is wrong."""
    right, got = e.jacobians(i)
    real = not any(a.dtype.kind == "c" for a in (e.arrays[i], *e.outputs))
    whole = right is not None and got is not None and real and right.size <= _MAX_PAIRS
    if right is None or got is None or not whole:
        right = np.stack([e.expected[i].ravel(), e.expected_other[i].ravel()])
        got = np.stack([e.got[i].ravel(), e.got_other[i].ravel()])
        known = np.isfinite(right)
        right, got = np.where(known, right, 0.0), np.where(known, got, 0.0)
    if not (np.isfinite(right).all() and np.isfinite(got).all()):
        return None
    size = np.abs(right).max(initial=0.0)
    off = np.abs(got - right) > e.pattern_rtol * (np.abs(right) + 1e-3 * size)
    used = (np.abs(right) > 1e-6 * size) | (np.abs(got) > 1e-6 * size)
    return Pairs(e, i, right, got, off & used, used, whole) if (off & used).any() and size else None


# -- known quantities ------------------------------------------------------------------------------
def _quantities(e: Evidence, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield arrays of a shape that the call knows, and simple functions of them, in words."""
    plain: list[tuple[str, Array]] = []
    arrays = [(f"`{name}`", array) for name, array in e.session.subject.array_arguments()]
    for name, array in (*arrays, *e.named_outputs):
        if array.dtype.kind not in "fciu" or not array.size:
            continue
        for values in itertools.islice(aligned(array + np.zeros(()), shape), 1):
            plain.append((name, values))
            yield from _forms(name, values)
        for axis in (None, *range(array.ndim)) if array.ndim and array.dtype.kind == "f" else ():
            along = "" if axis is None else f" along axis {axis}"
            total = np.sum(array, axis=axis, keepdims=True)
            norm = np.sqrt(np.sum(array**2, axis=axis, keepdims=True))
            for word, values in (("sum", total), ("norm", norm)):
                for whole in itertools.islice(aligned(values, shape), 1):
                    yield f"the {word} of {name}{along}", whole
    for (a, x), (b, y) in itertools.permutations(plain, 2):
        yield f"{a} / {b}", x / y
        yield f"{a} * {b}", x * y
    for axis, index in enumerate(np.indices(shape)):
        for start in (0, 1):
            yield f"the index (from {start}) along axis {axis}", index + float(start)


def _forms(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    """Yield an array and simple functions of it, in words."""
    yield name, x
    yield f"{name} ** 2", x**2
    yield f"(1 - {name})", 1 - x
    yield f"(1 + {name})", 1 + x
    yield f"abs({name})", np.abs(x) + 0.0 * x
    yield f"sqrt({name})", np.sqrt(x)
    yield f"exp({name})", np.exp(x)
    yield f"{name} * (1 - {name})", x * (1 - x)
    yield f"(1 - {name} ** 2)", 1 - x**2


def _expressed(p: Pairs, kind: str) -> tuple[str, float] | None:
    """Return a known quantity, and the number by which it is multiplied, that says what is wrong.

    Parameters
    ----------
    kind : {"lacks", "has", "+"}
        Whether the right contributions are backward's times that, or the reverse; or backward's
        are too large by it. At other values it has to be so with the same number.
    """
    other = None if p.e.session.options.fast else p.e.elsewhere
    there = None if other is None else pairs_of(other, p.i)
    count = int(p.wrong.sum())
    if there is None and count <= _FEW:
        return None
    with np.errstate(all="ignore"):
        again = None if there is None else dict(_multiples(there, kind))
        for words, c in _multiples(p, kind):
            same = again is None or abs(again.get(words, np.inf) - c) <= p.e.pattern_rtol * abs(c)
            if same and (count > _FEW or _is_simple(p.e, c)):
                return words, c
    return None


def _multiples(p: Pairs, kind: str) -> Iterator[tuple[str, float]]:
    """Yield the quantities that have one number at all wrong pairs, and the number."""
    right, got = p.right[p.wrong], p.got[p.wrong]
    target, base = {
        "lacks": (right, got),
        "has": (got, right),
        "+": (got - right, np.ones(right.shape)),
    }[kind]
    for words, values in p.known():
        terms = [(words, base * values)]
        if kind == "+":
            grouped = f"({words})" if " " in words else words
            terms = [(f"* {words}", values), (f"/ {grouped}", 1 / values)]
        for text, term in terms:
            c = multiple(target, term).real if np.isfinite(term).all() else 0.0
            if c and p.e.matches(target, c * term):
                yield text, c


def _is_simple(e: Evidence, c: float) -> bool:
    """Return whether a number is likely in a formula: a small one, or the length of an axis."""
    lengths = {float(n) for a in (*e.arrays, *e.outputs) for n in (*a.shape, a.size) if n > 0}
    few = {1.0, 2.0, 3.0, 4.0} | lengths
    simple = np.array([c for n in few for c in (n, n / 2, 1 / n)])
    return bool((np.abs(simple - abs(c)) <= e.pattern_rtol * simple).any())


def _times(c: float, words: str) -> str:
    """Return a number times a quantity, in words."""
    number = f"{c:.4g}"
    return words if number == "1" else f"-{words}" if number == "-1" else f"{number} * {words}"


# -- how they are wrong ----------------------------------------------------------------------------
def verdict(p: Pairs) -> tuple[str, str]:
    """Return the name of a cause, and how all the wrong contributions are wrong, in words."""
    e, right, got = p.e, p.right[p.wrong], p.got[p.wrong]
    if p.missing[p.wrong].all():
        return "missing-term", "is missing"
    if np.all(np.abs(right) <= 1e-6 * np.abs(p.right).max()):
        return "elements", "should be zero"
    if e.matches(got, -right):
        return "sign", "has the wrong sign"
    c = multiple(got, right).real
    if (got.size > 1 or _is_simple(e, c)) and e.matches(got, c * right):
        return "factor", f"is off by the factor {c:.3f}"
    found = _expressed(p, "lacks")
    if found is not None:
        return "extra-factor", f"lacks the factor {_times(found[1], found[0])}"
    found = _expressed(p, "has")
    if found is not None:
        return "extra-factor", f"has the factor {_times(found[1], found[0])} too many"
    several = _fractions(got, right, e.pattern_rtol)
    if several:
        listed = ", ".join(map(str, several))
        return "factor", f"is off by a simple factor ({listed}): another count or size is meant?"
    return "elements", "is wrong"


def _fractions(got: Array, right: Array, rtol: float) -> list[Fraction]:
    """Return the factors that the contributions are off by, if all are simple fractions."""
    if got.dtype.kind == "c" or not right.all():
        return []
    ratios = np.unique(got / right)
    found = {float(r): Fraction(float(r)).limit_denominator(_SIMPLE) for r in ratios}
    if any(abs(r - f) > rtol * abs(r) or abs(f.numerator) > _SIMPLE for r, f in found.items()):
        return []
    several = sorted(set(found.values()))
    return several if 0 not in several and 1 < len(several) <= _SIMPLE else []


def factor(e: Evidence, i: int) -> Cause | None:
    """All contributions have a factor too many, or lack one."""
    p = pairs_of(e, i)
    name, what = verdict(p) if p is not None and np.array_equal(p.wrong, p.used) else ("", "")
    if name != "extra-factor":
        return None
    text = f"the gradient of `{e.names[i]}` {what}"
    if what.startswith("lacks"):
        text = f"{what.removeprefix('lacks ')} is missing from the gradient of `{e.names[i]}`"
    return Cause("extra-factor", text, "the derivative of one step is left out, or counted twice?")


def term(e: Evidence, i: int) -> Cause | None:
    """A known quantity is missing from the contributions, or is one too many."""
    p, name, along = pairs_of(e, i), f"`{e.names[i]}`", _along_axis(e, i)
    if along:
        text = f"a term is missing from {name} (or too many) that is {along}"
        hint = "a mean or sum that is not differentiated, or whose derivative has the wrong sign?"
        return Cause("missing-term", text, hint)
    found = None if p is None else _expressed(p, "+")
    if found is None:
        return None
    words, c = found
    sign = " (or its opposite is too many)" if c > 0 else ""
    text = f"the term {_times(-c, f'grad_output {words}')} is missing from {name}{sign}"
    return Cause("missing-term", text, "differentiate every place where forward uses it")


def _along_axis(e: Evidence, i: int) -> str:
    """Return in words that along an axis the error is constant, or a multiple of an array."""
    errors = (e.got[i] - e.expected[i], e.got_other[i] - e.expected_other[i])
    axes = [axis for axis, n in enumerate(errors[0].shape) if n > 2]
    if not axes or not all(np.isfinite(off).all() for off in errors):
        return ""
    ones = ("", np.ones(errors[0].shape))
    with np.errstate(all="ignore"):
        for words, k in (ones, *_quantities(e, errors[0].shape)):
            for axis in reversed(axes):
                size = np.sum(k * k, axis, keepdims=True)
                fitted = [np.sum(off * k, axis, keepdims=True) / size * k for off in errors]
                if all(e.matches(*pair) for pair in zip(errors, fitted, strict=True)):
                    what = f"a multiple of {words}" if words else "constant"
                    return f"{what} along axis {axis}"
    return ""


# -- which are wrong -------------------------------------------------------------------------------
def coupled(e: Evidence, i: int) -> Cause | None:
    """Backward takes elements apart: one of the outputs that one feeds, one of those it needs."""
    p, name = pairs_of(e, i), f"`{e.names[i]}`"
    if p is None or not p.whole:
        return None
    square = p.right.shape[0] == p.right.shape[1]
    only = np.array_equal(p.missing, p.wrong)
    if square and only and np.array_equal(p.wrong, p.used & ~np.eye(len(p.right), dtype=bool)):
        text = "the terms that couple the elements are missing: only the diagonal of the Jacobian"
        return Cause("diagonal", f"{name}: {text} is there")
    off = p.wrong.any(axis=1)
    got, right = (np.sort(a[off], axis=1) for a in (p.got, p.right))
    if off.sum() > 1 and np.unique(np.round(right, 9)).size > 3 and e.matches(got, right):
        text = "the right numbers, exchanged among the elements that it depends on"
        return Cause("misplaced", f"{name}: what comes from each output element are {text}")
    shape = e.outputs[0].shape if len(e.outputs) == 1 else ()
    for lead in dict.fromkeys(int(np.prod(shape[:k])) for k in range(max(len(shape), 1))):
        used, wrong = (a.reshape(lead, -1, a.shape[-1]) for a in (p.used, p.wrong))
        several = np.broadcast_to((used.sum(axis=1) > 1)[:, None], used.shape)
        last = used & (np.cumsum(used[:, ::-1], axis=1)[:, ::-1] == 1)
        kept = np.array_equal((used & ~wrong)[several], last[several])
        if only and kept and last[several].sum() > 1:
            text = (
                f"{name}: of the output elements that one element goes into, only the last "
                "contributes; the others are missing: overwritten, not accumulated"
            )
            return Cause("missing-sum", text, _ADD_UP)
    return None


def contributions(e: Evidence, i: int) -> Cause | None:
    """Some output elements contribute wrongly to elements to which others contribute rightly."""
    p = pairs_of(e, i)
    if p is None or not p.whole:
        return None
    beside = p.used & ~p.wrong
    # Where all of an element's contributions are wrong, what the elements have in common says more.
    partly = (beside.any(axis=0) & p.wrong.any(axis=0)).any()
    where = _where(p) if partly and min(p.wrong.sum(), beside.sum()) > 1 else ""
    name, what = verdict(p) if where else ("", "")
    return Cause(name, f"`{e.names[i]}`: what comes from {where} {what}") if where else None


def clause(e: Evidence, i: int) -> tuple[str, str]:
    """Return in words how the wrong contributions are wrong, with the name of such a cause."""
    p = pairs_of(e, i)
    if p is None:
        return "", ""
    name, what = verdict(p)
    beside = (p.used & ~p.wrong)[:, p.wrong.any(axis=0)]
    if not p.whole or not beside.any():
        return ("", "") if what == "is wrong" else (name, f"there it {what}")
    missing, where = int(p.missing.sum()), _where(p)
    total = f"of the {int(p.used.sum())} contributions of single output elements"
    if what == "is wrong" and missing:
        return "missing-term", f"{missing} {total} are missing, {p.wrong.sum() - missing} wrong"
    if what == "is wrong" and not where:
        return "", ""
    where = f", those from {where}" if where else ""
    return name, f"{int(p.wrong.sum())} {total}{where}, each {what}"


def _where(p: Pairs) -> str:
    """Return where the wrong pairs are: of which elements of the output, or beside which."""

    def same(holds: Array) -> bool:
        return bool(np.array_equal(np.broadcast_to(holds, p.used.shape)[p.used], p.wrong[p.used]))

    start, several = 0, len(p.e.outputs) > 1
    for name, out in p.e.named_outputs:
        rows, holds = slice(start, start + out.size), np.zeros(p.used.shape, bool)
        start += out.size
        holds[rows] = True
        if several and same(holds):
            return name
        wrong, used = (np.reshape(a[rows].any(axis=1), out.shape) for a in (p.wrong, p.used))
        s = Sample(name, out, p.e.arguments(), [], wrong, used)
        with np.errstate(all="ignore"):
            for f in features(s, s):
                holds[rows] = f.holds.reshape(-1, 1)
                if same(holds):
                    return f"the elements of {name} where {f.text}"
        for words, between in _between(out.shape, p.e.arrays[p.i].shape):
            holds[rows] = between
            if same(holds):
                return f"elements of {name} {words}"
    return ""


def _between(out: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield sets of pairs by the place of the output's element beside that of the argument's."""
    rows, columns = np.indices(out), np.indices(shape)
    for a, b in itertools.product(range(len(out)), range(len(shape))):
        if a != b and (len(out) == len(shape) or out[a] != shape[b]):
            continue
        step: Array = rows[a].reshape(-1, 1) - columns[b].reshape(1, -1)
        along = f" along axis {b}" if len(shape) > 1 else ""
        yield f"at the same index{along}", step == 0
        yield f"at other indices{along}", step != 0
        yield f"at later indices{along}", step > 0
        yield f"at earlier indices{along}", step < 0
        for k, side in ((1, "after"), (-1, "before")):
            yield f"one step {side}{along}", step == k
            yield f"more than one step {side}{along}", step * k > 1
