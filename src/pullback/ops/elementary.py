"""Elementary functions, element by element: exponentials, logarithms, trigonometry, steps.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: abs and sign
have the derivative 0 at 0, the steps have 0 everywhere.
"""

from __future__ import annotations

from typing import Any

from pullback.core.tensor import Tensor
from pullback.ops._declare import Operation, both, elementwise, face, real, standard
from pullback.ops.complex_ import complex_sign

__all__ = [
    "abs",
    "ceil",
    "cos",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "reciprocal",
    "round",
    "sign",
    "sin",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]

exp = elementwise(
    "exp",
    standard("exp"),
    x=lambda g, out: g * out,
    floating=True,
    domain=both(-2, 2),
    doc="Return e ** x.",
)
expm1 = elementwise(
    "expm1",
    standard("expm1"),
    x=lambda g, out: g * (out + 1),
    floating=True,
    domain=both(-2, 2),
    doc="Return e ** x - 1, accurate near 0.",
)
log = elementwise(
    "log",
    standard("log"),
    x=lambda g, x: g / x,
    floating=True,
    domain=both(0.5, 3),
    doc="Return ln x.",
)
log1p = elementwise(
    "log1p",
    standard("log1p"),
    x=lambda g, x: g / (x + 1),
    floating=True,
    domain=both(-0.5, 2),
    doc="Return ln(1 + x), accurate near 0.",
)
sqrt = elementwise(
    "sqrt",
    standard("sqrt"),
    x=lambda g, out: g / (2 * out),
    floating=True,
    domain=both(0.5, 3),
    doc="Return the square root; the derivative at 0 is inf.",
)
square = elementwise(
    "square", standard("square"), x=lambda g, x: g * (2 * x), domain=both(-2, 2), doc="Return x*x."
)
reciprocal = elementwise(
    "reciprocal",
    standard("reciprocal"),
    x=lambda g, out: -g * (out * out),
    floating=True,
    domain=both(0.5, 2),
    doc="Return 1 / x.",
)
sin = elementwise(
    "sin",
    standard("sin"),
    x=lambda g, x, xp: g * xp.cos(x),
    floating=True,
    domain=both(-2, 2),
    doc="Return sin x.",
)
cos = elementwise(
    "cos",
    standard("cos"),
    x=lambda g, x, xp: -g * xp.sin(x),
    floating=True,
    domain=both(-2, 2),
    doc="Return cos x.",
)
tan = elementwise(
    "tan",
    standard("tan"),
    x=lambda g, out: g * (1 + out * out),
    floating=True,
    domain=both(-1, 1),
    doc="Return tan x.",
)
tanh = elementwise(
    "tanh",
    standard("tanh"),
    x=lambda g, out: g * (1 - out * out),
    floating=True,
    domain=both(-1, 1),
    doc="Return tanh x.",
)


absolute = elementwise(
    "abs",
    standard("abs"),
    x=lambda g, x, xp: g * xp.sign(x),
    holomorphic=False,
    domain=both(-2, 2, 0.0),
    doc="Return the magnitude; the derivative at 0 is 0.",
)
real_sign = elementwise(
    "sign",
    standard("sign"),
    x=lambda g, xp: xp.zeros_like(g),
    domain=real(-2, 2, 0.0),
    doc="Return the sign; its derivative is 0 everywhere.",
)


@face(real_sign)
def sign(x: Any, /) -> Tensor:
    """Return the sign of real numbers, x / abs(x) of complex ones; 0 where x is 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sign(pb.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    is_complex = "complex" in str(getattr(x, "dtype", ""))
    return complex_sign(x) if is_complex else real_sign(x)


def _steps(name: str) -> Operation:
    return elementwise(
        name,
        standard(name),
        x=lambda g, xp: xp.zeros_like(g),
        domain=real(0.6, 0.9),
        doc=f"Return {name}(x); its derivative is 0 everywhere.",
    )


floor, ceil, round, trunc = (_steps(n) for n in ("floor", "ceil", "round", "trunc"))

abs = absolute
