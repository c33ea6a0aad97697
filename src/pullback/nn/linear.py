"""Linear and bilinear layers."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_tensor, wrapper_of
from pullback.ops.functions.pointwise import add
from pullback.ops.functions.products import einsum
from pullback.ops.primitives.products import affine_p, linear_p
from pullback.ops.samples import sample


@wrapper_of(linear_p)
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    Parameters
    ----------
    input : Tensor of shape (..., features)
    weight : Tensor of shape (outputs, features)
    bias : Tensor of shape (outputs,), optional

    Returns
    -------
    Tensor of shape (..., outputs)

    Raises
    ------
    ShapeError
        If the weight is no matrix, or the features differ.

    Examples
    --------
    >>> import pullback as pb
    >>> weight = pb.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> pb.nn.functional.linear(pb.tensor([1.0, 2.0]), weight, pb.ones(2))
    tensor([2., 4.])
    """
    needs_tensor("linear", input, "input")
    needs_tensor("linear", weight, "weight")
    named = (("input", input), ("weight", weight))
    if len(weight.shape) != 2 or not input.shape or input.shape[-1] != weight.shape[1]:
        required = "an input of shape (..., features) and a weight of (outputs, features) required"
        came = f"{tuple(input.shape)} and {tuple(weight.shape)}"
        raise ShapeError(compose("linear", required, came, *named))
    if bias is None:
        return linear_p.public(input, weight)
    needs_tensor("linear", bias, "bias")
    if tuple(bias.shape) != (weight.shape[0],):
        required = f"a bias of shape ({weight.shape[0]},), one number an output, required"
        raise ShapeError(compose("linear", required, str(tuple(bias.shape)), *named))
    return affine_p.public(input, weight, bias)


@composition(
    sample((2, 2), (2, 3), (2, 2, 3), (2,)),
    sample((2,), (1,), (3, 2, 1), (3,)),
    reference=(lambda np, x, y, w, b: np.einsum("...n,knm,...m->...k", x, w, y) + b),
    scalars=False,
)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """Return input1ᵀ weight[k] input2 + bias[k] for each k.

    Parameters
    ----------
    input1 : Tensor, shape (..., n)
    input2 : Tensor, shape (..., m)
    weight : Tensor, shape (k, n, m)
    bias : Tensor, shape (k,), optional

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bilinear(pb.tensor([2.0]), pb.tensor([3.0]), pb.ones(1, 1, 1))
    tensor([6.])
    """
    weight = tensor_of("bilinear", weight, "weight")
    result: Tensor = einsum("...n,knm,...m->...k", input1, weight, input2)
    return result if bias is None else add(result, bias)
