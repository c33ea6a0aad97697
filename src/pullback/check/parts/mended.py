"""What forward's and backward's sources tell of wrong gradients.

The parts of forward that are taken for constants, and the changes that make the gradients right.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.diagnosis.evidence import Evidence
from pullback.check.mending import Mending, held, mendings
from pullback.check.report import Cause

_CALLS = 40  # the calls that may be made however long they take
# Causes that say what is wrong, and not which part of the formula it is.
_VAGUE = {"missing-term", "formula", "misplaced", "elements", "state", "output-ignored", "diagonal"}


def with_held(evidence: Evidence, causes: Sequence[tuple[int, Cause]]) -> list[tuple[int, Cause]]:
    """Return the causes for arguments, with the part of forward that each takes for a constant."""
    vague = [i for i, cause in causes if cause.name in _VAGUE]
    found: dict[int, str] = {}
    if vague and evidence.session.options.mend:
        with contextlib.suppress(OutOfTimeError), deadline().leaving_out(_CALLS):
            found = {i: str(each) for i, each in held(evidence, vague).items()}
    return [(i, _with_text(cause, found[i]) if i in found else cause) for i, cause in causes]


def _with_text(cause: Cause, text: str) -> Cause:
    """Return a cause with what is known beside it, in place of a condition that goes with it."""
    first = cause.text.split("; it is right if")[0]
    return dataclasses.replace(cause, text=f"{first}; {text}", hint="")


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
