"""The gradient of what has the tip of a cone at 0: norms, the sizes of complex numbers, spreads.

The tip has every slope up to 1, whose middle, 0, is the gradient there. How that changes is
unbounded: its derivative is NaN, so that no second derivative is wrong.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.arguments import holds_somewhere
from pullback.ops.declare import Primitive, elementwise, op_for
from pullback.ops.samples import real


def _toward(xp: Any, slope: Any, x: Any, size: Any) -> Any:
    tip = size == 0
    slope = xp.where(tip & (slope == slope), 0, slope)  # NaN stays
    size = xp.where(tip, 1, size)
    if size.shape == x.shape:
        return slope * (x / size)
    share = slope / size  # one for many elements, unless it overflows or underflows
    if holds_somewhere(~xp.isfinite(share) | ((share == 0) & (slope != 0))):
        return slope * (x / size)
    return x * share


def _changed(g: Any, factor: Any, size: Any, xp: Any) -> Any:
    """Return g factor / size: at the tip NaN, whatever g is, as a rule is linear in g."""
    return g * (factor / xp.where(size == 0, math.nan, size))


def _shrunk(g: Any, slope: Any, x: Any, size: Any, xp: Any) -> Any:
    return -_changed(g, slope * (x / xp.where(size == 0, 1, size)), size, xp)


toward_p: Primitive = elementwise(
    "toward",
    _toward,
    slope=lambda g, x, size, xp: op_for(xp, toward_p)(g, x, size),
    x=lambda g, slope, size, xp: _changed(g, slope, size, xp),
    size=_shrunk,
    floating=True,
    domain={"slope": real(-2, 2), "x": real(-2, 2), "size": real(0.5, 2)},
    reference=(lambda np, slope, x, size: slope * x / size),
    doc="Return slope x / size; at a size of 0 the value is 0, and the derivatives are NaN.",
)
