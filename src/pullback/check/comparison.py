"""Whether two results of one computation are equal up to rounding.

Owns the estimate of how far rounding may move a result; no finite differences are involved. Must
not know why two results should be equal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.session import Session, zeros_for_none
from pullback.check.values import Array, Arrays, copies

# By how many rounding units two results of one computation may differ.
_ULPS = 4096


def max_abs(*arrays: Array) -> float:
    """Return the largest finite absolute value, 0 if there is none."""
    sizes = [np.abs(a[np.isfinite(a)]) for a in arrays]
    return max((float(np.max(size, initial=0.0)) for size in sizes), default=0.0)


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
    limits: list[Array | float] = [
        session.rtol * max_abs(e) + min(_ULPS * _eps(g, e), session.rtol) * size
        for g, e in zip(got, expected, strict=True)
    ]
    found = _beyond(got, expected, limits)
    if not found or noise is None:
        return found
    return _beyond(got, expected, [a + b for a, b in zip(limits, noise(), strict=True)])


def _beyond(
    got: Arrays, expected: Arrays, limits: Sequence[Array | float]
) -> list[tuple[int, Array]]:
    found = []
    for i, (g, e, limit) in enumerate(zip(got, expected, limits, strict=True)):
        with np.errstate(all="ignore"):
            if g.shape != e.shape:
                wrong = np.ones(e.shape, bool)
            else:
                known = np.isfinite(e) & np.isfinite(limit)
                wrong = np.asarray(known & ~(np.abs(g - e) <= limit))
        if wrong.any():
            found.append((i, wrong))
    return found


def _eps(*arrays: Array) -> float:
    return max(float(np.finfo(a.dtype).eps) for a in arrays)


# -- noise -----------------------------------------------------------------------------------------
def rounding_noise(
    compute: Callable[[Arrays, Arrays], list[Array]],
    arrays: Arrays,
    seeds: Arrays,
    apart: bool = False,
    eps: float | None = None,
) -> list[Array]:
    """Return how far rounding may change the arrays that ``compute(arrays, seeds)`` returns.

    Measured by changing the last bits of its inputs, or those of `seeds` only where the function is
    not defined at the changed arrays. Equal elements stay equal, and with `apart` are changed
    differently as well: what they make singular or tied tells nothing. `eps` is the rounding unit,
    by default that of each array.
    """

    def bits(array: Array) -> float:
        return 4 * (eps or float(np.finfo(array.dtype).eps))

    def moved() -> Iterator[list[Array]]:
        for salt in (1.0, 2.0, 3.0):
            moved_seeds = [beside(g, bits(g), salt + 0.5) for g in seeds]
            try:
                found = compute([beside(a, bits(a), salt) for a in arrays], moved_seeds)
            except (ForwardError, BackwardError):
                found = compute(arrays, moved_seeds)
            yield found
        if apart:
            with contextlib.suppress(ForwardError, BackwardError):
                yield compute([beside(a, bits(a), apart=True) for a in arrays], list(seeds))

    base = compute(arrays, seeds)
    most = [np.zeros(b.shape) for b in base]
    for found in moved():
        with np.errstate(all="ignore"):
            steps = [np.abs(a - b) for a, b in zip(found, base, strict=True)]
        pairs = zip(most, steps, strict=True)
        most = [np.maximum(m, np.where(np.isnan(d), np.inf, d)) for m, d in pairs]
    return [8 * m + 8 * np.max(m, initial=0.0) for m in most]


def gradient_noise(
    session: Session, seeds: Sequence[Array | None]
) -> Callable[[], Sequence[Array | float]]:
    """Return what measures how far rounding may change the gradients for some output gradients."""
    chosen = [k for k, g in enumerate(seeds) if g is not None]

    def compute(arrays: Arrays, present: Arrays) -> list[Array]:
        every: list[Array | None] = [None] * len(seeds)
        for k, g in zip(chosen, copies(present), strict=True):
            every[k] = g
        return zeros_for_none(session.vjp(every, copies(arrays)), arrays)

    return lambda: rounding_noise(compute, session.arrays, [g for g in seeds if g is not None])


def beside(array: Array, by: float, salt: float = 1.0, apart: bool = False) -> Array:
    """Return an array a little beside: each element changed by up to `by` of itself.

    Equal elements stay equal, and zeros stay; with `apart`, no elements are equal or 0.
    """
    with np.errstate(all="ignore"):
        phase = np.asarray(array.real + 2 * array.imag).astype(np.float64)
        if apart:
            phase = np.arange(array.size, dtype=np.float64).reshape(array.shape)
            array = np.where(array == 0, by * (max_abs(array) or 1.0), array).astype(array.dtype)
        factor = 1 + by * np.nan_to_num(np.cos(salt + 1e3 * phase))
        return np.asarray(array * factor).astype(array.dtype)
