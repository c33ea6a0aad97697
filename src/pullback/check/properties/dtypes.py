"""Other dtypes than the call's: narrower ones, and complex numbers.

A gradient in float32 is compared with the one in float64 at the same rounded values. The tolerance
is estimated from how far the exact gradient moves when the inputs move by a rounding error: a
formula that loses more digits than the problem itself suffers from cancellation, or overflows.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.comparison import max_abs, max_changes
from pullback.check.deadline import deadline
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.iterating import ends
from pullback.check.numerical import coordinates
from pullback.check.properties.first import agrees
from pullback.check.properties.recheck import perturbed_leaves, wrong_along
from pullback.check.report import Cause
from pullback.check.resizing import session_with_leaves
from pullback.check.session import RTOL, Session, zeros_for_none
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays

# Squares and cubes of such values are still representable in the dtype.
_STEADY = 0.05  # of a value: an error that is smaller may be due to rounding
_LARGEST = {"float32": 1e12, "float16": 30.0}
# An output with a larger error, in rounding units, has no gradient that is compared.
_ULPS = 256
_PATIENCE, _SLOWER = 0.5, 20  # seconds, and times as long as other calls, that forward may take
_COMPLEX = {"float32": np.complex64}
_MAX_ELEMENTS = 20_000  # larger arguments are not tried with complex numbers


# -- narrower dtypes -------------------------------------------------------------------------------
class _Narrow(NamedTuple):
    """Gradients at the same values in double precision and in a narrower dtype.

    Attributes
    ----------
    dtype : str
    expected, got : list of array
        In double precision and in the dtype.
    sensitivity : list of array
        How far the expected gradients move when the inputs move by a rounding error.
    terms : float
        The largest output times its gradient: a gradient that is much smaller can be the
        difference of larger terms.
    lengths : list of float
        The largest value of each argument.
    """

    dtype: str
    expected: list[Array]
    got: list[Array]
    sensitivity: list[Array]
    terms: float
    lengths: list[float]


def check_dtypes(session: Session) -> None:
    """Check the gradients in float32 and float16, and for complex arguments where they fit."""
    if any(a.dtype not in (np.float64, np.complex128) for a in session.arrays):
        raise InapplicableError("the arguments are not in double precision")
    before = len(session.report.failures)
    with warnings.catch_warnings():
        # Overflow in a narrow dtype, and imaginary parts that forward discards.
        warnings.simplefilter("ignore")
        taken = _narrower(session, "float32")
        if len(session.report.failures) == before:
            taken |= _narrower(session, "float16")
        taken |= _complex(session)
    if not taken:
        raise InapplicableError("forward takes float64 only")


def _narrower(session: Session, dtype: str) -> bool:
    """Check one narrower dtype; return whether forward takes it."""
    leaves = session.leaves()
    if not _ends(session, leaves, dtype):
        session.note(f"forward does not end in {dtype}: it waits for what never holds there")
        return False
    try:
        found = _narrow(session, leaves, dtype)
        if found is None:
            return False
        wrong = _wrong(found)
        if wrong:  # unless only a tie is broken differently
            again = _narrow(session, perturbed_leaves(session, leaves, 64 * _eps(dtype)), dtype)
            wrong = {i: w for i, w in wrong.items() if again is None or i in _wrong(again)}
    except BackwardError as error:
        text = f"backward raises in {dtype} alone: {first_line(error)}"
        if dtype == "float16":  # many a kernel has no half precision; who needs it sees the error
            session.note(text)
        else:
            session.fail(Cause("dtype", text), situation=f"with {dtype} arguments")
        return True
    for i, where in wrong.items():
        moved = _narrow(session, perturbed_leaves(session, leaves, _STEADY / 2), dtype)
        _report(session, found, i, where, _is_steady(found, moved, i, where))
    return True


def _ends(session: Session, leaves: Sequence[Any], dtype: str) -> bool:
    """Return whether forward ends in a dtype; one that iterates may wait for what never holds."""
    narrow = session.subject.with_leaves([_cast(v, dtype) for v in leaves])
    return ends(narrow.run, max(_PATIENCE, _SLOWER * deadline().average()))


def _narrow(session: Session, leaves: Sequence[Any], dtype: str) -> _Narrow | None:
    """Compute the gradients in both dtypes; None where forward does not take the narrower."""
    leaves = [_cast(v, dtype) for v in leaves]
    narrow = session.subject.with_leaves(leaves)
    wide = session.subject.with_leaves([_cast(v, "float64") for v in leaves])
    try:
        outputs, exact = narrow.run().values(), wide.run().values()
    except Exception:  # a function may raise anything for a dtype it does not support
        return None
    if not _comparable(session, narrow.arrays, outputs, exact, dtype):
        return None
    seeds = _seeds(session, outputs, exact, dtype)
    wide_seeds = [g.astype(out.dtype) for g, out in zip(seeds, exact, strict=True)]

    def gradients_of(arrays: Arrays) -> list[Array]:
        return zeros_for_none(session.vjp(wide_seeds, arrays, subject=wide), wide.arrays)

    expected = gradients_of(wide.arrays)
    got = zeros_for_none(session.vjp(seeds, narrow.arrays, subject=narrow), narrow.arrays)
    sensitivity = _sensitivity(session, wide, expected, dtype, gradients_of)
    terms = max_abs(*(g * out for g, out in zip(wide_seeds, exact, strict=True)))
    lengths = [max_abs(a) or 1.0 for a in wide.arrays]
    return _Narrow(dtype, expected, got, sensitivity, terms, lengths)


def _eps(dtype: str) -> float:
    return float(np.finfo(dtype).eps)


def _cast(value: Any, dtype: str) -> Any:
    """Return a floating or complex leaf in a dtype, any other unchanged."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return value
    with np.errstate(all="ignore"):
        if value.dtype.kind == "f":
            return value.astype(dtype)
        return value.astype(_COMPLEX.get(dtype, np.complex128))


