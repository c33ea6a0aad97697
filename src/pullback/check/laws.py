"""What every backward obeys, whatever it computes: it repeats, it is linear, and it adds up.

Owns the four laws, each a part of the check. What is the same up to rounding, comparing.py decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.comparing import beyond_rounding, differs, largest, noise, unequal, unlike
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.naming import quoted
from pullback.check.report import Cause
from pullback.check.session import Session, gradients
from pullback.check.subject import Run, Subject
from pullback.check.values import Array, Arrays, copies
from pullback.core.tensor.tensor import box

_STATE_HINT = (
    "what backward needs goes through ctx.save_for_backward or ctx attributes, not through "
    "globals, the function, its class or a buffer used again"
)
_RANDOM_HINT = "make a generator with a fixed seed inside, or pass the noise as an argument"
_MOST_PAIRS = 6


# -- telling ---------------------------------------------------------------------------------------
def _report(
    session: Session, cause: Cause, wrong: list[tuple[int, Array]], got: Arrays, expected: Arrays
) -> None:
    """Report one cause, with the numbers of the first argument that shows it."""
    i, where = wrong[0]
    session.fail(cause, session.subject.names[i], expected=expected[i], got=got[i], wrong=where)


def _tell_unlike(
    session: Session,
    cause: str,
    text: str,
    got: Arrays,
    expected: Arrays,
    seeds: Sequence[Array | None],
) -> bool:
    """Report gradients that differ beyond rounding; return whether there were any."""
    wrong = unlike(session, got, expected, seeds)
    if wrong:
        named = f"the gradient of {_named(session, wrong)} {text}"
        _report(session, Cause(cause, named), wrong, got, expected)
    return bool(wrong)


def _named(session: Session, wrong: list[tuple[int, Array]]) -> str:
    return quoted((session.subject.names[i] for i, _ in wrong), " and ")


# -- repeating -------------------------------------------------------------------------------------
def repeatable(session: Session) -> None:
    """Check that the same call gives the same gradients, whatever was called before or between."""
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
        _check_interleaved(session, seeds, once)


def _unstable(session: Session, got: Arrays, expected: Arrays, text: str) -> bool:
    """Report gradients that are not the same; return whether there were any."""
    size = largest(*expected)
    pairs = enumerate(zip(got, expected, strict=True))
    found = [(i, unequal(g, e, size=size)) for i, (g, e) in pairs]
    wrong = [(i, where) for i, where in found if where.any()]
    if wrong:
        text = f"{text}: {_named(session, wrong)} depends on another call, or on chance"
        _report(session, Cause("state", text, _STATE_HINT), wrong, got, expected)
    return bool(wrong)


def _check_interleaved(session: Session, seeds: Arrays, once: Arrays) -> None:
    """Check that a call between forward and backward of another changes neither."""
    arrays, other_seeds, alone = _another_point(session)
    first = session.subject.run(copies(session.arrays))
    second = session.subject.run(copies(arrays))
    text = "the gradients of a call change when another call comes between its forward and its "
    if not _unstable(session, gradients(first, seeds, once), once, f"{text}backward"):
        _unstable(
            session,
            gradients(second, other_seeds, alone),
            alone,
            "the gradients of a call change with the backward of an earlier one",
        )


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


# Other inputs of which the function is likely to be defined; a positive definite matrix stays so.
_MOVES: tuple[Callable[[Array], Any], ...] = (
    lambda a: 0.9375 * a[(slice(None, None, -1),) * a.ndim],
    lambda a: 0.9375 * a,
)


# -- linearity -------------------------------------------------------------------------------------
def linear(session: Session) -> None:
    """Check that backward is linear in grad_output."""
    run = session.subject.run(copies(session.arrays))
    values = run.values()
    g, h = session.seeds("linear", values), session.seeds("linear, other", values)

    def vjp(seeds: Arrays) -> list[Array]:
        return gradients(run, seeds, session.arrays)

    at_g = vjp(g)
    if not _check_zero(session, vjp, g, at_g):
        return
    for scale in (2.0, -1.0, 1e-3, 1e3):
        got, scaled = vjp(_scaled(g, scale)), _scaled(at_g, scale)
        wrong = unlike(session, got, scaled, _scaled(g, scale))
        if wrong:
            what = f"not linear in grad_output: {_how(session, got, at_g, scale)}"
            cause = Cause("nonlinear", f"the gradient of {_named(session, wrong)} is {what}")
            _report(session, cause, wrong, got, scaled)
            return
    _check_sum(session, vjp, (g, h), at_g)


def _check_sum(
    session: Session,
    vjp: Callable[[Arrays], list[Array]],
    seeds: tuple[list[Array], list[Array]],
    at_g: list[Array],
) -> None:
    """Check that vjp(a g + b h) = a vjp(g) + b vjp(h)."""
    g, h = seeds
    a, b = 0.75, -1.5
    mixed = [_combined(a, x, b, y) for x, y in zip(g, h, strict=True)]
    expected = [_combined(a, x, b, y) for x, y in zip(at_g, vjp(h), strict=True)]
    text = "is not linear in grad_output: that of a sum is not the sum of those of its terms"
    _tell_unlike(session, "nonlinear", text, vjp(mixed), expected, mixed)


def _check_zero(
    session: Session, vjp: Callable[[Arrays], list[Array]], seeds: Arrays, at_g: Arrays
) -> bool:
    """Check that no gradient comes of none; say whether the rest is worth a look."""
    zeros = [np.zeros_like(g) for g in seeds]
    try:
        got = vjp(zeros)
    except BackwardError as error:
        reason = first_line(error)
        session.fail(Cause("zero-grad", f"backward raises when grad_output is zero: {reason}"))
        return False
    # Where a derivative is infinite, nothing times it is not a number, in a right backward too.
    wrong = [(i, (z != 0) & np.isfinite(e)) for i, (z, e) in enumerate(zip(got, at_g, strict=True))]
    wrong = [(i, where) for i, where in wrong if where.any()]
    if not wrong:
        return True
    nan = any(np.isnan(got[i][where]).any() for i, where in wrong)
    words = "NaN" if nan else "not zero: a term is not multiplied by grad_output"
    name, cause = _named(session, wrong), "zero-grad" if nan else "nonlinear"
    text = f"the gradient of {name} is not linear in grad_output: where that is zero, it is {words}"
    _report(session, Cause(cause, text), wrong, got, [np.zeros_like(z) for z in got])
    return False


def _how(session: Session, got: Arrays, at_g: Arrays, scale: float) -> str:
    """Say how the gradient changes as grad_output is multiplied by `scale`."""
    known = [(1.0, "only its absolute value counts")]
    if scale > 0:
        known = [(scale * scale, "it is multiplied by it twice"), (1.0, "its size does not count")]
    for factor, words in known:
        pairs = zip(got, at_g, strict=True)
        if not any(differs(x, factor * e, session.rtol).any() for x, e in pairs):
            return words
    if abs(scale) in (1e-3, 1e3):
        return f"{scale:g} times that does not give {scale:g} times the gradient (a bound, an eps?)"
    return f"{scale:g} times that does not give {scale:g} times the gradient"


def _scaled(arrays: Arrays, scale: float) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.asarray(a * scale).astype(a.dtype) for a in arrays]


def _combined(a: float, x: Array, b: float, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(a * x + b * y).astype(x.dtype)


# -- several outputs -------------------------------------------------------------------------------
def outputs(session: Session) -> None:
    """Check each output alone, the others' gradients left out or zero, and one array for two."""
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
    text = "is not the sum of those that come of each output alone"
    if not _tell_unlike(session, "output-ignored", text, whole, total, seeds):
        _check_shared(session, run, seeds)


