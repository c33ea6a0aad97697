"""The grammar of wrong gradients: what the right one may have been turned into.

Each function yields candidates at a look: what backward would return there, and the cause if it
does. The first that backward returns at each look, in the same words, is the explanation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from pullback.check.explain.evidence import Evidence, aligned, quantities
from pullback.check.numerical import from_coordinates, joined
from pullback.check.report import Cause, axes_text, quoted
from pullback.check.values import Array

_MOST_AXES = 4  # whose orders are tried
_MOST = 100  # the denominator of a number in a formula
_FARTHEST = 6  # places by which values are moved
_ADJOINT = "multiply by W.T, run a scan from the end, put values back in the inverse order"
_HOLOMORPHIC = "the gradient of a holomorphic function is grad_output * f'(z).conj()"
_STEP = "the derivative of one step is left out, or counted twice?"
PLACES = "differentiate every place where forward uses it"
_CONSTANT = "a mean or sum that is not differentiated, or whose derivative has the wrong sign?"
_ADD_UP = "an index is repeated? Add up with np.add.at: `x[index] += v` keeps one of several"

Candidates = Iterator[tuple[Array, Cause]]
Grammar = Callable[[Evidence, int, Evidence], Candidates]


def first_of(grammar: Grammar) -> Callable[[Evidence, int], Cause | None]:
    """Return the explanation that is the first of these candidates to fit at each look."""

    @functools.wraps(grammar)
    def explain(e: Evidence, i: int) -> Cause | None:
        found: list[Cause] | None = None
        with np.errstate(all="ignore"):
            for look in e.looks():
                here = [c for pattern, c in grammar(e, i, look) if _fits(e, i, pattern, look)]
                found = [c for c in (here if found is None else found) if c in here]
                if not found:
                    return None
        return found[0] if found else None

    return explain


def _fits(e: Evidence, i: int, pattern: Array, look: Evidence) -> bool:
    """Return whether the gradient of argument `i` is a pattern at a look, and is wrong."""
    right, same = look.expected[i], e.matches(look.got[i], pattern)
    known = same and bool(np.isfinite(pattern[np.isfinite(right)]).all())
    return known and not (look is e and e.matches(pattern, right))


@first_of
def swapped(e: Evidence, i: int, look: Evidence) -> Candidates:
    """Two arguments have each other's gradient."""
    for j, right in enumerate(look.expected):
        if j != i and e.matches(look.got[j], look.expected[i]):
            both = quoted([e.names[min(i, j)], e.names[max(i, j)]], " and ")
            text = f"the gradients of {both} are swapped"
            yield right, Cause("swapped", text, "return gradients by name")


@first_of
def outputs(e: Evidence, i: int, look: Evidence) -> Candidates:
    """Of several outputs one is left out or negated, or two are exchanged."""
    name, seeds = f"`{e.names[i]}`", look.seeds
    for k, g in enumerate(seeds if len(seeds) > 1 else ()):
        ignored = f"{name} ignores the gradient of output {k}"
        yield look.given(i, {k: 0 * g}), Cause("output-ignored", ignored)
        negated = f"{name} has the wrong sign in what comes from output {k}"
        yield look.given(i, {k: -g}), Cause("sign", negated)
        for m in range(k):
            if g.shape == seeds[m].shape:
                exchanged = f"{name}: the gradients of outputs {m} and {k} are exchanged"
                yield look.given(i, {k: seeds[m], m: g}), Cause("output-ignored", exchanged)


# -- the right gradient, turned --------------------------------------------------------------------
@first_of
def multiples(e: Evidence, i: int, look: Evidence) -> Candidates:
    """The gradient is the right one times a number, -1 among them."""
    c, name = multiple(e.got[i], e.expected[i]), f"`{e.names[i]}`"
    if abs(c + 1) < e.pattern_rtol:
        yield -look.expected[i], Cause("sign", f"{name} has the wrong sign everywhere")
    elif c and abs(c - 1) >= e.pattern_rtol:  # a ratio of 1 is left to the precision
        numbers = e.session.subject.number_arguments()
        close = functools.partial(np.isclose, rtol=e.pattern_rtol)
        same = [f", which is the argument `{n}`" for n, value in numbers if close(c, value)]
        same += [f", 1 over `{n}`" for n, value in numbers if close(c * value, 1)]
        text = f"{name} is off by the factor {c:.3f} everywhere{''.join(same[:1])}"
        yield c * look.expected[i], Cause("factor", text)


def multiple(got: Array, right: Array) -> complex:
    """Return the factor that fits `factor * right` to `got` by least squares."""
    seen = np.isfinite(got) & np.isfinite(right)
    size = float(np.vdot(right[seen], right[seen]).real)
    c = complex(np.vdot(right[seen], got[seen])) / size if size else 0.0
    return c.real if abs(c.imag) <= 1e-6 * abs(c) else c


