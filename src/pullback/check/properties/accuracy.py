"""Gradients that are as right as forward is: it iterates, and stops when it is close enough.

Owns the decision that a disagreement with differences is forward's own error: forward approximates
its result, the disagreement is small everywhere, and where forward has a setting for its accuracy,
the disagreement shrinks with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.numerical import coordinates, joined
from pullback.check.report import Report
from pullback.check.session import Line, Session, is_range
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays

# A larger relative error is no matter of accuracy.
MOST = 3e-3
_TOLERANCE = re.compile(r".*(tol|eps)\w*|delta")
_COUNT = re.compile(r".*(iter|steps?|sweeps|terms|nodes|points)\w*|n_\w+|num_\w+")


def forward_error(session: Session, arguments: Sequence[int]) -> float | None:
    """Return the relative error of the gradients if it may be forward's own, else None.

    Parameters
    ----------
    session : Session
    arguments : sequence of int
        Those whose gradient disagrees with differences.
    """
    error = _largest_error(session, arguments)
    if not error <= MOST or not session.iterates:  # NaN is no error of forward's
        return None
    for subject in _more_accurate(session.subject):
        other = Session(subject, session.options, Report(subject.name, 0))
        try:
            known = np.isfinite(other.center).all() and not np.array_equal(
                other.center, session.center
            )
            closer = not known or _along(other, arguments) < 0.5 * _along(session, arguments)
        except (ForwardError, BackwardError):  # it may not get as close
            continue
        if known:
            return error if closer else None
    return error


def _largest_error(session: Session, arguments: Sequence[int]) -> float:
    """Return the largest error of the gradients along a direction, relative to its terms."""
    lines = [line for i in arguments for line in session.along_elements[i].values()]
    return max(_along(session, arguments), _error(session, lines))


def _along(session: Session, arguments: Sequence[int]) -> float:
    return _error(session, [line for line in session.directions if line.argument in arguments])


def _error(session: Session, lines: Sequence[Line]) -> float:
    seeds = session.seeds()
    got = [coordinates(g) for g in session.gradients()]
    return max((_relative_error(session, line, got, seeds) for line in lines), default=0.0)


def _relative_error(session: Session, line: Line, got: Sequence[Array], seeds: Arrays) -> float:
    low, high, _ = session.bounds(line, seeds)
    if not is_range(low, high) or not np.isfinite([low, high]).all():
        return 0.0
    with np.errstate(all="ignore"):
        terms = np.where(line.direction != 0, line.direction * got[line.argument], 0.0)
        value = float(np.sum(terms))
    size = max(session.magnitude(line, seeds), float(np.abs(terms).sum()))
    # An element whose own gradient nearly vanishes has the error of the others.
    size = max(size, 1e-2 * _typical(session, line, got, seeds))
    off = max(low - value, value - high, 0.0)
    return off / size if size else 0.0 if off == 0 else np.inf


def _typical(session: Session, line: Line, got: Sequence[Array], seeds: Arrays) -> float:
    """Return the size of what moving a whole argument by as much would change."""
    largest = float(np.abs(got[line.argument]).max(initial=0.0))
    return largest * float(np.abs(line.direction).max(initial=0.0)) * bool(joined(seeds).any())


def _more_accurate(subject: Subject) -> Iterator[Subject]:
    """Yield the same call with a setting by which forward is more accurate."""
    for name, value in subject.settings():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            continue
        if isinstance(value, float) and value < 0.1 and _TOLERANCE.fullmatch(name):
            other: float = value * 1e-3
        elif isinstance(value, int) and value > 1 and _COUNT.fullmatch(name):
            other = 4 * value
        else:
            continue
        found = subject.with_setting(name, other)
        if found is not None:
            yield found
