"""Special functions, element by element; their values are SciPy's.

Owns how SciPy's functions are declared: their values are SciPy's (``pip install pullback[scipy]``),
CuPy's on a GPU; `logit` and `sinc` need neither. All but `sinc` refuse complex numbers. Each rule
multiplies the gradient ``g`` by the derivative, written in declared functions, so that second
derivatives follow. Derivatives: https://dlmf.nist.gov, chapters 7 and 10.

The parameters of the distributions and the first arguments of gammainc, gammaincc and zeta have no
rule: asking for their gradient is an error. Their derivatives are in chapters 5, 8 and 25.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.errors import DTypeError, compose
from pullback.ops.declare import Domain, Primitive, elementwise, on, operation
from pullback.ops.examples import documented
from pullback.ops.primitives.exponential import xlog1py_p, xlogy_p
from pullback.ops.samples import both, real, sample

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


# -- SciPy's functions -----------------------------------------------------------------------------
def needs_real(op: str, inputs: tuple[str, ...], arrays: tuple[Any, ...]) -> None:
    """Raise where a function of real numbers got complex ones."""
    for name, array in zip(inputs, arrays, strict=True):
        if "complex" in str(array.dtype):
            came, hint = str(array.dtype).rpartition(".")[2], "take its real part, or its abs"
            raise DTypeError(compose(op, "real numbers required", came, (name, array), hint=hint))


def from_scipy(
    name: str,
    scipy_name: str,
    *,
    domain: Domain | dict[str, Domain],
    doc: str,
    inputs: tuple[str, ...] = ("x",),
    **rules: Any,
) -> Primitive:
    """Declare a function of SciPy's."""

    def kernel(xp: Any, *arrays: Any) -> Any:
        return like(arrays[0], library_of(arrays[0]).special(scipy_name, *arrays))

    def forward(xp: Any, *arrays: Any) -> Any:
        needs_real(name, inputs, arrays)
        return kernel(xp, *arrays)

    return elementwise(
        name,
        forward,
        kernel=kernel,
        inputs=inputs,
        floating=True,
        domain=domain,
        doc=doc,
        **rules,
    )


def like(x: Any, result: Any) -> Any:
    """Return the result in the dtype of `x`: SciPy has no half precision, and widens numbers."""
    library = library_of(x)
    result = library.tidy(result)
    return result if result.dtype == x.dtype else library.astype(result, library.dtype(x))


