"""Integrals of the densities of statistics: beta, Student's t, F; and the terms of an entropy.

Values are SciPy's. Each rule is the density, written in declared functions, so that second
derivatives follow. The parameters of the distributions have no rule: asking for their gradient is
an error. Densities: https://dlmf.nist.gov, section 8.17.
"""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.ops._declare import face, on, real
from pullback.ops._examples import documented
from pullback.ops.elementary import xlog1py, xlogy
from pullback.ops.gamma import betaln_
from pullback.ops.special import from_scipy

__all__ = ["betainc", "entr", "fdtrc", "stdtr"]

entr = from_scipy(
    "entr",
    "entr",
    x=lambda g, x, xp: -g * (xp.log(x) + 1),
    domain=real(0.2, 3),
    doc=documented(
        "Return -x * log(x), 0 where x is 0 and -inf where it is negative.",
        "pb.entr(pb.tensor([0.0, 0.5]))",
        "tensor([0.0000, 0.3466])",
    ),
)


def _beta_density(g: Any, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return g times the density of the beta distribution of shapes a and b at x."""
    powers = on(xp, xlogy)(a - 1, x) + on(xp, xlog1py)(b - 1, -x)
    return g * xp.exp(powers - on(xp, betaln_)(a, b))


betainc_ = from_scipy(
    "betainc",
    "betainc",
    inputs=("a", "b", "x"),
    x=_beta_density,
    domain={"a": real(0.5, 3), "b": real(0.5, 3), "x": real(0.1, 0.9)},
    doc="Return the regularised incomplete beta function.",
)


@face(betainc_)
def betainc(a: Any, b: Any, x: Any, /) -> Tensor:
    """Return the integral of t ** (a - 1) * (1 - t) ** (b - 1) from 0 to x, divided by that to 1.

    Parameters
    ----------
    a, b : Tensor or number
        Positive. They have no rule: asking for their gradient is an error.
    x : Tensor or number
        From 0 to 1, broadcast with `a` and `b`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.betainc(2.0, 1.0, pb.tensor([0.5, 1.0]))
    tensor([0.2500, 1.0000])
    """
    return betainc_(a, b, x)


def _student_density(g: Any, df: Any, t: Any, xp: Any) -> Any:
    """Return g times the density of Student's distribution at t."""
    power = xp.log1p(t * t / df) * ((df + 1) / 2)
    return g * (xp.exp(-power - on(xp, betaln_)(df / 2, xp.full_like(df, 0.5))) / xp.sqrt(df))


stdtr_ = from_scipy(
    "stdtr",
    "stdtr",
    inputs=("df", "t"),
    t=_student_density,
    domain={"df": real(1, 5), "t": real(-2, 2)},
    doc="Return the distribution function of Student's t.",
)


@face(stdtr_)
def stdtr(df: Any, t: Any, /) -> Tensor:
    """Return the probability that a variable of Student's distribution is less than t.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom, positive. It has no rule: asking for its gradient is an error.
    t : Tensor or number
        Broadcast with `df`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.stdtr(1.0, pb.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7500])
    """
    return stdtr_(df, t)


def _f_density(g: Any, dfn: Any, dfd: Any, x: Any, xp: Any) -> Any:
    """Return -g times the density of the F distribution at x."""
    a, b = dfn / 2, dfd / 2
    ratio = dfn / dfd
    log = on(xp, xlogy)(a - 1, x * ratio) - (a + b) * xp.log1p(x * ratio)
    return -g * (ratio * xp.exp(log - on(xp, betaln_)(a, b)))


fdtrc_ = from_scipy(
    "fdtrc",
    "fdtrc",
    inputs=("dfn", "dfd", "x"),
    x=_f_density,
    domain={"dfn": real(1, 5), "dfd": real(1, 5), "x": real(0.3, 3)},
    doc="Return the survival function of the F distribution.",
)


@face(fdtrc_)
def fdtrc(dfn: Any, dfd: Any, x: Any, /) -> Tensor:
    """Return the probability that a variable of the F distribution is more than x.

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
    """
    return fdtrc_(dfn, dfd, x)
