"""The right values at the wrong indices, or summed over the wrong axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from pullback.check.explain.evidence import Evidence
from pullback.check.naming import axes_text
from pullback.check.numerical import coordinates, from_coordinates, joined
from pullback.check.report import Cause
from pullback.check.values import Array


# -- sums ------------------------------------------------------------------------------------------
def missing_sum(e: Evidence, i: int) -> Cause | None:
    """Forward broadcast the argument, and backward did not sum where it should."""
    terms = _terms(e, i)
    if terms is None:
        return None
    right, shape, name = e.expected[i], e.arrays[i].shape, f"`{e.names[i]}`"
    summed = [axes for axes in _axes(terms) if e.matches(_fit(terms.sum(axes), shape), right)]
    if not summed:
        return None
    axes = summed[0]
    for others in _axes(terms):
        if e.fits(i, _fit(terms.sum(others), shape)):
            text = f"{name} is summed over {axes_text(others)} instead of {axes_text(axes)}"
            return Cause("missing-sum", text)
    if e.fits(i, _fit(terms.mean(axes), shape)):
        text = f"{name} has the mean over {axes_text(axes)} instead of the sum"
        return Cause("missing-sum", text)
    for index, word in ((0, "first"), (-1, "last")):
        one = terms
        for axis in sorted(axes, reverse=True):
            one = one.take(index, axis)
        if e.fits(i, _fit(one, shape)):
            text = f"{name}: sum over {axes_text(axes)} is missing: only the {word} item is taken"
            return Cause("missing-sum", text)
    return None


def _terms(e: Evidence, i: int) -> Array | None:
    """Return what each element of the output contributes, if each to one element only."""
    if len(e.outputs) != 1 or e.outputs[0].dtype.kind == "c" or e.arrays[i].dtype.kind == "c":
        return None
    measured = e.jacobian[i]
    if measured is None:
        return None
    matrix = np.nan_to_num(measured)
    if not matrix.size or np.any(np.count_nonzero(np.abs(matrix) > 1e-9, axis=1) > 1):
        return None
    if e.outputs[0].size <= e.arrays[i].size:
        return None
    return np.asarray(matrix.sum(axis=1).reshape(e.outputs[0].shape) * e.seeds[0])


def _axes(terms: Array) -> Iterator[tuple[int, ...]]:
    for count in range(1, terms.ndim + 1):
        yield from itertools.combinations(range(terms.ndim), count)


def _fit(array: Array, shape: tuple[int, ...]) -> Array:
    return array.reshape(shape) if array.size == np.prod(shape, dtype=int) else np.zeros(0)


# -- positions -------------------------------------------------------------------------------------
def jacobian_not_transposed(e: Evidence, i: int) -> Cause | None:
    """The Jacobian is multiplied by grad_output from the wrong side."""
    matrix, ours = e.jacobians(i)
    if matrix is None or ours is None or not np.isfinite(matrix).all() or 1 in matrix.shape:
        return None
    text = f"`{e.names[i]}`: the Jacobian is applied instead of its transpose"
    if matrix.shape[0] != matrix.shape[1]:
        n = min(matrix.shape)  # a loop over pairs of indices in the wrong order
        block, right = ours[:n, :n], matrix[:n, :n]
        if e.matches(block, right.T) and not e.matches(block, right):
            hint = "rows and columns are exchanged: multiply by W.T in place of W"
            return Cause("transposed", text, hint)
        return None
    if not e.fits(i, from_coordinates(matrix @ joined(e.seeds), e.expected[i])):
        return None
    once = np.abs(matrix) > 1e-6 * np.abs(matrix).max()
    if (once.sum(axis=0) <= 1).all() and (once.sum(axis=1) <= 1).all():
        text += ": values are put in the same order, or shifted the same way, once more"
        hint = "put them back: in the inverse order (permutation), shifted the opposite way"
        return Cause("transposed", text, hint)
    hint = "multiply by W.T in place of W; run a scan from the end"
    if _is_circulant(matrix):
        hint = "reverse the kernel; of a filter in frequency space take the conjugate"
    return Cause("transposed", text, hint)


def _is_circulant(matrix: Array) -> bool:
    """Return whether each row is the one before, rolled by one place."""
    rolled = np.roll(np.roll(matrix, 1, axis=0), 1, axis=1)
    return bool(np.allclose(rolled, matrix, rtol=1e-5, atol=1e-8 * np.abs(matrix).max()))


def transposed(e: Evidence, i: int) -> Cause | None:
    """The gradient has its axes permuted."""
    got, right, name = e.got[i], e.expected[i], f"`{e.names[i]}`"
    if not 2 <= got.ndim <= 4:
        return None
    for axes in itertools.permutations(range(got.ndim)):
        turned = right.transpose(axes)
        if axes == tuple(range(got.ndim)) or not turned.size:
            continue
        if e.fits(i, turned):
            words = "transposed" if got.ndim == 2 else f"transposed: its axes are {axes}"
            return Cause("transposed", f"{name} is {words}")
        if turned.shape != got.shape and e.fits(i, turned.reshape(got.shape)):
            return Cause("transposed", f"{name} is transposed and then reshaped")
    return None


def misplaced(e: Evidence, i: int) -> Cause | None:
    """The right values are at other indices."""
    got, right, name = e.got[i], e.expected[i], f"`{e.names[i]}`"
    axes = range(got.ndim)
    found = _among_few(e, i) or _moved_term(e, i)
    if found is not None:
        return found
    for count in range(1, got.ndim + 1):
        for some in itertools.combinations(axes, count):
            if e.fits(i, np.flip(right, some)):
                text = f"{name} is reversed along {axes_text(some)}"
                if [got.shape[axis] for axis in some] == [2]:
                    text = f"{name}: the gradients of the two along {axes_text(some)} are exchanged"
                return Cause("misplaced", text)
    for axis in axes:
        for k in range(1, got.shape[axis]):
            if e.fits(i, np.roll(right, k, axis)):
                back = got.shape[axis] - k
                step = k if k <= back else -back
                return Cause("misplaced", f"{name} is rolled by {step} along axis {axis}")
            if _shifted(e, got, right, axis, k):
                return Cause("misplaced", f"{name} is shifted by {k} along axis {axis}")
            if _shifted(e, np.flip(got, axis), np.flip(right, axis), axis, k):
                return Cause("misplaced", f"{name} is shifted by {-k} along axis {axis}")
    known = np.isfinite(right).all() and not e.matches(got, right)
    distinct = len(np.unique(np.round(np.abs(right), 9))) > 3
    if known and distinct and e.matches(_sorted(got), _sorted(right)):
        return Cause("misplaced", f"{name} has the right values in the wrong places: permuted")
    return next((c for c in (_from_other_end(e, i, axis) for axis in axes) if c), None)


def _among_few(e: Evidence, i: int) -> Cause | None:
    """A few elements have each other's gradients."""
    wrong, got, right = e.wrong[i], e.got[i], e.expected[i]
    few, total = int(wrong.sum()), int(e.known(i).sum())
    if not 2 <= few <= max(2, total // 2) or total < 3 or got.dtype.kind == "c":
        return None
    if not e.matches(np.sort(got[wrong]), np.sort(right[wrong])) or not right[wrong].any():
        return None
    places = " and ".join(str(list(map(int, k))) for k in np.argwhere(wrong)[:2])
    which = f"two elements of `{e.names[i]}`, {places}," if few == 2 else f"{few} elements"
    text = f"the gradients of {which} are exchanged: the weights of two neighbours?"
    return Cause("misplaced", text)


def _moved_term(e: Evidence, i: int) -> Cause | None:
    """A term of some elements stands one place further: it is missing here and too many there."""
    off = e.got[i] - e.expected[i]
    wrong = e.wrong[i]
    if off.dtype.kind == "c" or not np.isfinite(off).all() or 2 * wrong.sum() > wrong.size:
        return None
    missing, added = (np.where(wrong, np.maximum(sign * off, 0.0), 0.0) for sign in (1, -1))
    for axis, n in enumerate(off.shape):
        for a, b in ((missing, added), (added, missing)):
            here, there = a.take(range(n - 1), axis), b.take(range(1, n), axis)
            either = (here > 0) | (there > 0)
            same = either & (np.abs(here - there) <= e.pattern_rtol * np.abs(off).max())
            # Where two such terms meet they cancel.
            if same.sum() > 2 and same.sum() > 0.6 * either.sum() and n > 2:
                text = (
                    f"a term of the gradient of `{e.names[i]}` stands one place too far along "
                    f"axis {axis}: an index off by one?"
                )
                return Cause("misplaced", text)
    return None


def _from_other_end(e: Evidence, i: int, axis: int) -> Cause | None:
    """Running sums of the same numbers, from the first element and from the last."""
    got, right = (np.moveaxis(a, axis, 0) for a in (e.got[i], e.expected[i]))
    if len(got) < 4 or not (np.isfinite(got).all() and np.isfinite(right).all()):
        return None
    for a, b, end in ((got, right, "first"), (got[::-1], right[::-1], "last")):
        steps, others = np.diff(a, axis=0)[:-1], -np.diff(b, axis=0)[1:]
        if np.any(others) and e.matches(steps, others) and e.matches(a[0], b[0] - b[1]):
            text = (
                f"`{e.names[i]}`: a running sum (cumsum) starts from the {end} element along axis "
                f"{axis}, the wrong end"
            )
            hint = "the gradient of a running sum is one from the other end: flip, cumsum, flip"
            return Cause("misplaced", text, hint)
    return None


def _shifted(e: Evidence, got: Array, right: Array, axis: int, k: int) -> bool:
    """Return whether the values are shifted by k along an axis, without wrapping around."""
    n = got.shape[axis]
    if n - k < 2 or 2 * k > n:  # less than half of the elements show little
        return False
    moved = got.take(range(k, n), axis)
    kept = right.take(range(n - k), axis)
    if e.matches(kept.take(range(1, n - k), axis), kept.take(range(n - k - 1), axis)):
        return False  # what is the same everywhere cannot be seen to move
    return e.matches(moved, kept) and np.unique(np.round(kept, 9)).size > 3


def _sorted(array: Array) -> Array:
    return np.sort(coordinates(array))


def factors_exchanged(e: Evidence, i: int) -> Cause | None:
    """The gradient by one factor of a matrix product is multiplied from the wrong side."""
    if len(e.seeds) != 1 or e.seeds[0].ndim != 2 or e.arrays[i].ndim != 2:
        return None
    turned = [e.seeds[0].T.copy()]
    for k, leaf in enumerate(e.session.subject.leaves_on_host()):
        square = isinstance(leaf, np.ndarray) and leaf.ndim == 2 and leaf.shape[0] == leaf.shape[1]
        if not square or k == e.session.subject.tracked[i]:
            continue
        leaves = e.session.subject.leaves_on_host()
        leaves[k] = leaf.T.copy()
        other = e.of(e.session.subject.with_leaves(leaves))
        same = other is not None and [out.shape for out in other.outputs] == [turned[0].shape]
        if other is not None and same and e.fits(i, other.numerical(turned)[i].T):
            text = f"`{e.names[i]}`: the factors of a matrix product are exchanged (left and right)"
            return Cause("transposed", text, "(a @ b).T is b.T @ a.T")
    return None


STRUCTURE = (jacobian_not_transposed, transposed, misplaced, factors_exchanged)
