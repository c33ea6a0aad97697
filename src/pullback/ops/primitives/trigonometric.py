"""Circular and hyperbolic functions, element by element, their inverses, and polar coordinates.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: hypot and
atan2 have the derivative 0 at the origin.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.declare import elementwise, op_for, standard
from pullback.ops.examples import documented
from pullback.ops.primitives.cones import toward_p
from pullback.ops.samples import both, real

# -- circular --------------------------------------------------------------------------------------
sin_p = elementwise(
    "sin",
    x=lambda g, x, xp: g * xp.cos(x),
    floating=True,
    domain=both(-2, 2),
    methods="sin sin_",
    doc=documented(
        "Return sin x, the angle x in radians.",
        "pb.sin(pb.tensor([0.0, pb.pi / 6]))",
        "tensor([0.0000, 0.5000])",
    ),
)
sin = sin_p.public


cos_p = elementwise(
    "cos",
    x=lambda g, x, xp: -(g * xp.sin(x)),
    floating=True,
    domain=both(-2, 2),
    methods="cos cos_",
    doc=documented(
        "Return cos x, the angle x in radians.",
        "pb.cos(pb.tensor([0.0, pb.pi / 3]))",
        "tensor([1.0000, 0.5000])",
    ),
)
cos = cos_p.public


tan_p = elementwise(
    "tan",
    x=lambda g, out: g * (1 + out * out),
    floating=True,
    domain=both(-1, 1),
    methods="tan tan_",
    doc=documented(
        "Return tan x, the angle x in radians.",
        "pb.tan(pb.tensor([0.0, pb.pi / 4]))",
        "tensor([0., 1.])",
    ),
)
tan = tan_p.public


asin_p = elementwise(
    "asin",
    x=lambda g, x, xp: g / xp.sqrt((1 - x) * (1 + x)),
    floating=True,
    domain=both(-0.8, 0.8),
    methods="asin asin_ arcsin arcsin_",
    doc=documented(
        "Return the angle between -pi/2 and pi/2 whose sine is x.",
        "pb.asin(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 1.5708])",
    ),
    numpy="arcsin",
)
asin = arcsin = asin_p.public


acos_p = elementwise(
    "acos",
    x=lambda g, x, xp: -(g / xp.sqrt((1 - x) * (1 + x))),
    floating=True,
    domain=both(-0.8, 0.8),
    methods="acos acos_ arccos arccos_",
    doc=documented(
        "Return the angle between 0 and pi whose cosine is x.",
        "pb.acos(pb.tensor([0.0, 1.0]))",
        "tensor([1.5708, 0.0000])",
    ),
    numpy="arccos",
)
acos = arccos = acos_p.public


atan_p = elementwise(
    "atan",
    x=lambda g, x: g / (x * x + 1),
    floating=True,
    domain=both(-0.8, 0.8),
    methods="atan atan_ arctan arctan_",
    doc=documented(
        "Return the angle between -pi/2 and pi/2 whose tangent is x.",
        "pb.atan(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.7854])",
    ),
    numpy="arctan",
)
atan = arctan = atan_p.public


# -- hyperbolic ------------------------------------------------------------------------------------
sinh_p = elementwise(
    "sinh",
    x=lambda g, x, xp: g * xp.cosh(x),
    floating=True,
    domain=both(-2, 2),
    methods="sinh sinh_",
    doc=documented(
        "Return sinh x = (e ** x - e ** -x) / 2.",
        "pb.sinh(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 1.1752])",
    ),
)
sinh = sinh_p.public


cosh_p = elementwise(
    "cosh",
    x=lambda g, x, xp: g * xp.sinh(x),
    floating=True,
    domain=both(-2, 2),
    methods="cosh cosh_",
    doc=documented(
        "Return cosh x = (e ** x + e ** -x) / 2.",
        "pb.cosh(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 1.5431])",
    ),
)
cosh = cosh_p.public


tanh_p = elementwise(
    "tanh",
    x=lambda g, out: g * -(out * out - 1),
    floating=True,
    domain=both(-1, 1),
    methods="tanh tanh_",
    doc=documented(
        "Return tanh x = sinh x / cosh x.",
        "pb.tanh(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.7616])",
    ),
)
tanh = tanh_p.public


asinh_p = elementwise(
    "asinh",
    x=lambda g, x, xp: g / xp.sqrt(x * x + 1),
    floating=True,
    domain=both(-0.8, 0.8),
    methods="asinh asinh_ arcsinh arcsinh_",
    doc=documented(
        "Return the number whose sinh is x.",
        "pb.asinh(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.8814])",
    ),
    numpy="arcsinh",
)
asinh = arcsinh = asinh_p.public


acosh_p = elementwise(
    "acosh",
    # Two roots: one of x * x - 1 is the other branch where the real part is negative.
    x=lambda g, x, xp: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)),
    floating=True,
    domain=both(1.2, 3),
    methods="acosh acosh_ arccosh arccosh_",
    doc=documented(
        "Return the number that is not negative whose cosh is x.",
        "pb.acosh(pb.tensor([1.0, 2.0]))",
        "tensor([0.0000, 1.3170])",
    ),
    numpy="arccosh",
)
acosh = arccosh = acosh_p.public


atanh_p = elementwise(
    "atanh",
    x=lambda g, x: g / ((1 - x) * (1 + x)),
    floating=True,
    domain=both(-0.8, 0.8),
    methods="atanh atanh_ arctanh arctanh_",
    doc=documented(
        "Return the number whose tanh is x.",
        "pb.atanh(pb.tensor([0.0, 0.5]))",
        "tensor([0.0000, 0.5493])",
    ),
    numpy="arctanh",
)
atanh = arctanh = atanh_p.public


# -- polar coordinates -----------------------------------------------------------------------------
hypot_p = elementwise(
    "hypot",
    standard("hypot", ordered=True),
    x=lambda g, x, out, xp: op_for(xp, toward_p)(g, x, out),
    y=lambda g, y, out, xp: op_for(xp, toward_p)(g, y, out),
    floating=True,
    domain={"x": real(-2, 2), "y": real(0.5, 2)},
    methods="hypot hypot_",
    doc=documented(
        "Return the square root of x ** 2 + y ** 2, without overflow; the slopes at (0, 0) are 0.",
        "pb.hypot(pb.tensor([3.0]), pb.tensor([4.0]))",
        "tensor([5.])",
    ),
)
hypot = hypot_p.public


def _turning(g: Any, x: Any, y: Any, xp: Any) -> Any:
    """Return g x / (x ** 2 + y ** 2), and 0 at the origin."""
    radius = op_for(xp, hypot_p)(x, y)
    return op_for(xp, toward_p)(g, x, radius) / xp.where(radius == 0, 1, radius)


atan2_p = elementwise(
    "atan2",
    standard("atan2", ordered=True),
    x=lambda g, x, y, xp: _turning(g, y, x, xp),
    y=lambda g, x, y, xp: -_turning(g, x, y, xp),
    floating=True,
    domain={"x": real(-2, 2), "y": real(0.5, 2)},
    methods="atan2 atan2_ arctan2 arctan2_",
    doc=documented(
        "Return the angle of the point (y, x), whose tangent is x / y; the slopes at (0, 0) are 0.",
        "pb.atan2(pb.tensor([1.0, 1.0]), pb.tensor([1.0, -1.0]))",
        "tensor([0.7854, 2.3562])",
    ),
    numpy="arctan2",
)
atan2 = arctan2 = atan2_p.public
_DEGREE = math.pi / 180


deg2rad_p = elementwise(
    "deg2rad",
    lambda xp, x: x * _DEGREE,
    x=lambda g: g * _DEGREE,
    floating=True,
    domain=real(-180, 180),
    methods="deg2rad deg2rad_",
    doc=documented(
        "Return degrees as radians, x * pi / 180.",
        "pb.deg2rad(pb.tensor([180.0]))",
        "tensor([3.1416])",
    ),
    numpy="radians",
)
deg2rad = deg2rad_p.public


rad2deg_p = elementwise(
    "rad2deg",
    lambda xp, x: x / _DEGREE,
    x=lambda g: g / _DEGREE,
    floating=True,
    domain=real(-3, 3),
    methods="rad2deg rad2deg_",
    doc=documented(
        "Return radians as degrees, x * 180 / pi.",
        "pb.rad2deg(pb.tensor([pb.pi]))",
        "tensor([180.])",
    ),
    numpy="degrees",
)
rad2deg = rad2deg_p.public
