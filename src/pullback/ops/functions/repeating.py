"""Repeating elements: shapes brought together, grids, tiles, copies in place.

Repeating is broadcasting: what only broadcasts is a view, the others copy the broadcast view once.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from pullback.arrays import is_array, library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.axes import normalize_axis, to_builtin
from pullback.ops.declare import composition, needs_one_library, needs_tensor, wrapper_of
from pullback.ops.functions.creation import tensor
from pullback.ops.functions.data_types import broadcast_shapes
from pullback.ops.functions.joining import stack
from pullback.ops.functions.manipulation import broadcast_to, ravel, reshape
from pullback.ops.primitives.arranging import tile_p
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.gathering import take_p
from pullback.ops.samples import sample


# -- views -----------------------------------------------------------------------------------------
@composition(
    sample((2, 3), (3,), (1, 1)),
    sample((), (0, 1), (2,)),
    view=True,
    call=lambda f, x, y, z: f(x, y, z),
    multi=True,
    numpy="broadcast_arrays: *args=arrays -> tuple",
)
def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Return views of tensors repeated to the one shape that they broadcast to.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> x, y = pb.broadcast_arrays(pb.zeros(3, 1), pb.zeros(4))
    >>> x.shape, y.shape
    ((3, 4), (3, 4))
    """
    for i, x in enumerate(arrays):
        needs_tensor("broadcast_arrays", x, f"arrays[{i}]")
    named = [(f"arrays[{i}]", x) for i, x in enumerate(arrays)]
    needs_one_library("broadcast_arrays", *named)
    try:
        shape = broadcast_shapes(*(tuple(x.shape) for x in arrays))
    except ShapeError:
        required = "shapes that broadcast to one required"
        raise ShapeError(compose("broadcast_arrays", required, "others", *named)) from None
    return [broadcast_to(x, shape) for x in arrays]


broadcast_tensors = broadcast_arrays


