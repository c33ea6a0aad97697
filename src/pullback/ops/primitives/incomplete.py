"""Incomplete gamma and beta functions and their inverses; the values are SciPy's.

They are the distribution functions of statistics, so the derivative by x is a density, and that of
an inverse one over it. That by a shape is an integral, which `shape_integrals` takes; those of F
have no rule: asking for their gradient is an error. https://dlmf.nist.gov, chapter 8.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.declare import on
from pullback.ops.from_scipy import from_scipy
from pullback.ops.primitives.exponential import xlog1py_p, xlogy_p
from pullback.ops.primitives.gamma_functions import betaln_p, digamma_p, lgamma_p
from pullback.ops.samples import real
from pullback.ops.shape_integrals import (
    by_beta_shape,
    by_gamma_shape,
    by_student_shape,
    student_series,
)

_SHAPES = real(0.5, 3)
_PROBABILITY = real(0.1, 0.9)


# -- gamma -----------------------------------------------------------------------------------------
def _log_density(a: Any, x: Any, xp: Any) -> Any:
    """Return the logarithm of the density of the gamma distribution of shape a at x."""
    return on(xp, xlogy_p)(a - 1, x) - x - on(xp, lgamma_p)(a)


def _by_a(a: Any, x: Any, xp: Any) -> Any:
    """Return the derivative of gammainc by its shape."""
    return by_gamma_shape(a, x, xp, on(xp, digamma_p), on(xp, lgamma_p))


gammainc_p = from_scipy(
    "gammainc",
    "gammainc",
    inputs=("a", "x"),
    a=lambda g, a, x, xp: g * _by_a(a, x, xp),
    x=lambda g, a, x, xp: g * xp.exp(_log_density(a, x, xp)),
    domain=_SHAPES,
    doc="Return the regularised lower incomplete gamma function.",
)


gammaincc_p = from_scipy(
    "gammaincc",
    "gammaincc",
    inputs=("a", "x"),
    a=lambda g, a, x, xp: -g * _by_a(a, x, xp),
    x=lambda g, a, x, xp: -g * xp.exp(_log_density(a, x, xp)),
    domain=_SHAPES,
    doc="Return the regularised upper incomplete gamma function.",
)


gammaincinv_p = from_scipy(
    "gammaincinv",
    "gammaincinv",
    inputs=("a", "y"),
    a=lambda g, a, out, xp: -g * (_by_a(a, out, xp) * xp.exp(-_log_density(a, out, xp))),
    y=lambda g, a, out, xp: g * xp.exp(-_log_density(a, out, xp)),
    domain={"a": _SHAPES, "y": _PROBABILITY},
    reference="scipy.special.gammaincinv",
    doc="Return the number whose gammainc is y.",
)


gammainccinv_p = from_scipy(
    "gammainccinv",
    "gammainccinv",
    inputs=("a", "y"),
    a=lambda g, a, out, xp: -g * (_by_a(a, out, xp) * xp.exp(-_log_density(a, out, xp))),
    y=lambda g, a, out, xp: -g * xp.exp(-_log_density(a, out, xp)),
    domain={"a": _SHAPES, "y": _PROBABILITY},
    reference="scipy.special.gammainccinv",
    doc="Return the number whose gammaincc is y.",
)


# -- beta ------------------------------------------------------------------------------------------
def _log_beta_density(a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return the logarithm of the density of the beta distribution of shapes a and b at x."""
    powers = on(xp, xlogy_p)(a - 1, x) + on(xp, xlog1py_p)(b - 1, -x)
    return powers - on(xp, betaln_p)(a, b)


