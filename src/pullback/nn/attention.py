"""Attention: scaled dot products."""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.dropout import dropout
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition
from pullback.ops.functions.creation import arange
from pullback.ops.functions.manipulation import unsqueeze
from pullback.ops.functions.pointwise import add, where
from pullback.ops.functions.products import matmul
from pullback.ops.functions.reductions import softmax
from pullback.ops.functions.repeating import repeat
from pullback.ops.primitives.arithmetic import multiply
from pullback.ops.primitives.comparison import less_equal, logical_not, logical_or
from pullback.ops.primitives.reductions import any
from pullback.ops.samples import real, sample


@composition(
    sample((2, 3), (4, 3), (4, 2)),
    sample((1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2), is_causal=True),
    sample((1, 4, 1, 2), (1, 2, 2, 2), (1, 2, 2, 2), enable_gqa=True, scale=0.3),
    domain=real(-2, 2),
    scalars=False,
)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(scale * query @ keyᵀ + mask) @ value.

    Vaswani et al., Attention Is All You Need (2017).

    Parameters
    ----------
    query : Tensor, shape (..., L, E)
    key : Tensor, shape (..., S, E)
    value : Tensor, shape (..., S, V)
    attn_mask : Tensor, optional
        Of bools, which say what is attended to, or of numbers that are added; it broadcasts to
        (..., L, S). Where nothing is attended to, the result is 0.
    dropout_p : float
        The probability that a weight is dropped.
    is_causal : bool
        Attend to nothing later: instead of a mask.
    scale : float, optional
        1 / sqrt(E) by default.
    enable_gqa : bool
        Let several heads of the query, in axis -3, share one of key and value.

    Returns
    -------
    Tensor, shape (..., L, V)

    Raises
    ------
    ArgumentError, ShapeError
        If there are both a mask and `is_causal`; if the shapes do not fit.

    Examples
    --------
    >>> import pullback as pb
    >>> q = pb.tensor([[1.0, 0.0]])
    >>> pb.nn.functional.scaled_dot_product_attention(q, pb.zeros(2, 2), pb.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    op = "scaled_dot_product_attention"
    query, key, value = (
        tensor_of(op, x, name) for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    named = (("query", query), ("key", key), ("value", value))
    if min(len(x.shape) for _, x in named) < 2 or query.shape[-1] != key.shape[-1]:
        required = "query (..., L, E), key (..., S, E) and value (..., S, V) required"
        came = ", ".join(str(x.shape) for _, x in named)
        raise ShapeError(compose(op, required, came, *named))
    keys, values = (_shared(op, named[0], x) if enable_gqa else x[1] for x in named[1:])
    # without features, all keys weigh the same
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else scale
    scores = multiply(matmul(query, keys.mT), factor)
    if is_causal:
        if attn_mask is not None:
            raise ArgumentError(f"{op}: give attn_mask or is_causal, not both")
        attn_mask = _not_later(scores)
    if attn_mask is None:
        weights = softmax(scores, -1)
    else:
        weights = _masked(scores, tensor_of(op, attn_mask, "attn_mask"))
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return matmul(weights, values)


def _shared(op: str, query: tuple[str, Tensor], keys: tuple[str, Tensor]) -> Tensor:
    """Return keys or values with as many heads as the query has, each for several of them."""
    heads, own = (x.shape[-3] if len(x.shape) > 2 else 0 for _, x in (query, keys))
    if not own or heads % own:
        required = f"heads in axis -3 that the heads of {keys[0]} divide required"
        came = f"{heads} and {own}"
        raise ShapeError(compose(op, required, came, query, keys))
    return repeat(keys[1], heads // own, axis=-3)


def _not_later(scores: Tensor) -> Tensor:
    rows, columns = (arange(n, device=scores.device) for n in scores.shape[-2:])
    return less_equal(columns, unsqueeze(rows, -1))


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Return softmax of what the mask lets through, 0 where that is nothing."""
    if mask.dtype.kind != "b":
        return softmax(add(scores, mask), -1)
    some = any(mask, axis=-1, keepdims=True)
    allowed = logical_or(mask, logical_not(some))
    weights = softmax(where(allowed, scores, -math.inf), -1)
    return where(some, weights, 0)
