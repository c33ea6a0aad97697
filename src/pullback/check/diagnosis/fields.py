"""Whether backward's gradient is the gradient of any function at all.

The derivative of a gradient is symmetric (Schwarz's theorem). What a rule returns that leaves out a
whole term of forward, or has it with another factor, is the gradient of another function; one that
takes a part of forward for a constant returns the gradient of none.
"""

from __future__ import annotations

import numpy as np

from pullback.check.diagnosis.evidence import Evidence
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.report import Cause
from pullback.check.session import away_from_zero
from pullback.check.values import Array

_PAIRS = 3  # of directions along which the derivative is compared with its transpose
_STEP = 1e-5
_CLOSE = 1e-4


def other_function(e: Evidence, i: int) -> Cause | None:
    """The gradient is that of another function, or of none."""
    x = e.arrays[i]
    if e.session.options.fast or x.size < 2 or x.dtype != np.float64:
        return None
    rng = e.session.rng(f"fields {i}")
    sums = []
    for _ in range(_PAIRS):
        u, v = (away_from_zero(x.shape, rng) for _ in range(2))
        pair = [_bilinear(e, i, u, v), _bilinear(e, i, v, u)]
        if not np.isfinite(pair).all():
            return None
        sums.append(pair)
    size = float(np.abs(sums).max())
    name = f"`{e.names[i]}`"
    if size <= 1e-6 * float(np.abs(e.got[i]).max()):  # linear: every constant is a gradient
        return None
    if all(abs(a - b) <= _CLOSE * size for a, b in sums):
        text = (
            f"a term is missing from {name} (or too many): what backward returns is the gradient "
            "of a function, but of another one than forward"
        )
        hint = "is a whole term of forward left out, or has it another factor or sign?"
    else:
        text = (
            f"a part of forward is taken for a constant in the gradient of {name}, or has the "
            "wrong sign or place in it: no function has the gradient that backward returns"
        )
        hint = "differentiate every place where forward uses it"
    return Cause("missing-term", text, hint)


def _bilinear(e: Evidence, i: int, u: Array, v: Array) -> float:
    """Return <u, J v>, with J the derivative of what backward returns."""
    x = e.arrays[i]
    step = _STEP * float(np.sqrt(np.mean(x**2)) or 1.0)
    try:
        after, before = (
            e.vjp(e.seeds, [*e.arrays[:i], x + t * v, *e.arrays[i + 1 :]])[i] for t in (step, -step)
        )
    except (BackwardError, ForwardError):
        return float("nan")
    return float(np.sum(u * (after - before))) / (2 * step)
