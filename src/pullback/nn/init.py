"""Filling parameters in place: PyTorch's initializations, drawn by pullback's generators.

Fans are those of a weight of shape ``(outputs, inputs, *kernel)``:
``fan_in = inputs * prod(kernel)``. Recording is off meanwhile.
"""

from __future__ import annotations

import math
from typing import Any, Never

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.hints import absent
from pullback.ops.functions import creation, linear_algebra
from pullback.ops.functions.random import randn
from pullback.public_names import listed as _listed

__all__ = [
    *("calculate_gain", "constant_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_"),
    *("ones_", "orthogonal_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_"),
    "zeros_",
]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> Never:
    raise absent(__name__, name)


_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which initial weights make up for an activation.

    Parameters
    ----------
    nonlinearity : str
        ``"relu"``, ``"leaky_relu"``, ``"tanh"``, ``"selu"``, ``"linear"`` and the like.
    param : float, optional
        The negative slope of ``"leaky_relu"``, 0.01 by default.

    Examples
    --------
    >>> import pullback as pb
    >>> round(pb.nn.init.calculate_gain("relu") ** 2, 6)
    2.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        required = f"one of {', '.join([*_GAINS, 'leaky_relu'])} required"
        raise ArgumentError(compose("calculate_gain", required, repr(nonlinearity)))
    return _GAINS[nonlinearity]


def _fans(op: str, tensor: Tensor) -> tuple[int, int]:
    """Return the numbers of inputs of an output, and of outputs of an input."""
    if tensor.ndim < 2:
        required = "a tensor of at least 2 dimensions required"
        raise ShapeError(compose(op, required, str(tensor.ndim), ("tensor", tensor)))
    outputs, inputs, *kernel = tensor.shape
    return inputs * math.prod(kernel), outputs * math.prod(kernel)


def _fan(op: str, tensor: Tensor, mode: str) -> int:
    modes = ("fan_in", "fan_out")
    if mode not in modes:
        raise ArgumentError(compose(op, f"a mode of {', '.join(modes)} required", repr(mode)))
    return _fans(op, tensor)[modes.index(mode)]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor with numbers from the uniform distribution from a to b.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.nn.init.uniform_(pb.empty(1000), -1, 1)
    >>> bool(-1 <= w.min()), bool(w.max() <= 1)
    (True, True)
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor with numbers from the normal distribution.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.normal_(pb.empty(3), 2.0, std=0.0)
    tensor([2., 2., 2.])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill a tensor with numbers from the normal distribution cut off below a and above b.

    By the inverse of the distribution function.

    Examples
    --------
    >>> import pullback as pb
    >>> bool(abs(pb.nn.init.trunc_normal_(pb.empty(1000), b=0.5)).max() <= 2)
    True
    """
    low, high = (0.5 * (1 + math.erf((end - mean) / (std * math.sqrt(2)))) for end in (a, b))
    with no_grad():
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one number.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.constant_(pb.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.zeros_(pb.ones(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.ones_(pb.zeros(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity, or what of it fits.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.eye_(pb.empty((2, 2)))
    tensor([[1., 0.],
            [0., 1.]])
    """
    _needs_matrix("eye_", tensor, exactly=True)
    with no_grad():
        return tensor.copy_(creation.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def _needs_matrix(op: str, tensor: Tensor, *, exactly: bool = False) -> None:
    if tensor.ndim < 2 or (exactly and tensor.ndim != 2):
        required = f"a tensor of {'' if exactly else 'at least '}2 dimensions required"
        raise ShapeError(compose(op, required, str(tensor.ndim), ("tensor", tensor)))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a weight uniformly up to gain * sqrt(6 / (fan_in + fan_out)): Glorot, Bengio (2010).

    Examples
    --------
    >>> import pullback as pb
    >>> bool(abs(pb.nn.init.xavier_uniform_(pb.empty((3, 3)))).max() <= 1)
    True
    """
    bound = gain * math.sqrt(6.0 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a weight normally, of std gain * sqrt(2 / (fan_in + fan_out)): Glorot, Bengio (2010).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.xavier_normal_(pb.empty((3, 3)), gain=0.0).sum()
    tensor(0.)
    """
    std = gain * math.sqrt(2.0 / sum(_fans("xavier_normal_", tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill a weight uniformly up to gain * sqrt(3 / fan): He et al. (2015).

    Parameters
    ----------
    tensor : Tensor
    a : float
        The negative slope of ``"leaky_relu"``.
    mode : str
        ``"fan_in"`` keeps the variance forward, ``"fan_out"`` backward.
    nonlinearity : str
        As for `calculate_gain`.
    generator : Generator, optional

    Examples
    --------
    >>> import pullback as pb
    >>> bool(abs(pb.nn.init.kaiming_uniform_(pb.empty((3, 6)))).max() <= 1)
    True
    """
    fan = _fan("kaiming_uniform_", tensor, mode)
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / fan) if fan else 0.0
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill a weight normally, of std gain / sqrt(fan): He et al. (2015); see `kaiming_uniform_`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.init.kaiming_normal_(pb.empty((3, 6))).shape
    (3, 6)
    """
    fan = _fan("kaiming_normal_", tensor, mode)
    std = calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Make a weight, as a matrix of its first axis, (semi-)orthogonal: Saxe et al. (2013).

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.nn.init.orthogonal_(pb.empty((2, 2), dtype="float64"))
    >>> bool(abs(w @ w.mT - pb.eye(2)).max() < 1e-12)
    True
    """
    _needs_matrix("orthogonal_", tensor)
    rows = tensor.shape[0]
    columns = tensor.numel() // rows if rows else 0
    shape = (max(rows, columns), min(rows, columns))
    with no_grad():
        drawn = randn(shape, dtype=tensor.dtype, device=tensor.device, generator=generator)
        q, r = linear_algebra.qr(drawn)
        q = q * r.diagonal().sign()
        return tensor.copy_((q if rows >= columns else q.mT).reshape(tensor.shape) * gain)