def _comparable(
    session: Session, arrays: Arrays, outputs: Arrays, exact: Arrays, dtype: str
) -> bool:
    """Return whether the function keeps the dtype, with all values far from its limits."""
    if [out.shape for out in outputs] != [out.shape for out in exact]:
        return False
    if dtype == "float16" and any(a.dtype != dtype for a in (*arrays, *outputs)):
        return False
    if session.eps > np.finfo(np.float64).eps * 16:
        return False  # it computes in a narrow dtype anyway
    sizes = [np.abs(a).max() for a in (*arrays, *outputs, *exact) if a.size]
    most = _LARGEST[dtype]
    return bool(all(np.isfinite(s) and (s == 0 or 1 / most < s < most) for s in sizes))


def _seeds(session: Session, outputs: Arrays, exact: Arrays, dtype: str) -> list[Array]:
    """Draw output gradients; 0 where the outputs themselves differ from those in float64."""
    eps = _eps(dtype)
    found = []
    for g, out, true in zip(session.seeds(dtype, outputs), outputs, exact, strict=True):
        size = np.abs(true)
        allowed = _ULPS * eps * size + 16 * eps * (size.max() if size.size else 0.0)
        g = np.where(np.abs(out - true) <= allowed, g, 0)
        found.append(g.astype(out.dtype))
    return found


def _sensitivity(
    session: Session, wide: Subject, expected: Arrays, dtype: str, gradients_of: Any
) -> list[Array]:
    """Measure how far exact gradients move when the inputs are rounded at random."""
    eps, rng = _eps(dtype), session.rng(f"{dtype} rounding")

    def rounded() -> Arrays:
        return [
            np.asarray(a * (1 + eps * rng.choice([-1.0, 1.0], a.shape))).astype(a.dtype)
            for a in wide.arrays
        ]

    try:
        return max_changes(expected, [gradients_of(rounded()) for _ in range(3)])
    except (BackwardError, ForwardError):  # at the edge of the domain
        return [np.full(e.shape, np.inf) for e in expected]


def _wrong(narrow: _Narrow) -> dict[int, Array]:
    """Return where gradients lose more digits than the problem itself, by argument."""
    found = {}
    for i, (expected, got) in enumerate(zip(narrow.expected, narrow.got, strict=True)):
        if _is_known(narrow, i):
            with np.errstate(all="ignore"):
                found[i] = ~(np.abs(got - expected) <= _tolerance(narrow, i))
    return {i: wrong for i, wrong in found.items() if wrong.any()}


def _is_known(narrow: _Narrow, i: int) -> bool:
    """Return whether the gradient in float64 is above rounding and within the dtype's range."""
    size = float(np.abs(narrow.expected[i]).max(initial=0.0))
    rounding = _eps("float64") * narrow.terms / narrow.lengths[i]
    return bool(1e6 * rounding < size < _LARGEST[narrow.dtype])


