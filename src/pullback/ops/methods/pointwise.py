"""The methods of Tensor that work element by element, and their in-place forms.

The names are PyTorch's: `igamma` is gammainc, `bitwise_not` is bitwise_invert.
"""

from __future__ import annotations

from typing import Any

from pullback.core.function.inplace import apply_inplace
from pullback.core.tensor.tensor import Tensor
from pullback.ops.declare import inplace
from pullback.ops.functions import pointwise, special
from pullback.ops.methods.inplace import InplaceMethods, composed
from pullback.ops.primitives import arithmetic, exponential, rounding, trigonometric
from pullback.ops.primitives import comparison as comparison_primitives
from pullback.ops.primitives import complex_numbers as complex_numbers_primitives
from pullback.ops.primitives import special as special_primitives
from pullback.ops.primitives.arithmetic import (
    div_p,
    floor_divide_p,
    fmod_p,
    gcd_p,
    lcm_p,
    lerp_p,
    remainder_p,
)
from pullback.ops.primitives.comparison import (
    bitwise_and_p,
    bitwise_invert_p,
    bitwise_left_shift_p,
    bitwise_or_p,
    bitwise_right_shift_p,
    bitwise_xor_p,
    eq_p,
    ge_p,
    gt_p,
    le_p,
    logical_and_p,
    logical_not_p,
    logical_or_p,
    logical_xor_p,
    lt_p,
    ne_p,
)
from pullback.ops.primitives.complex_numbers import conj_p, sgn_p
from pullback.ops.primitives.exponential import (
    exp2_p,
    expm1_p,
    log1p_p,
    log2_p,
    log10_p,
    rsqrt_p,
    xlogy_p,
)
from pullback.ops.primitives.rounding import (
    copysign_p,
    frac_p,
    heaviside_p,
    nan_to_num_p,
    nextafter_p,
    sign_p,
    trunc_p,
)
from pullback.ops.primitives.special import (
    digamma_p,
    erf_p,
    erfc_p,
    erfinv_p,
    gammainc_p,
    gammaincc_p,
    i0_p,
    lgamma_p,
    logit_p,
    polygamma_p,
    sinc_p,
)
from pullback.ops.primitives.trigonometric import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cosh_p,
    deg2rad_p,
    hypot_p,
    rad2deg_p,
    sinh_p,
    tan_p,
)

_real_sign_, _complex_sign_ = inplace(sign_p), inplace(sgn_p)