def _check_alone(session: Session, run: Run, seeds: Arrays, k: int) -> list[Array] | None:
    """Check one output's gradient, the others left out; return what comes of it."""
    padded = [g if m == k else np.zeros_like(g) for m, g in enumerate(seeds)]
    alone: list[Array | None] = [g if m == k else None for m, g in enumerate(seeds)]
    situation = f"only output {k} of {len(seeds)} has a gradient"
    found = []
    for given, what in ((padded, "zeros"), (alone, "left out, None or zeros")):
        try:
            found.append(gradients(run, given, session.arrays))
        except BackwardError as error:
            reason = first_line(error)
            text = f"backward raises when {situation}, the others being {what}: {reason}"
            hint = "test each gradient for None, or leave out ctx.set_materialize_grads(False)"
            session.fail(Cause("zero-grad", text, hint))
            return None
    expected, got = found
    text = f"is another when {situation} and the others are left out than when those are zero"
    return None if _tell_unlike(session, "zero-grad", text, got, expected, padded) else got


def _check_shared(session: Session, run: Run, seeds: Arrays) -> None:
    """Check that outputs of equal shape may have one array as their gradient."""
    for j, k in itertools.combinations(range(len(seeds)), 2):
        if seeds[j].shape != seeds[k].shape or seeds[j].dtype != seeds[k].dtype:
            continue
        expected = gradients(run, [seeds[j], seeds[j].copy()], session.arrays, outputs=[j, k])
        one = box(session.subject.place.put(seeds[j].copy()))
        got = gradients(run, [one, one], session.arrays, outputs=[j, k])
        text = f"is wrong when outputs {j} and {k} have the same tensor as their gradient"
        given = [seeds[j] if m in (j, k) else None for m in range(len(seeds))]
        if _tell_unlike(session, "mutation", text, got, expected, given):
            return


