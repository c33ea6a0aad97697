"""Products of matrices and vectors.

All but `cross` are matrix products underneath, so that the array library's BLAS does the work.
"""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose, describe
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import (
    both,
    composition,
    elementwise,
    face,
    needs_tensor,
    operation,
    sample,
)
from pullback.ops._matrices import in_linalg, is_complex, needs_one_stack
from pullback.ops.complex_ import conj
from pullback.ops.elementwise import add, multiply
from pullback.ops.shape import expand_dims, matrix_transpose, permute_dims, reshape, sum_to_shape

__all__ = [
    "addmm",
    "baddbmm",
    "bmm",
    "cross",
    "dot",
    "kron",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vecdot",
]


# -- two matrices, two stacks of them --------------------------------------------------------------
def _matmul(xp: Any, x: Any, y: Any) -> Any:
    if not x.shape or not y.shape or x.shape[-1] != y.shape[max(len(y.shape) - 2, 0)]:
        raise ShapeError(
            "matmul: the last axis of x and the second to last of y must have one length, got\n"
            f"  {describe('x', x)}\n  {describe('y', y)}"
        )
    if len(x.shape) > 2 and len(y.shape) > 2:
        needs_one_stack("matmul", (x.shape[:-2], y.shape[:-2]), x=x, y=y)
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
def matmul(x1: Any, x2: Any, /) -> Tensor:
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
    tensors = x1.__class__ is Tensor and x2.__class__ is Tensor
    if tensors and len(x1._data.shape) == 2 == len(x2._data.shape):
        return mm(x1, x2)
    return matmul_(x1, x2)


def _shaped(op: str, form: str, *inputs: tuple[str, Any, int]) -> None:
    """Raise where an input has not its number of dimensions, or the inner lengths differ."""
    for name, x, _ in inputs:
        needs_tensor(op, x, name)
    (_, left, _), (_, right, ndim) = inputs
    wrong = any(len(x.shape) != n for _, x, n in inputs)
    if wrong or left.shape[-1] != right.shape[0 if ndim == 1 else -2]:
        came = " and ".join(str(tuple(x.shape)) for _, x, _ in inputs)
        named = [(name, x) for name, x, _ in inputs]
        hint = "use matmul, which takes vectors and stacks of matrices alike"
        raise ShapeError(compose(op, f"shapes {form} required", came, *named, hint=hint))


