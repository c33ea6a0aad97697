"""Histograms and counts, which have no gradient but in the weights."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import DTYPES, library_of
from pullback.core.tensor.tensor import Tensor, box, tensor_class
from pullback.errors import (
    ArgumentError,
    DTypeError,
    ShapeError,
    TensorIndexError,
    compose,
)
from pullback.ops.arguments import array_of, tensor_of
from pullback.ops.declare import composition, needs_tensor
from pullback.ops.functions.creation import linspace, ones_like
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.gathering import needs_whole
from pullback.ops.functions.manipulation import reshape
from pullback.ops.functions.pointwise import where
from pullback.ops.functions.scans import diff
from pullback.ops.functions.sorting import searchsorted
from pullback.ops.primitives.gathering import take_back_p
from pullback.ops.samples import grid, integers, real, sample


# -- histograms ------------------------------------------------------------------------------------
class Histogram(NamedTuple):
    """The counts of a histogram, and where its bins end."""

    hist: Tensor
    bin_edges: Tensor


@composition(
    sample((2, 4), bins=3),
    sample((5,), bins=2, range=(-1.0, 1.0), density=True),
    sample((), bins=1),
    domain=real(-2, 2),
    differentiable=False,
    multi=True,
    reference=(
        lambda np, x, bins, **settings: (
            (result := np.histogram(x, bins, **settings))[0].astype(x.dtype),
            result[1],
        )
    ),
    methods="histogram",
)
def histogram(
    input: Any,
    bins: Any,
    *,
    range: Any = None,
    weight: Any = None,
    density: bool = False,
) -> Histogram:
    """Return how much there is between each two neighbouring edges, and the edges.

    Parameters
    ----------
    input : Tensor
        Of real floating numbers; what is beyond the edges is not counted.
    bins : int or Tensor
        How many bins of one width there are, or the edges in ascending order.
    range : tuple of two float, optional
        Where the bins begin and end; by default the least and the largest element.
    weight : Tensor, optional
        What each element counts for, 1 by default.
    density : bool
        Divide by the widths and the total, so that the integral is 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.histogram(pb.tensor([0.0, 1.0, 1.5, 2.0]), 2)
    Histogram(hist=tensor([1., 3.]), bin_edges=tensor([0., 1., 2.]))
    """
    x = reshape(tensor_of("histogram", input, "input").detach(), (-1,))
    edges = bins.detach().clone() if isinstance(bins, Tensor) else _edges(x, bins, range)
    count = edges.shape[0] - 1
    bin_ = searchsorted(edges, x, side="right") - 1
    bin_ = where((x == edges[-1]) & (bin_ == count), count - 1, bin_)
    inside = (bin_ >= 0) & (bin_ < count)
    weights = ones_like(x) if weight is None else reshape(weight.detach(), (-1,))
    weights = where(inside, weights, 0)
    hist = bincount(where(inside, bin_, 0), weights=weights, minlength=count).to(x.dtype)
    if density:
        hist = hist / hist.sum() / diff(edges)
    return Histogram(hist, edges)


def _edges(x: Tensor, bins: int, range: Any) -> Tensor:
    """Return the edges of `bins` bins of one width."""
    if bins < 1:
        raise ArgumentError(compose("histogram", "at least one bin required", str(bins)))
    empty = range is None and x.numel() == 0
    low, high = (0.0, 1.0) if empty else range or (float(x.min()), float(x.max()))
    if low > high:
        came = f"{low} and {high}"
        raise ArgumentError(compose("histogram", "a range that ascends required", came))
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges: Tensor = linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    return edges


# -- counting --------------------------------------------------------------------------------------
@composition(
    sample((5,), (5,)),
    sample((0,), (0,), minlength=2),
    domain={"input": integers(0, 3), "weights": real(-2, 2)},
    constants=("input",),
    reference=(
        lambda np, x, weights, minlength=0: np.bincount(x, weights, minlength).astype(float)
    ),
    scalars=False,
    methods="bincount",
    numpy="bincount: x=input weights minlength",
)
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """Return how often each whole number from 0 on occurs, or the sum of its weights.

    Parameters
    ----------
    input : Tensor of integers
        Of one dimension, none negative.
    weights : Tensor, optional
        Of the shape of `input`; it has a gradient.
    minlength : int, optional
        The least length of the result.

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If `input` has not one dimension or `weights` another shape; if a number is negative, or
        is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bincount(pb.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    needs_whole("bincount", "input", input)
    array = array_of(input)
    if len(array.shape) != 1:
        came = f"{len(array.shape)} dimensions"
        raise ShapeError(compose("bincount", "one dimension required", came, ("input", input)))
    library, xp = library_of(array), library_of(array).xp
    if 0 not in array.shape and int(xp.min(array)) < 0:
        required, came = "no negative number required", str(int(xp.min(array)))
        raise TensorIndexError(compose("bincount", required, came, ("input", input)))
    if weights is None:
        weights = box(
            xp.ones(array.shape, dtype=library.native(DTYPES["int64"]), device=array.device)
        )
    else:
        needs_tensor("bincount", weights, "weights")
        if not library_of(weights_ := array_of(weights)).dtype(weights_).is_inexact:
            weights = astype(weights, DTYPES["float64"])
    if tuple(weights.shape) != tuple(array.shape):
        required, came = "weights of the shape of input required", str(tuple(weights.shape))
        named = (("input", input), ("weights", weights))
        raise ShapeError(compose("bincount", required, came, *named))
    length = max(minlength, int(xp.max(array)) + 1 if 0 not in array.shape else 0)
    return take_back_p.public(weights, input, axis=0, shape=(length,))


@composition(
    sample((3, 4), bins=4, min=-1.0, max=1.5),
    sample((2, 3), bins=3),
    sample((), bins=2),
    sample((0,), bins=3),
    domain=grid(-2, 2),
    differentiable=False,
    methods="histc",
)
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements are in each of `bins` intervals of one length from `min` to `max`.

    Parameters
    ----------
    input : Tensor
        Of real floating numbers. What is beyond the range is not counted, nor is NaN.
    bins : int, optional
    min, max : float, optional
        Where they are equal, the smallest and the largest element.

    Raises
    ------
    ArgumentError, DTypeError
        If `bins` is not positive or the range is none; if the numbers are not floating ones.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.histc(pb.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    needs_tensor("histc", input, "input")
    array = array_of(input)
    library, xp = library_of(array), library_of(array).xp
    dtype = library.dtype(array)
    if not dtype.is_floating_point:
        required = "floating point numbers required"
        raise DTypeError(compose("histc", required, dtype.name, ("input", input)))
    if min == max and 0 not in array.shape:
        min, max = float(xp.min(array)), float(xp.max(array))
    if min == max:
        min, max = min - 1, max + 1
    if bins < 1 or not -float("inf") < min < max < float("inf"):
        required = "at least one bin and a finite range from min to max required"
        came = f"{bins} bins from {min} to {max}"
        raise ArgumentError(compose("histc", required, came, ("input", input)))
    inside = library.getitem(array, (array >= min) & (array <= max))
    positions = library.astype((inside - min) * (bins / (max - min)), DTYPES["int64"])
    positions = xp.where(
        positions < bins, positions, xp.full_like(positions, bins - 1)
    )  # max is in the last
    counts = bincount(box(positions, cls=tensor_class((input,))), minlength=bins)
    return counts.to(dtype)
