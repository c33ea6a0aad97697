"""Gradients that are wrong at some elements only, and what these elements have in common."""

from __future__ import annotations

import re

import numpy as np

from pullback.check.explain.alignment import multiple
from pullback.check.explain.contributions import clause
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.explaining import explanation, wrong_elements
from pullback.check.explain.invariances import invariance
from pullback.check.report import Cause
from pullback.check.values import Array

_MAX_LISTED = 4
_LINES = 3  # that show a pattern
# Predicates over the element's own index: which outputs contribute wrongly says more.
_POSITION = re.compile(r"the (index along axis \d+ is (the|at|less|odd|even|\d)|flat|element is)")


def nan(e: Evidence, i: int) -> Cause | None:
    """The gradient is NaN or infinite where the derivative is finite."""
    wrong = not_finite(e, i)
    if not wrong.any():
        return None
    values = e.got[i][wrong]
    if np.isnan(values).all():
        what = "NaN"
    else:
        what = "NaN or infinite" if np.isnan(values).any() else "infinite"
    text = f"`{e.names[i]}` is {what} {_where(e, i, wrong)}"
    found = explanation(e, i, not_finite)
    text += f", all where {found}" if found else _listed(wrong)
    return Cause(
        "nan", text, "where a term may divide by 0 or overflow, replace its argument, not its value"
    )


def elements(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at elements that a predicate separates from the right ones."""
    if not e.wrong[i].any() or not _right(e, i).any():
        return None
    found = explanation(e, i, wrong_elements)
    if not found or _POSITION.match(found):
        return None
    return _except_at(e, i, f", all where {found}")


def positions(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at elements that their indices separate from the right ones."""
    if not e.wrong[i].any() or not _right(e, i).any():
        return None
    found = explanation(e, i, wrong_elements)
    return _except_at(e, i, f", all where {found}") if found else None


def listed(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at a few elements, and no predicate explains which."""
    wrong, known = int(e.wrong[i].sum()), int(e.known(i).sum())
    if not 0 < 2 * wrong <= known or not _right(e, i).any():
        return None
    return _except_at(e, i, _listed(e.wrong[i]))


def _right(e: Evidence, i: int) -> Array:
    """Return where the gradient is right and not 0: a 0 may be right by accident."""
    with np.errstate(invalid="ignore"):
        return np.asarray(~e.wrong[i] & (np.abs(e.expected[i]) > e.tolerance[i]))


def _except_at(e: Evidence, i: int, positions: str) -> Cause:
    wrong = e.wrong[i]
    how = _verdict(e, i, wrong) or _contributed(e, i) or _unbalanced(e, i)
    how += "; off by one?" if _at_one_end(e, i) else ""
    text = f"`{e.names[i]}` is right except {_where(e, i, wrong)}{positions}{how}"
    for axis, n in enumerate(wrong.shape):
        first = np.indices(wrong.shape)[axis] == 0
        if n > 1 and wrong.any() and not e.got[i][~first].any() and e.got[i][first].any():
            entry = "entry of the batch" if axis == 0 and wrong.ndim > 1 else "element"
            text += f": only the first {entry} along axis {axis} gets a gradient"
            break
    return Cause("elements", text)


def _contributed(e: Evidence, i: int) -> str:
    _, what = clause(e, i)
    return f"; {what}" if what else ""


def _unbalanced(e: Evidence, i: int) -> str:
    """Return the identity that is broken, where most elements are wrong."""
    found = invariance(e, i) if 2 * e.wrong[i].sum() > e.wrong[i].size else None
    return f"; {found.text}" if found else ""


def _at_one_end(e: Evidence, i: int) -> bool:
    """Return whether the first or the last element of a range is left out, or one is too many."""
    wrong, known = e.wrong[i], np.nan_to_num(e.expected[i])
    ours, right = (np.abs(g) <= e.tolerance[i] for g in (e.got[i], known))
    alone = bool(ours[wrong].all() or right[wrong].all())
    used = ~ours | ~right
    for axis, n in enumerate(wrong.shape):
        off, on = (np.moveaxis(a, axis, -1).reshape(-1, n) for a in (wrong, used))
        lines = off.any(axis=1)
        # Where the last one has a gradient, though a wrong one, that has to be so in each line.
        odd = not alone and (lines.sum() < _LINES or (on.any(axis=1) & ~lines).any() or on.all())
        if n < _LINES or odd or (off.sum(axis=1) > 1).any() or (on[lines].sum(axis=1) < 2).all():
            continue
        for a, b in ((off, on), (off[:, ::-1], on[:, ::-1])):
            if np.array_equal(a[lines].argmax(axis=1), b[lines].argmax(axis=1)):
                return True
    return False


def not_finite(e: Evidence, i: int) -> Array:
    """Return where the gradient of argument `i` is not finite though the derivative is."""
    return np.asarray(e.known(i) & ~np.isfinite(e.got[i]))


def _where(e: Evidence, i: int, wrong: Array) -> str:
    total, count = int(e.known(i).sum()), int(wrong.sum())
    kind = "elements" if total == wrong.size else "elements measured"
    return f"at {'all' if count == total else f'{count} of'} {total} {kind}"


def _listed(wrong: Array) -> str:
    """Return the first of the wrong elements' indices, as the end of a sentence."""
    if wrong.all():
        return ""
    positions = np.argwhere(wrong)[:_MAX_LISTED].tolist()
    more = ", ..." if wrong.sum() > _MAX_LISTED else ""
    return ": " + ", ".join(map(str, positions)) + more


def _verdict(e: Evidence, i: int, wrong: Array) -> str:
    """Return how the gradient is wrong there, if one phrase describes it."""
    got, right = e.got[i][wrong], e.expected[i][wrong]
    if np.all(got == 0):
        return "; there it is zero"
    if np.all(np.abs(right) <= e.tolerance[i][wrong]):
        return "; there it should be zero"
    ratio = multiple(got, right).real
    if not e.matches(got, ratio * right) or (got.size == 1 and _is_odd(ratio, e.pattern_rtol)):
        return ""
    if abs(ratio + 1) <= e.pattern_rtol:
        return "; there it has the wrong sign"
    return f"; there it is off by the factor {ratio:.3f}"


def _is_odd(ratio: float, slack: float) -> bool:
    """Return whether a number is an unlikely factor: a single ratio proves little."""
    near = (abs(r - round(2 * r) / 2) <= slack * abs(r) for r in (ratio, 1 / ratio))
    return not any(near)
