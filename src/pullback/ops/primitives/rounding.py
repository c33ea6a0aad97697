"""Signs and rounding, element by element.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: abs and sign
have the derivative 0 at 0, the steps have 0 everywhere.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.ops.declare import Primitive, elementwise, needs_order, op_for, operation, standard
from pullback.ops.examples import documented
from pullback.ops.matrices import is_complex
from pullback.ops.primitives.complex_numbers import to_complex_p
from pullback.ops.primitives.cones import toward_p
from pullback.ops.samples import both, real, sample


# -- magnitude and sign ----------------------------------------------------------------------------
def _abs_rule(g: Any, x: Any, xp: Any) -> Any:
    # Of x alone, so that the result may be changed in place.
    return op_for(xp, toward_p)(g, x, xp.abs(x)) if is_complex(x) else g * xp.sign(x)


abs_p = elementwise(
    "abs",
    x=_abs_rule,
    holomorphic=False,
    domain=both(-2, 2, 0.0),
    result_dtype="real",
    methods="abs absolute",
    doc=documented(
        "Return the magnitude; the derivative at 0 is 0.",
        "pb.abs(pb.tensor([-2.0, 0.0, 3.0]))",
        "tensor([2., 0., 3.])",
    ),
    numpy="absolute fabs",
)
absolute = abs = abs_p.public


sign_p = elementwise(
    "sign",
    x=lambda g, xp: xp.zeros_like(g),
    domain=real(-2, 2, 0.0),
    doc="Return the sign; its derivative is 0 everywhere.",
)


signbit_p = elementwise(
    "signbit",
    standard("signbit", ordered=True),
    differentiable=False,
    floating=True,
    domain=real(-2, 2),
    result_dtype="bool",
    methods="signbit",
    doc=documented(
        "Return whether the sign is negative, that of -0.0 too.",
        "pb.signbit(pb.tensor([-2.0, -0.0, 0.0]))",
        "tensor([ True,  True, False])",
    ),
)
signbit = signbit_p.public


copysign_p = elementwise(
    "copysign",
    standard("copysign", ordered=True),
    x=lambda g, x, out, xp: g * (xp.sign(x) * xp.sign(out)),
    y=lambda g, xp: xp.zeros_like(g),
    floating=True,
    domain=real(-2, 2, 0.0),
    methods="copysign copysign_",
    doc=documented(
        "Return x with the sign of y; the derivatives are 0 where x is 0, and in y.",
        "pb.copysign(pb.tensor([1.0, 2.0]), pb.tensor([-0.0, 3.0]))",
        "tensor([-1.,  2.])",
    ),
)
copysign = copysign_p.public


nextafter_p = elementwise(
    "nextafter",
    standard("nextafter", ordered=True),
    x=lambda g: g,
    y=lambda g, xp: xp.zeros_like(g),
    floating=True,
    domain=real(-2, 2),
    methods="nextafter nextafter_",
    doc=documented(
        "Return the number next to x in the direction of y; the derivatives are 1 and 0.",
        "pb.nextafter(pb.tensor([1.0]), pb.tensor([2.0])) > 1",
        "tensor([ True])",
    ),
)
nextafter = nextafter_p.public


def _heaviside(xp: Any, x: Any, y: Any) -> Any:
    needs_order("heaviside", x, y)
    return xp.where(x == 0, y, xp.maximum(xp.sign(x), 0))


heaviside_p = elementwise(
    "heaviside",
    _heaviside,
    unchecked_forward=lambda xp, x, y: xp.heaviside(x, y),
    x=lambda g, xp: xp.zeros_like(g),
    y=lambda g, x, xp: xp.where(x == 0, g, 0),
    domain={"x": real(-2, 2, 0.0), "y": real(-2, 2)},
    methods="heaviside heaviside_",
    doc=documented(
        "Return 0 where x is negative, 1 where it is positive, y where it is 0.",
        "pb.heaviside(pb.tensor([-1.0, 0.0, 1.0]), 0.5)",
        "tensor([0.0000, 0.5000, 1.0000])",
    ),
)
heaviside = heaviside_p.public


# -- steps -----------------------------------------------------------------------------------------
def _steps(name: str, what: str, printed: str, methods: str = "", numpy: str = "") -> Primitive:
    return elementwise(
        name,
        standard(name, ordered=name != "round"),
        x=lambda g, xp: xp.zeros_like(g),
        domain=real(0.6, 0.9),
        methods=methods,
        numpy=numpy,
        doc=documented(
            f"Return x rounded {what}; the derivative is 0 everywhere.",
            f"pb.{name}(pb.tensor([-1.5, 0.5]))",
            printed,
        ),
    )


floor_p = _steps("floor", "down", "tensor([-2.,  0.])", "floor floor_")
floor = floor_p.public
ceil_p = _steps("ceil", "up", "tensor([-1.,  1.])", "ceil ceil_")
ceil = ceil_p.public
trunc_p = _steps("trunc", "towards 0", "tensor([-1.,  0.])", "trunc trunc_ fix fix_", "fix: x")
trunc = fix = trunc_p.public
round_p = _steps("round", "to the nearest integer, halves to the even one", "tensor([-2.,  0.])")


frac_p = elementwise(
    "frac",
    lambda xp, x: x - xp.trunc(x),
    x=lambda g: g,
    floating=True,
    domain=real(0.1, 0.9),
    reference=(lambda np, x: np.modf(x)[0]),
    methods="frac frac_",
    doc=documented(
        "Return x - trunc(x); the derivative is 1 everywhere.",
        "pb.frac(pb.tensor([-1.25, 0.5]))",
        "tensor([-0.2500,  0.5000])",
    ),
)
frac = frac_p.public


# -- repairs ---------------------------------------------------------------------------------------
def _finite(xp: Any, x: Any, *, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if "int" in str(x.dtype) or "bool" in str(x.dtype):
        return library_of(x).copy(x)
    if "complex" in str(x.dtype):
        settings = {"nan": nan, "posinf": posinf, "neginf": neginf}
        parts = [_finite(xp, part, **settings) for part in (xp.real(x), xp.imag(x))]
        real_part, imaginary = (op_for(xp, to_complex_p)(p, imaginary=p is parts[1]) for p in parts)
        return real_part + imaginary
    limits = xp.finfo(x.dtype)
    x = xp.where(xp.isnan(x), nan, x)
    x = xp.where(x == math.inf, float(limits.max) if posinf is None else posinf, x)
    return xp.where(x == -math.inf, float(limits.min) if neginf is None else neginf, x)


nan_to_num_p = operation(
    "nan_to_num",
    _finite,
    rules={"x": lambda g, x, xp: xp.where(xp.isfinite(x), g, 0)},
    samples=(
        sample((3, 4), nan=1.0),
        sample((), posinf=2.0, neginf=-2.0),
        sample((0, 3)),
    ),
    doc="Return x with numbers in place of NaN and infinities, which get no gradient.",
    batch="leading",
)
