"""The gamma function and what is made of it, element by element; their values are SciPy's.

Derivatives: https://dlmf.nist.gov, chapters 5 and 25. The first argument of zeta has no rule:
asking for its gradient is an error.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.ops.declare import Primitive, op_for, operation
from pullback.ops.examples import documented
from pullback.ops.from_scipy import from_scipy, like, needs_real
from pullback.ops.samples import real, sample

# -- of one argument -------------------------------------------------------------------------------
gamma_p = from_scipy(
    "gamma",
    x=lambda g, x, out, xp: g * (out * op_for(xp, digamma_p)(x)),
    domain=real(0.5, 4),
    reference="math.gamma",
    doc=documented(
        "Return the gamma function.",
        "pb.special.gamma(pb.tensor([0.5, 4.0]))",
        "tensor([1.7725, 6.0000])",
    ),
)
gamma = gamma_p.public


def _rgamma_slope(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return g times the slope of 1 / gamma; on the left by reflection, which has no poles."""
    left = x < 0.5
    mirrored, right = 1 - xp.where(left, x, 0), xp.where(left, 1, x)
    turn = x * math.pi
    psi = op_for(xp, digamma_p)
    slope = xp.cos(turn) - xp.sin(turn) * psi(mirrored) / math.pi
    slope = op_for(xp, gamma_p)(mirrored) * slope
    return g * xp.where(left, slope, -out * psi(right))


rgamma_p = from_scipy(
    "rgamma",
    x=_rgamma_slope,
    domain=real(-2, 4),
    reference=(lambda math, x: 1 / math.gamma(x)),
    doc=documented(
        "Return 1 / gamma(x), which is 0 where gamma has its poles.",
        "pb.special.rgamma(pb.tensor([-1.0, 4.0]))",
        "tensor([0.0000, 0.1667])",
    ),
)
rgamma = rgamma_p.public


loggamma_p = from_scipy(
    "loggamma",
    x=lambda g, x, xp: g * op_for(xp, digamma_p)(x),
    domain=real(0.5, 4),
    reference="math.lgamma",
    doc=documented(
        "Return the logarithm of the gamma function, NaN where x is negative.",
        "pb.special.loggamma(pb.tensor([1.0, 5.0]))",
        "tensor([0.0000, 3.1781])",
    ),
)
loggamma = loggamma_p.public


lgamma_p = from_scipy(
    "lgamma",
    "gammaln",
    x=lambda g, x, xp: g * op_for(xp, digamma_p)(x),
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
    x=lambda g, x, xp: g * op_for(xp, polygamma_p)(x, n=1),
    domain=real(0.5, 4),
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
    rules={"x": lambda g, x, n, xp: g * op_for(xp, polygamma_p)(x, n=n + 1)},
    floating=True,
    domain=real(0.8, 4),
    samples=(sample((3, 4), n=1), sample((), n=0), sample((0, 3), n=2), sample((5,), n=3)),
    reference=(lambda scipy, x, n: scipy.special.polygamma(n, x)),
    doc="Return the n-th derivative of digamma.",
    batch="leading",
)


# -- of two arguments ------------------------------------------------------------------------------
def _turned(a: Any, b: Any, xp: Any) -> Any:
    """Return the derivative of betaln by `a`."""
    return op_for(xp, digamma_p)(a) - op_for(xp, digamma_p)(a + b)


betaln_p = from_scipy(
    "betaln",
    a=lambda g, a, b, xp: g * _turned(a, b, xp),
    b=lambda g, a, b, xp: g * _turned(b, a, xp),
    domain=real(0.5, 3),
    reference=(lambda math, a, b: math.log(math.gamma(a) * math.gamma(b) / math.gamma(a + b))),
    doc="""Return the logarithm of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.betaln(pb.tensor([2.0]), pb.tensor([3.0]))
    tensor([-2.4849])
    """,
)
betaln = betaln_p.public


beta_p = from_scipy(
    "beta",
    a=lambda g, a, b, out, xp: g * out * _turned(a, b, xp),
    b=lambda g, a, b, out, xp: g * out * _turned(b, a, xp),
    domain=real(0.5, 3),
    reference=(lambda math, a, b: math.gamma(a) * math.gamma(b) / math.gamma(a + b)),
    doc=documented(
        "Return the beta function, gamma(a) * gamma(b) / gamma(a + b).",
        "pb.special.beta(pb.tensor([1.0, 2.0]), 3.0)",
        "tensor([0.3333, 0.0833])",
    ),
)
beta = beta_p.public


zeta_p: Primitive = from_scipy(
    "zeta",
    inputs=("s", "q"),
    q=lambda g, s, q, xp: -(g * s * op_for(xp, zeta_p)(s + 1, q)),
    domain={"s": real(2, 4), "q": real(0.5, 3)},
    doc="""Return Hurwitz's zeta function, the sum of (k + q) ** -s over all whole k from 0 on.

    Parameters
    ----------
    s : Tensor or number
        More than 1. It has no rule: asking for its gradient is an error.
    q : Tensor or number
        Positive, broadcast with `s`. For 1 it is Riemann's zeta function.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeta(pb.tensor([2.0]), pb.tensor([1.0]))
    tensor([1.6449])
    """,
)
zeta = zeta_p.public
