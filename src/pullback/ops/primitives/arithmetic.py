"""Arithmetic, element by element: sums, products, powers, bounds, and choosing between two.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once: a maximum or
minimum of equals shares the gradient by halves, and NaN passes it to both; clamp passes the
gradient at its bounds; pow(x, 0) has 0; the branch that `where` did not take gets exactly 0.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, Constants
from pullback.ops.declare import elementwise, needs_order, operation, standard
from pullback.ops.examples import documented
from pullback.ops.samples import both, integers, mask, real, sample

_np, _ZERO_OF = NUMPY.xp, Constants(0)


# -- arithmetic ------------------------------------------------------------------------------------
add_p = elementwise(
    "add",
    x=lambda g: g,
    y=lambda g: g,
    domain=both(-2, 2),
    doc="Return x + y.",
)


sub_p = elementwise(
    "sub subtract",
    x=lambda g: g,
    y=lambda g: -g,
    domain=both(-2, 2),
    doc=documented(
        "Return x - y.",
        "pb.subtract(pb.tensor([1.0, 2.0]), 10)",
        "tensor([-9., -8.])",
    ),
)
subtract = sub_p.public


mul_p = elementwise(
    "mul multiply",
    x=lambda g, y: g * y,
    y=lambda g, x: g * x,
    symmetric=True,
    domain=both(-2, 2),
    methods="mul mul_ multiply multiply_",
    doc=documented(
        "Return x * y.",
        "pb.multiply(pb.tensor([1.0, 2.0]), 10)",
        "tensor([10., 20.])",
    ),
)
multiply = mul = mul_p.public


div_p = elementwise(
    "div divide",
    x=lambda g, y: g / y,
    y=lambda g, x, y: -(g / y * x / y),
    floating=True,
    domain={"x": both(-2, 2), "y": both(0.5, 2)},
    methods="true_divide true_divide_",
    doc=documented(
        "Return x / y.",
        "pb.divide(pb.tensor([1.0, 2.0]), 4)",
        "tensor([0.2500, 0.5000])",
    ),
)
divide = true_divide = div_p.public


neg_p = elementwise(
    "neg negative",
    x=lambda g: -g,
    domain=both(-2, 2),
    methods="neg neg_ negative negative_",
    doc=documented("Return -x.", "pb.negative(pb.tensor([1.0, -2.0]))", "tensor([-1.,  2.])"),
)
negative = neg = neg_p.public


pos_p = elementwise(
    "pos positive",
    x=lambda g: g,
    domain=both(-2, 2),
    methods="positive",
    doc=documented("Return +x.", "pb.positive(pb.tensor([1.0, -2.0]))", "tensor([ 1., -2.])"),
)
positive = pos_p.public


floor_divide_p = elementwise(
    "floor_divide",
    standard("floor_divide", ordered=True),
    x=lambda g, xp: xp.zeros_like(g),
    y=lambda g, xp: xp.zeros_like(g),
    domain={"x": real(2.1, 2.9), "y": real(0.71, 0.72)},
    methods="floor_divide floor_divide_",
    doc=documented(
        "Return x / y rounded down; its derivative is 0 everywhere.",
        "pb.floor_divide(pb.tensor([7.0, -7.0]), 2)",
        "tensor([ 3., -4.])",
    ),
)
floor_divide = floor_divide_p.public


remainder_p = elementwise(
    "remainder",
    standard("remainder", ordered=True),
    x=lambda g: g,
    y=lambda g, x, y, xp: -(g * xp.floor_divide(x, y)),
    domain={"x": real(2.2, 2.8), "y": real(0.71, 0.72)},
    methods="remainder remainder_",
    doc=documented(
        "Return the remainder of x / y, with the sign of y.",
        "pb.remainder(pb.tensor([7.0, -7.0]), 3)",
        "tensor([1., 2.])",
    ),
)
remainder = remainder_p.public


# -- powers ----------------------------------------------------------------------------------------
def _inverse(power: Any) -> Any:
    return lambda x: power(_np.reciprocal(x))  # its powers end where those of x would not yet


def _cube(x: Any) -> Any:
    return _np.square(x) * x


def _fourth(x: Any) -> Any:
    square = _np.square(x)
    return _np.square(square, square if square.shape else None)


# NumPy multiplies for the exponents -1, 0, 1 and 2; for others it takes up to 300 times as long.
_POWERS: dict[float, Any] = {
    3: _cube,
    4: _fourth,
    5: lambda x: _fourth(x) * x,
    6: lambda x: _np.square(_cube(x)),
    7: lambda x: _np.square(_cube(x)) * x,
    8: lambda x: _np.square(_fourth(x)),
    -2: _inverse(_np.square),
    -3: _inverse(_cube),
    -4: _inverse(_fourth),
}


def _pow_numpy(x: Any, y: Any) -> Any:
    if (y.__class__ is int or y.__class__ is float) and x.itemsize > 2:
        by_products = _POWERS.get(y)
        if by_products is not None:
            return by_products(x)
    return x**y


def _pow(xp: Any, x: Any, y: Any) -> Any:
    if xp is _np and y.__class__ is _np.ndarray and not y.shape and y.dtype.kind == "f":
        return _pow_numpy(x, y.item())  # a number, in place for instance
    return x**y


def _pow_exponent(g: Any, x: Any, y: Any, out: Any, xp: Any) -> Any:
    """Return g * out * log(x), with 0 where x is 0 and y is not negative (its limit)."""
    if not hasattr(x, "dtype"):  # one of Python's numbers
        x = xp.asarray(x, dtype=out.dtype, device=out.device)
    at_zero = (x == 0) & _real_at_least_zero(y, xp)
    safe = xp.where(at_zero, xp.ones_like(x), x)
    return xp.where(at_zero, xp.zeros_like(out), g * out * xp.log(safe))


def _real_at_least_zero(y: Any, xp: Any) -> Any:
    return (xp.real(y) if "complex" in str(y.dtype) else y) >= 0


def _pow_base(g: Any, x: Any, y: Any, xp: Any) -> Any:
    """Return g * y * x**(y - 1), with 0 where y is 0."""
    if isinstance(y, (int, float, complex)):
        if y == 0:
            return xp.zeros_like(x) * g
        if xp is not _np or x.dtype.kind != "f":
            return g * (y * x ** (y - 1))
        return g * (y * (x if y == 2 else _pow_numpy(x, y - 1)))
    constant = y == 0
    power = xp.where(constant, xp.ones_like(y), y - 1)
    return xp.where(constant, xp.zeros_like(g), g * (y * x**power))


pow_p = elementwise(
    "pow",
    _pow,
    numpy_kernel=_pow_numpy,
    x=_pow_base,
    y=_pow_exponent,
    domain={"x": both(0.5, 2), "y": both(-2, 2)},
    reference="numpy.power",
    methods="pow pow_",
    doc=documented(
        "Return x ** y; the derivative at y = 0 is 0 for every x.",
        "pb.pow(pb.tensor([2.0, 3.0]), 2)",
        "tensor([4., 9.])",
    ),
    numpy="power",
)
pow = pow_p.public


def _toward_zero(xp: Any, x: Any, y: Any) -> Any:
    """Return x - trunc(x / y) * y, exactly: the remainder of the magnitudes is."""
    needs_order("fmod", x, y)
    rest = xp.remainder(xp.abs(x), xp.abs(y))
    return xp.where(x < 0, -rest, rest)


fmod_p = elementwise(
    "fmod",
    _toward_zero,
    unchecked_forward=lambda xp, x, y: xp.fmod(x, y),
    x=lambda g: g,
    y=lambda g, x, y, xp: -(g * xp.trunc(x / y)),
    domain={"x": real(2.2, 2.8), "y": real(0.71, 0.72)},
    methods="fmod fmod_",
    doc=documented(
        "Return the remainder of x / y, with the sign of x.",
        "pb.fmod(pb.tensor([7.0, -7.0]), 3)",
        "tensor([ 1., -1.])",
    ),
)
fmod = fmod_p.public


def _truncated(xp: Any, x: Any, y: Any) -> Any:
    needs_order("div", x, y)
    if "int" in str(x.dtype):  # exact, whatever the size
        return xp.floor_divide(x - _toward_zero(xp, x, y), y)
    return xp.trunc(x / y)


truncated_p = elementwise(
    "truncated",
    _truncated,
    x=lambda g, xp: xp.zeros_like(g),
    y=lambda g, xp: xp.zeros_like(g),
    domain={"x": real(2.2, 2.8), "y": real(0.71, 0.72)},
    reference=(lambda np, x, y: np.trunc(x / y)),
    doc="Return x / y rounded towards 0.",
)


# -- the larger and the smaller --------------------------------------------------------------------
def _halves(g: Any, lost: Any, not_won: Any, xp: Any) -> Any:
    """Return g where it won, half of it where it tied; comparing with NaN, neither is lost."""
    return (xp.where(lost, 0, g) + xp.where(not_won, 0, g)) / 2


maximum_p = elementwise(
    "maximum",
    standard("maximum", ordered=True),
    x=lambda g, x, y, xp: _halves(g, x < y, x <= y, xp),
    y=lambda g, x, y, xp: _halves(g, y < x, y <= x, xp),
    methods="maximum",
    doc=documented(
        "Return the larger of x and y; equals share the gradient by halves.",
        "pb.maximum(pb.tensor([1.0, 5.0]), 3)",
        "tensor([3., 5.])",
    ),
)
maximum = maximum_p.public


minimum_p = elementwise(
    "minimum",
    standard("minimum", ordered=True),
    x=lambda g, x, y, xp: _halves(g, x > y, x >= y, xp),
    y=lambda g, x, y, xp: _halves(g, y > x, y >= x, xp),
    methods="minimum",
    doc=documented(
        "Return the smaller of x and y; equals share the gradient by halves.",
        "pb.minimum(pb.tensor([1.0, 5.0]), 3)",
        "tensor([1., 3.])",
    ),
)
minimum = minimum_p.public


# -- choosing --------------------------------------------------------------------------------------
where_p = elementwise(
    "where",
    condition=None,
    x=lambda g, condition, xp: xp.where(condition, g, 0),
    y=lambda g, condition, xp: xp.where(condition, 0, g),
    inputs=("condition", "x", "y"),
    domain={"condition": mask(), "x": both(-2, 2), "y": both(-2, 2)},
    doc="Return x where condition holds, else y; the other branch gets a gradient of exactly 0.",
    moves=True,
)


# -- intervals -------------------------------------------------------------------------------------
def _clamp(xp: Any, x: Any, *, min: Any = None, max: Any = None) -> Any:
    needs_order("clamp", x)
    if min is not None:
        x = xp.where(x < min, xp.full_like(x, min), x)
    if max is not None:
        x = xp.where(x > max, xp.full_like(x, max), x)
    return x


def _clamp_numpy(x: Any, *, min: Any, max: Any) -> Any:
    if max is None:
        return _np.maximum(x, _ZERO_OF[x.dtype] if min.__class__ is int and min == 0 else min)
    return _np.minimum(x if min is None else _np.maximum(x, min), max)


def _clamp_rule(g: Any, x: Any, min: Any, max: Any, xp: Any) -> Any:
    if min is None or max is None:
        return xp.where(x >= min if max is None else x <= max, g, 0)
    return xp.where((x >= min) & (x <= max), g, 0)


clamp_p = operation(
    "clamp",
    _clamp,
    numpy_kernel=_clamp_numpy,
    rules={"x": _clamp_rule},
    domain=real(-2, 2, -0.5, 0.5),
    samples=(
        sample((3, 4), min=-0.5, max=0.5),
        sample((5,), min=-0.5),
        sample((), max=0.5),
        sample((0, 2), min=-0.5),
    ),
    reference="numpy.clip",
    doc="Return x limited to [min, max]; the gradient passes at the bounds.",
    batch="leading",
)


# -- between --------------------------------------------------------------------------------------
lerp_p = elementwise(
    "lerp",
    lambda xp, start, end, weight: start + weight * (end - start),
    start=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    weight=lambda g, start, end: g * (end - start),
    floating=True,
    domain=both(-2, 2),
    reference=(lambda start, end, weight: (1 - weight) * start + weight * end),
    doc="Return start + weight * (end - start).",
)


# -- whole numbers ---------------------------------------------------------------------------------
def _gcd(xp: Any, x: Any, y: Any) -> Any:
    """Return the greatest common divisors by Euclid's algorithm."""
    x, y = xp.broadcast_arrays(xp.abs(x), xp.abs(y))
    while bool(xp.any(y != 0)):
        done = y == 0
        rest = xp.remainder(x, xp.where(done, xp.ones_like(y), y))
        x, y = xp.where(done, x, y), xp.where(done, y, rest)
    return xp.asarray(x, copy=True)


gcd_p = elementwise(
    "gcd",
    _gcd,
    inputs=("x", "y"),
    differentiable=False,
    domain=integers(-6, 6),
    result_dtype="int64",
    methods="gcd gcd_",
    doc=documented(
        "Return the greatest common divisor of whole numbers, 0 of zeros.",
        "pb.gcd(pb.tensor([12, -9]), 6)",
        "tensor([6, 3])",
    ),
)
gcd = gcd_p.public


def _lcm(xp: Any, x: Any, y: Any) -> Any:
    divisor = _gcd(xp, x, y)
    return xp.abs(xp.floor_divide(x, xp.where(divisor == 0, xp.ones_like(divisor), divisor)) * y)


lcm_p = elementwise(
    "lcm",
    _lcm,
    inputs=("x", "y"),
    differentiable=False,
    domain=integers(-6, 6),
    result_dtype="int64",
    methods="lcm lcm_",
    doc=documented(
        "Return the least common multiple of whole numbers, 0 where one is 0.",
        "pb.lcm(pb.tensor([4, -9]), 6)",
        "tensor([12, 18])",
    ),
)
lcm = lcm_p.public
