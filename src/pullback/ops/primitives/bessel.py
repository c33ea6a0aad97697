"""Bessel functions, element by element; their values are SciPy's.

The derivatives by x are those of https://dlmf.nist.gov, sections 10.6 and 10.29.
The orders have no rule: asking for their gradient is an error.
"""

from __future__ import annotations

from typing import Any

from pullback.ops.declare import Primitive, op_for
from pullback.ops.examples import documented
from pullback.ops.from_scipy import from_scipy
from pullback.ops.samples import real

# -- of the first and the second kind --------------------------------------------------------------
j0_p = from_scipy(
    "j0",
    x=lambda g, x, xp: -g * op_for(xp, j1_p)(x),
    domain=real(-4, 4),
    doc=documented(
        "Return the Bessel function of the first kind and order 0.",
        "pb.special.j0(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.7652])",
    ),
)
j0 = j0_p.public


def _two(x: Any, xp: Any) -> Any:
    """Return the order 2 for every element of `x`."""
    return xp.full_like(x, 2.0)


j1_p: Primitive = from_scipy(
    "j1",
    x=lambda g, x, xp: g * ((op_for(xp, j0_p)(x) - op_for(xp, jv_p)(_two(x, xp), x)) / 2),
    domain=real(-4, 4),
    doc=documented(
        "Return the Bessel function of the first kind and order 1.",
        "pb.special.j1(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.4401])",
    ),
)
j1 = j1_p.public


y0_p = from_scipy(
    "y0",
    x=lambda g, x, xp: -g * op_for(xp, y1_p)(x),
    domain=real(0.5, 4),
    doc=documented(
        "Return the Bessel function of the second kind and order 0.",
        "pb.special.y0(pb.tensor([1.0, 2.0]))",
        "tensor([0.0883, 0.5104])",
    ),
)
y0 = y0_p.public


y1_p: Primitive = from_scipy(
    "y1",
    x=lambda g, x, out, xp: g * (op_for(xp, y0_p)(x) - out / x),
    domain=real(0.5, 4),
    doc=documented(
        "Return the Bessel function of the second kind and order 1.",
        "pb.special.y1(pb.tensor([1.0, 2.0]))",
        "tensor([-0.7812, -0.1070])",
    ),
)
y1 = y1_p.public


def _neighbours(op: Primitive, v: Any, x: Any, sign: int, xp: Any) -> Any:
    """Return half of what the orders beside v have at x, one plus `sign` times the other."""
    below, above = op_for(xp, op)(v - 1, x), op_for(xp, op)(v + 1, x)
    return (below + above * sign) / 2


jv_p: Primitive = from_scipy(
    "jv",
    inputs=("v", "x"),
    x=lambda g, v, x, xp: g * _neighbours(jv_p, v, x, -1, xp),
    domain={"v": real(0.5, 3), "x": real(0.5, 4)},
    doc=documented(
        "Return the Bessel function of the first kind and real order v.",
        "pb.special.jv(2.0, pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.1149])",
    ),
)
jv = jn = jv_p.public


yv_p: Primitive = from_scipy(
    "yv",
    inputs=("v", "x"),
    x=lambda g, v, x, xp: g * _neighbours(yv_p, v, x, -1, xp),
    domain={"v": real(0.5, 3), "x": real(0.5, 4)},
    doc=documented(
        "Return the Bessel function of the second kind and real order v.",
        "pb.special.yv(2.0, pb.tensor([1.0, 2.0]))",
        "tensor([-1.6507, -0.6174])",
    ),
)
yv = yv_p.public


# -- modified, of the first kind -------------------------------------------------------------------
def _i1_over_x(x: Any, out: Any, xp: Any) -> Any:
    """Return out / x, whose limit at 0 is 1/2, for out = i1(x) or i1e(x)."""
    return xp.where(x == 0, 0.5, out / xp.where(x == 0, 1, x))


i0_p = from_scipy(
    "i0",
    x=lambda g, x, xp: g * op_for(xp, i1_p)(x),
    domain=real(-2, 2),
    methods="i0 i0_",
    numpy="i0: x",
    doc=documented(
        "Return the modified Bessel function of the first kind and order 0.",
        "pb.i0(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 1.2661])",
    ),
)
i0 = i0_p.public


i1_p: Primitive = from_scipy(
    "i1",
    x=lambda g, x, out, xp: g * (op_for(xp, i0_p)(x) - _i1_over_x(x, out, xp)),
    domain=real(-2, 2),
    doc=documented(
        "Return the modified Bessel function of the first kind and order 1.",
        "pb.i1(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.5652])",
    ),
)
i1 = i1_p.public