# -- error functions -------------------------------------------------------------------------------
erf_p = from_scipy(
    "erf",
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


# -- the normal distribution -----------------------------------------------------------------------
ndtr_p = from_scipy(
    "ndtr",
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
    left = 2 / on(xp, erfcx_p)(low * -_ROOT_HALF)
    right = xp.exp(high * high * -0.5 - xp.maximum(out, -1))
    return g * (xp.where(x < 0, left, right) * (1 / _ROOT_2PI))


log_ndtr_p = from_scipy(
    "log_ndtr",
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


# -- Bessel functions ------------------------------------------------------------------------------
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
    reference="numpy.sinc",
    methods="sinc sinc_",
    doc=documented(
        "Return sin(pi x) / (pi x), and 1 at 0.",
        "pb.sinc(pb.tensor([0.0, 0.5]))",
        "tensor([1.0000, 0.6366])",
    ),
)
sinc = sinc_p.public


# -- gamma functions -------------------------------------------------------------------------------
lgamma_p = from_scipy(
    "lgamma",
    "gammaln",
    x=lambda g, x, xp: g * on(xp, digamma_p)(x),
    domain=real(0.5, 4),
    reference="math.lgamma",
    methods="lgamma lgamma_",
    doc=documented(
        "Return the logarithm of the magnitude of the gamma function.",
        "pb.lgamma(pb.tensor([1.0, 5.0]))",
        "tensor([0.0000, 3.1781])",
    ),
)
lgamma = gammaln = lgamma_p.public


digamma_p: Primitive = from_scipy(
    "digamma",
    "psi",
    x=lambda g, x, xp: g * on(xp, polygamma_p)(x, n=1),
    domain=real(0.5, 4),
    reference="scipy.special.digamma",
    methods="digamma digamma_",
    doc=documented(
        "Return the derivative of lgamma.",
        "pb.digamma(pb.tensor([1.0, 5.0]))",
        "tensor([-0.5772,  1.5061])",
    ),
)
digamma = psi = digamma_p.public


def _polygamma(xp: Any, x: Any, *, n: int) -> Any:
    needs_real("polygamma", ("x",), (x,))
    special = library_of(x).special
    if n == 0:
        return like(x, special("psi", x))
    factor = (-1) ** (n + 1) * float(math.factorial(n))
    return like(x, special("zeta", xp.full_like(x, n + 1), x) * factor)


polygamma_p: Primitive = operation(
    "polygamma",
    _polygamma,
    rules={"x": lambda g, x, n, xp: g * on(xp, polygamma_p)(x, n=n + 1)},
    floating=True,
    domain=real(0.8, 4),
    samples=(sample((3, 4), n=1), sample((), n=0), sample((0, 3), n=2), sample((5,), n=3)),
    reference=(lambda scipy, x, n: scipy.special.polygamma(n, x)),
    doc="Return the n-th derivative of digamma.",
)


# -- incomplete gamma functions --------------------------------------------------------------------
def _density(g: Any, a: Any, x: Any, xp: Any) -> Any:
    """Return g times the density of the gamma distribution of shape a at x."""
    return g * xp.exp(on(xp, xlogy_p)(a - 1, x) - x - on(xp, lgamma_p)(a))


gammainc_p = from_scipy(
    "gammainc",
    "gammainc",
    inputs=("a", "x"),
    x=lambda g, a, x, xp: _density(g, a, x, xp),
    domain=real(0.5, 3),
    doc="Return the regularised lower incomplete gamma function.",
)


gammaincc_p = from_scipy(
    "gammaincc",
    "gammaincc",
    inputs=("a", "x"),
    x=lambda g, a, x, xp: -_density(g, a, x, xp),
    domain=real(0.5, 3),
    doc="Return the regularised upper incomplete gamma function.",
)


betaln_p = from_scipy(
    "betaln",
    "betaln",
    inputs=("a", "b"),
    a=lambda g, a, b, xp: g * (on(xp, digamma_p)(a) - on(xp, digamma_p)(a + b)),
    b=lambda g, a, b, xp: g * (on(xp, digamma_p)(b) - on(xp, digamma_p)(a + b)),
    domain=real(0.5, 3),
    reference=(lambda math, a, b: math.log(math.gamma(a) * math.gamma(b) / math.gamma(a + b))),
    doc="Return the logarithm of the beta function.",
)


zeta_p: Primitive = from_scipy(
    "zeta",
    "zeta",
    inputs=("s", "q"),
    q=lambda g, s, q, xp: -(g * s * on(xp, zeta_p)(s + 1, q)),
    domain={"s": real(2, 4), "q": real(0.5, 3)},
    doc="Return Hurwitz's zeta function.",
)


# -- distributions ---------------------------------------------------------------------------------
entr_p = from_scipy(
    "entr",
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


def _beta_density(g: Any, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return g times the density of the beta distribution of shapes a and b at x."""
    powers = on(xp, xlogy_p)(a - 1, x) + on(xp, xlog1py_p)(b - 1, -x)
    return g * xp.exp(powers - on(xp, betaln_p)(a, b))


betainc_p = from_scipy(
    "betainc",
    "betainc",
    inputs=("a", "b", "x"),
    x=_beta_density,
    domain={"a": real(0.5, 3), "b": real(0.5, 3), "x": real(0.1, 0.9)},
    doc="Return the regularised incomplete beta function.",
)


def _student_density(g: Any, df: Any, t: Any, xp: Any) -> Any:
    """Return g times the density of Student's distribution at t."""
    power = xp.log1p(t * t / df) * ((df + 1) / 2)
    return g * (xp.exp(-power - on(xp, betaln_p)(df / 2, xp.full_like(df, 0.5))) / xp.sqrt(df))


stdtr_p = from_scipy(
    "stdtr",
    "stdtr",
    inputs=("df", "t"),
    t=_student_density,
    domain={"df": real(1, 5), "t": real(-2, 2)},
    doc="Return the distribution function of Student's t.",
)


def _f_density(g: Any, dfn: Any, dfd: Any, x: Any, xp: Any) -> Any:
    """Return -g times the density of the F distribution at x."""
    a, b = dfn / 2, dfd / 2
    ratio = dfn / dfd
    log = on(xp, xlogy_p)(a - 1, x * ratio) - (a + b) * xp.log1p(x * ratio)
    return -g * (ratio * xp.exp(log - on(xp, betaln_p)(a, b)))


fdtrc_p = from_scipy(
    "fdtrc",
    "fdtrc",
    inputs=("dfn", "dfd", "x"),
    x=_f_density,
    domain={"dfn": real(1, 5), "dfd": real(1, 5), "x": real(0.3, 3)},
    doc="Return the survival function of the F distribution.",
)
