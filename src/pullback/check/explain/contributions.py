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
_ADD_UP = "an index is repeated? Add up with np.add.at: `x[index] += v` keeps one of several"
_STEP = "the derivative of one step is left out, or counted twice?"
_PLACES = "differentiate every place where forward uses it"
_CONSTANT = "a mean or sum that is not differentiated, or whose derivative has the wrong sign?"


class Pairs(NamedTuple):
    """The contributions to the gradient of argument `i`: a row for each output element.

    By the numerical Jacobian and backward's (`whole`); where these are not known, or complex, the
    gradients for two output gradients. A pair tells something where either is not 0 (`used`).
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
    size = np.abs(right).max(initial=0.0)
    if not (0 < size < np.inf and np.isfinite(got).all()):
        return None
    off = np.abs(got - right) > e.pattern_rtol * (np.abs(right) + 1e-3 * size)
    used = np.maximum(np.abs(right), np.abs(got)) > 1e-6 * size
    return Pairs(e, i, right, got, off & used, used, whole) if (off & used).any() else None


# -- known quantities ------------------------------------------------------------------------------
def _known(p: Pairs) -> Iterator[tuple[str, Array]]:
    """Yield quantities of the call at the wrong pairs, in words."""
    rows, columns = np.nonzero(p.wrong)
    spaces = [(p.e.arrays[p.i].shape, columns)]
    if p.whole and len(p.e.outputs) == 1 and p.e.outputs[0].size > 1:
        spaces.append((p.e.outputs[0].shape, rows))
    seen: set[str] = set()
    for shape, place in spaces:
        for words, values in _quantities(p.e, shape):
            words += " at the output element" if words in seen else ""
            seen.add(words)
            yield words, values.reshape(-1)[place]


def _quantities(e: Evidence, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield arrays of a shape that the call knows, and simple functions of them, in words."""
    plain: list[tuple[str, Array]] = []
    arrays = [(f"`{name}`", array) for name, array in e.session.subject.array_arguments()]
    for name, a in (*arrays, *e.named_outputs):
        if a.dtype.kind not in "fciu" or not a.size:
            continue
        for values in itertools.islice(aligned(a + np.zeros(()), shape), 1):
            plain.append((name, values))
            yield from _forms(name, values)
        for axis in (None, *range(a.ndim)) if a.ndim and a.dtype.kind == "f" else ():
            along = "" if axis is None else f" along axis {axis}"
            total, square = (np.sum(b, axis=axis, keepdims=True) for b in (a, a * a))
            for word, values in (("sum", total), ("norm", np.sqrt(square))):
                for fitted in itertools.islice(aligned(values, shape), 1):
                    yield f"the {word} of {name}{along}", fitted
    for (a_name, x), (b_name, y) in itertools.permutations(plain, 2):
        yield f"{a_name} / {b_name}", x / y
        yield f"{a_name} * {b_name}", x * y
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


def _expressed(p: Pairs, kind: str) -> str:
    """Return a known quantity, times a number, that says what is wrong with the wrong pairs.

    Parameters
    ----------
    kind : {"lacks", "has", "term"}
        Whether the right contributions are backward's times that, or the reverse, or the sum. At
        other values it has to be so with the same number.
    """
    other = None if p.e.session.options.fast else p.e.elsewhere
    there, few = None if other is None else pairs_of(other, p.i), p.wrong.sum() <= _FEW
    if there is None and few:
        return ""
    with np.errstate(all="ignore"):
        again = {} if there is None else dict(_multiples(there, kind))
        for words, c in _multiples(p, kind):
            same = there is None or abs(again.get(words, np.inf) - c) <= p.e.pattern_rtol * abs(c)
            if same and (not few or _is_simple(p.e, c)):
                number = f"{c:.4g}"
                return {"1": words, "-1": f"-{words}"}.get(number, f"{number} * {words}")
    return ""


def _multiples(p: Pairs, kind: str) -> Iterator[tuple[str, float]]:
    """Yield the quantities that have one number at all wrong pairs, and the number."""
    right, got = p.right[p.wrong], p.got[p.wrong]
    target, base = (got, right) if kind == "has" else (right, got)
    for words, values in _known(p):
        terms = [(words, base * values)]
        if kind == "term":
            target, inverse = right - got, f"/ ({words})" if " " in words else f"/ {words}"
            terms = [
                (f"grad_output * {words}", values),
                (f"grad_output {inverse}", 1 / values),
            ]
        for text, term in terms:
            c = multiple(target, term).real if np.isfinite(term).all() else 0.0
            if c and p.e.matches(target, c * term):
                yield text, c


