"""Disagreements at small values that are those of rounding in forward.

A difference quotient knows its error from the size of the outputs. Where these are small because
their terms cancel, they are rounded as the terms are, and it is wrong without knowing. Must not
know how a gradient is compared.
"""

from __future__ import annotations

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.iterating import converges
from pullback.check.numerical import joined
from pullback.check.report import Failure
from pullback.check.subject import Subject
from pullback.check.values import Array

_EPS = float(np.finfo(np.float64).eps)
_STEP = _EPS ** (1 / 3)  # of a difference quotient, relative to the argument
_RUNS = 9
_OUT_OF_PROPORTION = 1e8


def is_rounding(subject: Subject, failure: Failure) -> bool:
    """Return whether a disagreement is no larger than what rounding does to a difference quotient.

    Examples
    --------
    >>> import pullback as pb
    >>> x = np.array([1e-6, 2e-6])
    >>> cancels = Subject(lambda x: 1 - pb.cos(x) ** 2, (x,))
    >>> from pullback.check.report import Cause
    >>> far = Failure("first", "x", Cause("formula", ""), x, 1.1 * x)
    >>> is_rounding(cancels, far)
    True
    """
    if failure.expected is None or failure.got is None or failure.argument not in subject.names:
        return False
    i = subject.names.index(failure.argument)
    with np.errstate(all="ignore"):
        off = np.abs(np.asarray(failure.got) - failure.expected)
    if failure.wrong is not None and _is_out_of_proportion(failure.expected, failure.wrong):
        return True
    off = off if failure.wrong is None else off[failure.wrong]
    worst, size = float(off.max(initial=0.0)), np.abs(subject.arrays[i])
    step = float(size.max(initial=0.0))
    if failure.wrong is not None and failure.wrong.shape == size.shape:
        step = float(size[failure.wrong].max(initial=0.0)) or step
    if not np.isfinite(worst):
        return False
    return worst <= 4 * _EPS or worst * _STEP * step <= 4 * _noise(subject, i)


def _is_out_of_proportion(expected: Array, wrong: Array) -> bool:
    """Return whether differences are huge at wrong elements, and are not known at others.

    What rounding leaves of a forward is divided by steps that are as small as these elements.
    """
    right = np.isfinite(expected) & ~wrong
    if np.isfinite(expected).all() or not right.any() or not wrong.any():
        return False
    usual = float(np.median(np.abs(expected[right])))
    return bool(np.abs(expected[wrong]).min() > _OUT_OF_PROPORTION * usual)


def _noise(subject: Subject, i: int) -> float:
    """Return how far outputs lie off the parabola through them as an argument is scaled.

    At the least their own rounding, which does not show where they stay the same.
    """
    scales = np.linspace(-1e-3, 1e-3, _RUNS)
    arrays = subject.arrays
    moved = [(arrays[i] * (1 + t)).astype(arrays[i].dtype) for t in scales]
    outs = np.array([joined(subject.values([*arrays[:i], m, *arrays[i + 1 :]])) for m in moved])
    if not np.isfinite(outs).all():
        return 0.0
    powers = np.vander(scales / 1e-3, 3)
    rounded = _EPS * float(np.abs(outs).max(initial=0.0))
    fitted = powers @ np.linalg.lstsq(powers, outs, rcond=None)[0]
    rough = float(np.abs(outs - fitted).max(initial=0.0))
    return max(rounded, rough, _narrowed(subject))


def _narrowed(subject: Subject) -> float:
    """Return how far outputs are off in float32, made smaller by what float64 is finer.

    Where a forward cancels so far that it does not change at all, nothing else shows it.
    """
    if converges(subject.fn):  # it may never be close enough
        return 0.0
    arrays = subject.arrays
    narrow = [a.astype(np.float32) if a.dtype == np.float64 else a for a in arrays]
    try:
        wide, off = joined(subject.values(arrays)), joined(subject.values(narrow))
    except ForwardError:  # for float64 alone
        return 0.0
    if off.shape != wide.shape or not np.isfinite(wide).all():
        return 0.0
    worst = float(np.abs(off - wide).max(initial=0.0))
    if not np.isfinite(worst):  # larger values overflow
        return np.inf if all(np.abs(a).max(initial=0.0) < 1.0 for a in arrays) else 0.0
    return _EPS / float(np.finfo(np.float32).eps) * worst
