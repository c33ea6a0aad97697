"""Why a gradient is wrong: a table of explanations of the numbers, the most specific first.

Each explanation is a function of the evidence and of the argument whose gradient is wrong; it
returns a `Cause` if the numbers confirm it, else None. The first confirmed one is what is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.explain import calls, candidates, elements
from pullback.check.explain.evidence import Evidence
from pullback.check.report import Cause, axes_text, first_line
from pullback.check.subject import BackwardError, ForwardError
from pullback.errors import GradientError

Explanation = Callable[[Evidence, int], Cause | None]


def none(e: Evidence, i: int) -> Cause | None:
    """There is no gradient, or only zeros; or there is one where there should be none."""
    name, known = f"`{e.names[i]}`", np.isfinite(e.expected[i])
    if e.session.subject.run(e.arrays).vjp(e.seeds)[i] is None:
        text = f"{name} gets no gradient (None), although the outputs depend on it"
        hint = f"return one for {name}; of a constant, pass an array or a tensor without grad"
        return Cause("none", text, hint)
    if not np.any(e.got[i]) and not np.any(e.other.got[i]):
        return Cause("none", f"the gradient of {name} is zero everywhere")
    if known.any() and not np.any(e.expected[i][known]):
        text = f"the outputs do not change with {name} here, but backward gives it a gradient"
        hint = "a straight-through gradient is not one: declare it a surrogate"
        return Cause("formula", f"{text}: it should be zero", hint)
    return None


def not_linear(e: Evidence, i: int) -> Cause | None:
    """The gradient does not depend on grad_output, or is not linear in it."""
    name, got = f"`{e.names[i]}`", e.got[i]
    if e.matches(got, e.other.got[i]) and not e.matches(e.expected[i], e.other.expected[i]):
        text = f"{name} is not multiplied by grad_output: the incoming gradient is ignored"
        return Cause("not-multiplied", text)
    doubled, negated = (e.vjp([c * g for g in e.seeds])[i] for c in (2, -1))
    if e.matches(doubled, 2 * got) and e.matches(negated, -got):
        return None
    more = ": it is multiplied by it twice" if e.matches(doubled, 4 * got) else ""
    return Cause("nonlinear", f"{name} is not linear in grad_output{more}")


EXPLANATIONS: tuple[Explanation, ...] = (
    candidates.swapped,
    elements.nan,
    elements.precision,
    none,
    not_linear,
    candidates.outputs,
    candidates.sums,
    calls.size,
    candidates.multiples,
    candidates.turned,
    candidates.moved,
    candidates.coupled,
    elements.elements,
    calls.other_value,
    candidates.products,
    candidates.terms,
    elements.listed,
    calls.dependence,
)
_SLOW = {calls.size, calls.dependence}  # left out of the fast check


def diagnose(evidence: Evidence, wrong: Sequence[int]) -> list[tuple[int, Cause]]:
    """Return the cause for each argument whose gradient is wrong; one of several is said once.

    Vague ones come last: they may follow from the others.
    """
    found: dict[Cause, int] = {}
    for i in wrong:
        found.setdefault(cause_of(evidence, i), i)
    told = sorted(found.items(), key=lambda pair: pair[0].vague)
    follows = [c.vague and not told[0][0].vague for c, _ in told]
    hint = "it may follow from what is said first"
    return [(i, replace(c, hint=hint) if f else c) for (c, i), f in zip(told, follows, strict=True)]


def cause_of(e: Evidence, i: int) -> Cause:
    """Return the cause for one argument."""
    for explain in EXPLANATIONS:
        if e.session.options.fast and explain in _SLOW:
            continue
        with deadline().as_time_allows():  # one that needs many calls keeps no other from its turn
            cause = explain(e, i)
            if cause is not None:
                return cause
    wrong = f"wrong at {int(e.wrong[i].sum())} of {e.wrong[i].size} elements"
    text = f"the gradient of `{e.names[i]}` is {wrong}, in no pattern known"
    return Cause("formula", text, vague=True)


def cause_of_exception(error: BackwardError | ForwardError) -> Cause:
    """Return the cause of an exception in backward."""
    text, cause = first_line(error), error.__cause__
    if not isinstance(cause, GradientError) or not cause.unsummed:
        return Cause("raised", f"backward raises: {text}")
    text = f"`{cause.argument}`: sum over {axes_text(cause.unsummed)} is missing ({text})"
    return Cause("missing-sum", text, f"write pb.sum_to_size(grad, {cause.argument}.shape)")
