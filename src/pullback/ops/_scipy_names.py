"""SciPy's names of special functions, for the protocol that hands SciPy's ufuncs over.

Owns which of SciPy's names means which operation; `pullback.special` shows them to users.
"""

from types import SimpleNamespace

from pullback.core.function.handed import TENSORS
from pullback.ops.activations import sigmoid as expit
from pullback.ops.distributions import betainc, entr, fdtrc, stdtr
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

TENSORS.special = SimpleNamespace(**{name: globals()[name] for name in __all__})
