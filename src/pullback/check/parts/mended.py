"""The changes of the source that are reported beside wrong gradients."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.diagnosis.evidence import Evidence
from pullback.check.mending import Mending, mendings


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
