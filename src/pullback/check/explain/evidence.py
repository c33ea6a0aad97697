"""What is known about a wrong gradient: measured once, read by every hypothesis of the diagnosis.

All gradients are NumPy arrays of the shape of their argument; the Jacobian of argument i has a row
for each coordinate of the joined outputs, and a column for each coordinate of the argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.numerical import coordinates, double, from_coordinates, joined
from pullback.check.report import Report
from pullback.check.session import Session, away_from_zero, gradients, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays


class Evidence:
    """Backward's gradients and the numerical ones, for two output gradients and for any other.

    Attributes
    ----------
    session : Session
    names : list of str
        The names of the differentiated arguments.
    arrays, outputs : list of array
        Their values, and those of the outputs.
    seeds, other_seeds : list of array
        Two output gradients.
    explanations : dict
        What was found of where gradients are wrong.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names = session.subject.names
        self.arrays = session.arrays
        self.outputs = session.outputs
        self.seeds = session.seeds()
        self.other_seeds = session.seeds("other seeds")
        self.explanations: dict[Any, str] = {}

    # -- backward ------------------------------------------------------------------------------
    def vjp(self, seeds: Sequence[Any], arrays: Arrays | None = None) -> list[Array]:
        """Return backward's gradients in double precision; zeros for None."""
        found = self.session.vjp(seeds, arrays)
        return _in_double(found, self.arrays if arrays is None else arrays)

    @cached_property
    def raw(self) -> list[Array | None]:
        """Backward's gradients for `seeds`; None where it returned None."""
        return self.session.vjp(self.seeds)

    @cached_property
    def got(self) -> list[Array]:
        """Backward's gradients for `seeds`."""
        return _in_double(self.raw, self.arrays)

    @cached_property
    def got_other(self) -> list[Array]:
        """Backward's gradients for `other_seeds`."""
        return self.vjp(self.other_seeds)

    @cached_property
    def analytic(self) -> list[Array | None]:
        """Backward's Jacobian of each argument; None if it is too large."""
        total = joined(self.outputs).size
        if total > self.session.options.max_elements:
            return [None] * len(self.arrays)
        rows: list[list[Array]] = [[] for _ in self.arrays]
        run = self.session.subject.run(self.arrays)
        for m in range(total):
            unit = np.zeros(total)
            unit[m] = 1.0
            found = gradients(run, self.session.split(unit), self.arrays)
            for i, g in enumerate(_in_double(found, self.arrays)):
                rows[i].append(coordinates(g))
        pairs = zip(rows, self.arrays, strict=True)
        return [np.stack(r) if r else np.zeros((0, a.size)) for r, a in pairs]

    # -- differences ---------------------------------------------------------------------------
    @cached_property
    def jacobian(self) -> list[Array | None]:
        """The numerical Jacobian of each argument; None where not all of it is measured."""
        found: list[Array | None] = []
        for array, columns in zip(self.arrays, self.session.columns, strict=True):
            whole = len(columns) == coordinates(array).size
            slopes = [line.slope.value for line in columns]
            found.append(np.stack(slopes, axis=1) if whole and slopes else None)
        return found

    def jacobians(self, i: int) -> tuple[Array | None, Array | None]:
        """Return the numerical Jacobian of argument `i` and backward's, or None and None."""
        measured = self.jacobian[i]
        return (None, None) if measured is None else (measured, self.analytic[i])

    def numerical(self, seeds: Arrays) -> list[Array]:
        """Return the numerical gradients for any output gradients; NaN where not known."""
        g = joined(seeds)
        used = g != 0
        found = []
        for columns, array in zip(self.session.columns, self.arrays, strict=True):
            flat = np.full(coordinates(array).size, np.nan)
            for line in columns:
                with np.errstate(all="ignore"):
                    flat[line.element] = g[used] @ line.slope.value[used]
            found.append(from_coordinates(flat, array.astype(double(array.dtype))))
        return found

    @cached_property
    def expected(self) -> list[Array]:
        """The numerical gradients for `seeds`."""
        return self.numerical(self.seeds)

    @cached_property
    def expected_other(self) -> list[Array]:
        """The numerical gradients for `other_seeds`."""
        return self.numerical(self.other_seeds)

    @cached_property
    def tolerance(self) -> list[Array]:
        """The tolerance of each element of a gradient."""
        found = []
        for i, array in enumerate(self.arrays):
            flat = np.full(coordinates(array).size, np.inf)
            for line in self.session.columns[i]:
                low, high, error = self.session.bounds(line, self.seeds)
                size = self.session.magnitude(line, self.seeds)
                assert line.element is not None
                flat[line.element] = (high - low) / 2 + error + self.session.rtol * size
            flat = flat + self.session.atol
            if array.dtype.kind == "c":
                flat = flat.reshape(-1, 2).max(axis=1)
            found.append(flat.reshape(array.shape))
        return found

    @cached_property
    def wrong(self) -> list[Array]:
        """Where backward's gradient is wrong for `seeds`, one array of bool for each argument."""
        return [
            self.differs(g, e, i)
            for i, (g, e) in enumerate(zip(self.got, self.expected, strict=True))
        ]

    def failure_arrays(self, i: int) -> dict[str, Array]:
        """Return the arrays that a failure shows for argument `i`."""
        return {"expected": self.expected[i], "got": self.got[i], "wrong": self.wrong[i]}

    # -- other values --------------------------------------------------------------------------
    def with_arrays(self, arrays: Arrays) -> Evidence | None:
        """Return the evidence at other values; None where the function is not defined there."""
        return self.of(self.session.subject.with_arrays(arrays))

    def of(self, subject: Subject) -> Evidence | None:
        """Return the evidence on another call; None where the function is not defined there."""
        session = Session(subject, self.session.options, Report("", 0))
        try:
            found = Evidence(session)
            good = [np.isfinite(values).all() for values in (*found.expected, *found.got)]
        except (BackwardError, ForwardError):
            return None
        return found if all(good) else None

    def of_output(self, k: int) -> Evidence | None:
        """Return the evidence on one of several outputs alone."""
        subject = self.session.subject.with_arrays(self.arrays)
        indices = subject.output_indices or range(len(self.outputs))
        subject.output_indices = [indices[k]]
        return self.of(subject)

    def may_be_that_of(self, subject: Subject, i: int) -> bool:
        """Return whether the gradient of argument `i` agrees with another call along a direction.

        It takes a few runs of forward, where `fits` takes them for each element.
        """
        session = Session(subject, self.session.options, Report("", 0))
        try:
            if [out.shape for out in session.outputs] != [out.shape for out in self.outputs]:
                return False
            return self._agree(session, self.got[i], self.seeds, i)
        except ForwardError:
            return False

    def is_right(self, subject: Subject, i: int) -> bool:
        """Return whether backward's gradient of argument `i` is right for another call."""
        session = Session(subject, self.session.options, Report("", 0))
        try:
            known = all(np.isfinite(out).all() and out.size for out in session.outputs)
            return known and all(
                self._agree(session, session.gradients(purpose)[i], session.seeds(purpose), i)
                for purpose in ("seeds", "other seeds")
            )
        except (BackwardError, ForwardError):
            return False

    def _agree(self, session: Session, got: Array, seeds: Arrays, i: int) -> bool:
        """Return whether a gradient agrees with differences along a direction, and is not 0."""
        count = coordinates(session.wide[i]).size
        line = session.measure(i, away_from_zero(count, session.rng(f"direction {i}")))
        with np.errstate(all="ignore"):
            terms = line.direction * coordinates(got)
            expected = joined(seeds) * line.slope.value
            off = abs(np.sum(terms) - np.sum(expected))
            size = np.sum(np.abs(terms)) + np.sum(np.abs(expected))
        return bool(size > 0 and off <= self.pattern_rtol * size and np.any(terms))

    @cached_property
    def elsewhere(self) -> Evidence | None:
        """The evidence at slightly different values: those of each argument times a number."""
        scales = 1.0625 + 0.03 * np.arange(len(self.arrays))
        moved = zip(self.arrays, scales, strict=True)
        return self.with_arrays([np.asarray(a * c).astype(a.dtype) for a, c in moved])

    @cached_property
    def operands(self) -> list[tuple[str, Array]]:
        """Every numerical array of the call with its name, the outputs last."""
        arrays = self.session.subject.array_arguments()
        return [*((f"`{name}`", array) for name, array in arrays), *self.named_outputs]

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

    # -- comparing -----------------------------------------------------------------------------
    def differs(self, got: Array, expected: Array, i: int) -> Array:
        """Return where two gradients of argument `i` differ; False where nothing is known."""
        with np.errstate(all="ignore"):
            off = np.abs(got - expected)
            return np.asarray((~(off <= self.tolerance[i])) & np.isfinite(expected))

    def known(self, i: int) -> Array:
        """Return where the numerical gradient of argument `i` is known."""
        return np.asarray(np.isfinite(self.expected[i]))

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

    def fits(self, i: int, pattern: Array) -> bool:
        """Return whether the gradient of argument `i` equals this pattern, and that is wrong."""
        right = self.expected[i]
        if pattern.shape != right.shape or not np.isfinite(pattern[np.isfinite(right)]).all():
            return False
        return self.matches(self.got[i], pattern) and not self.matches(pattern, right)

    @property
    def pattern_rtol(self) -> float:
        """The relative tolerance of patterns, looser than that of the check."""
        return min(0.05, 30 * self.session.rtol)


def _in_double(grads: Sequence[Array | None], like: Arrays) -> list[Array]:
    """Return gradients in double precision, zeros for None."""
    return [g.astype(double(g.dtype)) for g in zeros_for_none(grads, like)]
