"""Diagonals of matrices: reading them as views, writing them, and the trace."""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import Operation, composition, face, on, operation, sample
from pullback.ops._matrices import in_linalg, needs_matrices
from pullback.ops.reductions import sum as sum_over
from pullback.ops.shape import permute_dims

__all__ = [
    "diagonal",
    "trace",
]


def _from_diagonal(xp: Any, g: Any, *, shape: tuple[int, ...], offset: int = 0) -> Any:
    library = library_of(g)
    device = library.native_device(library.device(g))
    zeros = library.zeros(shape, library.dtype(g), device)
    steps = library.xp.arange(g.shape[-1], device=device)
    place = (..., steps + max(-offset, 0), steps + max(offset, 0))
    return library.assign(zeros, place, g)


from_diagonal = operation(
    "diag_embed",
    _from_diagonal,
    rules={"g": lambda g, offset, xp: on(xp, diagonal_)(g, offset=offset)},
    samples=(
        sample((3,), shape=(3, 4), offset=0),
        sample((2, 3), shape=(2, 3, 4), offset=1),
        sample((0,), shape=(2, 2), offset=-2),
    ),
    doc="Return matrices of `shape` with `g` on a diagonal, zeros elsewhere.",
)
diagonal_: Operation = operation(
    "diagonal",
    lambda xp, x, *, offset=0: library_of(x).diagonal(x, offset),
    rules={
        "x": lambda g, x_shape, offset, xp: on(xp, from_diagonal)(g, shape=x_shape, offset=offset)
    },
    view=True,
    samples=(
        sample((3, 4), offset=0),
        sample((2, 3, 3), offset=-1),
        sample((3, 4), offset=2),
        sample((2, 2), offset=5),
        sample((2, 0, 3), offset=0),
    ),
    doc="Return the diagonal of matrices, a view.",
)


@face(diagonal_)
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
    return diagonal_(x, offset=offset)


def diagonal_of(x: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return the diagonals of the matrices that two axes of `x` make, a view."""
    needs_matrices("diagonal", x)
    ndim = len(x.shape)
    first, second = (normalize_axis("diagonal", d, ndim) for d in (dim1, dim2))
    if first == second:
        raise ArgumentError(f"diagonal: two different dimensions required, got {dim1} and {dim2}")
    if (first, second) == (ndim - 2, ndim - 1):
        return diagonal_(x, offset=offset)
    others = [i for i in range(ndim) if i not in (first, second)]
    return diagonal_(permute_dims(x, (*others, first, second)), offset=offset)


@composition(
    sample((3, 3)),
    sample((2, 3, 4), offset=1),
    sample((2, 2), offset=-7),
    sample((0, 0)),
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
    return sum_over(diagonal_(x, offset=offset), axis=-1, dtype=dtype)


in_linalg(diagonal, trace)
