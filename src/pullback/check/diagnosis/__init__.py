"""Why a gradient is wrong: hypotheses about the numbers, the most specific first.

Each hypothesis is a function of the evidence and of the argument whose gradient is wrong; it
returns a `Cause` if the numbers confirm it, else None. The first confirmed one is the diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.check.diagnosis.elements import elements, listed, nan
from pullback.check.diagnosis.evidence import Evidence
from pullback.check.diagnosis.precision import PRECISION
from pullback.check.diagnosis.relations import RELATIONS, another, conjugated, factor, swapped
from pullback.check.diagnosis.sizes import size
from pullback.check.diagnosis.structure import STRUCTURE, missing_sum
from pullback.check.diagnosis.terms import FACTORS, diagonal, missing_term
from pullback.check.report import Cause

Hypothesis = Callable[[Evidence, int], Cause | None]

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
    diagonal,
    *FACTORS,
    elements,
    missing_term,
    listed,
)


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
        cause = hypothesis(evidence, i)
        if cause is not None:
            return cause
    return _unknown(evidence, i)


def _unknown(evidence: Evidence, i: int) -> Cause:
    wrong = evidence.wrong[i]
    return Cause(
        "formula",
        f"the gradient of `{evidence.names[i]}` is wrong at {int(wrong.sum())} of {wrong.size} "
        "elements, in no pattern known",
    )
