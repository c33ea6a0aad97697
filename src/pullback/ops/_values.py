"""Values with their indices: what PyTorch's max and min along a dimension return."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import NUMPY, library_of
from pullback.core.tensor import Tensor
from pullback.ops import reductions
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import on, operation, sample
from pullback.ops.indexing import scatter_to


class Extremes(NamedTuple):
    """The extreme values along a dimension, and where they were."""

    values: Tensor
    indices: Tensor


def _grid(indices: Any, axis: int, library: Any) -> tuple[Any, ...]:
    """Return the index that reads, for each row along `axis`, the element `indices` names."""
    xp = library.xp
    shape = indices.shape
    parts = []
    for i, n in enumerate(shape):
        steps = xp.reshape(xp.arange(n), (1,) * i + (n,) + (1,) * (len(shape) - i - 1))
        parts.append(indices if i == axis else xp.broadcast_to(steps, shape))
    return tuple(parts)


def _take_along(xp: Any, x: Any, *, indices: Any, axis: int) -> Any:
    library = library_of(x)
    return library.getitem(x, _grid(indices, axis, library))


take_along = operation(
    "take_along_axis",
    _take_along,
    rules={
        "x": lambda g, indices, axis, x_shape, xp: on(xp, scatter_to)(
            g, index=_grid(indices, axis, library_of(indices)), shape=x_shape
        )
    },
    samples=(
        sample((3, 4), indices=NUMPY.asarray([[0, 2, 2, 1]]), axis=0),
        sample((3, 4), indices=NUMPY.asarray([[3], [0], [0]]), axis=1),
    ),
    doc="Return the elements at indices along an axis.",
)


def values_and_indices(x: Tensor, name: str, dim: int, keepdims: bool) -> Extremes:
    """Return the largest or smallest elements along `dim` and their (first) places."""
    axis = normalize_axis(name, dim, len(x.shape))
    find = reductions.argmax if name == "max" else reductions.argmin
    if not x.shape:
        return Extremes(x.clone(), find(x, axis=None, keepdims=False))
    indices = find(x, axis=axis, keepdims=True)
    values = take_along(x, indices=indices.data_array(), axis=axis)
    if keepdims:
        return Extremes(values, indices)
    return Extremes(values.squeeze(axis), indices.squeeze(axis))
