"""Special functions, element by element: error and Bessel functions, the normal distribution.

Owns how SciPy's functions are declared: their values are SciPy's (``pip install pullback[scipy]``),
CuPy's on a GPU; `logit` and `sinc` need neither. All but `sinc` refuse complex numbers. Each rule
multiplies the gradient ``g`` by the derivative, written in declared functions, so that second
derivatives follow. Derivatives: https://dlmf.nist.gov, chapters 7 and 10.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, compose
from pullback.ops._declare import (
    Domain,
    Operation,
    both,
    elementwise,
    face,
    on,
    operation,
    real,
    sample,
)
from pullback.ops._examples import documented

__all__ = [
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "logit",
    "ndtr",
    "ndtri",
    "sinc",
]

_ROOT_PI = math.sqrt(math.pi)
_ROOT_2PI = math.sqrt(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


def needs_real(op: str, inputs: tuple[str, ...], arrays: tuple[Any, ...]) -> None:
    """Raise where a function of real numbers got complex ones."""
    for name, array in zip(inputs, arrays, strict=True):
        if "complex" in str(array.dtype):
            came, hint = str(array.dtype).rpartition(".")[2], "take its real part, or its abs"
            raise DTypeError(compose(op, "real numbers required", came, (name, array), hint=hint))


def from_scipy(
    name: str,
    scipy_name: str,
    *,
    domain: Domain | dict[str, Domain],
    doc: str,
    inputs: tuple[str, ...] = ("x",),
    **rules: Any,
) -> Operation:
    """Declare a function of SciPy's."""

    def kernel(xp: Any, *arrays: Any) -> Any:
        return like(arrays[0], library_of(arrays[0]).special(scipy_name, *arrays))

    def forward(xp: Any, *arrays: Any) -> Any:
        needs_real(name, inputs, arrays)
        return kernel(xp, *arrays)

    return elementwise(
        name,
        forward,
        kernel=kernel,
        inputs=inputs,
        floating=True,
        domain=domain,
        doc=doc,
        **rules,
    )


def like(x: Any, result: Any) -> Any:
    """Return the result in the dtype of `x`: SciPy has no half precision, and widens numbers."""
    library = library_of(x)
    result = library.tidy(result)
    return result if result.dtype == x.dtype else library.astype(result, library.dtype(x))


# -- error functions -------------------------------------------------------------------------------
erf = from_scipy(
    "erf",
    "erf",
    x=lambda g, x, xp: g * (xp.exp(-(x * x)) * (2 / _ROOT_PI)),
    domain=real(-2, 2),
    doc=documented(
        "Return the error function, 2 / sqrt(pi) times the integral of exp(-t ** 2) from 0 to x.",
        "pb.erf(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.8427])",
    ),
)
erfc = from_scipy(
    "erfc",
    "erfc",
    x=lambda g, x, xp: g * (xp.exp(-(x * x)) * (-2 / _ROOT_PI)),
    domain=real(-2, 2),
    doc=documented(
        "Return 1 - erf(x), accurate where that is small.",
        "pb.erfc(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.1573])",
    ),
)
erfcx = from_scipy(
    "erfcx",
    "erfcx",
    x=lambda g, x, out: g * (x * out * 2 - 2 / _ROOT_PI),
    domain=real(-1, 2),
    doc=documented(
        "Return exp(x ** 2) * erfc(x), without underflow.",
        "pb.erfcx(pb.tensor([0.0, 100.0]))",
        "tensor([1.0000, 0.0056])",
    ),
)
erfinv = from_scipy(
    "erfinv",
    "erfinv",
    x=lambda g, out, xp: g * (xp.exp(out * out) * (_ROOT_PI / 2)),
    domain=real(-0.8, 0.8),
    doc=documented(
        "Return the number whose erf is x.",
        "pb.erfinv(pb.tensor([0.0, 0.5]))",
        "tensor([0.0000, 0.4769])",
    ),
)

# -- the normal distribution -----------------------------------------------------------------------
ndtr = from_scipy(
    "ndtr",
    "ndtr",
    x=lambda g, x, xp: g * (xp.exp(x * x * -0.5) * (1 / _ROOT_2PI)),
    domain=real(-2, 2),
    doc=documented(
        "Return the probability that a standard normal variable is less than x.",
        "pb.ndtr(pb.tensor([0.0, 1.0]))",
        "tensor([0.5000, 0.8413])",
    ),
)


