"""The grammar of wrong gradients: what the right one may have been turned into.

Each function yields candidates: a pattern of the right gradient, of grad_output or of the Jacobian,
and the cause if backward returns that at each look. The first that fits is the explanation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from pullback.check.explain.evidence import Evidence, Look, Pattern
from pullback.check.naming import axes_text
from pullback.check.numerical import coordinates, from_coordinates, joined
from pullback.check.report import Cause
from pullback.check.values import Array, Arrays

_MAX_ROWS = 100  # of a Jacobian, of which each is compared with each
_FEW = 4  # axes whose orders are tried, elements that are listed
_NAMES = "return gradients by name; are the factors of a product in the right order?"
_ADJOINT = "multiply by W.T in place of W; run a scan from the end; reverse a kernel"
_BACK = "put them back: in the inverse order (permutation), shifted the opposite way"
_HOLOMORPHIC = "the gradient of a holomorphic function is grad_output * f'(z).conj()"
_CUMSUM = "the gradient of a running sum is one from the other end: flip, cumsum, flip"

Candidates = Iterator[tuple[Pattern, Cause]]
Move = Callable[[Array], Array]


def first_of(candidates: Callable[[Evidence, int], Candidates]) -> Callable[..., Cause | None]:
    """Return the explanation that is the first of these candidates that fits."""

    @functools.wraps(candidates)
    def explain(e: Evidence, i: int) -> Cause | None:
        found = candidates(e, i)
        return next((cause for pattern, cause in found if e.fits(i, pattern)), None)

    return explain


# -- another grad_output ---------------------------------------------------------------------------
def _seeds_as(i: int, change: Callable[[Arrays], Arrays]) -> Pattern:
    """Return the right gradient for other output gradients than backward is given."""
    return lambda look: look.call.numerical(i, change(look.seeds))


@first_of
def outputs(e: Evidence, i: int) -> Candidates:
    """Of several outputs one is left out or negated, or two are exchanged."""
    name, count = f"`{e.names[i]}`", len(e.seeds)
    for k in range(count if count > 1 else 0):
        for factor, cause, words in (
            (0, "output-ignored", f"{name} ignores the gradient of output {k}"),
            (-1, "sign", f"{name} has the wrong sign in what comes from output {k}"),
        ):
            scales = [factor if m == k else 1 for m in range(count)]
            yield _seeds_as(i, functools.partial(_scaled, scales)), Cause(cause, words)
        for m in range(k + 1, count):
            if e.seeds[k].shape == e.seeds[m].shape:
                text = f"{name}: the gradients of outputs {k} and {m} are exchanged"
                order = {k: m, m: k}
                pattern = _seeds_as(i, functools.partial(_ordered, order))
                yield pattern, Cause("output-ignored", text)


def _scaled(scales: list[int], seeds: Arrays) -> Arrays:
    return [c * g for c, g in zip(scales, seeds, strict=True)]


def _ordered(order: dict[int, int], seeds: Arrays) -> Arrays:
    return [seeds[order.get(k, k)] for k in range(len(seeds))]


@first_of
def moved_seeds(e: Evidence, i: int) -> Candidates:
    """The gradient sees only a mean of grad_output, or grad_output in another order."""
    name = f"`{e.names[i]}`"
    for words, reduce in (("mean", np.mean), ("sum", np.sum)):
        if all(g.size > 1 for g in e.seeds):
            text = f"{name} sees only the {words} of grad_output"
            yield _seeds_as(i, functools.partial(_filled, reduce)), Cause("nonlinear", text)
    for k, g in enumerate(e.seeds):
        for words, move in _moves(g.shape):
            at = functools.partial(_at, k, move)
            text = f"{name}: grad_output is used as if it were {words}"
            yield _seeds_as(i, at), Cause("misplaced", text)
    right, ours = e.jacobians(i)
    if right is None or ours is None or len(right) > _MAX_ROWS or len(e.seeds) > 1:
        return
    order = np.abs(ours[:, None] - np.nan_to_num(right)).sum(axis=-1).argmin(axis=1)
    off = np.flatnonzero(order != np.arange(order.size))
    if np.unique(order).size == order.size and off.size and e.outputs[0].dtype.kind != "c":
        places = [np.unravel_index(m, e.outputs[0].shape) for m in (off[0], order[off[0]])]
        first, second = (list(map(int, place)) for place in places)
        text = f"that of output element {first} is used for {second}"
        hint = "is an order used in place of its inverse, or the reverse?"
        at = functools.partial(_at, 0, lambda g: g.ravel()[np.argsort(order)].reshape(g.shape))
        yield (
            _seeds_as(i, at),
            Cause("misplaced", f"{name}: grad_output is permuted: {text}", hint),
        )


def _filled(reduce: Callable[[Array], Array], seeds: Arrays) -> Arrays:
    return [np.full_like(g, reduce(g)) for g in seeds]


def _at(k: int, move: Move, seeds: Arrays) -> Arrays:
    return [move(g) if m == k else g for m, g in enumerate(seeds)]


def _moves(shape: tuple[int, ...]) -> Iterator[tuple[str, Move]]:
    """Yield ways to put an array's elements in another order of the same shape, in words."""
    axes = [axis for axis, n in enumerate(shape) if n > 1]
    for some in subsets(axes):
        yield f"reversed along {axes_text(some)}", functools.partial(np.flip, axis=some)
    for a, b in itertools.combinations(axes, 2):
        if shape[a] == shape[b]:
            yield "transposed", functools.partial(np.swapaxes, axis1=a, axis2=b)
    for axis in axes:
        n = shape[axis]
        for k in sorted(range(-((n - 1) // 2), n // 2 + 1), key=abs):
            if k:
                along = f"by {k} along axis {axis} (an index off by {abs(k)}?)"
                yield f"rolled {along}", functools.partial(np.roll, shift=k, axis=axis)
                yield f"shifted {along}", functools.partial(_shifted, k=k, axis=axis)


def subsets(axes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield the sets of some axes, the smallest first."""
    for count in range(1, len(axes) + 1):
        yield from itertools.combinations(axes, count)


def _shifted(array: Array, k: int, axis: int) -> Array:
    """Return an array moved along an axis, with zeros where nothing comes from."""
    place = np.indices(array.shape)[axis]
    inside = (place >= k) & (place < array.shape[axis] + k)
    return np.where(inside, np.roll(array, k, axis), 0)


# -- the right gradient, turned --------------------------------------------------------------------
@first_of
def multiples(e: Evidence, i: int) -> Candidates:
    """The gradient is the right one times a number, -1 among them."""
    c, name = ratio(e, i), f"`{e.names[i]}`"
    if abs(c + 1) < e.pattern_rtol:
        cause = Cause("sign", f"{name} has the wrong sign everywhere")
    else:
        cause = Cause("factor", f"{name} is off by the factor {c:.3f} everywhere{_origin(e, c)}")
    if c and abs(c - 1) >= e.pattern_rtol:  # a ratio of 1 is left to the precision
        yield lambda look: c * look.expected[i], cause


def ratio(e: Evidence, i: int) -> complex:
    """Return the factor that comes closest to leading from the right gradient to backward's."""
    c = multiple(e.got[i], e.expected[i])
    return c.real if abs(c.imag) <= 1e-6 * abs(c) else c


def multiple(got: Array, right: Array) -> complex:
    """Return the factor that fits `factor * right` to `got` by least squares."""
    seen = np.isfinite(got) & np.isfinite(right)
    size = float(np.vdot(right[seen], right[seen]).real)
    return complex(np.vdot(right[seen], got[seen])) / size if size else 0.0


def _origin(e: Evidence, c: complex) -> str:
    """Return which argument a factor may come from, in words."""
    for name, value in e.numbers:
        for v, words in ((value, "which is the argument"), (1 / value if value else 0, "1 over")):
            if v and abs(c - v) < e.pattern_rtol * abs(c) and abs(v) != 1:
                return f", {words} `{name}`"
    return ""


@first_of
def turned(e: Evidence, i: int) -> Candidates:
    """The gradient is another argument's, conjugated, transposed, or that of the transpose."""
    name, shape = f"`{e.names[i]}`", e.arrays[i].shape
    for j, other in enumerate(e.names):
        if j != i:
            cause = Cause("swapped", f"{name} has the gradient of `{other}`", _NAMES)
            yield functools.partial(_of_other, j), cause
    if any(a.dtype.kind == "c" for a in (e.arrays[i], *e.outputs)):
        yield from _conjugates(e, i)
    right, _ = e.jacobians(i)
    if right is not None and right.shape[0] == right.shape[1] > 1 and np.isfinite(right).all():
        used = np.abs(right) > 1e-6 * np.abs(right).max()
        text, hint = f"{name}: the Jacobian is applied instead of its transpose", _ADJOINT
        if max(used.sum(axis=0).max(), used.sum(axis=1).max()) == 1:
            text += ": values are put in the same order, or shifted the same way, once more"
            hint = _BACK
        yield lambda look: _forwards(look, i), Cause("transposed", text, hint)
    for axes in itertools.permutations(range(len(shape))) if len(shape) <= _FEW else ():
        words = "transposed" if len(shape) == 2 else f"transposed: its axes are {axes}"
        words += "" if tuple(shape[a] for a in axes) == shape else ", and then reshaped"
        if axes != tuple(range(len(shape))):
            pattern = functools.partial(_transposed, i, axes)
            yield pattern, Cause("transposed", f"{name} is {words}")


def _conjugates(e: Evidence, i: int) -> Candidates:
    """Yield a conjugate that is missing or too many, and a part that is dropped."""
    name, other = f"`{e.names[i]}`", _seeds_as(i, lambda gs: [np.conj(g) for g in gs])
    if any(out.dtype.kind == "c" for out in e.outputs):
        cause = Cause("conjugated", f"{name}: the derivative is not conjugated", _HOLOMORPHIC)
        yield lambda look: np.conj(np.asarray(other(look))), cause
    yield lambda look: np.conj(look.expected[i]), Cause("conjugated", f"{name} is conjugated")
    yield other, Cause("conjugated", f"{name}: grad_output is conjugated")
    if e.arrays[i].dtype.kind == "c":
        cause = Cause("conjugated", f"{name}: the imaginary part is missing")
        yield lambda look: look.expected[i].real + 0j, cause


def _of_other(j: int, look: Look) -> Array:
    return look.expected[j]


def _forwards(look: Look, i: int) -> Array | None:
    matrix, _ = look.call.jacobians(i)
    return None if matrix is None else from_coordinates(matrix @ joined(look.seeds), look.got[i])


def _transposed(i: int, axes: tuple[int, ...], look: Look) -> Array:
    return look.expected[i].transpose(axes).reshape(look.got[i].shape)


@first_of
def moved(e: Evidence, i: int) -> Candidates:
    """The gradient has the right values at other places."""
    got, right, name = e.got[i], e.expected[i], f"`{e.names[i]}`"
    for words, move in _moves(right.shape):
        pattern = functools.partial(_moved, i, move)
        yield pattern, Cause("misplaced", f"{name} is {words}")
    for axis in range(right.ndim):
        for step, end in ((1, "first"), (-1, "last")):
            text = f"{name}: a running sum (cumsum) starts from the {end} element along axis {axis}"
            move = functools.partial(_from_other_end, axis=axis, step=step)
            cause = Cause("misplaced", f"{text}, the wrong end", _CUMSUM)
            yield functools.partial(_moved, i, move), cause
    off = e.wrong[i]
    places = [list(map(int, place)) for place in np.argwhere(off)]
    if off.size > 2 and e.matches(_sorted(got[off]), _sorted(right[off])):
        which = f"{places[0]} and {places[1]}" if len(places) == 2 else f"{len(places)} elements"
        text = f"{name} has the right values in the wrong places: {which} are permuted (exchanged)"
        yield lambda look: _permuted(look, i), Cause("misplaced", text)


def _moved(i: int, move: Move, look: Look) -> Array:
    return move(look.expected[i])


def _from_other_end(right: Array, axis: int, step: int) -> Array:
    """Return the sums from one end of the terms whose sums from the other are given."""
    terms = right - _shifted(right, -step, axis)
    ends = np.flip(terms, axis) if step < 0 else terms
    return np.flip(np.cumsum(ends, axis), axis) if step < 0 else np.cumsum(ends, axis)


def _permuted(look: Look, i: int) -> Array | None:
    """Return backward's gradient if it has the values of the right one."""
    got, right = _sorted(look.got[i]), _sorted(look.expected[i])
    return look.got[i] if look.call.matches(got, right) else None


def _sorted(array: Array) -> Array:
    return np.sort(coordinates(array))


# -- sums ------------------------------------------------------------------------------------------
@first_of
def sums(e: Evidence, i: int) -> Candidates:
    """Forward broadcast the argument, and backward did not sum where it should."""
    name, shape = f"`{e.names[i]}`", e.outputs[0].shape
    every = list(subsets(list(range(len(shape)))))
    right = [a for a in every if e.matches(_reduced(i, np.sum, a, next(e.looks())), e.expected[i])]
    for axes in right[:1]:
        where = axes_text(axes)
        for others in every:
            text = f"{name} is summed over {axes_text(others)} instead of {where}"
            yield functools.partial(_reduced, i, np.sum, others), Cause("missing-sum", text)
        text = f"{name} has the mean over {where} instead of the sum"
        yield functools.partial(_reduced, i, np.mean, axes), Cause("missing-sum", text)
        for k, word in ((0, "first"), (-1, "last")):
            text = f"{name}: sum over {where} is missing: only the {word} item is taken"
            item = functools.partial(_item, k)
            yield functools.partial(_reduced, i, item, axes), Cause("missing-sum", text)


def _reduced(i: int, reduce: Callable[..., Array], axes: tuple[int, ...], look: Look) -> Array:
    """Return what each output element contributes, if each to one element only, reduced."""
    e, x = look.call, look.call.arrays[i]
    matrix, _ = e.jacobians(i)
    real = not any(a.dtype.kind == "c" for a in (*e.outputs, x))
    if matrix is None or len(e.outputs) != 1 or not real or len(matrix) <= x.size:
        return np.zeros(0)
    matrix = np.nan_to_num(matrix)
    if np.any(np.count_nonzero(np.abs(matrix) > 1e-9, axis=1) > 1):
        return np.zeros(0)
    terms = matrix.sum(axis=1).reshape(e.outputs[0].shape) * look.seeds[0]
    found = np.asarray(reduce(terms, axis=axes))
    return found.reshape(x.shape) if found.size == x.size else np.zeros(0)


def _item(k: int, array: Array, axis: tuple[int, ...]) -> Array:
    return array[tuple(k if a in axis else slice(None) for a in range(array.ndim))]
