"""Incomplete gamma and beta functions and their inverses; the values are SciPy's.

They are the distribution functions of statistics, so the derivative by x is a density, and that of
an inverse one over it. That by a shape is an integral, which `shape_integrals` takes; those of F
have no rule: asking for their gradient is an error. https://dlmf.nist.gov, chapter 8.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.ops.declare import op_for
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
    return op_for(xp, xlogy_p)(a - 1, x) - x - op_for(xp, lgamma_p)(a)


def _by_a(a: Any, x: Any, xp: Any) -> Any:
    """Return the derivative of gammainc by its shape."""
    return by_gamma_shape(a, x, xp, op_for(xp, digamma_p), op_for(xp, lgamma_p))


gammainc_p = from_scipy(
    "gammainc",
    a=lambda g, a, x, xp: g * _by_a(a, x, xp),
    x=lambda g, a, x, xp: g * xp.exp(_log_density(a, x, xp)),
    domain=_SHAPES,
    doc="""Return the integral of t ** (a - 1) * exp(-t) / gamma(a) from 0 to x.

    Parameters
    ----------
    a : Tensor or number
        Positive. Its gradient is an integral, computed by quadrature.
    x : Tensor or number
        Not negative, broadcast with `a`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.gammainc(pb.tensor([1.0]), pb.tensor([2.0]))
    tensor([0.8647])
    """,
    methods="igamma igamma_",
)
gammainc = igamma = gammainc_p.public


gammaincc_p = from_scipy(
    "gammaincc",
    a=lambda g, a, x, xp: -g * _by_a(a, x, xp),
    x=lambda g, a, x, xp: -g * xp.exp(_log_density(a, x, xp)),
    domain=_SHAPES,
    doc="""Return 1 - gammainc(a, x), accurate where that is small.

    Parameters
    ----------
    a : Tensor or number
        Positive. Its gradient is an integral, computed by quadrature.
    x : Tensor or number
        Not negative, broadcast with `a`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.gammaincc(pb.tensor([1.0]), pb.tensor([2.0]))
    tensor([0.1353])
    """,
    methods="igammac igammac_",
)
gammaincc = igammac = gammaincc_p.public


gammaincinv_p = from_scipy(
    "gammaincinv",
    a=lambda g, a, out, xp: -g * (_by_a(a, out, xp) * xp.exp(-_log_density(a, out, xp))),
    y=lambda g, a, out, xp: g * xp.exp(-_log_density(a, out, xp)),
    domain={"a": _SHAPES, "y": _PROBABILITY},
    doc="""Return the x with gammainc(a, x) = y.

    Parameters
    ----------
    a : Tensor or number
        Positive. Its gradient is an integral, computed by quadrature.
    y : Tensor or number
        From 0 to 1, broadcast with `a`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.gammaincinv(1.0, pb.tensor([0.0, 0.5]))
    tensor([0.0000, 0.6931])
    """,
)
gammaincinv = gammaincinv_p.public


gammainccinv_p = from_scipy(
    "gammainccinv",
    a=lambda g, a, out, xp: -g * (_by_a(a, out, xp) * xp.exp(-_log_density(a, out, xp))),
    y=lambda g, a, out, xp: -g * xp.exp(-_log_density(a, out, xp)),
    domain={"a": _SHAPES, "y": _PROBABILITY},
    doc="""Return the x with gammaincc(a, x) = y; see `gammaincinv`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.gammainccinv(1.0, pb.tensor([1.0, 0.5]))
    tensor([0.0000, 0.6931])
    """,
)
gammainccinv = gammainccinv_p.public


# -- beta ------------------------------------------------------------------------------------------
def _log_beta_density(a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return the logarithm of the density of the beta distribution of shapes a and b at x."""
    powers = op_for(xp, xlogy_p)(a - 1, x) + op_for(xp, xlog1py_p)(b - 1, -x)
    return powers - op_for(xp, betaln_p)(a, b)


