"""Sliding windows: taking them out (unfold), adding them up (fold), and their geometry.

What convolutions and pooling build on. Inside this package paddings are exact: along an axis of
length L with `padding` (low, high), the `count` windows of `size` elements fill
``low + L + high == (count - 1) * stride + dilation * (size - 1) + 1``. So a high padding may be
negative, which leaves out the elements that no window reaches.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops._declare import Operation, face, needs_tensor, on, operation, sample

__all__ = [
    "fold",
    "unfold",
]

Ints = tuple[int, ...]


class Geometry(NamedTuple):
    """Where windows lie along each of the last axes of an array.

    Attributes
    ----------
    stride : tuple of int
        From one window to the next.
    dilation : tuple of int
        From one element of a window to the next.
    padding : tuple of (int, int)
        What is added before and after the elements.
    """

    stride: Ints
    dilation: Ints
    padding: tuple[tuple[int, int], ...]


# -- arguments -------------------------------------------------------------------------------------
def per_axis(op: str, name: str, value: Any, n: int, least: int = 1) -> Ints:
    """Return one integer an axis, from one for all of them or a sequence."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) == 1:
        values *= n
    if any(isinstance(v, bool) or not hasattr(v, "__index__") for v in values):
        required = f"'{name}' must be an integer or a tuple of {n}"
        raise ArgumentTypeError(compose(op, required, repr(value)))
    if len(values) != n or min(values) < least:
        required = f"'{name}' must be an integer of at least {least} or a tuple of {n}"
        raise ArgumentError(compose(op, required, repr(value)))
    return tuple(int(v) for v in values)


def needs_rank(op: str, x: Any, dims: tuple[str, ...], name: str = "input") -> None:
    """Raise where `x` has neither the axes `dims` nor those without the batch."""
    needs_tensor(op, x, name)
    if len(x.shape) not in (len(dims), len(dims) - 1):
        required = f"an {name} of shape ({', '.join(dims)}) or ({', '.join(dims[1:])}) required"
        raise ShapeError(compose(op, required, f"{len(x.shape)} dimensions", (name, x)))


def exact(op: str, x: Any, sizes: Ints, geometry: Geometry, ceil: bool = False) -> Geometry:
    """Return the geometry with which the windows of the last axes of `x` end where it ends.

    `ceil`: a last window may reach beyond the padding if it begins before it.

    Raises
    ------
    ShapeError
        If not one window fits.
    """
    found = []
    first = len(x.shape) - len(sizes)
    axes = zip(x.shape[first:], sizes, *geometry, strict=True)
    for axis, (length, size, step, d, (low, high)) in enumerate(axes, first):
        span, room = d * (size - 1) + 1, low + length + high
        count = (room - span + (step - 1) * ceil) // step + 1
        if ceil and (count - 1) * step >= low + length:
            count -= 1
        if count < 1:
            required = f"windows of at most {room} elements along axis {axis} required"
            hint = "pad the input, or take a smaller kernel or dilation"
            raise ShapeError(compose(op, required, str(span), ("input", x), hint=hint))
        found.append((low, (count - 1) * step + span - low - length))
    return geometry._replace(padding=tuple(found))


def counts(lengths: Ints, sizes: Ints, geometry: Geometry) -> Ints:
    """Return how many windows there are along each axis."""
    axes = zip(lengths, sizes, *geometry, strict=True)
    return tuple((n + sum(pads) - d * (k - 1) - 1) // step + 1 for n, k, step, d, pads in axes)


# -- arrays ----------------------------------------------------------------------------------------
def padded(x: Any, padding: tuple[tuple[int, int], ...], value: Any = 0) -> Any:
    """Return an array with `value` around its last axes; a negative padding cuts off."""
    if not any(low or high for low, high in padding):
        return x
    library, lead = library_of(x), len(x.shape) - len(padding)
    ends = list(zip(x.shape[lead:], padding, strict=True))
    cut = tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in ends)
    inner = library.getitem(x, (..., *cut))
    if all(low <= 0 and high <= 0 for low, high in padding):
        return inner
    dtype, device = library.dtype(x), library.native_device(library.device(x))
    shape = (*x.shape[:lead], *(n + low + high for n, (low, high) in ends))
    starts = [(max(low, 0), n) for n, (low, _) in zip(inner.shape[lead:], padding, strict=True)]
    place = (..., *(slice(start, start + n) for start, n in starts))
    return library.assign(library.full(shape, value, dtype, device), place, inner)


def _turned(xp: Any, x: Any, n: int) -> Any:
    """Return `x` with its last n axes and the n before them exchanged."""
    lead = len(x.shape) - 2 * n
    order = (*range(lead), *range(lead + n, lead + 2 * n), *range(lead, lead + n))
    return xp.permute_dims(x, order)


def columns(xp: Any, x: Any, sizes: Ints, geometry: Geometry) -> Any:
    """Return the windows of an array (..., *lengths) as (..., *sizes, *counts)."""
    wide = padded(x, geometry.padding)
    windows = library_of(x).windows(wide, sizes, geometry.stride, geometry.dilation)
    return _turned(xp, windows, len(sizes))


