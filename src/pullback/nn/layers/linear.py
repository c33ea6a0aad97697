"""Layers that multiply by a weight or look rows up in one: Linear, Bilinear, Embedding, PReLU."""

from __future__ import annotations

import math
from typing import Any, Self

from pullback.core.tensor.tensor import Tensor
from pullback.hints import hinted
from pullback.nn import (
    functional as F,  # noqa: N812
    init,
)
from pullback.nn.module import Module
from pullback.nn.parameter import Parameter
from pullback.ops.functions.creation import empty, full


def new_parameter(*shape: int, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a leaf that requires grad, of no particular values."""
    return empty(shape, dtype=dtype, device=device, requires_grad=True)


def fill_by_fan_in(weight: Tensor, *others: Tensor | None, fan_in: int | None = None) -> None:
    """Fill a weight and what goes with it uniformly up to 1 / sqrt(fan_in), as PyTorch does."""
    fan = math.prod(weight.shape[1:]) if fan_in is None else fan_in
    bound = 1 / math.sqrt(fan) if fan else 0.0
    for tensor in (weight, *others):
        if tensor is not None:
            init.uniform_(tensor, -bound, bound)


class Linear(Module):
    """The layer ``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        The lengths of the last axis before and after.
    bias : bool
        Whether there is a bias.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    weight : Tensor of shape (out_features, in_features)
    bias : Tensor of shape (out_features,), or None
        Both uniform up to 1 / sqrt(in_features) at first.

    Examples
    --------
    >>> import pullback as pb
    >>> layer = pb.nn.Linear(2, 3)
    >>> layer
    Linear(in_features=2, out_features=3, bias=True)  # weight (3, 2), bias (3,)
    >>> layer(pb.ones((5, 2))).shape
    (5, 3)
    """

    @hinted
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = new_parameter(out_features, in_features, dtype=dtype, device=device)
        self.bias = new_parameter(out_features, dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        fill_by_fan_in(self.weight, self.bias)

    def forward(self, input: Any) -> Tensor:
        """Return ``input @ weight.T + bias``."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the settings."""
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class Bilinear(Module):
    """The layer ``out[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
    bias : bool
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Bilinear(2, 3, 4)(pb.ones((5, 2)), pb.ones((5, 3))).shape
    (5, 4)
    """

    @hinted
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (out_features, in1_features, in2_features)
        self.weight = new_parameter(*shape, dtype=dtype, device=device)
        self.bias = new_parameter(out_features, dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        fill_by_fan_in(self.weight, self.bias, fan_in=self.weight.shape[1])

    def forward(self, input1: Any, input2: Any) -> Tensor:
        """Return the form of two inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    """A table of vectors, looked up by whole numbers.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The number of vectors, and their length.
    padding_idx : int, optional
        The vector of this number is 0 at first, and gets no gradient.
    device, dtype : optional

    Attributes
    ----------
    weight : Tensor of shape (num_embeddings, embedding_dim)
        From the standard normal distribution at first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.Embedding(10, 3)(pb.tensor([1, 7])).shape
    (2, 3)
    """

    @hinted
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self.weight = new_parameter(num_embeddings, embedding_dim, dtype=dtype, device=device)
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None
    ) -> Self:
        """Return a table of vectors that are there, the rows of a matrix, on the same memory.

        Examples
        --------
        >>> import pullback as pb
        >>> pb.nn.Embedding.from_pretrained(pb.tensor([[1.0], [2.0]]))(pb.tensor([1]))
        tensor([[2.]])
        """
        table = cls.__new__(cls)
        table.weight = Parameter(embeddings, requires_grad=not freeze)
        table.num_embeddings, table.embedding_dim = table.weight.shape
        table.padding_idx = padding_idx
        return table

    def reset_parameters(self) -> None:
        """Draw the vectors anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.data[self.padding_idx])

    def forward(self, input: Any) -> Tensor:
        """Return the vectors of these numbers, along a new last axis."""
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        """Return the settings."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class PReLU(Module):
    """``max(0, x) + weight * min(0, x)``, with one weight or one a channel.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels, along axis 1.
    init : float
        The first value.
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.PReLU()(pb.tensor([-2.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    @hinted
    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        of = {"dtype": dtype, "device": device}
        self.weight = full((num_parameters,), init, requires_grad=True, **of)

    def forward(self, input: Any) -> Tensor:
        """Return the function of the input."""
        return F.prelu(input, self.weight)
