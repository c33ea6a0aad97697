"""The engine of the properties: it makes the variants of a call, compares, and reports.

The result of a variant is known. Either it is that of the call itself, or of another way to compute
it: a `Variant`, compared up to rounding. Or its gradients are compared with differences: a
`Situation`. A property ends with what fails first: the rest would mostly show the same mistake.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pullback.check.comparison import Situation, unequal, wrong_at
from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.explain import cause_of, cause_of_exception
from pullback.check.explain.evidence import Evidence
from pullback.check.repair import fail
from pullback.check.report import Cause, InapplicableError, Status, Unchecked, first_line
from pullback.check.session import Session
from pullback.check.subject import BackwardError, ForwardError
from pullback.check.values import Array, Arrays

_BROADCAST = "shapes that broadcast"  # of guessed arguments: told once
RAISED: tuple[type[Exception], ...] = (ForwardError, BackwardError)


class Variant(NamedTuple):
    """A variant of a call, and what it has to give."""

    when: str  # ends the sentence "the gradient of `x` is wrong ..."
    run: Callable[[], Arrays]
    expected: Arrays
    cause: str  # its name
    hint: str = ""
    names: Sequence[str] = ()  # of the arrays: arguments for gradients; by default all of these
    wrong: str = "is wrong"
    noise: Callable[[], Sequence[Array | float]] | None = None  # how far rounding moves each array
    raised: tuple[type[Exception], ...] = RAISED  # which are failures; others are notes: loud


class Part(NamedTuple):
    """One part of the check: a property of the variants of a call."""

    name: str  # as `only` and `skip` take it
    title: str  # as reports print it
    # What yields the variants. A `Cause` among them is a failure, a text is shown in the table.
    calls: Callable[[Session], Iterator[Any]]
    otherwise: str = ""  # why the property does not apply where there is no variant
    essential: bool = False  # whether the later parts are meaningless once it failed
    fast: bool = False  # whether it is part of the fast check

    def run(self, session: Session) -> tuple[Status, str]:
        """Check the property; return the status, and why, or what the table says beside."""
        session.part, report = self.name, session.report
        before, kinds, said = len(report.failures), set(), []
        try:
            with contextlib.ExitStack() as inside:
                if not self.essential:
                    inside.enter_context(deadline().leaving_out())
                    inside.enter_context(warnings.catch_warnings())
                    warnings.simplefilter("ignore")  # means of empty arrays, overflow are tried
                for variant in self.calls(session):
                    kinds.add(type(variant))
                    if isinstance(variant, str):
                        said.append(variant)
                    else:
                        _JUDGES[type(variant)](session, variant)
                    if len(report.failures) > before:
                        break
        except InapplicableError as reason:
            return reason.status, str(reason)
        except OutOfTimeError:  # of an essential part only what may be left out is
            over = deadline().is_over()
            if over or not (kinds and self.essential):
                return Status.NOT_RUN if over else Status.SKIPPED, deadline().reason()
        except RAISED as error:
            side = "backward" if isinstance(error, BackwardError) else "forward"
            session.fail(Cause("raised", f"{side} raises: {first_line(error)}"))
        if len(report.failures) > before:
            return Status.FAILED, ""
        if not kinds and self.otherwise:
            return Status.INAPPLICABLE, self.otherwise
        if Situation in kinds and session.subject.surrogate:
            return Status.NOT_COMPARED, session.subject.surrogate
        return Status.PASSED, "; ".join(said)


def fits(session: Session, variant: Variant) -> bool:
    """Return whether a variant gives what it has to."""
    try:
        return not unequal(session, variant.run(), variant.expected, variant.noise)
    except RAISED:
        return False


def _equals(session: Session, variant: Variant) -> None:
    """Compare a variant with what it has to give, and report the failure if it is another.

    What forward raises counts for an operation alone: another function may differentiate inside.
    """
    arguments = session.subject.names
    try:
        results = variant.run()
        found = dict(unequal(session, results, variant.expected, variant.noise))
    except RAISED as error:
        forward = isinstance(error, ForwardError)
        side = "forward" if forward else "backward"
        raised = f"{side} raises {variant.when}: {first_line(error)}"
        if isinstance(error, variant.raised) and (session.subject.is_op or not forward):
            session.fail(Cause(variant.cause, raised, variant.hint))
        else:
            session.note(raised)
        return
    if found:
        names, i = list(variant.names or arguments), min(found)
        each = dict.fromkeys(names[k] for k in found)
        said = [f"the gradient of `{name}`" if name in arguments else name for name in each]
        text = f"{' and '.join(said)} {variant.wrong} {variant.when}"
        cause = Cause(variant.cause, text, variant.hint)
        arrays = {"expected": variant.expected[i], "got": results[i], "wrong": found[i]}
        same = results[i].shape == found[i].shape
        argument = names[i] if names[i] in arguments else ""
        session.fail(cause, argument, **(arrays if same else {}))


def _agrees(session: Session, situation: Situation) -> None:
    """Compare the gradients of one call with differences, and report those that are wrong.

    What backward raises is loud, and noted for a size alone. A gradient of another shape than its
    argument counts where it is explained, unless the rule is meant for the shape of the user's.
    Whether guessed arguments are meant to broadcast nobody said.
    """
    other, when, cause, hint, explained = situation
    try:
        wrong = wrong_at(other)
    except BackwardError as error:
        came = getattr(error.__cause__, "came", None)
        unfit = came is not None and came not in [a.shape for a in session.arrays]
        if unfit and explained and not session.options.guessed:
            session.fail(cause_of_exception(error), situation=when)
        elif explained:
            session.note(f"forward works {when}, but backward raises: {first_line(error)}")
        elif came is not None and session.options.guessed:
            why = f"backward raises {when}: {cause_of_exception(error).text}"
            hint = f"{hint}; if all have one shape, describe the inputs"
            if all(each.what != _BROADCAST for each in session.report.unchecked):
                session.report.unchecked.append(Unchecked(_BROADCAST, why, hint))
        return
    if wrong:
        other.subject.base = session.subject
        evidence, causes = Evidence(other), []
        for i in wrong:
            text = f"the gradient of `{evidence.names[i]}` is wrong {when}, although right here"
            found = cause_of(evidence, i) if explained else Cause(cause, "")
            text += f": {found.text}" if explained else ""
            causes.append((i, Cause(cause, text, found.hint or hint)))
        fail(session, evidence, causes)


# What judges each kind of variant.
_JUDGES: dict[type, Callable[[Session, Any], None]]
_JUDGES = {Cause: Session.fail, Variant: _equals, Situation: _agrees}
