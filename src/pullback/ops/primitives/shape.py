"""Operations on shape: most return views; their gradients are the way back.

A view here is declared so with ``view=True``; whether it really shares memory is asked of the
array library when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.arrays import library_of
from pullback.errors import ArgumentTypeError, ShapeError
from pullback.ops.axes import sum_to_shape
from pullback.ops.declare import MAY_COPY, operation
from pullback.ops.samples import sample


def _reshape(xp: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    return library_of(x).reshape(x, resolve_shape("reshape", x.shape, shape))[0]


def _reshape_numpy(x: Any, *, shape: tuple[int, ...]) -> Any:
    if shape and min(shape) < -1:  # for NumPy any negative length is an unknown one
        raise ValueError
    return x.reshape(shape)


reshape_p = operation(
    "reshape",
    _reshape,
    numpy_kernel=_reshape_numpy,
    rules={"x": lambda g, x_shape, xp: xp.reshape(g, x_shape)},
    view=MAY_COPY,
    samples=(
        sample((3, 4), shape=(4, 3)),
        sample((3, 4), shape=(12,)),
        sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0)),
    ),
    doc="Return x in another shape.",
    batch="reshape",
    moves=True,
)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    if len(axes) < 3:  # exchanged or not, they are their own inverse
        return axes
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


permute_p = operation(
    "permute permute_dims",
    lambda xp, x, *, axes: xp.permute_dims(x, axes),
    numpy_kernel=lambda x, *, axes: x.transpose(axes),
    rules={"x": lambda g, axes, xp: xp.permute_dims(g, _inverse(axes))},
    view=True,
    samples=(sample((2, 3, 4), axes=(2, 0, 1)), sample((3, 4), axes=(1, 0)), sample((), axes=())),
    doc="Return x with its axes in another order.",
    batch="permute_dims",
    moves=True,
)


broadcast_to_p = operation(
    "broadcast_to",
    lambda xp, x, *, shape: library_of(x).broadcast_to(x, shape),
    rules={"x": lambda g, x_shape, xp: sum_to_shape(g, x_shape, xp)},
    view=True,
    samples=(
        sample((4,), shape=(3, 4)),
        sample((3, 1), shape=(2, 3, 4)),
        sample((), shape=(2, 2)),
        sample((1, 3), shape=(0, 3)),
    ),
    doc="Return x repeated to a larger shape, without copying.",
    batch="broadcast_to",
    moves=True,
)


flip_p = operation(
    "flip",
    lambda xp, x, *, axis: library_of(x).copy(xp.flip(x, axis=axis) if axis else x),
    rules={"x": lambda g, axis, xp: xp.flip(g, axis=axis)},
    samples=(
        sample((3, 4), axis=(0,)),
        sample((3, 4), axis=(0, 1)),
        sample((0, 2), axis=(1,)),
        sample((), axis=()),
    ),
    scalars=False,
    doc="Return x with the order along axes reversed.",
    batch="axis",
    moves=True,
)


# -- arguments -------------------------------------------------------------------------------------
def resolve_shape(op: str, came: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` with a -1 replaced by what the elements of shape `came` leave for it."""
    try:
        wanted = [int(n.__index__()) for n in shape]
    except AttributeError:
        raise ArgumentTypeError(f"{op}: a shape is made of integers, got {shape!r}") from None
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise ShapeError(
            f"{op}: a shape may have one -1 and no other negative, got {tuple(wanted)}"
        )
    came = tuple(came)
    total = math.prod(came)
    if -1 in wanted:
        rest = math.prod(n for n in wanted if n != -1)
        if rest == 0 or total % rest:
            required = f"a shape that {total} elements of shape {came} fill required"
            raise ShapeError(f"{op}: {required}, got {tuple(wanted)}")
        wanted[wanted.index(-1)] = total // rest
    if math.prod(wanted) != total:
        required = f"a shape of {total} elements, as many as shape {came} has, required"
        raise ShapeError(f"{op}: {required}, got {tuple(wanted)}")
    return tuple(wanted)
