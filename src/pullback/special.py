"""Special functions under SciPy's names, over tensors and differentiable.

SciPy looks here for its own functions when it is given tensors with ``SCIPY_ARRAY_API=1``, and
NumPy's protocol does for SciPy's ufuncs.
"""

from pullback.ops.functions.special import (
    betainc,
    betaln,
    fdtrc,
    gammainc,
    gammaincc,
    logit,
    polygamma,
    stdtr,
    zeta,
)
from pullback.ops.primitives.activations import expit
from pullback.ops.primitives.bessel import i0, i0e, i1, i1e
from pullback.ops.primitives.exponential import exp2, expm1, log1p, xlog1py, xlogy
from pullback.ops.primitives.gamma_functions import digamma, gammaln, psi
from pullback.ops.primitives.special import (
    entr,
    erf,
    erfc,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
    sinc,
)

__all__ = [
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "fdtrc",
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
    "stdtr",
    "xlog1py",
    "xlogy",
    "zeta",
]
