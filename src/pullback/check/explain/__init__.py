"""Why a gradient is wrong: a table of explanations of the numbers, the most specific first.

Each explanation is a function of the evidence and of the argument whose gradient is wrong; it
returns a `Cause` if the numbers confirm it, else None. The first confirmed one is what is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.exceptions import BackwardError, ForwardError, first_line
from pullback.check.explain import calls, candidates, contributions, elements
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.features import explanation, wrong_elements
from pullback.check.naming import axes_text
from pullback.check.report import Cause
from pullback.check.resizing import Symbol, describe_axes
from pullback.check.session import Session
from pullback.errors import GradientError

Explanation = Callable[[Evidence, int], Cause | None]


def none(e: Evidence, i: int) -> Cause | None:
    """There is no gradient, or only zeros; or there is one where there should be none."""
    name, known = f"`{e.names[i]}`", e.known(i)
    if e.session.vjp(e.seeds)[i] is None:
        return Cause("none", f"{name} gets no gradient (None), although the outputs depend on it")
    if not np.any(e.got[i]) and not np.any(e.got_other[i]):
        return Cause("none", f"the gradient of {name} is zero everywhere")
    if known.any() and not np.any(e.expected[i][known]):
        text = f"the outputs do not change with {name} here, but backward gives it a gradient"
        hint = "a straight-through gradient is not one: declare it a surrogate"
        return Cause("formula", f"{text}: it should be zero", hint)
    return None


def not_linear(e: Evidence, i: int) -> Cause | None:
    """The gradient does not depend on grad_output, or is not linear in it."""
    name, got = f"`{e.names[i]}`", e.got[i]
    if e.matches(got, e.got_other[i]) and not e.matches(e.expected[i], e.expected_other[i]):
        text = f"{name} is not multiplied by grad_output: the incoming gradient is ignored"
        return Cause("not-multiplied", text)
    doubled, negated = (e.vjp([c * g for g in e.seeds])[i] for c in (2, -1))
    if e.matches(doubled, 2 * got) and e.matches(negated, -got):
        return None
    text = f"{name} is not linear in grad_output"
    if e.matches(doubled, 4 * got):
        text += ": it is multiplied by it twice"
    elif e.matches(doubled, got):
        text += ": only its sign or direction counts"
    return Cause("nonlinear", text)


EXPLANATIONS: tuple[Explanation, ...] = (
    elements.nan,
    elements.cancellation,
    elements.precision,
    none,
    not_linear,
    candidates.outputs,
    candidates.sums,
    calls.size,
    candidates.multiples,
    candidates.turned,
    candidates.moved,
    candidates.moved_seeds,
    contributions.coupled,
    elements.elements,
    calls.other_setting,
    calls.other_array,
    contributions.factor,
    contributions.contributions,
    elements.positions,
    elements.invariance,
    contributions.term,
    elements.listed,
    candidates.weighted,
    calls.dependence,
    calls.smaller,
)
# What these say may be due to a setting; what those say, to values that are not sorted.
_OF_SETTINGS = {"elements", "missing-term"}
_OF_STRUCTURE = {"misplaced", "diagonal"}


def diagnose(evidence: Evidence, wrong: Sequence[int]) -> list[tuple[int, Cause]]:
    """Return the cause for each argument whose gradient is wrong.

    Two arguments whose gradients are swapped share one cause, reported for the first of them.
    """
    found: list[tuple[int, Cause]] = []
    explained: set[int] = set()
    for i in wrong:
        pair = None if i in explained else swapped(evidence, i, [j for j in wrong if j > i])
        explained |= set() if pair is None else {pair[0]}
        if i not in explained:
            found.append((i, cause_of(evidence, i) if pair is None else pair[1]))
    return found


def swapped(e: Evidence, i: int, others: Sequence[int]) -> tuple[int, Cause] | None:
    """Two arguments have each other's gradient, or have it where these are wrong."""
    off = e.wrong[i]
    for j in others:
        if off.shape != e.wrong[j].shape or not np.array_equal(off, e.wrong[j]) or not off.any():
            continue
        pairs = ((e.got[i], e.expected[j]), (e.got[j], e.expected[i]))
        if not all(e.matches(got[off], right[off]) for got, right in pairs):
            continue
        text = f"the gradients of `{e.names[i]}` and `{e.names[j]}` are swapped"
        if all(e.matches(got, right) for got, right in pairs):
            return j, Cause("swapped", text, "return gradients by name")
        found = explanation(e, i, wrong_elements)
        text += f" at {int(off.sum())} of {off.size} elements"
        text += f", all where {found.text}" if found else ""
        return j, Cause("swapped", text, "a rule for one order of the two is used for the other?")
    return None


def cause_of(evidence: Evidence, i: int) -> Cause:
    """Return the cause for one argument."""
    for explain in EXPLANATIONS:
        cause = None
        with deadline().as_time_allows():  # one that needs many calls keeps no other from its turn
            cause = explain(evidence, i)
            cause = cause and _with_condition(evidence, i, explain, cause)
        if cause is not None:
            return cause
    return _unknown(evidence, i)


def _with_condition(e: Evidence, i: int, explain: Explanation, cause: Cause) -> Cause:
    """Return a cause that says where backward is right, when that is found."""
    found = ""
    if explain in (elements.listed, calls.dependence):
        found = calls.condition(e, i)
    elif cause.name in _OF_SETTINGS | _OF_STRUCTURE:
        found = calls.condition(e, i, "settings" if cause.name in _OF_SETTINGS else "structure")
    more = f"; it is right if {found}" if found else ""
    return dataclasses.replace(cause, text=cause.text + more)


def _unknown(e: Evidence, i: int) -> Cause:
    """Return what is known where nothing fits: how many elements, how, and where it is right."""
    wrong, (name, what), found = e.wrong[i], contributions.clause(e, i), calls.condition(e, i)
    text = (
        f"the gradient of `{e.names[i]}` is wrong at {int(wrong.sum())} of {wrong.size} elements, "
        f"{what or 'in no pattern known'}"
    )
    cause = None if what else calls.other_function(e, i)
    cause = cause or Cause(name or "formula", text)
    more = f"; it is right if {found}" if found else ""
    return dataclasses.replace(cause, text=cause.text + more)


# -- other sizes, and exceptions -------------------------------------------------------------------
def cause_of_size(session: Session, e: Evidence, symbol: Symbol, i: int, length: int) -> Cause:
    """Return why a gradient that is right in a session is wrong at another length of some axes."""
    batch = {axis for _, axis in symbol.axes} == {0}
    text = (
        f"right for {describe_axes(session, symbol, bare=batch)} of length {symbol.length} but "
        f"wrong for length {length}"
    )
    if candidates.multiples(e, i) is not None:
        what, c = "the batch size" if batch else "that length", candidates.ratio(e, i)
        text += f": the gradient of `{e.names[i]}` depends on {what}; there it is off by the factor"
        return Cause("size", f"{text} {c:.3f} everywhere", calls.SIZE)
    found = cause_of(e, i)
    return Cause("size", f"{text}: {found.text}", found.hint or calls.SIZE)


def cause_of_exception(error: BackwardError | ForwardError) -> Cause:
    """Return the cause of an exception in backward."""
    text, cause = first_line(error), error.__cause__
    if not isinstance(cause, GradientError) or not cause.unsummed:
        return Cause("raised", f"backward raises: {text}")
    text = f"`{cause.argument}`: sum over {axes_text(cause.unsummed)} is missing ({text})"
    return Cause("missing-sum", text, f"write pb.sum_to_size(grad, {cause.argument}.shape)")
