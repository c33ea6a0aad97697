"""Sliding windows: how they lie along an axis. Arithmetic of integers, shared by all that slides.

Paddings are exact: along an axis of
length L with `padding` (low, high), the `count` windows of `size` elements fill
``low + L + high == (count - 1) * stride + dilation * (size - 1) + 1``. So a high padding may be
negative, which leaves out the elements that no window reaches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import library_of
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops.declare import needs_tensor

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
    result = []
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
        result.append((low, (count - 1) * step + span - low - length))
    return geometry._replace(padding=tuple(result))


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
    position = (..., *(slice(start, start + n) for start, n in starts))
    return library.assign(library.full(shape, value, dtype, device), position, inner)


def begins_of(lengths: Ints, sizes: Ints, geometry: Geometry) -> list[list[int]]:
    """Return where the windows along each axis begin; in the padding that is below 0."""
    axes = zip(counts(lengths, sizes, geometry), geometry.stride, geometry.padding, strict=True)
    return [[i * step - low for i in range(count)] for count, step, (low, _) in axes]


def firsts_of(begins: list[list[int]], dilation: Ints) -> list[list[int]]:
    """Return the first element of each window that is not in the padding before the elements."""
    return [
        [max(b, b % d) for b in positions] for positions, d in zip(begins, dilation, strict=True)
    ]
