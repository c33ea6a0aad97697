"""Diagonals, triangles and blocks of matrices."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import needs_rank, needs_shape, tensor_of
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import composition, detach_results, needs_tensor, register_xp, wrapper_of
from pullback.ops.functions import reductions
from pullback.ops.functions.creation import asarray, eye, shape_of, tensor, zeros
from pullback.ops.functions.joining import concat
from pullback.ops.functions.manipulation import moveaxis, permute_dims, ravel, reshape
from pullback.ops.functions.pointwise import where
from pullback.ops.matrices import needs_matrices
from pullback.ops.primitives.arranging import (
    diag_embed_p,
    diagonal_p,
    pad_constant_p,
    tril_p,
    triu_p,
)
from pullback.ops.primitives.conversion import clone
from pullback.ops.samples import sample


# -- reading ---------------------------------------------------------------------------------------
@wrapper_of(diagonal_p, numpy="linalg.diagonal: x offset")
def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of a matrix or a stack of matrices, a view.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    offset : int
        Which diagonal: positive ones lie above the main one, negative ones below.

    Returns
    -------
    Tensor
        Of shape (..., length of the diagonal).

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.diagonal(pb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    >>> pb.linalg.diagonal(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), offset=1)
    tensor([2.])
    """
    needs_matrices("diagonal", x)
    return diagonal_p.public(x, offset=offset)


