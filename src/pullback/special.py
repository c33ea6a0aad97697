"""Special functions under SciPy's names, over tensors and differentiable.

SciPy looks here for its own functions when it is given tensors with ``SCIPY_ARRAY_API=1``, and
NumPy's protocol does for SciPy's ufuncs.
"""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.ops.functions.special import (
    kn as kn,
    logit as logit,
    polygamma as polygamma,
    yn as yn,
)
from pullback.ops.primitives.activations import (
    expit as expit,
)
from pullback.ops.primitives.bessel import (
    i0 as i0,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
    iv as iv,
    ive as ive,
    j0 as j0,
    j1 as j1,
    jn as jn,
    jv as jv,
    k0 as k0,
    k0e as k0e,
    k1 as k1,
    k1e as k1e,
    kv as kv,
    kve as kve,
    y0 as y0,
    y1 as y1,
    yv as yv,
)
from pullback.ops.primitives.exponential import (
    exp2 as exp2,
    expm1 as expm1,
    log1p as log1p,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from pullback.ops.primitives.gamma_functions import (
    beta as beta,
    betaln as betaln,
    digamma as digamma,
    gamma as gamma,
    gammaln as gammaln,
    loggamma as loggamma,
    psi as psi,
    rgamma as rgamma,
    zeta as zeta,
)
from pullback.ops.primitives.incomplete import (
    betainc as betainc,
    betaincc as betaincc,
    betaincinv as betaincinv,
    fdtrc as fdtrc,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammainccinv as gammainccinv,
    gammaincinv as gammaincinv,
    stdtr as stdtr,
    stdtrit as stdtrit,
)
from pullback.ops.primitives.special import (
    cbrt as cbrt,
    entr as entr,
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfcx as erfcx,
    erfinv as erfinv,
    exp1 as exp1,
    expi as expi,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
    sinc as sinc,
)
from pullback.public_names import listed as _listed

__all__ = sorted(name for name in globals() if name[0].isalpha())
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
