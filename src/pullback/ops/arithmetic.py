"""Arithmetic in PyTorch's words: products that are added, one-sided bounds, powers of two, gcd.

Nearly all is made of other operations. Edge values: fmax and fmin take the number where the other
is NaN, and share the gradient of equals by halves, as maximum and minimum do.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import DTYPES
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose
from pullback.ops._declare import (
    both,
    composition,
    elementwise,
    integers,
    needs_order,
    needs_tensor,
    real,
    sample,
)
from pullback.ops._examples import documented
from pullback.ops.comparison import equal, isfinite, isnan, less_equal, logical_and, logical_or
from pullback.ops.conversion import astype
from pullback.ops.elementary import absolute, exp2, logaddexp
from pullback.ops.elementwise import (
    add,
    clamp,
    divide,
    maximum,
    minimum,
    multiply,
    power,
    subtract,
    times,
    where,
)
from pullback.ops.shape import tensor_of

__all__ = [
    "addcdiv",
    "addcmul",
    "allclose",
    "clamp_max",
    "clamp_min",
    "float_power",
    "fmax",
    "fmin",
    "gcd",
    "isclose",
    "isneginf",
    "isposinf",
    "lcm",
    "ldexp",
    "logaddexp2",
    "rsub",
]

_THREE = (sample((3, 4), (4,), (3, 1), value=0.5), sample((), (), ()))


# -- sums of products ------------------------------------------------------------------------------
@composition(*_THREE)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addcmul(pb.tensor([1.0]), pb.tensor([2.0]), pb.tensor([3.0]), value=10)
    tensor([61.])
    """
    product = multiply(tensor1, tensor2)
    return add(input, product if value == 1 else times(product, value))


@composition(
    *_THREE, domain={"input": both(-2, 2), "tensor1": both(-2, 2), "tensor2": both(0.5, 2)}
)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addcdiv(pb.tensor([1.0]), pb.tensor([6.0]), pb.tensor([3.0]), value=10)
    tensor([21.])
    """
    quotient = divide(tensor1, tensor2)
    return add(input, quotient if value == 1 else times(quotient, value))


@composition(sample((3, 4), (4,), alpha=2), sample((), ()))
def rsub(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """Return y - alpha * x.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rsub(pb.tensor([1.0, 2.0]), 10)
    tensor([9., 8.])
    """
    needs_tensor("rsub", x)
    return subtract(y, x if alpha == 1 else times(x, alpha))


# -- bounds ----------------------------------------------------------------------------------------
def _needs_bound(op: str, name: str, bound: Any) -> None:
    if bound is None:
        raise ArgumentTypeError(compose(op, f"a number or a Tensor required as '{name}'", "None"))


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2))
def clamp_min(x: Any, min: Any) -> Tensor:
    """Return `x`, and `min` where it is below; the gradient passes at the bound.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clamp_min(pb.tensor([-1.0, 2.0]), 0.0)
    tensor([0., 2.])
    """
    _needs_bound("clamp_min", "min", min)
    return clamp(x, min=min)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2))
def clamp_max(x: Any, max: Any) -> Tensor:
    """Return `x`, and `max` where it is above; the gradient passes at the bound.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.clamp_max(pb.tensor([-1.0, 2.0]), 0.0)
    tensor([-1.,  0.])
    """
    _needs_bound("clamp_max", "max", max)
    return clamp(x, max=max)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2))
def fmax(x: Any, y: Any) -> Tensor:
    """Return the larger of x and y, and the number where the other is NaN.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fmax(pb.tensor([1.0, pb.nan]), pb.tensor([pb.nan, 2.0]))
    tensor([1., 2.])
    """
    return _numbers_first(maximum, "fmax", x, y)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2))
def fmin(x: Any, y: Any) -> Tensor:
    """Return the smaller of x and y, and the number where the other is NaN.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fmin(pb.tensor([1.0, 5.0]), pb.tensor([pb.nan, 2.0]))
    tensor([1., 2.])
    """
    return _numbers_first(minimum, "fmin", x, y)


def _numbers_first(chosen: Any, op: str, x: Any, y: Any) -> Tensor:
    x, y = tensor_of(op, x, "x"), tensor_of(op, y, "y")
    return where(isnan(x), y, where(isnan(y), x, chosen(x, y)))


# -- powers and logarithms -------------------------------------------------------------------------
@composition(
    sample((3, 4), (4,)),
    sample((), ()),
    domain={"x": both(0.5, 2), "y": both(-2, 2)},
)
def float_power(x: Any, y: Any) -> Tensor:
    """Return x ** y, computed in float64 or complex128.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.float_power(pb.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=float64)
    """
    return power(_wide(x), _wide(y))


def _wide(x: Any) -> Any:
    if isinstance(x, (int, float, complex)):
        return x
    x = tensor_of("float_power", x)
    return astype(x, DTYPES["complex128" if x.dtype.is_complex else "float64"], copy=False)


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2))
def ldexp(x: Any, other: Any) -> Tensor:
    """Return x * 2 ** other.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ldexp(pb.tensor([1.5]), pb.tensor([3]))
    tensor([12.])
    """
    return multiply(x, exp2(other))


@composition(sample((3, 4), (4,)), sample((), ()), domain=real(-2, 2))
def logaddexp2(x: Any, y: Any) -> Tensor:
    """Return log2(2 ** x + 2 ** y), without overflow.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logaddexp2(pb.tensor([3.0]), pb.tensor([3.0]))
    tensor([4.])
    """
    ln2 = math.log(2)
    return divide(logaddexp(multiply(x, ln2), multiply(y, ln2)), ln2)


# -- whole numbers ---------------------------------------------------------------------------------
def _gcd(xp: Any, x: Any, y: Any) -> Any:
    """Return the greatest common divisors by Euclid's algorithm."""
    x, y = xp.broadcast_arrays(xp.abs(x), xp.abs(y))
    while bool(xp.any(y != 0)):
        done = y == 0
        rest = xp.remainder(x, xp.where(done, xp.ones_like(y), y))
        x, y = xp.where(done, x, y), xp.where(done, y, rest)
    return xp.asarray(x, copy=True)


