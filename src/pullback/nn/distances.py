"""Distances and similarities of vectors.

A distance of 0 has the gradient 0, as the norm has.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions.creation import tensor
from pullback.ops.functions.norms import vector_norm
from pullback.ops.functions.pointwise import add
from pullback.ops.functions.repeating import broadcast_arrays
from pullback.ops.primitives.arithmetic import divide, subtract
from pullback.ops.primitives.gathering import take_p
from pullback.ops.primitives.reductions import sum_p, vector_norm_p
from pullback.ops.samples import both, real, sample


@composition(
    sample((2, 3), (2, 3)),
    sample((2, 3), (3,), dim=-1),
    sample((3,), (3,), dim=0),
    sample((0, 2), (0, 2)),
    domain=real(0.5, 2),
    scalars=False,
)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along `dim`.

    It is the product of the vectors over the product of their lengths, each no less than `eps`.

    Parameters
    ----------
    x1, x2 : Tensor
        Broadcast with each other.
    dim : int
    eps : float
        Keeps vectors of length 0 from dividing by it: their value and gradient are finite.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cosine_similarity(pb.tensor([[3.0, 4.0]]), pb.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    needs_tensor("cosine_similarity", x1, "x1")
    needs_tensor("cosine_similarity", x2, "x2")
    x, y = broadcast_arrays(x1, x2)
    length = functools.partial(vector_norm_p.public, axis=dim, keepdims=True, least=eps)
    return sum_p.public((x / length(x)) * (y / length(y)), axis=dim, keepdims=False)


@composition(
    sample((2, 3)),
    sample((3, 2), p=1, dim=0),
    sample((3,), dim=-1),
    sample((0, 2)),
    domain=both(0.5, 2),
    reference=(
        lambda np, x, p=2, dim=1: (
            x / np.linalg.vector_norm(x, ord=p, axis=dim, keepdims=True) if x.size else x
        )
    ),
    scalars=False,
)
def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, *, axis: Any = None
) -> Tensor:
    """Return x / max(norm of x, eps), the norm of order `p` along a dimension.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.normalize(pb.tensor([3.0, 4.0]), dim=0)
    tensor([0.6000, 0.8000])
    """
    needs_tensor("normalize", input, "input")
    over = dim if axis is None else axis
    return divide(input, vector_norm_p.public(input, axis=over, keepdims=True, ord=p, least=eps))


@composition(
    sample((2, 3), (2, 3), p=3.0),
    sample((3,), (3,), keepdim=True),
    sample((0, 2), (0, 2)),
    domain=real(-2, 2),
    reference=(
        lambda np, x, y, p=2, eps=1e-6, keepdim=False: np.linalg.norm(
            x - y + eps, p, axis=-1, keepdims=keepdim
        )
    ),
    scalars=False,
)
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the norm of order `p` of x1 - x2 + eps along the last axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pairwise_distance(pb.tensor([[3.0, 0.0]]), pb.tensor([[0.0, 4.0]]))
    tensor([5.])
    """
    return vector_norm(add(subtract(x1, x2), eps), axis=-1, keepdims=keepdim, ord=p)


@composition(
    sample((3, 2)),
    sample((3, 1), p=1.0),
    sample((1, 2)),
    domain=real(-2, 2),
    reference=(lambda scipy, x, p=2: scipy.spatial.distance.pdist(x, "minkowski", p=p)),
    scalars=False,
)
def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Return the distances of every two rows, (0, 1), (0, 2), ..., (1, 2), ...

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pdist(pb.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    input = tensor_of("pdist", input, "input")
    if len(input.shape) != 2:
        came = f"{len(input.shape)} dimensions"
        raise ShapeError(compose("pdist", "a matrix of rows required", came, ("input", input)))
    pairs = list(itertools.combinations(range(input.shape[0]), 2))
    ends = ([pair[k] for pair in pairs] for k in (0, 1))
    positions = (tensor(end, dtype="int64", device=input.device) for end in ends)
    first, second = (take_p.public(input, position, axis=0) for position in positions)
    return vector_norm(subtract(first, second), axis=1, ord=p)
