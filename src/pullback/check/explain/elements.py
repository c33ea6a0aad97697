"""Gradients that are imprecise, wrong at some elements, or break an identity of the right one."""

from __future__ import annotations

import itertools

import numpy as np

from pullback.check.explain.calls import other_value
from pullback.check.explain.candidates import factors, multiple, subsets
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.features import feature_of
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
    wrong = np.isfinite(e.expected[i]) & ~np.isfinite(e.got[i])
    if not wrong.any():
        return None
    found, alone = np.isnan(e.got[i][wrong]), np.array_equal(wrong, e.wrong[i])
    what = "NaN" if found.all() else "NaN or infinite" if found.any() else "infinite"
    places = _places(e, i, wrong, feature_of(e, i) if alone else "")
    hint = "where a term may divide by 0 (a pole) or overflow, replace its argument, not its value"
    return Cause("nan", f"`{e.names[i]}` is {what} {places}", hint)


def precision(e: Evidence, i: int) -> Cause | None:
    """A gradient is close to the right one everywhere."""
    known = np.isfinite(e.expected[i])
    got, right = e.got[i][known], e.expected[i][known]
    if not e.wrong[i].any() or not np.isfinite(got).all() or not np.any(right):
        return None
    size, c = np.abs(right), multiple(got, right).real
    error = float(np.max(np.abs(got - right) / (size + 1e-3 * size.max())))
    is_factor = abs(c - 1) > _A_FACTOR and e.matches(got, c * right)
    if is_factor or not _MANY_DIGITS < error < _FEW_DIGITS:
        return None
    text = (
        f"`{e.names[i]}` is right to {error:.0e} only: backward computes in float32, by finite "
        "differences, or with an eps of its own"
    )
    hint = "write the exact derivative, in the dtype of grad_output"
    return other_value(e, i) or Cause("precision", text.replace("e-0", "e-"), hint)


def elements(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at elements that have something in common."""
    where = feature_of(e, i) if _is_right_somewhere(e, i) else ""
    return _except_at(e, i, where) if where else None


def listed(e: Evidence, i: int) -> Cause | None:
    """The gradient is wrong at a few elements, and nothing known separates them."""
    few = 2 * e.wrong[i].sum() <= np.isfinite(e.expected[i]).sum()
    return _except_at(e, i, "") if few and _is_right_somewhere(e, i) else None


def _is_right_somewhere(e: Evidence, i: int) -> bool:
    """Return whether the gradient is right where it is not 0: a 0 may be right by accident."""
    with np.errstate(invalid="ignore"):
        right = ~e.wrong[i] & (np.abs(e.expected[i]) > e.tolerance[i])
    return bool(e.wrong[i].any() and right.any())


def _except_at(e: Evidence, i: int, where: str) -> Cause:
    how = _how(e, i)
    text = f"`{e.names[i]}` is right except {_places(e, i, e.wrong[i], where)}"
    return Cause("elements", text + (f"; there it {how}" if how else ""))


def _how(e: Evidence, i: int) -> str:
    """Return in words what the gradient is where it is wrong, the same at each look; or ""."""
    looks = [(look, look.wrong[i]) for look in e.looks() if look.wrong[i].any()]
    pairs = [(look.got[i][off], look.expected[i][off]) for look, off in looks]
    c = multiple(*pairs[0]).real
    if not any(got.any() for got, _ in pairs):
        return "is zero"
    if all(np.abs(right).max() <= 1e-6 * np.abs(got).max() for got, right in pairs):
        return "should be zero"
    if all(e.matches(got, c * right) for got, right in pairs):
        negated = abs(c + 1) < e.pattern_rtol
        return "has the wrong sign" if negated else f"is off by the factor {c:.3f}"
    known: list[list[str]] = []
    with np.errstate(all="ignore"):
        for look, off in looks:
            got = look.got[i][off]
            known.append([w for w, p in factors(i, look, off) if e.matches(got, p[off])])
    return next((words for words in known[0] if all(words in here for here in known)), "")


def _places(e: Evidence, i: int, wrong: Array, where: str) -> str:
    """Return how many elements are wrong, and which, as the end of a sentence."""
    total, count = int(np.isfinite(e.expected[i]).sum()), int(wrong.sum())
    kind = "elements" if total == wrong.size else "elements measured"
    if count == total:
        return f"at all {total} {kind}"
    text = f"at {count} of {total} {kind}"
    if where:
        return f"{text}, all where {where}"
    places = [str(place) for place in np.argwhere(wrong)[:_MAX_LISTED].tolist()]
    return f"{text}: {', '.join(places)}{', ...' if count > _MAX_LISTED else ''}"


def invariance(e: Evidence, i: int) -> Cause | None:
    """The outputs do not change as the argument is shifted or scaled; by backward they do."""
    x, name = e.arrays[i], f"`{e.names[i]}`"
    pairs = ((e.expected[i], e.got[i]), (e.other.expected[i], e.other.got[i]))
    if x.size < 2 or x.dtype.kind == "c" or not np.isfinite(pairs).all():
        return None
    every = subsets([axis for axis, n in enumerate(x.shape) if n > 1])
    for axes, scaled in itertools.product(every, (False, True)):
        along = f" along {axes_text(axes)}" if len(axes) < x.ndim else ""
        change = f"{name} is scaled{along}" if scaled else f"a constant is added to {name}{along}"
        change += f" (all {('rows', 'columns')[axes[0]]} alike)" if along and x.ndim == 2 else ""
        what = "is orthogonal to it" if scaled else "sums to zero"
        factor = x if scaled else np.ones(())
        if all(_vanishes(r * factor, axes) > _vanishes(g * factor, axes) for r, g in pairs):
            text = (
                f"{name}: a term is missing: the outputs do not change when {change}, so its "
                f"gradient {what} there, and backward's does not"
            )
            return Cause("missing-term", text, _CONSTANT)
    return None


def _vanishes(terms: Array, axes: tuple[int, ...]) -> bool:
    """Return whether the sums of some terms are zero up to rounding, and the terms are not."""
    size = np.abs(terms).sum(axis=axes)
    return bool(size.any() and (np.abs(terms.sum(axis=axes)) <= 1e-5 * size.max()).all())
