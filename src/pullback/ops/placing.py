"""Writing what a mask or an index chooses: masked_scatter, put, and reductions by index.

A result that several elements tie for, the largest or the smallest, shares its gradient evenly;
a product is right with zeros.
"""

from __future__ import annotations

from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._declare import both, composition, integers, mask, needs_one_library, real, sample
from pullback.ops._values import (
    gather_elements,
    index_add_,
    index_for,
    index_write,
    scatter_add_,
    scatter_write,
    scattered,
    slice_index,
    slices_for,
)
from pullback.ops.comparison import equal
from pullback.ops.conversion import clone
from pullback.ops.elementwise import add, divide, maximum, minimum, multiply, needs_mask, where
from pullback.ops.repeating import broadcast_arrays
from pullback.ops.shape import broadcast_to, narrow, reshape, tensor_of

__all__ = [
    "index_reduce",
    "masked_scatter",
    "put",
    "scatter_reduce",
]

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


# -- by a mask, by numbers of the flat tensor ------------------------------------------------------
@composition(
    sample((3, 4), (3, 4), (12,)),
    sample((2, 2), (2,), (4, 1)),
    sample((0,), (0,), (2,)),
    domain={"input": both(-2, 2), "mask": mask(), "source": both(-2, 2)},
    constants=("mask",),
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
        given = (("input", input), ("mask", mask), ("source", source))
        raise ShapeError(compose("masked_scatter", required, str(source.numel()), *given))
    result: Tensor = clone(spread)
    result[chosen] = reshape(source, (-1,))[:count]
    return result


@composition(
    sample((2, 3), (2,), (2,), accumulate=True),
    sample((4,), (1,), (1,)),
    sample((2,), (0,), (0,)),
    domain={"input": both(-2, 2), "index": integers(-2, 1), "source": both(-2, 2)},
    constants=("index",),
)
def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Return `input` with the elements of `source` at the places that count its elements.

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
    places = index_for("put", flat, 0, index, wraps=True)
    if places.numel() != source.numel():
        required = f"a source of {places.numel()} elements, as many as the index has, required"
        given = (("input", input), ("index", index), ("source", source))
        raise ShapeError(compose("put", required, str(source.numel()), *given))
    write = index_add_ if accumulate else index_write
    result = write(flat, reshape(places, (-1,)), reshape(source, (-1,)), axis=0)
    return reshape(result, input.shape)


def added_at(input: Tensor, indices: Any, values: Any) -> Tensor:
    """Return `input` with `values` added at ``input[indices]``, as often as a place is named."""
    numbers = TENSORS.arange(input.numel(), device=input.device).reshape(input.shape)
    places = numbers[tuple(indices)]
    if not isinstance(values, Tensor):
        values = TENSORS.asarray(TENSORS.full((), values, dtype=input.dtype, device=input.device))
    return put(input, places, broadcast_to(values, places.shape), accumulate=True)


# -- reductions by index ---------------------------------------------------------------------------
_BY_INDEX = {"input": real(0.5, 2), "index": integers(0, 1), "src": real(0.5, 2)}


@composition(
    sample((2, 3), (4, 2), (4, 2), dim=0, reduce="mean"),
    sample((3, 2), (3, 4), (3, 4), dim=-1, reduce="prod", include_self=False),
    sample((2, 3), (4, 3), (4, 3), dim=0, reduce="amax"),
    sample((2,), (3,), (3,), dim=0, reduce="amin", include_self=False),
    domain=_BY_INDEX,
    constants=("index",),
    call=lambda input, index, src, *, dim, reduce, **more: TENSORS.scatter_reduce(
        input, dim, index, src, reduce, **more
    ),
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
        input = scatter_write(input, index, neutral, axis=axis)
    if reduce == "sum":
        return scatter_add_(input, index, src, axis=axis)
    if reduce == "mean":
        return _mean(input, index, src, axis, include_self)
    if reduce == "prod":
        return _one_by_one(multiply, input, index, src, axis)
    return _extreme(reduce, input, index, src, axis, include_self)


def _mean(input: Tensor, index: Tensor, src: Tensor, axis: int, include_self: bool) -> Tensor:
    total = scatter_add_(input, index, src, axis=axis)
    ones = TENSORS.ones_like(src)
    count = scatter_add_(TENSORS.zeros_like(input), index, ones, axis=axis)
    count = add(count, 1) if include_self else where(equal(count, 0), 1, count)
    if input.dtype.is_inexact:
        return divide(total, count)
    return TENSORS.floor_divide(total, count)  # type: ignore[no-any-return]


def _one_by_one(take: Any, input: Tensor, index: Tensor, src: Tensor, axis: int) -> Tensor:
    """Take the slices of `src` into account one after the other."""
    for k in range(index.shape[axis]):
        place, value = narrow(index, axis, k, 1), narrow(src, axis, k, 1)
        there = gather_elements(input, place, axis=axis)
        input = scatter_write(input, place, take(there, value), axis=axis)
    return input


def _extreme(
    reduce: str, input: Tensor, index: Tensor, src: Tensor, axis: int, include_self: bool
) -> Tensor:
    """Return the extremes, each as the mean of all that tie for it: they share its gradient."""
    start = input.detach()
    if not include_self:
        start = scatter_write(start, index, src.detach(), axis=axis)  # any one of them will do
    take = maximum if reduce == "amax" else minimum
    best = _one_by_one(take, start, index, src.detach(), axis)
    wins = equal(gather_elements(best, index, axis=axis), src.detach())
    stays = equal(best, input.detach())
    if not include_self:
        untouched = TENSORS.full_like(stays, True)
        untouched = scatter_write(untouched, index, False, axis=axis)
        stays = TENSORS.logical_and(stays, untouched)
    kept = where(stays, input, 0)
    total = scatter_add_(kept, index, where(wins, src, 0), axis=axis)
    count = TENSORS.astype(stays, input.dtype)
    count = scatter_add_(count, index, TENSORS.astype(wins, input.dtype), axis=axis)
    if not input.dtype.is_inexact:
        return best
    none = equal(count, 0)  # it is NaN
    return where(none, best, divide(total, where(none, 1, count)))


@composition(
    sample((2, 3), (2,), (2, 3), dim=0, reduce="prod"),
    sample((3, 2), (3,), (3, 3), dim=1, reduce="amax", include_self=False),
    domain={"input": real(0.5, 2), "index": integers(0, 1), "source": real(0.5, 2)},
    constants=("index",),
    call=lambda input, index, source, *, dim, reduce, **more: TENSORS.index_reduce(
        input, dim, index, source, reduce, **more
    ),
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
    axis, places = slice_index("index_reduce", input, dim, index)
    source = slices_for("index_reduce", input, axis, places, source)
    after = len(source.shape) - axis - 1
    if source.shape:
        places = reshape(places, (*(1,) * axis, -1, *(1,) * after))
    places = broadcast_to(places, source.shape) if source.shape else reshape(places, ())
    return scatter_reduce(input, axis, places, source, reduce, include_self=include_self)
