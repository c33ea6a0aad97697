"""Sorting, and searching by order.

What is chosen by order passes its gradient to the element that was chosen. Edge values: of equals
the first comes first, also in descending order; NaN is larger than every number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import array_of
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import (
    Primitive,
    composition,
    detach_results,
    needs_order,
    needs_tensor,
    wrapper_of,
)
from pullback.ops.functions import manipulation
from pullback.ops.functions.gathering import index_for
from pullback.ops.primitives import reductions as reductions_primitives
from pullback.ops.primitives.gathering import gather_p, take_p
from pullback.ops.primitives.sorting import (
    argsort_p,
    cummax_place_p,
    cummin_place_p,
    nonzero_p,
    searchsorted_p,
)
from pullback.ops.samples import grid, real, sample


class ValuesAndIndices(NamedTuple):
    """Chosen values along a dimension, and where they were."""

    values: Tensor
    indices: Tensor


# -- the largest, the smallest ---------------------------------------------------------------------
def at_places(x: Any, indices: Tensor, axis: int, keepdims: bool) -> ValuesAndIndices:
    """Return the elements that `indices` name along `axis`, and the indices."""
    values = gather_p.public(x, indices, axis=axis)
    if keepdims:
        return ValuesAndIndices(values, indices)
    return ValuesAndIndices(values.squeeze(axis), indices.squeeze(axis))


def values_and_indices(x: Tensor, name: str, dim: int, keepdims: bool) -> ValuesAndIndices:
    """Return the largest or smallest elements along `dim` and their (first) positions."""
    axis = normalize_axis(name, dim, len(x.shape))
    find = reductions_primitives.argmax if name == "max" else reductions_primitives.argmin
    if not x.shape:
        return ValuesAndIndices(x.clone(), find(x, axis=None, keepdims=False))
    result = at_places(x, find(x, axis=axis, keepdims=True), axis, keepdims)
    detach_results(result, (x,), {})
    return result


# -- orders ----------------------------------------------------------------------------------------
@wrapper_of(argsort_p, numpy="argsort: a=x axis/flat")
def argsort(
    x: Any,
    /,
    *,
    axis: int = -1,
    descending: bool = False,
    stable: bool = True,
) -> Tensor:
    """Return the indices that sort `x` along `axis`.

    Parameters
    ----------
    x : Tensor
        Of real numbers; NaN is larger than all others.
    axis : int, optional
    descending : bool, optional
    stable : bool, optional
        Whether equals keep their order.

    Raises
    ------
    DTypeError
        If `x` is complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.argsort(pb.tensor([2.0, 3.0, 1.0]))
    tensor([2, 0, 1])
    """
    needs_tensor("argsort", x)
    return argsort_p.public(x, axis=axis, descending=descending, stable=stable)


@composition(
    sample((3, 4), axis=0),
    sample((2, 3), descending=True),
    sample((2, 0), axis=-1),
    sample(()),
    domain=real(-2, 2),
    distinct=True,
    numpy="sort: a=x axis/flat",
)
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return `x` sorted along `axis`; the gradient goes back to where each element came from.

    The arguments are those of `argsort`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sort(pb.tensor([2.0, 3.0, 1.0]), descending=True)
    tensor([3., 2., 1.])
    """
    return sorted_with_indices("sort", x, axis, descending, stable).values


def sorted_with_indices(
    op: str, x: Any, dim: int, descending: bool, stable: bool = True
) -> ValuesAndIndices:
    """Return `x` sorted along `dim`, and where each element was."""
    row, axis, _ = rows_of(op, x, dim, "x")
    indices = argsort_p.public(row, axis=axis, descending=descending, stable=stable)
    result = _shaped(at_places(row, indices, axis, keepdims=True), x)
    detach_results(result, (x,), {})
    return result


def rows_of(op: str, x: Any, dim: int, name: str = "input") -> tuple[Any, int, int]:
    """Return real numbers with at least one axis, the axis of `dim`, and its length."""
    needs_tensor(op, x, name)
    needs_order(op, array_of(x))
    axis = normalize_axis(op, dim, len(x.shape))
    row = x if x.shape else manipulation.reshape(x, (1,))
    return row, axis, row.shape[axis]


