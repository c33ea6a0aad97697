"""Why a gradient is wrong: hypotheses about the numbers, the most specific first.

Each hypothesis is a function of the evidence and of the argument whose gradient is wrong; it
returns a `Cause` if the numbers confirm it, else None. The first confirmed one is the diagnosis.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pullback.check.deadline import deadline
from pullback.check.explain.conditions import (
    condition,
    condition_on_settings,
    condition_on_structure,
)
from pullback.check.explain.contributions import (
    clause,
    contributions,
    overwritten,
    rearranged,
    repeated,
    wrong_output,
)
from pullback.check.explain.elements import elements, listed, nan, positions
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.fields import other_argument, other_function, smaller
from pullback.check.explain.invariances import homogeneous, invariance, stale
from pullback.check.explain.other_values import other_value
from pullback.check.explain.precision import PRECISION
from pullback.check.explain.relations import RELATIONS, another, conjugated, factor, swapped
from pullback.check.explain.sizes import size
from pullback.check.explain.structure import STRUCTURE, missing_sum
from pullback.check.explain.terms import FACTORS, diagonal, missing_product, missing_term
from pullback.check.report import Cause

Hypothesis = Callable[[Evidence, int], Cause | None]


def one_output(e: Evidence, i: int) -> Cause | None:
    """Of several outputs one contributes wrongly: the cause that shows with it alone."""
    k = wrong_output(e, i)
    alone = None if k is None else e.of_output(k)
    if alone is None or not alone.wrong[i].any():
        return None
    cause = cause_of(alone, i)
    if cause.name == "formula":
        return None
    text = f"in what comes from output {k} alone, {cause.text}"
    return dataclasses.replace(cause, text=text)


HYPOTHESES: tuple[Hypothesis, ...] = (
    nan,
    *PRECISION,
    *RELATIONS,
    missing_sum,
    size,
    factor,
    another,
    conjugated,
    *STRUCTURE,
    overwritten,
    rearranged,
    elements,
    other_value,
    diagonal,
    *FACTORS,
    one_output,
    repeated,
    contributions,
    positions,
    invariance,
    homogeneous,
    missing_term,
    missing_product,
    stale,
    other_argument,
    smaller,
    listed,
)
# What these say may be due to a setting.
_VAGUE = {"elements", "missing-term"}
# These may be due to values that are not sorted.
_ORDERS = {"misplaced", "diagonal"}


def diagnose(evidence: Evidence, wrong: Sequence[int]) -> list[tuple[int, Cause]]:
    """Return the cause for each argument whose gradient is wrong.

    Two arguments whose gradients are swapped share one cause, reported for the first of them.
    """
    found: list[tuple[int, Cause]] = []
    explained: set[int] = set()
    for i in wrong:
        if i in explained:
            continue
        pair = swapped(evidence, i, [j for j in wrong if j > i])
        if pair is not None:
            j, cause = pair
            explained.add(j)
            found.append((i, cause))
            continue
        found.append((i, cause_of(evidence, i)))
    return found


def cause_of(evidence: Evidence, i: int) -> Cause:
    """Return the cause for one argument."""
    for hypothesis in HYPOTHESES:
        cause = None
        with deadline().as_time_allows():  # one that needs many calls keeps no other from its turn
            cause = hypothesis(evidence, i)
            if cause is not None:
                return _with_condition(evidence, i, hypothesis, cause)
        if cause is not None:
            return cause
    return _unknown(evidence, i)


def _with_condition(e: Evidence, i: int, hypothesis: Hypothesis, cause: Cause) -> Cause:
    """Return a cause that says where a pattern comes from, when that is found."""
    if hypothesis is listed:
        found = condition(e, i)
    else:
        found = condition_on_settings(e, i) if cause.name in _VAGUE else ""
        found = condition_on_structure(e, i) if cause.name in _ORDERS else found
    if not found:
        return cause
    return dataclasses.replace(cause, text=f"{cause.text}; it is right if {found}")


def _unknown(evidence: Evidence, i: int) -> Cause:
    wrong = evidence.wrong[i]
    name, what = clause(evidence, i)
    found = condition(evidence, i)
    field = None if what else other_function(evidence, i)
    if field is not None:
        more = f"; it is right if {found}" if found else ""
        return dataclasses.replace(field, text=field.text + more)
    text = (
        f"the gradient of `{evidence.names[i]}` is wrong at {int(wrong.sum())} of {wrong.size} "
        f"elements, {what or 'in no pattern known'}"
    )
    return Cause(name or "formula", text + (f"; it is right if {found}" if found else ""))
