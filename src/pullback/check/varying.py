"""What is wrong at calls that differ from the user's, with as few differences as show it.

Must not know how these calls are chosen, nor how a gradient is measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.check.agreement import counts, looks_right
from pullback.check.deadline import deadline
from pullback.check.exceptions import ForwardError
from pullback.check.inputs.arguments import FirstRun, Inputs
from pullback.check.inputs.domains import recognised
from pullback.check.inputs.settings import taken
from pullback.check.inputs.vary import Variation
from pullback.check.naming import name_of
from pullback.check.numerical import joined
from pullback.check.report import Report
from pullback.check.session import Options, Session
from pullback.check.subject import Subject
from pullback.check.values import Array


@dataclasses.dataclass
class Varied:
    """Compares the derivatives of an operation at other calls than the user's.

    Attributes
    ----------
    fn : callable
    options : Options
    size : float
        Of the outputs of the user's call.
    check_one : callable
        Takes inputs and names of parts; returns the report in full.
    unmeasured : bool
        Whether the user's call leaves derivatives unmeasured, which another may show.
    """

    fn: Callable[..., Any]
    options: Options
    size: float
    check_one: Callable[[Inputs, Sequence[str]], Report]
    unmeasured: bool = False

    def compared(self, variation: Variation, first: FirstRun) -> tuple[str, Report]:
        """Return what is different in a call, no more than shows a mistake, and its report.

        Without words where there is nothing to tell of it.
        """
        nothing = "", Report(name_of(self.fn), self.options.seed)
        usual = self.options.rtol is None and not self.unmeasured
        if usual and looks_right(first, self.options.seed):
            return nothing
        names = self.wrong(first.subject, variation.slack)
        if not names:
            if not self.unmeasured:
                return nothing
            found = self.check_one(variation.inputs(self.fn), ("first",))
            return nothing if found.failures else (variation.what, found)
        with deadline().as_time_allows():
            variation, names = self._simplest(variation, names)
        found = self.check_one(variation.inputs(self.fn), ("first",))
        found.notes = []  # on the user's own inputs they are enough
        found.failures = [f for f in found.failures if "" in names or f.argument in names]
        return (variation.what, found) if found.failures else nothing

    def _simplest(self, variation: Variation, names: list[str]) -> tuple[Variation, list[str]]:
        """Return the variation with as few differences as show the mistake."""
        for other in variation.simpler():
            first = taken(self.fn, other.inputs(self.fn))
            if not isinstance(first, str):
                found = self.wrong(first.subject, other.slack)
                if found:
                    return self._simplest(other, found)
        return variation, names

    def wrong(self, subject: Subject, slack: float = 0.0) -> list[str]:
        """Return the arguments whose gradients are wrong at a call, as measurements tell."""
        report = Report(subject.name, self.options.seed)
        return counts(Session(subject, self.options, report), slack, self.size)


def read_by_half(subject: Subject) -> dict[str, str]:
    """Return the words for the symmetric matrices that forward reads as such, by name.

    Of these it reads one triangle alone, or refuses others that are nearly so. The gradient is
    right if it is along symmetric matrices: over which elements it is spread is a convention.
    """
    words = {}
    for i, (name, array) in enumerate(zip(subject.names, subject.arrays, strict=True)):
        word = recognised(array)
        if word in ("spd", "symmetric"):
            upper = np.triu(np.ones(array.shape), 1)
            trials = ((1e-7, upper), (1e-7, np.swapaxes(upper, -1, -2)), (1e-2, upper))
            moved = [_values_at(subject, i, array * (1 + by * where)) for by, where in trials]
            still = _values_at(subject, i, array)
            if moved[2] is None or any(
                a is not None and still is not None and np.array_equal(a, still) for a in moved[:2]
            ):
                words[name] = word
    return words


def _values_at(subject: Subject, i: int, array: Array) -> Array | None:
    """Return the outputs for another value of an argument; None where forward raises."""
    arrays = [*subject.arrays[:i], array.astype(subject.arrays[i].dtype), *subject.arrays[i + 1 :]]
    try:
        return joined(subject.values(arrays))
    except ForwardError:
        return None
