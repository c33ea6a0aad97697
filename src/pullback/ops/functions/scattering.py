"""Writing and adding by index or mask.

A result that several elements tie for, the largest or the smallest, shares its gradient evenly;
a product is right with zeros.
"""

from __future__ import annotations

from typing import Any

from pullback.core.function.dispatch import beside
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, needs_one_library, wrapper_of
from pullback.ops.functions.creation import arange, asarray, full, full_like, ones_like, zeros_like
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.gathering import (
    index_for,
    one_number,
    scattered,
    slice_index,
    slices_for,
)
from pullback.ops.functions.manipulation import broadcast_to, narrow, reshape
from pullback.ops.functions.pointwise import add, needs_mask, where
from pullback.ops.functions.repeating import broadcast_arrays
from pullback.ops.primitives.arithmetic import divide, floor_divide, maximum, minimum, multiply
from pullback.ops.primitives.comparison import equal, logical_and
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.gathering import (
    gather_p,
    index_add_p,
    index_copy_p,
    index_fill_p,
    scatter_add_p,
    scatter_p,
)
from pullback.ops.samples import both, integers, mask, real, sample


# -- writing and adding ----------------------------------------------------------------------------
@wrapper_of(
    scatter_p,
    call=lambda f, input, index, src, *, axis: f(input, axis, index, src),
    methods="scatter",
)
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Tensor:
    """Return `input` with `src` written where `index` says, the opposite of `gather`.

    For three dimensions and ``dim=1``: ``out[i, index[i, j, k], k] = src[i, j, k]``.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of integers
        Of the rank of `input`, and along the other dimensions no longer. Where it names a place
        several times, the last value is written, and gets the gradient of the place.
    src : Tensor or number
        A tensor of at least the lengths of `index`; what is beyond them is not used.
    value : number, optional
        The same as a number for `src`.

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If the shapes do not fit; if an index is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter(pb.zeros((2, 3)), 1, pb.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    axis, index, src = scattered("scatter", input, dim, index, src if value is None else value)
    return scatter_p.public(input, index, src, axis=axis)


@wrapper_of(
    scatter_add_p,
    call=lambda f, input, index, src, *, axis: f(input, axis, index, src),
    methods="scatter_add",
)
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with `src` added where `index` says; see `scatter`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter_add(pb.zeros(3), 0, pb.tensor([0, 2, 0]), pb.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    axis, index, src = scattered("scatter_add", input, dim, index, src)
    return scatter_add_p.public(input, index, src, axis=axis)


@wrapper_of(
    index_add_p,
    call=lambda f, input, index, source, *, axis: f(input, axis, index, source),
    methods="index_add",
)
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input` with ``alpha * source`` added to the slices that `index` names along `dim`.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of integers
        Of one dimension; a slice that it names several times is added to as often.
    source : Tensor
        Of the shape of `input`, with the length of `index` along `dim`.
    alpha : number, optional

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If the shapes do not fit; if an index is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_add(pb.zeros(3), 0, pb.tensor([0, 2, 0]), pb.tensor([1.0, 2.0, 3.0]), alpha=10)
    tensor([40.,  0., 20.])
    """
    axis, slices = slice_index("index_add", input, dim, index)
    source = slices_for("index_add", input, axis, slices, source)
    return index_add_p.public(input, slices, source if alpha == 1 else source * alpha, axis=axis)


