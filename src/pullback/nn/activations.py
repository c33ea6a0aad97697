"""Activation functions that are no methods of Tensor.

Made of other operations. At a kink the derivative is that of the side which PyTorch takes: where
a function is flat on one side, 0; `celu` and `selu` have that of their negative side at 0.
"""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.in_place import write_back
from pullback.ops.arguments import tensor_of
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import composition, needs_order, needs_tensor, wrapper_of
from pullback.ops.functions.joining import split
from pullback.ops.functions.pointwise import add, where
from pullback.ops.functions.reductions import softmax
from pullback.ops.primitives.activations import (
    elu_p,
    gelu_p,
    hardtanh_p,
    leaky_relu_p,
    normal_gelu_p,
    relu_p,
    sigmoid,
    silu_p,
    softplus_p,
)
from pullback.ops.primitives.arithmetic import divide, multiply, negative, subtract
from pullback.ops.primitives.comparison import greater, less_equal
from pullback.ops.primitives.rounding import absolute
from pullback.ops.primitives.trigonometric import tanh
from pullback.ops.samples import real, sample
from pullback.ops.torch_words import torch_words


# -- ramps -----------------------------------------------------------------------------------------
def relu(x: Any, inplace: bool = False) -> Tensor:
    """Return max(x, 0); the derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor
    inplace : bool
        Write into `x`, and return it: of all activations that have the argument.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([-1.0, 0.0, 2.0])
    >>> pb.nn.functional.relu(x, inplace=True) is x
    True
    >>> x
    tensor([0., 0., 2.])
    """
    if inplace:
        return write_back(relu, x)
    return relu_p.public(x)


@wrapper_of(silu_p)
def silu(x: Any, inplace: bool = False) -> Tensor:
    """Return x * sigmoid(x), also called swish.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.silu(pb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    if inplace:
        return write_back(silu, x)
    return silu_p.public(x)


@wrapper_of(softplus_p)
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta, a smooth relu.

    Parameters
    ----------
    x : Tensor
    beta : float
        How sharp the bend is.
    threshold : float
        Where beta * x is larger, x itself is returned, as in PyTorch.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.softplus(pb.tensor([-1000.0, 0.0, 30.0]))
    tensor([ 0.0000,  0.6931, 30.0000])
    """
    return softplus_p.public(x, beta=beta, threshold=threshold)


@wrapper_of(gelu_p)
def gelu(x: Any, approximate: str = "none") -> Tensor:
    """Return x times the probability that a standard normal variable is less than x.

    Parameters
    ----------
    x : Tensor
    approximate : str
        ``"none"``, which needs SciPy; or ``"tanh"`` for
        x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))).

    Raises
    ------
    ArgumentError
        If `approximate` is something else.
    MissingExtraError
        If SciPy is not installed.

    References
    ----------
    D. Hendrycks, K. Gimpel: Gaussian Error Linear Units. arXiv:1606.08415.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.gelu(pb.tensor([-1.0, 0.0, 1.0]), approximate="tanh")
    tensor([-0.1588,  0.0000,  0.8412])
    """
    if approximate not in ("none", "tanh"):
        required = "approximate 'none' or 'tanh' required"
        raise ArgumentError(compose("gelu", required, repr(approximate)))
    if approximate == "tanh":
        return gelu_p.public(x)
    needs_tensor("gelu", x)
    needs_order("gelu", x.data_array() if isinstance(x, Tensor) else x)
    return normal_gelu_p.public(x)


