"""The same call has the same gradients, whatever is called before it or between its passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.check.comparison import max_abs, unequal
from pullback.check.deadline import deadline
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.properties.reporting import names_of, report_first
from pullback.check.report import Cause
from pullback.check.session import Session, gradients
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies

_STATE_HINT = (
    "what backward needs goes through ctx.save_for_backward or ctx attributes, not through "
    "globals, the function, its class or a buffer used again"
)
_RANDOM_HINT = "make a generator with a fixed seed inside, or pass the noise as an argument"


def check_repeatable(session: Session) -> None:
    """Check that the same call has the same gradients, whatever is called before or between."""
    run, arrays = session.subject.run(copies(session.arrays)), session.arrays
    values = run.values()
    seeds = session.seeds("repeatable", values)
    try:
        once = gradients(run, seeds, arrays)
    except BackwardError as error:
        raise InapplicableError("backward raises") from error
    try:
        second = gradients(run, seeds, arrays)
    except BackwardError as error:
        text = "a second backward pass with the same saved values raises, though the first did not"
        session.fail(Cause("state", f"{text}: {first_line(error)}", _STATE_HINT))
        return
    if _unstable(session, second, once, "two backward passes with the same saved values differ"):
        return
    again = session.subject.run(copies(arrays))
    if any(unequal(a, b).any() for a, b in zip(again.values(), values, strict=True)):
        text = "two forward passes with the same inputs differ: no gradient can be checked"
        session.fail(Cause("state", text, _RANDOM_HINT))
        return
    third = gradients(again, seeds, arrays)
    if not _unstable(session, third, once, "two calls with the same inputs differ"):
        with deadline().as_time_allows():
            _check_interleaved(session, seeds, once)


def _unstable(session: Session, got: Arrays, expected: Arrays, text: str) -> bool:
    """Report gradients that are not equal; return whether there were any."""
    size = max_abs(*expected)
    pairs = enumerate(zip(got, expected, strict=True))
    found = [(i, unequal(g, e, size=size)) for i, (g, e) in pairs]
    wrong = [(i, where) for i, where in found if where.any()]
    if wrong:
        depends = f"{names_of(session, wrong)} depends on another call, or on chance"
        text = f"{text}: {depends} (state, a cache, a buffer)"
        report_first(session, Cause("state", text, _STATE_HINT), wrong, got, expected)
    return bool(wrong)


def _check_interleaved(session: Session, seeds: Arrays, once: Arrays) -> None:
    """Check that a call between forward and backward of another changes neither."""
    arrays, other_seeds, alone = _another_point(session)
    first = session.subject.run(copies(session.arrays))
    second = session.subject.run(copies(arrays))
    text = "the gradients of a call change when another call comes between its forward and its "
    if _unstable(session, gradients(first, seeds, once), once, f"{text}backward"):
        return
    text = "the gradients of a call change with the backward of an earlier one"
    if _unstable(session, gradients(second, other_seeds, alone), alone, text):
        return
    # In one pass the first gradient still waits when the second is computed.
    both = Run([*first.tensors, *second.tensors], [*first.outputs, *second.outputs], [])
    got = gradients(both, [*seeds, *other_seeds], [*once, *alone])
    text = "the gradients of two uses in one graph are not those of each alone"
    if not _unstable(session, got[: len(once)], once, text):
        _unstable(session, got[len(once) :], alone, text)


def _another_point(session: Session) -> tuple[list[Array], list[Array], list[Array]]:
    """Return other inputs of the same shapes, seeds for them and the gradients."""
    for move in _MOVES:
        arrays = [np.asarray(move(a)).astype(a.dtype) for a in session.arrays]
        try:
            run = session.subject.run(copies(arrays))
            seeds = session.seeds("another point", run.values())
            return arrays, seeds, gradients(run, seeds, arrays)
        except (ForwardError, BackwardError):
            continue
    return session.arrays, session.seeds(), session.gradients()


# Other inputs at which the function is likely to be defined; they keep a matrix positive definite.
_MOVES: tuple[Callable[[Array], Any], ...] = (
    lambda a: 0.9375 * a[(slice(None, None, -1),) * a.ndim],
    lambda a: 0.9375 * a,
)
