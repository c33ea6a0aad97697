"""Losses that need a rule of their own for stability: Huber's and binary cross entropy.

Edge values: the Huber losses have the slopes of both sides at their kinks, and binary cross entropy
limits its logarithms to -100.
"""

from __future__ import annotations

from typing import Any

from pullback.ops.declare import elementwise, needs_order, op_for, operation
from pullback.ops.primitives.activations import sigmoid_p
from pullback.ops.samples import real, sample

# -- Huber -----------------------------------------------------------------------------------------
PAIR = (
    sample((2, 3), (2, 3), reduction="none"),
    sample((4,), (4,)),
    sample((), (), reduction="sum"),
    sample((0, 2), (0, 2), reduction="sum"),
)


def _huber(xp: Any, x: Any, *, delta: float) -> Any:
    needs_order("huber", x)
    size = xp.abs(x)
    near = xp.minimum(size, delta)
    return near * (size - near / 2)


huber_p = operation(
    "huber",
    _huber,
    rules={"x": lambda g, x, delta, xp: g * xp.clip(x, -delta, delta)},
    floating=True,
    domain=real(-2, 2),
    samples=(sample((3, 4), delta=1.0), sample((), delta=1.0), sample((0, 2), delta=1.0)),
    reference=(
        lambda np, x, delta=1.0: np.where(
            np.abs(x) < delta, x**2 / 2, delta * (np.abs(x) - delta / 2)
        )
    ),
    doc="Return x ** 2 / 2 up to |x| = delta, and the line that goes on from there.",
    batch="leading",
)


# -- probabilities of two classes ------------------------------------------------------------------
def _limited_log(xp: Any, x: Any) -> Any:
    """Return log(x), but no less than -100."""
    zero = x == 0
    logs = xp.log(xp.where(zero, xp.ones_like(x), x))
    return xp.where(zero | (logs < -100), xp.full_like(x, -100.0), logs)


def _bce(xp: Any, input: Any, target: Any) -> Any:
    losses = target * _limited_log(xp, input) + (1 - target) * _limited_log(xp, 1 - input)
    return -losses


binary_cross_entropy_p = elementwise(
    "binary_cross_entropy",
    _bce,
    input=lambda g, input, target, xp: (
        g * (input - target) / xp.maximum(input * (1 - input), 1e-12)
    ),
    target=lambda g, input, xp: g * (_limited_log(xp, 1 - input) - _limited_log(xp, input)),
    floating=True,
    broadcasts=False,
    domain={"input": real(0.05, 0.95), "target": real(0, 1)},
    samples=PAIR,
    doc="Return -(target * log(input) + (1 - target) * log(1 - input)).",
    batch="aligned",
)


def _bce_logits(xp: Any, input: Any, target: Any) -> Any:
    needs_order("binary_cross_entropy_with_logits", input, target)
    # The logarithm of the smaller of two probabilities, which is exact, and the distance to it.
    rest = xp.log1p(xp.exp(-xp.abs(input)))
    return xp.where(input >= 0, (1 - target) * input, -target * input) + rest


binary_cross_entropy_with_logits_p = elementwise(
    "binary_cross_entropy_with_logits",
    _bce_logits,
    input=lambda g, input, target, xp: g * (op_for(xp, sigmoid_p)(input) - target),
    target=lambda g, input: -g * input,
    floating=True,
    broadcasts=False,
    domain={"input": real(-3, 3), "target": real(0, 1)},
    samples=(*PAIR, sample((2, 1), (2, 1), pos_weight=3.0, weight=0.5)),
    doc="Return binary cross entropy of the sigmoid of the input, without overflow.",
    batch="aligned",
)