@first_of
def turned(e: Evidence, i: int, look: Evidence) -> Candidates:
    """The gradient is conjugated, transposed, or that of the transposed Jacobian."""
    name, right = f"`{e.names[i]}`", look.expected[i]
    if any(a.dtype.kind == "c" for a in (e.arrays[i], *e.outputs)):
        other = look.given(i, {k: g.conj() for k, g in enumerate(look.seeds)})
        if any(out.dtype.kind == "c" for out in e.outputs):
            text = f"{name}: the derivative is not conjugated"
            yield other.conj(), Cause("conjugated", text, _HOLOMORPHIC)
        yield right.conj(), Cause("conjugated", f"{name} is conjugated")
        yield other, Cause("conjugated", f"{name}: grad_output is conjugated")
        yield right.real + 0 * right, Cause("conjugated", f"{name}: the imaginary part is missing")
    matrix = look.jacobian(i)
    if matrix is not None and matrix.shape[0] == matrix.shape[1] > 1 and np.isfinite(matrix).all():
        text = f"{name}: the Jacobian is applied instead of its transpose"
        pattern = from_coordinates(matrix @ joined(look.seeds), right)
        yield pattern, Cause("transposed", text, _ADJOINT)
    orders = list(itertools.permutations(range(right.ndim if right.ndim <= _MOST_AXES else 0)))
    for axes in orders[1:]:
        words = "transposed" if right.ndim == 2 else f"transposed: its axes are {axes}"
        words += "" if right.transpose(axes).shape == right.shape else ", and then reshaped"
        pattern = right.transpose(axes).reshape(right.shape)
        yield pattern, Cause("transposed", f"{name} is {words}")


@first_of
def moved(e: Evidence, i: int, look: Evidence) -> Candidates:
    """The gradient has the right values at other places, or is that for a moved grad_output."""
    name = f"`{e.names[i]}`"
    for words, pattern in rearranged(look.expected[i]):
        yield pattern, Cause("misplaced", f"{name} is {words}")
    for k, g in enumerate(look.seeds):
        cause = Cause("nonlinear", f"{name} sees only the mean of grad_output")
        yield look.given(i, {k: np.full_like(g, g.sum() / max(g.size, 1))}), cause
        for words, pattern in rearranged(g):
            cause = Cause("misplaced", f"{name}: grad_output is used as if it were {words}")
            yield look.given(i, {k: pattern}), cause
    got, right = (np.sort(a, axis=None) for a in (look.got[i], look.expected[i]))
    if right.size > 2 and e.matches(got, right):
        count = int(e.wrong[i].sum())
        text = f"{name} has the right values in the wrong places: {count} are permuted (exchanged)"
        yield look.got[i], Cause("misplaced", text)


