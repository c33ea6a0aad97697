"""More of what stands between the layers of a network: gates, shrinkage, soft and hard steps.

Made of other operations. At a kink the derivative is that of the side which PyTorch takes: where
a function is flat on one side, 0; `celu` and `selu` have that of their negative side at 0.
"""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import composition, real, sample
from pullback.ops.activations import elu, relu6, sigmoid, softplus
from pullback.ops.comparison import greater
from pullback.ops.elementary import absolute
from pullback.ops.elementwise import add, divide, multiply, negative, subtract, where
from pullback.ops.exponential_sums import softmax
from pullback.ops.joining import split
from pullback.ops.shape import reshape, tensor_of
from pullback.ops.trigonometric import tanh

__all__ = [
    "celu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "mish",
    "prelu",
    "selu",
    "softmin",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
]

_ONE = (sample((3, 4)), sample(()), sample((0, 2)))


# -- soft ------------------------------------------------------------------------------------------
@composition(sample((3, 4), alpha=1.5), sample(()), domain=real(-2, 2, 0))
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, else alpha * (e ** (x / alpha) - 1).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.celu(pb.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    if alpha == 0:
        raise ArgumentError(compose("celu", "alpha other than 0 required", str(alpha)))
    return multiply(elu(divide(x, alpha)), alpha)


_SCALE, _ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@composition(*_ONE, domain=real(-2, 2, 0))
def selu(x: Any) -> Tensor:
    """Return scale * elu(x, alpha), with the two numbers that keep the variance of layers.

    Klambauer et al., Self-Normalizing Neural Networks (2017).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.selu(pb.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return multiply(elu(x, _ALPHA), _SCALE)


@composition(*_ONE, domain=real(-2, 2))
def mish(x: Any) -> Tensor:
    """Return x * tanh(log(1 + e ** x)).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mish(pb.tensor([0.0, 2.0]))
    tensor([0.0000, 1.9440])
    """
    return multiply(x, tanh(softplus(x)))


@composition(*_ONE, domain=real(-2, 2, 0))
def softsign(x: Any) -> Tensor:
    """Return x / (1 + abs(x)).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softsign(pb.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return divide(x, add(absolute(x), 1))


@composition(*_ONE, domain=real(-2, 2))
def tanhshrink(x: Any) -> Tensor:
    """Return x - tanh(x).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tanhshrink(pb.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return subtract(x, tanh(x))


@composition(sample((2, 3), dim=0), sample((), dim=-1), domain=real(-2, 2))
def softmin(
    x: Any, dim: int | None = None, *, axis: int | None = None, dtype: Any = None
) -> Tensor:
    """Return softmax(-x) along an axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softmin(pb.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(negative(x), dim, axis=axis, dtype=dtype)


@composition(sample((2, 4)), sample((4, 0), dim=0), domain=real(-2, 2))
def glu(x: Any, dim: int = -1) -> Tensor:
    """Return a * sigmoid(b) of the two halves a, b of `x` along an axis.

    Raises
    ------
    ShapeError
        If the axis has no halves.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.glu(pb.tensor([2.0, 3.0, 0.0, 0.0]))
    tensor([1.0000, 1.5000])
    """
    x = tensor_of("glu", x)
    axis = normalize_axis("glu", dim, len(x.shape))
    length = x.shape[axis] if x.shape else 1
    if length % 2:
        required = f"an even length of axis {axis} required"
        raise ShapeError(compose("glu", required, str(length), ("x", x)))
    a, b = split(x, (length // 2, length // 2), dim=axis)
    return multiply(a, sigmoid(b))


# -- hard ------------------------------------------------------------------------------------------
@composition(*_ONE, domain=real(-4, 4, -3, 3))
def hardsigmoid(x: Any) -> Tensor:
    """Return relu6(x + 3) / 6: straight from 0 at -3 to 1 at 3.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hardsigmoid(pb.tensor([-5.0, 0.0, 3.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return divide(relu6(add(x, 3)), 6)


@composition(*_ONE, domain=real(-4, 4, -3, 3))
def hardswish(x: Any) -> Tensor:
    """Return x * hardsigmoid(x).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hardswish(pb.tensor([-5.0, 0.0, 3.0]))
    tensor([-0.,  0.,  3.])
    """
    return multiply(x, hardsigmoid(x))


@composition(sample((3, 4), lambd=0.7), sample(()), domain=real(-2, 2, -0.5, 0.5, -0.7, 0.7))
def hardshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """Return x where abs(x) > lambd, else 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hardshrink(pb.tensor([-1.0, 0.3]))
    tensor([-1.,  0.])
    """
    x = tensor_of("hardshrink", x)
    return where(greater(absolute(x.detach()), lambd), x, 0)


@composition(sample((3, 4), lambd=0.7), sample(()), domain=real(-2, 2, -0.5, 0.5, -0.7, 0.7))
def softshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """Return x brought nearer to 0 by lambd, 0 where it is as near.

    Raises
    ------
    ArgumentError
        If `lambd` is negative.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softshrink(pb.tensor([-1.0, 0.3]))
    tensor([-0.5000,  0.0000])
    """
    x = tensor_of("softshrink", x)
    if lambd < 0:
        raise ArgumentError(compose("softshrink", "lambd of at least 0 required", str(lambd)))
    nearer = where(greater(x, 0), subtract(x, lambd), add(x, lambd))
    return where(greater(absolute(x.detach()), lambd), nearer, 0)


@composition(
    sample((3, 4), threshold=0.5, value=3.0),
    sample((), threshold=0.0, value=-1.0),
    domain=real(-2, 2, 0, 0.5),
)
def threshold(x: Any, threshold: float, value: float) -> Tensor:
    """Return x where it is above the threshold, else the value.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.threshold(pb.tensor([-1.0, 2.0]), 0.0, 20.0)
    tensor([20.,  2.])
    """
    return where(greater(x, threshold), x, value)


@composition(
    sample((2, 3, 2), (3,)),
    sample((2, 3), (1,)),
    sample((), ()),
    domain={"x": real(-2, 2, 0), "weight": real(-2, 2)},
)
def prelu(x: Any, weight: Any) -> Tensor:
    """Return x where it is positive, else weight * x.

    Parameters
    ----------
    x : Tensor
    weight : Tensor
        One number, or one for each channel: each place along axis 1.

    Raises
    ------
    ShapeError
        If there are not as many.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prelu(pb.tensor([-1.0, 2.0]), pb.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    x, weight = tensor_of("prelu", x), tensor_of("prelu", weight, "weight")
    count = weight.numel()
    if count == 1:
        slope = reshape(weight, ())
    elif len(weight.shape) != 1 or x.shape[1:2] != (count,):
        required = "one weight or one a channel required"
        came = f"shape {weight.shape}"
        raise ShapeError(compose("prelu", required, came, ("x", x), ("weight", weight)))
    else:
        slope = reshape(weight, (count, *(1,) * (len(x.shape) - 2)))
    return where(greater(x, 0), x, multiply(x, slope))
