"""Second derivatives: the gradient of the gradient, against differences of the gradient.

The first derivative is a function like any other: of the arguments and of the gradients of the
outputs. Differentiated with backward recorded, it has to agree with its own differences, which are
taken of backward as it is without recording. So nothing here measures or compares anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.check.comparison import largest, unequal
from pullback.check.diagnosis.evidence import Evidence
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.parts.recheck import wrong_along
from pullback.check.report import Cause, Report
from pullback.check.session import Session
from pullback.check.subject import Subject
from pullback.core.backward.api import grad
from pullback.core.graph.modes import enable_grad, is_grad_enabled
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import GraphError

# A second derivative amplifies rounding; a wrong one is wrong by much.
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
        _tell_raised(session, error)
        return
    if not all(bool(np.isfinite(v).all()) for v in (other.center, *other.arrays)):
        raise InapplicableError("the gradients are not all finite here")
    plain = other.subject.values(other.arrays)
    for name, now, then in zip(session.subject.names, recorded, plain, strict=True):
        if unequal(now, then, other.rtol).any():
            text = (
                f"the gradient of `{name}` is another one when backward is recorded "
                "(create_graph=True)"
            )
            session.fail(Cause("second-order", text, _MARK), name, expected=then, got=now)
            return
    try:
        wrong = wrong_along(other)
    except BackwardError as error:
        _tell_raised(session, error)
        return
    for i in wrong:
        _tell_wrong(session, Evidence(other), i)


def _session_of_gradient(session: Session) -> Session:
    """Return a session whose function is the gradient of the session's function."""
    arrays, count = session.wide, len(session.wide)
    run = session.subject.run(arrays)
    seeds = session.seeds(outputs=run.values())
    place = session.subject.place
    tensors = tuple(box(place.put(array)) for array in (*arrays, *seeds))
    subject = Subject(_gradient_of(session.subject), tensors)
    subject.name = f"the gradient of {session.subject.name}"
    several = len(seeds) > 1
    given = [f"the gradient of output {k}" if several else "grad_output" for k in range(len(seeds))]
    subject.names = [*session.subject.names, *given]
    subject.kept = list(range(count))  # also those that backward gives no history
    rtol = _RTOL["double" if session.eps < _DOUBLE else "single"]
    rtol, atol = max(rtol, session.options.rtol or 0.0), 1e-12 * max(map(largest, seeds), default=0)
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
                (out, g * 1)  # no leaf: a rule may change it in place
                for out, g in zip(_outputs(subject, xs), tensors[count:], strict=True)
                if out.requires_grad
            ]
            if not pairs:
                return [t.new_zeros(t.shape) for t in xs]
            outputs, given = zip(*pairs, strict=True)
            found = grad(outputs, xs, given, create_graph=recorded, allow_unused=True)
        return [x.new_zeros(x.shape) if g is None else g for g, x in zip(found, xs, strict=True)]

    return gradient


def _outputs(subject: Subject, xs: list[Any]) -> list[Tensor]:
    """Run the function on these tensors and return what is differentiated of its results."""
    leaves = subject.tensors(subject.arrays, ())
    for i, x in zip(subject.tracked, xs, strict=True):
        leaves[i] = x.clone() if subject.dirty else x  # a leaf cannot be changed in place
    found = subject.results(leaves)
    return found if subject.kept is None else [found[k] for k in subject.kept]


def _tell_raised(session: Session, error: ForwardError | BackwardError) -> None:
    """Report an exception in the recorded backward, or in that of its results."""
    cause = error.__cause__
    if isinstance(cause, GraphError) and "marked with @once_differentiable" in str(cause):
        raise InapplicableError(_ONCE)
    _, *rest = str(error).split("\n")
    when = "when it is recorded (create_graph=True)"
    if isinstance(error, BackwardError):
        when = "when its result is differentiated again"
    text = f"second derivative: backward raises {when}: {first_line(error)}"
    told = [line.removeprefix("hint: ") for line in rest if "once_differentiable" in line]
    hint = told[0] if told else _MARK
    session.fail(Cause("second-order", text, hint))


def _tell_wrong(session: Session, evidence: Evidence, i: int) -> None:
    name = evidence.names[i]
    text = (
        f"the second derivative in `{name}` is wrong although the first is right: backward leaves "
        "the recorded operations (detach, numpy, no_grad)"
    )
    session.fail(Cause("second-order", text, _MARK), name, **evidence.compared(i))