def rearranged(array: Array, farthest: int = _FARTHEST) -> Iterator[tuple[str, Array]]:
    """Yield an array's elements in other orders of the same shape, in words."""
    axes = [axis for axis, n in enumerate(array.shape) if n > 1]
    for some in subsets(axes):
        yield f"reversed along {axes_text(some)}", np.flip(array, some)
    for axis in axes:
        n, place = array.shape[axis], np.indices(array.shape)[axis]
        most = min(n // 2, farthest)
        for k in sorted({*range(-most, most + 1)} - {0}, key=abs):
            along, rolled = f"by {k} along axis {axis}", np.roll(array, k, axis)
            yield f"rolled {along} (an index off by {abs(k)}?)", rolled
            inside = (place >= k) & (place < n + k)
            yield f"shifted {along} (an index off by {abs(k)}?)", np.where(inside, rolled, 0)


def subsets(axes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield the sets of some axes, the smallest first."""
    for count in range(1, len(axes) + 1):
        yield from itertools.combinations(axes, count)


@first_of
def sums(e: Evidence, i: int, look: Evidence) -> Candidates:
    """Forward broadcast the argument, and backward did not sum where it should."""
    x, matrix = e.arrays[i], _real_jacobian(look, i)
    if matrix is None or (matrix != 0).sum(axis=1).max() > 1 or len(matrix) <= x.size:
        return
    terms = matrix.sum(axis=1).reshape(look.seeds[0].shape) * look.seeds[0]
    every = {axes: terms.sum(axis=axes) for axes in subsets([*range(terms.ndim)])}
    for axes, right in every.items():
        where = axes_text(axes)
        if right.size != x.size or not e.matches(right.reshape(x.shape), look.expected[i]):
            continue
        found = {f" is summed over {axes_text(a)} instead of {where}": s for a, s in every.items()}
        found[f" has the mean over {where} instead of the sum"] = terms.mean(axis=axes)
        for k, word in ((0, "first"), (-1, "last")):
            items = tuple(k if a in axes else slice(None) for a in range(terms.ndim))
            found[f": sum over {where} is missing: only the {word} item is taken"] = terms[items]
        for text, pattern in found.items():
            if pattern.size == x.size:
                yield pattern.reshape(x.shape), Cause("missing-sum", f"`{e.names[i]}`{text}")


@first_of
def coupled(e: Evidence, i: int, look: Evidence) -> Candidates:
    """Of what couples elements something is left out."""
    name, matrix = f"`{e.names[i]}`", _real_jacobian(look, i)
    if matrix is None:
        return
    used, kept = matrix != 0, []
    if len(matrix) == matrix.shape[1]:
        text = f"{name}: the terms that couple the elements are missing: only the diagonal is there"
        kept.append((np.eye(len(matrix)) > 0, Cause("diagonal", text)))
    if (used.sum(axis=0) > 1).sum() > 1:
        text = f"{name}: of the output elements that one goes into, only the last contributes"
        cause = Cause("missing-sum", f"{text}, others are missing (overwritten)", _ADD_UP)
        kept.append((np.cumsum(used[::-1], axis=0)[::-1] == 1, cause))
    for where, cause in kept:
        yield (joined(look.seeds) @ np.where(where, matrix, 0)).reshape(e.arrays[i].shape), cause


def _real_jacobian(look: Evidence, i: int) -> Array | None:
    """Return the Jacobian of the one output, 0 where it is unknown; None if not all is real."""
    matrix = look.jacobian(i)
    real = not any(a.dtype.kind == "c" for a in (*look.outputs, look.arrays[i]))
    if matrix is None or len(look.outputs) != 1 or not real or not len(matrix):
        return None
    matrix = np.nan_to_num(matrix)
    return np.where(np.abs(matrix) > 1e-9 * np.abs(matrix).max(), matrix, 0)


# -- known factors and terms -----------------------------------------------------------------------
@first_of
def products(e: Evidence, i: int, look: Evidence) -> Candidates:
    """The gradient, or grad_output, has a known factor too many, or lacks one."""
    name = f"the gradient of `{e.names[i]}`"
    for words, pattern in factors(i, look, np.ones(e.arrays[i].shape, bool)):
        lacks = words.startswith("lacks")
        text = f"{words[6:]} is missing from {name}" if lacks else f"{name} {words}"
        yield pattern, Cause("extra-factor", text, _STEP)


def factors(i: int, look: Evidence, where: Array) -> Iterator[tuple[str, Array]]:
    """Yield the right gradient with factors, known ones and a number, that make it backward's.

    The number is the one that does so at some elements; if at all, grad_output may have them.
    """
    shapes: dict[tuple[int, ...], Callable[[Array], Array]] = {
        where.shape: lambda q: look.expected[i] * q
    }
    if where.all():
        shapes.setdefault(look.outputs[0].shape, lambda q: look.given(i, {0: look.seeds[0] * q}))
    for shape, times in shapes.items():
        for (words, q), power in itertools.product(quantities(look, shape), (-1, 1)):
            right = times(q**power)
            c = _simple(look.got[i][where], right[where])
            text = _times(c**power, words) if c else ""
            said = f"lacks the factor {text}" if power < 0 else f"has the factor {text} too many"
            yield said, c * right


def _simple(got: Array, right: Array) -> float:
    """Return the fraction of small numbers that is closest to what leads from right to got."""
    c = multiple(got, right).real
    return float(Fraction(c).limit_denominator(_MOST)) if np.isfinite(c) else 0.0


def _times(number: float, words: str) -> str:
    text = f"{number:.4g}"
    return {"1": words, "-1": f"-{words}"}.get(text, f"{text} * {words}")


@first_of
def terms(e: Evidence, i: int, look: Evidence) -> Candidates:
    """A term is missing or too many: constant or a multiple of an array along an axis, or known."""
    name, right, shape = f"`{e.names[i]}`", look.expected[i], e.arrays[i].shape
    off, text = look.got[i] - right, f"a term is missing from {name} (or too many) that is"
    known = list(quantities(look, shape))
    for words, q in [("", np.ones(shape)), *known]:
        kind = f"a multiple of {words}" if words else "constant"
        for axis in reversed([axis for axis, n in enumerate(shape) if n > 2]):
            shares = np.sum(off * q, axis, keepdims=True) / np.sum(q * q, axis, keepdims=True)
            cause = Cause("missing-term", f"{text} {kind} along axis {axis}", _CONSTANT)
            yield right + shares * q, cause
    for g in itertools.chain(*(aligned(seed, shape) for seed in look.seeds)):
        for (words, q), (sign, power) in itertools.product(known, (("*", 1), ("/", -1))):
            c = _simple(off, -g * q**power)
            words = f"({words})" if " " in words else words
            text = f"the term {_times(c, f'grad_output {sign} {words}')} is missing from {name}"
            text += " (or its opposite is too many)" if c < 0 else ""
            yield right - c * g * q**power, Cause("missing-term", text, PLACES)