def diagonal_of(x: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return the diagonals of the matrices that two axes of `x` make, a view."""
    needs_matrices("diagonal", x)
    ndim = len(x.shape)
    first, second = (normalize_axis("diagonal", d, ndim) for d in (dim1, dim2))
    if first == second:
        raise ArgumentError(f"diagonal: two different dimensions required, got {dim1} and {dim2}")
    if (first, second) == (ndim - 2, ndim - 1):
        return diagonal_p.public(x, offset=offset)
    others = [i for i in range(ndim) if i not in (first, second)]
    return diagonal_p.public(permute_dims(x, (*others, first, second)), offset=offset)


@composition(
    sample((3, 3)),
    sample((2, 3, 4), offset=1),
    sample((2, 2), offset=-7),
    sample((0, 0)),
    reference=(lambda np, x, offset=0: np.trace(x, offset, -2, -1)),
    scalars=False,
    methods="trace",
    numpy="linalg.trace: x offset dtype",
)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Return the sums of the diagonals of a matrix or a stack of matrices.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.trace(pb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(5.)
    """
    needs_matrices("trace", x)
    return reductions.sum(diagonal_p.public(x, offset=offset), axis=-1, dtype=dtype)


# -- triangles -------------------------------------------------------------------------------------
@wrapper_of(tril_p, numpy="tril: m=x k")
def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the elements of matrices on and below the `k`-th diagonal, with zeros above.

    Raises
    ------
    ShapeError
        If there are less than 2 dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tril(pb.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    needs_rank("tril", x, 2)
    return tril_p.public(x, k=k)


@wrapper_of(triu_p, numpy="triu: m=x k")
def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the elements of matrices on and above the `k`-th diagonal, with zeros below.

    Raises
    ------
    ShapeError
        If there are less than 2 dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.triu(pb.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    needs_rank("triu", x, 2)
    return triu_p.public(x, k=k)


@composition(
    sample((2, 3)),
    sample((3, 2), diagonal=-1),
    sample((2,), diagonal=1),
    sample((0,)),
    reference=(lambda np, x, diagonal=0: np.diag(x, diagonal)),
    scalars=False,
    methods="diag",
    numpy="diag: v=x k=diagonal",
)
def diag(x: Any, diagonal: int = 0) -> Tensor:
    """Return a matrix with the vector `x` on its `diagonal`, or the diagonal of the matrix `x`.

    Raises
    ------
    ShapeError
        If `x` is neither a vector nor a matrix.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diag(pb.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    >>> pb.diag(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), diagonal=1)
    tensor([2.])
    """
    needs_tensor("diag", x)
    if len(x.shape) not in (1, 2):
        came = f"{len(x.shape)} dimensions"
        raise ShapeError(compose("diag", "a vector or a matrix required", came, ("x", x)))
    if len(x.shape) == 2:
        copy: Tensor = clone(diagonal_p.public(x, offset=diagonal))
        return copy
    size = x.shape[0] + abs(diagonal)
    return diag_embed_p.public(x, shape=(size, size), offset=diagonal)


# -- writing ---------------------------------------------------------------------------------------
@wrapper_of(
    diag_embed_p,
    call=lambda f, x, **settings: diag_embed_p.public(x, **settings),
    methods="diag_embed",
)
def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return square matrices, in two axes of the result, with `x` on a diagonal of theirs.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diag_embed(pb.tensor([[1.0, 2.0]]))
    tensor([[[1., 0.],
             [0., 2.]]])
    """
    needs_rank("diag_embed", x, 1)
    n = x.shape[-1] + (offset if offset > 0 else -offset)
    matrices: Tensor = diag_embed_p.public(x, shape=(*x.shape[:-1], n, n), offset=offset)
    result = moveaxis(matrices, (-2, -1), (dim1, dim2))
    detach_results((result,), (x,), {})
    return result


@composition(
    sample((2, 2), offset=1),
    sample(()),
    sample((0,)),
    reference=(lambda np, x, offset=0: np.diagflat(x, offset)),
    methods="diagflat",
    numpy="diagflat: v=x k=offset",
)
def diagflat(x: Any, offset: int = 0) -> Tensor:
    """Return a matrix with the elements of `x` on a diagonal.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diagflat(pb.tensor([[1.0], [2.0]]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    return diag(ravel(tensor_of("diagflat", x)), offset)


@composition(
    sample((3, 4), (3,)),
    sample((2, 3, 4), (4, 1), offset=-1, dim1=0, dim2=1),
    scalars=False,
    methods="diagonal_scatter",
)
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return `input` with `src` in the place of a diagonal; see `Tensor.diagonal`.

    Raises
    ------
    ShapeError
        If `src` has not the shape of the diagonal.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diagonal_scatter(pb.zeros(2, 2), pb.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    input, src = tensor_of("diagonal_scatter", input, "input"), tensor_of("diagonal_scatter", src)
    wanted = input.detach().diagonal(offset, dim1, dim2).shape
    needs_shape("diagonal_scatter", input, src, wanted)
    moved = moveaxis(input, (dim1, dim2), (-2, -1))
    placed = diag_embed_p.public(src, shape=moved.shape, offset=offset)
    sizes = {"k": offset, "dtype": "bool", "device": input.device}
    there = asarray(eye(*moved.shape[-2:], **sizes))
    return moveaxis(where(there, placed, moved), (-2, -1), (dim1, dim2))


# -- blocks ----------------------------------------------------------------------------------------
@composition(
    sample((2, 2), (3,)),
    sample((), (0, 1)),
    call=lambda f, x, y: f(x, y),
    reference=(lambda scipy, *blocks: scipy.linalg.block_diag(*blocks)),
)
def block_diag(*tensors: Any) -> Tensor:
    """Return a matrix with matrices one after the other along its diagonal, zeros elsewhere.

    Numbers and vectors count as matrices of one row.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.block_diag(pb.tensor([[1.0, 2.0]]), pb.tensor([[3.0], [4.0]]))
    tensor([[1., 2., 0.],
            [0., 0., 3.],
            [0., 0., 4.]])
    """
    blocks = [tensor_of("block_diag", x, f"tensors[{i}]") for i, x in enumerate(tensors)]
    for i, x in enumerate(blocks):
        if len(x.shape) > 2:
            came = f"{len(x.shape)} dimensions"
            required = "at most 2 dimensions required"
            raise ShapeError(compose("block_diag", required, came, (f"tensors[{i}]", x)))
    blocks = [reshape(x, (1,) * (2 - len(x.shape)) + x.shape) for x in blocks]
    width, done, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        n = x.shape[1]
        rows.append(pad_constant_p.public(x, widths=((0, 0), (done, width - done - n)), value=0))
        done += n
    return concat(rows, axis=0) if rows else zeros((1, 0))


# -- numbers of rows and columns -------------------------------------------------------------------
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = "int64", device: Any = None
) -> Tensor:
    """Return the row and column numbers of the positions on and below a diagonal of a matrix.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _positions("tril_indices", row, col, lambda i, j: j - i <= offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = "int64", device: Any = None
) -> Tensor:
    """Return the row and column numbers of the positions on and above a diagonal of a matrix.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _positions("triu_indices", row, col, lambda i, j: j - i >= offset, dtype, device)


def _positions(op: str, row: int, col: int, chosen: Any, dtype: Any, device: Any) -> Tensor:
    n, m = shape_of(op, (row, col))
    pairs = [(i, j) for i in range(n) for j in range(m) if chosen(i, j)]
    numbers = [[pair[k] for pair in pairs] for k in (0, 1)]
    return tensor(numbers, dtype=dtype, device=device)


register_xp(diagonal, trace, space="linalg")
