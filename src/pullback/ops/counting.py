"""Which values there are, and how often: unique rows and runs, modes, histograms."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import DTYPES
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._axes import normalize_axis
from pullback.ops._declare import composition, grid, needs_order, real, sample
from pullback.ops._values import ValuesAndIndices, at_places, take_slices
from pullback.ops.comparison import not_equal
from pullback.ops.elementwise import where
from pullback.ops.joining import cat
from pullback.ops.manipulation import diff, moveaxis
from pullback.ops.reductions import any_, argmax
from pullback.ops.scans import cumsum
from pullback.ops.sets import bincount, unique_all
from pullback.ops.shape import reshape, tensor_of
from pullback.ops.sorting import argsort, cummax, nonzero, searchsorted

__all__ = [
    "histogram",
    "mode",
    "unique",
    "unique_consecutive",
]


# -- distinct values -------------------------------------------------------------------------------
@composition(
    sample((3, 4)), sample((4, 2), dim=0), sample(()), domain=grid(0, 1), differentiable=False
)
def unique(
    x: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements of `x`, or slices along `dim`, in ascending order.

    Parameters
    ----------
    x : Tensor
    sorted : bool
        They are sorted in any case.
    return_inverse : bool
        Return too which of them each element or slice is.
    return_counts : bool
        Return too how often each is there.
    dim : int, optional
        By default the elements are looked at.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique(pb.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    x = tensor_of("unique", x).detach()
    if dim is None:
        found = unique_all(x)
        values, inverse, counts = found.values, found.inverse_indices, found.counts
    else:
        rows, axis = _rows("unique", x, dim)
        order = _in_order(rows)
        ordered = take_slices(rows, order, axis=0)
        starts, which, counts = _runs(ordered)
        values = take_slices(x, take_slices(order, starts, axis=0), axis=axis)
        inverse = TENSORS.index_copy(TENSORS.zeros_like(which), 0, order, which)
    return _asked_for(values, inverse, counts, return_inverse, return_counts)


@composition(
    sample((6,)), sample((4, 2), dim=0), sample((0,)), domain=grid(0, 1), differentiable=False
)
def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return `x` with one element, or slice along `dim`, of each run of equal ones.

    The arguments are those of `unique`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique_consecutive(pb.tensor([3, 3, 1, 3]), return_counts=True)
    (tensor([3, 1, 3]), tensor([2, 1, 1]))
    """
    x = tensor_of("unique_consecutive", x).detach()
    flat = reshape(x, (-1,)) if dim is None else x
    rows, axis = _rows("unique_consecutive", flat, 0 if dim is None else dim)
    starts, which, counts = _runs(rows)
    values = take_slices(flat, starts, axis=axis)
    inverse = reshape(which, x.shape) if dim is None else which
    return _asked_for(values, inverse, counts, return_inverse, return_counts)


def _asked_for(values: Any, inverse: Any, counts: Any, want_inverse: Any, want_counts: Any) -> Any:
    more = ((inverse, want_inverse), (counts, want_counts))
    found = (values, *[part for part, wanted in more if wanted])
    return found if len(found) > 1 else values


def _rows(op: str, x: Tensor, dim: int) -> tuple[Tensor, int]:
    """Return the slices along an axis as the rows of a matrix, and the axis."""
    axis = normalize_axis(op, dim, len(x.shape))
    if not x.shape:
        raise ShapeError(compose(op, "at least 1 dimension required", "none", ("x", x)))
    moved = moveaxis(x, axis, 0)
    columns = moved.numel() // moved.shape[0] if moved.shape[0] else 0
    return reshape(moved, (moved.shape[0], columns)), axis


def _in_order(rows: Tensor) -> Tensor:
    """Return the order of rows as of words: sorted by the last column first, each time stably."""
    n = rows.shape[0]
    order: Tensor = TENSORS.arange(n, device=rows.device)
    for k in reversed(range(rows.shape[1])):
        column = take_slices(rows[:, k], order, axis=0)
        order = take_slices(order, argsort(column, stable=True), axis=0)
    return order


def _runs(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where runs of equal rows begin, which run each row is of, and their lengths."""
    n = rows.shape[0]
    changes = any_(not_equal(rows[1:], rows[:-1]), axis=1, keepdims=False)
    first = TENSORS.full((min(n, 1),), True, device=rows.device)
    begins = cat([first, changes]) if n else first
    (starts,) = nonzero(begins)
    which = cumsum(begins.to(DTYPES["int64"]), 0) - 1
    ends = cat([starts[1:], TENSORS.full((min(n, 1),), n, device=rows.device)])
    return starts, which, ends - starts


@composition(
    sample((2, 5)),
    sample((3, 2), dim=0, keepdim=True),
    sample(()),
    domain=real(-2, 2),
    distinct=True,
    multi=True,
    observed=lambda values, indices: values,
)
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """Return the value that is there most often along `dim`, the least of several, and where.

    The index is that of its last occurrence, which has its gradient.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mode(pb.tensor([2.0, 1.0, 2.0]))
    ValuesAndIndices(values=tensor(2.), indices=tensor(2))
    """
    x = tensor_of("mode", input, "input")
    needs_order("mode", x.data_array())
    axis = normalize_axis("mode", dim, len(x.shape))
    if not x.shape:
        return ValuesAndIndices(x.clone(), TENSORS.zeros_like(x.detach(), dtype="int64"))
    n = x.shape[axis]
    if n == 0:
        required = f"at least one element along axis {axis} required"
        raise ShapeError(compose("mode", required, "none", ("input", x)))
    rows = moveaxis(x.detach(), axis, -1)
    order = argsort(rows, stable=True)
    ordered = TENSORS.take_along_axis(rows, order, axis=-1)
    places = TENSORS.arange(n, device=x.device)
    new = not_equal(ordered[..., 1:], ordered[..., :-1])
    starts = where(cat([TENSORS.ones_like(ordered[..., :1], dtype="bool"), new], dim=-1), places, 0)
    run = cummax(starts, -1).values
    end = argmax(places - run, axis=-1, keepdims=True)  # the first of the longest: the least value
    index = moveaxis(TENSORS.take_along_axis(order, end, axis=-1), -1, axis)
    return at_places(x, index, axis, keepdim)


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
    edges = bins.detach() if isinstance(bins, Tensor) else _edges(x, bins, range)
    count = edges.shape[0] - 1
    bin_ = searchsorted(edges, x, side="right") - 1
    bin_ = where((x == edges[-1]) & (bin_ == count), count - 1, bin_)
    inside = (bin_ >= 0) & (bin_ < count)
    weights = TENSORS.ones_like(x) if weight is None else reshape(weight.detach(), (-1,))
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
    edges: Tensor = TENSORS.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    return edges
