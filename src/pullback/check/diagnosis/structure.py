"""The right values at the wrong indices, or summed over the wrong axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from pullback.check.diagnosis.evidence import Evidence
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
    g, matrix = joined(e.seeds), e.jacobian[i]
    if matrix is None or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        return None
    if e.fits(i, from_coordinates(matrix @ g, e.expected[i])):
        text = f"`{e.names[i]}`: the Jacobian is applied instead of its transpose"
        hint = "multiply by W.T in place of W; run a scan from the end"
        return Cause("transposed", text, hint)
    return None


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
    for count in range(1, got.ndim + 1):
        for some in itertools.combinations(axes, count):
            if e.fits(i, np.flip(right, some)):
                return Cause("misplaced", f"{name} is reversed along {axes_text(some)}")
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
        return Cause("misplaced", f"{name} has the right values in the wrong places")
    return None


def as_if(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if another argument were reversed or transposed."""
    for j, array in enumerate(e.arrays):
        for turned, name, text in _turned(array) if j != i else ():
            other = e.with_arrays([turned if k == j else a for k, a in enumerate(e.arrays)])
            if other is not None and e.fits(i, other.numerical(e.seeds)[i]):
                words = f"`{e.names[i]}`: `{e.names[j]}` is used as if it were {text}"
                return Cause(name, words, "a kernel that is not flipped, a matrix not transposed?")
    return None


def _turned(array: Array) -> Iterator[tuple[Array, str, str]]:
    axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
    for count in range(1, len(axes) + 1):
        for some in itertools.combinations(axes, count):
            yield np.flip(array, some).copy(), "misplaced", f"reversed along {axes_text(some)}"
    if array.ndim >= 2 and array.shape[-1] == array.shape[-2]:
        yield array.swapaxes(-1, -2).copy(), "transposed", "transposed"


def _shifted(e: Evidence, got: Array, right: Array, axis: int, k: int) -> bool:
    """Return whether the values are shifted by k along an axis, without wrapping around."""
    n = got.shape[axis]
    if n - k < 2:
        return False
    moved = got.take(range(k, n), axis)
    kept = right.take(range(n - k), axis)
    return e.matches(moved, kept) and np.unique(np.round(kept, 9)).size > 3


def _sorted(array: Array) -> Array:
    return np.sort(coordinates(array))


STRUCTURE = (jacobian_not_transposed, transposed, misplaced, as_if)
