"""What forward's and backward's sources tell of wrong gradients.

The parts of forward through which they are wrong, and the changes that make them right.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.diagnosis.evidence import Evidence
from pullback.check.mending import Held, Mending, held, mendings
from pullback.check.report import Cause

_CALLS = 40  # the calls that may be made however long they take
# Causes that say what is wrong, and not which part of the formula it is.
_VAGUE = {"missing-term", "formula", "misplaced", "elements", "state", "output-ignored", "diagonal"}


def with_held(evidence: Evidence, causes: Sequence[tuple[int, Cause]]) -> list[tuple[int, Cause]]:
    """Return the causes for arguments, with the part of forward through which each is wrong."""
    vague = [i for i, cause in causes if cause.name in _VAGUE]
    found: dict[int, Held] = {}
    if vague and evidence.session.options.mend:
        with contextlib.suppress(OutOfTimeError), deadline().leaving_out(_CALLS):
            found = held(evidence, vague)
    return [(i, _located(cause, found.get(i), evidence.names[i])) for i, cause in causes]


def _located(cause: Cause, found: Held | None, name: str) -> Cause:
    """Return a cause with the part of forward that it is, in place of a condition beside it."""
    if found is None:
        return cause
    text = cause.text.split("; it is right if")[0]
    hint = f"what depends on `{name}` through one expression {found.verdict}\n{found}"
    return dataclasses.replace(cause, text=text, hint=hint)


def changes(evidence: Evidence, wrong: Sequence[int], names: Sequence[str]) -> dict[str, str]:
    """Return for arguments, by name, the changes of the source that make their gradients right.

    A change that mends several is told with the first of them. What is not found in time is left
    out.
    """
    found = _found(evidence, wrong) if evidence.session.options.mend else []
    texts: dict[str, str] = {}
    for name in names:
        texts[name] = "\n".join(str(each) for each in found if name in each.arguments)
        found = [each for each in found if name not in each.arguments]
    return texts


def _found(evidence: Evidence, wrong: Sequence[int]) -> list[Mending]:
    try:
        with deadline().leaving_out():
            return mendings(evidence, wrong)
    except OutOfTimeError:
        return []
    except Exception as error:  # a report without it is better than none
        evidence.session.report.notes.append(f"no change of the source was sought: {error!r}")
        return []
