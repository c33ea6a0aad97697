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
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_tensor
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


_AXES = ("D", "H", "W")


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
    needs_rank(op, input, ("N", "C", *_AXES[3 - n :]))
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
def _max_pool(op: str, n: int, input: Any, *arguments: Any) -> Any:
    *windows, return_indices = arguments
    sizes, geometry = _pooling(op, n, input, *windows)
    firsts = firsts_of(begins_of(input.shape[-n:], sizes, geometry), geometry.dilation)
    if any(max(places) >= m for places, m in zip(firsts, input.shape[-n:], strict=True)):
        required = "windows that each hold an element required"
        raise ShapeError(compose(op, required, f"dilation {geometry.dilation}", ("input", input)))
    positions = max_positions_p.public(input, sizes=sizes, geometry=geometry)
    values = picked(input, positions, n)
    return (values, positions) if return_indices else values


@composition(
    sample((1, 2, 4), kernel_size=2),
    sample((2, 5), kernel_size=3, stride=1, padding=1),
    domain=real(-2, 2),
    distinct=True,
    scalars=False,
)
def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of sequences; see `max_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.max_pool1d(pb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    return _max_pool(
        "max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@composition(
    sample((1, 1, 4, 4), kernel_size=2),
    sample((1, 3, 4), kernel_size=(2, 3), stride=(1, 2), padding=(1, 0)),
    sample((1, 5, 3), kernel_size=2, ceil_mode=True),
    sample((1, 3, 3), kernel_size=2, dilation=2, padding=1, stride=1),
    sample((0, 1, 2, 2), kernel_size=2),
    domain=real(-2, 2),
    distinct=True,
    scalars=False,
)
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of images; the gradient goes to the first of them.

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    kernel_size : int or tuple of two int
        The size of a window.
    stride : int or tuple of two int, optional
        The distance of windows, by default their size.
    padding, dilation : int or tuple of two int
        How far windows reach beyond the image, at most half their size; the distance of the
        elements of a window.
    ceil_mode : bool
        Let a last window reach beyond the padding.
    return_indices : bool
        Also return where in its image each maximum is, counted row by row.

    Raises
    ------
    ShapeError
        If the input has another rank, or no window fits.
    ArgumentError
        If a setting is out of range.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[[1.0, 2.0, 5.0, 0.0], [4.0, 3.0, 5.0, 1.0]]])
    >>> pb.max_pool2d(x, 2)
    tensor([[[4., 5.]]])
    """
    return _max_pool(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


@composition(
    sample((1, 2, 3, 2), kernel_size=2, stride=1), domain=real(-2, 2), distinct=True, scalars=False
)
def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of volumes; see `max_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.max_pool3d(pb.tensor([[[[1.0, 2.0], [4.0, 3.0]]]]), (1, 2, 2))
    tensor([[[[4.]]]])
    """
    return _max_pool(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    )


# -- the mean --------------------------------------------------------------------------------------
def _avg_pool(
    op: str,
    n: int,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any = None,
) -> Tensor:
    sizes, geometry = _pooling(op, n, input, kernel_size, stride, padding, 1, ceil_mode)
    divisor: Any = divisor_override
    if divisor is None:
        borders = per_axis(op, "padding", padding, n, least=0) if count_include_pad else (0,) * n
        lengths = input.shape[-n:]
        axes = zip(begins_of(lengths, sizes, geometry), sizes, lengths, borders, strict=True)
        divisor = tuple(
            tuple(min(b + k, length + border) - max(b, -border) for b in places)
            for places, k, length, border in axes
        )
        if all(len(set(numbers)) == 1 for numbers in divisor):
            divisor = math.prod(numbers[0] for numbers in divisor)
    elif divisor == 0:
        raise ArgumentError(compose(op, "a divisor_override other than 0 required", "0"))
    return mean_windows_p.public(input, sizes=sizes, geometry=geometry, divisor=divisor)


@composition(
    sample((1, 2, 4), kernel_size=2),
    sample((2, 4), kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    domain=real(-2, 2),
    scalars=False,
)
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of sequences; see `avg_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.avg_pool1d(pb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad
    )


@composition(
    sample((1, 1, 4, 4), kernel_size=2),
    sample((1, 3, 4), kernel_size=(2, 3), stride=(1, 2), padding=(1, 0)),
    sample((1, 4, 3), kernel_size=3, stride=2, padding=1, count_include_pad=False),
    sample((1, 5, 3), kernel_size=2, ceil_mode=True, divisor_override=3),
    sample((0, 1, 2, 2), kernel_size=2),
    domain=real(-2, 2),
    scalars=False,
)
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Return the mean of each window of images: the sum of its elements over their number.

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    kernel_size : int or tuple of two int
        The size of a window.
    stride : int or tuple of two int, optional
        The distance of windows, by default their size.
    padding : int or tuple of two int
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
    >>> x = pb.tensor([[[1.0, 2.0, 5.0, 0.0], [4.0, 1.0, 6.0, 1.0]]])
    >>> pb.nn.functional.avg_pool2d(x, 2)
    tensor([[[2., 3.]]])
    """
    arguments = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool2d", 2, input, *arguments)