@wrapper_of(
    index_copy_p,
    call=lambda f, input, index, src, *, axis: f(input, axis, index, src),
    methods="index_copy",
)
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:
    """Return `input` with `source` written to the slices that `index` names along `dim`.

    The arguments are those of `index_add`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_copy(pb.zeros(3), 0, pb.tensor([2, 0]), pb.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    axis, slices = slice_index("index_copy", input, dim, index)
    source = slices_for("index_copy", input, axis, slices, source)
    return index_copy_p.public(input, slices, source, axis=axis)


@wrapper_of(
    index_fill_p,
    call=lambda f, input, index, value, *, axis: f(input, axis, index, value),
    methods="index_fill",
)
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Tensor:
    """Return `input` with one number written to the slices that `index` names along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_fill(pb.zeros(3), 0, pb.tensor([0, 2]), 7.0)
    tensor([7., 0., 7.])
    """
    axis, index = slice_index("index_fill", input, dim, index)
    return index_fill_p.public(input, index, one_number("index_fill", value), axis=axis)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


# -- by a mask, by numbers of the flat tensor ------------------------------------------------------
@composition(
    sample((3, 4), (3, 4), (12,)),
    sample((2, 2), (2,), (4, 1)),
    sample((0,), (0,), (2,)),
    domain={"input": both(-2, 2), "mask": mask(), "source": both(-2, 2)},
    constants=("mask",),
    scalars=False,
    methods="masked_scatter masked_scatter_",
)
def masked_scatter(input: Any, mask: Any, source: Any) -> Tensor:
    """Return `input` with the elements of `source`, in their order, where `mask` holds.

    Raises
    ------
    ShapeError, DTypeError
        If there are too few elements, or the mask does not broadcast; if it is not of bools.

    Examples
    --------
    >>> import pullback as pb
    >>> x, m = pb.zeros(3), pb.tensor([True, False, True])
    >>> pb.masked_scatter(x, m, pb.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 2.])
    """
    needs_mask("masked_scatter", "mask", mask)
    input = tensor_of("masked_scatter", input, "input")
    source = tensor_of("masked_scatter", source, "source")
    needs_one_library("masked_scatter", ("input", input), ("mask", mask), ("source", source))
    spread, chosen = broadcast_arrays(input, mask)
    count = int(chosen.count_nonzero())
    if count > source.numel():
        required = f"a source of at least {count} elements, as many as are chosen, required"
        named = (("input", input), ("mask", mask), ("source", source))
        raise ShapeError(compose("masked_scatter", required, str(source.numel()), *named))
    result: Tensor = clone(beside(spread, chosen, source))
    result[chosen] = reshape(source, (-1,))[:count]
    return result


@composition(
    sample((2, 3), (2,), (2,), accumulate=True),
    sample((4,), (1,), (1,)),
    sample((2,), (0,), (0,)),
    domain={"input": both(-2, 2), "index": integers(-2, 1), "source": both(-2, 2)},
    constants=("index",),
    scalars=False,
    methods="put put_",
)
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Return `input` with the elements of `source` at the positions that count its elements.

    Parameters
    ----------
    input : Tensor
    index : Tensor of integers
        Into the flattened input; negative ones count from the end.
    source : Tensor
        As many elements as the index has.
    accumulate : bool
        Whether they are added to what is there.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.put(pb.zeros(2, 2), pb.tensor([3]), pb.tensor([7.0]))
    tensor([[0., 0.],
            [0., 7.]])
    """
    input, source = tensor_of("put", input, "input"), tensor_of("put", source, "source")
    flat = reshape(input, (-1,))
    positions = index_for("put", flat, 0, index, wraps=True)
    if positions.numel() != source.numel():
        required = f"a source of {positions.numel()} elements, as many as the index has, required"
        named = (("input", input), ("index", index), ("source", source))
        raise ShapeError(compose("put", required, str(source.numel()), *named))
    write = index_add_p.public if accumulate else index_copy_p.public
    result = write(flat, reshape(positions, (-1,)), reshape(source, (-1,)), axis=0)
    return reshape(result, input.shape)


def added_at(input: Tensor, indices: Any, values: Any) -> Tensor:
    """Return `input` with `values` added at ``input[indices]``, as often as a place is named."""
    numbers = arange(input.numel(), device=input.device).reshape(input.shape)
    positions = numbers[tuple(indices)]
    if not isinstance(values, Tensor):
        values = asarray(full((), values, dtype=input.dtype, device=input.device))
    return put(input, positions, broadcast_to(values, positions.shape), accumulate=True)


# -- reductions by index ---------------------------------------------------------------------------
_BY_INDEX = {"input": real(0.5, 2), "index": integers(0, 1), "src": real(0.5, 2)}


