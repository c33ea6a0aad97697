"""Bessel functions, element by element; their values are SciPy's.

The derivatives by x are those of https://dlmf.nist.gov, sections 10.6 and 10.29.
"""

from __future__ import annotations

from typing import Any

from pullback.ops.declare import Primitive, on
from pullback.ops.examples import documented
from pullback.ops.from_scipy import from_scipy
from pullback.ops.samples import real


def _i1_over_x(x: Any, out: Any, xp: Any) -> Any:
    """Return out / x, whose limit at 0 is 1/2, for out = i1(x) or i1e(x)."""
    return xp.where(x == 0, 0.5, out / xp.where(x == 0, 1, x))


i0_p = from_scipy(
    "i0",
    "i0",
    x=lambda g, x, xp: g * on(xp, i1_p)(x),
    domain=real(-2, 2),
    methods="i0 i0_",
    doc=documented(
        "Return the modified Bessel function of the first kind and order 0.",
        "pb.i0(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 1.2661])",
    ),
)
i0 = i0_p.public


i1_p: Primitive = from_scipy(
    "i1",
    "i1",
    x=lambda g, x, out, xp: g * (on(xp, i0_p)(x) - _i1_over_x(x, out, xp)),
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
    "i0e",
    x=lambda g, x, out, xp: g * (on(xp, i1e_p)(x) - xp.sign(x) * out),
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
    "i1e",
    x=lambda g, x, out, xp: g * (on(xp, i0e_p)(x) - _i1_over_x(x, out, xp) - xp.sign(x) * out),
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return exp(-abs(x)) * i1(x), without overflow.",
        "pb.i1e(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.2079])",
    ),
)
i1e = i1e_p.public
