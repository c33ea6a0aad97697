"""Activation functions, element by element.

Each rule multiplies the gradient ``g`` by the derivative. Edge values, decided once, are PyTorch's:
relu, relu6 and hardtanh have the derivative 0 where they begin to be flat, elu and leaky_relu that
of their negative side at 0. Of these, `gelu` alone needs SciPy, unless it is approximated.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import NUMPY, Constants
from pullback.ops.declare import elementwise, needs_order, op_for, operation
from pullback.ops.examples import documented
from pullback.ops.primitives.special import ndtr_p
from pullback.ops.samples import both, real, sample

_np = NUMPY.xp


# -- sigmoids --------------------------------------------------------------------------------------
# Where e ** x is to be divided by 1 + e ** x, which is 1 from here on: e ** x never overflows.
_ENOUGH = 40.0
_ENOUGH_FOR_HALF = 10.0


def _sigmoid_kernel(xp: Any, x: Any, enough: float = _ENOUGH) -> Any:
    e = xp.exp(xp.minimum(x, enough))
    e /= e + 1
    return e


def _sigmoid(xp: Any, x: Any) -> Any:
    dtype = str(x.dtype)
    if "complex" in dtype:
        return 1 / (1 + xp.exp(-x))
    return _sigmoid_kernel(xp, x, _ENOUGH_FOR_HALF if "float16" in dtype else _ENOUGH)


_ENOUGH_OF, _ONE_OF, _ZERO_OF = Constants(_ENOUGH), Constants(1), Constants(0)


def _sigmoid_numpy(x: Any) -> Any:
    e = _np.exp(_np.minimum(x, _ENOUGH_OF[x.dtype]))
    return e / (e + _ONE_OF[x.dtype])


sigmoid_p = elementwise(
    "sigmoid",
    _sigmoid,
    numpy_kernel=_sigmoid_numpy,
    x=lambda g, out: g * (out * (1 - out)),
    floating=True,
    domain=both(-3, 3),
    reference=(lambda np, x: 1 / (1 + np.exp(-x))),
    methods="sigmoid sigmoid_",
    doc=documented(
        "Return 1 / (1 + e ** -x), without overflow.",
        "pb.sigmoid(pb.tensor([0.0, 1000.0]))",
        "tensor([0.5000, 1.0000])",
    ),
)
sigmoid = expit = sigmoid_p.public


def _logsigmoid(xp: Any, x: Any) -> Any:
    needs_order("logsigmoid", x)
    return xp.minimum(x, 0) - xp.log1p(xp.exp(-xp.abs(x)))


logsigmoid_p = elementwise(
    "logsigmoid",
    _logsigmoid,
    x=lambda g, out, xp: -(g * xp.expm1(out)),
    floating=True,
    domain=real(-3, 3),
    reference=(lambda np, x: -np.log(1 + np.exp(-x))),
    doc=documented(
        "Return log(sigmoid(x)), without underflow.",
        "pb.nn.functional.logsigmoid(pb.tensor([0.0, -1000.0]))",
        "tensor([   -0.6931, -1000.0000])",
    ),
)
logsigmoid = logsigmoid_p.public


def _silu_slope(g: Any, x: Any, xp: Any) -> Any:
    s = op_for(xp, sigmoid_p)(x)
    return g * (s * ((1 - s) * x + 1))


silu_p = elementwise(
    "silu",
    lambda xp, x: _sigmoid(xp, x) * x,
    unchecked_forward=lambda xp, x: _sigmoid_kernel(xp, x) * x,
    x=_silu_slope,
    floating=True,
    domain=both(-3, 3),
    reference=(lambda np, x: x / (1 + np.exp(-x))),
    doc="Return x * sigmoid(x).",
)


# -- smooth ramps ----------------------------------------------------------------------------------
def _softplus(xp: Any, x: Any, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    needs_order("softplus", x)
    y = x * beta
    soft = (xp.log1p(xp.exp(-xp.abs(y))) + xp.maximum(y, 0)) / beta
    return xp.where(y > threshold, x, soft)


def _softplus_slope(g: Any, x: Any, beta: float, threshold: float, xp: Any) -> Any:
    y = x * beta
    return xp.where(y > threshold, g, g * op_for(xp, sigmoid_p)(y))


softplus_p = operation(
    "softplus",
    _softplus,
    rules={"x": _softplus_slope},
    floating=True,
    domain=real(-3, 3, 1.0),
    samples=(
        sample((3, 4)),
        sample((), beta=2.0),
        sample((0, 3)),
        sample((6,), beta=2.0, threshold=2.0),
    ),
    reference=(
        lambda np, x, beta=1.0, threshold=20.0: np.where(
            beta * x > threshold, x, np.log(1 + np.exp(beta * x)) / beta
        )
    ),
    doc="Return log(1 + exp(beta * x)) / beta.",
    batch="leading",
)


_ROOT_2_OVER_PI = math.sqrt(2 / math.pi)
_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


def _bend(x: Any, xp: Any) -> Any:
    """Return the tanh of the approximation of gelu."""
    return xp.tanh((x * x * 0.044715 + 1) * x * _ROOT_2_OVER_PI)


def _gelu(xp: Any, x: Any) -> Any:
    needs_order("gelu", x)
    return (_bend(x, xp) + 1) * x * 0.5


def _gelu_slope(g: Any, x: Any, xp: Any) -> Any:
    t = _bend(x, xp)
    inner = (x * x * (3 * 0.044715) + 1) * x * _ROOT_2_OVER_PI
    return g * ((t + 1 - (t * t - 1) * inner) * 0.5)


gelu_p = elementwise(
    "gelu",
    _gelu,
    x=_gelu_slope,
    floating=True,
    domain=real(-3, 3),
    samples=(
        sample((3, 4), approximate="tanh"),
        sample((3, 4)),
        sample(()),
        sample((0, 3), approximate="tanh"),
    ),
    doc="Return the approximation by tanh.",
)


# The normal distribution at -x is exp(-x ** 2 / 2) times a fraction of polynomials in x > 0, of
# these factors, the highest power's first; below, that is 1. Fitted for the least relative error,
# 4e-7, from 0 to 14.5, where the distribution is 0 in float32. No factor is negative: nothing
# cancels.
_ABOVE = (0.39889852, 2.78888597, 8.42985376, 11.61537386)
_BELOW = (6.9861765, 22.20689789, 35.394712, 23.230757)
_FAR = 100.0  # from here on the distribution at -x is 0
# SciPy is quicker for fewer elements; so many stay in the processor's cache.
_MANY, _AT_ONCE = 2000, 65536


def _normal_gelu(xp: Any, x: Any) -> Any:
    needs_order("gelu", x)
    return x * op_for(xp, ndtr_p)(x)


def _normal_gelu_numpy(x: Any) -> Any:
    if x.size < _MANY or x.dtype.char != "f":
        return _normal_gelu(_np, x)
    out = _np.empty(x.shape, x.dtype)
    source, target = x.reshape(-1), out.reshape(-1)
    for start in range(0, x.size, _AT_ONCE):
        place = slice(start, start + _AT_ONCE)
        _fill_with_gelu(target[place], source[place])
    return out


def _fill_with_gelu(out: Any, x: Any) -> None:
    """Fill with max(x, 0) less |x| times the normal distribution at -|x|, of float32."""
    size = _np.abs(x)
    _np.minimum(size, _FAR, out=size)
    above, below = size * _ABOVE[0], size + _BELOW[0]
    above += _ABOVE[1]
    for factor in _ABOVE[2:]:
        above *= size
        above += factor
    for factor in _BELOW[1:]:
        below *= size
        below += factor
    above /= below
    _np.multiply(size, size, below)
    below *= -0.5
    _np.exp(below, below)
    above *= below
    above *= size
    _np.maximum(x, 0, out=out)
    out -= above
    if not x.min() > -math.inf:  # infinity times 0, as elsewhere
        out[x == -math.inf] = math.nan


def _normal_gelu_slope(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return g times the normal distribution and x times its density.

    The distribution is the result over x, where no number is as small as not to have a square.
    """
    square = x * x
    if xp is _np and x.shape and x.size and x.dtype.itemsize > 2 and square.min() > 0:
        square *= -0.5
        _np.exp(square, square)
        square *= _DENSITY_AT_0
        square *= x
        square += out / x
        return g * square
    return g * (op_for(xp, ndtr_p)(x) + x * (xp.exp(square * -0.5) * _DENSITY_AT_0))


