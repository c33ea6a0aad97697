"""Circular and hyperbolic functions, element by element, their inverses, and polar coordinates.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: hypot and
atan2 have the derivative 0 at the origin.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops._declare import both, elementwise, real, standard
from pullback.ops._examples import documented

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "deg2rad",
    "hypot",
    "rad2deg",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

# -- circular --------------------------------------------------------------------------------------
sin = elementwise(
    "sin",
    standard("sin"),
    x=lambda g, x, xp: g * xp.cos(x),
    floating=True,
    domain=both(-2, 2),
    doc=documented(
        "Return sin x, the angle x in radians.",
        "pb.sin(pb.tensor([0.0, pb.pi / 6]))",
        "tensor([0.0000, 0.5000])",
    ),
)
cos = elementwise(
    "cos",
    standard("cos"),
    x=lambda g, x, xp: -(g * xp.sin(x)),
    floating=True,
    domain=both(-2, 2),
    doc=documented(
        "Return cos x, the angle x in radians.",
        "pb.cos(pb.tensor([0.0, pb.pi / 3]))",
        "tensor([1.0000, 0.5000])",
    ),
)
tan = elementwise(
    "tan",
    standard("tan"),
    x=lambda g, out: g * (1 + out * out),
    floating=True,
    domain=both(-1, 1),
    doc=documented(
        "Return tan x, the angle x in radians.",
        "pb.tan(pb.tensor([0.0, pb.pi / 4]))",
        "tensor([0., 1.])",
    ),
)
asin = elementwise(
    "asin",
    standard("asin"),
    x=lambda g, x, xp: g / xp.sqrt((1 - x) * (1 + x)),
    floating=True,
    domain=both(-0.8, 0.8),
    doc=documented(
        "Return the angle between -pi/2 and pi/2 whose sine is x.",
        "pb.asin(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 1.5708])",
    ),
)
acos = elementwise(
    "acos",
    standard("acos"),
    x=lambda g, x, xp: -(g / xp.sqrt((1 - x) * (1 + x))),
    floating=True,
    domain=both(-0.8, 0.8),
    doc=documented(
        "Return the angle between 0 and pi whose cosine is x.",
        "pb.acos(pb.tensor([0.0, 1.0]))",
        "tensor([1.5708, 0.0000])",
    ),
)
atan = elementwise(
    "atan",
    standard("atan"),
    x=lambda g, x: g / (x * x + 1),
    floating=True,
    domain=both(-0.8, 0.8),
    doc=documented(
        "Return the angle between -pi/2 and pi/2 whose tangent is x.",
        "pb.atan(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.7854])",
    ),
)

# -- hyperbolic ------------------------------------------------------------------------------------
sinh = elementwise(
    "sinh",
    standard("sinh"),
    x=lambda g, x, xp: g * xp.cosh(x),
    floating=True,
    domain=both(-2, 2),
    doc=documented(
        "Return sinh x = (e ** x - e ** -x) / 2.",
        "pb.sinh(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 1.1752])",
    ),
)
cosh = elementwise(
    "cosh",
    standard("cosh"),
    x=lambda g, x, xp: g * xp.sinh(x),
    floating=True,
    domain=both(-2, 2),
    doc=documented(
        "Return cosh x = (e ** x + e ** -x) / 2.",
        "pb.cosh(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 1.5431])",
    ),
)
tanh = elementwise(
    "tanh",
    standard("tanh"),
    x=lambda g, out: g * -(out * out - 1),
    floating=True,
    domain=both(-1, 1),
    doc=documented(
        "Return tanh x = sinh x / cosh x.",
        "pb.tanh(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.7616])",
    ),
)
asinh = elementwise(
    "asinh",
    standard("asinh"),
    x=lambda g, x, xp: g / xp.sqrt(x * x + 1),
    floating=True,
    domain=both(-0.8, 0.8),
    doc=documented(
        "Return the number whose sinh is x.",
        "pb.asinh(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.8814])",
    ),
)
acosh = elementwise(
    "acosh",
    standard("acosh"),
    # Two roots: one of x * x - 1 is the other branch where the real part is negative.
    x=lambda g, x, xp: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)),
    floating=True,
    domain=both(1.2, 3),
    doc=documented(
        "Return the number that is not negative whose cosh is x.",
        "pb.acosh(pb.tensor([1.0, 2.0]))",
        "tensor([0.0000, 1.3170])",
    ),
)
atanh = elementwise(
    "atanh",
    standard("atanh"),
    x=lambda g, x: g / ((1 - x) * (1 + x)),
    floating=True,
    domain=both(-0.8, 0.8),
    doc=documented(
        "Return the number whose tanh is x.",
        "pb.atanh(pb.tensor([0.0, 0.5]))",
        "tensor([0.0000, 0.5493])",
    ),
)


# -- polar coordinates -----------------------------------------------------------------------------
def _share(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return g * x / out, and 0 at the origin."""
    return g * (x / xp.where(out == 0, 1, out))


hypot = elementwise(
    "hypot",
    standard("hypot", ordered=True),
    x=lambda g, x, out, xp: _share(g, x, out, xp),
    y=lambda g, y, out, xp: _share(g, y, out, xp),
    floating=True,
    domain={"x": real(-2, 2), "y": real(0.5, 2)},
    doc=documented(
        "Return the square root of x ** 2 + y ** 2, without overflow; the slopes at (0, 0) are 0.",
        "pb.hypot(pb.tensor([3.0]), pb.tensor([4.0]))",
        "tensor([5.])",
    ),
)


def _square_radius(x: Any, y: Any, xp: Any) -> Any:
    """Return x ** 2 + y ** 2, and 1 at the origin."""
    square = x * x + y * y
    return xp.where(square == 0, 1, square)


atan2 = elementwise(
    "atan2",
    standard("atan2", ordered=True),
    x=lambda g, x, y, xp: g * y / _square_radius(x, y, xp),
    y=lambda g, x, y, xp: -(g * x / _square_radius(x, y, xp)),
    floating=True,
    domain={"x": real(-2, 2), "y": real(0.5, 2)},
    doc=documented(
        "Return the angle of the point (y, x), whose tangent is x / y; the slopes at (0, 0) are 0.",
        "pb.atan2(pb.tensor([1.0, 1.0]), pb.tensor([1.0, -1.0]))",
        "tensor([0.7854, 2.3562])",
    ),
)

_DEGREE = math.pi / 180
deg2rad = elementwise(
    "deg2rad",
    lambda xp, x: x * _DEGREE,
    x=lambda g: g * _DEGREE,
    floating=True,
    domain=real(-180, 180),
    doc=documented(
        "Return degrees as radians, x * pi / 180.",
        "pb.deg2rad(pb.tensor([180.0]))",
        "tensor([3.1416])",
    ),
)
rad2deg = elementwise(
    "rad2deg",
    lambda xp, x: x / _DEGREE,
    x=lambda g: g / _DEGREE,
    floating=True,
    domain=real(-3, 3),
    doc=documented(
        "Return radians as degrees, x * 180 / pi.",
        "pb.rad2deg(pb.tensor([pb.pi]))",
        "tensor([180.])",
    ),
)
