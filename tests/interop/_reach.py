"""Calls of SciPy's own functions: what takes tensors, and what has a counterpart instead."""

import numpy as np
import scipy.sparse
from scipy import special

POSITIVE = [0.5, 1.2, 2.0]
SHARES = [0.2, 0.5, 0.7]
ARRAYS = (np.array([1.0, 2.0, 3.0]), np.eye(3))


def _after(name, *constants):
    """Return a special function of what comes after some numbers."""
    return lambda x: getattr(special, name)(*constants, x)


# By name below scipy: a function of a tensor or an array, and its values.
IMPORTED = {
    **{
        f"special.{name}": (getattr(special, name), POSITIVE)
        for name in (
            *("gamma", "rgamma", "gammaln", "loggamma", "psi", "j0", "j1", "y0", "y1", "i0", "i1"),
            *("i0e", "i1e", "k0", "k1", "k0e", "k1e", "erf", "erfc", "erfcx", "exp1", "expi"),
            *("expit", "entr", "ndtr", "log_ndtr"),
        )
    },
    **{
        f"special.{name}": (getattr(special, name), SHARES)
        for name in ("erfinv", "erfcinv", "ndtri", "logit")
    },
    "special.beta": (lambda x: special.beta(x, 2.0), POSITIVE),
    "special.betaln": (lambda x: special.betaln(x, 2.0), POSITIVE),
    **{
        f"special.{name}": (_after(name, 2), POSITIVE)
        for name in (
            *("jn", "jv", "yn", "yv", "iv", "ive", "kn", "kv", "kve", "gammainc", "gammaincc"),
            *("stdtr", "xlogy", "xlog1py"),
        )
    },
    **{
        f"special.{name}": (_after(name, 2), SHARES)
        for name in ("gammaincinv", "gammainccinv", "stdtrit")
    },
    **{
        f"special.{name}": (_after(name, 2, 3), SHARES)
        for name in ("betainc", "betaincc", "betaincinv", "fdtrc")
    },
}


def _of_distributions():
    """Return calls of every function of every distribution."""
    shapes = {
        **dict.fromkeys(
            ("t", "gamma", "chi2", "invgamma", "lognorm", "pareto", "weibull_min"), (2.0,)
        ),
        **dict.fromkeys(("norm", "logistic", "laplace", "cauchy", "expon", "halfnorm"), ()),
        "uniform": (),
        "beta": (2.0, 3.0),
    }
    discrete = {"poisson": (), "bernoulli": (), "binom": (3,), "nbinom": (3,), "geom": ()}
    methods = ("cdf", "sf", "logcdf", "logsf")
    calls = {}
    for name, given in shapes.items():
        for method in ("pdf", "logpdf", *methods):
            calls[f"stats.{name}.{method}"] = _called("stats", name, method, given)
    for name, given in discrete.items():
        for method in ("pmf", "logpmf", *methods):
            calls[f"stats.{name}.{method}"] = _called("stats", name, method, given, mass=True)
    return calls


def _called(module, name, method, given, mass=False):
    def call(space, x):
        function = getattr(getattr(getattr(space, module), name), method)
        return function(1.0, *given, x / 4) if mass else function(x, *given)

    return call


def decay(t, y):
    return -y


A, B = np.eye(3) + 0.1, np.array([1.0, 2.0, 3.0])
PLACES = (np.arange(3), np.arange(3))

# By name below pb.interop.scipy: a call of SciPy or of it, with a 3 by 3 tensor.
INSTEAD = {
    **_of_distributions(),
    "stats.multivariate_normal.logpdf": lambda s, x: s.stats.multivariate_normal.logpdf(x, B, A),
    "stats.multivariate_normal.pdf": lambda s, x: s.stats.multivariate_normal.pdf(x, B, A),
    "stats.dirichlet.logpdf": lambda s, x: s.stats.dirichlet.logpdf([0.2, 0.3, 0.5], x[0]),
    "stats.dirichlet.pdf": lambda s, x: s.stats.dirichlet.pdf([0.2, 0.3, 0.5], x[0]),
    "special.multigammaln": lambda s, x: s.special.multigammaln(x + 3, 2),
    "special.logsumexp": lambda s, x: s.special.logsumexp(x, b=2.0),
    "special.softmax": lambda s, x: s.special.softmax(x),
    "special.log_softmax": lambda s, x: s.special.log_softmax(x),
    "linalg.solve": lambda s, x: s.linalg.solve(x, B),
    "linalg.solve_triangular": lambda s, x: s.linalg.solve_triangular(x, B),
    "linalg.solve_banded": lambda s, x: s.linalg.solve_banded((1, 1), x, B),
    "linalg.solve_sylvester": lambda s, x: s.linalg.solve_sylvester(x, A, A),
    "linalg.cholesky": lambda s, x: s.linalg.cholesky(x),
    "linalg.cho_factor": lambda s, x: s.linalg.cho_factor(x),
    "linalg.cho_solve": lambda s, x: s.linalg.cho_solve((x, True), B),
    "linalg.expm": lambda s, x: s.linalg.expm(x),
    "linalg.sqrtm": lambda s, x: s.linalg.sqrtm(x),
    "linalg.logm": lambda s, x: s.linalg.logm(x),
    "linalg.inv": lambda s, x: s.linalg.inv(x),
    "linalg.det": lambda s, x: s.linalg.det(x),
    "integrate.solve_ivp": lambda s, x: s.integrate.solve_ivp(decay, (0.0, 1.0), x[0]),
    "integrate.odeint": lambda s, x: s.integrate.odeint(
        lambda y, t: -y, x[0], np.array([0.0, 1.0])
    ),
    "integrate.quad": lambda s, x: s.integrate.quad(lambda t: t * x[0, 0] + (x * x).sum(), 0, 1),
    "integrate.trapezoid": lambda s, x: s.integrate.trapezoid(x),
    "integrate.cumulative_trapezoid": lambda s, x: s.integrate.cumulative_trapezoid(x),
    "integrate.simpson": lambda s, x: s.integrate.simpson(x),
    "interpolate.CubicSpline": lambda s, x: s.interpolate.CubicSpline(B, x)(1.5),
    "interpolate.PchipInterpolator": lambda s, x: s.interpolate.PchipInterpolator(B, x)(1.5),
    "interpolate.interp1d": lambda s, x: s.interpolate.interp1d(B, x)(1.5),
    "interpolate.PPoly": lambda s, x: s.interpolate.PPoly(x, np.arange(4.0))(1.5),
    "sparse.csr_array": lambda s, x: s.sparse.csr_array(scipy.sparse.csr_array(A)) @ x,
    "sparse.csc_array": lambda s, x: s.sparse.csc_array(scipy.sparse.csc_array(A)) @ x,
    "sparse.coo_array": lambda s, x: s.sparse.coo_array(scipy.sparse.coo_array(A)) @ x,
    "sparse.linalg.spsolve": lambda s, x: s.sparse.linalg.spsolve(scipy.sparse.csc_array(A), x),
}
