"""More pooling: maxima of a given number of windows, norms of windows, and maxima put back."""

from __future__ import annotations

import itertools
import math
from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError, compose
from pullback.ops._declare import composition, integers, needs_tensor, real, sample
from pullback.ops._values import index_for, scatter_write, values_and_indices
from pullback.ops.elementwise import add, divide, multiply, power
from pullback.ops.joining import stack
from pullback.ops.padding import pad_constant
from pullback.ops.pooling import avg_pool1d, avg_pool2d, avg_pool3d, ends_of, wanted_sizes
from pullback.ops.shape import narrow, reshape, tensor_of
from pullback.ops.windows import needs_rank, per_axis

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "local_response_norm",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

_AXES = ("D", "H", "W")


# -- as many windows as asked for ------------------------------------------------------------------
def _adaptive_max(op: str, n: int, input: Any, output_size: Any, return_indices: bool) -> Any:
    """Return the largest of each window, and where it is in the input made flat."""
    wanted = wanted_sizes(op, n, input, output_size)
    x = tensor_of(op, input, "input")
    lead, lengths = x.shape[:-n], x.shape[-n:]
    numbers = reshape(TENSORS.arange(math.prod(lengths), device=x.device), lengths)
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


@composition(sample((1, 3, 4), output_size=(2, None)), domain=real(-2, 2), distinct=True)
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
    >>> pb.adaptive_max_pool2d(pb.tensor([[[1.0, 2.0], [3.0, 6.0]]]), (1, 2))
    tensor([[[3., 6.]]])
    """
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@composition(sample((1, 2, 3, 2), output_size=2), domain=real(-2, 2), distinct=True)
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of windows of volumes; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.adaptive_max_pool3d(pb.ones(1, 2, 2, 2), 1)
    tensor([[[[1.]]]])
    """
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


# -- maxima put back -------------------------------------------------------------------------------
def _unpool(op: str, n: int, input: Any, indices: Any, *geometry: Any) -> Tensor:
    kernel_size, stride, padding, output_size = geometry
    needs_rank(op, input, ("N", "C", *_AXES[3 - n :]))
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
        given = (("input", x), ("indices", indices))
        raise ShapeError(compose(op, required, str(tuple(indices.shape)), *given))
    flat = (*lead, math.prod(lengths))
    empty = TENSORS.zeros((*lead, math.prod(wanted)), dtype=x.dtype, device=x.device)
    names = ("result", "indices")
    places = reshape(index_for(op, empty, len(lead), indices, names=names), flat)
    full = scatter_write(empty, places, reshape(x, flat), axis=len(lead))
    return reshape(full, (*lead, *wanted))


_MAXIMA = {"input": real(-2, 2), "indices": integers(0, 0)}


@composition(sample((3, 1), (3, 1), kernel_size=2), domain=_MAXIMA, constants=("indices",))
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
    >>> pb.max_unpool1d(largest, where, 2)
    tensor([[0., 3.]])
    """
    arguments = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool1d", 1, input, indices, *arguments)


@composition(
    sample((1, 2, 1, 1), (1, 2, 1, 1), kernel_size=2, output_size=(3, 2)),
    domain=_MAXIMA,
    constants=("indices",),
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
    >>> pb.max_unpool2d(pb.tensor([[[5.0]]]), pb.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [5., 0.]]])
    """
    arguments = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool2d", 2, input, indices, *arguments)


@composition(
    sample((1, 1, 1, 1), (1, 1, 1, 1), kernel_size=2), domain=_MAXIMA, constants=("indices",)
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
    >>> pb.max_unpool3d(pb.ones(1, 1, 1, 1), pb.tensor([[[[3]]]]), 2).ravel()
    tensor([0., 0., 0., 1., 0., 0., 0., 0.])
    """
    arguments = (kernel_size, stride, padding, output_size)
    return _unpool("max_unpool3d", 3, input, indices, *arguments)


# -- norms of windows ------------------------------------------------------------------------------
@composition(sample((1, 2, 4), norm_type=2.0, kernel_size=2), domain=real(0.5, 2))
def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the sums of x ** p over windows of sequences, to the power of 1 / p.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.lp_pool1d(pb.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    powers = power(tensor_of("lp_pool1d", input, "input"), norm_type)
    means = avg_pool1d(powers, kernel_size, stride, 0, ceil_mode)
    (size,) = per_axis("lp_pool1d", "kernel_size", kernel_size, 1)
    return power(multiply(means, size), 1.0 / norm_type)


@composition(sample((1, 3, 4), norm_type=3.0, kernel_size=(1, 2)), domain=real(0.5, 2))
def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the sums of x ** p over windows of images, to the power of 1 / p.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.lp_pool2d(pb.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    powers = power(tensor_of("lp_pool2d", input, "input"), norm_type)
    means = avg_pool2d(powers, kernel_size, stride, 0, ceil_mode)
    size = math.prod(per_axis("lp_pool2d", "kernel_size", kernel_size, 2))
    return power(multiply(means, size), 1.0 / norm_type)


@composition(sample((1, 1, 2, 4), norm_type=2.0, kernel_size=(1, 1, 2)), domain=real(0.5, 2))
def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the sums of x ** p over windows of volumes, to the power of 1 / p.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.lp_pool3d(pb.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    tensor([[[[5.]]]])
    """
    powers = power(tensor_of("lp_pool3d", input, "input"), norm_type)
    means = avg_pool3d(powers, kernel_size, stride, 0, ceil_mode)
    size = math.prod(per_axis("lp_pool3d", "kernel_size", kernel_size, 3))
    return power(multiply(means, size), 1.0 / norm_type)


@composition(
    sample((2, 3, 2), size=2, alpha=0.5, beta=0.5, k=2.0),
    sample((1, 4, 1), size=3),
    domain=real(-2, 2),
)
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta.

    Krizhevsky et al. (2012); what is beyond the first and last channel counts as 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.local_response_norm(pb.ones(1, 1, 1), size=1, alpha=1.0, beta=1.0)
    tensor([[[0.5000]]])
    """
    x = tensor_of("local_response_norm", input, "input")
    if len(x.shape) < 3:
        came = f"{len(x.shape)} dimensions"
        required = "at least 3 dimensions, (N, C, ...), required"
        raise ShapeError(compose("local_response_norm", required, came, ("input", x)))
    around = (size // 2, (size - 1) // 2)
    widths = ((0, 0), around, *((0, 0),) * (len(x.shape) - 2))
    squares = pad_constant(multiply(x, x), widths=widths, value=0)
    total = narrow(squares, 1, 0, x.shape[1])
    for i in range(1, size):
        total = add(total, narrow(squares, 1, i, x.shape[1]))
    return divide(x, power(add(multiply(total, alpha / size), k), beta))
