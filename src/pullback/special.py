"""Special functions under SciPy's names, over tensors and differentiable.

SciPy looks here for its own functions when it is given tensors with ``SCIPY_ARRAY_API=1``, and
NumPy's protocol does for SciPy's ufuncs.
"""

from pullback.ops.activations import sigmoid as expit
from pullback.ops.elementary import exp2, expm1, log1p, xlog1py, xlogy
from pullback.ops.gamma import betaln, digamma, gammainc, gammaincc, gammaln, polygamma, zeta
from pullback.ops.special import (
    erf,
    erfc,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    sinc,
)

psi = digamma

__all__ = [
    "betaln",
    "digamma",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "logit",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "sinc",
    "xlog1py",
    "xlogy",
    "zeta",
]
