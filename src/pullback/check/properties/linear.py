"""Backward is a linear function of grad_output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback.check.comparison import differing_gradients, differs
from pullback.check.exceptions import BackwardError, first_line
from pullback.check.properties.reporting import names_of, report_first, report_if_different
from pullback.check.report import Cause
from pullback.check.session import Session, gradients
from pullback.check.values import Array, Arrays, copies


def check_linear(session: Session) -> None:
    """Check that backward is linear in grad_output."""
    run = session.subject.run(copies(session.arrays))
    values = run.values()
    g, h = session.seeds("linear", values), session.seeds("linear, other", values)

    def vjp(seeds: Arrays) -> list[Array]:
        return gradients(run, seeds, session.arrays)

    at_g = vjp(g)
    if not _check_zero(session, vjp, g, at_g):
        return
    for scale in (2.0, -1.0, 1e-3, 1e3):
        got, scaled = vjp(_scaled(g, scale)), _scaled(at_g, scale)
        wrong = differing_gradients(session, got, scaled, _scaled(g, scale))
        if wrong:
            what = f"not linear in grad_output: {_how(session, got, at_g, scale)}"
            cause = Cause("nonlinear", f"the gradient of {names_of(session, wrong)} is {what}")
            report_first(session, cause, wrong, got, scaled)
            return
    _check_sum(session, vjp, (g, h), at_g)


def _check_sum(
    session: Session,
    vjp: Callable[[Arrays], list[Array]],
    seeds: tuple[list[Array], list[Array]],
    at_g: list[Array],
) -> None:
    """Check that vjp(a g + b h) = a vjp(g) + b vjp(h)."""
    g, h = seeds
    a, b = 0.75, -1.5
    mixed = [_combined(a, x, b, y) for x, y in zip(g, h, strict=True)]
    expected = [_combined(a, x, b, y) for x, y in zip(at_g, vjp(h), strict=True)]
    text = "is not linear in grad_output: that of a sum is not the sum of those of its terms"
    report_if_different(session, "nonlinear", text, vjp(mixed), expected, mixed)


def _check_zero(
    session: Session, vjp: Callable[[Arrays], list[Array]], seeds: Arrays, at_g: Arrays
) -> bool:
    """Check that a zero grad_output gives a zero gradient; return whether it does."""
    zeros = [np.zeros_like(g) for g in seeds]
    try:
        got = vjp(zeros)
    except BackwardError as error:
        reason = first_line(error)
        session.fail(Cause("zero-grad", f"backward raises when grad_output is zero: {reason}"))
        return False
    # Where a derivative is infinite, 0 times it is NaN in a right backward as well.
    wrong = [(i, (z != 0) & np.isfinite(e)) for i, (z, e) in enumerate(zip(got, at_g, strict=True))]
    wrong = [(i, where) for i, where in wrong if where.any()]
    if not wrong:
        return True
    nan = any(np.isnan(got[i][where]).any() for i, where in wrong)
    words = "NaN" if nan else "not zero: a term is not multiplied by grad_output"
    name, cause = names_of(session, wrong), "zero-grad" if nan else "nonlinear"
    text = f"the gradient of {name} is not linear in grad_output: where that is zero, it is {words}"
    report_first(session, Cause(cause, text), wrong, got, [np.zeros_like(z) for z in got])
    return False


def _how(session: Session, got: Arrays, at_g: Arrays, scale: float) -> str:
    """Return how the gradient changes when grad_output is multiplied by `scale`, in words."""
    known = [(1.0, "only its absolute value counts")]
    if scale > 0:
        known = [(scale * scale, "it is multiplied by it twice"), (1.0, "its size does not count")]
    for factor, words in known:
        pairs = zip(got, at_g, strict=True)
        if not any(differs(x, factor * e, session.rtol).any() for x, e in pairs):
            return words
    if abs(scale) in (1e-3, 1e3):
        return f"{scale:g} times that does not give {scale:g} times the gradient (a bound, an eps?)"
    return f"{scale:g} times that does not give {scale:g} times the gradient"


def _scaled(arrays: Arrays, scale: float) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.asarray(a * scale).astype(a.dtype) for a in arrays]


def _combined(a: float, x: Array, b: float, y: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(a * x + b * y).astype(x.dtype)
