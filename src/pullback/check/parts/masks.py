"""Gradients of some of the arguments only: they are what they are beside all the others.

Two ways lead there. Only some arguments require grad: forward and backward see that in
``ctx.needs_input_grad``. Or all do, and only some of the gradients are asked for: then it is
narrowed in backward alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from pullback.check.comparison import unequal
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.naming import quoted
from pullback.check.report import Cause
from pullback.check.session import Session, attempt, filled, on_host
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies

Subset = tuple[int, ...]

# Of so many arguments every subset is tried.
_FEW = 4
_HINT = (
    "compute each gradient under its own ctx.needs_input_grad, from nothing that is only computed "
    "or saved for another one"
)


class _Narrowing(NamedTuple):
    """What is not as beside all others: the gradients of a subset, or an exception."""

    subset: Subset
    asked: bool  # whether all require grad and the subset is what is asked for
    grads: list[Array | None]
    error: Exception | None = None


def check_masks(session: Session) -> None:
    """Check the gradients of every subset of the arguments."""
    count = len(session.arrays)
    if count == 1:
        raise InapplicableError("only one argument is differentiated")
    seeds = session.seeds()
    full = filled(session.vjp(seeds, copies(session.arrays)), session.arrays)
    told: set[int] = set()
    for subset in subsets(count):
        for asked in (False, True):
            found = _narrowed(session, seeds, subset, asked)
            if found is not None:
                _tell(session, found, full, told)


def subsets(count: int) -> list[Subset]:
    """Return which arguments to differentiate alone; the easiest to name come first."""
    everything = range(count)
    alone: list[Subset] = [(i,) for i in everything]
    without: list[Subset] = [tuple(j for j in everything if j != i) for i in everything]
    found = without + alone if count > 2 else alone
    if count <= _FEW:
        found += [s for size in range(2, count - 1) for s in combinations(everything, size)]
    return list(dict.fromkeys(found))


def _narrowed(session: Session, seeds: Arrays, subset: Subset, asked: bool) -> _Narrowing | None:
    """Differentiate a subset of the arguments; None where forward cannot be run so."""
    try:
        run = session.subject.run(copies(session.arrays), None if asked else subset)
    except ForwardError as error:
        # What is composed of operations may well differentiate within itself.
        return _Narrowing(subset, asked, [], error) if session.subject.is_op else None
    tensors = [run.tensors[i] for i in subset]
    chosen = Run(tensors, run.outputs, run.everything)
    try:
        return _Narrowing(subset, asked, on_host(attempt(lambda: chosen.vjp(seeds))))
    except BackwardError as error:
        return _Narrowing(subset, asked, [], error)


def _tell(session: Session, found: _Narrowing, full: Arrays, told: set[int]) -> None:
    """Report what differs, each argument once."""
    names = session.subject.names
    when, situation = _described(names, found)
    if found.error is not None:
        if not told:
            pass_ = "forward" if isinstance(found.error, ForwardError) else "backward"
            text = f"{pass_} raises when {when}: {first_line(found.error)}"
            session.fail(Cause("needs-input-grad", text, _HINT), situation=situation)
            told.update(range(len(names)))
        return
    likes = [full[i] for i in found.subset]
    for i, got in zip(found.subset, filled(found.grads, likes), strict=True):
        wrong = unequal(got, full[i])
        if i in told or not wrong.any():
            continue
        told.add(i)
        which = when.replace(f"only `{names[i]}` needs", "only it needs")
        text = f"`{names[i]}` is wrong when {which}"
        cause = Cause("needs-input-grad", text, _HINT)
        more = {"expected": full[i], "got": got, "wrong": wrong}
        session.fail(cause, names[i], situation=situation, **more)


def _described(names: Sequence[str], found: _Narrowing) -> tuple[str, str]:
    """Return when it is wrong, and how the gradients were asked for if not by requires_grad."""
    left_out = [name for i, name in enumerate(names) if i not in found.subset]
    kept = [names[i] for i in found.subset]
    if len(left_out) == 1 and (len(kept) > 1 or found.error is not None):
        when = f"`{left_out[0]}` needs no gradient"
    elif len(kept) == 1:
        when = f"only `{kept[0]}` needs a gradient"
    else:
        when = f"only {quoted(kept)} need gradients"
    situation = f"pb.autograd.grad(outputs, [{', '.join(kept)}])" if found.asked else ""
    return when, situation
