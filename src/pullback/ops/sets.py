"""Sets and counts: which values there are, and how often. Counts have no gradient, but weights.

The gradient of a value goes to the first element that has it. Values come back in ascending order
(complex ones by real part, then imaginary part). NaN equals nothing, so each NaN is a value of its
own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import DTYPES, library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, DTypeError, ShapeError, TensorIndexError, compose
from pullback.ops._declare import (
    Operation,
    composition,
    face,
    grid,
    integers,
    needs_tensor,
    operation,
    real,
    sample,
)
from pullback.ops._values import array_of, needs_whole, take_back

__all__ = [
    "bincount",
    "histc",
    "isin",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


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


def _to_the_first(g: Any, x: Any, xp: Any) -> Any:
    """Return the gradients of the values, each at the first element that has the value."""
    _, first, numbers, _ = xp.unique_all(x)
    numbers = xp.reshape(numbers, (-1,))
    is_first = xp.arange(numbers.shape[0], device=x.device) == xp.take(first, numbers, axis=0)
    spread = xp.take(g[0], numbers, axis=0)
    return xp.reshape(xp.where(is_first, spread, xp.zeros_like(spread)), x.shape)


def _unique(name: str) -> Operation:
    def forward(xp: Any, x: Any) -> Any:
        return list(getattr(xp, name)(x))

    return operation(
        name,
        forward,
        multi=True,
        rules={"x": _to_the_first},
        domain=real(-2, 2),
        distinct=True,
        observed=lambda values, *counts: values,
        samples=(sample((3, 4)), sample(()), sample((0, 2))),
    )


unique_all_ = _unique("unique_all")
unique_counts_ = _unique("unique_counts")
unique_inverse_ = _unique("unique_inverse")


@face(unique_all_)
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
    return UniqueAll(*unique_all_(x))


@face(unique_counts_)
def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct values and how many there are of each.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique_counts(pb.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    needs_tensor("unique_counts", x)
    return UniqueCounts(*unique_counts_(x))


@face(unique_inverse_)
def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct values, and the number of its value for each element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unique_inverse(pb.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    needs_tensor("unique_inverse", x)
    return UniqueInverse(*unique_inverse_(x))


@composition(sample((3, 4)), sample(()), sample((0, 2)), domain=real(-2, 2), distinct=True)
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


def _isin(xp: Any, x1: Any, x2: Any, *, invert: bool = False) -> Any:
    """Number the values of both, mark the numbers that x2 has, and look up those of x1."""
    library = library_of(x1)
    first, second = xp.reshape(x1, (-1,)), xp.reshape(x2, (-1,))
    numbers = xp.unique_inverse(xp.concat([first, second])).inverse_indices
    n = first.shape[0]
    marks = xp.full(numbers.shape, invert, dtype=library.native(DTYPES["bool"]), device=x1.device)
    marks = library.assign(marks, numbers[n:], not invert)
    return xp.reshape(xp.take(marks, numbers[:n], axis=0), x1.shape)


isin_ = operation(
    "isin",
    _isin,
    differentiable=False,
    domain=grid(-2, 2),
    samples=(
        sample((3, 4), (2,)),
        sample((), (2, 2), invert=True),
        sample((2,), ()),
        sample((3,), (0,)),
        sample((0, 2), (3,)),
    ),
)


@face(isin_)
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Return whether each element of `x1` is among those of `x2`; with `invert`, whether it is not.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.isin(pb.tensor([1, 2, 3]), pb.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    return isin_(x1, x2, invert=bool(invert))


# -- counting --------------------------------------------------------------------------------------
@composition(
    sample((5,), (5,)),
    sample((0,), (0,), minlength=2),
    domain={"input": integers(0, 3), "weights": real(-2, 2)},
    constants=("input",),
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
            weights = TENSORS.astype(weights, DTYPES["float64"])
    if tuple(weights.shape) != tuple(array.shape):
        required, came = "weights of the shape of input required", str(tuple(weights.shape))
        named = (("input", input), ("weights", weights))
        raise ShapeError(compose("bincount", required, came, *named))
    length = max(minlength, int(xp.max(array)) + 1 if 0 not in array.shape else 0)
    return take_back(weights, input, axis=0, shape=(length,))


@composition(
    sample((3, 4), bins=4, min=-1.0, max=1.5),
    sample((2, 3), bins=3),
    sample((), bins=2),
    sample((0,), bins=3),
    domain=grid(-2, 2),
    differentiable=False,
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
    places = library.astype((inside - min) * (bins / (max - min)), DTYPES["int64"])
    places = xp.where(places < bins, places, xp.full_like(places, bins - 1))  # max is in the last
    counts = bincount(box(places), minlength=bins)
    return counts.to(dtype)
