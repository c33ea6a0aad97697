"""How wrong gradients are reported, with what the source tells of them when somebody reads it.

The parts of forward through which they are wrong, and the changes that make them right, are sought
when a report is read, within what is left of the time limit.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from pullback.check.deadline import OutOfTimeError, deadline, limited
from pullback.check.explain.evidence import Evidence
from pullback.check.repair import held, mendings
from pullback.check.report import Cause
from pullback.check.session import Session
from pullback.core.graph.modes import RECORD, STATE

_CALLS = 40  # the calls that may be made however long they take
# Causes that say what is wrong, and not which part of the formula it is.
_VAGUE = {"missing-term", "formula", "misplaced", "elements", "state", "output-ignored", "diagonal"}


def fail(session: Session, evidence: Evidence, causes: Sequence[tuple[int, Cause]]) -> None:
    """Report why the gradients of some arguments are wrong."""
    seconds = deadline().end - time.perf_counter()
    vague = [i for i, cause in causes if cause.name in _VAGUE]
    told = [i for i, _ in causes]
    wrong = told + [i for i, w in enumerate(evidence.wrong) if w.any() and i not in told]
    found = functools.cache(lambda: _repairs(evidence, wrong, vague, seconds))
    for i, cause in causes:
        arrays = evidence.failure_arrays(i)
        session.fail(
            cause,
            evidence.names[i],
            find_repair=_of(found, i) if session.options.repair else None,
            **arrays,
        )


def _of(found: Callable[[], dict[int, str]], i: int) -> Callable[[], str]:
    return lambda: found().get(i, "")


def _repairs(
    evidence: Evidence, wrong: Sequence[int], vague: Sequence[int], seconds: float
) -> dict[int, str]:
    """Return for arguments what the sources tell; what is not found in time is left out."""
    mode = STATE.get()
    try:
        STATE.set(RECORD)  # whatever the reader's mode
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),  # trials leave the domain, as those of the check do
            limited(max(seconds, 0.0)),
            deadline().leaving_out(_CALLS),
        ):
            warnings.simplefilter("ignore")
            parts = held(evidence, vague) if vague else {}
            changes = mendings(evidence, wrong)
    except OutOfTimeError:
        return {}
    except Exception as error:  # a report without it is better than none
        return {wrong[0]: f"no change of the source was sought: {error!r}"}
    finally:
        STATE.set(mode)
    texts: dict[int, str] = {}
    for i in wrong:
        name = evidence.names[i]
        own = [str(each) for each in changes if name in each.arguments]
        if i in parts:
            own.insert(
                0, f"what depends on `{name}` through one expression {parts[i].verdict}\n{parts[i]}"
            )
        texts[i] = "\n".join(own)
        changes = [each for each in changes if name not in each.arguments]
    return texts
