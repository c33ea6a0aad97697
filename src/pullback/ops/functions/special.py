"""Special functions that look at their arguments first, and SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops.arguments import holds_somewhere, tensor_of
from pullback.ops.axes import to_builtin
from pullback.ops.declare import ELEMENTWISE, composition, needs_tensor, wrapper_of
from pullback.ops.functions import pointwise
from pullback.ops.functions.creation import asarray
from pullback.ops.primitives import arithmetic
from pullback.ops.primitives.bessel import kv, yv
from pullback.ops.primitives.comparison import not_equal
from pullback.ops.primitives.gamma_functions import lgamma, polygamma_p
from pullback.ops.primitives.rounding import floor
from pullback.ops.primitives.special import logit_p
from pullback.ops.samples import grid, real, sample


def needs_order_of_derivative(n: Any) -> None:
    """Raise where polygamma got no integer of at least 0."""
    if not isinstance(to_builtin(n), int) or n < 0:
        raise ArgumentError(compose("polygamma", "an integer n of at least 0 required", repr(n)))


# -- gamma functions -------------------------------------------------------------------------------
@wrapper_of(polygamma_p, call=lambda f, x, *, n: f(n, x))
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


# -- Bessel functions of whole order ---------------------------------------------------------------
_WHOLE_ORDER = {"n": grid(0, 3), "x": real(0.5, 4)}


def _whole(op: str, n: Any) -> Any:
    """Return an order, or raise where one is no whole number: SciPy would cut its fraction off."""
    values = tensor_of(op, n, "n").detach() if isinstance(n, Tensor) else asarray(n)
    if values.dtype.is_inexact and holds_somewhere(not_equal(floor(values), values)):
        hint = f"{op[0]}v takes orders that are not whole"
        raise ArgumentError(compose(op, "whole numbers required in n", "others", hint=hint))
    return n


@composition(*ELEMENTWISE[2], domain=_WHOLE_ORDER, constants=("n",))
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


@composition(*ELEMENTWISE[2], domain=_WHOLE_ORDER, constants=("n",))
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
@wrapper_of(logit_p, methods="logit")
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