# -- one tensor for two arguments ------------------------------------------------------------------
def aliases(session: Session) -> None:
    """Check f(x, x): its gradient is the sum of those of f(x, y) where y = x."""
    subject = session.subject
    if session.outputs and subject.dirty:  # which the first run finds out
        raise InapplicableError(f"{subject.name} works in place on an argument")
    pairs = list(itertools.islice(_pairs(session), _MOST_PAIRS))
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
    names = f"`{subject.names[i]}` and `{subject.names[j]}`"
    try:
        got = _same_tensor(subject, copies(arrays), i, j, seeds)
    except (ForwardError, BackwardError) as error:
        reason = first_line(error)
        text = f"one tensor for both {names} is an error, equal ones are not: {reason}"
        session.fail(Cause("same-tensor", text), subject.names[i])
        return

    def spread() -> list[float]:
        return noise(lambda xs, gs: _summed(subject, xs, i, j, gs), arrays, seeds)

    for k, wrong in beyond_rounding(session, got, expected, seeds, spread)[:1]:
        text = f"the gradient is wrong when one tensor is passed for both {names}"
        hint = "decide by ctx.needs_input_grad and the arguments' places, not by identity"
        argument = subject.names[k + (k >= j)]
        cause = Cause("same-tensor", text, hint)
        session.fail(cause, argument, expected=expected[k], got=got[k], wrong=wrong)


def _summed(subject: Subject, arrays: Arrays, i: int, j: int, seeds: Arrays) -> list[Array]:
    """Return the gradients with those of arguments `i` and `j` added up, in place `i`."""
    found = gradients(subject.run(copies(arrays)), seeds, arrays)
    found[i] = found[i] + found[j]
    return [g for k, g in enumerate(found) if k != j]


def _same_tensor(subject: Subject, arrays: Arrays, i: int, j: int, seeds: Arrays) -> list[Array]:
    """Return the gradients where one tensor stands for arguments `i` and `j`."""
    leaves = subject.tensors(arrays, None)
    leaves[subject.tracked[j]] = leaves[subject.tracked[i]]
    run = subject.run_leaves(leaves)
    del run.tensors[j]
    return gradients(run, seeds, [a for k, a in enumerate(arrays) if k != j])
