"""Pooling: the largest element, or the mean, of each window.

Edge values: of elements that tie for the maximum of a window the first gets the gradient, and a
NaN is the maximum of its windows, as in PyTorch. What padding adds is never a maximum.

Maxima are put back where they were by `max_unpool`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from pullback.arrays import get_default_dtype, library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.nn.dimensions import axes_of, in_dimensions
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import needs_tensor
from pullback.ops.functions.creation import arange, asarray, zeros
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.gathering import index_for
from pullback.ops.functions.joining import stack
from pullback.ops.functions.manipulation import moveaxis, reshape
from pullback.ops.functions.products import matmul
from pullback.ops.functions.sorting import values_and_indices
from pullback.ops.primitives.arithmetic import multiply, pow
from pullback.ops.primitives.gathering import scatter_p, take_p
from pullback.ops.primitives.pooling import max_positions_p, mean_windows_p
from pullback.ops.primitives.reductions import mean
from pullback.ops.primitives.shape import reshape_p
from pullback.ops.samples import integers, real, sample
from pullback.ops.windows import Geometry, Ints, begins_of, exact, firsts_of, needs_rank, per_axis


def picked(x: Tensor, positions: Tensor, n: int) -> Tensor:
    """Return the elements of the last n axes, taken as one, at `positions` of them."""
    array = positions.data_array()
    xp, lead = library_of(array).xp, len(x.shape) - n
    rows, length = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
    begins = xp.reshape(xp.arange(rows, device=array.device) * length, (rows, 1))
    places = xp.reshape(array, (rows, math.prod(array.shape[lead:]))) + begins
    # One index into one row: several times as fast as an index for each axis.
    flat = reshape_p.public(x, shape=(rows * length,))
    values = take_p.public(flat, box(xp.reshape(places, (-1,))), axis=0)
    return reshape_p.public(values, shape=positions.shape)


# -- arguments -------------------------------------------------------------------------------------
def _pooling(
    op: str,
    n: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[Ints, Geometry]:
    """Return the sizes of the windows and where they lie."""
    needs_rank(op, input, axes_of(n))
    sizes = per_axis(op, "kernel_size", kernel_size, n)
    unset = stride is None or (isinstance(stride, tuple) and not stride)
    step = sizes if unset else per_axis(op, "stride", stride, n)
    d = per_axis(op, "dilation", dilation, n)
    pads = per_axis(op, "padding", padding, n, least=0)
    if any(2 * p > e * (k - 1) + 1 for p, k, e in zip(pads, sizes, d, strict=True)):
        required = "a padding of at most half the kernel required"
        raise ArgumentError(compose(op, required, f"{pads} for {sizes}", ("input", input)))
    geometry = Geometry(step, d, tuple((p, p) for p in pads))
    return sizes, exact(op, input, sizes, geometry, ceil_mode)


# -- the largest element ---------------------------------------------------------------------------
@in_dimensions(
    (sample((1, 2, 4), kernel_size=2), sample((2, 5), kernel_size=3, stride=1, padding=1)),
    (
        sample((1, 1, 4, 4), kernel_size=2),
        sample((1, 3, 4), kernel_size=(2, 3), stride=(1, 2), padding=(1, 0)),
        sample((1, 5, 3), kernel_size=2, ceil_mode=True),
        sample((1, 3, 3), kernel_size=2, dilation=2, padding=1, stride=1),
        sample((0, 1, 2, 2), kernel_size=2),
    ),
    (sample((1, 2, 3, 2), kernel_size=2, stride=1),),
    examples=(
        """
