"""Exponentials, logarithms, powers and roots, element by element.

Each rule multiplies the gradient ``g`` by the derivative.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.declare import Primitive, elementwise, needs_order, op_for, standard
from pullback.ops.examples import documented
from pullback.ops.primitives.cones import toward_p
from pullback.ops.samples import both, real

_LN2, _LN10 = math.log(2), math.log(10)


# -- exponentials ----------------------------------------------------------------------------------
exp_p = elementwise(
    "exp",
    x=lambda g, out: g * out,
    floating=True,
    domain=both(-2, 2),
    methods="exp exp_",
    doc=documented("Return e ** x.", "pb.exp(pb.tensor([0.0, 1.0]))", "tensor([1.0000, 2.7183])"),
)
exp = exp_p.public


exp2_p = elementwise(
    "exp2",
    lambda xp, x: 2.0**x,
    unchecked_forward=lambda xp, x: xp.exp2(x),
    x=lambda g, out: g * out * _LN2,
    floating=True,
    domain=both(-2, 2),
    methods="exp2 exp2_",
    doc=documented("Return 2 ** x.", "pb.exp2(pb.tensor([0.0, 3.0]))", "tensor([1., 8.])"),
)
exp2 = exp2_p.public


expm1_p = elementwise(
    "expm1",
    x=lambda g, out: g * (out + 1),
    floating=True,
    domain=both(-2, 2),
    methods="expm1 expm1_",
    doc=documented(
        "Return e ** x - 1, accurate near 0.", "pb.expm1(pb.tensor(1e-9))", "tensor(1.0000e-09)"
    ),
)
expm1 = expm1_p.public


# -- logarithms ------------------------------------------------------------------------------------
log_p = elementwise(
    "log",
    x=lambda g, x: g / x,
    floating=True,
    domain=both(0.5, 3),
    methods="log log_",
    doc=documented("Return ln x.", "pb.log(pb.tensor([1.0, 2.0]))", "tensor([0.0000, 0.6931])"),
)
log = log_p.public


log1p_p = elementwise(
    "log1p",
    x=lambda g, x: g / (x + 1),
    floating=True,
    domain=both(-0.5, 2),
    methods="log1p log1p_",
    doc=documented(
        "Return ln(1 + x), accurate near 0.",
        "pb.log1p(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.6931])",
    ),
)
log1p = log1p_p.public


log2_p = elementwise(
    "log2",
    x=lambda g, x: g / x * (1 / _LN2),
    floating=True,
    domain=both(0.5, 3),
    methods="log2 log2_",
    doc=documented(
        "Return the logarithm to base 2.", "pb.log2(pb.tensor([1.0, 8.0]))", "tensor([0., 3.])"
    ),
)
log2 = log2_p.public


log10_p = elementwise(
    "log10",
    x=lambda g, x: g / x * (1 / _LN10),
    floating=True,
    domain=both(0.5, 3),
    methods="log10 log10_",
    doc=documented(
        "Return the logarithm to base 10.",
        "pb.log10(pb.tensor([1.0, 2.0]))",
        "tensor([0.0000, 0.3010])",
    ),
)
log10 = log10_p.public


def _weight(g: Any, x: Any, y: Any, out: Any, xp: Any) -> Any:
    """Return g * exp(x - out); equal infinities share by halves, as all equals do."""
    equal = xp.where(x == y, -_LN2, xp.zeros_like(out))
    return g * xp.exp(xp.where(x == out, equal, x - out))


logaddexp_p = elementwise(
    "logaddexp",
    standard("logaddexp", ordered=True),
    x=lambda g, x, y, out, xp: _weight(g, x, y, out, xp),
    y=lambda g, x, y, out, xp: _weight(g, y, x, out, xp),
    floating=True,
    domain=real(-2, 2),
    methods="logaddexp",
    doc=documented(
        "Return log(exp(x) + exp(y)), without overflow.",
        "pb.logaddexp(pb.tensor([0.0, 1000.0]), pb.tensor([0.0, 1000.0]))",
        "tensor([   0.6931, 1000.6932])",
    ),
)
logaddexp = logaddexp_p.public


def _beside(x: Any, y: Any, xp: Any) -> Any:
    """Return y as an array of the dtype of x, where it is a number of Python."""
    return xp.zeros_like(x) + y if isinstance(y, (int, float)) else y


def _times_log(name: str, log: str, harmless: int, doc: str, **more: Any) -> Primitive:
    """Declare x * log(y), which is 0 where x is 0; the logarithm of `harmless` is 0."""

    def settled(x: Any, y: Any, xp: Any) -> Any:
        """Return y, but what does no harm where x is 0."""
        y = _beside(x, y, xp)
        return xp.where((x == 0) & (y == y), harmless, y)

    def kernel(xp: Any, x: Any, y: Any) -> Any:
        return x * getattr(xp, log)(settled(x, y, xp))

    def forward(xp: Any, x: Any, y: Any) -> Any:
        needs_order(name, x, y)
        return kernel(xp, x, y)

    def at_a_pole(x: Any, y: Any) -> Any:
        return (x == 0) & (y <= harmless - 1)

    def slope_in_x(g: Any, x: Any, y: Any, xp: Any) -> Any:
        y = _beside(x, y, xp)
        return g * getattr(xp, log)(xp.where(at_a_pole(x, y), harmless, y))

    def slope_in_y(g: Any, x: Any, y: Any, xp: Any) -> Any:
        # Of x ln(x) at 0 the curvature is infinite.
        x = _beside(y, x, xp)
        tip = xp.where(at_a_pole(x, y), x, xp.ones_like(x))
        moved = op_for(xp, toward_p)(g, x, tip)
        return moved / (settled(x, y, xp) + (1 - harmless))

    return elementwise(
        name,
        forward,
        unchecked_forward=kernel,
        x=slope_in_x,
        y=slope_in_y,
        floating=True,
        domain={"x": real(-2, 2), "y": real(0.5, 2)},
        doc=doc,
        **more,
    )


xlogy_p = _times_log(
    "xlogy",
    "log",
    1,
    documented(
        "Return x * ln(y), and 0 where x is 0 unless y is NaN.",
        "pb.xlogy(pb.tensor([0.0, 2.0]), pb.tensor([0.0, pb.e]))",
        "tensor([0., 2.])",
    ),
    reference=lambda np, x, y: np.log(y**x),
    methods="xlogy xlogy_",
)
xlogy = xlogy_p.public


xlog1py_p = _times_log(
    "xlog1py",
    "log1p",
    0,
    documented(
        "Return x * ln(1 + y), and 0 where x is 0 unless y is NaN.",
        "pb.xlog1py(pb.tensor([0.0, 2.0]), pb.tensor([-1.0, pb.e - 1]))",
        "tensor([0., 2.])",
    ),
    reference=lambda np, x, y: np.log((1 + y) ** x),
)
xlog1py = xlog1py_p.public


# -- powers and roots ------------------------------------------------------------------------------
sqrt_p = elementwise(
    "sqrt",
    x=lambda g, out: g / out * 0.5,
    floating=True,
    domain=both(0.5, 3),
    methods="sqrt sqrt_",
    doc=documented(
        "Return the square root; the derivative at 0 is inf.",
        "pb.sqrt(pb.tensor([4.0, 9.0]))",
        "tensor([2., 3.])",
    ),
)
sqrt = sqrt_p.public


rsqrt_p = elementwise(
    "rsqrt",
    lambda xp, x: 1 / xp.sqrt(x),
    x=lambda g, out: g * out * out * out * -0.5,
    floating=True,
    domain=both(0.5, 3),
    reference=(lambda x: x**-0.5),
    methods="rsqrt rsqrt_",
    doc=documented(
        "Return 1 / sqrt(x).", "pb.rsqrt(pb.tensor([4.0, 16.0]))", "tensor([0.5000, 0.2500])"
    ),
)
rsqrt = rsqrt_p.public


square_p = elementwise(
    "square",
    x=lambda g, x: g * (2 * x),
    domain=both(-2, 2),
    methods="square square_",
    doc=documented("Return x * x.", "pb.square(pb.tensor([2.0, -3.0]))", "tensor([4., 9.])"),
)
square = square_p.public


reciprocal_p = elementwise(
    "reciprocal",
    x=lambda g, out: -(g * out * out),
    floating=True,
    domain=both(0.5, 2),
    methods="reciprocal reciprocal_",
    doc=documented(
        "Return 1 / x.", "pb.reciprocal(pb.tensor([2.0, -4.0]))", "tensor([ 0.5000, -0.2500])"
    ),
)
reciprocal = reciprocal_p.public
