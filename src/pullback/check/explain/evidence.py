"""What is known about a wrong gradient: measured once, read by every explanation.

All gradients are NumPy arrays of the shape of their argument; the Jacobian of argument i has a row
for each coordinate of the joined outputs, and a column for each coordinate of the argument. What
explains a gradient has to fit at each `Look`: for two output gradients, and at two points.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import OutOfTimeError
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.numerical import coordinates, double, from_coordinates, joined
from pullback.check.report import Report
from pullback.check.session import Line, Session, away_from_zero, gradients, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays

_PURPOSES = ("seeds", "other seeds")
_ENOUGH = 64  # elements that are moved one by one at other points


class Look(NamedTuple):
    """Backward's gradients beside the right ones, at one point and for one output gradient."""

    call: Evidence
    seeds: Arrays
    got: list[Array]
    expected: list[Array]

    def of(self, i: int, seeds: Arrays) -> Array:
        """Return the right gradient of an argument for other output gradients."""
        return self.call.numerical(i, seeds)


class Evidence:
    """Backward's gradients and the numerical ones, for two output gradients and for any other.

    Attributes
    ----------
    session : Session
    names, arrays : list of str, list of array
        The differentiated arguments.
    outputs, seeds, other_seeds : list of array
        The outputs, and two output gradients.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = session.subject.names
        self.arrays = session.arrays
        self.outputs = session.outputs
        self.seeds, self.other_seeds = (session.seeds(purpose) for purpose in _PURPOSES)
        self.found: dict[Any, Any] = {}  # what wrong elements have in common

    # -- backward ------------------------------------------------------------------------------
    def vjp(self, seeds: Arrays) -> list[Array]:
        """Return backward's gradients in double precision; zeros for None."""
        return in_double(zeros_for_none(self.session.vjp(seeds), self.arrays))

    @cached_property
    def got(self) -> list[Array]:
        """Backward's gradients for `seeds`."""
        return self.vjp(self.seeds)

    @cached_property
    def got_other(self) -> list[Array]:
        """Backward's gradients for `other_seeds`."""
        return self.vjp(self.other_seeds)

    @cached_property
    def analytic(self) -> list[Array | None]:
        """Backward's Jacobian of each argument; None if it is too large."""
        total = joined(self.outputs).size
        if not 0 < total <= self.session.options.max_elements:
            return [None] * len(self.arrays)
        run = self.session.subject.run(self.arrays)
        rows = [
            [coordinates(g) for g in gradients(run, self.session.split(unit), self.arrays)]
            for unit in np.eye(total)
        ]
        return [np.stack(row) for row in zip(*rows, strict=True)]

    # -- differences ---------------------------------------------------------------------------
    @cached_property
    def slopes(self) -> list[tuple[list[int], Array]]:
        """For each argument which coordinates were moved, and the outputs' slopes along each."""
        found, total = [], self.session.center.size
        for lines in self.session.columns:
            values = np.reshape([line.slope.value for line in lines], (len(lines), total))
            found.append(([line.element or 0 for line in lines], values.T))
        return found

    def jacobians(self, i: int) -> tuple[Array | None, Array | None]:
        """Return the numerical Jacobian of argument `i` and backward's; None if not all of it."""
        moved, slopes = self.slopes[i]
        whole = 0 < len(moved) == coordinates(self.arrays[i]).size
        return (slopes, self.analytic[i]) if whole else (None, None)

    def numerical(self, i: int, seeds: Arrays) -> Array:
        """Return the numerical gradient of an argument for any output gradients; NaN if unknown."""
        g, (moved, slopes), array = joined(seeds), self.slopes[i], self.arrays[i]
        used, flat = g != 0, np.full(coordinates(array).size, np.nan)
        with np.errstate(all="ignore"):
            flat[moved] = g @ slopes if used.all() else g[used] @ slopes[used]
        return from_coordinates(flat, array.astype(double(array.dtype)))

    @cached_property
    def expected(self) -> list[Array]:
        """The numerical gradients for `seeds`."""
        return [self.numerical(i, self.seeds) for i in range(len(self.arrays))]

    @cached_property
    def expected_other(self) -> list[Array]:
        """The numerical gradients for `other_seeds`."""
        return [self.numerical(i, self.other_seeds) for i in range(len(self.arrays))]

    @cached_property
    def tolerance(self) -> list[Array]:
        """The tolerance of each element of a gradient."""
        found = []
        for i, array in enumerate(self.arrays):
            flat = np.full(coordinates(array).size, np.inf)
            for line in self.session.columns[i]:
                low, high, error = self.session.bounds(line, self.seeds)
                size = self.session.magnitude(line, self.seeds)
                flat[line.element] = (high - low) / 2 + error + self.session.rtol * size
            flat = flat + self.session.atol
            if array.dtype.kind == "c":
                flat = flat.reshape(-1, 2).max(axis=1)
            found.append(flat.reshape(array.shape))
        return found

    @cached_property
    def wrong(self) -> list[Array]:
        """Where backward's gradient is wrong for `seeds`, one array of bool for each argument."""
        pairs = zip(self.got, self.expected, strict=True)
        return [self.differs(g, e, i) for i, (g, e) in enumerate(pairs)]

    def known(self, i: int) -> Array:
        """Return where the numerical gradient of argument `i` is known."""
        return np.asarray(np.isfinite(self.expected[i]))

    def failure_arrays(self, i: int) -> dict[str, Array]:
        """Return the arrays that a failure shows for argument `i`."""
        return {"expected": self.expected[i], "got": self.got[i], "wrong": self.wrong[i]}

    # -- other calls ---------------------------------------------------------------------------
    def session_of(self, subject: Subject) -> Session:
        """Return a session on another call, in which fewer elements are moved one by one."""
        most = min(_ENOUGH, self.session.options.max_elements)
        options = dataclasses.replace(self.session.options, max_elements=most)
        return Session(subject, options, Report(subject.name, options.seed))

    def of(self, subject: Subject) -> Evidence | None:
        """Return the evidence on another call; None where the function is not defined there."""
        try:
            found = Evidence(self.session_of(subject))
            known = [np.isfinite(values).all() for _, values in found.slopes]
            known += [np.isfinite(g).all() for g in found.got]
        except (BackwardError, ForwardError):
            return None
        same = [out.shape for out in found.outputs] == [out.shape for out in self.outputs]
        return found if same and all(known) else None

    @cached_property
    def elsewhere(self) -> Evidence | None:
        """The evidence at slightly different values, if there is time for it."""
        moved = [a * (1.0625 + 0.03 * k) for k, a in enumerate(self.arrays)]
        with contextlib.suppress(OutOfTimeError):
            return self.of(self.session.subject.with_arrays(like(moved, self.arrays)))
        return None

    def is_right_for(self, subject: Subject, i: int, own: bool) -> bool:
        """Return whether a gradient of argument `i` is the right one of another call.

        Backward's there (`own`), or this call's, of which the right one is another. It is compared
        along one direction, for two output gradients: that takes a few runs of forward.
        """
        session = self.session_of(subject)
        try:
            same = [out.shape for out in session.outputs] == [out.shape for out in self.outputs]
            if not (own or same) or not all(out.size for out in session.outputs):
                return False
            pairs = [(self.got[i], self.seeds), (self.got_other[i], self.other_seeds)]
            if own:
                pairs = [(session.gradients(p)[i], session.seeds(p)) for p in _PURPOSES]
            count = coordinates(session.wide[i]).size
            line = session.measure(i, away_from_zero(count, session.rng(f"direction {i}")))
        except (BackwardError, ForwardError):
            return False
        if not own and self._is_component(line, self.expected[i], self.seeds):
            return False
        return all(self._is_component(line, g, seeds) for g, seeds in pairs)

    def _is_component(self, line: Line, got: Array, seeds: Arrays) -> bool:
        """Return whether a gradient agrees with a slope, and is not 0."""
        with np.errstate(all="ignore"):
            terms, expected = line.direction * coordinates(got), joined(seeds) * line.slope.value
            off, size = abs(np.sum(terms) - np.sum(expected)), np.sum(np.abs(terms))
        return bool(np.any(terms) and off <= self.pattern_rtol * (size + np.sum(np.abs(expected))))

    # -- names ---------------------------------------------------------------------------------
    @cached_property
    def named_outputs(self) -> list[tuple[str, Array]]:
        """The outputs with their names in sentences."""
        if len(self.outputs) == 1:
            return [("the output", self.outputs[0])]
        return [(f"output {k}", out) for k, out in enumerate(self.outputs)]

    @cached_property
    def numbers(self) -> list[tuple[str, float]]:
        """Every number among the arguments with its name."""
        return self.session.subject.number_arguments()

    def arguments(self, without: str = "") -> list[tuple[str, Array]]:
        """Return the arguments that are arrays or numbers, by name."""
        found = self.session.subject.array_arguments()
        found += [(name, np.asarray(v)) for name, v in self.numbers]
        return [(name, a) for name, a in found if name != without]

    # -- comparing -----------------------------------------------------------------------------
    def looks(self) -> Iterator[Look]:
        """Yield two output gradients at the call's values, and one at others."""
        yield Look(self, self.seeds, self.got, self.expected)
        yield Look(self, self.other_seeds, self.got_other, self.expected_other)
        other = None if self.session.options.fast else self.elsewhere
        if other is not None:
            yield Look(other, other.seeds, other.got, other.expected)

    def explains(self, i: int, pattern: Array, look: Look) -> bool:
        """Return whether the gradient of argument `i` is a pattern at a look, and is wrong."""
        right = look.expected[i]
        if pattern.shape != right.shape or not self.matches(look.got[i], pattern):
            return False
        known = np.isfinite(pattern[np.isfinite(right)]).all()
        return bool(known) and not (look.call is self and self.matches(pattern, right))

    def differs(self, got: Array, expected: Array, i: int) -> Array:
        """Return where two gradients of argument `i` differ; False where nothing is known."""
        with np.errstate(all="ignore"):
            off = np.abs(got - expected)
            return np.asarray((~(off <= self.tolerance[i])) & np.isfinite(expected))

    def matches(self, a: Array, b: Array) -> bool:
        """Return whether two arrays are equal up to rounding where both are known, and not 0."""
        if a.shape != b.shape or not a.size:
            return False
        seen = np.isfinite(a) & np.isfinite(b)
        if not seen.any() or not np.isfinite(a[np.isfinite(b)]).all():
            return False
        size = float(np.max(np.abs(b[seen])))
        close = np.abs(a[seen] - b[seen]) <= self.pattern_rtol * (np.abs(b[seen]) + 1e-3 * size)
        return size > 0 and bool(close.all())

    @property
    def pattern_rtol(self) -> float:
        """The relative tolerance of patterns, looser than that of the check."""
        return min(0.05, 30 * self.session.rtol)


def in_double(arrays: Arrays) -> list[Array]:
    """Return arrays in double precision."""
    return [a.astype(double(a.dtype)) for a in arrays]


def like(arrays: Sequence[Array], others: Arrays) -> list[Array]:
    """Return arrays in the dtypes of others."""
    return [np.asarray(a).astype(b.dtype) for a, b in zip(arrays, others, strict=True)]