>>> pb.max_pool1d(pb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
tensor([[3., 2.]])
""",
        """
>>> pb.max_pool2d(pb.tensor([[[1.0, 2.0, 5.0, 0.0], [4.0, 3.0, 5.0, 1.0]]]), 2)
tensor([[[4., 5.]]])
""",
        """
>>> pb.max_pool3d(pb.tensor([[[[1.0, 2.0], [4.0, 3.0]]]]), (1, 2, 2))
tensor([[[[4.]]]])
""",
    ),
    domain=real(-2, 2),
    distinct=True,
    scalars=False,
)
def max_pool(
    n: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of {things}; the first of equals has the gradient.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    kernel_size : {ints}
        The size of a window.
    stride : {ints}, optional
        The distance of windows, by default their size.
    padding, dilation : {ints}
        How far windows reach beyond the input, at most half their size; the distance of the
        elements of a window.
    ceil_mode : bool
        Let a last window reach beyond the padding.
    return_indices : bool
        Also return where each maximum is among the elements of its channel, counted row by row.

    Raises
    ------
    ShapeError
        If the input has another rank, or no window fits.
    ArgumentError
        If a setting is out of range.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op = f"max_pool{n}d"
    sizes, geometry = _pooling(op, n, input, kernel_size, stride, padding, dilation, ceil_mode)
    firsts = firsts_of(begins_of(input.shape[-n:], sizes, geometry), geometry.dilation)
    if any(max(places) >= m for places, m in zip(firsts, input.shape[-n:], strict=True)):
        required = "windows that each hold an element required"
        raise ShapeError(compose(op, required, f"dilation {geometry.dilation}", ("input", input)))
    positions = max_positions_p.public(input, sizes=sizes, geometry=geometry)
    values = picked(input, positions, n)
    return (values, positions) if return_indices else values


max_pool1d, max_pool2d, max_pool3d = max_pool


# -- the mean --------------------------------------------------------------------------------------
@in_dimensions(
    (
        sample((1, 2, 4), kernel_size=2),
        sample((2, 4), kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    ),
    (
        sample((1, 1, 4, 4), kernel_size=2),
        sample((1, 3, 4), kernel_size=(2, 3), stride=(1, 2), padding=(1, 0)),
        sample((1, 4, 3), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        sample((1, 5, 3), kernel_size=2, ceil_mode=True, divisor_override=3),
        sample((0, 1, 2, 2), kernel_size=2),
    ),
    (sample((1, 2, 3, 2), kernel_size=2, stride=1),),
    examples=(
        """
>>> pb.nn.functional.avg_pool1d(pb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
tensor([[2., 1.]])
""",
        """
>>> x = pb.tensor([[[1.0, 2.0, 5.0, 0.0], [4.0, 1.0, 6.0, 1.0]]])
>>> pb.nn.functional.avg_pool2d(x, 2)
tensor([[[2., 3.]]])
""",
        """
>>> pb.nn.functional.avg_pool3d(pb.ones((1, 2, 2, 2)), 2)
tensor([[[[1.]]]])
""",
    ),
    domain=real(-2, 2),
    scalars=False,
)
def avg_pool(
    n: int,
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Return the mean of each window of {things}: the sum of its elements over their number.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    kernel_size : {ints}
        The size of a window.
    stride : {ints}, optional
        The distance of windows, by default their size.
    padding : {ints}
        The zeros added on each side, at most half the size of a window.
    ceil_mode : bool
        Let a last window reach beyond the padding.
    count_include_pad : bool
        Whether zeros of the padding count as elements.
    divisor_override : number, optional
        What to divide the sums by instead of the number of elements.

    Raises
    ------
    ShapeError
        If the input has another rank, or no window fits.
    ArgumentError
        If a setting is out of range.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op, divisor = f"avg_pool{n}d", divisor_override
    sizes, geometry = _pooling(op, n, input, kernel_size, stride, padding, 1, ceil_mode)
    if divisor is None:
        borders = per_axis(op, "padding", padding, n, least=0) if count_include_pad else (0,) * n
        divisor = _element_counts(input.shape[-n:], sizes, geometry, borders)
    elif divisor == 0:
        raise ArgumentError(compose(op, "a divisor_override other than 0 required", "0"))
    return mean_windows_p.public(input, sizes=sizes, geometry=geometry, divisor=divisor)


avg_pool1d, avg_pool2d, avg_pool3d = avg_pool


def _element_counts(lengths: Ints, sizes: Ints, geometry: Geometry, borders: Ints) -> Any:
    """Return how many elements the windows have along each axis, or the number if all have it."""
    axes = zip(begins_of(lengths, sizes, geometry), sizes, lengths, borders, strict=True)
    counts = tuple(
        tuple(min(b + k, length + border) - max(b, -border) for b in begins)
        for begins, k, length, border in axes
    )
    equal = all(len(set(each)) == 1 for each in counts)
    return math.prod(each[0] for each in counts) if equal else counts


# -- as many windows as asked for ------------------------------------------------------------------
def _wanted_counts(op: str, n: int, input: Any, output_size: Any) -> Ints:
    """Return how many windows there are to be along each axis."""
    needs_rank(op, input, axes_of(n))
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    lengths = input.shape[-n:]
    if len(sizes) == n:
        sizes = tuple(m if k is None else k for k, m in zip(sizes, lengths, strict=True))
    wanted = per_axis(op, "output_size", sizes, n)
    if 0 in lengths:
        raise ShapeError(compose(op, "a non-empty image required", str(lengths), ("input", input)))
    return wanted


def _ends_of(length: int, m: int) -> list[tuple[int, int]]:
    """Return where each of m windows begins and ends: floor(i L / m), ceil((i + 1) L / m)."""
    return [(i * length // m, -(-(i + 1) * length // m)) for i in range(m)]


@in_dimensions(
    (sample((1, 2, 4), output_size=2), sample((1, 5), output_size=3)),
    (
        sample((1, 2, 2, 4), output_size=(1, 2)),
        sample((2, 3, 4), output_size=(2, 3)),
        sample((1, 3, 4), output_size=(None, 3)),
        sample((0, 1, 2, 3), output_size=2),
    ),
    (sample((1, 2, 3, 2), output_size=(1, 2, None)),),
    examples=(
        """
>>> pb.nn.functional.adaptive_avg_pool1d(pb.tensor([[1.0, 3.0, 5.0]]), 2)
tensor([[2., 4.]])
""",
        """
>>> pb.nn.functional.adaptive_avg_pool2d(pb.tensor([[[1.0, 2.0], [3.0, 6.0]]]), 1)
tensor([[[3.]]])
""",
        """
>>> pb.nn.functional.adaptive_avg_pool3d(pb.ones(1, 2, 2, 2), 1)
tensor([[[[1.]]]])
""",
    ),
    domain=real(-2, 2),
    scalars=False,
)
def adaptive_avg_pool(n: int, input: Any, output_size: Any) -> Tensor:
    """Return the means of a given number of windows of {things}.

    Along an axis of length L, window i of m is from floor(i L / m) up to ceil((i + 1) L / m).

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    output_size : {ints}
        The number of windows along each axis; None keeps the length of the axis.

    Raises
    ------
    ShapeError
        If the input has another rank, or is empty.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    wanted = _wanted_counts(f"adaptive_avg_pool{n}d", n, input, output_size)
    lengths = input.shape[-n:]
    x = asarray(input)
    x = x if x.dtype.is_inexact else astype(x, get_default_dtype())
    if all(m == 1 for m in wanted):
        return mean(x, axis=tuple(range(-n, 0)), keepdims=True)
    if not any(length % m for length, m in zip(lengths, wanted, strict=True)):
        sizes = tuple(length // m for length, m in zip(lengths, wanted, strict=True))
        geometry = Geometry(sizes, (1,) * n, ((0, 0),) * n)
        return mean_windows_p.public(x, sizes=sizes, geometry=geometry, divisor=math.prod(sizes))
    library = library_of(x._data)
    device = library.native_device(library.device(x._data))
    for i, (length, m) in enumerate(zip(lengths, wanted, strict=True)):
        rows = [[(a <= k < b) / (b - a) for k in range(length)] for a, b in _ends_of(length, m)]
        matrix = box(library.asarray(rows, x.dtype, device))
        last = moveaxis(x, i - n, -1)
        x = moveaxis(matmul(last, matrix.mT), -1, i - n)
    return x


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = adaptive_avg_pool


@in_dimensions(
    (sample((1, 2, 4), output_size=2), sample((1, 5), output_size=3)),
    (sample((1, 3, 4), output_size=(2, None)),),
    (sample((1, 2, 3, 2), output_size=2),),
    examples=(
        """
>>> pb.nn.functional.adaptive_max_pool1d(pb.tensor([[1.0, 3.0, 5.0]]), 2)
tensor([[3., 5.]])
""",
        """
>>> pb.nn.functional.adaptive_max_pool2d(pb.tensor([[[1.0, 2.0], [3.0, 6.0]]]), (1, 2))
tensor([[[3., 6.]]])
""",
        """
>>> pb.nn.functional.adaptive_max_pool3d(pb.ones(1, 2, 2, 2), 1)
tensor([[[[1.]]]])
""",
    ),
    domain=real(-2, 2),
    distinct=True,
    scalars=False,
)
def adaptive_max_pool(n: int, input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of a given number of windows of {things}.

    The windows are those of `adaptive_avg_pool{n}d`; of equals, the first gets the gradient.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    output_size : {ints}
        The number of windows along each axis; None keeps the length of the axis.
    return_indices : bool
        Also return where each maximum is among the elements of its channel, counted row by row.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op = f"adaptive_max_pool{n}d"
    wanted = _wanted_counts(op, n, input, output_size)
    x = tensor_of(op, input, "input")
    lead, lengths = x.shape[:-n], x.shape[-n:]
    numbers = reshape(arange(math.prod(lengths), device=x.device), lengths)
    ends = [_ends_of(k, m) for k, m in zip(lengths, wanted, strict=True)]
    values, positions = [], []
    for window in itertools.product(*ends):
        part = (..., *(slice(a, b) for a, b in window))
        largest = values_and_indices(reshape(x[part], (*lead, -1)), "max", -1, False)
        values.append(largest.values)
        positions.append(reshape(numbers[part], (-1,))[largest.indices])
    result = reshape(stack(values, axis=-1), (*lead, *wanted))
    if not return_indices:
        return result
    return result, reshape(stack(positions, axis=-1), (*lead, *wanted))


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = adaptive_max_pool


# -- maxima put back -------------------------------------------------------------------------------
@in_dimensions(
    (sample((3, 1), (3, 1), kernel_size=2),),
    (sample((1, 2, 1, 1), (1, 2, 1, 1), kernel_size=2, output_size=(3, 2)),),
    (sample((1, 1, 1, 1), (1, 1, 1, 1), kernel_size=2),),
    examples=(
        """
>>> largest, where = pb.max_pool1d(pb.tensor([[1.0, 3.0]]), 2, return_indices=True)
>>> pb.nn.functional.max_unpool1d(largest, where, 2)
tensor([[0., 3.]])
""",
        """
>>> pb.nn.functional.max_unpool2d(pb.tensor([[[5.0]]]), pb.tensor([[[2]]]), 2)
tensor([[[0., 0.],
         [5., 0.]]])
""",
        """
>>> pb.nn.functional.max_unpool3d(pb.ones(1, 1, 1, 1), pb.tensor([[[[3]]]]), 2).ravel()
tensor([0., 0., 0., 1., 0., 0., 0., 0.])
""",
    ),
    domain={"input": real(-2, 2), "indices": integers(0, 0)},
    constants=("indices",),
    scalars=False,
)
def max_unpool(
    n: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Return {things} of zeros with the maxima of `max_pool{n}d` where they were.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    indices : Tensor of integers
        Of the same shape: what `max_pool{n}d` returns with ``return_indices``.
    kernel_size, stride, padding : {ints}
        Those of the pooling.
    output_size : sequence of int, optional
        The shape before the pooling, which several shapes can have led to.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op = f"max_unpool{n}d"
    needs_rank(op, input, axes_of(n))
    x = tensor_of(op, input, "input")
    sizes = per_axis(op, "kernel_size", kernel_size, n)
    steps = sizes if stride is None else per_axis(op, "stride", stride, n)
    pads = per_axis(op, "padding", padding, n, least=0)
    lead, lengths = x.shape[:-n], x.shape[-n:]
    wanted = tuple(
        (m - 1) * s - 2 * p + k for m, s, p, k in zip(lengths, steps, pads, sizes, strict=True)
    )
    wanted = wanted if output_size is None else tuple(output_size)[-n:]
    needs_tensor(op, indices, "indices")
    if tuple(indices.shape) != x.shape:
        required = f"indices of the shape {x.shape} of the input required"
        named = (("input", x), ("indices", indices))
        raise ShapeError(compose(op, required, str(tuple(indices.shape)), *named))
    flat = (*lead, math.prod(lengths))
    empty = zeros((*lead, math.prod(wanted)), dtype=x.dtype, device=x.device)
    names = ("result", "indices")
    positions = reshape(index_for(op, empty, len(lead), indices, names=names), flat)
    full = scatter_p.public(empty, positions, reshape(x, flat), axis=len(lead))
    return reshape(full, (*lead, *wanted))


max_unpool1d, max_unpool2d, max_unpool3d = max_unpool


# -- norms of windows ------------------------------------------------------------------------------
@in_dimensions(
    (sample((1, 2, 4), norm_type=2.0, kernel_size=2),),
    (sample((1, 3, 4), norm_type=3.0, kernel_size=(1, 2)),),
    (sample((1, 1, 2, 4), norm_type=2.0, kernel_size=(1, 1, 2)),),
    examples=(
        """
>>> pb.nn.functional.lp_pool1d(pb.tensor([[3.0, 4.0]]), 2, 2)
tensor([[5.]])
""",
        """
>>> pb.nn.functional.lp_pool2d(pb.tensor([[[3.0, 4.0]]]), 2, (1, 2))
tensor([[[5.]]])
""",
        """
>>> pb.nn.functional.lp_pool3d(pb.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
tensor([[[[5.]]]])
""",
    ),
    domain=real(0.5, 2),
    scalars=False,
)
def lp_pool(
    n: int,
    input: Any,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the sums of x ** p over windows of {things}, to the power of 1 / p.

    Parameters
    ----------
    input : Tensor of shape (N, C, {axes}) or (C, {axes})
    norm_type : float
        The power p.
    kernel_size, stride : {ints}
        The size of a window, and the distance of windows, by default their size.
    ceil_mode : bool
        Let a last window reach beyond the input.

    Examples
    --------
    >>> import pullback as pb
    {example}
    """
    op, averages = f"lp_pool{n}d", (avg_pool1d, avg_pool2d, avg_pool3d)
    powers = pow(tensor_of(op, input, "input"), norm_type)
    means = averages[n - 1](powers, kernel_size, stride, 0, ceil_mode)
    size = math.prod(per_axis(op, "kernel_size", kernel_size, n))
    return pow(multiply(means, size), 1.0 / norm_type)


lp_pool1d, lp_pool2d, lp_pool3d = lp_pool
