"""Gradients that are off by a factor which changes with the length of an axis."""

from __future__ import annotations

from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.relations import ratio, steady_ratio
from pullback.check.report import Cause
from pullback.check.resizing import describe_axes, resized, session_with_leaves, symbols


def size(e: Evidence, i: int) -> Cause | None:
    """The gradient is off by a factor that is different at another size."""
    c = steady_ratio(e, i)
    if c is None or e.session.options.fast:
        return None
    for symbol in symbols(e.session):
        for length in (symbol.length + 1, 2 * symbol.length):
            try:
                other = session_with_leaves(e.session, resized(e.session, symbol, length))
                there = ratio(Evidence(other), i)
            except (InapplicableError, BackwardError, ForwardError):
                continue
            if there is not None and abs(there - c) > e.pattern_rtol * abs(c):
                text = (
                    f"`{e.names[i]}` is off by the factor {c:.3f}, and by {there:.3f} with "
                    f"{describe_axes(e.session, symbol)} of length {length} instead of "
                    f"{symbol.length}: it depends on that size"
                )
                hint = "take the size from the saved shape, and average only where forward does"
                return Cause("size", text, hint)
            break
    return None
