"""Whether two results of one computation are equal up to rounding.

Owns the estimate of how far rounding may move a result; no finite differences are involved. Must
not know why two results should be equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pullback.check.numerical import beside, max_abs
from pullback.check.session import Session
from pullback.check.subject import BackwardError, ForwardError
from pullback.check.values import Array, Arrays, copies

# By how many rounding units two results of one computation may differ.
_ULPS = 4096
# Of the small changes by which rounding is measured.
_SALTS = (1.0, 2.0, 3.0)


def unequal(
    session: Session,
    got: Arrays,
    expected: Arrays,
    noise: Callable[[], Sequence[Array | float]] | None = None,
) -> list[tuple[int, Array]]:
    """Return which arrays differ by more than rounding, and where.

    Where an expected number is not finite, nothing is known. Output gradients are about 1: beside
    them, and beside the largest result, a difference in the last digits counts as none.

    Parameters
    ----------
    noise : callable, optional
        Measures how far rounding may change each array besides. It takes several runs, so it is
        called only if they differ at all.
    """
    size = max(1.0, max_abs(*expected))
    pairs = list(zip(got, expected, strict=True))
    eps = [max(float(np.finfo(a.dtype).eps) for a in pair) for pair in pairs]
    limits: list[Array | float] = [
        session.rtol * max_abs(e) + min(_ULPS * unit, session.rtol) * size
        for (_, e), unit in zip(pairs, eps, strict=True)
    ]
    found = [_beyond(*each) for each in zip(got, expected, limits, strict=True)]
    if noise is not None and any(wrong.any() for wrong in found):
        limits = [limit + more for limit, more in zip(limits, noise(), strict=True)]
        found = [_beyond(*each) for each in zip(got, expected, limits, strict=True)]
    return [(i, wrong) for i, wrong in enumerate(found) if wrong.any()]


def _beyond(got: Array, expected: Array, limit: Array | float) -> Array:
    """Return where an array is off by more than a limit: everywhere, if it has another shape."""
    if got.shape != expected.shape:
        return np.ones(expected.shape, bool)
    with np.errstate(all="ignore"):
        known = np.isfinite(expected) & np.isfinite(limit)
        return np.asarray(known & ~(np.abs(got - expected) <= limit))


# -- noise -----------------------------------------------------------------------------------------
def rounding_noise(
    compute: Callable[[Arrays, Arrays], list[Array]],
    arrays: Arrays,
    seeds: Arrays,
    eps: float | None = None,
) -> list[Array]:
    """Return how far rounding may change the arrays that ``compute(arrays, seeds)`` returns.

    Measured by changing the last bits of its inputs, or those of `seeds` only where the function is
    not defined at the changed arrays. Equal elements stay equal. With `eps`, the rounding unit of
    another way to compute it, they are moved apart as well: there a tie may go to another of them.
    """

    def moved(array: Array, salt: float, apart: bool) -> Array:
        return beside(array, 4 * (eps or float(np.finfo(array.dtype).eps)), salt, apart)

    base = compute(arrays, seeds)
    most = [np.zeros(b.shape) for b in base]
    for salt, apart in itertools.product(_SALTS, (False, True) if eps else (False,)):
        others = [moved(g, salt + 0.5, apart) for g in seeds]
        try:
            found = compute([moved(a, salt, apart) for a in arrays], others)
        except (ForwardError, BackwardError):
            found = compute(arrays, others)
        with np.errstate(all="ignore"):
            steps = [np.abs(f - b) for f, b in zip(found, base, strict=True)]
            steps = [np.where(np.isnan(step), np.inf, step) for step in steps]
        most = [np.maximum(m, step) for m, step in zip(most, steps, strict=True)]
    return [8 * m + 8 * np.max(m, initial=0.0) for m in most]


def gradient_noise(session: Session, seeds: Arrays) -> Callable[[], list[Array]]:
    """Return what measures how far rounding may change the gradients for some output gradients."""

    def compute(arrays: Arrays, moved: Arrays) -> list[Array]:
        return session.subject.run(copies(arrays)).gradients(copies(moved))

    return partial(rounding_noise, compute, session.arrays, seeds)
