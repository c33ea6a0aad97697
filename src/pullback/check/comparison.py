"""Gradients against gradients: when two of them are the same, up to rounding.

Owns the measure of what rounding alone does to a result, which no differences are needed for. Must
not know why two gradients should be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.session import Session, filled
from pullback.check.values import Array, Arrays, copies

# How many rounding units the results of one computation may be apart.
_ULPS = 4096


def largest(*arrays: Array) -> float:
    """Return the largest finite absolute value, 0 if there is none."""
    sizes = [np.abs(a[np.isfinite(a)]) for a in arrays]
    return max((float(np.max(size, initial=0.0)) for size in sizes), default=0.0)


def differs(got: Array, expected: Array, rtol: float, floor: float = 0.0) -> Array:
    """Return where two arrays differ by more than `rtol` of the largest, and by more than `floor`.

    Nothing is known where `expected` is not finite.
    """
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(got) - expected)
        return np.asarray(np.isfinite(expected) & ~(off <= rtol * largest(expected) + floor))


def unequal(got: Array, expected: Array, rtol: float = 0.0, size: float = 0.0) -> Array:
    """Return where two results of one computation differ by more than rounding, or `rtol`.

    What is not finite has to be the same. `size` is that of the terms, where these may be larger
    than the results.
    """
    if got.shape != expected.shape:
        return np.ones(expected.shape, bool)
    eps = max(np.finfo(got.dtype).eps, np.finfo(expected.dtype).eps)
    with np.errstate(all="ignore"):
        magnitude = np.abs(expected) + max(largest(expected), size)
        close = np.abs(got - expected) <= max(_ULPS * eps, rtol) * magnitude
    return np.asarray(~(close | (got == expected) | (np.isnan(got) & np.isnan(expected))))


# -- what rounding does ----------------------------------------------------------------------------
def floors(session: Session, likes: Arrays, seeds: Sequence[Array | None]) -> list[float]:
    """Return below which size an element of each array is taken for rounding of zero."""
    size = largest(*likes, *(g for g in seeds if g is not None))
    return [min(_ULPS * float(np.finfo(a.dtype).eps), session.rtol) * size for a in likes]


def largest_moves(base: Arrays, others: Iterable[Arrays]) -> list[Array]:
    """Return how far each element moves at most; infinitely where the difference is NaN."""
    found = [np.zeros(b.shape) for b in base]
    for other in others:
        with np.errstate(all="ignore"):
            steps = [np.abs(a - b) for a, b in zip(other, base, strict=True)]
        pairs = zip(found, steps, strict=True)
        found = [np.maximum(f, np.where(np.isnan(d), np.inf, d)) for f, d in pairs]
    return found


def noise(
    compute: Callable[[Arrays, Arrays], list[Array]], arrays: Arrays, seeds: Arrays
) -> list[float]:
    """Return how far rounding may change the arrays that ``compute(arrays, seeds)`` gives.

    That is seen as the last bits of its inputs are changed, those of `seeds` alone where the
    function is not defined elsewhere.
    """

    def moved() -> Iterator[list[Array]]:
        for salt in (1.0, 2.0, 3.0):
            moved_seeds = [_wiggled(g, salt + 0.5) for g in seeds]
            try:
                found = compute([_wiggled(a, salt) for a in arrays], moved_seeds)
            except (ForwardError, BackwardError):
                found = compute(arrays, moved_seeds)
            yield found

    moves = largest_moves(compute(arrays, seeds), moved())
    return [16 * float(np.max(d, initial=0.0)) for d in moves]


def _wiggled(array: Array, salt: float) -> Array:
    """Return an array changed by a few units of its last place; equal elements stay equal."""
    with np.errstate(all="ignore"):
        phase = np.cos(salt + 1e3 * (array.real + 2 * array.imag).astype(np.float64))
        factor = 1 + 4 * float(np.finfo(array.dtype).eps) * np.nan_to_num(phase)
        return np.asarray(array * factor).astype(array.dtype)


def beyond_rounding(
    session: Session,
    got: Arrays,
    expected: Arrays,
    seeds: Sequence[Array | None],
    spread: Callable[[], list[float]],
) -> list[tuple[int, Array]]:
    """Return which arrays differ beyond rounding, and where.

    Parameters
    ----------
    seeds : sequence of array or None
        The output gradients that they come of: rounding is relative to these, too.
    spread : callable
        Measures how far rounding may change each array. It takes several runs, so it is called only
        where they differ at all.
    """
    limits = floors(session, expected, seeds)
    suspects = [
        i
        for i, (g, e, floor) in enumerate(zip(got, expected, limits, strict=True))
        if differs(g, e, session.rtol, floor).any()
    ]
    if not suspects:
        return []
    moves = spread()
    found = [
        (i, differs(got[i], expected[i], session.rtol, limits[i] + moves[i])) for i in suspects
    ]
    return [(i, wrong) for i, wrong in found if wrong.any()]


def unlike(
    session: Session, got: Arrays, expected: Arrays, seeds: Sequence[Array | None]
) -> list[tuple[int, Array]]:
    """Return the arguments whose gradients differ beyond rounding, and where."""
    chosen = [k for k, g in enumerate(seeds) if g is not None]

    def compute(arrays: Arrays, given: Arrays) -> list[Array]:
        every: list[Array | None] = [None] * len(seeds)
        for k, g in zip(chosen, copies(given), strict=True):
            every[k] = g
        return filled(session.vjp(every, copies(arrays)), arrays)

    def spread() -> list[float]:
        return noise(compute, session.arrays, [g for g in seeds if g is not None])

    return beyond_rounding(session, got, expected, seeds, spread)
