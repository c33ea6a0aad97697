"""Gradients at a point without a derivative: right if they are among those of nearby points.

At ties a rule may take either side, or share among both (Clarke, Optimization and Nonsmooth
Analysis, 1983, section 2.1): its gradient is a mean of those close by. One that counts both sides,
or neither, is not. At a pole NaN is as right as any number. Must not know how a gradient is
compared with differences.
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
_FARTHER, _GROWTH = 1e-4, 3.0  # at a pole gradients grow as the distance shrinks
_CLOSE = 1e-3
_MOST = 40  # elements along which the outputs are looked at


def is_among_nearby(session: Session) -> bool:
    """Return whether backward's gradients are among those that it has close to the call.

    Parameters
    ----------
    session : Session
        That of a call at whose values a derivative may not exist.
    """
    try:
        every = zip(_gradients(session, _DISTANCE), session.gradients(), strict=True)
    except (BackwardError, ForwardError):
        return False
    return all(_is_within(gs, g) for gs, g in every if g.size)


def is_smooth(session: Session, i: int) -> bool:
    """Return whether all outputs have a derivative with respect to each element of an argument.

    Where one has none, NaN spreads to elements on which it does not depend.
    """
    try:
        lines = session.along(i, session.elements(i)[:_MOST])
    except (BackwardError, ForwardError):
        return False
    return not any(line.slope.kink.any() for line in lines)


def poles(session: Session) -> set[str]:
    """Return the arguments whose gradient is not finite, and grows beyond all bounds close by.

    Those are all arguments if forward refuses the points around.
    """
    names = session.subject.names
    try:
        got = session.gradients()
        around, farther = _gradients(session, _DISTANCE), _gradients(session, _FARTHER)
    except (BackwardError, ForwardError):
        return set(names)
    every = zip(names, around, got, farther, strict=True)
    return {name for name, gs, g, far in every if g.size and _is_pole(gs, g, far)}


def _gradients(session: Session, distance: float) -> list[Array]:
    """Return the gradients at points so far away, one array of all for each argument."""
    rng, seeds = session.rng("nearby"), session.seeds()
    found = []
    for _ in range(_POINTS):
        moved = [_moved(a, distance, rng) for a in session.arrays]
        found.append(zeros_for_none(session.vjp(seeds, moved), session.arrays))
    return [np.stack(arrays) for arrays in zip(*found, strict=True)]


def _moved(array: Array, distance: float, rng: np.random.Generator) -> Array:
    size = float(np.abs(array).max(initial=0.0)) or 1.0
    step = np.asarray(distance * size * rng.uniform(-1.0, 1.0, array.shape))
    if array.dtype.kind == "f" and array.min(initial=0.0) >= 0:  # 0 may be the edge of the domain
        step = np.where(array == 0, np.abs(step), step)
    return np.asarray(array + step).astype(array.dtype)


def _is_pole(nearby: Array, got: Array, farther: Array) -> bool:
    if np.isfinite(got).all():
        return False
    with np.errstate(all="ignore"):
        close, far = float(np.abs(nearby).max()), float(np.abs(farther).max())
    return close > _GROWTH * far


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