i0e_p = from_scipy(
    "i0e",
    x=lambda g, x, out, xp: g * (op_for(xp, i1e_p)(x) - xp.sign(x) * out),
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return exp(-abs(x)) * i0(x), without overflow; the derivative at 0 is 0.",
        "pb.i0e(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.4658])",
    ),
)
i0e = i0e_p.public


i1e_p: Primitive = from_scipy(
    "i1e",
    x=lambda g, x, out, xp: g * (op_for(xp, i0e_p)(x) - _i1_over_x(x, out, xp) - xp.sign(x) * out),
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return exp(-abs(x)) * i1(x), without overflow.",
        "pb.i1e(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.2079])",
    ),
)
i1e = i1e_p.public


iv_p: Primitive = from_scipy(
    "iv",
    inputs=("v", "x"),
    x=lambda g, v, x, xp: g * _neighbours(iv_p, v, x, 1, xp),
    domain={"v": real(0.5, 3), "x": real(0.5, 4)},
    doc=documented(
        "Return the modified Bessel function of the first kind and real order v.",
        "pb.special.iv(2.0, pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.1357])",
    ),
)
iv = iv_p.public


ive_p: Primitive = from_scipy(
    "ive",
    inputs=("v", "x"),
    x=lambda g, v, x, out, xp: g * (_neighbours(ive_p, v, x, 1, xp) - xp.sign(x) * out),
    domain={"v": real(0.5, 3), "x": real(0.5, 4)},
    doc=documented(
        "Return exp(-abs(x)) * iv(v, x), without overflow.",
        "pb.special.ive(2.0, pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.0499])",
    ),
)
ive = ive_p.public


# -- modified, of the second kind ------------------------------------------------------------------
k0_p = from_scipy(
    "k0",
    x=lambda g, x, xp: -g * op_for(xp, k1_p)(x),
    domain=real(0.5, 3),
    doc=documented(
        "Return the modified Bessel function of the second kind and order 0.",
        "pb.special.k0(pb.tensor([1.0, 2.0]))",
        "tensor([0.4210, 0.1139])",
    ),
)
k0 = k0_p.public


k1_p: Primitive = from_scipy(
    "k1",
    x=lambda g, x, out, xp: -g * (op_for(xp, k0_p)(x) + out / x),
    domain=real(0.5, 3),
    doc=documented(
        "Return the modified Bessel function of the second kind and order 1.",
        "pb.special.k1(pb.tensor([1.0, 2.0]))",
        "tensor([0.6019, 0.1399])",
    ),
)
k1 = k1_p.public


k0e_p = from_scipy(
    "k0e",
    x=lambda g, x, out, xp: g * (out - op_for(xp, k1e_p)(x)),
    domain=real(0.5, 3),
    doc=documented(
        "Return exp(x) * k0(x), without underflow.",
        "pb.special.k0e(pb.tensor([1.0, 2.0]))",
        "tensor([1.1445, 0.8416])",
    ),
)
k0e = k0e_p.public


k1e_p: Primitive = from_scipy(
    "k1e",
    x=lambda g, x, out, xp: g * (out - op_for(xp, k0e_p)(x) - out / x),
    domain=real(0.5, 3),
    doc=documented(
        "Return exp(x) * k1(x), without underflow.",
        "pb.special.k1e(pb.tensor([1.0, 2.0]))",
        "tensor([1.6362, 1.0335])",
    ),
)
k1e = k1e_p.public


kv_p: Primitive = from_scipy(
    "kv",
    inputs=("v", "x"),
    x=lambda g, v, x, xp: -g * _neighbours(kv_p, v, x, 1, xp),
    domain={"v": real(0.5, 3), "x": real(0.5, 4)},
    doc=documented(
        "Return the modified Bessel function of the second kind and real order v.",
        "pb.special.kv(2.0, pb.tensor([1.0, 2.0]))",
        "tensor([1.6248, 0.2538])",
    ),
)
kv = kv_p.public


kve_p: Primitive = from_scipy(
    "kve",
    inputs=("v", "x"),
    x=lambda g, v, x, out, xp: g * (out - _neighbours(kve_p, v, x, 1, xp)),
    domain={"v": real(0.5, 3), "x": real(0.5, 4)},
    doc=documented(
        "Return exp(x) * kv(v, x), without underflow.",
        "pb.special.kve(2.0, pb.tensor([1.0]))",
        "tensor([4.4168])",
    ),
)
kve = kve_p.public
