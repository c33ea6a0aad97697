"""Attention with several heads."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.hints import hinted
from pullback.nn import (
    functional as F,  # noqa: N812
    init,
)
from pullback.nn.layers.linear import Linear, new_parameter
from pullback.nn.module import Module
from pullback.ops.declare import needs_tensor
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.comparison import logical_or


class MultiheadAttention(Module):
    """Attention of queries to keys with several heads: Vaswani et al. (2017).

    Parameters
    ----------
    embed_dim, num_heads : int
        The length of the queries, which the number of heads divides.
    dropout : float
        Of the weights, in training.
    bias : bool
    kdim, vdim : int, optional
        The lengths of keys and values where these are others.
    batch_first : bool
        Arguments are (N, L, E) in place of (L, N, E).
    device, dtype : optional

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.randn((5, 2, 8))
    >>> output, weights = pb.nn.MultiheadAttention(8, num_heads=2)(x, x, x)
    >>> output.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    @hinted
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            required = "an embed_dim that num_heads divides required"
            raise ArgumentError(
                compose("MultiheadAttention", required, f"{embed_dim} and {num_heads}")
            )
        of = {"dtype": dtype, "device": device}
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.batch_first = batch_first
        sizes = (embed_dim, kdim or embed_dim, vdim or embed_dim)
        self.in_proj_weight = None
        if sizes == (embed_dim,) * 3:
            self.in_proj_weight = new_parameter(3 * embed_dim, embed_dim, **of)
        else:
            self.q_proj_weight, self.k_proj_weight, self.v_proj_weight = (
                new_parameter(embed_dim, size, **of) for size in sizes
            )
        self.in_proj_bias = new_parameter(3 * embed_dim, **of) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, **of)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for weight in self._weights(whole=True):
            init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def _weights(self, whole: bool = False) -> list[Tensor]:
        """Return the weights of queries, keys and values, or the one of all of them."""
        if self.in_proj_weight is None:
            return [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        return [self.in_proj_weight] if whole else [*self.in_proj_weight.chunk(3, 0)]

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return what the queries read of the values, and the weights.

        Parameters
        ----------
        query, key, value : Tensor of shape (L, N, E), (N, L, E) if batch_first, or (L, E)
        key_padding_mask : Tensor of shape (N, S) or (S,), optional
            True at keys that are left out, or numbers that are added.
        need_weights : bool
            Whether weights are returned; without them less memory is needed.
        attn_mask : Tensor of shape (L, S) or (N * heads, L, S), optional
            True where a query does not see a key, or numbers that are added.
        average_attn_weights : bool
            Return the mean of the heads' weights.
        is_causal : bool
            Ignored beside `attn_mask`, as it only says that this is causal.

        Returns
        -------
        tuple of (Tensor, Tensor or None)
        """
        batched = self._check(query, key, value)
        q, k, v = (self._split(x) for x in self._projected(query, key, value, batched))
        mask = self._mask(key_padding_mask, attn_mask, q.shape[0], batched)
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.mT / math.sqrt(self.embed_dim // self.num_heads)
            weights = F.softmax(scores if mask is None else scores + mask, -1)
            weights = F.dropout(weights, p) if p else weights
            read = weights @ v
        else:
            read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        output = self.out_proj(read.transpose(1, 2).flatten(2))
        if not batched:
            output, weights = output.squeeze(0), None if weights is None else weights.squeeze(0)
        elif not self.batch_first:
            output = output.transpose(0, 1)
        if weights is not None and average_attn_weights:
            weights = weights.mean(-3)
        return output, weights

    def _check(self, query: Any, key: Any, value: Any) -> bool:
        """Return whether there is a batch, after looking at the arguments."""
        for name, x in (("query", query), ("key", key), ("value", value)):
            needs_tensor("MultiheadAttention", x, name)
            if x.ndim != query.ndim or x.ndim not in (2, 3):
                required = "query, key and value of 3 dimensions, or of 2 without a batch, required"
                raise ShapeError(
                    compose("MultiheadAttention", required, str(tuple(x.shape)), (name, x))
                )
        return bool(query.ndim == 3)

    def _projected(self, query: Any, key: Any, value: Any, batched: bool) -> Iterable[Tensor]:
        """Return queries, keys and values times their weights: of one tensor, by one product."""
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if query is key is value and weight is not None:
            return F.linear(self._batch(query, batched), weight, bias).chunk(3, -1)
        biases = [None] * 3 if bias is None else bias.chunk(3, 0)
        return (
            F.linear(self._batch(x, batched), w, b)
            for x, w, b in zip((query, key, value), self._weights(), biases, strict=True)
        )

    def _batch(self, x: Any, batched: bool) -> Any:
        """Return an argument as (N, L, E)."""
        if not batched:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _split(self, x: Tensor) -> Tensor:
        """Return (N, heads, L, E / heads) from (N, L, E)."""
        n, length, width = x.shape
        return x.reshape(n, length, self.num_heads, width // self.num_heads).transpose(1, 2)

    def _mask(self, keys: Any, mask: Any, n: int, batched: bool) -> Any:
        """Return the numbers to add to the scores (N, heads, L, S), if any."""
        if keys is not None:
            keys = keys if batched else keys.unsqueeze(0)
            keys = keys[:, None, None, :]
        if mask is not None and mask.ndim == 3:
            mask = mask.reshape(n, self.num_heads, *mask.shape[1:])
        if keys is None or mask is None:
            both = mask if keys is None else keys
            return None if both is None else self._added(both)
        if keys.dtype.name == mask.dtype.name == "bool":
            return self._added(logical_or(keys, mask))
        return self._added(keys) + self._added(mask)

    def _added(self, mask: Any) -> Any:
        """Return a mask as numbers that are added: minus infinity where it is True."""
        if mask.dtype.name != "bool":
            return mask
        zero = self.out_proj.weight.detach().flatten()[0] * 0
        return where(mask, float("-inf"), zero)