normal_gelu_p = elementwise(
    "normal_gelu",
    _normal_gelu,
    numpy_kernel=_normal_gelu_numpy,
    x=_normal_gelu_slope,
    floating=True,
    domain=real(-3, 3),
    reference=(lambda math, x: x * math.erfc(-x / math.sqrt(2)) / 2),
    doc="Return x times the normal distribution at x.",
)


# -- ramps with a kink -----------------------------------------------------------------------------
def _relu(xp: Any, x: Any) -> Any:
    needs_order("relu", x)
    return xp.maximum(x, 0)


relu_p = elementwise(
    "relu",
    _relu,
    numpy_kernel=lambda x: _np.maximum(x, _ZERO_OF[x.dtype]),
    x=lambda g, out, xp: xp.where(out <= 0, 0, g),
    domain=real(-2, 2, 0.0),
    reference=(lambda np, x: (x + np.abs(x)) / 2),
    methods="relu relu_",
    doc=documented(
        "Return max(x, 0); the derivative at 0 is 0.",
        "pb.relu(pb.tensor([-1.0, 0.0, 2.0]))",
        "tensor([0., 0., 2.])",
    ),
)
relu = relu_p.public


def _elu(xp: Any, x: Any, *, alpha: float = 1.0) -> Any:
    needs_order("elu", x)
    return xp.expm1(xp.minimum(x, 0)) * alpha + xp.maximum(x, 0)


