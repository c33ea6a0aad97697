"""Whether two gradients are equal up to rounding.

Owns the estimate of how far rounding may move a result; no finite differences are involved. Must
not know why two gradients should be equal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

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


def differs(got: Array, expected: Array, rtol: float, floor: float = 0.0) -> Array:
    """Return where two arrays differ by more than `rtol` of the largest, and by more than `floor`.

    Where `expected` is not finite, nothing is known: False.
    """
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(got) - expected)
        return np.asarray(np.isfinite(expected) & ~(off <= rtol * max_abs(expected) + floor))


def unequal(got: Array, expected: Array, rtol: float = 0.0, size: float = 0.0) -> Array:
    """Return where two results of one computation differ by more than rounding, or `rtol`.

    Infinite and NaN elements have to be the same. `size` is the size of the terms, where these may
    be larger than the results.
    """
    if got.shape != expected.shape:
        return np.ones(expected.shape, bool)
    eps = max(np.finfo(got.dtype).eps, np.finfo(expected.dtype).eps)
    with np.errstate(all="ignore"):
        magnitude = np.abs(expected) + max(max_abs(expected), size)
        close = np.abs(got - expected) <= max(_ULPS * eps, rtol) * magnitude
    return np.asarray(~(close | (got == expected) | (np.isnan(got) & np.isnan(expected))))


# -- rounding --------------------------------------------------------------------------------------
def rounding_floors(session: Session, like: Arrays, seeds: Sequence[Array | None]) -> list[float]:
    """Return, for each array, the size below which an element counts as zero."""
    size = max_abs(*like, *(g for g in seeds if g is not None))
    return [min(_ULPS * float(np.finfo(a.dtype).eps), session.rtol) * size for a in like]


def max_changes(base: Arrays, others: Iterable[Arrays]) -> list[Array]:
    """Return the largest change of each element over `others`; infinite where it is NaN."""
    found = [np.zeros(b.shape) for b in base]
    for other in others:
        with np.errstate(all="ignore"):
            steps = [np.abs(a - b) for a, b in zip(other, base, strict=True)]
        pairs = zip(found, steps, strict=True)
        found = [np.maximum(f, np.where(np.isnan(d), np.inf, d)) for f, d in pairs]
    return found


def rounding_noise(
    compute: Callable[[Arrays, Arrays], list[Array]],
    arrays: Arrays,
    seeds: Arrays,
    apart: bool = False,
) -> list[float]:
    """Return how far rounding may change the arrays that ``compute(arrays, seeds)`` returns.

    Measured by changing the last bits of its inputs, or those of `seeds` only where the function is
    not defined at the changed arrays. Equal elements stay equal, and with `apart` are changed
    differently as well: what they make singular or tied tells nothing.
    """

    def moved() -> Iterator[list[Array]]:
        for salt in (1.0, 2.0, 3.0):
            moved_seeds = [_perturbed(g, salt + 0.5) for g in seeds]
            try:
                found = compute([_perturbed(a, salt) for a in arrays], moved_seeds)
            except (ForwardError, BackwardError):
                found = compute(arrays, moved_seeds)
            yield found
        if apart:
            with contextlib.suppress(ForwardError, BackwardError):
                yield compute([_scattered(a) for a in arrays], list(seeds))

    moves = max_changes(compute(arrays, seeds), moved())
    return [16 * float(np.max(d, initial=0.0)) for d in moves]


def _scattered(array: Array) -> Array:
    """Return an array changed by a few rounding units, equal elements by different ones."""
    return _moved(array, np.cos(1e3 * np.arange(array.size)).reshape(array.shape))


def _perturbed(array: Array, salt: float) -> Array:
    """Return an array changed by a few rounding units; equal elements stay equal."""
    with np.errstate(all="ignore"):
        phase = np.cos(salt + 1e3 * (array.real + 2 * array.imag).astype(np.float64))
    return _moved(array, np.nan_to_num(phase))


def _moved(array: Array, phase: Array) -> Array:
    """Return an array changed by up to four rounding units, as a phase says."""
    with np.errstate(all="ignore"):
        factor = 1 + 4 * float(np.finfo(array.dtype).eps) * phase
        return np.asarray(array * factor).astype(array.dtype)


def beyond_rounding(
    session: Session,
    got: Arrays,
    expected: Arrays,
    seeds: Sequence[Array | None],
    measure_noise: Callable[[], list[float]],
) -> list[tuple[int, Array]]:
    """Return which arrays differ by more than rounding, and where.

    Parameters
    ----------
    seeds : sequence of array or None
        The output gradients they were computed from: rounding is relative to these as well.
    measure_noise : callable
        Measures how far rounding may change each array. It takes several runs, so it is called only
        if they differ at all.
    """
    limits = rounding_floors(session, expected, seeds)
    suspects = [
        i
        for i, (g, e, floor) in enumerate(zip(got, expected, limits, strict=True))
        if differs(g, e, session.rtol, floor).any()
    ]
    if not suspects:
        return []
    moves = measure_noise()
    found = [
        (i, differs(got[i], expected[i], session.rtol, limits[i] + moves[i])) for i in suspects
    ]
    return [(i, wrong) for i, wrong in found if wrong.any()]


def differing_gradients(
    session: Session, got: Arrays, expected: Arrays, seeds: Sequence[Array | None]
) -> list[tuple[int, Array]]:
    """Return the arguments whose gradients differ by more than rounding, and where."""
    chosen = [k for k, g in enumerate(seeds) if g is not None]

    def compute(arrays: Arrays, present: Arrays) -> list[Array]:
        every: list[Array | None] = [None] * len(seeds)
        for k, g in zip(chosen, copies(present), strict=True):
            every[k] = g
        return zeros_for_none(session.vjp(every, copies(arrays)), arrays)

    def measure_noise() -> list[float]:
        return rounding_noise(compute, session.arrays, [g for g in seeds if g is not None])

    return beyond_rounding(session, got, expected, seeds, measure_noise)
