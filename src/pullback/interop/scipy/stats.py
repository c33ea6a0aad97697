"""`scipy.stats`: distributions whose functions are differentiable in all their parameters.

Each is a density and a distribution function of a standard variable; `distributions` does the rest.
Formulas: Johnson, Kotz and Balakrishnan, "Continuous Univariate Distributions" (1994), and SciPy's
documentation. The whole numbers of discrete distributions have no derivative.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from pullback import linalg, special
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.interop.scipy.distributions import Continuous, Discrete
from pullback.interop.scipy.reading import as_given, in_one_dtype, refuse
from pullback.ops.functions.diagonals import diag, diagonal
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.activations import logsigmoid
from pullback.ops.primitives.exponential import exp, expm1, log, log1p, xlog1py, xlogy
from pullback.ops.primitives.rounding import absolute
from pullback.ops.primitives.special import erf, erfc, log_ndtr, ndtr, ndtri
from pullback.ops.primitives.trigonometric import atan, tan
from pullback.ops.shape_integrals import student_series

_UNIVARIATE = """
    bernoulli beta binom cauchy chi2 expon gamma geom halfnorm invgamma laplace logistic lognorm
    nbinom norm pareto poisson t uniform weibull_min
"""
__all__ = sorted([*_UNIVARIATE.split(), "dirichlet", "multivariate_normal"])

_LOG_2PI = math.log(2 * math.pi)
_INF = math.inf
lgamma = special.gammaln


def _positive(*shapes: Any) -> Any:
    valid = shapes[0] > 0
    for shape in shapes[1:]:
        valid = valid & (shape > 0)
    return valid


def _half_line(*shapes: Any) -> Any:
    return 0.0, _INF, 1.0


def _unit(*shapes: Any) -> Any:
    return 0.0, 1.0, 0.5


# -- on the line -----------------------------------------------------------------------------------
norm = Continuous(
    "norm",
    lambda y: y * y * -0.5 - _LOG_2PI / 2,
    cdf=ndtr,
    sf=lambda y: ndtr(-y),
    logcdf=log_ndtr,
    logsf=lambda y: log_ndtr(-y),
    ppf=ndtri,
    isf=lambda q: -ndtri(q),
)


logistic = Continuous(
    "logistic",
    lambda y: logsigmoid(y) + logsigmoid(-y),
    cdf=special.expit,
    sf=lambda y: special.expit(-y),
    logcdf=logsigmoid,
    logsf=lambda y: logsigmoid(-y),
    ppf=special.logit,
    isf=lambda q: -special.logit(q),
)


def _laplace_cdf(y: Any) -> Any:
    tail = exp(-absolute(y)) / 2
    return where(y < 0, tail, 1 - tail)


def _laplace_logcdf(y: Any) -> Any:
    low, high = where(y < 0, y, 0.0), where(y < 0, 0.0, y)
    return where(y < 0, low - math.log(2), log1p(exp(-high) * -0.5))


def _laplace_ppf(q: Any) -> Any:
    low, high = where(q < 0.5, q, 0.5), where(q < 0.5, 0.5, 1 - q)
    return where(q < 0.5, log(low * 2), -log(high * 2))


laplace = Continuous(
    "laplace",
    lambda y: -absolute(y) - math.log(2),
    cdf=_laplace_cdf,
    sf=lambda y: _laplace_cdf(-y),
    logcdf=_laplace_logcdf,
    logsf=lambda y: _laplace_logcdf(-y),
    ppf=_laplace_ppf,
    isf=lambda q: -_laplace_ppf(q),
)


cauchy = Continuous(
    "cauchy",
    lambda y: -log1p(y * y) - math.log(math.pi),
    cdf=lambda y: atan(y) / math.pi + 0.5,
    sf=lambda y: atan(-y) / math.pi + 0.5,
    ppf=lambda q: tan(q * math.pi - math.pi / 2),
    isf=lambda q: -tan(q * math.pi - math.pi / 2),
)


def _student(y: Any, df: Any) -> Any:
    is_normal, is_large = df == _INF, df > 40
    small, share = where(is_large, 40.0, df), 1 / where(is_large, df, 40.0)
    closed = lgamma((small + 1) / 2) - lgamma(small / 2) - log(small * math.pi) / 2
    scale = where(is_large, student_series(share) - _LOG_2PI / 2, closed)
    df, finite = where(is_normal, 1.0, df), where(is_normal, 0.0, y)
    power = log1p(finite * finite / df) * ((df + 1) / 2)
    return scale - where(is_normal, y * y * 0.5, power)


t = Continuous(
    "t",
    _student,
    shapes="df=1",
    valid=_positive,
    cdf=lambda y, df: special.stdtr(df, y),
    sf=lambda y, df: special.stdtr(df, -y),
    ppf=lambda q, df: special.stdtrit(df, q),
    isf=lambda q, df: -special.stdtrit(df, q),
)


# -- on half a line --------------------------------------------------------------------------------
expon = Continuous(
    "expon",
    lambda y: -y,
    support=_half_line,
    cdf=lambda y: -expm1(-y),
    sf=lambda y: exp(-y),
    logsf=lambda y: -y,
    ppf=lambda q: -log1p(-q),
    isf=lambda q: -log(q),
)


halfnorm = Continuous(
    "halfnorm",
    lambda y: y * y * -0.5 + math.log(2 / math.pi) / 2,
    support=_half_line,
    cdf=lambda y: erf(y / math.sqrt(2)),
    sf=lambda y: erfc(y / math.sqrt(2)),
    logsf=lambda y: log_ndtr(-y) + math.log(2),
    ppf=lambda q: ndtri((1 + q) / 2),
    isf=lambda q: -ndtri(q / 2),
)


gamma = Continuous(
    "gamma",
    lambda y, a: xlogy(a - 1, y) - y - lgamma(a),
    shapes="a=1",
    valid=_positive,
    support=_half_line,
    cdf=lambda y, a: special.gammainc(a, y),
    sf=lambda y, a: special.gammaincc(a, y),
    ppf=lambda q, a: special.gammaincinv(a, q),
    isf=lambda q, a: special.gammainccinv(a, q),
)


chi2 = Continuous(
    "chi2",
    lambda y, df: xlogy(df / 2 - 1, y) - y / 2 - lgamma(df / 2) - df * (math.log(2) / 2),
    shapes="df=1",
    valid=_positive,
    support=_half_line,
    cdf=lambda y, df: special.gammainc(df / 2, y / 2),
    sf=lambda y, df: special.gammaincc(df / 2, y / 2),
    ppf=lambda q, df: special.gammaincinv(df / 2, q) * 2,
    isf=lambda q, df: special.gammainccinv(df / 2, q) * 2,
)


invgamma = Continuous(
    "invgamma",
    lambda y, a: -(a + 1) * log(y) - lgamma(a) - 1 / y,
    shapes="a=1",
    valid=_positive,
    support=_half_line,
    starts_open=True,
    cdf=lambda y, a: special.gammaincc(a, 1 / y),
    sf=lambda y, a: special.gammainc(a, 1 / y),
    ppf=lambda q, a: 1 / special.gammainccinv(a, q),
    isf=lambda q, a: 1 / special.gammaincinv(a, q),
)


lognorm = Continuous(
    "lognorm",
    lambda y, s: (log(y) / s) ** 2 * -0.5 - log(s) - log(y) - _LOG_2PI / 2,
    shapes="s=1",
    valid=_positive,
    support=_half_line,
    starts_open=True,
    cdf=lambda y, s: ndtr(log(y) / s),
    sf=lambda y, s: ndtr(-log(y) / s),
    logcdf=lambda y, s: log_ndtr(log(y) / s),
    logsf=lambda y, s: log_ndtr(-log(y) / s),
    ppf=lambda q, s: exp(s * ndtri(q)),
    isf=lambda q, s: exp(-s * ndtri(q)),
)


pareto = Continuous(
    "pareto",
    lambda y, b: log(b) - (b + 1) * log(y),
    shapes="b=1",
    valid=_positive,
    support=lambda b: (1.0, _INF, 2.0),
    cdf=lambda y, b: -expm1(-b * log(y)),
    sf=lambda y, b: exp(-b * log(y)),
    logsf=lambda y, b: -b * log(y),
    ppf=lambda q, b: exp(-log1p(-q) / b),
    isf=lambda q, b: exp(-log(q) / b),
)


weibull_min = Continuous(
    "weibull_min",
    lambda y, c: log(c) + xlogy(c - 1, y) - y**c,
    shapes="c=1",
    valid=_positive,
    support=_half_line,
    cdf=lambda y, c: -expm1(-(y**c)),
    sf=lambda y, c: exp(-(y**c)),
    logsf=lambda y, c: -(y**c),
    ppf=lambda q, c: (-log1p(-q)) ** (1 / c),
    isf=lambda q, c: (-log(q)) ** (1 / c),
)


# -- on an interval --------------------------------------------------------------------------------
uniform = Continuous(
    "uniform", lambda y: y * 0, support=_unit, cdf=lambda y: y, sf=lambda y: 1 - y, ppf=lambda q: q
)


beta = Continuous(
    "beta",
    lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - special.betaln(a, b),
    shapes="a=1 b=1",
    valid=_positive,
    support=_unit,
    cdf=lambda y, a, b: special.betainc(a, b, y),
    sf=lambda y, a, b: special.betaincc(a, b, y),
    ppf=lambda q, a, b: special.betaincinv(a, b, q),
)


# -- on whole numbers ------------------------------------------------------------------------------
def _is_probability(p: Any) -> Any:
    return (p >= 0) & (p <= 1)


poisson = Discrete(
    "poisson",
    lambda k, mu: xlogy(k, mu) - lgamma(k + 1) - mu,
    shapes="mu=1",
    valid=lambda mu: mu >= 0,
    support=_half_line,
    cdf=lambda k, mu: special.gammaincc(k + 1, mu),
    sf=lambda k, mu: special.gammainc(k + 1, mu),
)


bernoulli = Discrete(
    "bernoulli",
    lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
    shapes="p=0.5",
    valid=_is_probability,
    support=lambda p: (0.0, 1.0, 0.0),
    cdf=lambda k, p: where(k < 1, 1 - p, 1.0),
    sf=lambda k, p: where(k < 1, p, 0.0),
)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


def _binomial_tail(k: Any, n: Any, p: Any, function: Any, end: float) -> Any:
    """Return an incomplete beta function, whose second shape is positive below n alone."""
    inside = k < n
    first, second = where(inside, k + 1, 1.0), where(inside, n - k, 1.0)
    return where(inside, function(first, second, p), end)


binom = Discrete(
    "binom",
    _binomial,
    shapes="n=1 p=0.5",
    valid=lambda n, p: (n >= 0) & _is_probability(p),
    support=lambda n, p: (0.0, n, 0.0),
    cdf=lambda k, n, p: _binomial_tail(k, n, p, special.betaincc, 1.0),
    sf=lambda k, n, p: _binomial_tail(k, n, p, special.betainc, 0.0),
)


nbinom = Discrete(
    "nbinom",
    lambda k, n, p: lgamma(k + n) - lgamma(k + 1) - lgamma(n) + n * log(p) + xlog1py(k, -p),
    shapes="n=1 p=0.5",
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    support=_half_line,
    cdf=lambda k, n, p: special.betainc(n, k + 1, p),
    sf=lambda k, n, p: special.betaincc(n, k + 1, p),
)


geom = Discrete(
    "geom",
    lambda k, p: log(p) + xlog1py(k - 1, -p),
    shapes="p=0.5",
    valid=lambda p: (p > 0) & (p <= 1),
    support=lambda p: (1.0, _INF, 1.0),
    cdf=lambda k, p: -expm1(xlog1py(k, -p)),
    sf=lambda k, p: exp(xlog1py(k, -p)),
    logsf=lambda k, p: xlog1py(k, -p),
)


# -- of vectors ------------------------------------------------------------------------------------
class _Multivariate:
    """A distribution of vectors: its density, and one with the parameters given."""

    def __init__(self, name: str, logpdf: Any) -> None:
        self.name = name
        self.logpdf = as_given(logpdf)
        self.pdf = as_given(lambda x, *args, **settings: exp(logpdf(x, *args, **settings)))

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Return the distribution with its parameters given."""
        return _FrozenMultivariate(self, args, settings)

    def __getattr__(self, name: str) -> Any:
        label = f"pullback.interop.scipy.stats.{vars(self).get('name')}"
        hint = "its values are SciPy's alone, without a gradient"
        raise AttributeError(compose(label, "logpdf or pdf required", repr(name), hint=hint))


