"""The steps of an LSTM over a sequence, with a rule of its own for speed.

Step by step an LSTM is a dozen operations. The rule computes the gates anew, from the states, which
are the results; the gradient of the weight is one product for all steps.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.declare import operation
from pullback.ops.samples import real, sample


def _halved(xp: Any, x: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return x and the weight, transposed, with the products of the gates halved, and the factors.

    As sigmoid(p) = tanh(p / 2) / 2 + 1 / 2, one tanh gives the gates and the new part.
    """
    rows, n = weight.shape
    ones = xp.ones_like(weight[:, 0])
    factors = xp.concat((ones[: 2 * n] * 0.5, ones[:n], ones[:n] * 0.5), axis=0)
    # With its rows in a row it is twice as quick to multiply by.
    turned = xp.reshape(xp.reshape(xp.matrix_transpose(weight), (n * rows,)), (n, rows))
    return x * factors, turned * factors, factors


def _gates(bent: Any, n: int) -> tuple[Any, Any, Any, Any]:
    """Return the gates i, f and o, and between them the new part g."""
    gates = bent * 0.5 + 0.5
    return gates[..., :n], gates[..., n : 2 * n], bent[..., 2 * n : 3 * n], gates[..., 3 * n :]


def _lstm(xp: Any, x: Any, weight: Any, h: Any, c: Any) -> list[Any]:
    x, turned, _ = _halved(xp, x, weight)
    hs, cs = [], []
    for t in range(x.shape[0]):
        i, f, new, o = _gates(xp.tanh(xp.matmul(h, turned) + x[t, ...]), weight.shape[1])
        c = f * c + i * new
        h = o * xp.tanh(c)
        hs.append(h)
        cs.append(c)
    return [xp.stack(hs), xp.stack(cs)]


def _lstm_rule(g: Any, x: Any, weight: Any, h: Any, c: Any, hs: Any, cs: Any, xp: Any) -> list[Any]:
    n, (gh, gc), (x, turned, factors) = weight.shape[1], g, _halved(xp, x, weight)
    slopes = factors * factors  # of the gates by their products, where that of tanh is 1
    weight = weight * slopes[:, None]
    grads, to_h, to_c = [], xp.zeros_like(h), xp.zeros_like(c)
    for t in reversed(range(x.shape[0])):
        before, was = (hs[t - 1, ...], cs[t - 1, ...]) if t else (h, c)
        bent = xp.tanh(xp.matmul(before, turned) + x[t, ...])
        i, f, new, o = _gates(bent, n)
        out = xp.tanh(cs[t, ...])
        to_h = to_h if gh is None else to_h + gh[t, ...]
        to_c = to_h * o * (1 - out * out) + to_c
        to_c = to_c if gc is None else to_c + gc[t, ...]
        by_gates = xp.concat((to_c * new, to_c * was, to_c * i, to_h * out), axis=-1)
        grads.append(by_gates * (1 - bent * bent))
        to_h, to_c = xp.matmul(grads[-1], weight), to_c * f
    gx = xp.stack(grads[::-1]) * slopes
    count = math.prod(gx.shape[:-1])
    states = xp.reshape(xp.concat((h[None, ...], hs[:-1, ...]), axis=0), (count, n))
    by_rows = xp.matrix_transpose(xp.reshape(gx, (count, 4 * n)))
    return [gx, xp.matmul(by_rows, states), to_h, to_c]


lstm_p: Any = operation(
    "lstm",
    _lstm,
    vjp_all=_lstm_rule,
    results=("hs", "cs"),
    multi=True,
    floating=True,
    domain=real(-2, 2),
    samples=(
        sample((3, 2, 8), (8, 2), (2, 2), (2, 2)),
        sample((1, 4), (4, 1), (1,), (1,)),
        sample((2, 0, 4), (4, 1), (0, 1), (0, 1)),
    ),
    scalars=False,
    doc="""Return the states h and c after each step of an LSTM.

    `x` holds the products with the input, of all gates (i, f, g, o), step by step; `weight` gives
    those with the state; `h` and `c` are the first states.
    """,
    batch="steps",
)