@wrapper_of(elu_p)
def elu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha * (exp(x) - 1); the derivative at 0 is alpha.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.elu(pb.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """
    if inplace:
        return write_back(elu, x, alpha)
    return elu_p.public(x, alpha=alpha)


@wrapper_of(leaky_relu_p)
def leaky_relu(x: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else negative_slope * x, which is also the slope at 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.leaky_relu(pb.tensor([-1.0, 0.0, 2.0]), 0.1)
    tensor([-0.1000,  0.0000,  2.0000])
    """
    if inplace:
        return write_back(leaky_relu, x, negative_slope)
    return leaky_relu_p.public(x, negative_slope=negative_slope)


@wrapper_of(hardtanh_p)
def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x limited to [min_val, max_val]; unlike that of clip, the slope at the bounds is 0.

    Raises
    ------
    ArgumentError
        If the bounds are in the wrong order.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.hardtanh(pb.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if inplace:
        return write_back(hardtanh, x, min_val, max_val)
    if min_val > max_val:
        came = f"{min_val} and {max_val}"
        raise ArgumentError(compose("hardtanh", "min_val of at most max_val required", came))
    return hardtanh_p.public(x, min_val=min_val, max_val=max_val)


@composition(
    sample((3, 4)),
    sample(()),
    sample((0, 3)),
    domain=real(-2, 8, 0.0, 6.0),
    reference=(lambda np, x: np.clip(x, 0, 6)),
)
def relu6(x: Any, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6); the derivatives at 0 and 6 are 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.relu6(pb.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.])
    """
    if inplace:
        return write_back(relu6, x)
    return hardtanh(x, 0.0, 6.0)


_ONE = (sample((3, 4)), sample(()), sample((0, 2)))


# -- gates -----------------------------------------------------------------------------------------
@composition(
    sample((3, 4), alpha=1.5),
    sample(()),
    domain=real(-2, 2, 0),
    reference=(
        lambda np, x, alpha=1: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))
    ),
)
def celu(x: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else alpha * (e ** (x / alpha) - 1).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.celu(pb.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    if inplace:
        return write_back(celu, x, alpha)
    if alpha == 0:
        raise ArgumentError(compose("celu", "alpha other than 0 required", str(alpha)))
    return multiply(elu(divide(x, alpha)), alpha)


_SCALE, _ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@composition(*_ONE, domain=real(-2, 2, 0))
def selu(x: Any, inplace: bool = False) -> Tensor:
    """Return scale * elu(x, alpha), with the two numbers that keep the variance of layers.

    Klambauer et al., Self-Normalizing Neural Networks (2017).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.selu(pb.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    if inplace:
        return write_back(selu, x)
    return multiply(elu(x, _ALPHA), _SCALE)


@composition(*_ONE, domain=real(-2, 2), reference=(lambda np, x: x * np.tanh(np.log1p(np.exp(x)))))
def mish(x: Any, inplace: bool = False) -> Tensor:
    """Return x * tanh(log(1 + e ** x)).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.mish(pb.tensor([0.0, 2.0]))
    tensor([0.0000, 1.9440])
    """
    if inplace:
        return write_back(mish, x)
    return multiply(x, tanh(softplus(x)))


@composition(*_ONE, domain=real(-2, 2, 0), reference=(lambda np, x: x / (1 + np.abs(x))))
def softsign(x: Any) -> Tensor:
    """Return x / (1 + abs(x)).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.softsign(pb.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return divide(x, add(absolute(x), 1))


@composition(*_ONE, domain=real(-2, 2), reference=(lambda np, x: x - np.tanh(x)))
def tanhshrink(x: Any) -> Tensor:
    """Return x - tanh(x).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.tanhshrink(pb.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return subtract(x, tanh(x))


@composition(
    sample((2, 3), dim=0),
    sample((), dim=-1),
    domain=real(-2, 2),
    reference=(
        lambda np, scipy, x, dim: scipy.special.softmax(-x, axis=dim) if x.ndim else np.ones(())
    ),
)
@torch_words()
def softmin(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return softmax(-x) along an axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.softmin(pb.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return softmax(negative(x), axis, dtype=dtype)


@composition(sample((2, 4)), sample((4, 0), dim=0), domain=real(-2, 2), scalars=False)
def glu(x: Any, dim: int = -1) -> Tensor:
    """Return a * sigmoid(b) of the two halves a, b of `x` along an axis.

    Raises
    ------
    ShapeError
        If the axis has no halves.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.glu(pb.tensor([2.0, 3.0, 0.0, 0.0]))
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
@composition(*_ONE, domain=real(-4, 4, -3, 3), reference=(lambda np, x: np.clip(x + 3, 0, 6) / 6))
def hardsigmoid(x: Any, inplace: bool = False) -> Tensor:
    """Return relu6(x + 3) / 6: straight from 0 at -3 to 1 at 3.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.hardsigmoid(pb.tensor([-5.0, 0.0, 3.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if inplace:
        return write_back(hardsigmoid, x)
    return divide(relu6(add(x, 3)), 6)


@composition(
    *_ONE, domain=real(-4, 4, -3, 3), reference=(lambda np, x: x * np.clip(x + 3, 0, 6) / 6)
)
def hardswish(x: Any, inplace: bool = False) -> Tensor:
    """Return x * hardsigmoid(x).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.hardswish(pb.tensor([-5.0, 0.0, 3.0]))
    tensor([-0.,  0.,  3.])
    """
    if inplace:
        return write_back(hardswish, x)
    return multiply(x, hardsigmoid(x))


@composition(
    sample((3, 4), lambd=0.7),
    sample(()),
    domain=real(-2, 2, -0.5, 0.5, -0.7, 0.7),
    reference=(lambda np, x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0)),
)
def softshrink(x: Any, lambd: float = 0.5) -> Tensor:
    """Return x brought nearer to 0 by lambd, 0 where it is as near.

    Raises
    ------
    ArgumentError
        If `lambd` is negative.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.softshrink(pb.tensor([-1.0, 0.3]))
    tensor([-0.5000,  0.0000])
    """
    x = tensor_of("softshrink", x)
    if lambd < 0:
        raise ArgumentError(compose("softshrink", "lambd of at least 0 required", str(lambd)))
    nearer = where(greater(x, 0), subtract(x, lambd), add(x, lambd))
    return where(less_equal(absolute(x.detach()), lambd), 0, nearer)  # NaN stays


@composition(
    sample((3, 4), threshold=0.5, value=3.0),
    sample((), threshold=0.0, value=-1.0),
    domain=real(-2, 2, 0, 0.5),
    reference=(lambda np, x, threshold, value: np.where(x > threshold, x, value)),
)
def threshold(x: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above the threshold, else the value.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.threshold(pb.tensor([-1.0, 2.0]), 0.0, 20.0)
    tensor([20.,  2.])
    """
    result = where(less_equal(x, threshold), value, x)  # NaN stays
    return tensor_of("threshold", x).copy_(result) if inplace else result