def _is_simple(e: Evidence, c: float) -> bool:
    """Return whether a number is likely in a formula: a small one, or the length of an axis."""
    lengths = [n for a in (*e.arrays, *e.outputs) for n in (*a.shape, a.size) if n > 0]
    simple = np.array([c for n in (1, 2, 3, 4, *lengths) for c in (n, n / 2, 1 / n)])
    return bool((np.abs(simple - abs(c)) <= e.pattern_rtol * simple).any())


# -- how they are wrong ----------------------------------------------------------------------------
def verdict(p: Pairs) -> tuple[str, str]:
    """Return the name of a cause, and how all the wrong contributions are wrong, in words."""
    e, right, got = p.e, p.right[p.wrong], p.got[p.wrong]
    c = multiple(got, right).real
    if p.missing[p.wrong].all():
        return "missing-term", "is missing"
    if np.all(np.abs(right) <= 1e-6 * np.abs(p.right).max()):
        return "elements", "should be zero"
    if e.matches(got, -right):
        return "sign", "has the wrong sign"
    if (got.size > 1 or _is_simple(e, c)) and e.matches(got, c * right):
        return "factor", f"is off by the factor {c:.3f}"
    for kind, more in (("lacks", ""), ("has", " too many")):
        found = _expressed(p, kind)
        if found:
            return "extra-factor", f"{kind} the factor {found}{more}"
    simple = _fractions(e, got, right)
    if simple:
        listed = ", ".join(map(str, sorted(simple)))
        return "factor", f"is off by a simple factor ({listed}): another count or size is meant?"
    return "elements", "is wrong"


def _fractions(e: Evidence, got: Array, right: Array) -> set[Fraction]:
    """Return the factors that contributions are off by, if all are simple fractions."""
    if got.dtype.kind == "c" or not right.all() or np.abs(got / right).max() > 2 * _SIMPLE:
        return set()
    ratios = np.unique(got / right)
    found = [Fraction(float(r)).limit_denominator(_SIMPLE) for r in ratios]
    near = np.abs(ratios - np.array(found, float)) <= e.pattern_rtol * np.abs(ratios)
    return set(found) if near.all() and len(set(found)) <= _SIMPLE else set()


def factor(e: Evidence, i: int) -> Cause | None:
    """All contributions have a factor too many, or lack one."""
    p = pairs_of(e, i)
    name, what = verdict(p) if p is not None and np.array_equal(p.wrong, p.used) else ("", "")
    if name != "extra-factor":
        return None
    text = f"the gradient of `{e.names[i]}` {what}"
    if what.startswith("lacks"):
        text = f"{what.removeprefix('lacks ')} is missing from the gradient of `{e.names[i]}`"
    return Cause("extra-factor", text, _STEP)


def term(e: Evidence, i: int) -> Cause | None:
    """A known quantity is missing from the contributions, or is one too many."""
    p, name, along = pairs_of(e, i), f"`{e.names[i]}`", _along_axis(e, i)
    if along:
        text = f"a term is missing from {name} (or too many) that is {along}"
        return Cause("missing-term", text, _CONSTANT)
    found = "" if p is None else _expressed(p, "term")
    sign = " (or its opposite is too many)" if found.startswith("-") else ""
    text = f"the term {found} is missing from {name}{sign}"
    return Cause("missing-term", text, _PLACES) if found else None


def _along_axis(e: Evidence, i: int) -> str:
    """Return in words that along an axis the error is constant, or a multiple of an array."""
    errors = (e.got[i] - e.expected[i], e.got_other[i] - e.expected_other[i])
    axes = [axis for axis, n in enumerate(errors[0].shape) if n > 2]
    if not axes or not all(np.isfinite(off).all() for off in errors):
        return ""
    with np.errstate(all="ignore"):
        ones = ("", np.ones(errors[0].shape))
        for words, k in (ones, *_quantities(e, errors[0].shape)):
            for axis in reversed(axes):
                size = np.sum(k * k, axis, keepdims=True)
                fitted = [np.sum(off * k, axis, keepdims=True) / size * k for off in errors]
                if all(e.matches(*pair) for pair in zip(errors, fitted, strict=True)):
                    return f"{f'a multiple of {words}' if words else 'constant'} along axis {axis}"
    return ""