def _elu_slope(g: Any, x: Any, alpha: float, xp: Any) -> Any:
    if alpha == 1:
        return g * xp.exp(xp.minimum(x, 0))
    rising = x > 0
    return xp.where(rising, g, g * (xp.exp(xp.where(rising, 0, x)) * alpha))


elu_p = operation(
    "elu",
    _elu,
    rules={"x": _elu_slope},
    floating=True,
    domain=real(-2, 2, 0.0),
    samples=(sample((3, 4)), sample((), alpha=2.0), sample((0, 3)), sample((6,), alpha=0.5)),
    reference=(lambda np, x, alpha=1.0: np.where(x > 0, x, alpha * (np.exp(x) - 1))),
    doc="Return x where it is positive, else alpha * (exp(x) - 1).",
    batch="leading",
)


def _leaky_relu(xp: Any, x: Any, *, negative_slope: float = 0.01) -> Any:
    needs_order("leaky_relu", x)
    if 0 < negative_slope <= 1:  # several times as fast
        return xp.maximum(x, x * negative_slope)
    return xp.where(x > 0, x, xp.minimum(x, 0) * negative_slope)


leaky_relu_p = operation(
    "leaky_relu",
    _leaky_relu,
    rules={"x": lambda g, x, negative_slope, xp: xp.where(x > 0, g, g * negative_slope)},
    floating=True,
    domain=real(-2, 2, 0.0),
    samples=(
        sample((3, 4)),
        sample((), negative_slope=2.0),
        sample((0, 3)),
        sample((6,), negative_slope=-0.5),
    ),
    reference=(lambda np, x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x)),
    doc="Return x where it is positive, else negative_slope * x.",
    batch="leading",
)


def _hardtanh(xp: Any, x: Any, *, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    needs_order("hardtanh", x)
    return xp.minimum(xp.maximum(x, min_val), max_val)


def _hardtanh_slope(g: Any, x: Any, min_val: float, max_val: float, xp: Any) -> Any:
    return xp.where((x <= min_val) | (x >= max_val), 0, g)


hardtanh_p = operation(
    "hardtanh",
    _hardtanh,
    unchecked_forward=lambda xp, x, *, min_val, max_val: xp.clip(x, min_val, max_val),
    rules={"x": _hardtanh_slope},
    floating=True,
    domain=real(-2, 2, -1.0, 1.0, 0.5),
    samples=(sample((3, 4)), sample((), max_val=0.5), sample((0, 3))),
    reference=(lambda np, x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val)),
    doc="Return x limited to [min_val, max_val].",
    batch="leading",
)
