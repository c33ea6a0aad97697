"""Sliding windows along one axis, and the sum that is the gradient of taking them."""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.ops.declare import Primitive, op_for, operation
from pullback.ops.samples import sample


def _windows(xp: Any, x: Any, *, axis: int, size: int, step: int) -> Any:
    library = library_of(x)
    if not x.shape:
        return library.copy(xp.reshape(x, (1,))[:size])
    return library.copy(_moved(library, xp.moveaxis(x, axis, -1), size, step, axis))


def _moved(library: Any, x: Any, size: int, step: int, axis: int) -> Any:
    windows = library.windows(x, (size,), (step,), (1,))
    return library.xp.moveaxis(windows, -2, axis)


def _added(xp: Any, x: Any, *, axis: int, step: int, shape: tuple[int, ...]) -> Any:
    library = library_of(x)
    if not shape:
        return xp.sum(x)
    sums = library.fold(xp.moveaxis(x, axis, -2), (shape[axis],), (step,), (1,), (0,))
    return library.copy(xp.moveaxis(sums, -1, axis))


unfold_dim_p: Primitive = operation(
    "unfoldDim",
    _windows,
    rules={
        "x": lambda g, x_shape, axis, step, xp: op_for(xp, fold_dim_p)(
            g, axis=axis, step=step, shape=x_shape
        )
    },
    samples=(
        sample((5,), dimension=0, size=3, step=1),
        sample((6, 2), dimension=-2, size=2, step=3),
        sample((2, 1, 4), dimension=2, size=3, step=2),
        sample((0, 2), dimension=1, size=1, step=1),
    ),
    scalars=False,
    doc="Return the windows along an axis, their elements along a new last axis.",
    batch="axis",
)


fold_dim_p: Primitive = operation(
    "foldDim",
    _added,
    rules={
        "x": lambda g, x_shape, axis, step, xp: op_for(xp, unfold_dim_p)(
            g, axis=axis, size=x_shape[-1], step=step
        )
    },
    samples=(
        sample((3, 2), axis=0, step=1, shape=(4,)),
        sample((2, 2, 3), axis=1, step=2, shape=(2, 6)),
    ),
    scalars=False,
    doc="Return windows added up where they overlap, along an axis.",
    batch="fold_axis",
)
