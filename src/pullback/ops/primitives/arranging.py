"""Moving elements about: shifts, triangles, tiles, borders, diagonals.

The transpose of padding by zeros is cutting off, which is padding by negative widths: one
operation is its own gradient. A diagonal is read as a view.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.ops.axes import sum_to_shape
from pullback.ops.declare import Primitive, op_for, operation
from pullback.ops.samples import sample
from pullback.ops.windows import padded

# -- another order ---------------------------------------------------------------------------------
roll_p: Primitive = operation(
    "roll",
    lambda xp, x, *, shift, axis: xp.roll(x, shift, axis=axis) if axis else library_of(x).copy(x),
    rules={
        "x": lambda g, shift, axis, xp: op_for(xp, roll_p)(
            g, shift=tuple(-n for n in shift), axis=axis
        )
    },
    samples=(
        sample((3, 2), shift=4, axis=0),
        sample((2, 3), shift=(1, -2), axis=(0, -1)),
        sample((2, 3), shift=2),
        sample((2, 0), shift=1, axis=0),
        sample((), shift=1),
    ),
    doc="Return x with the elements moved on along axes, from the end to the beginning.",
    batch="axis",
    moves=True,
)


# -- triangles and diagonals -----------------------------------------------------------------------
def _triangle(name: str, doc: str) -> Primitive:
    def forward(xp: Any, x: Any, *, k: int = 0) -> Any:
        return getattr(xp, name)(x, k=k)

    return operation(
        name,
        forward,
        rules={"x": lambda g, k, xp: getattr(xp, name)(g, k=k)},
        samples=(sample((3, 4), k=1), sample((2, 3, 2), k=-1), sample((1, 1)), sample((0, 2), k=0)),
        scalars=False,
        batch="leading",
        moves=True,
        doc=doc,
    )


tril_p = _triangle("tril", "Return the lower triangles of matrices.")
triu_p = _triangle("triu", "Return the upper triangles of matrices.")
Shape = tuple[int, ...]


# -- copies ----------------------------------------------------------------------------------------
def _tile(xp: Any, x: Any, *, split: Shape, wide: Shape, shape: Shape) -> Any:
    library = library_of(x)
    return xp.reshape(library.copy(library.broadcast_to(xp.reshape(x, split), wide)), shape)


tile_p = operation(
    "tile",
    _tile,
    rules={
        "x": lambda g, x_shape, split, wide, xp: xp.reshape(
            sum_to_shape(xp.reshape(g, wide), split, xp), x_shape
        )
    },
    samples=(
        sample((2, 3), repetitions=(2, 1)),
        sample((2,), repetitions=(2, 1, 2)),
        sample((2, 1, 2), repetitions=(3,)),
        sample((), repetitions=()),
        sample((0, 2), repetitions=(1, 0)),
    ),
    reference=(lambda np, x, repetitions: np.tile(x, repetitions)),
    doc="Return x in the shape `split`, repeated to `wide`, in the shape `shape`.",
    batch="tile",
    moves=True,
)


Widths = tuple[tuple[int, int], ...]


# -- borders ---------------------------------------------------------------------------------------
def _pad(xp: Any, x: Any, *, widths: Widths, value: Any = 0) -> Any:
    library = library_of(x)
    result = padded(x, widths, value)
    grows = any(low > 0 or high > 0 for low, high in widths)
    return result if grows else library.copy(result)


pad_constant_p: Primitive = operation(
    "pad_constant",
    _pad,
    rules={
        "x": lambda g, widths, xp: op_for(xp, pad_constant_p)(
            g, widths=tuple((-low, -high) for low, high in widths), value=0
        )
    },
    samples=(
        sample((2, 3), widths=((0, 0), (1, 2)), value=1.5),
        sample((3, 4), widths=((1, -1), (-2, 0)), value=0),
        sample((), widths=(), value=0),
        sample((0, 3), widths=((1, 0), (0, -1)), value=2),
    ),
    doc="Return x with widths of one value around each axis; negative widths cut off.",
    batch="pad",
    moves=True,
)


# -- diagonals -------------------------------------------------------------------------------------
def _from_diagonal(xp: Any, g: Any, *, shape: tuple[int, ...], offset: int = 0) -> Any:
    library = library_of(g)
    device = library.native_device(library.device(g))
    zeros = library.zeros(shape, library.dtype(g), device)
    steps = library.xp.arange(g.shape[-1], device=device)
    position = (..., steps + max(-offset, 0), steps + max(offset, 0))
    return library.assign(zeros, position, g)


diag_embed_p = operation(
    "diag_embed",
    _from_diagonal,
    rules={"g": lambda g, offset, xp: op_for(xp, diagonal_p)(g, offset=offset)},
    samples=(
        sample((3,), shape=(3, 4), offset=0),
        sample((2, 3), shape=(2, 3, 4), offset=1),
        sample((0,), shape=(2, 2), offset=-2),
    ),
    scalars=False,
    doc="Return matrices of `shape` with `g` on a diagonal, zeros elsewhere.",
    batch="diag_embed",
    moves=True,
)


diagonal_p: Primitive = operation(
    "diagonal",
    lambda xp, x, *, offset=0: library_of(x).diagonal(x, offset),
    rules={
        "x": lambda g, x_shape, offset, xp: op_for(xp, diag_embed_p)(
            g, shape=x_shape, offset=offset
        )
    },
    view=True,
    samples=(
        sample((3, 4), offset=0),
        sample((2, 3, 3), offset=-1),
        sample((3, 4), offset=2),
        sample((2, 2), offset=5),
        sample((2, 0, 3), offset=0),
    ),
    reference=(lambda np, x, offset: np.diagonal(x, offset, -2, -1)),
    scalars=False,
    doc="Return the diagonal of matrices, a view.",
    batch="leading",
    moves=True,
)