@composition(
    sample((2,), (3,)),
    sample((0,), (2,), indexing="ij"),
    sample((), (3,), indexing="xy"),
    view=True,
    call=lambda f, x, y, **settings: f(x, y, **settings),
    multi=True,
    numpy="meshgrid: *xi=arrays indexing -> tuple",
)
def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid's points, a view of one vector for each of its axes.

    Parameters
    ----------
    *arrays : Tensor
        The coordinates along each axis, vectors, or one list of them; a 0-d tensor is one
        coordinate.
    indexing : str
        ``"ij"``: the i-th axis of the results is that of the i-th vector. ``"xy"``: the first two
        are exchanged, as in a picture.

    Raises
    ------
    ShapeError
        If one has more than one dimension.
    ArgumentError
        If `indexing` is neither.

    Examples
    --------
    >>> import pullback as pb
    >>> x, y = pb.meshgrid(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    >>> y
    tensor([[3., 3.],
            [4., 4.]])
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(compose("meshgrid", "indexing 'xy' or 'ij' required", repr(indexing)))
    if len(arrays) == 1 and isinstance(arrays[0], (tuple, list)):
        arrays = tuple(arrays[0])
    for i, x in enumerate(arrays):
        needs_tensor("meshgrid", x, f"arrays[{i}]")
        if len(x.shape) > 1:
            came = f"{len(x.shape)} dimensions"
            raise ShapeError(compose("meshgrid", "vectors required", came, (f"arrays[{i}]", x)))
    needs_one_library("meshgrid", *((f"arrays[{i}]", x) for i, x in enumerate(arrays)))
    count = len(arrays)
    positions = list(range(count))
    if indexing == "xy" and count > 1:
        positions[:2] = [1, 0]
    shape = [1] * count
    for x, position in zip(arrays, positions, strict=True):
        shape[position] = math.prod(x.shape)
    return [
        broadcast_to(reshape(x, (*(1,) * position, -1, *(1,) * (count - position - 1))), shape)
        for x, position in zip(arrays, positions, strict=True)
    ]


@wrapper_of(
    tile_p, lambda f, x, *, repetitions: f(x, repetitions), numpy="tile: A=x reps=repetitions"
)
def tile(x: Any, repetitions: tuple[int, ...], /) -> Tensor:
    """Return copies of `x` side by side: `repetitions` says how many along each axis.

    Parameters
    ----------
    x : Tensor
    repetitions : tuple of int
        The shorter of it and the shape is filled up with ones in front.

    Raises
    ------
    ArgumentError
        If they are no integers, or negative.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tile(pb.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2., 1., 2.],
            [1., 2., 1., 2.]])
    """
    needs_tensor("tile", x)
    repetitions = to_builtin(repetitions)
    counts = (repetitions,) if isinstance(repetitions, int) else tuple(map(to_builtin, repetitions))
    if any(not hasattr(n, "__index__") or n < 0 for n in counts):
        required = "integers that are not negative required as repetitions"
        raise ArgumentError(compose("tile", required, repr(repetitions), ("x", x)))
    ndim = max(len(counts), len(x.shape))
    counts = (1,) * (ndim - len(counts)) + counts
    lengths = (1,) * (ndim - len(x.shape)) + tuple(x.shape)
    pairs = list(zip(counts, lengths, strict=True))
    return tile_p.public(
        x,
        split=tuple(part for n in lengths for part in (1, n)),
        wide=tuple(part for pair in pairs for part in pair),
        shape=tuple(count * n for count, n in pairs),
    )


@composition(
    sample((2, 3), repeats=2),
    sample((2, 3), repeats=2, axis=0),
    sample((2, 3), repeats=(2, 0, 1), axis=-1),
    sample((), repeats=3),
    sample((0, 2), repeats=2, axis=0),
    call=lambda f, x, *, repeats, **settings: f(x, repeats, **settings),
    numpy="repeat: a=x repeats axis",
)
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Return `x` with each element, or each slice along `axis`, repeated in its place.

    Parameters
    ----------
    x : Tensor
    repeats : int, or Tensor or sequence of int
        How often; one number for all, or one for each.
    axis : int, optional
        By default `x` is made flat first.

    Raises
    ------
    ArgumentError
        If a number is negative.
    ShapeError
        If there is not one number for each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.repeat(pb.tensor([1.0, 2.0]), 2)
    tensor([1., 1., 2., 2.])
    >>> pb.repeat(pb.tensor([1.0, 2.0]), pb.tensor([1, 3]))
    tensor([1., 2., 2., 2.])
    """
    row = tensor_of("repeat", x)
    if axis is None:
        row, axis = reshape(row, (-1,)), 0
    axis = normalize_axis("repeat", axis, len(row.shape))
    if not row.shape:
        row = reshape(row, (1,))
    counts = _counts(row, repeats, axis)
    shape = row.shape
    if isinstance(counts, int):
        lead, rest = shape[: axis + 1], shape[axis + 1 :]
        final = (*shape[:axis], shape[axis] * counts, *rest)
        return tile_p.public(row, split=(*lead, 1, *rest), wide=(*lead, counts, *rest), shape=final)
    result: Tensor = row[(*(slice(None),) * axis, counts)]
    return result


def _counts(x: Tensor, repeats: Any, axis: int) -> Any:
    """Return how often to repeat, one integer; or which slice to read for each of the result's."""
    array = x.data_array()
    library, length = library_of(array), array.shape[axis]
    if isinstance(repeats, Tensor):
        repeats = repeats.data_array()
    if is_array(repeats):
        if library_of(repeats).dtype(repeats).kind not in "iu":
            required = "integers required as 'repeats'"
            came = library_of(repeats).dtype(repeats).name
            raise ArgumentTypeError(compose("repeat", required, came, ("x", x)))
        repeats = library_of(repeats).to_numpy(repeats).tolist()
    counts = list(repeats) if isinstance(repeats, (list, tuple)) else [repeats]
    if any(not hasattr(n, "__index__") for n in counts):
        required = "integers in one dimension required as 'repeats'"
        raise ArgumentTypeError(compose("repeat", required, repr(repeats), ("x", x)))
    if any(n < 0 for n in counts):
        required = "numbers that are not negative required as 'repeats'"
        raise ArgumentError(compose("repeat", required, repr(repeats), ("x", x)))
    if len(counts) == 1:
        return int(counts[0])
    if len(counts) != length:
        required = f"one number or {length}, the length of axis {axis}, required as 'repeats'"
        raise ShapeError(compose("repeat", required, str(len(counts)), ("x", x)))
    device = library.native_device(library.device(array))
    which = [i for i, n in enumerate(counts) for _ in range(n)]  # the library's repeat may be ours
    return box(library.xp.asarray(which, dtype=library.xp.int64, device=device))


@composition(
    sample((2, 3), repeats=2, dim=1),
    reference=(lambda np, x, repeats, dim: np.repeat(x, repeats, dim)),
    scalars=False,
    methods="repeat_interleave",
)
def repeat_interleave(x: Any, repeats: Any, dim: int | None = None) -> Tensor:
    """Return `x` with each element repeated in its place: PyTorch's name of `repeat`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.repeat_interleave(pb.tensor([1.0, 2.0]), 2)
    tensor([1., 1., 2., 2.])
    """
    return repeat(x, repeats, axis=dim)


# -- grids -----------------------------------------------------------------------------------------
@composition(sample((2,), (3,)), sample((0,), (2,)), call=lambda f, x, y: f(x, y), scalars=False)
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


@composition(sample((4,)), sample((3,), r=3, with_replacement=True), sample((0,)), scalars=False)
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
    positions = reshape(tensor(rows, dtype="int64", device=x.device), (len(rows), r))
    return take_p.public(x, positions, axis=0)
