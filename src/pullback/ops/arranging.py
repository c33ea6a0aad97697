"""Putting tensors together and into each other: diagonals, blocks, grids, and writing a part.

None of it is in place: what writes a part returns a copy that has it. Pixels are moved between
channels and places by the sub-pixel convolution of Shi et al. (2016).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, TensorIndexError, compose
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import composition, face, grid, integers, sample
from pullback.ops._values import needs_whole, take_slices
from pullback.ops.conversion import clone
from pullback.ops.diagonals import from_diagonal
from pullback.ops.elementwise import floor_divide, remainder, where
from pullback.ops.filled import shape_of
from pullback.ops.joining import cat, concat, stack, tensor_split, vstack
from pullback.ops.manipulation import diag, moveaxis, needs_rank, ravel
from pullback.ops.padding import pad_constant
from pullback.ops.repeating import meshgrid
from pullback.ops.shape import permute_dims, reshape, tensor_of
from pullback.ops.sorting import nonzero

__all__ = [
    "argwhere",
    "block_diag",
    "cartesian_prod",
    "channel_shuffle",
    "combinations",
    "concatenate",
    "diag_embed",
    "diagflat",
    "diagonal_scatter",
    "dsplit",
    "hsplit",
    "pixel_shuffle",
    "pixel_unshuffle",
    "row_stack",
    "select_scatter",
    "slice_scatter",
    "tril_indices",
    "triu_indices",
    "unravel_index",
    "vsplit",
]


# -- diagonals -------------------------------------------------------------------------------------
@face(from_diagonal, call=from_diagonal)
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
    matrices: Tensor = from_diagonal(x, shape=(*x.shape[:-1], n, n), offset=offset)
    return moveaxis(matrices, (-2, -1), (dim1, dim2))


@composition(sample((2, 2), offset=1), sample(()), sample((0,)))
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


@composition(sample((3, 4), (3,)), sample((2, 3, 4), (4, 1), offset=-1, dim1=0, dim2=1))
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
    _fits("diagonal_scatter", input, src, wanted)
    moved = moveaxis(input, (dim1, dim2), (-2, -1))
    placed = from_diagonal(src, shape=moved.shape, offset=offset)
    sizes = {"k": offset, "dtype": "bool", "device": input.device}
    there = TENSORS.asarray(TENSORS.eye(*moved.shape[-2:], **sizes))
    return moveaxis(where(there, placed, moved), (-2, -1), (dim1, dim2))


@composition(sample((2, 2), (3,)), sample((), (0, 1)), call=lambda x, y: TENSORS.block_diag(x, y))
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
        rows.append(pad_constant(x, widths=((0, 0), (done, width - done - n)), value=0))
        done += n
    return concat(rows, axis=0) if rows else TENSORS.zeros((1, 0))


# -- grids -----------------------------------------------------------------------------------------
@composition(sample((2,), (3,)), sample((0,), (2,)), call=lambda x, y: TENSORS.cartesian_prod(x, y))
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return every combination of one element of each vector, a row each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cartesian_prod(pb.tensor([1, 2]), pb.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    if len(tensors) == 1:
        return clone(tensors[0])
    columns = [ravel(x) for x in meshgrid(*tensors, indexing="ij")]
    return stack(columns, axis=1)


@composition(sample((4,)), sample((3,), r=3, with_replacement=True), sample((0,)))
def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return every choice of `r` elements of a vector, in their order, a row each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.combinations(pb.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x = tensor_of("combinations", x)
    if len(x.shape) != 1:
        came = f"{len(x.shape)} dimensions"
        raise ShapeError(compose("combinations", "a vector required", came, ("x", x)))
    if r < 0:
        raise ArgumentError(compose("combinations", "r of at least 0 required", str(r)))
    chosen = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [list(row) for row in chosen(range(x.shape[0]), r)]
    places = reshape(TENSORS.tensor(rows, dtype="int64", device=x.device), (len(rows), r))
    return take_slices(x, places, axis=0)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = "int64", device: Any = None
) -> Tensor:
    """Return the row and column numbers of the places on and below a diagonal of a matrix.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _places("tril_indices", row, col, lambda i, j: j - i <= offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = "int64", device: Any = None
) -> Tensor:
    """Return the row and column numbers of the places on and above a diagonal of a matrix.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _places("triu_indices", row, col, lambda i, j: j - i >= offset, dtype, device)


def _places(op: str, row: int, col: int, chosen: Any, dtype: Any, device: Any) -> Tensor:
    n, m = shape_of(op, (row, col))
    pairs = [(i, j) for i in range(n) for j in range(m) if chosen(i, j)]
    numbers = [[pair[k] for pair in pairs] for k in (0, 1)]
    return TENSORS.tensor(numbers, dtype=dtype, device=device)  # type: ignore[no-any-return]


@composition(
    sample((3,), shape=(2, 3)),
    sample((), shape=(4, 1, 2)),
    sample((0, 2), shape=(3,)),
    domain=integers(0, 2),
    differentiable=False,
    multi=True,
)
def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Return, of numbers that count the elements of a shape, the index along each axis.

    Raises
    ------
    TensorIndexError, DTypeError
        If a number is negative or too large, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unravel_index(pb.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    lengths = shape_of("unravel_index", (shape,))
    needs_whole("unravel_index", "indices", indices)
    rest, size = tensor_of("unravel_index", indices, "indices"), math.prod(lengths)
    low, high = (int(rest.min()), int(rest.max())) if rest.numel() else (0, -1)
    if low < 0 or high >= size:
        required = f"numbers from 0 to {size - 1} required"
        came = str(low if low < 0 else high)
        raise TensorIndexError(compose("unravel_index", required, came, ("indices", indices)))
    found = []
    for n in reversed(lengths):
        found.append(remainder(rest, n))
        rest = floor_divide(rest, n)
    return tuple(reversed(found))


@composition(sample((3, 4)), sample((3,)), sample((0, 2)), domain=grid(-1, 1), differentiable=False)
def argwhere(x: Any) -> Tensor:
    """Return the indices of what is not 0, a row each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.argwhere(pb.tensor([[0.0, 3.0], [4.0, 0.0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    x = tensor_of("argwhere", x)
    if x.shape:
        return stack(nonzero(x), axis=1)
    return stack(nonzero(reshape(x, (1,))), axis=1)[:, :0]  # so many rows of no index


# -- writing a part --------------------------------------------------------------------------------
def _fits(op: str, input: Any, src: Any, wanted: tuple[int, ...]) -> None:
    if tuple(src.shape) != tuple(wanted):
        required = f"a src of shape {tuple(wanted)}, that of the part, required"
        raise ShapeError(
            compose(op, required, str(tuple(src.shape)), ("input", input), ("src", src))
        )


def _with_part(op: str, input: Any, src: Any, place: tuple[Any, ...]) -> Tensor:
    """Return a copy of `input` with `src` at a basic index."""
    src = tensor_of(op, src, "src")
    _fits(op, input, src, input.detach()[place].shape)
    result: Tensor = clone(input)
    result[place] = src
    return result


@composition(sample((2, 3), (2,), dim=-1, index=1), sample((3,), (), dim=0, index=-1))
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Tensor:
    """Return `input` with `src` in the place of one slice along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.select_scatter(pb.zeros(2, 2), pb.tensor([1.0, 2.0]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """
    input = tensor_of("select_scatter", input, "input")
    axis = normalize_axis("select_scatter", dim, len(input.shape))
    return _with_part("select_scatter", input, src, (*(slice(None),) * axis, index))


@composition(
    sample((2, 4), (2, 2), dim=-1, start=1, step=2), sample((3,), (2,), end=2), sample((2,), (2,))
)
def slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return `input` with `src` in the place of the slices ``start:end:step`` along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.slice_scatter(pb.zeros(3), pb.tensor([1.0, 2.0]), start=1)
    tensor([0., 1., 2.])
    """
    input = tensor_of("slice_scatter", input, "input")
    axis = normalize_axis("slice_scatter", dim, len(input.shape))
    place = (*(slice(None),) * axis, slice(start, end, step))
    return _with_part("slice_scatter", input, src, place)


# -- splitting along the first axes ----------------------------------------------------------------
@composition(
    sample((4,), indices_or_sections=2), sample((2, 3), indices_or_sections=(1,)), multi=True
)
def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> Any:
    """Return the parts of `x` along axis 1, of a vector along its only one; see `tensor_split`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hsplit(pb.tensor([1.0, 2.0]), 2)
    (tensor([1.]), tensor([2.]))
    """
    needs_rank("hsplit", x, 1)
    return _equal_parts("hsplit", x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


@composition(sample((4, 1), indices_or_sections=2), multi=True)
def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> Any:
    """Return the parts of `x` along axis 0; see `tensor_split`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vsplit(pb.tensor([[1.0], [2.0]]), 2)
    (tensor([[1.]]), tensor([[2.]]))
    """
    needs_rank("vsplit", x, 2)
    return _equal_parts("vsplit", x, indices_or_sections, 0)


@composition(sample((1, 2, 3), indices_or_sections=(1, 2)), multi=True)
def dsplit(x: Any, indices_or_sections: int | Sequence[int]) -> Any:
    """Return the parts of `x` along axis 2; see `tensor_split`.

    Examples
    --------
    >>> import pullback as pb
    >>> [part.shape for part in pb.dsplit(pb.zeros(1, 1, 4), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    needs_rank("dsplit", x, 3)
    return _equal_parts("dsplit", x, indices_or_sections, 2)


def _equal_parts(op: str, x: Any, parts: Any, axis: int) -> Any:
    if isinstance(parts, int) and (parts < 1 or x.shape[axis] % parts):
        required = f"a number of parts that divides the length {x.shape[axis]} required"
        raise ArgumentError(compose(op, required, str(parts), ("x", x)))
    return tensor_split(x, parts, axis)


# -- pixels ----------------------------------------------------------------------------------------
def _image(op: str, x: Any, factor: int) -> Tensor:
    needs_rank(op, x, 3)
    if factor < 1:
        raise ArgumentError(compose(op, "a factor of at least 1 required", str(factor)))
    return tensor_of(op, x)


@composition(sample((1, 4, 1, 2), upscale_factor=2), sample((0, 1, 3), upscale_factor=1))
def pixel_shuffle(x: Any, upscale_factor: int) -> Tensor:
    """Return images larger by a factor, with r * r channels become r by r pixels.

    Parameters
    ----------
    x : Tensor, shape (..., C * r * r, H, W)
    upscale_factor : int
        The factor r.

    Returns
    -------
    Tensor, shape (..., C, H * r, W * r)

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pixel_shuffle(pb.tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    r, x = upscale_factor, _image("pixel_shuffle", x, upscale_factor)
    *lead, c, h, w = x.shape
    if c % (r * r):
        required = f"channels in groups of {r * r} required"
        raise ShapeError(compose("pixel_shuffle", required, str(c), ("x", x)))
    b = len(lead)
    parts = reshape(x, (*lead, c // (r * r), r, r, h, w))
    order = (*range(b), b, b + 3, b + 1, b + 4, b + 2)
    return reshape(permute_dims(parts, order), (*lead, c // (r * r), h * r, w * r))


@composition(sample((1, 1, 2, 4), downscale_factor=2))
def pixel_unshuffle(x: Any, downscale_factor: int) -> Tensor:
    """Return images smaller by a factor, with r by r pixels become r * r channels.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pixel_unshuffle(pb.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2).shape
    (4, 1, 1)
    """
    r, x = downscale_factor, _image("pixel_unshuffle", x, downscale_factor)
    *lead, c, h, w = x.shape
    if h % r or w % r:
        required = f"lengths that {r} divides required"
        raise ShapeError(compose("pixel_unshuffle", required, f"{h} and {w}", ("x", x)))
    b = len(lead)
    parts = reshape(x, (*lead, c, h // r, r, w // r, r))
    order = (*range(b), b, b + 2, b + 4, b + 1, b + 3)
    return reshape(permute_dims(parts, order), (*lead, c * r * r, h // r, w // r))


@composition(sample((1, 4, 2), groups=2))
def channel_shuffle(x: Any, groups: int) -> Tensor:
    """Return `x` with the channels of axis 1 dealt out: one of each group after the other.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.channel_shuffle(pb.tensor([[[1.0], [2.0], [3.0], [4.0]]]), 2).ravel()
    tensor([1., 3., 2., 4.])
    """
    x = tensor_of("channel_shuffle", x)
    needs_rank("channel_shuffle", x, 2)
    n, c, *rest = x.shape
    if groups < 1 or c % groups:
        required = f"a number of groups that divides the {c} channels required"
        raise ArgumentError(compose("channel_shuffle", required, str(groups), ("x", x)))
    parts = reshape(x, (n, groups, c // groups, *rest))
    return reshape(parts.transpose(1, 2), (n, c, *rest))


concatenate, row_stack = cat, vstack