class _FrozenMultivariate:
    def __init__(self, of: _Multivariate, args: Any, settings: Any) -> None:
        self._of, self._args, self._settings = of, args, settings

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._of, name)
        return lambda x: function(x, *self._args, **self._settings)


def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    """Return `scipy.stats.multivariate_normal.logpdf(x, mean, cov)`.

    `x` has shape (..., n), `mean` (n,), `cov` (n, n), or (n,) for a diagonal, or () for a multiple
    of the identity. The gradient in `cov` is that of a symmetric matrix.
    """
    if allow_singular:
        hint = "add a small multiple of the identity to cov"
        required = "allow_singular=False required"
        raise ArgumentError(compose("multivariate_normal", required, "True", hint=hint))
    x, mean, cov = in_one_dtype(x, 0.0 if mean is None else mean, cov)
    n = max(cov.shape[-1] if cov.ndim else 1, mean.shape[-1] if mean.ndim else 1)
    if n == 1 and not cov.ndim and not mean.ndim and x.ndim:
        x = x[..., None] if x.ndim == 1 else x
        n = x.shape[-1]
    if cov.ndim < 2:
        cov = diag(cov.expand((n,)) if not cov.ndim else cov)
    if cov.shape != (n, n) or (x.ndim and n > 1 and x.shape[-1] != n):
        required = f"x of shape (..., {n}) and cov of shape ({n}, {n}) required"
        came = f"{tuple(x.shape)} and {tuple(cov.shape)}"
        raise ShapeError(compose("multivariate_normal", required, came))
    if n == 1 and (not x.ndim or x.shape[-1] != 1):
        x = x[..., None]
    deviation = x - mean
    factor = linalg.cholesky((cov + cov.mT) / 2)
    columns = deviation.reshape((-1, n)).mT
    whitened = linalg.solve_triangular(factor, columns, upper=False)
    distance = (whitened * whitened).sum(axis=0).reshape(deviation.shape[:-1])
    return distance * -0.5 - log(diagonal(factor)).sum() - n * (_LOG_2PI / 2)


