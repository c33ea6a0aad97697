"""Writes: forward and backward must not write to memory that is not their own.

Owns the comparison of bytes before and after: of the arguments, of the output gradients, and of
what forward saved. That also shows writes that the library cannot see, through the memory of an
array. In-place methods on a gradient are not covered: the engine passes them a copy to work on.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.properties.saved import saved_arrays
from pullback.check.report import Cause
from pullback.check.session import Session, run_backward
from pullback.check.subject import Run, Subject
from pullback.check.values import Array, copies, host
from pullback.core.tensor.tensor import Tensor, box

_UNDECLARED = re.compile(r"forward changed its argument '(.+?)' by an inplace")
_DIRTY_HINT = "call ctx.mark_dirty({0}) and return {0}, or work on {0}.clone()"
_CLONE_HINT = "work on a copy: {0}.clone(), or numpy.array(...) of its memory"


def check_mutation(session: Session) -> None:
    """Check that nothing is written to except what forward declared."""
    run = _check_forward(session)
    if run is not None:
        _check_backward(session, run)


# -- forward ---------------------------------------------------------------------------------------
def _check_forward(session: Session) -> Run | None:
    """Run forward and compare its arguments; return the run if they are unchanged."""
    try:
        run = session.subject.run(copies(session.subject.arrays))
    except ForwardError as error:
        undeclared = _UNDECLARED.search(str(error))
        if undeclared is None:
            raise
        _report_forward(session, undeclared[1])
        return None
    changed = [
        (label, value)
        for (label, before), value in zip(
            session.subject.array_arguments(), run.passed_arrays, strict=True
        )
        if not getattr(value, "_version", 0) and _differ(host(value), before)
    ]
    for label, value in changed:
        if isinstance(value, Tensor):
            _report_forward(session, label)
        else:  # an array has no gradient: state that is kept between the calls, as a running mean
            session.note(f"forward writes to the array `{label}`: is it meant to?")
    return None if any(isinstance(value, Tensor) for _, value in changed) else run


def _report_forward(session: Session, label: str) -> None:
    text = f"forward changes the input `{label}` in place without mark_dirty"
    session.fail(Cause("mutation", text, _DIRTY_HINT.format(label)), label)


# -- backward --------------------------------------------------------------------------------------
def _check_backward(session: Session, run: Run) -> None:
    """Run backward twice on what forward saved, and compare all that it could write to."""
    seeds = session.seeds("mutation", run.values())
    watched = [*_inputs(session.subject, run), *saved_arrays(run)]
    before = [(label, array, host(array).copy()) for label, array in watched]
    passed = [box(session.subject.backend.from_numpy(g.copy())) for g in seeds]
    try:
        run_backward(lambda: run.vjp(passed, retain=True))
        run_backward(lambda: run.vjp(passed, retain=True))
    except BackwardError as error:
        if not _is_read_only(error):
            raise InapplicableError("backward raises") from error
        _report_read_only(session, watched, error)
        return
    if any(_differ(host(g), original) for g, original in zip(passed, seeds, strict=True)):
        _report_backward(session, "grad_output", "grad_output")
    reported: list[Any] = []
    for label, array, values in before:
        if _differ(host(array), values) and not any(_overlap(array, other) for other in reported):
            reported.append(array)
            _report_backward(session, label, label.split("`")[1])


def _inputs(subject: Subject, run: Run) -> list[tuple[str, Any]]:
    """Return the arrays of the inputs that no node saved."""
    saved = [array for _, array in saved_arrays(run)]
    labels = [label for label, _ in subject.array_arguments()]
    arrays = [v.data_array() if isinstance(v, Tensor) else v for v in run.passed_arrays]
    return [
        (f"the input `{label}`", array)
        for label, array in zip(labels, arrays, strict=True)
        if not any(_overlap(array, other) for other in saved)
    ]


def _report_backward(session: Session, what: str, name: str) -> None:
    hint = _CLONE_HINT.format(name if name.isidentifier() else "it")
    session.fail(Cause("mutation", f"backward changes {what} in place", hint))


def _is_read_only(error: BackwardError) -> bool:
    return re.search(r"read-?only", str(error)) is not None


def _report_read_only(session: Session, watched: Any, error: BackwardError) -> None:
    """Report a write to grad_output, which backward gets read-only, or to a read-only input."""
    others = [
        f" or {label}"
        for label, array in watched
        if isinstance(array, np.ndarray) and not array.flags.writeable
    ]
    reason = first_line(error)
    what = f"grad_output{''.join(others)} in place: its memory is read-only ({reason})"
    session.fail(Cause("mutation", f"backward changes {what}", _CLONE_HINT.format("grad_output")))


def _overlap(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    return a is b


def _differ(a: Array, b: Array) -> bool:
    """Return whether two arrays differ in any bit."""
    return a.tobytes() != b.tobytes()