# -- which are wrong -------------------------------------------------------------------------------
def coupled(e: Evidence, i: int) -> Cause | None:
    """Of what couples elements something is left out, or goes to other elements."""
    p, name = pairs_of(e, i), f"`{e.names[i]}`"
    if p is None or not p.whole:
        return None
    only, (rows, columns) = np.array_equal(p.missing, p.wrong), p.right.shape
    if rows == columns and only and np.array_equal(p.wrong, p.used & ~np.eye(rows, dtype=bool)):
        text = "the terms that couple the elements are missing: only the diagonal of the Jacobian"
        return Cause("diagonal", f"{name}: {text} is there")
    got, right = (np.sort(a[p.wrong.any(axis=1)], axis=1) for a in (p.got, p.right))
    if len(got) > 1 and np.unique(np.round(right, 9)).size > 3 and e.matches(got, right):
        text = "the right numbers, exchanged among the elements that it depends on"
        return Cause("misplaced", f"{name}: what comes from each output element are {text}")
    shape = e.outputs[0].shape if len(e.outputs) == 1 and only else ()
    for k in range(len(shape)):
        used, wrong = (a.reshape(*shape[:k], -1, columns) for a in (p.used, p.wrong))
        last = used & (np.flip(np.cumsum(np.flip(used, k), k), k) == 1)
        several = used.sum(axis=k, keepdims=True) > 1
        if (last & several).sum() > 1 and np.array_equal(used & ~wrong & several, last & several):
            text = (
                f"{name}: of the output elements that one element goes into, only the last "
                "contributes; the others are missing: overwritten, not accumulated"
            )
            return Cause("missing-sum", text, _ADD_UP)
    return None


def contributions(e: Evidence, i: int) -> Cause | None:
    """Some output elements contribute wrongly to elements to which others contribute rightly."""
    p = pairs_of(e, i)
    if p is None or not p.whole or not (p.used & ~p.wrong)[:, p.wrong.any(axis=0)].any():
        return None
    where = _where(p) if min(p.wrong.sum(), (p.used & ~p.wrong).sum()) > 1 else ""
    name, what = verdict(p) if where else ("", "")
    return Cause(name, f"`{e.names[i]}`: what comes from {where} {what}") if where else None


def clause(e: Evidence, i: int) -> tuple[str, str]:
    """Return in words how the wrong contributions are wrong, with the name of such a cause."""
    p = pairs_of(e, i)
    if p is None:
        return "", ""
    (name, what), missing = verdict(p), int(p.missing.sum())
    if not p.whole or not (p.used & ~p.wrong)[:, p.wrong.any(axis=0)].any():
        return ("", "") if what == "is wrong" else (name, f"there it {what}")
    total = f"of the {int(p.used.sum())} contributions of single output elements"
    if what == "is wrong" and missing:
        return "missing-term", f"{missing} {total} are missing, {p.wrong.sum() - missing} wrong"
    return ("", "") if what == "is wrong" else (name, f"{p.wrong.sum()} {total}, each {what}")


def _where(p: Pairs) -> str:
    """Return where the wrong pairs are: of which elements of the output, or beside which."""
    start = 0
    for name, out in p.e.named_outputs:
        rows, holds = slice(start, start + out.size), np.zeros(p.used.shape, bool)
        start += out.size
        wrong, used = (np.reshape(a[rows].any(axis=1), out.shape) for a in (p.wrong, p.used))
        s = Sample(name, out, p.e.arguments(), [], wrong, used)
        with np.errstate(all="ignore"):
            found = [(f"the elements of {name} where {f.text}", f.holds) for f in features(s, s)]
        every = [(name, np.ones(out.shape, bool))] if len(p.e.outputs) > 1 else []
        sets = [(words, there.reshape(-1, 1)) for words, there in (*every, *found)]
        for words, there in (*sets, *_between(name, out.shape, p.e.arrays[p.i].shape)):
            holds[rows] = there
            if np.array_equal(holds[p.used], p.wrong[p.used]):
                return words
    return ""


def _between(
    name: str, out: tuple[int, ...], shape: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield sets of pairs by the place of the output's element beside that of the argument's."""
    rows, columns = np.indices(out), np.indices(shape)
    for a, b in itertools.product(range(len(out)), range(len(shape))):
        if a != b and (len(out) == len(shape) or out[a] != shape[b]):
            continue
        step: Array = rows[a].reshape(-1, 1) - columns[b].reshape(1, -1)
        of, along = f"elements of {name}", f" along axis {b}" if len(shape) > 1 else ""
        yield f"{of} at the same index{along}", step == 0
        yield f"{of} at other indices{along}", step != 0
        yield f"{of} at later indices{along}", step > 0
        yield f"{of} at earlier indices{along}", step < 0
        for k, side in ((1, "after"), (-1, "before")):
            yield f"{of} one step {side}{along}", step == k
            yield f"{of} more than one step {side}{along}", step * k > 1