multivariate_normal = _Multivariate("multivariate_normal", _normal_logpdf)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    """Return `scipy.stats.dirichlet.logpdf(x, alpha)`: x of shape (n,) or (n, m), alpha (n,)."""
    x, alpha = in_one_dtype(x, alpha)
    if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        required = "alpha of shape (n,) and x of shape (n,) or (n, m) required"
        came = f"{tuple(alpha.shape)} and {tuple(x.shape)}"
        raise ShapeError(compose("dirichlet", required, came))
    parts = [x[i] for i in range(x.shape[0])]
    if len(parts) < alpha.shape[0]:  # the last follows from the others
        parts.append(1 - x.sum(axis=0))
    total = sum(part.detach() for part in parts)
    least = min(float(part.detach().min()) for part in parts)
    if least < 0 or float(absolute(total - 1).max()) > 1e-9 or float(alpha.detach().min()) <= 0:
        required = "x on the simplex (not negative, of sum 1) and positive alpha required"
        raise ArgumentError(compose("dirichlet", required, "others"))
    terms = [xlogy(alpha[i] - 1, part) for i, part in enumerate(parts)]
    scale = lgamma(alpha.sum()) - lgamma(alpha).sum()
    return sum(terms[1:], terms[0]) + scale


dirichlet = _Multivariate("dirichlet", _dirichlet_logpdf)


def __getattr__(name: str) -> Any:
    return refuse(__name__, __all__, name)


# SciPy's distributions are imported as attributes; HIPS autograd's as modules.
sys.modules.update({f"{__name__}.{name}": globals()[name] for name in __all__})
