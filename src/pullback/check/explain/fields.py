"""Whether backward's gradient is the gradient of any function at all.

The derivative of a gradient is symmetric (Schwarz's theorem). What a rule returns that leaves out a
whole term of forward, or has it with another factor, is the gradient of another function; one that
takes a part of forward for a constant returns the gradient of none.
"""

from __future__ import annotations

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.contributions import clause
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.report import Cause
from pullback.check.session import away_from_zero
from pullback.check.values import Array

_PAIRS = 3  # of directions along which the derivative is compared with its transpose
_STEP = 1e-5
_CLOSE = 1e-4
_CALLS = 4  # at which a gradient is compared


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


def other_argument(e: Evidence, i: int) -> Cause | None:
    """The gradient lacks what depends on another argument, whose own gradient is right.

    Mixed derivatives are the same in either order.
    """
    x = e.arrays[i]
    if e.session.options.fast or x.dtype != np.float64 or clause(e, i)[1]:
        return None  # what is wrong with single contributions says more
    rng, name = e.session.rng(f"mixed {i}"), f"`{e.names[i]}`"
    right: list[str] = []
    wrong: list[str] = []
    for j, y in enumerate(e.arrays):
        if j == i or y.dtype != np.float64 or e.wrong[j].any():
            continue
        u, v = away_from_zero(x.shape, rng), away_from_zero(y.shape, rng)
        ours, theirs = _bilinear(e, i, u, v, j), _bilinear(e, j, v, u, i)
        if not np.isfinite([ours, theirs]).all():
            return None
        if abs(ours) <= _CLOSE * abs(theirs):
            text = (
                f"a term is missing from {name}: it does not change with `{e.names[j]}`, though "
                f"the gradient of `{e.names[j]}`, which is right, changes with {name}"
            )
            return Cause("missing-term", text, "differentiate every place where forward uses it")
        (right if abs(ours - theirs) <= _CLOSE * abs(theirs) else wrong).append(e.names[j])
    if not (right and wrong):
        return None
    text = (
        f"a term is missing from {name} (or wrong): it changes as it should with "
        f"{quoted(right)}, but not with {quoted(wrong)}"
    )
    return Cause("missing-term", text, "differentiate every place where forward uses it")


def _bilinear(e: Evidence, i: int, u: Array, v: Array, j: int | None = None) -> float:
    """Return <u, J v>, with J the derivative of what backward returns for `i` by `i`, or by `j`."""
    j = i if j is None else j
    x = e.arrays[j]
    step = _STEP * float(np.sqrt(np.mean(x**2)) or 1.0)
    try:
        after, before = (
            e.vjp(e.seeds, [*e.arrays[:j], x + t * v, *e.arrays[j + 1 :]])[i] for t in (step, -step)
        )
    except (BackwardError, ForwardError):
        return float("nan")
    return float(np.sum(u * (after - before))) / (2 * step)


def smaller(e: Evidence, i: int) -> Cause | None:
    """One number whose gradient is, at all values that are tried, a part of the right one."""
    if e.got[i].size != 1 or e.session.options.fast or e.got[i].dtype.kind == "c":
        return None
    if clause(e, i)[1]:
        return None
    rng = e.session.rng(f"parts {i}")
    shares = []
    for k in range(_CALLS):
        call: Evidence | None = e if k == 0 else e.with_arrays([_moved(a, rng) for a in e.arrays])
        if call is None or not call.expected[i].any():
            continue
        shares.append(float((call.got[i] / call.expected[i]).reshape(())))
    if len(shares) < _CALLS - 1 or not all(_CLOSE < share < 1 - _CLOSE for share in shares):
        return None
    low, high = (f"{100 * share:.0f} %" for share in (min(shares), max(shares)))
    name = f"`{e.names[i]}`"
    text = (
        f"a part of the gradient of {name} is missing: there is {low} to {high} of it, "
        f"at {len(shares)} different values"
    )
    hint = f"forward uses {name} in several places: differentiate each of them"
    return Cause("missing-term", text, hint)


def _moved(array: Array, rng: np.random.Generator) -> Array:
    factors = 1.0 + 0.2 * rng.uniform(-1.0, 1.0, array.shape)
    return np.asarray(array * factors).astype(array.dtype)
