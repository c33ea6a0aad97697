"""The engine of the properties: it makes the variants of a call, compares, and reports.

The result of a variant is known. Either it is that of the call itself, or of another way to compute
it: a `Variant`, compared up to rounding. Or its gradients are compared with differences: a
`Situation`. A property ends with what fails first: the rest would mostly show the same mistake.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.comparison import unequal
from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.exceptions import (
    BackwardError,
    ForwardError,
    InapplicableError,
    NotComparedError,
    first_line,
)
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.properties.first import wrong_along
from pullback.check.repair import fail
from pullback.check.report import Cause
from pullback.check.session import Session
from pullback.check.values import Array, Arrays

EQUAL, DIFFERENCES = "equal", "differences"
Errors = tuple[type[Exception], ...]


class Finding(NamedTuple):
    """What a variant gave, and where that is wrong; or what was raised in place of it."""

    got: Arrays
    expected: Arrays
    wrong: Sequence[tuple[int, Array]]
    raised: str = ""


class Variant(NamedTuple):
    """A variant of a call, and what it has to give."""

    when: str  # ends the sentence "the gradient of `x` is wrong ..."
    run: Callable[[], Arrays]
    expected: Arrays | Callable[[], Arrays]
    cause: str | Callable[[Finding, int], Cause]  # its name; or it, from what an array shows
    hint: str = ""
    names: Sequence[str] = ()  # of the arrays: arguments for gradients; by default all of these
    wrong: str = "is wrong"
    noise: Callable[[], Sequence[Array | float]] | None = None  # how far rounding moves each array
    exact: bool = False  # whether every bit counts
    case: str = ""  # of variants that differ in the case alone, one failure lists those that fail
    failures: Errors = (ForwardError, BackwardError)  # other exceptions are notes
    again: Callable[[], Variant | None] | None = None  # nearby: what is right there is but a tie


class Situation(NamedTuple):
    """Another call, whose gradients have to agree with differences."""

    session: Session
    when: str
    cause: Callable[[Evidence, int], Cause | None]  # for an argument; None makes it a note
    raised: Callable[
        [BackwardError], Cause | str
    ]  # of what backward raises; a text makes it a note


class Part(NamedTuple):
    """One part of the check: a property of the variants of a call.

    Attributes
    ----------
    name, title : str
        As `only` and `skip` take it; as reports print it.
    calls : callable
        Takes the session and yields the variants. A `Cause` among them is a failure.
    against : str
        What they are compared with: "equal" results, or "differences".
    otherwise : str
        Why the property does not apply where there is no variant.
    essential : bool
        Whether the later parts are meaningless once it failed.
    fast : bool
        Whether it is part of the fast check.
    """

    name: str
    title: str
    calls: Callable[[Session], Iterator[Any]]
    against: str
    otherwise: str = ""
    essential: bool = False
    fast: bool = False

    def run(self, session: Session) -> None:
        """Check the property, and report to the session.

        Raises
        ------
        InapplicableError
            If it says nothing of this call.
        """
        before, taken = len(session.report.failures), False
        failed: list[tuple[Variant, Finding]] = []
        compare: Callable[..., Finding | None] = _compared if self.against == EQUAL else _agrees
        with warnings.catch_warnings():
            if not self.essential:  # means of empty arrays, overflow and the like are tried
                warnings.simplefilter("ignore")
            try:
                for variant in self.calls(session):
                    taken = True
                    if isinstance(variant, Cause):
                        session.fail(variant)
                    elif failed and variant.when != failed[0][0].when:
                        break
                    elif found := compare(session, variant):
                        failed.append((variant, found))
                        if not variant.case:
                            break
                    if len(session.report.failures) > before:
                        return
            except OutOfTimeError:  # of an essential part only what may be left out is
                if not (taken and self.essential) or deadline().is_over():
                    raise
        if failed:
            _report(session, failed[0][1], [variant for variant, _ in failed])
        elif not taken and self.otherwise:
            raise InapplicableError(self.otherwise)
        elif session.subject.surrogate and self.against == DIFFERENCES and taken:
            raise NotComparedError("surrogate")


# -- results that are equal ------------------------------------------------------------------------
def _compared(session: Session, variant: Variant) -> Finding | None:
    """Compare a variant with what it has to give; return what is wrong, if anything is."""
    try:
        found = _found(session, variant)
        if found.wrong and variant.again is not None:
            other = variant.again()
            still = {} if other is None else dict(_found(session, other).wrong)
            found = found._replace(wrong=[pair for pair in found.wrong if pair[0] in still])
    except (ForwardError, BackwardError) as error:
        side = "forward" if isinstance(error, ForwardError) else "backward"
        if isinstance(error, variant.failures):
            return Finding((), (), (), f"{side} raises {variant.when}: {first_line(error)}")
        when = f"where memory is {variant.case}" if variant.case else variant.when
        session.note(f"{side} raises {when}: {first_line(error)}")
        return None
    return found if found.wrong else None


def _found(session: Session, v: Variant) -> Finding:
    got, expected = v.run(), v.expected() if callable(v.expected) else v.expected
    if not v.exact:
        return Finding(got, expected, unequal(session, got, expected, v.noise))
    pairs = enumerate(zip(got, expected, strict=True))
    wrong = [(i, np.ones(e.shape, bool)) for i, (g, e) in pairs if g.tobytes() != e.tobytes()]
    return Finding(got, expected, wrong)


def _report(session: Session, found: Finding, failed: Sequence[Variant]) -> None:
    """Report the variants that failed, with the numbers of the first."""
    v, arguments = failed[0], session.subject.names
    cases = ", ".join(variant.case for variant in failed if variant.case)
    more = f"; it fails where that is {cases}" if cases else ""
    name = v.cause if isinstance(v.cause, str) else "dtype"
    if found.raised:
        session.fail(Cause(name, found.raised + more, v.hint))
        return
    names = list(v.names or arguments)
    i, where = found.wrong[0]
    got, expected = found.got[i], found.expected[i]
    shown = not v.exact and got.shape == expected.shape
    arrays = {"expected": expected, "got": got, "wrong": where} if shown else {}
    wrong = dict.fromkeys(names[k] for k, _ in found.wrong)
    gradients = quoted((each for each in wrong if each in arguments), " and ")
    whole = [each for each in wrong if each not in arguments]
    said = " and ".join([*whole, *([f"the gradient of {gradients}"] if gradients else [])])
    cause = Cause(name, f"{said} {v.wrong} {v.when}{more}", v.hint)
    if callable(v.cause):
        cause = v.cause(found, i)
    session.fail(cause, names[i] if names[i] in arguments else "", **arrays)


# -- calls of their own ----------------------------------------------------------------------------
def _agrees(session: Session, situation: Situation) -> None:
    """Compare the gradients of one call with differences, and report those that are wrong."""
    other, when = situation.session, situation.when
    try:
        wrong = wrong_along(other)
    except BackwardError as error:
        cause = situation.raised(error)
        if isinstance(cause, Cause):
            session.fail(cause, situation=when)
        else:
            session.note(cause)
        return
    if wrong:
        other.subject.base = session.subject
        evidence = Evidence(other)
        causes = [(i, situation.cause(evidence, i)) for i in wrong]
        fail(session, evidence, [(i, cause) for i, cause in causes if cause is not None])
        doubtful = [evidence.names[i] for i, cause in causes if cause is None]
        if doubtful:
            session.note(f"the gradient of {quoted(doubtful)} is wrong {when}")