@composition(
    sample((2, 3, 4), (2, 4, 1)), sample((0, 2, 3), (0, 3, 2)), sample((1, 1, 1), (1, 1, 1))
)
def bmm(input: Any, mat2: Any) -> Tensor:
    """Return the products of two stacks of matrices, pair by pair.

    Parameters
    ----------
    input, mat2 : Tensor
        Of shapes (b, n, k) and (b, k, m).

    Raises
    ------
    ShapeError
        If the shapes are others; nothing is broadcast (`matmul` does).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bmm(pb.ones((2, 1, 3)), pb.ones((2, 3, 1))).shape
    (2, 1, 1)
    """
    _shaped("bmm", "(b, n, k) and (b, k, m)", ("input", input, 3), ("mat2", mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        came = f"stacks of {input.shape[0]} and {mat2.shape[0]}"
        inputs = (("input", input), ("mat2", mat2))
        raise ShapeError(compose("bmm", "stacks of one length required", came, *inputs))
    return matmul_(input, mat2)


@composition(sample((3, 4), (4,)), sample((0, 2), (2,)), sample((2, 0), (0,)))
def mv(input: Any, vec: Any) -> Tensor:
    """Return the product of a matrix and a vector.

    Raises
    ------
    ShapeError
        If the shapes are not (n, m) and (m,).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mv(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), pb.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    _shaped("mv", "(n, m) and (m,)", ("input", input, 2), ("vec", vec, 1))
    return matmul_(input, vec)


@composition(sample((3,), (3,)), sample((1,), (1,)), sample((0,), (0,)))
def dot(input: Any, tensor: Any) -> Tensor:
    """Return the sum of the products of two vectors' elements; nothing is conjugated.

    Raises
    ------
    ShapeError
        If they are not two vectors of one length.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dot(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    _shaped("dot", "(n,) and (n,)", ("input", input, 1), ("tensor", tensor, 1))
    return matmul_(input, tensor)


# -- a product added to something ------------------------------------------------------------------
def added(op: str, input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta * input + alpha * product, of the shape of the product."""
    needs_tensor(op, input, "input")
    pairs = list(zip(input.shape[::-1], product.shape[::-1], strict=False))
    if len(input.shape) > len(product.shape) or any(n not in (1, m) for n, m in pairs):
        required = f"an input that broadcasts to the product's shape {product.shape} required"
        raise ShapeError(compose(op, required, str(tuple(input.shape)), ("input", input)))
    if alpha != 1:
        product = multiply(product, alpha)
    if beta == 0:  # what is not wanted may be NaN
        return product
    return add(input if beta == 1 else multiply(input, beta), product)


@composition(
    sample((3, 3), (3, 3), (3, 3)),
    sample((2,), (2, 2), (2, 2), beta=0.5, alpha=-2.0),
    sample((), (1, 1), (1, 1)),
    sample((0, 0), (0, 0), (0, 0)),
)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (mat1 @ mat2).

    Parameters
    ----------
    input : Tensor
        Broadcasts to (n, m). Where `beta` is 0 it is not looked at.
    mat1, mat2 : Tensor
        Of shapes (n, k) and (k, m).
    beta, alpha : number

    Raises
    ------
    ShapeError
        If the shapes are others.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addmm(pb.ones((2,)), pb.eye(2), pb.eye(2), alpha=3.0)
    tensor([[4., 1.],
            [1., 4.]])
    """
    _shaped("addmm", "(n, k) and (k, m)", ("mat1", mat1, 2), ("mat2", mat2, 2))
    return added("addmm", input, mm(mat1, mat2), beta, alpha)


@composition(
    sample((2, 2, 2), (2, 2, 2), (2, 2, 2)),
    sample((2, 1), (1, 2, 2), (1, 2, 2), beta=0.5, alpha=-2.0),
    sample((), (1, 1, 1), (1, 1, 1)),
    sample((0, 2, 2), (0, 2, 2), (0, 2, 2)),
)
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (batch1 @ batch2), for stacks of matrices.

    Parameters
    ----------
    input : Tensor
        Broadcasts to (b, n, m). Where `beta` is 0 it is not looked at.
    batch1, batch2 : Tensor
        Of shapes (b, n, k) and (b, k, m).
    beta, alpha : number

    Raises
    ------
    ShapeError
        If the shapes are others.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.baddbmm(pb.ones((1,)), pb.ones((2, 1, 3)), pb.ones((2, 3, 1))).tolist()
    [[[4.0]], [[4.0]]]
    """
    _shaped("baddbmm", "(b, n, k) and (b, k, m)", ("batch1", batch1, 3), ("batch2", batch2, 3))
    return added("baddbmm", input, bmm(batch1, batch2), beta, alpha)


# -- vectors ---------------------------------------------------------------------------------------
def _axis_last(op: str, name: str, x: Any, axis: int) -> Tensor:
    """Return `x` with the axis `axis` as its last."""
    if not x.shape:
        raise ShapeError(compose(op, "at least 1 dimension required", "0", (name, x)))
    ndim = len(x.shape)
    place = normalize_axis(op, axis, ndim)
    if place == ndim - 1:
        return x  # type: ignore[no-any-return]
    return permute_dims(x, (*(i for i in range(ndim) if i != place), place))


@composition(
    sample((3,), (3,)),
    sample((2, 3), (3,), axis=-1),
    sample((3, 1), (2, 3, 2), axis=-2),
    sample((2, 0), (2, 0)),
)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the sum of conj(x1) * x2 along an axis; the others broadcast.

    Raises
    ------
    ShapeError
        If the lengths along the axis differ, the others do not broadcast, or one is a scalar.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vecdot(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    needs_tensor("vecdot", x1, "x1")
    needs_tensor("vecdot", x2, "x2")
    left, right = _axis_last("vecdot", "x1", x1, axis), _axis_last("vecdot", "x2", x2, axis)
    if left.shape[-1] != right.shape[-1]:
        required = f"one length along axis {axis} required"
        came = f"{left.shape[-1]} and {right.shape[-1]}"
        raise ShapeError(compose("vecdot", required, came, ("x1", x1), ("x2", x2)))
    needs_one_stack("vecdot", (left.shape[:-1], right.shape[:-1]), x1=x1, x2=x2)
    left = conj(left) if is_complex(left) else left
    product = matmul_(expand_dims(left, axis=-2), expand_dims(right, axis=-1))
    return reshape(product, product.shape[:-2])


def _outer(xp: Any, x1: Any, x2: Any) -> Any:
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        came = f"{len(x1.shape)} and {len(x2.shape)} dimensions"
        raise ShapeError(compose("outer", "two vectors required", came, ("x1", x1), ("x2", x2)))
    return xp.multiply(x1[:, None], x2[None, :])


# A product of matrices would lose the sign of a zero; its rules need no matrix of products.
outer_ = elementwise(
    "outer",
    _outer,
    x1=lambda g, x2, xp: xp.matmul(g, x2),
    x2=lambda g, x1, xp: xp.matmul(g.mT, x1),
    domain=both(-2, 2),
    broadcasts=False,
    samples=(sample((3,), (2,)), sample((1,), (1,)), sample((0,), (2,))),
    doc="Return the matrix of the products x1[i] * x2[j].",
)


@face(outer_)
def outer(x1: Any, x2: Any, /) -> Tensor:
    """Return the matrix of the products x1[i] * x2[j] of two vectors.

    Raises
    ------
    ShapeError
        If they are no vectors.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.outer(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    needs_tensor("outer", x1, "x1")
    needs_tensor("outer", x2, "x2")
    return outer_(x1, x2)


@composition(
    sample((2, 2), (1, 3)), sample((2,), (2, 1, 2)), sample((), (2,)), sample((0, 2), (2,))
)
def kron(input: Any, other: Any) -> Tensor:
    """Return the Kronecker product: each element of `input` times the whole of `other`.

    The one of fewer dimensions gets leading axes of length 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.kron(pb.tensor([1.0, 2.0]), pb.tensor([1.0, 10.0]))
    tensor([ 1., 10.,  2., 20.])
    """
    needs_tensor("kron", input, "input")
    needs_tensor("kron", other, "other")
    ndim = max(len(input.shape), len(other.shape))
    rows = (1,) * (ndim - len(input.shape)) + tuple(input.shape)
    columns = (1,) * (ndim - len(other.shape)) + tuple(other.shape)
    left = reshape(input, tuple(n for row in rows for n in (row, 1)))
    right = reshape(other, tuple(n for column in columns for n in (1, column)))
    lengths = tuple(n * m for n, m in zip(rows, columns, strict=True))
    return reshape(multiply(left, right), lengths)


cross_ = operation(
    "cross",
    lambda xp, x1, x2, *, axis=-1: xp.linalg.cross(x1, x2, axis=axis),
    rules={
        "x1": lambda g, x2, axis, xp: xp.linalg.cross(x2, g, axis=axis),
        "x2": lambda g, x1, axis, xp: xp.linalg.cross(g, x1, axis=axis),
    },
    broadcasts=True,
    samples=(
        sample((3,), (3,), axis=-1),
        sample((2, 3), (3,), axis=-1),
        sample((3, 2), (3, 1), axis=-2),
        sample((0, 3), (0, 3), axis=-1),
    ),
    doc="Return the cross product of vectors of three elements.",
)


@face(cross_)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements along an axis; the others broadcast.

    Raises
    ------
    ShapeError
        If a length along the axis is not 3, or the others do not broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cross(pb.tensor([1.0, 0.0, 0.0]), pb.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    ndims = []
    for name, x in (("x1", x1), ("x2", x2)):
        needs_tensor("cross", x, name)
        ndims.append(len(x.shape))
        if not x.shape or x.shape[normalize_axis("cross", axis, len(x.shape))] != 3:
            required = f"a length of 3 along axis {axis} required"
            raise ShapeError(compose("cross", required, str(tuple(x.shape)), (name, x)))
    if axis >= 0 and ndims[0] != ndims[1]:
        required = "an axis counted from the end required where the numbers of dimensions differ"
        raise ArgumentError(compose("cross", required, str(axis), ("x1", x1), ("x2", x2)))
    needs_one_stack("cross", (x1.shape, x2.shape), x1=x1, x2=x2)
    return cross_(x1, x2, axis=axis - ndims[0] if axis >= 0 else axis)


in_linalg(cross, matmul, matrix_transpose, outer, vecdot)
