"""Layers that bring inputs to mean 0 and variance 1, or to one length."""

from __future__ import annotations

from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError, compose
from pullback.hints import hinted
from pullback.nn import functional as F  # noqa: N812
from pullback.nn.module import Module
from pullback.ops.declare import needs_tensor
from pullback.ops.functions.creation import ones, tensor, zeros


def _parameters_of(dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": dtype, "device": device, "requires_grad": True}


class LayerNorm(Module):
    """Normalization over the last axes, then a factor and a term an element; `F.layer_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The lengths of these axes.
    eps : float
        Added to the variance.
    elementwise_affine, bias : bool
        Whether there are a weight, and a bias beside it.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.LayerNorm(2)(pb.tensor([[1.0, 3.0]])).round()
    tensor([[-1.,  1.]], grad_fn=<RoundBackward>)
    """

    @hinted
    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape, self.eps = _lengths(normalized_shape), eps
        shape, of = self.normalized_shape, _parameters_of(dtype, device)
        self.weight = ones(shape, **of) if elementwise_affine else None
        self.bias = zeros(shape, **of) if elementwise_affine and bias else None

    def forward(self, input: Any) -> Tensor:
        """Return the normalized input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.normalized_shape}, eps={self.eps}"


def _lengths(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


class RMSNorm(Module):
    """Division by the root of the mean square over the last axes; `F.rms_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
    eps : float, optional
        Added to the mean square; by default the precision of the dtype.
    elementwise_affine : bool
        Whether there is a weight.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.RMSNorm(2, elementwise_affine=False)(pb.tensor([3.0, 3.0])).round()
    tensor([1., 1.])
    """

    @hinted
    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.normalized_shape, self.eps = _lengths(normalized_shape), eps
        of = _parameters_of(dtype, device)
        self.weight = ones(self.normalized_shape, **of) if elementwise_affine else None

    def forward(self, input: Any) -> Tensor:
        """Return the normalized input."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """Normalization over groups of channels, then a factor and a term a channel; `F.group_norm`.

    Parameters
    ----------
    num_groups, num_channels : int
    eps : float
    affine : bool
        Whether there are a weight and a bias.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.GroupNorm(2, 4)(pb.ones((1, 4, 3))).abs().sum().item()
    0.0
    """

    @hinted
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        of = _parameters_of(dtype, device)
        self.weight = ones(num_channels, **of) if affine else None
        self.bias = zeros(num_channels, **of) if affine else None

    def forward(self, input: Any) -> Tensor:
        """Return the normalized input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class _BatchNorm(Module):
    """What batch normalizations share; a subclass has the ranks of inputs that it takes."""

    _ranks: ClassVar[tuple[int, ...]]
    num_batches_tracked: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None

    @hinted
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        shape, of = (num_features,), _parameters_of(dtype, device)
        self.weight = ones(shape, **of) if affine else None
        self.bias = zeros(shape, **of) if affine else None
        of = {"dtype": dtype, "device": device}
        tracks = track_running_stats
        self.register_buffer("running_mean", zeros(shape, **of) if tracks else None)
        self.register_buffer("running_var", ones(shape, **of) if tracks else None)
        count = tensor(0, dtype="int64", device=device) if tracks else None
        self.register_buffer("num_batches_tracked", count)

    def forward(self, input: Any) -> Tensor:
        """Return the normalized input; in training, of its own statistics, which are tracked."""
        name = type(self).__name__
        needs_tensor(name, input, "input")
        if input.ndim not in self._ranks:
            required = f"an input of {' or '.join(map(str, self._ranks))} dimensions required"
            raise ShapeError(compose(name, required, str(input.ndim), ("input", input)))
        momentum, mean = 0.0 if self.momentum is None else self.momentum, self.running_mean
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / int(self.num_batches_tracked)
        batch, affine = self.training or mean is None, (self.weight, self.bias)
        return F.batch_norm(input, mean, self.running_var, *affine, batch, momentum, self.eps)

    def reset_running_stats(self) -> None:
        """Set the tracked statistics to those of no data: mean 0, variance 1."""
        for buffer, value in ((self.running_mean, 0), (self.running_var, 1)):
            if buffer is not None:
                buffer.fill_(value)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


_DOC = """Normalization of each channel over a batch of {things}; `F.batch_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels, along axis 1.
    eps : float
        Added to the variance.
    momentum : float or None
        The weight of a new batch in the running statistics; None for the mean of all batches.
    affine : bool
        Whether there are a weight and a bias.
    track_running_stats : bool
        Whether statistics are kept, for use when not in training.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.{name}(2)
    >>> layer(pb.ones((3, 2{lengths}))).abs().sum().item(), layer.running_mean
    (0.0, tensor([0.1000, 0.1000]))
    """


def _batch_norm(n: int, things: str, ranks: tuple[int, ...]) -> Any:
    name = f"BatchNorm{n}d"
    doc = _DOC.format(things=things, name=name, lengths=", 4" * n)
    members = {"__doc__": doc, "__module__": __name__, "_ranks": ranks}
    return type(name, (_BatchNorm,), members)


BatchNorm1d = _batch_norm(1, "vectors or sequences", (2, 3))
BatchNorm2d = _batch_norm(2, "images", (4,))
BatchNorm3d = _batch_norm(3, "volumes", (5,))