@composition(
    sample((2, 3), (4, 2), (4, 2), dim=0, reduce="mean"),
    sample((3, 2), (3, 4), (3, 4), dim=-1, reduce="prod", include_self=False),
    sample((2, 3), (4, 3), (4, 3), dim=0, reduce="amax"),
    sample((2,), (3,), (3,), dim=0, reduce="amin", include_self=False),
    domain=_BY_INDEX,
    constants=("index",),
    call=lambda f, input, index, src, *, dim, reduce, **more: f(
        input, dim, index, src, reduce, **more
    ),
    scalars=False,
    methods="scatter_reduce scatter_reduce_",
)
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return `input` with the elements of `src` that go to one place taken together there.

    Parameters
    ----------
    input, dim, index, src
        As for `scatter`.
    reduce : str
        ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    include_self : bool
        Whether the element of `input` is one of them.

    Raises
    ------
    ArgumentError
        If the reduction is another.

    Examples
    --------
    >>> import pullback as pb
    >>> where = pb.tensor([0, 0, 1])
    >>> pb.scatter_reduce(pb.zeros(2), 0, where, pb.tensor([1.0, 5.0, 3.0]), "mean",
    ...     include_self=False)
    tensor([3., 3.])
    """
    if reduce not in REDUCTIONS:
        required = f"one of {', '.join(REDUCTIONS)} required as 'reduce'"
        raise ArgumentError(compose("scatter_reduce", required, repr(reduce)))
    input = tensor_of("scatter_reduce", input, "input")
    axis, index, src = scattered("scatter_reduce", input, dim, index, src)
    if not input.shape:
        result = scatter_reduce(
            reshape(input, (1,)),
            0,
            reshape(index, (1,)),
            reshape(src, (1,)),
            reduce,
            include_self=include_self,
        )
        return reshape(result, ())
    neutral = {"sum": 0, "mean": 0, "prod": 1}.get(reduce)
    if not include_self and neutral is not None:
        input = scatter_p.public(input, index, neutral, axis=axis)
    if reduce == "sum":
        return scatter_add_p.public(input, index, src, axis=axis)
    if reduce == "mean":
        return _mean(input, index, src, axis, include_self)
    if reduce == "prod":
        return _one_by_one(multiply, input, index, src, axis)
    return _extreme(reduce, input, index, src, axis, include_self)


def _mean(input: Tensor, index: Tensor, src: Tensor, axis: int, include_self: bool) -> Tensor:
    total = scatter_add_p.public(input, index, src, axis=axis)
    ones = ones_like(src)
    count = scatter_add_p.public(zeros_like(input), index, ones, axis=axis)
    count = add(count, 1) if include_self else where(equal(count, 0), 1, count)
    if input.dtype.is_inexact:
        return divide(total, count)
    return floor_divide(total, count)


def _one_by_one(take: Any, input: Tensor, index: Tensor, src: Tensor, axis: int) -> Tensor:
    """Take the slices of `src` into account one after the other."""
    if index.shape[axis] == 0:
        return clone(input)
    for k in range(index.shape[axis]):
        position, value = narrow(index, axis, k, 1), narrow(src, axis, k, 1)
        there = gather_p.public(input, position, axis=axis)
        input = scatter_p.public(input, position, take(there, value), axis=axis)
    return input


def _extreme(
    reduce: str, input: Tensor, index: Tensor, src: Tensor, axis: int, include_self: bool
) -> Tensor:
    """Return the extremes, each as the mean of all that tie for it: they share its gradient."""
    start = input.detach()
    if not include_self:
        start = scatter_p.public(start, index, src.detach(), axis=axis)  # any one of them will do
    take = maximum if reduce == "amax" else minimum
    best = _one_by_one(take, start, index, src.detach(), axis)
    wins = equal(gather_p.public(best, index, axis=axis), src.detach())
    stays = equal(best, input.detach())
    if not include_self:
        untouched = full_like(stays, True)
        untouched = scatter_p.public(untouched, index, False, axis=axis)
        stays = logical_and(stays, untouched)
    rest = where(stays, input, 0)
    total = scatter_add_p.public(rest, index, where(wins, src, 0), axis=axis)
    count = astype(stays, input.dtype)
    count = scatter_add_p.public(count, index, astype(wins, input.dtype), axis=axis)
    if not input.dtype.is_inexact:
        return best
    none = equal(count, 0)  # it is NaN
    return where(none, best, divide(total, where(none, 1, count)))


@composition(
    sample((2, 3), (2,), (2, 3), dim=0, reduce="prod"),
    sample((3, 2), (3,), (3, 3), dim=1, reduce="amax", include_self=False),
    domain={"input": real(0.5, 2), "index": integers(0, 1), "source": real(0.5, 2)},
    constants=("index",),
    call=lambda f, input, index, source, *, dim, reduce, **more: f(
        input, dim, index, source, reduce, **more
    ),
    scalars=False,
    methods="index_reduce index_reduce_",
)
def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return `input` with the slices of `source` that go to one slice taken together there.

    The arguments are those of `index_add`, and `reduce` and `include_self` of `scatter_reduce`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_reduce(pb.ones(2), 0, pb.tensor([0, 0]), pb.tensor([2.0, 5.0]), "prod")
    tensor([10.,  1.])
    """
    axis, positions = slice_index("index_reduce", input, dim, index)
    source = slices_for("index_reduce", input, axis, positions, source)
    after = len(source.shape) - axis - 1
    if source.shape:
        positions = reshape(positions, (*(1,) * axis, -1, *(1,) * after))
    positions = broadcast_to(positions, source.shape) if source.shape else reshape(positions, ())
    return scatter_reduce(input, axis, positions, source, reduce, include_self=include_self)
