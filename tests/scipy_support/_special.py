"""Calls of `scipy.special`."""

import numpy as np
from tests.scipy_support._calls import beside, call, table

any_sign = call((4,), low=-2.0)
positive = call((4,))
probability = call((4,), low=0.1, high=0.9)
pair = call((3,), (3,))


def fixed(*constants, **settings):
    """Return a call with leading arguments that have no gradient."""

    def run(f, x):
        return f(*(beside(x, np.full(3, c)) for c in constants), x)

    return call((3,), run=run, **settings)


CALLS = table(
    "special",
    {
        "cbrt cosdg cosm1 cotdg exp10 exp2 expit exprel sindg tandg": any_sign,
        "erf erfc erfcx i0 i0e i1 i1e j0 j1 log_ndtr ndtr": any_sign,
        "ellipk ellipkm1": probability,
        "entr exp1 expi gamma gammaln gammasgn loggamma psi rgamma spence": positive,
        "k0 k0e k1 k1e y0 y1": positive,
        "zetac": call((4,), low=1.5, high=3.0),
        "erfinv logit ndtri": probability,
        "sinc": any_sign,
        "log_softmax softmax": [any_sign, call((2, 3), axis=1)],
        "logsumexp": [any_sign, call((2, 3), axis=0), call((3,), kind="c")],
        "multigammaln": call((3,), run=lambda f, x: f(x, 2), low=2.0, high=4.0),
        "polygamma": call((3,), run=lambda f, x: f(1, x)),
        "betaln binom boxcox boxcox1p huber inv_boxcox inv_boxcox1p kl_div poch pseudo_huber": pair,
        "rel_entr xlog1py xlogy": pair,
        "chdtr chdtrc gammainc gammaincc stdtr pdtr pdtrc expn yn": fixed(2.0),
        "chdtri gammaincinv gammainccinv stdtrit": fixed(2.0, low=0.1, high=0.9),
        "pdtri": fixed(2.0, low=0.1, high=0.9),
        "zeta": fixed(2.0),
        "betainc betaincc betaincinv": fixed(2.0, 3.0, low=0.1, high=0.9),
        "fdtr fdtrc gdtr gdtrc": fixed(2.0, 3.0),
        "fdtri bdtr bdtrc bdtri nbdtr nbdtrc nbdtri": fixed(2.0, 3.0, low=0.1, high=0.9),
        "hyp1f1": fixed(2.0, 3.0),
        "lpmv": fixed(1.0, 2.0, low=0.1, high=0.9),
        "radian": fixed(2.0, 3.0),
    },
)
