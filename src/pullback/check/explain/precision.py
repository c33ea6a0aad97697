"""Gradients that are right to a few digits only."""

from __future__ import annotations

import math

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.alignment import multiple
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.other_values import other_setting
from pullback.check.report import Cause
from pullback.check.session import zeros_for_none
from pullback.check.values import Array, Arrays

# Relative errors above which a gradient is wrong, not imprecise.
_FEW_DIGITS = 1e-2
_SINGLE_DIGITS = 1e-3
_SMALL_STEP, _LARGE_STEP = 1e-11, 1e-3  # float32 resolves the second, not the first
_NARROW = {"d": np.float32, "D": np.complex64}


def cancellation(e: Evidence, i: int) -> Cause | None:
    """A gradient in a narrow dtype is wrong; the same backward in double precision is right."""
    wide = e.session.wide
    if wide is e.session.arrays or not e.wrong[i].any():
        return None
    seeds = [s.astype(np.result_type(s, np.float64)) for s in e.seeds]
    try:
        got = zeros_for_none(e.session.vjp(seeds, wide), wide)[i]
        repeats = np.array_equal(e.vjp(e.seeds)[i], e.got[i], equal_nan=True)
    except (BackwardError, ForwardError):
        return None
    narrow, exact = _error(e, e.got[i], i), _error(e, got, i)
    if not repeats or not exact < min(1e-4, narrow / 30):
        return None
    dtype = e.arrays[i].dtype
    text = (
        f"`{e.names[i]}`: {dtype} cancellation, not a formula error: off by {_power(narrow)} of "
        f"its size in {dtype}, right to {_power(exact)} in {got.dtype}"
    )
    return Cause("cancellation", text, "rearrange what subtracts numbers that are nearly equal")


def single(e: Evidence, i: int) -> Cause | None:
    """A gradient in double precision is computed in float32."""
    if e.arrays[i].dtype.char not in _NARROW or not e.arrays[i].size:
        return None
    if not (_is_narrow(e, i) or _is_coarse(e, i)):
        return None
    error = _error(e, e.got[i], i)
    if not 1e-9 < error < _SINGLE_DIGITS:
        return None
    text = f"`{e.names[i]}` is right to {_power(error)} only: backward computes in float32"
    return Cause("precision", text, "compute in the dtype of the gradient that backward is given")


def few_digits(e: Evidence, i: int) -> Cause | None:
    """A gradient is close to the right one everywhere."""
    error = _error(e, e.got[i], i)
    if not e.wrong[i].any() or not error < _FEW_DIGITS or _is_multiple(e, i):
        return None
    found = other_setting(e, i)  # such as an eps that is left out
    if found is not None:
        return found
    text = (
        f"`{e.names[i]}` is right to {_power(error)} only: finite differences, an eps or a lower "
        "precision in backward"
    )
    return Cause("precision", text, "write the exact derivative of what forward computes")


def _error(e: Evidence, got: Array, i: int) -> float:
    """Return the largest error of a gradient, relative to its elements; small ones count less."""
    right, known = e.expected[i], e.known(i)
    if not np.isfinite(got[known]).all() or not np.any(right[known]):
        return math.inf
    size = np.abs(right[known])
    return float(np.max(np.abs(got[known] - right[known]) / (size + 1e-3 * size.max())))


def _is_multiple(e: Evidence, i: int) -> bool:
    """Return whether the gradient is off by one factor that differs from 1 in the third digit."""
    got, right = e.got[i][e.known(i)], e.expected[i][e.known(i)]
    ratio = multiple(got, right).real
    return abs(ratio - 1) > _SINGLE_DIGITS and e.matches(got, ratio * right)


def _is_narrow(e: Evidence, i: int) -> bool:
    """Return whether every element has only float32 precision, unlike the derivatives."""
    got, right = e.got[i], e.expected[i][e.known(i)]
    return bool(_narrowed(got) == 1 and got.size > 1 and _narrowed(right) < 0.5)


def _narrowed(array: Array) -> float:
    """Return the share of elements that float32 holds exactly."""
    with np.errstate(over="ignore"):
        same = array.astype(_NARROW[array.dtype.char]).astype(array.dtype) == array
    return float(np.mean(same)) if array.size else 1.0


def _is_coarse(e: Evidence, i: int) -> bool:
    """Return whether the gradient is a step function of the arguments or output gradients."""
    rng = e.session.rng("steps")

    def moved(arrays: Arrays, step: float) -> list[Array]:
        return [a * (1 + step * rng.uniform(0.5, 1.5, a.shape)) for a in arrays]

    def changed(step: float, seeds: bool) -> float:
        at_seeds, at_arrays = (
            (moved(e.seeds, step), e.arrays) if seeds else (e.seeds, moved(e.arrays, step))
        )
        return float(np.mean(e.vjp(at_seeds, at_arrays)[i] != e.got[i]))

    try:
        return any(
            changed(_LARGE_STEP, seeds) > 5 * changed(_SMALL_STEP, seeds) for seeds in (True, False)
        )
    except (BackwardError, ForwardError):
        return False


def _power(error: float) -> str:
    """Return a number in one digit."""
    return f"{error:.0e}".replace("e-0", "e-")


PRECISION = (cancellation, single, few_digits)
