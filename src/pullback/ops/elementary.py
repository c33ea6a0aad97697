"""Elementary functions, element by element: exponentials, logarithms, roots, signs and steps.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: abs and sign
have the derivative 0 at 0, the steps have 0 everywhere.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.ops._declare import (
    Operation,
    both,
    elementwise,
    face,
    needs_order,
    on,
    operation,
    real,
    sample,
    standard,
)
from pullback.ops._examples import documented
from pullback.ops.complex_ import complex_sign, to_complex

__all__ = [
    "abs",
    "ceil",
    "copysign",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "heaviside",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "nan_to_num",
    "nextafter",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "signbit",
    "sqrt",
    "square",
    "trunc",
    "xlog1py",
    "xlogy",
]

_LN2, _LN10 = math.log(2), math.log(10)

# -- exponentials ----------------------------------------------------------------------------------
exp = elementwise(
    "exp",
    standard("exp"),
    x=lambda g, out: g * out,
    floating=True,
    domain=both(-2, 2),
    doc=documented("Return e ** x.", "pb.exp(pb.tensor([0.0, 1.0]))", "tensor([1.0000, 2.7183])"),
)
exp2 = elementwise(
    "exp2",
    lambda xp, x: 2.0**x,
    kernel=lambda xp, x: xp.exp2(x),
    x=lambda g, out: g * out * _LN2,
    floating=True,
    domain=both(-2, 2),
    doc=documented("Return 2 ** x.", "pb.exp2(pb.tensor([0.0, 3.0]))", "tensor([1., 8.])"),
)
expm1 = elementwise(
    "expm1",
    standard("expm1"),
    x=lambda g, out: g * (out + 1),
    floating=True,
    domain=both(-2, 2),
    doc="Return e ** x - 1, accurate near 0.",
)

# -- logarithms ------------------------------------------------------------------------------------
log = elementwise(
    "log",
    standard("log"),
    x=lambda g, x: g / x,
    floating=True,
    domain=both(0.5, 3),
    doc=documented("Return ln x.", "pb.log(pb.tensor([1.0, 2.0]))", "tensor([0.0000, 0.6931])"),
)
log1p = elementwise(
    "log1p",
    standard("log1p"),
    x=lambda g, x: g / (x + 1),
    floating=True,
    domain=both(-0.5, 2),
    doc=documented(
        "Return ln(1 + x), accurate near 0.",
        "pb.log1p(pb.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.6931])",
    ),
)
log2 = elementwise(
    "log2",
    standard("log2"),
    x=lambda g, x: g / x * (1 / _LN2),
    floating=True,
    domain=both(0.5, 3),
    doc=documented(
        "Return the logarithm to base 2.", "pb.log2(pb.tensor([1.0, 8.0]))", "tensor([0., 3.])"
    ),
)
log10 = elementwise(
    "log10",
    standard("log10"),
    x=lambda g, x: g / x * (1 / _LN10),
    floating=True,
    domain=both(0.5, 3),
    doc=documented(
        "Return the logarithm to base 10.",
        "pb.log10(pb.tensor([1.0, 2.0]))",
        "tensor([0.0000, 0.3010])",
    ),
)


def _weight(g: Any, x: Any, y: Any, out: Any, xp: Any) -> Any:
    """Return g * exp(x - out); equal infinities share by halves, as all equals do."""
    alike = xp.where(x == y, -_LN2, xp.zeros_like(out))
    return g * xp.exp(xp.where(x == out, alike, x - out))


logaddexp = elementwise(
    "logaddexp",
    standard("logaddexp", ordered=True),
    x=lambda g, x, y, out, xp: _weight(g, x, y, out, xp),
    y=lambda g, x, y, out, xp: _weight(g, y, x, out, xp),
    floating=True,
    domain=real(-2, 2),
    doc=documented(
        "Return log(exp(x) + exp(y)), without overflow.",
        "pb.logaddexp(pb.tensor([0.0, 1000.0]), pb.tensor([0.0, 1000.0]))",
        "tensor([   0.6931, 1000.6932])",
    ),
)


def _beside(x: Any, y: Any, xp: Any) -> Any:
    """Return y as an array of the dtype of x, where it is a number of Python."""
    return xp.zeros_like(x) + y if isinstance(y, (int, float)) else y


def _times_log(name: str, log: str, harmless: int, doc: str) -> Operation:
    """Declare x * log(y), which is 0 where x is 0; the logarithm of `harmless` is 0."""

    def settled(x: Any, y: Any, xp: Any) -> Any:
        """Return y, but what does no harm where x is 0."""
        y = _beside(x, y, xp)
        return xp.where((x == 0) & (y == y), harmless, y)

    def kernel(xp: Any, x: Any, y: Any) -> Any:
        return x * getattr(xp, log)(settled(x, y, xp))

    def forward(xp: Any, x: Any, y: Any) -> Any:
        needs_order(name, x, y)
        return kernel(xp, x, y)

    def slope_in_x(g: Any, x: Any, y: Any, xp: Any) -> Any:
        y = _beside(x, y, xp)
        at_a_pole = (x == 0) & (y <= harmless - 1)
        return g * getattr(xp, log)(xp.where(at_a_pole, harmless, y))

    def slope_in_y(g: Any, x: Any, y: Any, xp: Any) -> Any:
        return g * x / (settled(x, y, xp) + (1 - harmless))

    return elementwise(
        name,
        forward,
        kernel=kernel,
        x=slope_in_x,
        y=slope_in_y,
        floating=True,
        domain={"x": real(-2, 2), "y": real(0.5, 2)},
        doc=doc,
    )


xlogy = _times_log(
    "xlogy",
    "log",
    1,
    documented(
        "Return x * ln(y), and 0 where x is 0 unless y is NaN.",
        "pb.xlogy(pb.tensor([0.0, 2.0]), pb.tensor([0.0, pb.e]))",
        "tensor([0., 2.])",
    ),
)
xlog1py = _times_log(
    "xlog1py",
    "log1p",
    0,
    documented(
        "Return x * ln(1 + y), and 0 where x is 0 unless y is NaN.",
        "pb.xlog1py(pb.tensor([0.0, 2.0]), pb.tensor([-1.0, pb.e - 1]))",
        "tensor([0., 2.])",
    ),
)

# -- powers and roots ------------------------------------------------------------------------------
sqrt = elementwise(
    "sqrt",
    standard("sqrt"),
    x=lambda g, out: g / out * 0.5,
    floating=True,
    domain=both(0.5, 3),
    doc=documented(
        "Return the square root; the derivative at 0 is inf.",
        "pb.sqrt(pb.tensor([4.0, 9.0]))",
        "tensor([2., 3.])",
    ),
)
rsqrt = elementwise(
    "rsqrt",
    lambda xp, x: 1 / xp.sqrt(x),
    x=lambda g, out: g * out * out * out * -0.5,
    floating=True,
    domain=both(0.5, 3),
    doc=documented(
        "Return 1 / sqrt(x).", "pb.rsqrt(pb.tensor([4.0, 16.0]))", "tensor([0.5000, 0.2500])"
    ),
)
square = elementwise(
    "square",
    standard("square"),
    x=lambda g, x: g * (2 * x),
    domain=both(-2, 2),
    doc=documented("Return x * x.", "pb.square(pb.tensor([2.0, -3.0]))", "tensor([4., 9.])"),
)
reciprocal = elementwise(
    "reciprocal",
    standard("reciprocal"),
    x=lambda g, out: -(g * out * out),
    floating=True,
    domain=both(0.5, 2),
    doc=documented(
        "Return 1 / x.", "pb.reciprocal(pb.tensor([2.0, -4.0]))", "tensor([ 0.5000, -0.2500])"
    ),
)

# -- magnitude and sign ----------------------------------------------------------------------------
absolute = elementwise(
    "abs",
    standard("abs"),
    x=lambda g, x, xp: g * xp.sign(x),
    holomorphic=False,
    domain=both(-2, 2, 0.0),
    doc=documented(
        "Return the magnitude; the derivative at 0 is 0.",
        "pb.abs(pb.tensor([-2.0, 0.0, 3.0]))",
        "tensor([2., 0., 3.])",
    ),
)
real_sign = elementwise(
    "sign",
    standard("sign"),
    x=lambda g, xp: xp.zeros_like(g),
    domain=real(-2, 2, 0.0),
    doc="Return the sign; its derivative is 0 everywhere.",
)


@face(real_sign)
def sign(x: Any, /) -> Tensor:
    """Return the sign of real numbers, x / abs(x) of complex ones; 0 where x is 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sign(pb.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    is_complex = x.dtype.is_complex if x.__class__ is Tensor else "complex" in str(_dtype(x))
    return complex_sign(x) if is_complex else real_sign(x)


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", "")


signbit = elementwise(
    "signbit",
    standard("signbit", ordered=True),
    differentiable=False,
    floating=True,
    domain=real(-2, 2),
    doc=documented(
        "Return whether the sign is negative, that of -0.0 too.",
        "pb.signbit(pb.tensor([-2.0, -0.0, 0.0]))",
        "tensor([ True,  True, False])",
    ),
)
copysign = elementwise(
    "copysign",
    standard("copysign", ordered=True),
    x=lambda g, x, out, xp: g * (xp.sign(x) * xp.sign(out)),
    y=lambda g, xp: xp.zeros_like(g),
    floating=True,
    domain=real(-2, 2, 0.0),
    doc=documented(
        "Return x with the sign of y; the derivatives are 0 where x is 0, and in y.",
        "pb.copysign(pb.tensor([1.0, 2.0]), pb.tensor([-0.0, 3.0]))",
        "tensor([-1.,  2.])",
    ),
)
nextafter = elementwise(
    "nextafter",
    standard("nextafter", ordered=True),
    x=lambda g: g,
    y=lambda g, xp: xp.zeros_like(g),
    floating=True,
    domain=real(-2, 2),
    doc=documented(
        "Return the number next to x in the direction of y; the derivatives are 1 and 0.",
        "pb.nextafter(pb.tensor([1.0]), pb.tensor([2.0])) > 1",
        "tensor([ True])",
    ),
)


def _heaviside(xp: Any, x: Any, y: Any) -> Any:
    needs_order("heaviside", x, y)
    return xp.where(x == 0, y, xp.maximum(xp.sign(x), 0))


heaviside = elementwise(
    "heaviside",
    _heaviside,
    kernel=lambda xp, x, y: xp.heaviside(x, y),
    x=lambda g, xp: xp.zeros_like(g),
    y=lambda g, x, xp: xp.where(x == 0, g, 0),
    domain={"x": real(-2, 2, 0.0), "y": real(-2, 2)},
    doc=documented(
        "Return 0 where x is negative, 1 where it is positive, y where it is 0.",
        "pb.heaviside(pb.tensor([-1.0, 0.0, 1.0]), 0.5)",
        "tensor([0.0000, 0.5000, 1.0000])",
    ),
)


# -- steps -----------------------------------------------------------------------------------------
def _steps(name: str, what: str, printed: str) -> Operation:
    return elementwise(
        name,
        standard(name, ordered=name != "round"),
        x=lambda g, xp: xp.zeros_like(g),
        domain=real(0.6, 0.9),
        doc=documented(
            f"Return x rounded {what}; the derivative is 0 everywhere.",
            f"pb.{name}(pb.tensor([-1.5, 0.5]))",
            printed,
        ),
    )


floor = _steps("floor", "down", "tensor([-2.,  0.])")
ceil = _steps("ceil", "up", "tensor([-1.,  1.])")
trunc = _steps("trunc", "towards 0", "tensor([-1.,  0.])")
round_ = _steps("round", "to the nearest integer, halves to the even one", "tensor([-2.,  0.])")


@face(round_)
def round(x: Any, /, *, decimals: int = 0, out: Any = None) -> Tensor:
    """Return x rounded to the nearest integer, halves to the even one; the derivative is 0.

    With `decimals` that many digits after the point stay, or before it as many become 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.round(pb.tensor([-1.5, 0.5, 2.5]))
    tensor([-2.,  0.,  2.])
    >>> pb.round(pb.tensor([1234.567]), decimals=-2)
    tensor([1200.])
    """
    if decimals == 0:
        return round_(x) if out is None else round_(x, out=out)
    there, back = TENSORS.multiply, TENSORS.divide
    if decimals < 0:
        there, back = back, there
    unit = 10.0 ** (decimals if decimals > 0 else -decimals)
    result: Tensor = back(round_(there(x, unit)), unit)
    return result


frac = elementwise(
    "frac",
    lambda xp, x: x - xp.trunc(x),
    x=lambda g: g,
    floating=True,
    domain=real(0.1, 0.9),
    doc=documented(
        "Return x - trunc(x); the derivative is 1 everywhere.",
        "pb.frac(pb.tensor([-1.25, 0.5]))",
        "tensor([-0.2500,  0.5000])",
    ),
)


# -- repairs ---------------------------------------------------------------------------------------
def _finite(xp: Any, x: Any, *, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if "int" in str(x.dtype) or "bool" in str(x.dtype):
        return library_of(x).copy(x)
    if "complex" in str(x.dtype):
        settings = {"nan": nan, "posinf": posinf, "neginf": neginf}
        parts = [_finite(xp, part, **settings) for part in (xp.real(x), xp.imag(x))]
        real_part, imaginary = (on(xp, to_complex)(p, imaginary=p is parts[1]) for p in parts)
        return real_part + imaginary
    limits = xp.finfo(x.dtype)
    x = xp.where(xp.isnan(x), nan, x)
    x = xp.where(x == math.inf, float(limits.max) if posinf is None else posinf, x)
    return xp.where(x == -math.inf, float(limits.min) if neginf is None else neginf, x)


nan_to_num_ = operation(
    "nan_to_num",
    _finite,
    rules={"x": lambda g, x, xp: xp.where(xp.isfinite(x), g, 0)},
    samples=(
        sample((3, 4), nan=1.0),
        sample((), posinf=2.0, neginf=-2.0),
        sample((0, 3)),
    ),
    doc="Return x with numbers in place of NaN and infinities, which get no gradient.",
)


@face(nan_to_num_)
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    """Return `x` with numbers in place of NaN and infinities, which get no gradient.

    Parameters
    ----------
    x : Tensor
    nan : float
        In place of NaN.
    posinf, neginf : float, optional
        In place of inf and -inf; the largest and the smallest number of the dtype by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nan_to_num(pb.tensor([1.0, pb.nan, pb.inf]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    return nan_to_num_(x, nan=nan, posinf=posinf, neginf=neginf)


# The name of a function that Python has too.
abs = absolute
