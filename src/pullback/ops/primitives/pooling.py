"""The operations that pooling is made of: where maxima are, means of windows and their transpose.

Each axis is averaged by itself, so a window of k x k elements costs 2 k additions, not k * k.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.errors import DTypeError, compose
from pullback.ops.declare import Primitive, needs_order, op_for, operation
from pullback.ops.samples import grid, real, sample
from pullback.ops.windows import Geometry, Ints, begins_of, firsts_of, padded


# -- the largest element ---------------------------------------------------------------------------
def _least(library: Any, x: Any) -> Any:
    """Return the number that is no larger than any of the dtype of `x`."""
    dtype = library.dtype(x)
    return -math.inf if dtype.is_inexact else int(library.xp.iinfo(x.dtype).min)


def _offsets(library: Any, x: Any, starts: list[list[int]]) -> Any:
    """Return for each window the number, row by row, of the element at its `starts`."""
    n = len(starts)
    device = library.native_device(library.device(x))
    lengths = x.shape[len(x.shape) - n :]
    total: Any = 0
    for i, positions in enumerate(starts):
        step = math.prod(lengths[i + 1 :])
        array = library.asarray(
            [position * step for position in positions], DTYPES["int64"], device
        )
        total = total + library.xp.reshape(array, (-1, *(1,) * (n - i - 1)))
    return total


def _max_positions(xp: Any, x: Any, *, sizes: Ints, geometry: Geometry) -> Any:
    needs_order("max_pool", x)
    library, n = library_of(x), len(sizes)
    if library.dtype(x).kind == "b":
        hint = "convert it first, for instance with .float()"
        raise DTypeError(compose("max_pool", "numbers required", "bool", ("input", x), hint=hint))
    stride, dilation, padding = geometry
    lengths = x.shape[len(x.shape) - n :]
    begins = begins_of(lengths, sizes, geometry)
    windows = library.windows(padded(x, padding, _least(library, x)), sizes, stride, dilation)
    start = _offsets(library, x, begins)
    # Which element of the window, as the distance from its begin; at first one that is real.
    result: Any = _offsets(library, x, firsts_of(begins, dilation)) - start
    best = windows[(..., *(0,) * n)]
    for offset in itertools.islice(itertools.product(*map(range, sizes)), 1, None):
        value = windows[(..., *offset)]
        better = (value > best) | (value != value)
        best = xp.where(better, value, best)
        steps = [math.prod(lengths[i + 1 :]) * k * dilation[i] for i, k in enumerate(offset)]
        result = xp.where(better, sum(steps), result)
    return xp.broadcast_to(result + start, best.shape)


max_positions_p = operation(
    "max_positions",
    _max_positions,
    differentiable=False,
    domain=grid(-3, 3),
    samples=(
        sample((2, 4, 4), sizes=(2, 2), geometry=Geometry((2, 2), (1, 1), ((0, 0), (0, 0)))),
        sample((1, 5), sizes=(2,), geometry=Geometry((1,), (2,), ((1, 1),))),
        sample((0, 3), sizes=(2,), geometry=Geometry((1,), (1,), ((0, 0),))),
    ),
    result_dtype="int64",
    scalars=False,
    doc="Return the number of the first largest element of each window, row by row.",
    batch="leading",
)


# -- the mean --------------------------------------------------------------------------------------
def _along(i: int, value: int, n: int) -> Ints:
    """Return `value` at axis i of n, and 1 elsewhere."""
    return tuple(value if j == i else 1 for j in range(n))


def _shares(x: Any, divisor: Any) -> Any:
    """Return what to divide the sums of windows by: a number, or one for each window."""
    if not isinstance(divisor, tuple):
        return divisor
    library, n = library_of(x), len(divisor)
    device = library.native_device(library.device(x))
    total: Any = 1
    for i, numbers in enumerate(divisor):
        array = library.asarray(list(numbers), library.dtype(x), device)
        total = total * library.xp.reshape(array, (-1, *(1,) * (n - i - 1)))
    return total


def _mean_windows(xp: Any, x: Any, *, sizes: Ints, geometry: Geometry, divisor: Any) -> Any:
    library, n = library_of(x), len(sizes)
    x = padded(x, geometry.padding)
    for i, (size, step) in enumerate(zip(sizes, geometry.stride, strict=True)):
        windows = library.windows(x, _along(i, size, n), _along(i, step, n), (1,) * n)
        parts = (windows[(..., *(k * (j == i) for j in range(n)))] for k in range(size))
        x = sum(parts, next(parts))
    return x / _shares(x, divisor)


def _spread_windows(
    xp: Any, y: Any, *, lengths: Ints, sizes: Ints, geometry: Geometry, divisor: Any
) -> Any:
    library, n = library_of(y), len(sizes)
    y = y / _shares(y, divisor)
    lead = len(y.shape) - n
    axes = zip(lengths, sizes, geometry.stride, geometry.padding, strict=True)
    for i, (length, size, step, (low, _)) in enumerate(axes):
        windows = xp.reshape(y, (*y.shape, *(1,) * n))
        windows = xp.broadcast_to(windows, (*y.shape, *_along(i, size, n)))
        whole = (*y.shape[lead : lead + i], length, *y.shape[lead + i + 1 :])
        starts = tuple(-low if j == i else 0 for j in range(n))
        y = library.fold(windows, whole, _along(i, step, n), (1,) * n, starts)
    return y


_TWO = {
    "sizes": (2, 2),
    "geometry": Geometry((1, 2), (1, 1), ((1, 0), (0, 1))),
    "divisor": ((1, 2), (2, 1)),
}


_ONE = {"sizes": (1,), "geometry": Geometry((1,), (1,), ((0, 0),)), "divisor": 1}


mean_windows_p: Primitive = operation(
    "mean_windows",
    _mean_windows,
    rules={
        "x": lambda g, x_shape, sizes, geometry, divisor, xp: op_for(xp, spread_windows_p)(
            g, lengths=x_shape[-len(sizes) :], sizes=sizes, geometry=geometry, divisor=divisor
        )
    },
    floating=True,
    domain=real(-2, 2),
    samples=(sample((1, 2, 3), **_TWO), sample((2, 2), **_ONE), sample((0, 2), **_ONE)),
    scalars=False,
    doc="Return the sum of each window, divided.",
    batch="leading",
)


spread_windows_p: Primitive = operation(
    "spread_windows",
    _spread_windows,
    rules={
        "y": lambda g, sizes, geometry, divisor, xp: op_for(xp, mean_windows_p)(
            g, sizes=sizes, geometry=geometry, divisor=divisor
        )
    },
    floating=True,
    domain=real(-2, 2),
    samples=(
        sample((1, 2, 2), lengths=(2, 3), **_TWO),
        sample((2, 2), lengths=(2,), **_ONE),
        sample((0, 2), lengths=(2,), **_ONE),
    ),
    scalars=False,
    doc="Return the transpose of `mean_windows`: each element shared out to its window.",
    batch="leading",
)
