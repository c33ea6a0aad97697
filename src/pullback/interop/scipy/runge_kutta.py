"""Steps of SciPy's explicit Runge-Kutta methods on tensors, and the curves between them.

The coefficients are those of SciPy's own classes, so that values agree to rounding.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.integrate as theirs

from pullback.core.tensor.tensor import Tensor
from pullback.ops.functions.creation import asarray

__all__ = ["Piece", "Slope", "Step", "Taken", "replayed", "stepped"]

Slope = Callable[[Any, Any], Any]


class Taken(NamedTuple):
    """What SciPy did in one step; the first of them is where it started."""

    t: float
    y: Any
    order: int  # of the step
    next_order: int
    planned: float  # the length of the next step, with its sign
    curve: Any  # SciPy's dense output


class Piece(NamedTuple):
    """A step on tensors: y at its end, and a function of the time within it."""

    after: Tensor
    at: Callable[[Any], Tensor]


class Step(NamedTuple):
    """One step: where it began, how long it is, and the slopes of its stages."""

    start: Any
    length: Any
    before: Tensor
    after: Tensor
    slopes: list[Tensor]
    curve: list[Tensor]  # of the interpolating polynomial, empty if none is asked for


def replayed(method: Any, f: Slope, times: list[Any], y: Tensor, curved: bool) -> list[Piece]:
    """Take the steps of an explicit method; the last slope of each is the first of the next."""
    pieces: list[Piece] = []
    slope = f(times[0], y)
    for start, end in itertools.pairwise(times):
        step = stepped(method, f, start, end - start, y, slope, curved)
        y, slope = step.after, step.slopes[-1]
        pieces.append(Piece(y, functools.partial(at, step, method)))
    return pieces


def stepped(
    method: Any, f: Slope, start: Any, length: Any, y: Tensor, slope: Tensor, curved: bool
) -> Step:
    """Return a step from `y`, whose slope is known."""
    slopes = [slope]
    for row, c in zip(method.A[1:], method.C[1:], strict=True):
        slopes.append(_slope(f, start + length * float(c), y, length, row, slopes))
    after = _moved(y, length, method.B, slopes)
    slopes.append(asarray(f(start + length, after)))
    step = Step(start, length, y, after, slopes, [])
    if curved:
        step.curve.extend(
            _dop853(f, step) if method is theirs.DOP853 else _polynomial(step, method)
        )
    return step


def _slope(f: Slope, t: Any, y: Tensor, length: Any, row: Any, slopes: list[Tensor]) -> Tensor:
    return asarray(f(t, _moved(y, length, row, slopes)))


def _moved(y: Tensor, length: Any, weights: Any, slopes: list[Tensor]) -> Tensor:
    """Return y plus the length times the weighted sum of slopes."""
    moved: Tensor = y + length * _sum(weights, slopes)
    return moved


def _sum(weights: Any, slopes: list[Tensor]) -> Any:
    pairs = zip(weights, slopes, strict=False)
    terms = [slope * float(weight) for weight, slope in pairs if weight]
    return sum(terms[1:], terms[0]) if terms else slopes[0] * 0.0


# -- between the ends ------------------------------------------------------------------------------
def _polynomial(step: Step, method: Any) -> list[Tensor]:
    """Return the coefficients of share, share ** 2 and so on."""
    return [step.length * _sum(column, step.slopes) for column in method.P.T]


def _dop853(f: Slope, step: Step) -> list[Tensor]:
    """Return the terms of the nested polynomial of degree 7, which needs three more stages."""
    method, slopes = theirs.DOP853, list(step.slopes)
    y, length = step.before, step.length
    for row, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
        slopes.append(_slope(f, step.start + length * float(c), y, length, row, slopes))
    change, first, last = step.after - y, step.slopes[0], step.slopes[-1]
    terms = [change, length * first - change, 2 * change - length * (last + first)]
    return [*terms, *(length * _sum(row, slopes) for row in method.D)]


def at(step: Step, method: Any, t: Any) -> Tensor:
    """Return the curve of a step at a time within it."""
    share = (t - step.start) / step.length
    total: Any = 0.0
    if method is theirs.DOP853:
        for i, term in enumerate(reversed(step.curve)):
            total = (total + term) * (share if i % 2 == 0 else 1 - share)
    else:
        for term in reversed(step.curve):
            total = (total + term) * share
    result: Tensor = step.before + total
    return result
