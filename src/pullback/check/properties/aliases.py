"""One tensor passed for two arguments: its gradient is the sum of the two arguments' gradients."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from pullback.check.comparison import beyond_rounding, max_abs, rounding_noise
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.numerical import coordinates, joined
from pullback.check.properties.first import agrees
from pullback.check.report import Cause, Report
from pullback.check.session import Line, Session, away_from_zero, gradients
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, copies

_MAX_PAIRS = 6


def check_aliases(session: Session) -> None:
    """Check f(x, x): its gradient is the sum of those of f(x, y) at y = x."""
    subject = session.subject
    if session.outputs and subject.works_in_place:  # known only after the first run
        raise InapplicableError(f"{subject.name} works in place on an argument")
    pairs = list(itertools.islice(_pairs(session), _MAX_PAIRS))
    if not pairs:
        raise InapplicableError("no two arguments have one shape and dtype")
    for i, j in pairs:
        _check_pair(session, i, j)


def _pairs(session: Session) -> Iterator[tuple[int, int]]:
    for (i, a), (j, b) in itertools.combinations(enumerate(session.arrays), 2):
        if a.shape == b.shape and a.dtype == b.dtype:
            yield i, j


def _check_pair(session: Session, i: int, j: int) -> None:
    subject, arrays = session.subject, list(session.arrays)
    arrays[j] = arrays[i]
    try:
        seeds = session.seeds("aliases", subject.run(copies(arrays)).values())
        expected = _summed(subject, arrays, i, j, seeds)
    except (ForwardError, BackwardError):
        return  # not defined for equal arguments
    names = _both(subject, i, j)
    try:
        got = _same_tensor(subject, copies(arrays), i, j, seeds)
    except (ForwardError, BackwardError) as error:
        reason = first_line(error)
        text = f"one tensor for both {names} is an error, equal ones are not: {reason}"
        session.fail(Cause("same-tensor", text), subject.names[i])
        return

    def measure_noise() -> list[float]:
        return rounding_noise(lambda xs, gs: _summed(subject, xs, i, j, gs), arrays, seeds)

    differing = beyond_rounding(session, got, expected, seeds, measure_noise)
    for k, wrong in differing[:1]:
        text = f"the gradient is wrong when one tensor is passed for both {names}"
        hint = "decide by ctx.needs_input_grad and the arguments' positions, not by identity"
        argument = subject.names[k + (k >= j)]
        cause = Cause("same-tensor", text, hint)
        session.fail(cause, argument, expected=expected[k], got=got[k], wrong=wrong)
    if not differing:
        _check_together(session, arrays, i, j, measure_noise)


def _check_together(
    session: Session, arrays: Arrays, i: int, j: int, measure_noise: Callable[[], list[float]]
) -> None:
    """Compare the sum of two gradients with the slope as two equal arguments move together.

    Where they are equal, each alone may be at a kink, as those of a maximum are. Together they move
    along it, and only the sum of the two gradients counts.
    """
    subject = session.subject.with_arrays(arrays)
    # Looser than elsewhere: a rule that is wrong at ties is wrong by whole terms.
    options = dataclasses.replace(session.options, rtol=max(1e-3, session.rtol))
    other = Session(subject, options, Report(subject.name, options.seed))
    direction = away_from_zero(coordinates(other.wide[i]).size, session.rng(f"together {i} {j}"))
    try:
        line, both, seeds = _together(other, i, j, direction)
    except (ForwardError, BackwardError):
        return
    if not np.isfinite(other.center).all() or other.is_kinked(line, seeds):
        return
    if not np.isfinite(both[i]).all():  # where no derivative exists, of a norm say, as together
        return
    if agrees(other, line, both, seeds):
        return
    noise = measure_noise()[i] * float(np.sum(np.abs(line.direction)))
    other.options = dataclasses.replace(options, atol=other.atol + noise)
    if not agrees(other, line, both, seeds) and _is_right_beside(other, i, j, direction):
        text = (
            f"the gradients of {_both(subject, i, j)} do not add up to the derivative where the "
            "two are equal (ties): as both move together, the outputs change otherwise"
        )
        hint = "at a tie give the gradient to one of them, or half of it to each"
        session.fail(Cause("ties", text, hint), session.subject.names[i])


def _together(
    session: Session, i: int, j: int, direction: Array
) -> tuple[Line, list[Array], Arrays]:
    """Measure the slope as two arguments move together; return it, the gradients and the seeds.

    The gradient at index `i` is the sum of the two.
    """
    session.center = joined(session.subject.values(session.wide))
    seeds, got = session.seeds(), [coordinates(g) for g in session.gradients()]
    line = session.measure_together((i, j), direction)
    return line, [g if k != i else g + got[j] for k, g in enumerate(got)], seeds


def _is_right_beside(tied: Session, i: int, j: int, direction: Array) -> bool:
    """Return whether the gradients are right where the two arguments are nearly equal."""
    arrays = list(tied.arrays)
    arrays[j] = (arrays[j] * 1.01 + 1e-3 * max_abs(arrays[j])).astype(arrays[j].dtype)
    near = Session(tied.subject.with_arrays(arrays), tied.options, Report(tied.subject.name, 0))
    try:
        return agrees(near, *_together(near, i, j, direction))
    except (ForwardError, BackwardError):
        return True


def _both(subject: Subject, i: int, j: int) -> str:
    return f"`{subject.names[i]}` and `{subject.names[j]}`"


def _summed(subject: Subject, arrays: Arrays, i: int, j: int, seeds: Arrays) -> list[Array]:
    """Return the gradients with those of arguments `i` and `j` added up, at index `i`."""
    found = gradients(subject.run(copies(arrays)), seeds, arrays)
    found[i] = found[i] + found[j]
    return [g for k, g in enumerate(found) if k != j]


def _same_tensor(subject: Subject, arrays: Arrays, i: int, j: int, seeds: Arrays) -> list[Array]:
    """Return the gradients where one tensor is both argument `i` and `j`."""
    leaves = subject.tensors(arrays, None)
    leaves[subject.tracked[j]] = leaves[subject.tracked[i]]
    run = subject.run_leaves(leaves)
    del run.tensors[j]
    return gradients(run, seeds, [a for k, a in enumerate(arrays) if k != j])