def _hazard(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return g times density over probability, by formulas that neither overflow nor cancel."""
    low, high = xp.minimum(x, 0), xp.maximum(x, 0)
    left = 2 / on(xp, erfcx)(low * -_ROOT_HALF)
    right = xp.exp(high * high * -0.5 - xp.maximum(out, -1))
    return g * (xp.where(x < 0, left, right) * (1 / _ROOT_2PI))


log_ndtr = from_scipy(
    "log_ndtr",
    "log_ndtr",
    x=_hazard,
    domain=real(-2, 2),
    doc=documented(
        "Return log(ndtr(x)), without underflow.",
        "pb.log_ndtr(pb.tensor([0.0, -100.0]))",
        "tensor([   -0.6931, -5005.5244])",
    ),
)
ndtri = from_scipy(
    "ndtri",
    "ndtri",
    x=lambda g, out, xp: g * (xp.exp(out * out * 0.5) * _ROOT_2PI),
    domain=real(0.1, 0.9),
    doc=documented(
        "Return the number whose ndtr is x.",
        "pb.ndtri(pb.tensor([0.5, 0.975]))",
        "tensor([0.0000, 1.9600])",
    ),
)


# -- Bessel functions ------------------------------------------------------------------------------
def _i1_over_x(x: Any, out: Any, xp: Any) -> Any:
    """Return out / x, whose limit at 0 is 1/2, for out = i1(x) or i1e(x)."""
    return xp.where(x == 0, 0.5, out / xp.where(x == 0, 1, x))


i0 = from_scipy(
    "i0",
    "i0",
    x=lambda g, x, xp: g * on(xp, i1)(x),
    domain=real(-2, 2),
    doc=documented(
        "Return the modified Bessel function of the first kind and order 0.",
        "pb.i0(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 1.2661])",
    ),
)
i1: Operation = from_scipy(
    "i1",
    "i1",
    x=lambda g, x, out, xp: g * (on(xp, i0)(x) - _i1_over_x(x, out, xp)),
    domain=real(-2, 2),
    doc=documented(
        "Return the modified Bessel function of the first kind and order 1.",
        "pb.i1(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.5652])",
    ),
)
i0e = from_scipy(
    "i0e",
    "i0e",
    x=lambda g, x, out, xp: g * (on(xp, i1e)(x) - xp.sign(x) * out),
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return exp(-abs(x)) * i0(x), without overflow; the derivative at 0 is 0.",
        "pb.i0e(pb.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.4658])",
    ),
)
i1e: Operation = from_scipy(
    "i1e",
    "i1e",
    x=lambda g, x, out, xp: g * (on(xp, i0e)(x) - _i1_over_x(x, out, xp) - xp.sign(x) * out),
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return exp(-abs(x)) * i1(x), without overflow.",
        "pb.i1e(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.2079])",
    ),
)


# -- without SciPy ---------------------------------------------------------------------------------
def _logit(xp: Any, x: Any, *, eps: float | None = None) -> Any:
    needs_real("logit", ("x",), (x,))
    if eps is not None:
        x = xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.log(x) - xp.log1p(-x)


def _logit_slope(g: Any, x: Any, eps: float | None, xp: Any) -> Any:
    if eps is None:
        return g / (x * (1 - x))
    inside = (x >= eps) & (x <= 1 - eps)
    safe = xp.where(inside, x, 0.5)
    return xp.where(inside, g / (safe * (1 - safe)), 0)


logit_ = operation(
    "logit",
    _logit,
    rules={"x": _logit_slope},
    floating=True,
    domain=real(0.05, 0.95, 0.3, 0.7),
    samples=(sample((3, 4)), sample((), eps=0.3), sample((0, 3)), sample((6,), eps=0.3)),
    doc="Return log(x / (1 - x)).",
)


@face(logit_)
def logit(x: Any, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), the number whose sigmoid is x.

    Parameters
    ----------
    x : Tensor
        Probabilities.
    eps : float, optional
        Limits `x` to [eps, 1 - eps] first; the gradient passes at these bounds.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logit(pb.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    return logit_(x, eps=eps)


def _sinc(xp: Any, x: Any) -> Any:
    y = xp.where(x == 0, 1, x * math.pi)
    return xp.where(x == 0, 1, xp.sin(y) / y)


def _sinc_slope(g: Any, x: Any, xp: Any) -> Any:
    """Return g * pi times the slope of sin(y) / y; near 0 by its series, that of -y / 3."""
    y = x * math.pi
    near = xp.abs(y) < 0.1
    far, z = xp.where(near, 1, y), xp.where(near, y, 0)
    slope = (xp.cos(far) - xp.sin(far) / far) / far
    z2 = z * z
    series = z * (1 - z2 / 10 * (1 - z2 / 28 * (1 - z2 / 54 * (1 - z2 / 88))))
    return g * (xp.where(near, series * (-1 / 3), slope) * math.pi)


sinc = elementwise(
    "sinc",
    _sinc,
    x=_sinc_slope,
    floating=True,
    domain=both(-2, 2),
    doc=documented(
        "Return sin(pi x) / (pi x), and 1 at 0.",
        "pb.sinc(pb.tensor([0.0, 0.5]))",
        "tensor([1.0000, 0.6366])",
    ),
)
