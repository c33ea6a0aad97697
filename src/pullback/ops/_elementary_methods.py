"""The methods of Tensor that work element by element, beyond arithmetic, and their in-place twins.

The names are PyTorch's: `igamma` is gammainc, `bitwise_not` is bitwise_invert.
"""

from __future__ import annotations

from typing import Any

from pullback.core.function.inplace import apply_inplace
from pullback.core.tensor.tensor import Tensor
from pullback.ops import (
    comparison,
    complex_,
    elementary,
    elementwise,
    gamma,
    special,
    trigonometric,
)
from pullback.ops._declare import inplace

_real_sign_, _complex_sign_ = inplace(elementary.real_sign), inplace(complex_.complex_sign)


class ElementaryMethods:
    """The element-wise functions among `TensorMethods`."""

    __slots__ = ()

    # -- circular and hyperbolic --------------------------------------------------------------
    acos, asin, atan = trigonometric.acos, trigonometric.asin, trigonometric.atan
    acosh, asinh, atanh = trigonometric.acosh, trigonometric.asinh, trigonometric.atanh
    cosh, sinh = trigonometric.cosh, trigonometric.sinh
    atan2, hypot = trigonometric.atan2, trigonometric.hypot
    deg2rad, rad2deg = trigonometric.deg2rad, trigonometric.rad2deg

    acos_, asin_, atan_ = inplace(acos), inplace(asin), inplace(atan)
    acosh_, asinh_, atanh_ = inplace(acosh), inplace(asinh), inplace(atanh)
    cosh_, sinh_, tan_ = inplace(cosh), inplace(sinh), inplace(trigonometric.tan)
    atan2_, hypot_ = inplace(atan2), inplace(hypot)
    deg2rad_, rad2deg_ = inplace(deg2rad), inplace(rad2deg)

    # -- exponentials, logarithms, roots ------------------------------------------------------
    exp2, log2, log10, rsqrt = (
        elementary.exp2,
        elementary.log2,
        elementary.log10,
        elementary.rsqrt,
    )
    logaddexp, xlogy = elementary.logaddexp, elementary.xlogy

    exp2_, log2_, log10_, rsqrt_ = inplace(exp2), inplace(log2), inplace(log10), inplace(rsqrt)
    expm1_, log1p_ = inplace(elementary.expm1), inplace(elementary.log1p)
    xlogy_ = inplace(xlogy)

    # -- signs, steps, neighbours -------------------------------------------------------------
    copysign, heaviside, nextafter = (
        elementary.copysign,
        elementary.heaviside,
        elementary.nextafter,
    )
    signbit, frac, sgn = elementary.signbit, elementary.frac, elementary.sign
    nan_to_num = elementary.nan_to_num

    copysign_, heaviside_, nextafter_ = inplace(copysign), inplace(heaviside), inplace(nextafter)
    frac_, trunc_ = inplace(frac), inplace(elementary.trunc)

    def sign_(self: Any) -> Tensor:
        """Do `sign` in place and return this tensor."""
        return _complex_sign_(self) if self.dtype.is_complex else _real_sign_(self)

    sgn_ = sign_

    def nan_to_num_(
        self: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Do `nan_to_num` in place and return this tensor."""
        settings = {"nan": nan, "posinf": posinf, "neginf": neginf}
        return apply_inplace(elementary.nan_to_num_.primitive, self, (), settings)

    # -- arithmetic ---------------------------------------------------------------------------
    floor_divide, fmod, remainder = (
        elementwise.floor_divide,
        elementwise.fmod,
        elementwise.remainder,
    )
    lerp = elementwise.lerp

    floor_divide_, fmod_, remainder_ = inplace(floor_divide), inplace(fmod), inplace(remainder)
    lerp_ = inplace(elementwise.lerp_)

    def clip_(self: Any, min: Any = None, max: Any = None) -> Tensor:
        """Do `clip` in place and return this tensor."""
        result: Tensor = self.clamp_(min, max)
        return result

    # -- special functions --------------------------------------------------------------------
    erf, erfc, erfinv, sinc = special.erf, special.erfc, special.erfinv, special.sinc
    lgamma, digamma, i0 = gamma.lgamma, gamma.digamma, special.i0
    igamma, igammac, logit = gamma.gammainc, gamma.gammaincc, special.logit

    erf_, erfc_, erfinv_, sinc_ = inplace(erf), inplace(erfc), inplace(erfinv), inplace(sinc)
    lgamma_, digamma_, i0_ = inplace(lgamma), inplace(digamma), inplace(i0)
    igamma_, igammac_ = inplace(gamma.gammainc_), inplace(gamma.gammaincc_)

    def polygamma(self: Any, n: int) -> Tensor:
        """Return the n-th derivative of digamma."""
        return gamma.polygamma(n, self)

    def polygamma_(self: Any, n: int) -> Tensor:
        """Do `polygamma` in place and return this tensor."""
        gamma.needs_order_of_derivative(n)
        return apply_inplace(gamma.polygamma_.primitive, self, (), {"n": n})

    def logit_(self: Any, eps: float | None = None) -> Tensor:
        """Do `logit` in place and return this tensor."""
        return apply_inplace(special.logit_.primitive, self, (), {"eps": eps})

    # -- logic and bits -----------------------------------------------------------------------
    logical_and, logical_or, logical_xor, logical_not = (
        comparison.logical_and,
        comparison.logical_or,
        comparison.logical_xor,
        comparison.logical_not,
    )
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (
        comparison.bitwise_and,
        comparison.bitwise_or,
        comparison.bitwise_xor,
        comparison.bitwise_invert,
    )
    bitwise_left_shift, bitwise_right_shift = (
        comparison.bitwise_left_shift,
        comparison.bitwise_right_shift,
    )

    logical_and_, logical_or_ = inplace(logical_and), inplace(logical_or)
    logical_xor_, logical_not_ = inplace(logical_xor), inplace(logical_not)
    bitwise_and_, bitwise_or_ = inplace(bitwise_and), inplace(bitwise_or)
    bitwise_xor_, bitwise_not_ = inplace(bitwise_xor), inplace(bitwise_not)
    bitwise_left_shift_, bitwise_right_shift_ = (
        inplace(bitwise_left_shift),
        inplace(bitwise_right_shift),
    )
