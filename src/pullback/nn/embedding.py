"""Embeddings: rows of a table by index, and one-hot vectors."""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import array_of
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions import manipulation, pointwise
from pullback.ops.functions.gathering import index_for, needs_whole
from pullback.ops.primitives import comparison as comparison_primitives
from pullback.ops.primitives.gathering import take_p
from pullback.ops.samples import both, integers, sample


# -- classes ---------------------------------------------------------------------------------------
@composition(
    sample((2, 3), (3, 2)),
    sample((), (3, 4)),
    sample((0,), (3, 2)),
    domain={"input": integers(0, 2), "weight": both(-2, 2)},
    constants=("input",),
)
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """Return the rows of `weight` that `input` names.

    Parameters
    ----------
    input : Tensor of integers
        Of any shape.
    weight : Tensor, shape (n, features)
    padding_idx : int, optional
        A row that gets no gradient; a negative one counts from the end.

    Returns
    -------
    Tensor, of the shape of `input` with a last axis of the features

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If `weight` is no matrix; if a number is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> table = pb.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> pb.embedding(pb.tensor([2, 1]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    needs_tensor("embedding", weight, "weight")
    if len(weight.shape) != 2:
        came = f"{len(weight.shape)} dimensions"
        raise ShapeError(compose("embedding", "a matrix required", came, ("weight", weight)))
    input = index_for("embedding", weight, 0, input, names=("weight", "input"))
    rows = take_p.public(weight, input, axis=0)
    if padding_idx is None:
        return rows
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        required = f"padding_idx within axis 0 of length {n} required"
        raise ArgumentError(compose("embedding", required, str(padding_idx), ("weight", weight)))
    padding = manipulation.expand_dims(comparison_primitives.equal(input, padding_idx % n), -1)
    return pointwise.where(padding, rows.detach(), rows)


@composition(
    sample((3,), num_classes=4),
    sample((), num_classes=3),
    sample((2, 0), num_classes=1),
    domain=integers(0, 2),
    differentiable=False,
    reference=(lambda np, x, num_classes: np.eye(num_classes, dtype=np.int64)[x]),
    result_dtype="int64",
)
def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return int64 zeros with a last axis of `num_classes`, and 1 at the position of each number.

    Parameters
    ----------
    tensor : Tensor of integers
        Not negative, and less than `num_classes`.
    num_classes : int, optional
        -1, the default, takes one more than the largest number.

    Raises
    ------
    TensorIndexError, DTypeError
        If a number is out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.one_hot(pb.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    needs_whole("one_hot", "tensor", tensor)
    array = array_of(tensor)
    library = library_of(array)
    if num_classes < -1:
        raise ArgumentError(compose("one_hot", "num_classes from -1 on required", str(num_classes)))
    if num_classes == -1:
        if 0 in array.shape:
            hint = "give num_classes"
            raise ArgumentError(
                compose("one_hot", "numbers required", "none", ("tensor", tensor), hint=hint)
            )
        num_classes = int(library.xp.max(array)) + 1
    classes = box(library.xp.arange(max(num_classes, 0), device=array.device))
    index_for("one_hot", classes, 0, tensor, names=("classes", "tensor"))
    hits = comparison_primitives.equal(manipulation.expand_dims(tensor, -1), classes)
    return hits.to(DTYPES["int64"])
