"""Matrix products."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor import Tensor
from pullback.errors import ShapeError, describe
from pullback.ops._declare import both, elementwise, face, operation, sample
from pullback.ops.shape import sum_to_shape

__all__ = [
    "matmul",
    "mm",
]


def _matmul(xp: Any, x: Any, y: Any) -> Any:
    if not x.shape or not y.shape or x.shape[-1] != y.shape[max(len(y.shape) - 2, 0)]:
        raise ShapeError(
            "matmul: the last axis of x and the second to last of y must have one length, got\n"
            f"  {describe('x', x)}\n  {describe('y', y)}"
        )
    return xp.matmul(x, y)


def _swap(x: Any, xp: Any) -> Any:
    return xp.matrix_transpose(x)


def _left(g: Any, x_shape: Any, y: Any, xp: Any) -> Any:
    if len(y.shape) == 2 and len(x_shape) == 2:
        return xp.matmul(g, _swap(y, xp))
    if len(y.shape) == 1:  # g has the shape of x less its last axis
        return sum_to_shape(xp.expand_dims(g, axis=-1) * y, x_shape, xp)
    g2 = xp.expand_dims(g, axis=-2) if len(x_shape) == 1 else g
    product = xp.matmul(g2, _swap(y, xp))
    if len(x_shape) == 1:
        product = xp.reshape(product, (*product.shape[:-2], product.shape[-1]))
    return sum_to_shape(product, x_shape, xp)


def _right(g: Any, x: Any, y_shape: Any, xp: Any) -> Any:
    if len(x.shape) == 2 and len(y_shape) == 2:
        return xp.matmul(_swap(x, xp), g)
    if len(y_shape) == 1:
        column = xp.expand_dims(g, axis=-1)
        return sum_to_shape(x * column, y_shape, xp)
    if len(x.shape) == 1:
        rows = xp.expand_dims(g, axis=-2)
        return sum_to_shape(xp.expand_dims(x, axis=-1) * rows, y_shape, xp)
    return sum_to_shape(xp.matmul(_swap(x, xp), g), y_shape, xp)


matmul_ = operation(
    "matmul",
    _matmul,
    rules={"x": _left, "y": _right},
    samples=(
        sample((3, 4), (4, 2)),
        sample((4,), (4,)),
        sample((3, 4), (4,)),
        sample((4,), (4, 2)),
        sample((2, 3, 4), (4, 2)),
        sample((3, 4), (2, 4, 2)),
        sample((2, 1, 3, 4), (5, 4, 2)),
        sample((2, 3, 4), (4,)),
        sample((4,), (2, 4, 3)),
        sample((0, 4), (4, 2)),
        sample((3, 0), (0, 2)),
    ),
    doc="Return the matrix product; vectors and stacks as in PyTorch and the standard.",
)


def _mm(xp: Any, x: Any, y: Any) -> Any:
    if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[1] != y.shape[0]:
        raise ShapeError(
            "mm: two matrices of shapes (n, k) and (k, m) required, got\n"
            f"  {describe('x', x)}\n  {describe('y', y)}\n"
            "hint: use matmul for vectors and stacks of matrices."
        )
    return xp.matmul(x, y)


mm = elementwise(
    "mm",
    _mm,
    x=lambda g, y, xp: xp.matmul(g, y.mT),
    y=lambda g, x, xp: xp.matmul(x.mT, g),
    domain=both(-2, 2),
    broadcasts=False,
    samples=(sample((3, 4), (4, 2)), sample((0, 4), (4, 2)), sample((3, 0), (0, 2))),
    doc="""Return the product of two matrices.

    Raises
    ------
    ShapeError
        If one has not exactly two dimensions, or the inner lengths differ.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mm(pb.eye(2), pb.ones((2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """,
)


@face(matmul_)
def matmul(x: Any, y: Any, /) -> Tensor:
    """Return the matrix product; vectors and stacks of matrices as in PyTorch and the standard.

    Raises
    ------
    ShapeError
        If the inner lengths differ, the stacks do not broadcast, or one is a scalar.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.matmul(pb.eye(2), pb.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    tensors = x.__class__ is Tensor and y.__class__ is Tensor
    if tensors and len(x._data.shape) == 2 == len(y._data.shape):
        return mm(x, y)
    return matmul_(x, y)