def added(xp: Any, x: Any, lengths: Ints, geometry: Geometry) -> Any:
    """Return windows (..., *sizes, *counts) added up to (..., *lengths)."""
    windows = _turned(xp, x, len(lengths))
    starts = tuple(-low for low, _ in geometry.padding)
    return library_of(x).fold(windows, lengths, geometry.stride, geometry.dilation, starts)


# -- unfold and fold -------------------------------------------------------------------------------
def _unfold(xp: Any, x: Any, *, sizes: Ints, geometry: Geometry) -> Any:
    n = len(sizes)
    array = columns(xp, x, sizes, geometry)
    *lead, channels = x.shape[:-n]
    shape = (*lead, channels * math.prod(sizes), math.prod(array.shape[-n:]))
    return xp.reshape(array, shape, copy=True)


def _fold(xp: Any, x: Any, *, lengths: Ints, sizes: Ints, geometry: Geometry) -> Any:
    *lead, rows, _ = x.shape
    shape = (*lead, rows // math.prod(sizes), *sizes, *counts(lengths, sizes, geometry))
    return added(xp, xp.reshape(x, shape), lengths, geometry)


unfold_: Operation = operation(
    "unfold",
    _unfold,
    rules={
        "x": lambda g, x_shape, sizes, geometry, xp: on(xp, fold_)(
            g, lengths=x_shape[-len(sizes) :], sizes=sizes, geometry=geometry
        )
    },
    samples=(
        sample((2, 4, 3), kernel_size=2),
        sample((1, 1, 4, 4), kernel_size=(2, 3), stride=2, padding=(0, 1)),
        sample((1, 4, 4), kernel_size=2, dilation=(2, 1), stride=(1, 2)),
        sample((1, 2, 2, 2), kernel_size=1),
        sample((0, 2, 3, 3), kernel_size=2),
    ),
    doc="Return sliding windows as columns.",
)
fold_: Operation = operation(
    "fold",
    _fold,
    rules={"x": lambda g, sizes, geometry, xp: on(xp, unfold_)(g, sizes=sizes, geometry=geometry)},
    samples=(
        sample((4, 4), output_size=3, kernel_size=2),
        sample((1, 6, 4), output_size=(4, 4), kernel_size=(2, 3), stride=2, padding=(0, 1)),
        sample((1, 4, 2), output_size=(3, 4), kernel_size=2, dilation=(2, 1), stride=(1, 2)),
        sample((1, 2, 4), output_size=2, kernel_size=1),
        sample((0, 8, 4), output_size=3, kernel_size=2),
    ),
    doc="Return columns added up to an image.",
)


def _read(
    op: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Ints, Geometry]:
    sizes = per_axis(op, "kernel_size", kernel_size, 2)
    pads = tuple((p, p) for p in per_axis(op, "padding", padding, 2, least=0))
    step, d = per_axis(op, "stride", stride, 2), per_axis(op, "dilation", dilation, 2)
    return sizes, Geometry(step, d, pads)


@face(unfold_)
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return the windows of images as columns: what a convolution multiplies by its weight.

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    kernel_size, dilation, padding, stride : int or tuple of two int
        The size of a window, the distance of its elements, the zeros added on each side, the
        distance of windows.

    Returns
    -------
    Tensor of shape (N, C * kernel height * kernel width, number of windows)

    Raises
    ------
    ShapeError
        If the input has another rank, or no window fits.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])
    >>> pb.unfold(x, kernel_size=2)
    tensor([[1., 2.],
            [2., 3.],
            [4., 5.],
            [5., 6.]])
    """
    needs_rank("unfold", input, ("N", "C", "H", "W"))
    sizes, geometry = _read("unfold", kernel_size, dilation, padding, stride)
    return unfold_(input, sizes=sizes, geometry=exact("unfold", input, sizes, geometry))


@face(fold_)
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Add columns, as `unfold` returns them, up to images: overlapping windows sum.

    Parameters
    ----------
    input : Tensor of shape (N, C * kernel height * kernel width, number of windows)
        The batch may be left away.
    output_size : int or tuple of two int
        Height and width of the images.
    kernel_size, dilation, padding, stride : int or tuple of two int
        As for `unfold`.

    Raises
    ------
    ShapeError
        If the input has another rank, or its shape is not that of the windows of such images.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fold(pb.ones((4, 4)), output_size=3, kernel_size=2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    needs_rank("fold", input, ("N", "C * kernel", "windows"))
    sizes, geometry = _read("fold", kernel_size, dilation, padding, stride)
    lengths = per_axis("fold", "output_size", output_size, 2)
    rows, count = math.prod(sizes), math.prod(max(0, n) for n in counts(lengths, sizes, geometry))
    if not count or input.shape[-1] != count or input.shape[-2] % rows:
        required = f"a multiple of {rows} rows and {count} columns, one a window, required"
        raise ShapeError(compose("fold", required, str(input.shape[-2:]), ("input", input)))
    return fold_(input, lengths=lengths, sizes=sizes, geometry=geometry)
