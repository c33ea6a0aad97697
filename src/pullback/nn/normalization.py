"""Normalization over a layer, a batch or groups.

All are a standardization over some axes, then a scale and a shift. Running statistics are
updated in place, outside the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback.arrays import library_of
from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops.arguments import array_of, tensor_of
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions.manipulation import narrow
from pullback.ops.functions.pointwise import add
from pullback.ops.functions.statistics import near_one
from pullback.ops.primitives.arithmetic import divide, multiply, pow
from pullback.ops.primitives.arranging import pad_constant_p
from pullback.ops.primitives.exponential import sqrt, square
from pullback.ops.primitives.normalization import standardize_p
from pullback.ops.primitives.reductions import mean, var
from pullback.ops.primitives.shape import reshape_p
from pullback.ops.samples import real, sample


# -- arguments -------------------------------------------------------------------------------------
def _needs_vectors(op: str, input: Any, count: int, **vectors: Any) -> None:
    """Raise where a vector is not None and has not one number a channel."""
    for name, x in vectors.items():
        if x is None:
            continue
        needs_tensor(op, x, name)
        if tuple(x.shape) != (count,):
            required = f"a {name} of shape ({count},), one number a channel, required"
            came = str(tuple(x.shape))
            raise ShapeError(compose(op, required, came, ("input", input), (name, x)))


def _needs_channels(op: str, input: Any, least: int = 2) -> int:
    """Return the number of channels, or raise where the input has no axis for them."""
    needs_tensor(op, input, "input")
    if len(input.shape) < least:
        required = f"an input of shape (N, C, ...), at least {least} dimensions, required"
        raise ShapeError(compose(op, required, str(len(input.shape)), ("input", input)))
    return int(input.shape[1])


def _needs_eps(op: str, eps: Any) -> None:
    if not eps >= 0:
        raise ArgumentError(compose(op, "an eps of 0 or more required", repr(eps)))


def _affine(x: Tensor, weight: Any, bias: Any) -> Tensor:
    """Return x times a weight plus a bias, each with one number a channel."""
    shape = (-1, *(1,) * (len(x.shape) - 2))
    if weight is not None:
        x = x * reshape_p.public(weight, shape=(weight.shape[0], *shape[1:]))
    return x if bias is None else x + reshape_p.public(bias, shape=(bias.shape[0], *shape[1:]))


def _standardized(x: Any, axes: tuple[int, ...], eps: float) -> Tensor:
    """Return x less its mean, over its standard deviation."""
    return standardize_p.public(x if eps else near_one(x, axes), axes=axes, eps=eps)


# -- layers ----------------------------------------------------------------------------------------
def _over(
    op: str, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None
) -> tuple[int, ...]:
    """Return the last axes, those of `normalized_shape`."""
    if input.__class__ not in TENSOR_CLASSES:
        needs_tensor(op, input, "input")
    shape = normalized_shape
    if shape.__class__ is not tuple:
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    came = tuple(input.shape)
    ndim, n = len(came), len(shape)
    if not n or n > ndim or came[ndim - n :] != shape:
        required = f"an input whose shape ends with {shape} required"
        raise ShapeError(compose(op, required, str(came), ("input", input)))
    if weight is not None:
        _needs_shape(op, "weight", weight, shape)
    if bias is not None:
        _needs_shape(op, "bias", bias, shape)
    return tuple(range(ndim - n, ndim))


def _needs_shape(op: str, name: str, x: Any, shape: tuple[int, ...]) -> None:
    needs_tensor(op, x, name)
    if tuple(x.shape) != shape:
        required = f"a {name} of shape {shape} required"
        raise ShapeError(compose(op, required, str(tuple(x.shape)), (name, x)))


@composition(
    sample((2, 3), (3,), (3,), normalized_shape=3),
    sample((2, 2, 3), (2, 3), (2, 3), normalized_shape=(2, 3), eps=0.1),
    sample((0, 2), (2,), (2,), normalized_shape=(2,)),
    domain=real(-2, 2),
    call=lambda f, input, weight, bias, *, normalized_shape, eps=1e-5: f(
        input, normalized_shape, weight, bias, eps
    ),
    scalars=False,
)
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes.

    Parameters
    ----------
    input : Tensor of shape ``(..., *normalized_shape)``
    normalized_shape : int or tuple of int
        The lengths of the axes that mean and variance are taken over.
    weight, bias : Tensor of shape normalized_shape, optional
    eps : float
        Keeps the root from 0.

    Raises
    ------
    ShapeError
        If the input does not end with `normalized_shape`, or weight or bias have another shape.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.layer_norm(pb.tensor([[1.0, 3.0], [0.0, 100.0]]), 2)
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    if not eps >= 0:
        _needs_eps("layer_norm", eps)
    axes = _over("layer_norm", input, normalized_shape, weight, bias)
    x = _standardized(input, axes, eps)
    if weight is not None:
        x = x * weight
    return x if bias is None else x + bias


@composition(
    sample((2, 3), (3,), normalized_shape=3),
    sample((2, 1, 2), (1, 2), normalized_shape=(1, 2), eps=0.1),
    sample((0, 2), (2,), normalized_shape=(2,)),
    domain=real(0.5, 2),
    call=lambda f, input, weight, *, normalized_shape, eps=None: f(
        input, normalized_shape, weight, eps
    ),
    scalars=False,
)
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """Return ``x / sqrt(mean(x ** 2) + eps) * weight`` over the last axes.

    Parameters
    ----------
    input, normalized_shape, weight
        As for `layer_norm`.
    eps : float, optional
        By default the distance of 1 to the next number of the dtype.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rms_norm(pb.tensor([3.0, 4.0, 0.0, 0.0]), 4)
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """
    axes = _over("rms_norm", input, normalized_shape, weight=weight)
    if eps == 0:
        input = near_one(input, axes)
    power = mean(square(input), axis=axes, keepdims=True)
    if eps is None:
        array = array_of(input)
        eps = float(library_of(array).xp.finfo(array.dtype).eps)
    _needs_eps("rms_norm", eps)
    x: Tensor = input / sqrt(power + eps)
    return x if weight is None else x * weight


# -- batches ---------------------------------------------------------------------------------------
@no_grad
def _follow(
    op: str, input: Tensor, axes: tuple[int, ...], momentum: float, means: Any, variances: Any
) -> None:
    """Move running statistics towards those of the input, averaged over a batch left over."""
    rest = () if 0 in axes else (0,)
    input = input.detach()  # in forward mode, too, they are no result
    for name, running in (("running_mean", means), ("running_var", variances)):
        if running is None:
            continue
        if not isinstance(running, Tensor):
            came = type(running).__name__
            raise ArgumentTypeError(compose(op, f"a Tensor as '{name}' required", came))
        now = mean(input, axis=axes) if running is means else var(input, axis=axes, correction=1)
        now = mean(now, axis=rest)
        running.copy_(running * (1 - momentum) + now * momentum)


def _norm_of_batch(
    f: Callable[..., Tensor],
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any,
    bias: Any,
    **more: Any,
) -> Tensor:
    """Call `batch_norm` for the tests: with statistics of its own where it changes them."""
    if more.get("training"):
        mean, variance = (
            x.detach().clone() if isinstance(x, Tensor) else x for x in (mean, variance)
        )
    return f(x, mean, variance, weight, bias, **more)


@composition(
    sample((3, 2), (2,), (2,), (2,), (2,), training=True),
    sample((2, 1, 2), (1,), (1,), (1,), (1,), eps=0.1),
    sample((2, 1, 2, 1), (1,), (1,), (1,), (1,), training=True, eps=0.1),
    sample((0, 2), (2,), (2,), (2,), (2,)),
    domain=dict.fromkeys(("x", "mean", "variance", "weight", "bias"), real(0.5, 2)),
    constants=("mean", "variance"),
    call=_norm_of_batch,
    scalars=False,
)
def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + eps) * weight + bias``, one mean a channel.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...)
    running_mean, running_var : Tensor of shape (C,), or None
        In training they are moved towards the mean and the (unbiased) variance of the batch, in
        place and outside the graph; else they are what is used.
    weight, bias : Tensor of shape (C,), optional
    training : bool
        Whether mean and variance are those of the batch.
    momentum : float
        The share of the batch in the running statistics.
    eps : float
        Keeps the root from 0.

    Raises
    ------
    ShapeError
        If shapes do not fit, or there is one number a channel in training.
    ArgumentError
        If there are no statistics to use.

    Examples
    --------
    >>> import pullback as pb
    >>> mean, variance = pb.zeros(1), pb.ones(1)
    >>> pb.batch_norm(pb.tensor([[1.0], [3.0]]), mean, variance, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean
    tensor([0.2000])
    """
    op = "batch_norm"
    count = _needs_channels(op, input)
    _needs_eps(op, eps)
    statistics = {"running_mean": running_mean, "running_var": running_var}
    _needs_vectors(op, input, count, **statistics, weight=weight, bias=bias)
    if training:
        axes = (0, *range(2, len(input.shape)))
        if math.prod(input.shape[i] for i in axes) < 2:
            required = "more than one number a channel required in training"
            raise ShapeError(compose(op, required, str(tuple(input.shape)), ("input", input)))
        _follow(op, input, axes, momentum, running_mean, running_var)
        return _affine(_standardized(input, axes, eps), weight, bias)
    if running_mean is None or running_var is None:
        required = "running_mean and running_var required, where it is not in training"
        raise ArgumentError(compose(op, required, "None", ("input", input)))
    factor = 1 / sqrt(running_var + eps)
    factor = factor if weight is None else factor * weight
    return _affine(_affine(input, None, -running_mean), factor, bias)


