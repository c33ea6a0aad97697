"""Incomplete gamma and beta functions, element by element; their values are SciPy's.

They are the distribution functions of statistics, so the derivative by x is a density. The other
parameters have no rule: asking for their gradient is an error. https://dlmf.nist.gov, chapter 8.
"""

from __future__ import annotations

from typing import Any

from pullback.ops.declare import on
from pullback.ops.from_scipy import from_scipy
from pullback.ops.primitives.exponential import xlog1py_p, xlogy_p
from pullback.ops.primitives.gamma_functions import betaln_p, lgamma_p
from pullback.ops.samples import real


# -- gamma -----------------------------------------------------------------------------------------
def _density(g: Any, a: Any, x: Any, xp: Any) -> Any:
    """Return g times the density of the gamma distribution of shape a at x."""
    return g * xp.exp(on(xp, xlogy_p)(a - 1, x) - x - on(xp, lgamma_p)(a))


gammainc_p = from_scipy(
    "gammainc",
    "gammainc",
    inputs=("a", "x"),
    x=lambda g, a, x, xp: _density(g, a, x, xp),
    domain=real(0.5, 3),
    doc="Return the regularised lower incomplete gamma function.",
)


gammaincc_p = from_scipy(
    "gammaincc",
    "gammaincc",
    inputs=("a", "x"),
    x=lambda g, a, x, xp: -_density(g, a, x, xp),
    domain=real(0.5, 3),
    doc="Return the regularised upper incomplete gamma function.",
)


# -- beta, and the distributions of Student and of F -----------------------------------------------
def _beta_density(g: Any, a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return g times the density of the beta distribution of shapes a and b at x."""
    powers = on(xp, xlogy_p)(a - 1, x) + on(xp, xlog1py_p)(b - 1, -x)
    return g * xp.exp(powers - on(xp, betaln_p)(a, b))


betainc_p = from_scipy(
    "betainc",
    "betainc",
    inputs=("a", "b", "x"),
    x=_beta_density,
    domain={"a": real(0.5, 3), "b": real(0.5, 3), "x": real(0.1, 0.9)},
    doc="Return the regularised incomplete beta function.",
)


def _student_density(g: Any, df: Any, t: Any, xp: Any) -> Any:
    """Return g times the density of Student's distribution at t."""
    power = xp.log1p(t * t / df) * ((df + 1) / 2)
    return g * (xp.exp(-power - on(xp, betaln_p)(df / 2, xp.full_like(df, 0.5))) / xp.sqrt(df))


stdtr_p = from_scipy(
    "stdtr",
    "stdtr",
    inputs=("df", "t"),
    t=_student_density,
    domain={"df": real(1, 5), "t": real(-2, 2)},
    doc="Return the distribution function of Student's t.",
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
