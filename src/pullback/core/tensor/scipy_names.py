"""What to use where SciPy asks a tensor that requires grad for a NumPy array.

Owns the names of `pullback.interop.scipy`, which a test compares with what is there, and finding
the function of SciPy's that is running. Only an error about to be raised asks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType, FunctionType

__all__ = ["NAMES", "instead_of_scipy"]

_CONTINUOUS = """
    beta cauchy chi2 expon gamma halfnorm invgamma laplace logistic lognorm norm pareto t uniform
    weibull_min
"""
_DISCRETE = "bernoulli binom geom nbinom poisson"
_OTHERS = """
    stats.dirichlet.logpdf stats.dirichlet.pdf
    stats.multivariate_normal.logpdf stats.multivariate_normal.pdf
    special.log_softmax special.logsumexp special.multigammaln special.softmax
    linalg.cho_factor linalg.cho_solve linalg.cholesky linalg.det linalg.expm linalg.inv
    linalg.logm linalg.solve linalg.solve_banded linalg.solve_sylvester linalg.solve_triangular
    linalg.sqrtm
    integrate.cumulative_trapezoid integrate.odeint integrate.quad integrate.simpson
    integrate.solve_ivp integrate.trapezoid
    interpolate.CubicSpline interpolate.PPoly interpolate.PchipInterpolator
    interpolate.interp1d
    sparse.coo_array sparse.csc_array sparse.csr_array sparse.linalg.spsolve
"""


def _distributions(names: str, *density: str) -> Iterator[str]:
    for name in names.split():
        for method in (*density, "cdf", "sf", "logcdf", "logsf"):
            yield f"stats.{name}.{method}"


NAMES = frozenset(
    (
        *_distributions(_CONTINUOUS, "pdf", "logpdf"),
        *_distributions(_DISCRETE, "pmf", "logpmf"),
        *_OTHERS.split(),
    )
)


def instead_of_scipy() -> str:
    """Return what a hint says of the counterpart of the function of SciPy's that is running.

    An empty text where none is running, or where it has no counterpart.
    """
    found, frame = "", sys._getframe(1)
    while frame is not None:
        found = next(filter(NAMES.__contains__, _labels(frame)), found)  # the outermost counts
        frame = frame.f_back  # type: ignore[assignment]
    return f", or pullback.interop.scipy.{found}, which has a gradient" if found else ""


def _labels(frame: FrameType) -> Iterator[str]:
    """Return what users may have called to get here, by its name below ``scipy``."""
    package, *modules = str(frame.f_globals.get("__name__", "")).split(".")
    if package != "scipy":
        return
    function = frame.f_code.co_name
    wrapped = frame.f_locals.get("f")  # decorators read arguments before they call it
    if function == "wrapper" and isinstance(wrapped, FunctionType):
        function, modules = wrapped.__name__, wrapped.__module__.split(".")[1:]
    for depth in (1, 2):
        module = ".".join(modules[:depth])
        yield f"{module}.{function}"
        if "self" in frame.f_locals:
            owner = frame.f_locals["self"]
            kind = type(owner).__name__.removesuffix("_gen")
            yield from (f"{module}.{getattr(owner, 'name', kind)}.{function}", f"{module}.{kind}")
            yield f"{module}.{kind}.{function}"