def _shaped(pair: ValuesAndIndices, x: Any) -> ValuesAndIndices:
    """Return values and indices without the axis that `rows_of` gave to a 0-d `x`."""
    if x.shape or 0 in pair.values.shape:
        return pair
    return ValuesAndIndices(*(manipulation.reshape(part, ()) for part in pair))


@composition(
    sample((3, 2)), sample((0, 2)), sample(()), domain=real(-2, 2), distinct=True, methods="msort"
)
def msort(input: Any) -> Tensor:
    """Return `input` sorted along its first dimension.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.msort(pb.tensor([[3.0, 1.0], [2.0, 4.0]]))
    tensor([[2., 1.],
            [3., 4.]])
    """
    return sorted_with_indices("msort", input, 0, descending=False).values


# -- the first of an order -------------------------------------------------------------------------
@composition(
    sample((3, 4), k=2),
    sample((4, 2), k=3, dim=0, largest=False),
    sample((3,), k=0, dim=-1),
    sample((), k=1),
    domain=real(-2, 2),
    distinct=True,
    call=lambda f, input, **settings: f(input, **settings).values,
    methods="topk",
)
def topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesAndIndices:
    """Return the `k` largest elements along `dim`, the largest first, and their indices.

    Parameters
    ----------
    input : Tensor
    k : int
    dim : int, optional
    largest : bool, optional
        False returns the smallest, the smallest first.
    sorted : bool, optional
        As in PyTorch; the result is always sorted.

    Returns
    -------
    NamedTuple of values and indices

    Raises
    ------
    ArgumentError
        If there are less than `k` elements along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.topk(pb.tensor([2.0, 3.0, 1.0]), 2).values
    tensor([3., 2.])
    """
    row, axis, n = rows_of("topk", input, dim)
    k = _how_many("topk", input, k, 0, n, axis)
    order = argsort_p.public(row, axis=axis, descending=largest)
    indices = manipulation.narrow(order, axis, 0, k)
    return _shaped(at_places(row, indices, axis, keepdims=True), input)


@composition(
    sample((3, 4), k=2),
    sample((4, 2), k=4, dim=0, keepdim=True),
    sample((0, 2), k=1),
    sample((), k=1),
    domain=real(-2, 2),
    distinct=True,
    call=lambda f, input, **settings: f(input, **settings).values,
    methods="kthvalue",
)
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """Return the `k`-th smallest element along `dim`, counted from 1, and its index.

    Raises
    ------
    ArgumentError
        If `k` is not from 1 to the number of elements along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.kthvalue(pb.tensor([2.0, 3.0, 1.0]), 2).values
    tensor(2.)
    """
    row, axis, n = rows_of("kthvalue", input, dim)
    k = _how_many("kthvalue", input, k, 1, n, axis)
    indices = manipulation.narrow(argsort_p.public(row, axis=axis), axis, k - 1, 1)
    return at_places(row, indices, axis, keepdim and bool(input.shape))


def _how_many(op: str, x: Any, k: Any, least: int, n: int, axis: int) -> int:
    """Return `k`, a whole number from `least` to `n`."""
    if not hasattr(k, "__index__") or not least <= k.__index__() <= n:
        required = f"a whole number k from {least} to {n}, the length of axis {axis}, required"
        raise ArgumentError(compose(op, required, str(k), ("input", x)))
    return int(k)


def _running(op: str, places: Primitive, input: Any, dim: int) -> ValuesAndIndices:
    row, axis, _ = rows_of(op, input, dim)
    return _shaped(at_places(row, places.public(row, axis=axis), axis, keepdims=True), input)


_RUNNING = (sample((5,), dim=0), sample((3, 2), dim=-2), sample((0, 2), dim=0), sample((), dim=0))


