"""What neural networks put between their layers, element by element."""

from __future__ import annotations

from typing import Any

from pullback.ops._declare import both, elementwise, needs_order, real

__all__ = [
    "relu",
    "sigmoid",
]


def _sigmoid(xp: Any, x: Any) -> Any:
    if "complex" in str(x.dtype):
        return 1 / (1 + xp.exp(-x))
    # With e = exp(-|x|) neither branch overflows.
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + e), e / (1 + e))


sigmoid = elementwise(
    "sigmoid",
    _sigmoid,
    x=lambda g, out: g * (out * (1 - out)),
    floating=True,
    domain=both(-3, 3),
    doc="Return 1 / (1 + e ** -x), without overflow.",
)


def _relu(xp: Any, x: Any) -> Any:
    needs_order("relu", x)
    return xp.maximum(x, 0)


relu = elementwise(
    "relu",
    _relu,
    kernel=lambda xp, x: xp.maximum(x, 0),
    x=lambda g, out, xp: xp.where(out > 0, g, 0),
    domain=real(-2, 2, 0.0),
    doc="Return max(x, 0); the derivative at 0 is 0.",
)
