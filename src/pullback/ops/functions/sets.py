"""Sets: which values there are.

The gradient of a value goes to the first element that has it. Values come back in ascending order
(complex ones by real part, then imaginary part). NaN equals nothing, so each NaN is a value of its
own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import DTYPES
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import composition, needs_tensor, wrapper_of
from pullback.ops.functions.creation import arange, full, zeros_like
from pullback.ops.functions.joining import cat
from pullback.ops.functions.manipulation import moveaxis, reshape
from pullback.ops.functions.scans import cumsum
from pullback.ops.functions.scattering import index_copy
from pullback.ops.functions.sorting import argsort, nonzero
from pullback.ops.primitives.comparison import not_equal
from pullback.ops.primitives.gathering import take_p
from pullback.ops.primitives.reductions import any
from pullback.ops.primitives.sorting import isin_p, unique_all_p, unique_counts_p, unique_inverse_p
from pullback.ops.samples import real, sample


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


@wrapper_of(unique_all_p, numpy="unique_all: x")
def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct values, where each is first, which each element has, and their counts.

    Returns
    -------
    NamedTuple of values, indices, inverse_indices and counts
        `indices` are of the flattened tensor; ``values[inverse_indices]`` is `x`.

    Examples
    --------
    >>> import pullback as pb
    >>> found = pb.unique_all(pb.tensor([3, 1, 3]))
    >>> found.values, found.indices, found.inverse_indices, found.counts
    (tensor([1, 3]), tensor([1, 0]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    needs_tensor("unique_all", x)
    return UniqueAll(*unique_all_p.public(x))


@wrapper_of(unique_counts_p, numpy="unique_counts: x")
def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct values and how many there are of each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique_counts(pb.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    needs_tensor("unique_counts", x)
    return UniqueCounts(*unique_counts_p.public(x))


@wrapper_of(unique_inverse_p, numpy="unique_inverse: x")
def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct values, and the number of its value for each element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique_inverse(pb.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    needs_tensor("unique_inverse", x)
    return UniqueInverse(*unique_inverse_p.public(x))


@composition(
    sample((3, 4)),
    sample(()),
    sample((0, 2)),
    domain=real(-2, 2),
    distinct=True,
    reference="numpy.unique",
    numpy="unique_values: x",
)
def unique_values(x: Any, /) -> Tensor:
    """Return the distinct values, in ascending order.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique_values(pb.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    needs_tensor("unique_values", x)
    return unique_counts(x).values  # a library's own unique_values may come in any order


@wrapper_of(isin_p)
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Return whether each element of `x1` is among those of `x2`; with `invert`, whether it is not.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isin(pb.tensor([1, 2, 3]), pb.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    return isin_p.public(x1, x2, invert=bool(invert))


# -- PyTorch's names -------------------------------------------------------------------------------
@composition(
    sample((3, 4)),
    sample((4, 2), dim=0),
    sample(()),
    domain=real(-2, 2),
    distinct=True,
    reference=(lambda np, x, dim=None: np.unique(x, axis=dim)),
    methods="unique",
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
    x = tensor_of("unique", x)
    if dim is None:
        result = unique_all(x)
        values, inverse, counts = result.values, result.inverse_indices, result.counts
    else:
        rows, axis = _rows("unique", x.detach(), dim)
        order = _in_order(rows)
        ordered = take_p.public(rows, order, axis=0)
        starts, which, counts = _runs(ordered)
        values = take_p.public(x, take_p.public(order, starts, axis=0), axis=axis)
        inverse = index_copy(zeros_like(which), 0, order, which)
    return _asked_for(values, inverse, counts, return_inverse, return_counts)


@composition(
    sample((6,)),
    sample((4, 2), dim=0),
    sample((0,)),
    domain=real(-2, 2),
    distinct=True,
    scalars=False,
    methods="unique_consecutive",
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
    x = tensor_of("unique_consecutive", x)
    flat = reshape(x, (-1,)) if dim is None else x
    rows, axis = _rows("unique_consecutive", flat.detach(), 0 if dim is None else dim)
    starts, which, counts = _runs(rows)
    values = take_p.public(flat, starts, axis=axis)
    inverse = reshape(which, x.shape) if dim is None else which
    return _asked_for(values, inverse, counts, return_inverse, return_counts)


def _asked_for(values: Any, inverse: Any, counts: Any, want_inverse: Any, want_counts: Any) -> Any:
    more = ((inverse, want_inverse), (counts, want_counts))
    result = (values, *[part for part, wanted in more if wanted])
    return result if len(result) > 1 else values


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
    order: Tensor = arange(n, device=rows.device)
    for k in reversed(range(rows.shape[1])):
        column = take_p.public(rows[:, k], order, axis=0)
        order = take_p.public(order, argsort(column, stable=True), axis=0)
    return order


def _runs(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where runs of equal rows begin, which run each row is of, and their lengths."""
    n = rows.shape[0]
    changes = any(not_equal(rows[1:], rows[:-1]), axis=1, keepdims=False)
    first = full((min(n, 1),), True, device=rows.device)
    begins = cat([first, changes]) if n else first
    (starts,) = nonzero(begins)
    which = cumsum(begins.to(DTYPES["int64"]), 0) - 1
    ends = cat([starts[1:], full((min(n, 1),), n, device=rows.device)])
    return starts, which, ends - starts