class ElementaryMethods:
    """The element-wise functions among `TensorMethods`."""

    __slots__ = ()

    # -- circular and hyperbolic --------------------------------------------------------------
    acos, asin, atan = trigonometric.acos, trigonometric.asin, trigonometric.atan
    acosh, asinh, atanh = trigonometric.acosh, trigonometric.asinh, trigonometric.atanh
    cosh, sinh = trigonometric.cosh, trigonometric.sinh
    atan2, hypot = trigonometric.atan2, trigonometric.hypot
    deg2rad, rad2deg = trigonometric.deg2rad, trigonometric.rad2deg

    acos_, asin_, atan_ = inplace(acos_p), inplace(asin_p), inplace(atan_p)
    acosh_, asinh_, atanh_ = inplace(acosh_p), inplace(asinh_p), inplace(atanh_p)
    cosh_, sinh_, tan_ = inplace(cosh_p), inplace(sinh_p), inplace(tan_p)
    atan2_, hypot_ = inplace(atan2_p), inplace(hypot_p)
    deg2rad_, rad2deg_ = inplace(deg2rad_p), inplace(rad2deg_p)

    # -- exponentials, logarithms, roots ------------------------------------------------------
    exp2, log2, log10, rsqrt = (
        exponential.exp2,
        exponential.log2,
        exponential.log10,
        exponential.rsqrt,
    )
    logaddexp, xlogy = exponential.logaddexp, exponential.xlogy

    exp2_, log2_, log10_, rsqrt_ = (
        inplace(exp2_p),
        inplace(log2_p),
        inplace(log10_p),
        inplace(rsqrt_p),
    )
    expm1_, log1p_ = inplace(expm1_p), inplace(log1p_p)
    xlogy_ = inplace(xlogy_p)

    # -- signs, steps, neighbours -------------------------------------------------------------
    copysign, heaviside, nextafter = (
        rounding.copysign,
        rounding.heaviside,
        rounding.nextafter,
    )
    signbit, frac, sgn = rounding.signbit, rounding.frac, pointwise.sign
    nan_to_num = pointwise.nan_to_num

    copysign_, heaviside_, nextafter_ = (
        inplace(copysign_p),
        inplace(heaviside_p),
        inplace(nextafter_p),
    )
    frac_, trunc_ = inplace(frac_p), inplace(trunc_p)

    def sign_(self: Any) -> Tensor:
        """Do `sign` in place and return this tensor."""
        return _complex_sign_(self) if self.dtype.is_complex else _real_sign_(self)

    sgn_ = sign_

    def nan_to_num_(
        self: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """Do `nan_to_num` in place and return this tensor."""
        settings = {"nan": nan, "posinf": posinf, "neginf": neginf}
        return apply_inplace(nan_to_num_p, self, (), settings)

    # -- arithmetic ---------------------------------------------------------------------------
    floor_divide, fmod, remainder = (
        arithmetic.floor_divide,
        arithmetic.fmod,
        arithmetic.remainder,
    )
    lerp = pointwise.lerp

    floor_divide_, fmod_, remainder_ = (
        inplace(floor_divide_p),
        inplace(fmod_p),
        inplace(remainder_p),
    )
    lerp_ = inplace(lerp_p)

    def clip_(self: Any, min: Any = None, max: Any = None) -> Tensor:
        """Do `clip` in place and return this tensor."""
        result: Tensor = self.clamp_(min, max)
        return result

    # -- special functions --------------------------------------------------------------------
    erf, erfc, erfinv, sinc = (
        special_primitives.erf,
        special_primitives.erfc,
        special_primitives.erfinv,
        special_primitives.sinc,
    )
    lgamma, digamma, i0 = (
        special_primitives.lgamma,
        special_primitives.digamma,
        special_primitives.i0,
    )
    igamma, igammac, logit = special.gammainc, special.gammaincc, special.logit

    erf_, erfc_, erfinv_, sinc_ = (
        inplace(erf_p),
        inplace(erfc_p),
        inplace(erfinv_p),
        inplace(sinc_p),
    )
    lgamma_, digamma_, i0_ = inplace(lgamma_p), inplace(digamma_p), inplace(i0_p)
    igamma_, igammac_ = inplace(gammainc_p), inplace(gammaincc_p)

    def polygamma(self: Any, n: int) -> Tensor:
        """Return the n-th derivative of digamma."""
        return special.polygamma(n, self)

    def polygamma_(self: Any, n: int) -> Tensor:
        """Do `polygamma` in place and return this tensor."""
        special.needs_order_of_derivative(n)
        return apply_inplace(polygamma_p, self, (), {"n": n})

    def logit_(self: Any, eps: float | None = None) -> Tensor:
        """Do `logit` in place and return this tensor."""
        return apply_inplace(logit_p, self, (), {"eps": eps})

    # -- logic and bits -----------------------------------------------------------------------
    logical_and, logical_or, logical_xor, logical_not = (
        comparison_primitives.logical_and,
        comparison_primitives.logical_or,
        comparison_primitives.logical_xor,
        comparison_primitives.logical_not,
    )
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (
        comparison_primitives.bitwise_and,
        comparison_primitives.bitwise_or,
        comparison_primitives.bitwise_xor,
        comparison_primitives.bitwise_invert,
    )
    bitwise_left_shift, bitwise_right_shift = (
        comparison_primitives.bitwise_left_shift,
        comparison_primitives.bitwise_right_shift,
    )

    logical_and_, logical_or_ = inplace(logical_and_p), inplace(logical_or_p)
    logical_xor_, logical_not_ = inplace(logical_xor_p), inplace(logical_not_p)
    bitwise_and_, bitwise_or_ = inplace(bitwise_and_p), inplace(bitwise_or_p)
    bitwise_xor_, bitwise_not_ = inplace(bitwise_xor_p), inplace(bitwise_invert_p)
    bitwise_left_shift_, bitwise_right_shift_ = (
        inplace(bitwise_left_shift_p),
        inplace(bitwise_right_shift_p),
    )


class ArithmeticMethods:
    """What `TensorMethods` has of PyTorch's many names."""

    __slots__ = ()

    # -- products that are added, bounds, powers ----------------------------------------------
    addcmul, addcdiv = pointwise.addcmul, pointwise.addcdiv
    clamp_min, clamp_max = pointwise.clamp_min, pointwise.clamp_max
    fmax, fmin, float_power = pointwise.fmax, pointwise.fmin, pointwise.float_power
    ldexp, logaddexp2 = pointwise.ldexp, pointwise.logaddexp2
    gcd, lcm, mvlgamma = arithmetic.gcd, arithmetic.lcm, special.mvlgamma
    hardshrink, prelu = pointwise.hardshrink, pointwise.prelu

    addcmul_, addcdiv_ = composed(addcmul), composed(addcdiv)
    clamp_min_, clamp_max_ = composed(clamp_min), composed(clamp_max)
    float_power_, ldexp_ = composed(float_power), composed(ldexp)
    gcd_, lcm_, mvlgamma_ = inplace(gcd_p), inplace(lcm_p), composed(mvlgamma)

    # -- comparisons in place: the dtype stays ------------------------------------------------
    eq_, ne_ = inplace(eq_p), inplace(ne_p)
    lt_, le_ = inplace(lt_p), inplace(le_p)
    gt_, ge_ = inplace(gt_p), inplace(ge_p)

    # -- other names --------------------------------------------------------------------------
    not_equal, less, less_equal = (
        comparison_primitives.not_equal,
        comparison_primitives.less,
        comparison_primitives.less_equal,
    )
    greater, greater_equal = comparison_primitives.greater, comparison_primitives.greater_equal
    not_equal_, less_, less_equal_, greater_, greater_equal_ = ne_, lt_, le_, gt_, ge_
    true_divide, true_divide_ = arithmetic.divide, inplace(div_p)
    subtract_, multiply_, divide_ = InplaceMethods.sub_, InplaceMethods.mul_, InplaceMethods.div_
    negative, negative_ = arithmetic.negative, InplaceMethods.neg_
    positive = arithmetic.positive
    absolute, absolute_ = rounding.absolute, InplaceMethods.abs_
    arccos, arcsin, arctan = trigonometric.acos, trigonometric.asin, trigonometric.atan
    arccosh, arcsinh, arctanh = trigonometric.acosh, trigonometric.asinh, trigonometric.atanh
    arctan2, arctan2_ = trigonometric.atan2, ElementaryMethods.atan2_
    arccos_, arcsin_, arctan_ = (
        ElementaryMethods.acos_,
        ElementaryMethods.asin_,
        ElementaryMethods.atan_,
    )
    arccosh_, arcsinh_, arctanh_ = (
        ElementaryMethods.acosh_,
        ElementaryMethods.asinh_,
        ElementaryMethods.atanh_,
    )
    fix, fix_ = rounding.trunc, ElementaryMethods.trunc_
    conj_physical = complex_numbers_primitives.conj

    def conj_physical_(self: Any) -> Tensor:
        """Write the complex conjugate into this tensor and return it."""
        return _conjugate(self) if self.dtype.is_complex else self


_conjugate = inplace(conj_p)