@composition(
    *_RUNNING,
    domain=real(-2, 2),
    distinct=True,
    call=lambda f, input, *, dim: f(input, dim).values,
    methods="cummax",
)
def cummax(input: Any, dim: int) -> ValuesAndIndices:
    """Return the largest element so far along `dim`, and its index: of equals the last.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cummax(pb.tensor([1.0, 3.0, 2.0, 3.0]), 0)
    ValuesAndIndices(values=tensor([1., 3., 3., 3.]), indices=tensor([0, 1, 1, 3]))
    """
    return _running("cummax", cummax_place_p, input, dim)


@composition(
    *_RUNNING,
    domain=real(-2, 2),
    distinct=True,
    call=lambda f, input, *, dim: f(input, dim).values,
    methods="cummin",
)
def cummin(input: Any, dim: int) -> ValuesAndIndices:
    """Return the smallest element so far along `dim`, and its index: of equals the last.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cummin(pb.tensor([2.0, 3.0, 1.0]), 0).values
    tensor([2., 2., 1.])
    """
    return _running("cummin", cummin_place_p, input, dim)


# -- searching -------------------------------------------------------------------------------------
@wrapper_of(nonzero_p)
def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not 0, a tensor for each axis.

    Raises
    ------
    ShapeError
        If `x` has no axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nonzero(pb.tensor([[0.0, 3.0], [4.0, 0.0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    needs_tensor("nonzero", x)
    if not x.shape:
        required = "at least 1 dimension required"
        hint = "reshape it first"
        raise ShapeError(compose("nonzero", required, "a 0-d tensor", ("x", x), hint=hint))
    return tuple(nonzero_p.public(x))


@wrapper_of(searchsorted_p)
def searchsorted(
    x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None, right: bool = False
) -> Tensor:
    """Return where each number of `x2` belongs in `x1` to keep it in order.

    Parameters
    ----------
    x1 : Tensor
        Of one dimension, in ascending order.
    x2 : Tensor or number
    side : {"left", "right"}
        Before or after the elements that are equal.
    sorter : Tensor of integers, optional
        The indices that sort `x1`, where that is not in order.
    right : bool
        PyTorch's word for ``side="right"``.

    Raises
    ------
    ShapeError, ArgumentError, DTypeError
        If `x1` has not one dimension; if `side` is another word; if numbers are complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.searchsorted(pb.tensor([1.0, 2.0, 3.0]), pb.tensor([0.5, 2.0]))
    tensor([0, 1])
    """
    needs_tensor("searchsorted", x1, "x1")
    if len(x1.shape) != 1:
        came = f"{len(x1.shape)} dimensions"
        raise ShapeError(
            compose("searchsorted", "an x1 of one dimension required", came, ("x1", x1))
        )
    side = "right" if right else side
    if side not in ("left", "right"):
        raise ArgumentError(compose("searchsorted", "'left' or 'right' required", repr(side)))
    if sorter is not None:
        names = ("x1", "sorter")
        x1 = take_p.public(x1, index_for("searchsorted", x1, 0, sorter, names=names), axis=0)
    return searchsorted_p.public(x1, x2, side=side)


@composition(
    sample((2, 3), (4,)),
    sample((), (4,), right=True),
    sample((0,), (2,)),
    differentiable=False,
    domain={
        "input": grid(-3, 3),
        "boundaries": grid(-2, 2)._replace(within=sort),
    },
    reference=(lambda np, x, boundaries, right=False: np.digitize(x, boundaries, not right)),
    result_dtype="int64",
)
def bucketize(
    input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return which of the intervals between `boundaries` each number is in.

    Parameters
    ----------
    input : Tensor or number
    boundaries : Tensor
        Of one dimension, in ascending order.
    out_int32 : bool, optional
        Whether the result has the dtype int32, not int64.
    right : bool, optional
        Whether an interval holds its lower boundary, not its upper one.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.bucketize(pb.tensor([0.5, 1.0, 9.0]), pb.tensor([1.0, 2.0]))
    tensor([0, 0, 2])
    """
    result = searchsorted(boundaries, input, side="right" if right else "left")
    return result.to("int32") if out_int32 else result
