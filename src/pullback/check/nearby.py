"""Gradients at a point without a derivative: right if they are among those of nearby points.

At ties a rule may take either side, or share among both (Clarke, Optimization and Nonsmooth
Analysis, 1983, section 2.1): its gradient is a mean of those close by. One that counts both sides,
or neither, is not. Must not know how a gradient is compared with differences.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.session import Session, zeros_for_none
from pullback.check.values import Array

_POINTS = 16  # nearby
_DISTANCE = 1e-6
_CLOSE = 1e-3


def is_among_nearby(session: Session) -> bool:
    """Return whether backward's gradients are among those that it has close to the call.

    Parameters
    ----------
    session : Session
        That of a call at whose values a derivative may not exist.
    """
    rng, seeds = session.rng("nearby"), session.seeds()
    found = []
    try:
        got = session.gradients()
        for _ in range(_POINTS):
            moved = [_moved(a, rng) for a in session.arrays]
            found.append(zeros_for_none(session.vjp(seeds, moved), session.arrays))
    except (BackwardError, ForwardError):
        return False
    around = [np.stack(arrays) for arrays in zip(*found, strict=True)]
    every = zip(around, got, strict=True)
    return all(_is_within(gs, g) for gs, g in every if g.size)


def _moved(array: Array, rng: np.random.Generator) -> Array:
    size = float(np.abs(array).max(initial=0.0)) or 1.0
    step = _DISTANCE * size * rng.uniform(-1.0, 1.0, array.shape)
    return np.asarray(array + step).astype(array.dtype)


def _is_within(nearby: Array, got: Array) -> bool:
    """Return whether a gradient lies within what others span, as do its sums along axes.

    What is the same for all has to be so here. What differs may all go to one place.
    """
    if not (np.isfinite(got).all() and np.isfinite(nearby).all()):
        return False
    size = float(np.abs(nearby).max(initial=0.0)) or 1.0
    most = float(np.ptp(nearby, axis=0).sum())
    for axes in _axes(got.ndim):
        found = nearby.sum(axis=tuple(axis + 1 for axis in axes))
        value, low, high = got.sum(axis=axes), found.min(axis=0), found.max(axis=0)
        slack = np.where(high - low > _CLOSE * size, most, _CLOSE * size)
        if ((value < low - slack) | (value > high + slack)).any():
            return False
    return True


def _axes(ndim: int) -> Iterator[tuple[int, ...]]:
    for count in range(ndim + 1):
        yield from itertools.combinations(range(ndim), count)
