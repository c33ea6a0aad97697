"""Second derivatives: the gradient of the gradient, against differences of the gradient.

The gradient is a function like any other, of the arguments and of the output gradients. Its own
gradient, computed with backward recorded, has to agree with differences of backward without
recording. So this part checks first derivatives of another function, by the same code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.check.comparison import max_abs, unequal
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.explain.evidence import Evidence
from pullback.check.properties.recheck import wrong_along
from pullback.check.properties.saved import saved_arrays
from pullback.check.report import Cause, Report
from pullback.check.session import Session
from pullback.check.subject import Subject
from pullback.check.values import host
from pullback.core.backward.api import grad
from pullback.core.graph.modes import enable_grad, is_grad_enabled
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import GraphError

# A second derivative amplifies rounding; the error of a wrong one is large.
_RTOL = {"double": 1e-4, "single": 5e-2}
_DOUBLE = 1e-12
_ONCE = "marked once_differentiable"
_MARK = "write it with tensor operations or mark it pb.once_differentiable"


def check_second_order(session: Session) -> None:
    """Check second derivatives."""
    if getattr(session.subject.fn, "once", False):
        raise InapplicableError(_ONCE)
    other = _session_of_gradient(session)
    try:
        recorded = other.outputs
    except ForwardError as error:
        _report_raised(session, error)
        return
    if not all(bool(np.isfinite(v).all()) for v in (other.center, *other.arrays)):
        raise InapplicableError("the gradients are not all finite here")
    plain = other.subject.values(other.arrays)
    for name, now, then in zip(session.subject.names, recorded, plain, strict=True):
        if unequal(now, then, other.rtol).any():
            text = (
                f"the gradient of `{name}` is different when backward is recorded "
                "(create_graph=True)"
            )
            session.fail(Cause("second-order", text, _MARK), name, expected=then, got=now)
            return
    try:
        wrong = wrong_along(other)
    except BackwardError as error:
        _report_raised(session, error)
        return
    for i in wrong:
        _report_wrong(session, Evidence(other), i)


def _session_of_gradient(session: Session) -> Session:
    """Return a session whose function is the gradient of the session's function."""
    arrays, count = session.wide, len(session.wide)
    run = session.subject.run(arrays)
    seeds = session.seeds(outputs=run.values())
    backend = session.subject.backend
    tensors = tuple(box(backend.from_numpy(array)) for array in (*arrays, *seeds))
    subject = Subject(_gradient_of(session.subject), tensors)
    subject.name = f"the gradient of {session.subject.name}"
    several = len(seeds) > 1
    labels = [
        f"the gradient of output {k}" if several else "grad_output" for k in range(len(seeds))
    ]
    subject.names = [*session.subject.names, *labels]
    subject.output_indices = list(range(count))  # also those that backward computes without a graph
    rtol = _RTOL["double" if session.eps < _DOUBLE else "single"]
    rtol, atol = max(rtol, session.options.rtol or 0.0), 1e-12 * max(map(max_abs, seeds), default=0)
    options = dataclasses.replace(session.options, rtol=rtol, atol=max(atol, session.atol))
    return Session(subject, options, Report(subject.name, options.seed))


def _gradient_of(subject: Subject) -> Callable[..., list[Tensor]]:
    """Return the gradient as a function of the differentiated arguments and output gradients."""
    count = len(subject.tracked)

    def gradient(*tensors: Tensor) -> list[Tensor]:
        recorded = is_grad_enabled()
        with enable_grad():
            xs = [t if t.requires_grad else t.detach().requires_grad_() for t in tensors[:count]]
            pairs = [
                (out, g * 1)  # not a leaf: a rule may change it in place
                for out, g in zip(_outputs(subject, xs), tensors[count:], strict=True)
                if out.requires_grad
            ]
            if not pairs:
                return [t.new_zeros(t.shape) for t in xs]
            outputs, seeds = zip(*pairs, strict=True)
            found = grad(outputs, xs, seeds, create_graph=recorded, allow_unused=True)
        return [x.new_zeros(x.shape) if g is None else g for g, x in zip(found, xs, strict=True)]

    return gradient


def _outputs(subject: Subject, xs: list[Any]) -> list[Tensor]:
    """Run the function on these tensors and return its differentiated results."""
    leaves = subject.tensors(subject.arrays, ())
    for i, x in zip(subject.tracked, xs, strict=True):
        leaves[i] = x.clone() if subject.works_in_place else x  # a leaf cannot be changed in place
    found = subject.results(leaves)
    return found if subject.output_indices is None else [found[k] for k in subject.output_indices]


def _report_raised(session: Session, error: ForwardError | BackwardError) -> None:
    """Report an exception in the recorded backward, or in the backward of its results."""
    cause = error.__cause__
    if isinstance(cause, GraphError) and "marked with @once_differentiable" in str(cause):
        raise InapplicableError(_ONCE)
    if isinstance(cause, GraphError) and "the saved value" in str(cause) and _saves_steps(session):
        session.note(f"second derivatives raise: {first_line(error)} It does not change here")
        raise InapplicableError(
            "a saved value that forward computed, and that does not change here"
        )
    _, *rest = str(error).split("\n")
    when = "when it is recorded (create_graph=True)"
    if isinstance(error, BackwardError):
        when = "when its result is differentiated again"
    text = f"second derivative: backward raises {when}: {first_line(error)}"
    advice = [line.removeprefix("hint: ") for line in rest if "once_differentiable" in line]
    hint = advice[0] if advice else _MARK
    session.fail(Cause("second-order", text, hint))


def _saves_steps(session: Session) -> bool:
    """Return whether what forward computed and saved stays the same as the arguments are moved."""
    rng, here = session.rng("steps"), session.wide
    near = [(a * (1 + 1e-7 * rng.uniform(-1, 1, a.shape))).astype(a.dtype) for a in here]
    found = []
    for arrays in (here, near):
        run = session.subject.run(arrays)
        known = [*arrays, *run.values()]
        values = [host(value) for _, value in saved_arrays(run)]
        found.append([v for v in values if not any(np.array_equal(v, k) for k in known)])
    return len(found[0]) == len(found[1]) and all(map(np.array_equal, *found))


def _report_wrong(session: Session, evidence: Evidence, i: int) -> None:
    name = evidence.names[i]
    text = (
        f"the second derivative in `{name}` is wrong although the first is right: backward leaves "
        "the recorded operations (detach, numpy, no_grad)"
    )
    session.fail(Cause("second-order", text, _MARK), name, **evidence.failure_arrays(i))