gcd = elementwise(
    "gcd",
    _gcd,
    inputs=("x", "y"),
    differentiable=False,
    domain=integers(-6, 6),
    doc=documented(
        "Return the greatest common divisor of whole numbers, 0 of zeros.",
        "pb.gcd(pb.tensor([12, -9]), 6)",
        "tensor([6, 3])",
    ),
)


def _lcm(xp: Any, x: Any, y: Any) -> Any:
    divisor = _gcd(xp, x, y)
    return xp.abs(xp.floor_divide(x, xp.where(divisor == 0, xp.ones_like(divisor), divisor)) * y)


lcm = elementwise(
    "lcm",
    _lcm,
    inputs=("x", "y"),
    differentiable=False,
    domain=integers(-6, 6),
    doc=documented(
        "Return the least common multiple of whole numbers, 0 where one is 0.",
        "pb.lcm(pb.tensor([4, -9]), 6)",
        "tensor([12, 18])",
    ),
)


# -- what is near ----------------------------------------------------------------------------------
@composition(
    sample((3, 4), (4,), rtol=0.5),
    sample((), (), equal_nan=True),
    domain=both(0.5, 2),
    differentiable=False,
)
def isclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return whether abs(input - other) <= atol + rtol * abs(other), element by element.

    Infinities are close to themselves alone, and NaN to NaN if `equal_nan`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isclose(pb.tensor([1.0, 2.0]), pb.tensor([1.0 + 1e-7, 2.1]))
    tensor([ True, False])
    """
    input = tensor_of("isclose", input, "input").detach()
    other = tensor_of("isclose", other, "other").detach()
    limit = add(times(absolute(other), rtol), atol)
    near = less_equal(absolute(subtract(input, other)), limit)
    near = logical_or(equal(input, other), logical_and(near, isfinite(other)))
    if equal_nan:
        near = logical_or(near, logical_and(isnan(input), isnan(other)))
    return near


def allclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether all elements are close; the arguments are those of `isclose`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.allclose(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 2.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@composition(sample((3,)), sample(()), domain=real(-2, 2), differentiable=False)
def isposinf(x: Any) -> Tensor:
    """Return whether each element is inf.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isposinf(pb.tensor([1.0, pb.inf, -pb.inf]))
    tensor([False,  True, False])
    """
    x = tensor_of("isposinf", x)
    needs_order("isposinf", x.data_array())
    return equal(x, math.inf)


@composition(sample((3,)), sample(()), domain=real(-2, 2), differentiable=False)
def isneginf(x: Any) -> Tensor:
    """Return whether each element is -inf.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isneginf(pb.tensor([1.0, pb.inf, -pb.inf]))
    tensor([False, False,  True])
    """
    x = tensor_of("isneginf", x)
    needs_order("isneginf", x.data_array())
    return equal(x, -math.inf)