def _by_shape(which: str, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return the derivative of betainc by one of its shapes."""
    return by_beta_shape(a, b, x, which, xp, op_for(xp, digamma_p), op_for(xp, betaln_p))


def _inverse_by_shape(which: str, g: Any, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return the gradient of betaincinv by one of its shapes, by that of betainc."""
    return -g * (_by_shape(which, a, b, x, xp) * xp.exp(-_log_beta_density(a, b, x, xp)))


betainc_p = from_scipy(
    "betainc",
    a=lambda g, a, b, x, xp: g * _by_shape("a", a, b, x, xp),
    b=lambda g, a, b, x, xp: g * _by_shape("b", a, b, x, xp),
    x=lambda g, a, b, x, xp: g * xp.exp(_log_beta_density(a, b, x, xp)),
    domain={"a": _SHAPES, "b": _SHAPES, "x": _PROBABILITY},
    doc="""Return the integral of t ** (a - 1) * (1 - t) ** (b - 1) from 0 to x, over that to 1.

    Parameters
    ----------
    a, b : Tensor or number
        Positive. Their gradients are integrals, computed by quadrature.
    x : Tensor or number
        From 0 to 1, broadcast with `a` and `b`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.betainc(2.0, 1.0, pb.tensor([0.5, 1.0]))
    tensor([0.2500, 1.0000])
    """,
)
betainc = betainc_p.public


betaincc_p = from_scipy(
    "betaincc",
    a=lambda g, a, b, x, xp: -g * _by_shape("a", a, b, x, xp),
    b=lambda g, a, b, x, xp: -g * _by_shape("b", a, b, x, xp),
    x=lambda g, a, b, x, xp: -g * xp.exp(_log_beta_density(a, b, x, xp)),
    domain={"a": _SHAPES, "b": _SHAPES, "x": _PROBABILITY},
    doc="""Return 1 - betainc(a, b, x), accurate where that is small; see `betainc`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.betaincc(2.0, 1.0, pb.tensor([0.5, 1.0]))
    tensor([0.7500, 0.0000])
    """,
)
betaincc = betaincc_p.public


betaincinv_p = from_scipy(
    "betaincinv",
    a=lambda g, a, b, out, xp: _inverse_by_shape("a", g, a, b, out, xp),
    b=lambda g, a, b, out, xp: _inverse_by_shape("b", g, a, b, out, xp),
    y=lambda g, a, b, out, xp: g * xp.exp(-_log_beta_density(a, b, out, xp)),
    domain={"a": _SHAPES, "b": _SHAPES, "y": _PROBABILITY},
    doc="""Return the x with betainc(a, b, x) = y.

    Parameters
    ----------
    a, b : Tensor or number
        Positive. Their gradients are integrals, computed by quadrature.
    y : Tensor or number
        From 0 to 1, broadcast with `a` and `b`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.betaincinv(2.0, 1.0, pb.tensor([0.25, 1.0]))
    tensor([0.5000, 1.0000])
    """,
)
betaincinv = betaincinv_p.public


# -- the distributions of Student and of F ---------------------------------------------------------
def _student_density(df: Any, t: Any, xp: Any) -> Any:
    """Return the density of Student's distribution at t, the normal one for infinite df."""
    like = xp.zeros_like(df) * xp.zeros_like(t)
    df, t = df + like, t + like
    is_normal, is_large, one = df == float("inf"), df > 40, xp.ones_like(df)
    small, share = xp.where(is_large, 40 * one, df), 1 / xp.where(is_large, df, 40 * one)
    closed = op_for(xp, betaln_p)(small / 2, 0.5 * one) + xp.log(small) / 2
    series = math.log(2 * math.pi) / 2 - student_series(share)
    df, finite = xp.where(is_normal, one, df), xp.where(is_normal, xp.zeros_like(t), t)
    power = xp.log1p(finite * finite / df) * ((df + 1) / 2)
    exponent = xp.where(is_normal, t * t / 2, power) + xp.where(is_large, series, closed)
    return xp.exp(-exponent)


def _by_df(df: Any, t: Any, xp: Any) -> Any:
    """Return the derivative of stdtr by the degrees of freedom."""
    return by_student_shape(df, t, xp, op_for(xp, digamma_p), op_for(xp, betaln_p))


stdtr_p = from_scipy(
    "stdtr",
    df=lambda g, df, t, xp: g * _by_df(df, t, xp),
    t=lambda g, df, t, xp: g * _student_density(df, t, xp),
    domain={"df": real(1, 5), "t": real(-2, 2)},
    doc="""Return the probability that a variable of Student's distribution is less than t.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom, positive. Its gradient is an integral, computed by quadrature.
    t : Tensor or number
        Broadcast with `df`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.stdtr(1.0, pb.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7500])
    """,
)
stdtr = stdtr_p.public


stdtrit_p = from_scipy(
    "stdtrit",
    df=lambda g, df, out, xp: -g * (_by_df(df, out, xp) / _student_density(df, out, xp)),
    p=lambda g, df, out, xp: g / _student_density(df, out, xp),
    domain={"df": real(1, 5), "p": _PROBABILITY},
    doc="""Return the t with stdtr(df, t) = p.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom, positive. Its gradient is an integral, computed by quadrature.
    p : Tensor or number
        From 0 to 1, broadcast with `df`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.stdtrit(1.0, pb.tensor([0.5, 0.9]))
    tensor([0.0000, 3.0777])
    """,
)
stdtrit = stdtrit_p.public


def _f_density(g: Any, dfn: Any, dfd: Any, x: Any, xp: Any) -> Any:
    """Return -g times the density of the F distribution at x."""
    a, b = dfn / 2, dfd / 2
    ratio = dfn / dfd
    log = op_for(xp, xlogy_p)(a - 1, x * ratio) - (a + b) * xp.log1p(x * ratio)
    return -g * (ratio * xp.exp(log - op_for(xp, betaln_p)(a, b)))


fdtrc_p = from_scipy(
    "fdtrc",
    inputs=("dfn", "dfd", "x"),
    x=_f_density,
    domain={"dfn": real(1, 5), "dfd": real(1, 5), "x": real(0.3, 3)},
    doc="""Return the probability that a variable of the F distribution is more than x.

    Parameters
    ----------
    dfn, dfd : Tensor or number
        Degrees of freedom of numerator and denominator, positive. They have no rule: asking for
        their gradient is an error.
    x : Tensor or number
        Not negative, broadcast with them.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fdtrc(2.0, 2.0, pb.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5000])
    """,
)
fdtrc = fdtrc_p.public