def _tolerance(narrow: _Narrow, i: int) -> Array:
    """Return how far each element of a right gradient may be off in the dtype."""
    moves = narrow.sensitivity[i]
    size = np.abs(narrow.expected[i])
    noise = size.max() + narrow.terms / max(narrow.lengths[i], 1.0)
    return np.asarray(
        RTOL[narrow.dtype] * size
        + 64 * _eps(narrow.dtype) * noise
        + 32 * moves
        + 8 * moves.max()
        + 1e3 * float(np.finfo(narrow.dtype).tiny)
    )


def _is_steady(narrow: _Narrow, moved: _Narrow | None, i: int, wrong: Array) -> bool:
    """Return whether an error is large and about the same close by: it is none of rounding.

    Lost digits are others each time, or all of them: 0.
    """
    if moved is None:
        return False
    off = (narrow.got[i] - narrow.expected[i])[wrong]
    there = (moved.got[i] - moved.expected[i])[wrong]
    size, got = np.abs(narrow.expected[i][wrong]), np.abs(narrow.got[i][wrong])
    steady = np.abs(there - off) <= 4 * _STEADY * np.abs(off)
    return bool((steady & (np.abs(off) > _STEADY * size) & (got > 1e-3 * size)).mean() >= 0.5)


def _report(session: Session, narrow: _Narrow, i: int, wrong: Array, steady: bool) -> None:
    """Report a gradient that is right in float64 and wrong in a narrower dtype."""
    name, dtype = session.subject.names[i], narrow.dtype
    expected, got = narrow.expected[i], narrow.got[i]
    with np.errstate(all="ignore"):
        off = np.abs(got - expected)
        worst = float(np.max(np.where(wrong, off / np.abs(expected), 0.0)))
    bad = ~np.isfinite(off)
    if bad.any():
        text = (
            f"the gradient of `{name}` is not finite in {dtype} at {int(bad.sum())} of {bad.size} "
            "elements, where it is in float64: an intermediate overflows"
        )
        hint = "write it so that no intermediate is larger than the result"
        cause = Cause("dtype", text, hint)
    elif steady:
        text = (
            f"the gradient of `{name}` is wrong in {dtype} alone, by up to {worst:.2g} of it; "
            "the error is the same at nearby values, so no digits are lost"
        )
        cause = Cause("dtype", text, f"does backward do something else for {dtype}?")
    else:
        text = (
            f"{dtype} cancellation in `{name}`, not a formula error: float64 is right; the worst "
            f"relative error is {worst:.2g}"
        )
        cause = Cause("cancellation", text, "write it without differences of nearly equal numbers")
    situation = f"with {dtype} arguments"
    session.fail(cause, name, expected=expected, got=got, wrong=wrong, situation=situation)


# -- complex numbers -------------------------------------------------------------------------------
def _complex(session: Session) -> bool:
    """Note what is wrong with complex arguments in place of real ones."""
    if any(a.dtype.kind == "c" or a.size > _MAX_ELEMENTS for a in session.arrays):
        return False
    if session.iterates:  # it might not end
        return False
    rng = session.rng("complex")
    leaves = session.leaves()
    for i in session.subject.tracked:
        leaves[i] = leaves[i] * (1 + 1j * rng.uniform(0.1, 0.3, leaves[i].shape))
    try:
        other = session_with_leaves(session, leaves)
    except InapplicableError:
        return False
    other.options = dataclasses.replace(other.options, max_elements=16)  # only for a note
    takes = f"{session.subject.name} also takes complex inputs"
    try:
        wrong = wrong_along(other)
        if wrong and not _is_conjugated(other, wrong):
            names = ", ".join(f"`{other.subject.names[i]}`" for i in wrong)
            session.note(
                f"{takes}, for which the gradient of {names} is wrong: refuse complex inputs in "
                "forward if the operation is meant for real ones"
            )
    except BackwardError as error:
        session.note(f"{takes}, for which backward raises: {first_line(error)}")
    return True


def _is_conjugated(other: Session, wrong: Sequence[int]) -> bool:
    """Return whether gradients for complex arguments are right but for a conjugation.

    That is so of every rule that was written for real numbers, and no mistake in it.
    """
    # Real output gradients: complex ones would have to be conjugated as well.
    seeds = [g.real.astype(g.dtype) for g in other.seeds()]
    found = zeros_for_none(other.vjp(seeds), other.arrays)
    pairs = zip(found, other.wide, strict=True)
    got = [coordinates(np.conj(g).astype(a.dtype)) for g, a in pairs]
    lines = [line for line in other.directions if line.argument in wrong]
    return all(agrees(other, line, got, seeds) for line in lines)
