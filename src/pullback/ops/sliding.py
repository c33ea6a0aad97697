"""Sliding windows along one axis of a tensor: PyTorch's method `Tensor.unfold`."""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import Operation, face, needs_tensor, on, operation, sample


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


windows_along: Operation = operation(
    "unfoldDim",
    _windows,
    rules={
        "x": lambda g, x_shape, axis, step, xp: on(xp, windows_added)(
            g, axis=axis, step=step, shape=x_shape
        )
    },
    samples=(
        sample((5,), dimension=0, size=3, step=1),
        sample((6, 2), dimension=-2, size=2, step=3),
        sample((2, 1, 4), dimension=2, size=3, step=2),
        sample((0, 2), dimension=1, size=1, step=1),
    ),
    doc="Return the windows along an axis, their elements along a new last axis.",
)
windows_added: Operation = operation(
    "foldDim",
    _added,
    rules={
        "x": lambda g, x_shape, axis, step, xp: on(xp, windows_along)(
            g, axis=axis, size=x_shape[-1], step=step
        )
    },
    samples=(
        sample((3, 2), axis=0, step=1, shape=(4,)),
        sample((2, 2, 3), axis=1, step=2, shape=(2, 6)),
    ),
    doc="Return windows added up in their places along an axis.",
)


@face(windows_along)
def unfold_along(x: Any, dimension: int, size: int, step: int) -> Tensor:
    """Return the windows of `size` elements along a dimension, one every `step` elements.

    An element that is in several windows gets the sum of their gradients.

    Parameters
    ----------
    x : Tensor
    dimension, size, step : int

    Returns
    -------
    Tensor
        A copy, with the number of the window along `dimension` and its elements along a new last
        dimension.

    Raises
    ------
    ArgumentError
        If the size is negative or larger than the dimension, or the step not positive.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensor([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1)
    tensor([[1., 2.],
            [2., 3.],
            [3., 4.]])
    """
    needs_tensor("unfold", x)
    axis = normalize_axis("unfold", dimension, len(x.shape))
    length = x.shape[axis] if x.shape else 1
    if not 0 <= size <= length:
        required = f"a size from 0 to {length}, the length of axis {axis}, required"
        raise ArgumentError(compose("unfold", required, str(size), ("x", x)))
    if step < 1:
        raise ArgumentError(compose("unfold", "a step of at least 1 required", str(step)))
    return windows_along(x, axis=axis, size=size, step=step)
