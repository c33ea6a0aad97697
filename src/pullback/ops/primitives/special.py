"""Error functions, the normal distribution and others, element by element.

The values are SciPy's (``pip install 'pullback[scipy]'``), CuPy's on a GPU; `logit` and `sinc` need
neither. All but `sinc` refuse complex numbers. Each rule multiplies the gradient ``g`` by the
derivative, written in declared functions, so that second derivatives follow. Derivatives:
https://dlmf.nist.gov, chapter 7.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.declare import elementwise, op_for, operation
from pullback.ops.examples import documented
from pullback.ops.from_scipy import from_scipy, needs_real
from pullback.ops.samples import both, real, sample

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


# -- error functions -------------------------------------------------------------------------------
erf_p = from_scipy(
    "erf",
    x=lambda g, x, xp: g * (xp.exp(-(x * x)) * (2 / _ROOT_PI)),
    domain=real(-2, 2),
    reference="math.erf",
    methods="erf erf_",
    doc=documented(
        "Return the error function, 2 / sqrt(pi) times the integral of exp(-t ** 2) from 0 to x.",
        "pb.erf(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.8427])",
    ),
)
erf = erf_p.public


erfc_p = from_scipy(
    "erfc",
    x=lambda g, x, xp: g * (xp.exp(-(x * x)) * (-2 / _ROOT_PI)),
    domain=real(-2, 2),
    reference="math.erfc",
    methods="erfc erfc_",
    doc=documented(
        "Return 1 - erf(x), accurate where that is small.",
        "pb.erfc(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.1573])",
    ),
)
erfc = erfc_p.public


erfcx_p = from_scipy(
    "erfcx",
    x=lambda g, x, out: g * (x * out * 2 - 2 / _ROOT_PI),
    domain=real(-1, 2),
    reference=(lambda math, x: math.exp(x * x) * math.erfc(x)),
    doc=documented(
        "Return exp(x ** 2) * erfc(x), without underflow.",
        "pb.erfcx(pb.tensor([0.0, 100.0]))",
        "tensor([1.0000, 0.0056])",
    ),
)
erfcx = erfcx_p.public


erfinv_p = from_scipy(
    "erfinv",
    x=lambda g, out, xp: g * (xp.exp(out * out) * (_ROOT_PI / 2)),
    domain=real(-0.8, 0.8),
    methods="erfinv erfinv_",
    doc=documented(
        "Return the number whose erf is x.",
        "pb.erfinv(pb.tensor([0.0, 0.5]))",
        "tensor([0.0000, 0.4769])",
    ),
)
erfinv = erfinv_p.public


erfcinv_p = from_scipy(
    "erfcinv",
    x=lambda g, out, xp: g * (xp.exp(out * out) * (-_ROOT_PI / 2)),
    domain=real(0.2, 1.8),
    doc=documented(
        "Return the number whose erfc is x.",
        "pb.special.erfcinv(pb.tensor([0.5, 1.5]))",
        "tensor([ 0.4769, -0.4769])",
    ),
)
erfcinv = erfcinv_p.public


# -- the normal distribution -----------------------------------------------------------------------
ndtr_p = from_scipy(
    "ndtr",
    x=lambda g, x, xp: g * (xp.exp(x * x * -0.5) * (1 / _ROOT_2PI)),
    domain=real(-2, 2),
    reference=(lambda math, x: math.erfc(-x / math.sqrt(2)) / 2),
    doc=documented(
        "Return the probability that a standard normal variable is less than x.",
        "pb.ndtr(pb.tensor([0.0, 1.0]))",
        "tensor([0.5000, 0.8413])",
    ),
)
ndtr = ndtr_p.public


def _hazard(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return g times density over probability, by formulas that neither overflow nor cancel."""
    low, high = xp.minimum(x, 0), xp.maximum(x, 0)
    left = 2 / op_for(xp, erfcx_p)(low * -_ROOT_HALF)
    right = xp.exp(high * high * -0.5 - xp.maximum(out, -1))
    return g * (xp.where(x < 0, left, right) * (1 / _ROOT_2PI))


log_ndtr_p = from_scipy(
    "log_ndtr",
    x=_hazard,
    domain=real(-2, 2),
    reference=(lambda math, x: math.log(math.erfc(-x / math.sqrt(2)) / 2)),
    doc=documented(
        "Return log(ndtr(x)), without underflow.",
        "pb.log_ndtr(pb.tensor([0.0, -100.0]))",
        "tensor([   -0.6931, -5005.5244])",
    ),
)
log_ndtr = log_ndtr_p.public


