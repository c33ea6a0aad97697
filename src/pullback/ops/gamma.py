"""The gamma function and its relatives, element by element; their values are SciPy's.

Each rule multiplies the gradient ``g`` by the derivative, written in declared functions, so that
second derivatives follow. The first arguments of gammainc, gammaincc and zeta have no rule: asking
for their gradient is an error. Derivatives: https://dlmf.nist.gov, chapters 5, 8 and 25.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops._declare import Operation, face, on, operation, real, sample
from pullback.ops._examples import documented
from pullback.ops.elementary import xlogy
from pullback.ops.special import from_scipy, like, needs_real

__all__ = [
    "betaln",
    "digamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "lgamma",
    "polygamma",
    "zeta",
]

lgamma = from_scipy(
    "lgamma",
    "gammaln",
    x=lambda g, x, xp: g * on(xp, digamma)(x),
    domain=real(0.5, 4),
    doc=documented(
        "Return the logarithm of the magnitude of the gamma function.",
        "pb.lgamma(pb.tensor([1.0, 5.0]))",
        "tensor([0.0000, 3.1781])",
    ),
)
digamma: Operation = from_scipy(
    "digamma",
    "psi",
    x=lambda g, x, xp: g * on(xp, polygamma_)(x, n=1),
    domain=real(0.5, 4),
    doc=documented(
        "Return the derivative of lgamma.",
        "pb.digamma(pb.tensor([1.0, 5.0]))",
        "tensor([-0.5772,  1.5061])",
    ),
)


def _polygamma(xp: Any, x: Any, *, n: int) -> Any:
    needs_real("polygamma", ("x",), (x,))
    special = library_of(x).special
    if n == 0:
        return like(x, special("psi", x))
    factor = (-1) ** (n + 1) * float(math.factorial(n))
    return like(x, special("zeta", xp.full_like(x, n + 1), x) * factor)


polygamma_: Operation = operation(
    "polygamma",
    _polygamma,
    rules={"x": lambda g, x, n, xp: g * on(xp, polygamma_)(x, n=n + 1)},
    floating=True,
    domain=real(0.8, 4),
    samples=(sample((3, 4), n=1), sample((), n=0), sample((0, 3), n=2), sample((5,), n=3)),
    doc="Return the n-th derivative of digamma.",
)


def needs_order_of_derivative(n: Any) -> None:
    """Raise where polygamma got no integer of at least 0."""
    if not isinstance(n, int) or n < 0:
        raise ArgumentError(compose("polygamma", "an integer n of at least 0 required", repr(n)))


def _call_polygamma(x: Any, *, n: int) -> Tensor:
    return polygamma(n, x)


@face(polygamma_, call=_call_polygamma)
def polygamma(n: int, x: Any, /) -> Tensor:
    """Return the n-th derivative of digamma.

    Parameters
    ----------
    n : int
        At least 0; 0 is digamma itself.
    x : Tensor

    Raises
    ------
    ArgumentError
        If `n` is no integer of at least 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.polygamma(1, pb.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    needs_order_of_derivative(n)
    return polygamma_(x, n=n)


def _density(g: Any, a: Any, x: Any, xp: Any) -> Any:
    """Return g times the density of the gamma distribution of shape a at x."""
    return g * xp.exp(on(xp, xlogy)(a - 1, x) - x - on(xp, lgamma)(a))


gammainc_ = from_scipy(
    "gammainc",
    "gammainc",
    inputs=("a", "x"),
    x=lambda g, a, x, xp: _density(g, a, x, xp),
    domain=real(0.5, 3),
    doc="Return the regularised lower incomplete gamma function.",
)


@face(gammainc_)
def gammainc(a: Any, x: Any, /) -> Tensor:
    """Return the integral of t ** (a - 1) * exp(-t) / gamma(a) from 0 to x.

    Parameters
    ----------
    a : Tensor or number
        It has no rule: asking for its gradient is an error.
    x : Tensor or number
        Not negative, broadcast with `a`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.gammainc(pb.tensor([1.0]), pb.tensor([2.0]))
    tensor([0.8647])
    """
    return gammainc_(a, x)


gammaincc_ = from_scipy(
    "gammaincc",
    "gammaincc",
    inputs=("a", "x"),
    x=lambda g, a, x, xp: -_density(g, a, x, xp),
    domain=real(0.5, 3),
    doc="Return the regularised upper incomplete gamma function.",
)


@face(gammaincc_)
def gammaincc(a: Any, x: Any, /) -> Tensor:
    """Return 1 - gammainc(a, x), accurate where that is small.

    Parameters
    ----------
    a : Tensor or number
        It has no rule: asking for its gradient is an error.
    x : Tensor or number
        Not negative, broadcast with `a`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.gammaincc(pb.tensor([1.0]), pb.tensor([2.0]))
    tensor([0.1353])
    """
    return gammaincc_(a, x)


betaln_ = from_scipy(
    "betaln",
    "betaln",
    inputs=("a", "b"),
    a=lambda g, a, b, xp: g * (on(xp, digamma)(a) - on(xp, digamma)(a + b)),
    b=lambda g, a, b, xp: g * (on(xp, digamma)(b) - on(xp, digamma)(a + b)),
    domain=real(0.5, 3),
    doc="Return the logarithm of the beta function.",
)


@face(betaln_)
def betaln(a: Any, b: Any, /) -> Tensor:
    """Return the logarithm of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.betaln(pb.tensor([2.0]), pb.tensor([3.0]))
    tensor([-2.4849])
    """
    return betaln_(a, b)


zeta_: Operation = from_scipy(
    "zeta",
    "zeta",
    inputs=("s", "q"),
    q=lambda g, s, q, xp: -(g * s * on(xp, zeta_)(s + 1, q)),
    domain={"s": real(2, 4), "q": real(0.5, 3)},
    doc="Return Hurwitz's zeta function.",
)


@face(zeta_)
def zeta(s: Any, q: Any, /) -> Tensor:
    """Return Hurwitz's zeta function, the sum of (k + q) ** -s over all whole k from 0 on.

    Parameters
    ----------
    s : Tensor or number
        More than 1. It has no rule: asking for its gradient is an error.
    q : Tensor or number
        Positive, broadcast with `s`. For 1 it is Riemann's zeta function.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.zeta(pb.tensor([2.0]), pb.tensor([1.0]))
    tensor([1.6449])
    """
    return zeta_(s, q)


# Its name in SciPy.
TENSORS.gammaln = gammaln = lgamma