@composition(
    sample((2, 2, 2), (2,), (2,)),
    sample((1, 2, 1, 3), (2,), (2,), eps=0.1),
    sample((0, 1, 2), (1,), (1,)),
    domain=real(-2, 2),
    call=lambda f, input, weight, bias, *, eps=1e-5: f(input, None, None, weight, bias, eps=eps),
    scalars=False,
)
def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return each channel of each image less its mean, over its standard deviation.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...)
    running_mean, running_var, weight, bias, momentum, eps
        As for `batch_norm`.
    use_input_stats : bool
        Whether mean and variance are those of each image, and not the running ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.instance_norm(pb.tensor([[[1.0, 3.0], [0.0, 100.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    op = "instance_norm"
    if not use_input_stats:
        parameters = (running_mean, running_var, weight, bias)
        return batch_norm(input, *parameters, training=False, eps=eps)
    count = _needs_channels(op, input, least=3)
    _needs_eps(op, eps)
    statistics = {"running_mean": running_mean, "running_var": running_var}
    _needs_vectors(op, input, count, **statistics, weight=weight, bias=bias)
    axes = tuple(range(2, len(input.shape)))
    _follow(op, input, axes, momentum, running_mean, running_var)
    return _affine(_standardized(input, axes, eps), weight, bias)


@composition(
    sample((2, 4, 1), (4,), (4,), num_groups=2),
    sample((1, 2, 2), (2,), (2,), num_groups=1, eps=0.1),
    sample((0, 2), (2,), (2,), num_groups=2),
    domain=real(-2, 2),
    call=lambda f, input, weight, bias, *, num_groups, eps=1e-5: f(
        input, num_groups, weight, bias, eps
    ),
    scalars=False,
)
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Return groups of channels of each image less their mean, over their standard deviation.

    Parameters
    ----------
    input : Tensor of shape (N, C, ...)
    num_groups : int
        Divides C.
    weight, bias : Tensor of shape (C,), optional
    eps : float
        Keeps the root from 0.

    Raises
    ------
    ShapeError
        If shapes do not fit, or the groups do not divide the channels.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.group_norm(pb.tensor([[1.0, 3.0, 0.0, 100.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    op = "group_norm"
    count = _needs_channels(op, input)
    _needs_eps(op, eps)
    _needs_vectors(op, input, count, weight=weight, bias=bias)
    if num_groups < 1 or count % num_groups:
        required = f"groups that divide {count} channels required"
        raise ShapeError(compose(op, required, str(num_groups), ("input", input)))
    rest = math.prod(input.shape[1:]) // num_groups
    rows = reshape_p.public(input, shape=(input.shape[0], num_groups, rest))
    rows = _standardized(rows, (2,), eps)
    return _affine(reshape_p.public(rows, shape=tuple(input.shape)), weight, bias)


@composition(
    sample((2, 3, 2), size=2, alpha=0.5, beta=0.5, k=2.0),
    sample((1, 4, 1), size=3),
    domain=real(-2, 2),
    scalars=False,
)
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta.

    Krizhevsky et al. (2012); what is beyond the first and last channel counts as 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.local_response_norm(pb.ones(1, 1, 1), size=1, alpha=1.0, beta=1.0)
    tensor([[[0.5000]]])
    """
    x = tensor_of("local_response_norm", input, "input")
    if len(x.shape) < 3:
        came = f"{len(x.shape)} dimensions"
        required = "at least 3 dimensions, (N, C, ...), required"
        raise ShapeError(compose("local_response_norm", required, came, ("input", x)))
    around = (size // 2, (size - 1) // 2)
    widths = ((0, 0), around, *((0, 0),) * (len(x.shape) - 2))
    squares = pad_constant_p.public(multiply(x, x), widths=widths, value=0)
    total = narrow(squares, 1, 0, x.shape[1])
    for i in range(1, size):
        total = add(total, narrow(squares, 1, i, x.shape[1]))
    return divide(x, pow(add(multiply(total, alpha / size), k), beta))
