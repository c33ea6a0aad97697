"""Whether results are equal up to rounding, and whether a gradient is wrong at a call nobody gave.

Of two results of one computation it is known how far rounding may move them. Of another call nobody
said that forward has a derivative there, or that its values are meant. So a disagreement with
differences counts only if measurements speak for it: forward is smooth along the lines that show
it, its own noise is smaller, and the same shows with another cotangent, along another direction and
at a nearby point. Must not know why two results should be equal, nor how calls are chosen.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from pullback.check.numerical import (
    beside,
    coordinates,
    direction_scales,
    is_range,
    joined,
    kept_equal,
    max_abs,
)
from pullback.check.session import RTOL, Line, Session
from pullback.check.subject import BackwardError, ForwardError, Run
from pullback.check.values import Array, Arrays, copies

# By how many rounding units two results of one computation may differ.
_ULPS = 4096
# Of the small changes by which rounding is measured.
_SALTS = (1.0, 2.0, 3.0)
# -- of the first look
_STEP = 1e-5  # of the length scale: the error of the differences is about 1e-10
_CLOSE = 1e-7  # relative to the terms of the component along the direction
_NOISE = 1e-9  # relative to the outputs
_SMALLEST_SHARE = 1e-3  # of a direction: what is shorter is lost in rounding
_TINY = 1e-300
# -- of what counts
_BESIDE = 1e-3  # how far a nearby point is
_ROUNDED = 8.0  # times what noise makes of a slope


# -- two results of one computation ----------------------------------------------------------------
def unequal(
    session: Session,
    got: Arrays,
    expected: Arrays,
    noise: Callable[[], Sequence[Array | float]] | None = None,
) -> list[tuple[int, Array]]:
    """Return which arrays differ by more than rounding, and where.

    Where an expected number is not finite, nothing is known. Output gradients are about 1: beside
    them, and beside the largest result, a difference in the last digits counts as none. How far
    rounding may change each array besides, `noise` measures by several runs, if they differ at all.
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


# -- another call ----------------------------------------------------------------------------------
class Situation(NamedTuple):
    """Another call, whose gradients have to agree with differences."""

    session: Session
    when: str  # ends the sentence "the gradient of `x` is wrong ..."
    cause: str  # its name
    hint: str = ""
    explained: bool = False  # whether it is said how the gradient is wrong


@np.errstate(all="ignore")  # other values may lie outside of the domain
def wrong_at(session: Session, run: Run | None = None) -> list[int]:
    """Return the arguments whose gradient is wrong at a call, as far as measurements speak for it.

    The first `run` of the call is used up if it is given. A `BackwardError` is raised if backward
    raises, also at nearby points without zeros and equal values.
    """
    if session.subject.surrogate:
        session.gradients()
        return []
    try:
        if _looks_right(session, run or session.subject.run(session.arrays)):
            return []
        wrong = [i for i in range(len(session.arrays)) if _is_wrong(session, i)]
        near = _nearby(session) if wrong else session
        return [i for i in wrong if _is_wrong(near, i)]
    except ForwardError:  # it is not defined nearby
        return []
    except BackwardError:
        with contextlib.suppress(ForwardError):
            _nearby(session, apart=True).gradients()
        return []


def _looks_right(session: Session, run: Run) -> bool:
    """Return whether a call's gradients agree with one central difference.

    All arguments move at once, by as much as makes the terms of each of them about equally large.
    False also where this cannot be told: where something raises or is not finite.
    """
    session.outputs = run.values()
    if not all(np.isfinite(a).all() for a in (*session.arrays, *session.outputs)):
        return False
    rng, seeds = session.rng("look"), session.seeds("look")
    flats = [coordinates(a) for a in session.wide]
    directions = [kept_equal(flat, rng) * direction_scales(np.abs(flat)) for flat in flats]
    try:
        grads = run.gradients(seeds)
    except BackwardError:  # the full comparison says whose mistake it is
        return False
    terms = [step * coordinates(g) for step, g in zip(directions, grads, strict=True)]
    totals = np.array([np.abs(t).sum() for t in terms])
    if not np.isfinite(totals).all():
        return False
    # Of exactly one size, mistakes in what two arguments have in common could cancel.
    shares = rng.uniform(0.6, 1.0, totals.size)
    if totals.any():
        shares *= np.clip(totals[totals > 0].min() / np.fmax(totals, _TINY), _SMALLEST_SHARE, 1.0)
    steps = {i: _STEP * share * directions[i] for i, share in enumerate(shares)}
    right, left, along = session.at(steps, 1), session.at(steps, -1), joined(seeds)
    if not right.shape == left.shape == along.shape:
        return False
    off = along @ (right - left) / (2 * _STEP) - shares @ [t.sum() for t in terms]
    noise = _NOISE * np.abs(along) @ np.abs(joined(session.outputs))
    close = max(_CLOSE, session.options.rtol or RTOL.get(session.precision, 0.0))
    return bool(abs(off) <= close * shares @ totals + noise)


def _nearby(session: Session, apart: bool = False) -> Session:
    """Return a session at a nearby point; with `apart` one without zeros and equal values."""
    arrays = [beside(a, _BESIDE, apart=apart) for a in session.arrays]
    return session.on(session.subject.with_arrays(arrays))


def _is_wrong(session: Session, i: int) -> bool:
    """Return whether a gradient disagrees along two directions along which equal values stay so."""
    if not np.isfinite(session.center).all():
        return False
    rng, flat = session.rng(f"directions {i}"), coordinates(session.wide[i])
    return all(_disagrees(session, session.measure(i, kept_equal(flat, rng))) for _ in range(2))


def _disagrees(session: Session, line: Line) -> bool:
    """Return whether a gradient is off along a line by more than noise, for two cotangents.

    Of the outputs that are smooth along it; the second is that of a function of their sizes.
    """
    i, noise = line.argument, _slope_noise(session)
    smooth = ~line.slope.kink & is_range(line.slope.low, line.slope.high) & np.isfinite(noise)
    if not smooth.any():
        return False
    for drawn in (session.seeds(), session.sizes()):
        along = np.where(smooth, joined(drawn), 0.0)
        seeds = session.split(along)
        got = coordinates(session.vjp(seeds)[i])
        if not np.isfinite(got[line.direction != 0]).all():
            # It is absent at this point alone, though forward is smooth as equal values part, and
            # not since values are beyond what it is for.
            near = coordinates(_nearby(session, apart=True).gradients()[i])
            parting = next(other for other in session.directions if other.argument == i)
            known = (smooth & ~parting.slope.kink).all() and not session.options.guessed
            return bool(known and np.isfinite(near).all())
        if session.agrees(line, got, seeds, float(np.abs(along)[smooth] @ noise[smooth])):
            return False
    return True


def _slope_noise(session: Session) -> Array:
    """Return what forward's noise makes of slopes.

    Noise is what a change of the last bits of all arguments makes of the outputs. What is nothing
    beside the outputs of a call whose gradients are right may be so by rounding.
    """
    base = session.subject.base
    size = 0.0 if base is None else max_abs(*base.values(base.arrays))
    bits = joined(session.subject.values([beside(a, 2 * session.eps) for a in session.wide]))
    least = np.maximum(np.abs(bits - session.center), session.eps * size)
    return np.asarray(_ROUNDED * least / session.eps**0.25)
