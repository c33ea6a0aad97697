"""Several outputs: the gradient is the sum of the gradients through each output alone."""

from __future__ import annotations

import itertools

import numpy as np

from pullback.check.exceptions import BackwardError, InapplicableError, first_line
from pullback.check.properties.reporting import report_if_different
from pullback.check.report import Cause
from pullback.check.session import Session, gradients
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies
from pullback.core.tensor.tensor import box


def check_outputs(session: Session) -> None:
    """Check each output alone, and one array as the gradient of two outputs."""
    run = session.subject.run(copies(session.arrays))
    values = run.values()
    count = len(values)
    if count < 2:
        raise InapplicableError("there is one differentiable output")
    seeds = session.seeds("outputs", values)
    whole = gradients(run, seeds, session.arrays)
    total = [np.zeros_like(g) for g in whole]
    for k in range(count):
        alone = _check_alone(session, run, seeds, k)
        if alone is None:
            return
        total = [t + np.asarray(g) for t, g in zip(total, alone, strict=True)]
    text = "is not the sum of those through each output alone"
    if not report_if_different(session, "output-ignored", text, whole, total, seeds):
        _check_shared(session, run, seeds)


def _check_alone(session: Session, run: Run, seeds: Arrays, k: int) -> list[Array] | None:
    """Check one output, the others' gradients left out or zero; return the gradients."""
    padded = [g if m == k else np.zeros_like(g) for m, g in enumerate(seeds)]
    alone: list[Array | None] = [g if m == k else None for m, g in enumerate(seeds)]
    situation = f"only output {k} of {len(seeds)} has a gradient"
    found = []
    for cotangents, what in ((padded, "zeros"), (alone, "left out, None or zeros")):
        try:
            found.append(gradients(run, cotangents, session.arrays))
        except BackwardError as error:
            reason = first_line(error)
            text = f"backward raises when {situation}, the others being {what}: {reason}"
            hint = "test each gradient for None, or leave out ctx.set_materialize_grads(False)"
            session.fail(Cause("zero-grad", text, hint))
            return None
    expected, got = found
    text = f"depends on whether the others are left out or zero when {situation}"
    return None if report_if_different(session, "zero-grad", text, got, expected, padded) else got


def _check_shared(session: Session, run: Run, seeds: Arrays) -> None:
    """Check that outputs of equal shape may have one array as their gradient."""
    for j, k in itertools.combinations(range(len(seeds)), 2):
        if seeds[j].shape != seeds[k].shape or seeds[j].dtype != seeds[k].dtype:
            continue
        expected = gradients(run, [seeds[j], seeds[j].copy()], session.arrays, outputs=[j, k])
        one = box(session.subject.backend.from_numpy(seeds[j].copy()))
        got = gradients(run, [one, one], session.arrays, outputs=[j, k])
        text = f"is wrong when outputs {j} and {k} have the same tensor as their gradient"
        shared = [seeds[j] if m in (j, k) else None for m in range(len(seeds))]
        if report_if_different(session, "mutation", text, got, expected, shared):
            return
