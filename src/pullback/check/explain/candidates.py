"""The grammar of wrong gradients: what the right one may have been turned into.

Each function yields candidates at a look: what backward would return there, and the cause if it
does. The first that backward returns at each look, in the same words, is the explanation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from pullback.check.explain.evidence import Evidence, Look
from pullback.check.naming import axes_text, quoted
from pullback.check.numerical import coordinates, from_coordinates, joined
from pullback.check.report import Cause
from pullback.check.values import Array, Arrays

_MOST_AXES = 4  # whose orders are tried
_FARTHEST = 6  # places by which values are moved
_MAX_ROWS = 100  # of a Jacobian, of which each is compared with each
_ADJOINT = "multiply by W.T in place of W; run a scan from the end; reverse a kernel"
_BACK = "put them back: in the inverse order (permutation), shifted the opposite way"
_CUMSUM = "the gradient of a running sum is one from the other end: flip, cumsum, flip"
_WEIGHTS = "weights, counts or a window that are left out, or applied twice?"
_HOLOMORPHIC = "the gradient of a holomorphic function is grad_output * f'(z).conj()"

Candidates = Iterator[tuple[Array, Cause]]
Grammar = Callable[[Evidence, int, Look], Candidates]


def first_of(grammar: Grammar) -> Callable[[Evidence, int], Cause | None]:
    """Return the explanation that is the first of these candidates to fit at each look."""

    @functools.wraps(grammar)
    def explain(e: Evidence, i: int) -> Cause | None:
        first = next(e.looks())
        with np.errstate(all="ignore"):
            for pattern, cause in grammar(e, i, first):
                if e.explains(i, pattern, first) and all(
                    any(c == cause and e.explains(i, p, look) for p, c in grammar(e, i, look))
                    for look in itertools.islice(e.looks(), 1, None)
                ):
                    return cause
        return None

    return explain


# -- another grad_output ---------------------------------------------------------------------------
@first_of
def outputs(e: Evidence, i: int, look: Look) -> Candidates:
    """Of several outputs one is left out or negated, or two are exchanged."""
    name, seeds = f"`{e.names[i]}`", look.seeds
    for k, g in enumerate(seeds if len(seeds) > 1 else ()):
        text = f"{name} ignores the gradient of output {k}"
        yield look.of(i, _with(seeds, {k: 0 * g})), Cause("output-ignored", text)
        text = f"{name} has the wrong sign in what comes from output {k}"
        yield look.of(i, _with(seeds, {k: -g})), Cause("sign", text)
        for m in range(k):
            if g.shape == seeds[m].shape:
                text = f"{name}: the gradients of outputs {m} and {k} are exchanged"
                pattern = look.of(i, _with(seeds, {k: seeds[m], m: g}))
                yield pattern, Cause("output-ignored", text)


@first_of
def moved_seeds(e: Evidence, i: int, look: Look) -> Candidates:
    """The gradient sees only a mean of grad_output, or grad_output in another order."""
    name = f"`{e.names[i]}`"
    for words, reduce in (("mean", np.mean), ("sum", np.sum)):
        cause = Cause("nonlinear", f"{name} sees only the {words} of grad_output")
        if all(g.size > 1 for g in look.seeds):
            yield look.of(i, [np.full_like(g, reduce(g)) for g in look.seeds]), cause
    for k, g in enumerate(look.seeds):
        for words, moved_g in _moved(g):
            cause = Cause("misplaced", f"{name}: grad_output is used as if it were {words}")
            yield look.of(i, _with(look.seeds, {k: moved_g})), cause
    right, ours = look.call.jacobians(i)
    if len(look.seeds) == 1 and right is not None and ours is not None and len(right) <= _MAX_ROWS:
        order = np.abs(ours[:, None] - np.nan_to_num(right)).sum(axis=-1).argmin(axis=1)
        if np.unique(order).size == order.size and e.outputs[0].dtype.kind != "c":
            g = look.seeds[0].ravel()[np.argsort(order)].reshape(look.seeds[0].shape)
            text = f"{name}: grad_output is used as if it were permuted, in the order {order}"
            yield look.of(i, [g]), Cause("misplaced", text, _BACK)


def _with(seeds: Arrays, others: dict[int, Array]) -> Arrays:
    return [others.get(k, g) for k, g in enumerate(seeds)]


def _moved(array: Array) -> Iterator[tuple[str, Array]]:
    """Yield an array's elements in other orders of the same shape, in words."""
    axes = [axis for axis, n in enumerate(array.shape) if n > 1]
    for some in subsets(axes):
        yield f"reversed along {axes_text(some)}", np.flip(array, some)
    for a, b in itertools.combinations(axes, 2):
        if array.shape[a] == array.shape[b]:
            yield "transposed", array.swapaxes(a, b)
    for axis in axes:
        n, place = array.shape[axis], np.indices(array.shape)[axis]
        most = min(n // 2, _FARTHEST)
        for k in (k for k in sorted(range(-most, most + 1), key=abs) if k):
            along, rolled = f"by {k} along axis {axis}", np.roll(array, k, axis)
            yield f"rolled {along} (an index off by {abs(k)}?)", rolled
            inside = (place >= k) & (place < n + k)
            yield f"shifted {along} (an index off by {abs(k)}?)", np.where(inside, rolled, 0)


def subsets(axes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield the sets of some axes, the smallest first."""
    for count in range(1, len(axes) + 1):
        yield from itertools.combinations(axes, count)


# -- the right gradient, turned --------------------------------------------------------------------
@first_of
def multiples(e: Evidence, i: int, look: Look) -> Candidates:
    """The gradient is the right one times a number, -1 among them."""
    c, name = ratio(e, i), f"`{e.names[i]}`"
    if abs(c + 1) < e.pattern_rtol:
        yield -look.expected[i], Cause("sign", f"{name} has the wrong sign everywhere")
    elif c and abs(c - 1) >= e.pattern_rtol:  # a ratio of 1 is left to the precision
        found = [(value, f", which is the argument `{n}`") for n, value in e.numbers]
        found += [(1 / value, f", 1 over `{n}`") for n, value in e.numbers if value]
        same = [words for v, words in found if abs(c - v) < e.pattern_rtol * abs(c) and abs(v) != 1]
        text = f"{name} is off by the factor {c:.3f} everywhere{''.join(same[:1])}"
        yield c * look.expected[i], Cause("factor", text)


def ratio(e: Evidence, i: int) -> complex:
    """Return the factor that comes closest to leading from the right gradient to backward's."""
    c = multiple(e.got[i], e.expected[i])
    return c.real if abs(c.imag) <= 1e-6 * abs(c) else c


def multiple(got: Array, right: Array) -> complex:
    """Return the factor that fits `factor * right` to `got` by least squares."""
    seen = np.isfinite(got) & np.isfinite(right)
    size = float(np.vdot(right[seen], right[seen]).real)
    return complex(np.vdot(right[seen], got[seen])) / size if size else 0.0


@first_of
def weighted(e: Evidence, i: int, look: Look) -> Candidates:
    """Each element has a factor of its own, the same for any grad_output and at other values."""
    weights = np.where(e.expected[i] == 0, 0.0, e.got[i] / e.expected[i])
    sizes = np.abs(weights[np.isfinite(weights)])
    if e.elsewhere is not None and sizes.size > 1:
        text = (
            f"each element of `{e.names[i]}` is off by a factor of its own, {sizes.min():.3g} to "
            f"{sizes.max():.3g}, the same at other values of {quoted(e.names)}"
        )
        yield weights * look.expected[i], Cause("extra-factor", text, _WEIGHTS)


@first_of
def turned(e: Evidence, i: int, look: Look) -> Candidates:
    """The gradient is conjugated, transposed, or that of the transposed Jacobian."""
    name, right = f"`{e.names[i]}`", look.expected[i]
    if any(a.dtype.kind == "c" for a in (e.arrays[i], *e.outputs)):
        other = look.of(i, [g.conj() for g in look.seeds])
        if any(out.dtype.kind == "c" for out in e.outputs):
            text = f"{name}: the derivative is not conjugated"
            yield other.conj(), Cause("conjugated", text, _HOLOMORPHIC)
        yield right.conj(), Cause("conjugated", f"{name} is conjugated")
        yield other, Cause("conjugated", f"{name}: grad_output is conjugated")
        yield right.real + 0 * right, Cause("conjugated", f"{name}: the imaginary part is missing")
    matrix, _ = look.call.jacobians(i)
    if matrix is not None and matrix.shape[0] == matrix.shape[1] > 1 and np.isfinite(matrix).all():
        used = np.abs(matrix) > 1e-6 * np.abs(matrix).max()
        text, hint = f"{name}: the Jacobian is applied instead of its transpose", _ADJOINT
        if max(used.sum(axis=0).max(), used.sum(axis=1).max()) == 1:
            text += ": values are put in the same order, or shifted the same way, once more"
            hint = _BACK
        pattern = from_coordinates(matrix @ joined(look.seeds), right)
        yield pattern, Cause("transposed", text, hint)
    orders = list(itertools.permutations(range(right.ndim if right.ndim <= _MOST_AXES else 0)))
    for axes in orders[1:]:
        words = "transposed" if right.ndim == 2 else f"transposed: its axes are {axes}"
        words += "" if right.transpose(axes).shape == right.shape else ", and then reshaped"
        pattern = right.transpose(axes).reshape(right.shape)
        yield pattern, Cause("transposed", f"{name} is {words}")


@first_of
def moved(e: Evidence, i: int, look: Look) -> Candidates:
    """The gradient has the right values at other places."""
    name, off = f"`{e.names[i]}`", e.wrong[i]
    for words, pattern in _moved(look.expected[i]):
        yield pattern, Cause("misplaced", f"{name} is {words}")
    for axis in range(off.ndim):
        for end, turn in (("first", np.asarray), ("last", functools.partial(np.flip, axis=axis))):
            sums = np.cumsum(-np.diff(turn(look.expected[i]), axis=axis, append=0), axis)
            text = f"{name}: a running sum (cumsum) starts from the {end} element along axis {axis}"
            yield turn(sums), Cause("misplaced", f"{text}, the wrong end", _CUMSUM)
    got, right = (np.sort(coordinates(a)) for a in (look.got[i], look.expected[i]))
    if off.size > 2 and e.matches(got, right):
        places = [list(map(int, place)) for place in np.argwhere(off)]
        which = f"{places[0]} and {places[1]}" if len(places) == 2 else f"{len(places)} elements"
        text = f"{name} has the right values in the wrong places: {which} are permuted (exchanged)"
        yield look.got[i], Cause("misplaced", text)


@first_of
def sums(e: Evidence, i: int, look: Look) -> Candidates:
    """Forward broadcast the argument, and backward did not sum where it should."""
    name, terms, x = f"`{e.names[i]}`", _terms(look, i), e.arrays[i]
    every = [] if terms is None else list(subsets(list(range(terms.ndim))))
    for axes in every if terms is not None else ():
        if terms is None or not e.matches(_like(x, terms.sum(axis=axes)), look.expected[i]):
            continue
        where = axes_text(axes)
        for others in every:
            text = f"{name} is summed over {axes_text(others)} instead of {where}"
            yield _like(x, terms.sum(axis=others)), Cause("missing-sum", text)
        text = f"{name} has the mean over {where} instead of the sum"
        yield _like(x, terms.mean(axis=axes)), Cause("missing-sum", text)
        for k, word in ((0, "first"), (-1, "last")):
            item = terms[tuple(k if a in axes else slice(None) for a in range(terms.ndim))]
            text = f"{name}: sum over {where} is missing: only the {word} item is taken"
            yield _like(x, item), Cause("missing-sum", text)


def _terms(look: Look, i: int) -> Array | None:
    """Return what each output element contributes, if each does to one element only."""
    e, (matrix, _) = look.call, look.call.jacobians(i)
    real = not any(a.dtype.kind == "c" for a in (*e.outputs, e.arrays[i]))
    if matrix is None or len(e.outputs) != 1 or not real or len(matrix) <= e.arrays[i].size:
        return None
    matrix = np.nan_to_num(matrix)
    if np.any(np.count_nonzero(np.abs(matrix) > 1e-9, axis=1) > 1):
        return None
    return np.asarray(matrix.sum(axis=1).reshape(e.outputs[0].shape) * look.seeds[0])


def _like(x: Array, terms: Array) -> Array:
    """Return an array in the shape of another; nothing if it does not fit."""
    return terms.reshape(x.shape) if terms.size == x.size else np.zeros(0)