@composition(sample((1, 2, 3, 2), kernel_size=2, stride=1), domain=real(-2, 2), scalars=False)
def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Tensor:
    """Return the mean of each window of volumes; see `avg_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.avg_pool3d(pb.ones((1, 2, 2, 2)), 2)
    tensor([[[[1.]]]])
    """
    arguments = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool3d", 3, input, *arguments)


# -- as many windows as asked for ------------------------------------------------------------------
def wanted_sizes(op: str, n: int, input: Any, output_size: Any) -> Ints:
    """Return how many windows there are to be along each axis."""
    needs_rank(op, input, ("N", "C", *_AXES[3 - n :]))
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    lengths = input.shape[-n:]
    if len(sizes) == n:
        sizes = tuple(m if k is None else k for k, m in zip(sizes, lengths, strict=True))
    wanted = per_axis(op, "output_size", sizes, n)
    if 0 in lengths:
        raise ShapeError(compose(op, "a non-empty image required", str(lengths), ("input", input)))
    return wanted


def ends_of(length: int, m: int) -> list[tuple[int, int]]:
    """Return where each of m windows begins and ends: floor(i L / m), ceil((i + 1) L / m)."""
    return [(i * length // m, -(-(i + 1) * length // m)) for i in range(m)]


def _adaptive(op: str, n: int, input: Any, output_size: Any) -> Tensor:
    """Average over as many windows as are wanted."""
    wanted = wanted_sizes(op, n, input, output_size)
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
        rows = [[(a <= k < b) / (b - a) for k in range(length)] for a, b in ends_of(length, m)]
        matrix = box(library.asarray(rows, x.dtype, device))
        last = moveaxis(x, i - n, -1)
        x = moveaxis(matmul(last, matrix.mT), -1, i - n)
    return x


@composition(
    sample((1, 2, 4), output_size=2),
    sample((1, 5), output_size=3),
    domain=real(-2, 2),
    scalars=False,
)
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Return the means of `output_size` windows of sequences; see `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.adaptive_avg_pool1d(pb.tensor([[1.0, 3.0, 5.0]]), 2)
    tensor([[2., 4.]])
    """
    return _adaptive("adaptive_avg_pool1d", 1, input, output_size)


@composition(
    sample((1, 2, 2, 4), output_size=(1, 2)),
    sample((2, 3, 4), output_size=(2, 3)),
    sample((1, 3, 4), output_size=(None, 3)),
    sample((0, 1, 2, 3), output_size=2),
    domain=real(-2, 2),
    scalars=False,
)
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Return the means of a given number of windows of images.

    Along an axis of length L, window i of m is from floor(i L / m) up to ceil((i + 1) L / m).

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    output_size : int or tuple of two int
        The number of windows along each axis; None keeps the length of the axis.

    Raises
    ------
    ShapeError
        If the input has another rank, or is empty.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.adaptive_avg_pool2d(pb.tensor([[[1.0, 2.0], [3.0, 6.0]]]), 1)
    tensor([[[3.]]])
    """
    return _adaptive("adaptive_avg_pool2d", 2, input, output_size)


@composition(sample((1, 2, 3, 2), output_size=(1, 2, None)), domain=real(-2, 2), scalars=False)
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Return the means of a given number of windows of volumes; see `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.adaptive_avg_pool3d(pb.ones(1, 2, 2, 2), 1)
    tensor([[[[1.]]]])
    """
    return _adaptive("adaptive_avg_pool3d", 3, input, output_size)


_LENGTHS_OF = ("D", "H", "W")


# -- as many windows as asked for ------------------------------------------------------------------
def _adaptive_max(op: str, n: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    """Return the largest of each window, and where it is in the input made flat."""
    wanted = wanted_sizes(op, n, input, output_size)
    x = tensor_of(op, input, "input")
    lead, lengths = x.shape[:-n], x.shape[-n:]
    numbers = reshape(arange(math.prod(lengths), device=x.device), lengths)
    ends = [ends_of(k, m) for k, m in zip(lengths, wanted, strict=True)]
    values, places = [], []
    for window in itertools.product(*ends):
        part = (..., *(slice(a, b) for a, b in window))
        found = values_and_indices(reshape(x[part], (*lead, -1)), "max", -1, False)
        values.append(found.values)
        places.append(reshape(numbers[part], (-1,))[found.indices])
    largest = reshape(stack(values, axis=-1), (*lead, *wanted))
    if not return_indices:
        return largest
    return largest, reshape(stack(places, axis=-1), (*lead, *wanted))


@composition(
    sample((1, 2, 4), output_size=2),
    sample((1, 5), output_size=3),
    domain=real(-2, 2),
    distinct=True,
    scalars=False,
)
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest of `output_size` windows of sequences; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.adaptive_max_pool1d(pb.tensor([[1.0, 3.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


@composition(
    sample((1, 3, 4), output_size=(2, None)), domain=real(-2, 2), distinct=True, scalars=False
)
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of a given number of windows of images.

    The windows are those of `adaptive_avg_pool2d`; of equals, the first gets the gradient.

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    output_size : int or tuple of two int
        The number of windows along each axis; None keeps the length of the axis.
    return_indices : bool
        Return too where they are in each image made flat.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.adaptive_max_pool2d(pb.tensor([[[1.0, 2.0], [3.0, 6.0]]]), (1, 2))
    tensor([[[3., 6.]]])
    """
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@composition(sample((1, 2, 3, 2), output_size=2), domain=real(-2, 2), distinct=True, scalars=False)
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows of volumes; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.adaptive_max_pool3d(pb.ones(1, 2, 2, 2), 1)
    tensor([[[[1.]]]])
    """
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


# -- maxima put back -------------------------------------------------------------------------------
def _unpool(op: str, n: int, input: Any, indices: Any, *geometry: Any) -> Tensor:
    kernel_size, stride, padding, output_size = geometry
    needs_rank(op, input, ("N", "C", *_LENGTHS_OF[3 - n :]))
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
    places = reshape(index_for(op, empty, len(lead), indices, names=names), flat)
    full = scatter_p.public(empty, places, reshape(x, flat), axis=len(lead))
    return reshape(full, (*lead, *wanted))


_MAXIMA = {"input": real(-2, 2), "indices": integers(0, 0)}


@composition(
    sample((3, 1), (3, 1), kernel_size=2), domain=_MAXIMA, constants=("indices",), scalars=False
)
def max_unpool1d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Return sequences of zeros with the maxima of `max_pool1d` where they were.

    Examples
    --------
    >>> import pullback as pb
    >>> largest, where = pb.max_pool1d(pb.tensor([[1.0, 3.0]]), 2, return_indices=True)
    >>> pb.nn.functional.max_unpool1d(largest, where, 2)
    tensor([[0., 3.]])
    """
    arguments = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool1d", 1, input, indices, *arguments)


@composition(
    sample((1, 2, 1, 1), (1, 2, 1, 1), kernel_size=2, output_size=(3, 2)),
    domain=_MAXIMA,
    constants=("indices",),
    scalars=False,
)
def max_unpool2d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Return images of zeros with the maxima of `max_pool2d` where they were.

    Parameters
    ----------
    input : Tensor of shape (N, C, H, W) or (C, H, W)
    indices : Tensor of integers
        Of the same shape: what `max_pool2d` returns with ``return_indices``.
    kernel_size, stride, padding
        Those of the pooling.
    output_size : sequence of int, optional
        The shape before the pooling, which several shapes can have led to.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.max_unpool2d(pb.tensor([[[5.0]]]), pb.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [5., 0.]]])
    """
    arguments = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool2d", 2, input, indices, *arguments)


@composition(
    sample((1, 1, 1, 1), (1, 1, 1, 1), kernel_size=2),
    domain=_MAXIMA,
    constants=("indices",),
    scalars=False,
)
def max_unpool3d(
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Tensor:
    """Return volumes of zeros with the maxima of `max_pool3d` where they were.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.max_unpool3d(pb.ones(1, 1, 1, 1), pb.tensor([[[[3]]]]), 2).ravel()
    tensor([0., 0., 0., 1., 0., 0., 0., 0.])
    """
    arguments = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool3d", 3, input, indices, *arguments)


# -- norms of windows ------------------------------------------------------------------------------
@composition(sample((1, 2, 4), norm_type=2.0, kernel_size=2), domain=real(0.5, 2), scalars=False)
def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the sums of x ** p over windows of sequences, to the power of 1 / p.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.lp_pool1d(pb.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    powers = pow(tensor_of("lp_pool1d", input, "input"), norm_type)
    means = avg_pool1d(powers, kernel_size, stride, 0, ceil_mode)
    (size,) = per_axis("lp_pool1d", "kernel_size", kernel_size, 1)
    return pow(multiply(means, size), 1.0 / norm_type)


@composition(
    sample((1, 3, 4), norm_type=3.0, kernel_size=(1, 2)), domain=real(0.5, 2), scalars=False
)
def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the sums of x ** p over windows of images, to the power of 1 / p.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.lp_pool2d(pb.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    powers = pow(tensor_of("lp_pool2d", input, "input"), norm_type)
    means = avg_pool2d(powers, kernel_size, stride, 0, ceil_mode)
    size = math.prod(per_axis("lp_pool2d", "kernel_size", kernel_size, 2))
    return pow(multiply(means, size), 1.0 / norm_type)


@composition(
    sample((1, 1, 2, 4), norm_type=2.0, kernel_size=(1, 1, 2)), domain=real(0.5, 2), scalars=False
)
def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the sums of x ** p over windows of volumes, to the power of 1 / p.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nn.functional.lp_pool3d(pb.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    tensor([[[[5.]]]])
    """
    powers = pow(tensor_of("lp_pool3d", input, "input"), norm_type)
    means = avg_pool3d(powers, kernel_size, stride, 0, ceil_mode)
    size = math.prod(per_axis("lp_pool3d", "kernel_size", kernel_size, 3))
    return pow(multiply(means, size), 1.0 / norm_type)
