"""The gradients of a subset of the arguments: equal to those computed for all arguments.

There are two kinds of subsets. Only some arguments require grad: forward and backward see that in
``ctx.needs_input_grad``. Or all do, and only some gradients are requested: then
``ctx.needs_input_grad`` is narrowed in backward only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from pullback.check.comparison import unequal
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.naming import quoted
from pullback.check.report import Cause
from pullback.check.session import Session, grads_on_host, run_backward, zeros_for_none
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies

Subset = tuple[int, ...]

# Up to so many arguments every subset is tried.
_FEW = 4
_HINT = (
    "compute each gradient under its own ctx.needs_input_grad, from nothing that is only computed "
    "or saved for another one"
)


class _Outcome(NamedTuple):
    """The gradients of a subset of the arguments, or the exception in place of them."""

    subset: Subset
    requested: bool  # whether all require grad and only the subset is requested for
    grads: list[Array | None]
    error: Exception | None = None


def check_masks(session: Session) -> None:
    """Check the gradients of every subset of the arguments."""
    count = len(session.arrays)
    if count == 1:
        raise InapplicableError("only one argument is differentiated")
    seeds = session.seeds()
    full = zeros_for_none(session.vjp(seeds, copies(session.arrays)), session.arrays)
    reported: set[int] = set()
    for subset in subsets(count):
        for requested in (False, True):
            found = _narrowed(session, seeds, subset, requested)
            if found is not None:
                _report(session, found, full, reported)


def subsets(count: int) -> list[Subset]:
    """Return the subsets to differentiate; those that are easiest to describe come first."""
    everything = range(count)
    alone: list[Subset] = [(i,) for i in everything]
    without: list[Subset] = [tuple(j for j in everything if j != i) for i in everything]
    found = without + alone if count > 2 else alone
    if count <= _FEW:
        found += [s for size in range(2, count - 1) for s in combinations(everything, size)]
    return list(dict.fromkeys(found))


def _narrowed(session: Session, seeds: Arrays, subset: Subset, requested: bool) -> _Outcome | None:
    """Differentiate a subset of the arguments; None where forward raises for it."""
    try:
        run = session.subject.run(copies(session.arrays), None if requested else subset)
    except ForwardError as error:
        # A composition of operations may differentiate inside of its forward.
        return _Outcome(subset, requested, [], error) if session.subject.is_op else None
    tensors = [run.tensors[i] for i in subset]
    chosen = Run(tensors, run.outputs, run.passed_arrays)
    try:
        return _Outcome(subset, requested, grads_on_host(run_backward(lambda: chosen.vjp(seeds))))
    except BackwardError as error:
        return _Outcome(subset, requested, [], error)


def _report(session: Session, found: _Outcome, full: Arrays, reported: set[int]) -> None:
    """Report the gradients that differ, each argument once."""
    names = session.subject.names
    when, situation = _described(names, found)
    if found.error is not None:
        if not reported:
            pass_ = "forward" if isinstance(found.error, ForwardError) else "backward"
            text = f"{pass_} raises when {when}: {first_line(found.error)}"
            session.fail(Cause("needs-input-grad", text, _HINT), situation=situation)
            reported.update(range(len(names)))
        return
    like = [full[i] for i in found.subset]
    for i, got in zip(found.subset, zeros_for_none(found.grads, like), strict=True):
        wrong = unequal(got, full[i])
        if i in reported or not wrong.any():
            continue
        reported.add(i)
        which = when.replace(f"only `{names[i]}` needs", "only it needs")
        text = f"`{names[i]}` is wrong when {which}"
        cause = Cause("needs-input-grad", text, _HINT)
        more = {"expected": full[i], "got": got, "wrong": wrong}
        session.fail(cause, names[i], situation=situation, **more)


def _described(names: Sequence[str], found: _Outcome) -> tuple[str, str]:
    """Return when it is wrong, and how the gradients were requested if not by requires_grad."""
    left_out = [name for i, name in enumerate(names) if i not in found.subset]
    kept = [names[i] for i in found.subset]
    if len(left_out) == 1 and (len(kept) > 1 or found.error is not None):
        when = f"`{left_out[0]}` needs no gradient"
    elif len(kept) == 1:
        when = f"only `{kept[0]}` needs a gradient"
    else:
        when = f"only {quoted(kept)} need gradients"
    situation = f"pb.autograd.grad(outputs, [{', '.join(kept)}])" if found.requested else ""
    return when, situation
