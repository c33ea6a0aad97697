"""The methods of Tensor for arithmetic in PyTorch's words, its other names, and in-place twins."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.ops import (
    arithmetic,
    comparison,
    complex_,
    elementary,
    elementwise,
    gates,
    names,
    trigonometric,
)
from pullback.ops._declare import inplace
from pullback.ops._elementary_methods import ElementaryMethods as Elementary
from pullback.ops._inplace import InplaceMethods as Inplace
from pullback.ops._inplace import composed


class ArithmeticMethods:
    """What `TensorMethods` has of PyTorch's many names."""

    __slots__ = ()

    # -- products that are added, bounds, powers ----------------------------------------------
    addcmul, addcdiv = arithmetic.addcmul, arithmetic.addcdiv
    clamp_min, clamp_max = arithmetic.clamp_min, arithmetic.clamp_max
    fmax, fmin, float_power = arithmetic.fmax, arithmetic.fmin, arithmetic.float_power
    ldexp, logaddexp2 = arithmetic.ldexp, arithmetic.logaddexp2
    gcd, lcm, mvlgamma = arithmetic.gcd, arithmetic.lcm, names.mvlgamma
    hardshrink, prelu = gates.hardshrink, gates.prelu

    addcmul_, addcdiv_ = composed(addcmul), composed(addcdiv)
    clamp_min_, clamp_max_ = composed(clamp_min), composed(clamp_max)
    float_power_, ldexp_ = composed(float_power), composed(ldexp)
    gcd_, lcm_, mvlgamma_ = inplace(gcd), inplace(lcm), composed(mvlgamma)

    # -- comparisons in place: the dtype stays ------------------------------------------------
    eq_, ne_ = inplace(comparison.equal), inplace(comparison.not_equal)
    lt_, le_ = inplace(comparison.less), inplace(comparison.less_equal)
    gt_, ge_ = inplace(comparison.greater), inplace(comparison.greater_equal)

    # -- other names --------------------------------------------------------------------------
    not_equal, less, less_equal = comparison.not_equal, comparison.less, comparison.less_equal
    greater, greater_equal = comparison.greater, comparison.greater_equal
    not_equal_, less_, less_equal_, greater_, greater_equal_ = ne_, lt_, le_, gt_, ge_
    true_divide, true_divide_ = elementwise.divide, inplace(elementwise.divide)
    subtract_, multiply_, divide_ = Inplace.sub_, Inplace.mul_, Inplace.div_
    negative, negative_ = elementwise.negative, Inplace.neg_
    positive = elementwise.positive
    absolute, absolute_ = elementary.absolute, Inplace.abs_
    arccos, arcsin, arctan = trigonometric.acos, trigonometric.asin, trigonometric.atan
    arccosh, arcsinh, arctanh = trigonometric.acosh, trigonometric.asinh, trigonometric.atanh
    arctan2, arctan2_ = trigonometric.atan2, Elementary.atan2_
    arccos_, arcsin_, arctan_ = Elementary.acos_, Elementary.asin_, Elementary.atan_
    arccosh_, arcsinh_, arctanh_ = Elementary.acosh_, Elementary.asinh_, Elementary.atanh_
    fix, fix_ = elementary.trunc, Elementary.trunc_
    conj_physical = complex_.conj

    def conj_physical_(self: Any) -> Tensor:
        """Write the complex conjugate into this tensor and return it."""
        return _conjugate(self) if self.dtype.is_complex else self


_conjugate = inplace(complex_.conj)
