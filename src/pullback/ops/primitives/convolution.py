"""Taking windows out of an image and adding them up, and convolution.

The sum of x * weight * y over all windows of x is linear in the input, in the weight and in the
gradient of the output. `convolution`, `convolution_input` and `convolution_weight` are its
derivatives by each of the three, hence each other's rules, for every order. Each is one matrix
product over the windows of the input. Paddings are exact (see `ops.windows`), so the three take the
same settings.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import library_of
from pullback.ops.declare import Primitive, op_for, operation
from pullback.ops.samples import both, real, sample
from pullback.ops.windows import Geometry, Ints, counts, padded


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


unfold_p: Primitive = operation(
    "unfold",
    _unfold,
    rules={
        "x": lambda g, x_shape, sizes, geometry, xp: op_for(xp, fold_p)(
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
    scalars=False,
    doc="Return sliding windows as columns.",
    batch="leading",
    moves=True,
)


fold_p: Primitive = operation(
    "fold",
    _fold,
    rules={
        "x": lambda g, sizes, geometry, xp: op_for(xp, unfold_p)(g, sizes=sizes, geometry=geometry)
    },
    samples=(
        sample((4, 4), output_size=3, kernel_size=2),
        sample((1, 6, 4), output_size=(4, 4), kernel_size=(2, 3), stride=2, padding=(0, 1)),
        sample((1, 4, 2), output_size=(3, 4), kernel_size=2, dilation=(2, 1), stride=(1, 2)),
        sample((1, 2, 4), output_size=2, kernel_size=1),
        sample((0, 8, 4), output_size=3, kernel_size=2),
    ),
    scalars=False,
    doc="Return columns added up to an image.",
    batch="leading",
)


# -- the three derivatives of a convolution --------------------------------------------------------
def _matrices(xp: Any, weight: Any, groups: int) -> Any:
    """Return a weight (O, C / groups, *sizes) as one matrix a group, of O / groups rows."""
    outs, *rest = weight.shape
    return xp.reshape(weight, (groups, outs // groups, math.prod(rest)))


def _convolution(xp: Any, x: Any, weight: Any, *, geometry: Geometry, groups: int = 1) -> Any:
    outs, _, *sizes = weight.shape
    windows = columns(xp, x, tuple(sizes), geometry)
    positions = windows.shape[-len(sizes) :]
    matrices = _matrices(xp, weight, groups)
    windows = xp.reshape(windows, (x.shape[0], groups, matrices.shape[2], math.prod(positions)))
    return xp.reshape(xp.matmul(matrices, windows), (x.shape[0], outs, *positions))


def _convolution_input(xp: Any, y: Any, weight: Any, *, geometry: Geometry, groups: int = 1) -> Any:
    batch, outs, *positions = y.shape
    _, channels, *sizes = weight.shape
    matrices = xp.matrix_transpose(_matrices(xp, weight, groups))
    rows = xp.reshape(y, (batch, groups, outs // groups, math.prod(positions)))
    windows = xp.matmul(matrices, rows)
    windows = xp.reshape(windows, (batch, groups * channels, *sizes, *positions))
    axes = zip(positions, sizes, *geometry, strict=True)
    lengths = tuple((n - 1) * s + d * (k - 1) + 1 - sum(pads) for n, k, s, d, pads in axes)
    return added(xp, windows, lengths, geometry)


def _convolution_weight(xp: Any, x: Any, y: Any, *, geometry: Geometry, groups: int = 1) -> Any:
    batch, outs, *positions = y.shape
    axes = zip(x.shape[2:], positions, *geometry, strict=True)
    sizes = tuple((n + sum(pads) - (m - 1) * s - 1) // d + 1 for n, m, s, d, pads in axes)
    width, count = x.shape[1] // groups * math.prod(sizes), math.prod(positions)
    windows = xp.reshape(columns(xp, x, sizes, geometry), (batch, groups, width, count))
    rows = xp.reshape(y, (batch, groups, outs // groups, count))
    if outs // groups > count:  # then the matrices of all images are larger than their windows
        windows = xp.reshape(_batch_inside(xp, windows), (groups, width, batch * count))
        rows = xp.reshape(_batch_inside(xp, rows), (groups, outs // groups, batch * count))
        result = xp.matmul(rows, xp.matrix_transpose(windows))
    else:
        result = xp.sum(xp.matmul(rows, xp.matrix_transpose(windows)), axis=0)
    return xp.reshape(result, (outs, x.shape[1] // groups, *sizes))


def _batch_inside(xp: Any, x: Any) -> Any:
    return xp.permute_dims(x, (1, 2, 0, 3))


_ONE = {"geometry": Geometry((1,), (1,), ((0, 0),)), "groups": 1}
_TWO = {"geometry": Geometry((2, 1), (1, 2), ((1, 0), (0, -1))), "groups": 2}


convolution_p: Primitive = operation(
    "convolution",
    _convolution,
    rules={
        "x": lambda g, weight, geometry, groups, xp: op_for(xp, convolution_input_p)(
            g, weight, geometry=geometry, groups=groups
        ),
        "weight": lambda g, x, geometry, groups, xp: op_for(xp, convolution_weight_p)(
            x, g, geometry=geometry, groups=groups
        ),
    },
    domain=both(-2, 2),
    samples=(
        sample((2, 2, 3), (3, 2, 2), **_ONE),
        sample((1, 2, 3, 4), (2, 1, 2, 2), **_TWO),
        sample((0, 2, 3), (1, 2, 2), **_ONE),
    ),
    scalars=False,
    doc="Return the convolution of neural networks: x, in windows, times the weight.",
    batch="convolution",
)


convolution_input_p: Primitive = operation(
    "convolution_input",
    _convolution_input,
    rules={
        "y": lambda g, weight, geometry, groups, xp: op_for(xp, convolution_p)(
            g, weight, geometry=geometry, groups=groups
        ),
        "weight": lambda g, y, geometry, groups, xp: op_for(xp, convolution_weight_p)(
            g, y, geometry=geometry, groups=groups
        ),
    },
    domain=real(-2, 2),
    samples=(
        sample((2, 3, 2), (3, 2, 2), **_ONE),
        sample((1, 2, 2, 1), (2, 1, 2, 2), **_TWO),
        sample((0, 2, 3), (2, 1, 2), **_ONE),
    ),
    scalars=False,
    doc="Return the gradient of a convolution in its input: the transposed convolution.",
    batch="convolution",
)


convolution_weight_p: Primitive = operation(
    "convolution_weight",
    _convolution_weight,
    rules={
        "x": lambda g, y, geometry, groups, xp: op_for(xp, convolution_input_p)(
            y, g, geometry=geometry, groups=groups
        ),
        "y": lambda g, x, geometry, groups, xp: op_for(xp, convolution_p)(
            x, g, geometry=geometry, groups=groups
        ),
    },
    domain=real(-2, 2),
    samples=(
        sample((2, 2, 3), (2, 3, 2), **_ONE),
        sample((1, 2, 3, 4), (1, 2, 2, 1), **_TWO),
        sample((0, 2, 3), (0, 1, 2), **_ONE),
    ),
    scalars=False,
    doc="Return the gradient of a convolution in its weight.",
    batch="convolution_weight",
)
