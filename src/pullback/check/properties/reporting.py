"""How the parts that compare two gradients of the same call report what differs."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.check.comparison import differing_gradients
from pullback.check.naming import quoted
from pullback.check.report import Cause
from pullback.check.session import Session
from pullback.check.values import Array, Arrays

Differences = Sequence[tuple[int, Array]]  # the arguments whose gradients differ, and where


def names_of(session: Session, wrong: Differences) -> str:
    """Return the names of the arguments whose gradients differ, as a sentence shows them."""
    return quoted((session.subject.names[i] for i, _ in wrong), " and ")


def report_first(
    session: Session, cause: Cause, wrong: Differences, got: Arrays, expected: Arrays
) -> None:
    """Report one cause, with the numbers of the first argument that shows it."""
    i, where = wrong[0]
    session.fail(cause, session.subject.names[i], expected=expected[i], got=got[i], wrong=where)


def report_if_different(
    session: Session,
    cause: str,
    text: str,
    got: Arrays,
    expected: Arrays,
    seeds: Sequence[Array | None],
    hint: str = "",
) -> bool:
    """Report gradients that differ beyond rounding; return whether there were any.

    `text` completes the sentence "the gradient of `x` ...".
    """
    wrong = differing_gradients(session, got, expected, seeds)
    if wrong:
        sentence = f"the gradient of {names_of(session, wrong)} {text}"
        report_first(session, Cause(cause, sentence, hint), wrong, got, expected)
    return bool(wrong)
