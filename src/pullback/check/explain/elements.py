"""Gradients that are imprecise, wrong at some elements, or break an identity of the right one."""

from __future__ import annotations

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.calls import other_setting
from pullback.check.explain.candidates import multiple, subsets
from pullback.check.explain.contributions import clause
from pullback.check.explain.evidence import Evidence, in_double
from pullback.check.explain.features import Feature, explanation, not_finite, wrong_elements
from pullback.check.naming import axes_text
from pullback.check.report import Cause
from pullback.check.values import Array

_MAX_LISTED = 4
# Relative errors above which a gradient is wrong, not imprecise; and above which it may be.
_FEW_DIGITS, _MANY_DIGITS = 1e-2, 1e-9
_A_FACTOR = 1e-3  # from 1 that is no error of rounding
_CONSTANT = "a mean, a maximum, a norm or a normalisation is taken for a constant?"


def nan(e: Evidence, i: int) -> Cause | None:
    """The gradient is NaN or infinite where the derivative is finite."""
    wrong = not_finite(e, i)
    if not wrong.any():
        return None
    found, where = np.isnan(e.got[i][wrong]), explanation(e, i, not_finite)
    what = "NaN" if found.all() else "NaN or infinite" if found.any() else "infinite"
    text = f"`{e.names[i]}` is {what} {_count(e, i, wrong)}"
    text += f", all where {where.text}" if where else _listed(wrong)
    hint = "where a term may divide by 0 (a pole) or overflow, replace its argument, not its value"
    return Cause("nan", text, hint)


def cancellation(e: Evidence, i: int) -> Cause | None:
    """A gradient in a narrow dtype is wrong; the same backward in double precision is right."""
    if e.session.wide is e.arrays or not e.wrong[i].any():
        return None
    try:
        got = e.session.vjp(in_double(e.seeds), e.session.wide)[i]
    except (BackwardError, ForwardError):
        return None
    narrow, exact = _error(e, i, e.got[i]), np.inf if got is None else _error(e, i, got)
    if not exact < min(1e-4, narrow / 30):
        return None
    dtype = e.arrays[i].dtype
    text = (
        f"`{e.names[i]}`: {dtype} cancellation, not a formula error: off by {_power(narrow)} of "
        f"its size in {dtype}, right to {_power(exact)} in float64"
    )
    return Cause("cancellation", text, "rearrange what subtracts numbers that are nearly equal")


def precision(e: Evidence, i: int) -> Cause | None:
    """A gradient is close to the right one everywhere."""
    c, error = multiple(e.got[i], e.expected[i]).real, _error(e, i, e.got[i])
    is_factor = abs(c - 1) > _A_FACTOR and e.matches(e.got[i], c * e.expected[i])
    if is_factor or not e.wrong[i].any() or not _MANY_DIGITS < error < _FEW_DIGITS:
        return None
    text = (
        f"`{e.names[i]}` is right to {_power(error)} only: backward computes in float32, by finite "
        "differences, or with an eps of its own"
    )
    hint = "write the exact derivative, in the dtype of grad_output"
    return other_setting(e, i) or Cause("precision", text, hint)


def _error(e: Evidence, i: int, got: Array) -> float:
    """Return the largest error of a gradient, relative to its elements; small ones count less."""
    got, right = got[e.known(i)], e.expected[i][e.known(i)]
    if not np.isfinite(got).all() or not np.any(right):
        return np.inf
    size = np.abs(right)
    return float(np.max(np.abs(got - right) / (size + 1e-3 * size.max())))


def _power(error: float) -> str:
    return f"{error:.0e}".replace("e-0", "e-")


def elements(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at elements whose values separate them from the right ones."""
    found = _separated(e, i)
    return None if found is None or found.of_index else _except_at(e, i, found.text)


def positions(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at elements whose indices separate them from the right ones."""
    found = _separated(e, i)
    return None if found is None else _except_at(e, i, found.text)


def listed(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at a few elements, and nothing known separates them."""
    wrong, known = int(e.wrong[i].sum()), int(e.known(i).sum())
    return _except_at(e, i) if 0 < 2 * wrong <= known and _is_right_somewhere(e, i) else None


def _separated(e: Evidence, i: int) -> Feature | None:
    found = e.wrong[i].any() and _is_right_somewhere(e, i)
    return explanation(e, i, wrong_elements) if found else None


def _is_right_somewhere(e: Evidence, i: int) -> bool:
    """Return whether the gradient is right where it is not 0: a 0 may be right by accident."""
    with np.errstate(invalid="ignore"):
        return bool((~e.wrong[i] & (np.abs(e.expected[i]) > e.tolerance[i])).any())


def _except_at(e: Evidence, i: int, where: str = "") -> Cause:
    wrong, (_, what) = e.wrong[i], clause(e, i)
    if not e.got[i][wrong].any():
        what = "there it is zero"
    where = f", all where {where}" if where else _listed(wrong)
    how = f"; {what}" if what else ""
    text = f"`{e.names[i]}` is right except {_count(e, i, wrong)}{where}{how}"
    return Cause("elements", text)


def _count(e: Evidence, i: int, wrong: Array) -> str:
    total, count = int(e.known(i).sum()), int(wrong.sum())
    kind = "elements" if total == wrong.size else "elements measured"
    return f"at {'all' if count == total else f'{count} of'} {total} {kind}"


def _listed(wrong: Array) -> str:
    """Return the first of the wrong elements' indices, as the end of a sentence."""
    places = [str(place) for place in np.argwhere(wrong)[:_MAX_LISTED].tolist()]
    more = ", ..." if wrong.sum() > _MAX_LISTED else ""
    return "" if wrong.all() else f": {', '.join(places)}{more}"


def invariance(e: Evidence, i: int) -> Cause | None:
    """The outputs do not change as the argument is shifted or scaled; by backward they do."""
    x, name = e.arrays[i], f"`{e.names[i]}`"
    pairs = ((e.expected[i], e.got[i]), (e.expected_other[i], e.got_other[i]))
    if x.size < 2 or x.dtype.kind == "c" or not all(np.isfinite(a).all() for p in pairs for a in p):
        return None
    for axes in subsets([axis for axis, n in enumerate(x.shape) if n > 1]):
        along = f" along {axes_text(axes)}" if len(axes) < x.ndim else ""
        shift = f"a constant is added to {name}{along}"
        if x.ndim == 2 and along:
            shift = f"all {('rows', 'columns')[axes[0]]} of {name} are moved alike"
        for factor, moved, what in (
            (np.ones(()), shift, "sums to zero"),
            (x, f"{name} is scaled{along}", "is orthogonal to it"),
        ):
            if all(_vanishes(r * factor, axes) > _vanishes(g * factor, axes) for r, g in pairs):
                text = (
                    f"{name}: a term is missing: the outputs do not change when {moved}, so its "
                    f"gradient {what} there, and backward's does not"
                )
                return Cause("missing-term", text, _CONSTANT)
    return None


def _vanishes(terms: Array, axes: tuple[int, ...]) -> bool:
    """Return whether the sums of some terms are zero up to rounding, and the terms are not."""
    size = np.abs(terms).sum(axis=axes)
    return bool(size.any() and (np.abs(terms.sum(axis=axes)) <= 1e-5 * size.max()).all())
