"""The gamma function and what is made of it, element by element; their values are SciPy's.

Derivatives: https://dlmf.nist.gov, chapters 5 and 25. The first argument of zeta has no rule:
asking for its gradient is an error.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.ops.declare import Primitive, on, operation
from pullback.ops.examples import documented
from pullback.ops.from_scipy import from_scipy, like, needs_real
from pullback.ops.samples import real, sample

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
