"""The methods of Tensor that work element by element with parameters of their own."""

from __future__ import annotations

from typing import Any

from pullback.core.function.inplace import apply_inplace
from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, compose
from pullback.ops.declare import inplace
from pullback.ops.functions import special
from pullback.ops.methods.inplace import InplaceMethods
from pullback.ops.primitives.complex_numbers import conj_p, sgn_p
from pullback.ops.primitives.gamma_functions import polygamma_p
from pullback.ops.primitives.rounding import abs_p, nan_to_num_p, sign_p
from pullback.ops.primitives.special import logit_p

_magnitude_ = inplace(abs_p)
_real_sign_, _complex_sign_, _conjugate = inplace(sign_p), inplace(sgn_p), inplace(conj_p)


class ElementaryMethods:
    """The element-wise functions among `TensorMethods`."""

    __slots__ = ()

    def abs_(self: Any) -> Tensor:
        """Do `abs` in place and return this tensor, which holds real numbers."""
        if self.dtype.is_complex:
            required = "real numbers required, since magnitudes are real"
            came, hint = self.dtype.name, "use abs, which is not in place"
            raise DTypeError(compose("abs_", required, came, ("x", self), hint=hint))
        return _magnitude_(self)

    absolute_ = abs_

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

    def clip_(self: Any, min: Any = None, max: Any = None) -> Tensor:
        """Do `clip` in place and return this tensor."""
        result: Tensor = self.clamp_(min, max)
        return result

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

    subtract_, divide_ = InplaceMethods.sub_, InplaceMethods.div_

    def conj_physical_(self: Any) -> Tensor:
        """Write the complex conjugate into this tensor and return it."""
        return _conjugate(self) if self.dtype.is_complex else self