ndtri_p = from_scipy(
    "ndtri",
    x=lambda g, out, xp: g * (xp.exp(out * out * 0.5) * _ROOT_2PI),
    domain=real(0.1, 0.9),
    doc=documented(
        "Return the number whose ndtr is x.",
        "pb.ndtri(pb.tensor([0.5, 0.975]))",
        "tensor([0.0000, 1.9600])",
    ),
)
ndtri = ndtri_p.public


# -- entropy ---------------------------------------------------------------------------------------
entr_p = from_scipy(
    "entr",
    x=lambda g, x, xp: -g * (xp.log(x) + 1),
    domain=real(0.2, 3),
    reference=(lambda np, x: -x * np.log(x)),
    doc=documented(
        "Return -x * log(x), 0 where x is 0 and -inf where it is negative.",
        "pb.entr(pb.tensor([0.0, 0.5]))",
        "tensor([0.0000, 0.3466])",
    ),
)
entr = entr_p.public


# -- exponential integrals -------------------------------------------------------------------------
exp1_p = from_scipy(
    "exp1",
    x=lambda g, x, xp: -g * xp.exp(-x) / x,
    domain=real(0.5, 3),
    doc=documented(
        "Return the integral of exp(-t) / t from x to infinity.",
        "pb.special.exp1(pb.tensor([1.0, 2.0]))",
        "tensor([0.2194, 0.0489])",
    ),
)
exp1 = exp1_p.public


expi_p = from_scipy(
    "expi",
    x=lambda g, x, xp: g * xp.exp(x) / x,
    domain=real(0.5, 3),
    doc=documented(
        "Return the principal value of the integral of exp(t) / t from -infinity to x.",
        "pb.special.expi(pb.tensor([1.0, 2.0]))",
        "tensor([1.8951, 4.9542])",
    ),
)
expi = expi_p.public


# -- without SciPy ---------------------------------------------------------------------------------
def _logit(xp: Any, x: Any, *, eps: float | None = None) -> Any:
    needs_real("logit", ("x",), (x,))
    if eps is not None:
        x = xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.log(x) - xp.log1p(-x)


def _logit_slope(g: Any, x: Any, eps: float | None, xp: Any) -> Any:
    if eps is None:
        return g / (x * (1 - x))
    outside = (x < eps) | (x > 1 - eps)
    safe = xp.where(outside, 0.5, x)
    return xp.where(outside, 0, g / (safe * (1 - safe)))


logit_p = operation(
    "logit",
    _logit,
    rules={"x": _logit_slope},
    floating=True,
    domain=real(0.05, 0.95, 0.3, 0.7),
    samples=(sample((3, 4)), sample((), eps=0.3), sample((0, 3)), sample((6,), eps=0.3)),
    doc="Return log(x / (1 - x)).",
    batch="leading",
)


def _sinc(xp: Any, x: Any) -> Any:
    y = xp.where(x == 0, 1, x * math.pi)
    return xp.where(x == 0, 1, xp.sin(y) / y)


def _sinc_slope(g: Any, x: Any, xp: Any) -> Any:
    """Return g * pi times the slope of sin(y) / y; near 0 by its series, that of -y / 3."""
    y = x * math.pi
    near = xp.abs(y) < 0.1
    far, z = xp.where(near, 1, y), xp.where(near, y, 0)
    slope = (xp.cos(far) - xp.sin(far) / far) / far
    z2 = z * z
    series = z * (1 - z2 / 10 * (1 - z2 / 28 * (1 - z2 / 54 * (1 - z2 / 88))))
    return g * (xp.where(near, series * (-1 / 3), slope) * math.pi)


sinc_p = elementwise(
    "sinc",
    _sinc,
    x=_sinc_slope,
    floating=True,
    domain=both(-2, 2),
    methods="sinc sinc_",
    doc=documented(
        "Return sin(pi x) / (pi x), and 1 at 0.",
        "pb.sinc(pb.tensor([0.0, 0.5]))",
        "tensor([1.0000, 0.6366])",
    ),
    numpy="sinc: x",
)
sinc = sinc_p.public


# -- roots -----------------------------------------------------------------------------------------
def _cbrt(xp: Any, x: Any) -> Any:
    needs_real("cbrt", ("x",), (x,))
    return xp.copysign(xp.abs(x) ** (1 / 3), x)


cbrt_p = elementwise(
    "cbrt",
    _cbrt,
    unchecked_forward=lambda xp, x: xp.cbrt(x),
    x=lambda g, out: g / (3 * out * out),
    floating=True,
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return the real cube root; the derivative at 0 is inf.",
        "pb.special.cbrt(pb.tensor([-8.0, 1.0], dtype=pb.float64))",
        "tensor([-2.,  1.], dtype=float64)",
    ),
    numpy="cbrt",
)
cbrt = cbrt_p.public
