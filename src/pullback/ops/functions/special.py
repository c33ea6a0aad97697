"""Special functions that look at their arguments first, and SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops.arguments import holds_somewhere, tensor_of
from pullback.ops.axes import plain
from pullback.ops.declare import ELEMENTWISE, composition, needs_tensor, public
from pullback.ops.functions import pointwise
from pullback.ops.functions.creation import asarray
from pullback.ops.primitives import arithmetic
from pullback.ops.primitives.bessel import kv, yv
from pullback.ops.primitives.comparison import not_equal
from pullback.ops.primitives.gamma_functions import betaln_p, lgamma, polygamma_p, zeta_p
from pullback.ops.primitives.incomplete import (
    betainc_p,
    betaincc_p,
    betaincinv_p,
    fdtrc_p,
    gammainc_p,
    gammaincc_p,
    gammainccinv_p,
    gammaincinv_p,
    stdtr_p,
    stdtrit_p,
)
from pullback.ops.primitives.rounding import floor
from pullback.ops.primitives.special import logit_p
from pullback.ops.samples import grid, real, sample


def needs_order_of_derivative(n: Any) -> None:
    """Raise where polygamma got no integer of at least 0."""
    if not isinstance(plain(n), int) or n < 0:
        raise ArgumentError(compose("polygamma", "an integer n of at least 0 required", repr(n)))


# -- gamma functions -------------------------------------------------------------------------------
@public(polygamma_p, call=lambda f, x, *, n: f(n, x))
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
    return polygamma_p.public(x, n=n)


@public(gammainc_p, methods="igamma igamma_")
def gammainc(a: Any, x: Any, /) -> Tensor:
    """Return the integral of t ** (a - 1) * exp(-t) / gamma(a) from 0 to x.

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
    """
    return gammainc_p.public(a, x)


igamma = gammainc


@public(gammaincc_p, methods="igammac igammac_")
def gammaincc(a: Any, x: Any, /) -> Tensor:
    """Return 1 - gammainc(a, x), accurate where that is small.

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
    """
    return gammaincc_p.public(a, x)


igammac = gammaincc


@public(gammaincinv_p)
def gammaincinv(a: Any, y: Any, /) -> Tensor:
    """Return the x with gammainc(a, x) = y.

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
    """
    return gammaincinv_p.public(a, y)


@public(gammainccinv_p)
def gammainccinv(a: Any, y: Any, /) -> Tensor:
    """Return the x with gammaincc(a, x) = y; see `gammaincinv`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.gammainccinv(1.0, pb.tensor([1.0, 0.5]))
    tensor([0.0000, 0.6931])
    """
    return gammainccinv_p.public(a, y)


@public(betaln_p)
def betaln(a: Any, b: Any, /) -> Tensor:
    """Return the logarithm of the beta function, lgamma(a) + lgamma(b) - lgamma(a + b).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.betaln(pb.tensor([2.0]), pb.tensor([3.0]))
    tensor([-2.4849])
    """
    return betaln_p.public(a, b)


@public(zeta_p)
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
    return zeta_p.public(s, q)


# -- Bessel functions of whole order ---------------------------------------------------------------
_WHOLE_ORDER = {"n": grid(0, 3), "x": real(0.5, 4)}


def _whole(op: str, n: Any) -> Any:
    """Return an order, or raise where one is no whole number: SciPy would cut its fraction off."""
    values = tensor_of(op, n, "n").detach() if isinstance(n, Tensor) else asarray(n)
    if values.dtype.is_inexact and holds_somewhere(not_equal(floor(values), values)):
        hint = f"{op[0]}v takes orders that are not whole"
        raise ArgumentError(compose(op, "whole numbers required in n", "others", hint=hint))
    return n


@composition(
    *ELEMENTWISE[2],
    domain=_WHOLE_ORDER,
    constants=("n",),
    reference="scipy.special.yn",
)
def yn(n: Any, x: Any, /) -> Tensor:
    """Return the Bessel function of the second kind and whole order n.

    Raises
    ------
    ArgumentError
        If an order is not whole.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.yn(2, pb.tensor([1.0, 2.0]))
    tensor([-1.6507, -0.6174])
    """
    return yv(_whole("yn", n), x)


@composition(
    *ELEMENTWISE[2],
    domain=_WHOLE_ORDER,
    constants=("n",),
    reference="scipy.special.kn",
)
def kn(n: Any, x: Any, /) -> Tensor:
    """Return the modified Bessel function of the second kind and whole order n.

    Raises
    ------
    ArgumentError
        If an order is not whole.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.kn(2, pb.tensor([1.0, 2.0]))
    tensor([1.6248, 0.2538])
    """
    return kv(_whole("kn", n), x)


# -- distributions ---------------------------------------------------------------------------------
@public(betainc_p)
def betainc(a: Any, b: Any, x: Any, /) -> Tensor:
    """Return the integral of t ** (a - 1) * (1 - t) ** (b - 1) from 0 to x, divided by that to 1.

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
    """
    return betainc_p.public(a, b, x)


@public(betaincc_p)
def betaincc(a: Any, b: Any, x: Any, /) -> Tensor:
    """Return 1 - betainc(a, b, x), accurate where that is small; see `betainc`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.special.betaincc(2.0, 1.0, pb.tensor([0.5, 1.0]))
    tensor([0.7500, 0.0000])
    """
    return betaincc_p.public(a, b, x)


@public(betaincinv_p)
def betaincinv(a: Any, b: Any, y: Any, /) -> Tensor:
    """Return the x with betainc(a, b, x) = y.

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
    """
    return betaincinv_p.public(a, b, y)


@public(stdtr_p)
def stdtr(df: Any, t: Any, /) -> Tensor:
    """Return the probability that a variable of Student's distribution is less than t.

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
    """
    return stdtr_p.public(df, t)


@public(stdtrit_p)
def stdtrit(df: Any, p: Any, /) -> Tensor:
    """Return the t with stdtr(df, t) = p.

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
    """
    return stdtrit_p.public(df, p)


@public(fdtrc_p)
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
    return fdtrc_p.public(dfn, dfd, x)


@public(logit_p, methods="logit")
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
    return logit_p.public(x, eps=eps)


@composition(
    sample((3,), p=2),
    sample((), p=3),
    domain=real(2, 4),
    reference=(lambda scipy, x, p: scipy.special.multigammaln(x, p)),
    methods="mvlgamma mvlgamma_",
)
def mvlgamma(x: Any, p: int) -> Tensor:
    """Return the logarithm of the gamma function of `p` variables.

    It is log(pi) p (p - 1) / 4 + the sum of lgamma(x - j / 2) for j from 0 to p - 1.

    Raises
    ------
    ArgumentError
        If `p` is not positive.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mvlgamma(pb.tensor([2.0]), 1)
    tensor([0.])
    """
    needs_tensor("mvlgamma", x)
    if p < 1:
        raise ArgumentError(compose("mvlgamma", "p of at least 1 required", str(p)))
    total = lgamma(x)
    for j in range(1, p):
        total = pointwise.add(total, lgamma(arithmetic.subtract(x, j / 2)))
    return pointwise.add(total, math.log(math.pi) * p * (p - 1) / 4)