def _by_shape(which: str, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return the derivative of betainc by one of its shapes."""
    return by_beta_shape(a, b, x, which, xp, on(xp, digamma_p), on(xp, betaln_p))


def _inverse_by_shape(which: str, g: Any, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return the gradient of betaincinv by one of its shapes, by that of betainc."""
    return -g * (_by_shape(which, a, b, x, xp) * xp.exp(-_log_beta_density(a, b, x, xp)))


betainc_p = from_scipy(
    "betainc",
    "betainc",
    inputs=("a", "b", "x"),
    a=lambda g, a, b, x, xp: g * _by_shape("a", a, b, x, xp),
    b=lambda g, a, b, x, xp: g * _by_shape("b", a, b, x, xp),
    x=lambda g, a, b, x, xp: g * xp.exp(_log_beta_density(a, b, x, xp)),
    domain={"a": _SHAPES, "b": _SHAPES, "x": _PROBABILITY},
    doc="Return the regularised incomplete beta function.",
)


betaincc_p = from_scipy(
    "betaincc",
    "betaincc",
    inputs=("a", "b", "x"),
    a=lambda g, a, b, x, xp: -g * _by_shape("a", a, b, x, xp),
    b=lambda g, a, b, x, xp: -g * _by_shape("b", a, b, x, xp),
    x=lambda g, a, b, x, xp: -g * xp.exp(_log_beta_density(a, b, x, xp)),
    domain={"a": _SHAPES, "b": _SHAPES, "x": _PROBABILITY},
    reference="scipy.special.betaincc",
    doc="Return the complement of the regularised incomplete beta function.",
)


betaincinv_p = from_scipy(
    "betaincinv",
    "betaincinv",
    inputs=("a", "b", "y"),
    a=lambda g, a, b, out, xp: _inverse_by_shape("a", g, a, b, out, xp),
    b=lambda g, a, b, out, xp: _inverse_by_shape("b", g, a, b, out, xp),
    y=lambda g, a, b, out, xp: g * xp.exp(-_log_beta_density(a, b, out, xp)),
    domain={"a": _SHAPES, "b": _SHAPES, "y": _PROBABILITY},
    reference="scipy.special.betaincinv",
    doc="Return the number whose betainc is y.",
)


# -- the distributions of Student and of F ---------------------------------------------------------
def _student_density(df: Any, t: Any, xp: Any) -> Any:
    """Return the density of Student's distribution at t, the normal one for infinite df."""
    like = xp.zeros_like(df) * xp.zeros_like(t)
    df, t = df + like, t + like
    is_normal, is_large, one = df == float("inf"), df > 40, xp.ones_like(df)
    small, share = xp.where(is_large, 40 * one, df), 1 / xp.where(is_large, df, 40 * one)
    closed = on(xp, betaln_p)(small / 2, 0.5 * one) + xp.log(small) / 2
    series = math.log(2 * math.pi) / 2 - student_series(share)
    df, finite = xp.where(is_normal, one, df), xp.where(is_normal, xp.zeros_like(t), t)
    power = xp.log1p(finite * finite / df) * ((df + 1) / 2)
    exponent = xp.where(is_normal, t * t / 2, power) + xp.where(is_large, series, closed)
    return xp.exp(-exponent)


def _by_df(df: Any, t: Any, xp: Any) -> Any:
    """Return the derivative of stdtr by the degrees of freedom."""
    return by_student_shape(df, t, xp, on(xp, digamma_p), on(xp, betaln_p))


stdtr_p = from_scipy(
    "stdtr",
    "stdtr",
    inputs=("df", "t"),
    df=lambda g, df, t, xp: g * _by_df(df, t, xp),
    t=lambda g, df, t, xp: g * _student_density(df, t, xp),
    domain={"df": real(1, 5), "t": real(-2, 2)},
    doc="Return the distribution function of Student's t.",
)


stdtrit_p = from_scipy(
    "stdtrit",
    "stdtrit",
    inputs=("df", "p"),
    df=lambda g, df, out, xp: -g * (_by_df(df, out, xp) / _student_density(df, out, xp)),
    p=lambda g, df, out, xp: g / _student_density(df, out, xp),
    domain={"df": real(1, 5), "p": _PROBABILITY},
    reference="scipy.special.stdtrit",
    doc="Return the number whose stdtr is p.",
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
