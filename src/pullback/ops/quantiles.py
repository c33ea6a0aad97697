"""Medians and quantiles: positions in the order of the elements, or between two of them.

Edge values: NaN is the result where there is a NaN, but for `nanmedian` and `nanquantile`, which
leave it out. At an exact position of a quantile the gradient goes to the element there, and the
slope in `q` is 0. The median of a whole tensor shares the gradient evenly between elements that
tie, as `max` does; along a dimension it goes to the element that `indices` names.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops import elementary, elementwise, shape
from pullback.ops._declare import (
    composition,
    needs_one_library,
    needs_order,
    operation,
    real,
    sample,
)
from pullback.ops._values import array_of, at_places, gather_elements
from pullback.ops.conversion import astype
from pullback.ops.sorting import argsort_, rows_of

__all__ = ["median", "nanmedian", "nanquantile", "quantile"]


# -- medians ---------------------------------------------------------------------------------------
def _middle(array: Any, axis: int, skip_nan: bool) -> Any:
    """Return where the lower median stands among the sorted elements, the axis kept.

    That is the first NaN, which stands after the numbers, where there is one to be heeded.
    """
    library = library_of(array)
    xp, n = library.xp, array.shape[axis]
    numbers = library.astype(array == array, DTYPES["int64"])
    count = xp.sum(numbers, axis=axis, keepdims=True)
    if skip_nan:
        return xp.where(count > 0, (count - 1) // 2, xp.zeros_like(count))
    return xp.where(count < n, count, xp.full_like(count, (n - 1) // 2))


def _median_of_all(xp: Any, x: Any, *, skip_nan: bool = False) -> Any:
    flat = xp.reshape(x, (-1,))
    place = _middle(flat, 0, skip_nan)
    return xp.reshape(xp.take(xp.sort(flat), place, axis=0), ())


def _shared(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the gradient shared evenly by the elements that are the result."""
    ties = (x == out) | ((x != x) & (out != out))
    count = xp.sum(xp.where(ties, xp.ones_like(x), xp.zeros_like(x)))
    return xp.where(ties, g / count, xp.zeros_like(x))


median_of_all = operation(
    "median_of_all",
    _median_of_all,
    rules={"x": _shared},
    domain=real(-2, 2),
    samples=(sample((3, 3)), sample((4,), skip_nan=True), sample((1, 1)), sample(())),
    doc="Return the lower median of all elements; those that tie share the gradient evenly.",
)


def _median(op: str, x: Any, dim: int | None, keepdim: bool, skip_nan: bool) -> Any:
    row, axis, n = rows_of(op, x, 0 if dim is None else dim)
    if n == 0 or (dim is None and 0 in row.shape):
        required = f"at least one element along axis {axis} required"
        raise ArgumentError(compose(op, required, "none", ("input", x)))
    if dim is None:
        return median_of_all(x, skip_nan=skip_nan)
    place = box(_middle(array_of(row), axis, skip_nan))
    indices = gather_elements(argsort_(row, axis=axis), place, axis=axis)
    return at_places(row, indices, axis, keepdim and bool(x.shape))


_MEDIANS = (
    sample((3, 4), dim=0),
    sample((2, 4), dim=-1, keepdim=True),
    sample((0, 3), dim=1),
    sample((), dim=0),
)


@composition(
    *_MEDIANS,
    domain=real(-2, 2),
    distinct=True,
    call=lambda input, **settings: TENSORS.median(input, **settings).values,
)
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, of an even number of elements the lower one; NaN where there is a NaN.

    Parameters
    ----------
    input : Tensor
    dim : int, optional
        None, the default, takes all elements together.
    keepdim : bool, optional

    Returns
    -------
    Tensor, or NamedTuple of values and indices
        Without `dim` one number, whose gradient the elements that tie share evenly; along a
        dimension the medians and where they were: to those elements goes the gradient.

    Raises
    ------
    ArgumentError
        If there is no element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.median(pb.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    >>> pb.median(pb.tensor([[4.0, 1.0, 3.0]]), 1).indices
    tensor([2])
    """
    return _median("median", input, dim, keepdim, skip_nan=False)


@composition(
    *_MEDIANS,
    domain=real(-2, 2),
    distinct=True,
    call=lambda input, **settings: TENSORS.nanmedian(input, **settings).values,
)
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN; see `median`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nanmedian(pb.tensor([4.0, float("nan"), 3.0]))
    tensor(3.)
    """
    return _median("nanmedian", input, dim, keepdim, skip_nan=True)


# -- quantiles -------------------------------------------------------------------------------------
_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    op: str, x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool
) -> Tensor:
    ordered, axis, n = rows_of(op, x, 0 if dim is None else dim)
    _check(op, x, interpolation)
    if dim is None:
        ordered, axis = shape.reshape(ordered, (-1,)), 0
        n = ordered.shape[0]
    if n == 0:
        raise ArgumentError(compose(op, "at least one element required", "none", ("input", x)))
    levels = _levels(op, q, array_of(x))
    order = [i for i in range(len(ordered.shape)) if i != axis]
    ordered = shape.permute_dims(ordered, (*order, axis))
    ordered = gather_elements(ordered, argsort_(ordered, axis=-1), axis=-1)
    ranks = _ranks(ordered, shape.reshape(levels, (-1,)), skip_nan)
    found = _between(ordered, ranks, interpolation)
    rest = tuple(found.shape[:-1])
    last = len(rest)
    found = shape.permute_dims(found, (last, *range(last)))
    if keepdim:
        rest = (1,) * len(x.shape) if dim is None else (*rest[:axis], 1, *rest[axis:])
        rest = rest if x.shape else ()
    return shape.reshape(found, (*levels.shape, *rest))


def _check(op: str, x: Any, interpolation: str) -> None:
    """Raise where numbers are not floating, or the way of interpolating is unknown."""
    dtype = library_of(array_of(x)).dtype(array_of(x))
    if not dtype.is_floating_point:
        hint = "convert it first, for instance with .float()"
        named = ("input", x)
        raise DTypeError(
            compose(op, "floating point numbers required", dtype.name, named, hint=hint)
        )
    if interpolation not in _BETWEEN:
        required = f"an interpolation of {', '.join(_BETWEEN)} required"
        raise ArgumentError(compose(op, required, repr(interpolation)))


def _levels(op: str, q: Any, like: Any) -> Tensor:
    """Return `q` as a float64 tensor of at most one dimension, all within [0, 1]."""
    library = library_of(like)
    if isinstance(q, Tensor):
        needs_one_library(op, ("input", like), ("q", q))
    elif q is None:  # of which a library might make a NaN
        raise ArgumentTypeError(compose(op, "numbers or a Tensor required as 'q'", "None"))
    else:
        device = library.native_device(library.device(like))
        try:
            q = box(library.asarray(q, dtype=DTYPES["float64"], device=device))
        except (TypeError, ValueError) as error:
            required, came = "numbers or a Tensor required as 'q'", type(q).__name__
            raise ArgumentTypeError(compose(op, f"{required} ({error})", came)) from None
    needs_order(op, q.data_array())
    levels: Tensor = astype(q, DTYPES["float64"], copy=False)
    array = levels.data_array()
    if len(array.shape) > 1:
        raise ShapeError(compose(op, "a q of at most one dimension required", "more", ("q", q)))
    if not bool(library.xp.all((array >= 0) & (array <= 1))):
        raise ArgumentError(compose(op, "q from 0 to 1 required", str(q.tolist()), ("q", q)))
    return levels


def _ranks(ordered: Tensor, levels: Tensor, skip_nan: bool) -> Tensor:
    """Return where the levels stand in the last axis, as float64."""
    array = ordered.data_array()
    library, n = library_of(array), array.shape[-1]
    numbers = library.astype(array == array, DTYPES["float64"])
    count = library.xp.sum(numbers, axis=-1, keepdims=True)
    if skip_nan:
        steps = library.xp.where(count > 0, count - 1, library.xp.zeros_like(count))
        return levels * box(steps)
    return elementwise.where(box(count < n), float(n - 1), levels * (n - 1))


def _between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """Return the elements at the ranks along the last axis, between two of them interpolated."""
    below, above = elementary.floor(ranks.detach()), elementary.ceil(ranks.detach())

    def at(places: Tensor) -> Tensor:
        return gather_elements(ordered, astype(places, DTYPES["int64"]), axis=-1)

    if interpolation == "lower":
        return at(below)
    if interpolation == "higher":
        return at(above)
    if interpolation == "nearest":
        return at(elementary.round(ranks.detach()))
    low, high = at(below), at(above)
    weight = 0.5 if interpolation == "midpoint" else astype(ranks - below, ordered.dtype)
    return low + weight * (high - low)


_QUANTILES = (
    sample((2, 4), (3,), dim=1),
    sample((4, 2), (), dim=0, keepdim=True),
    sample((2, 2), (2,)),
    sample((4, 0), (1,), dim=0),
    sample((), ()),
)
_LEVELS = {"input": real(-2, 2), "q": real(0.4, 0.6)}


@composition(*_QUANTILES, domain=_LEVELS, distinct=True)
def quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantiles of `input` at `q`: where ``q * (n - 1)`` points in the sorted elements.

    Parameters
    ----------
    input : Tensor
    q : number or Tensor
        From 0 to 1; of one dimension, it becomes the first of the result. It has a gradient too.
    dim : int, optional
        None, the default, takes all elements together.
    keepdim : bool, optional
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}
        What to take where the position is between two elements.

    Raises
    ------
    DTypeError, ShapeError, ArgumentError
        If the numbers are not real floating ones; if `q` has more than one dimension; if `q` is
        beyond 0 or 1, the interpolation unknown, or there is no element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.quantile(pb.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
    tensor(2.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip_nan=False)


@composition(*_QUANTILES, domain=_LEVELS, distinct=True)
def nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantiles of the elements that are not NaN; see `quantile`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nanquantile(pb.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip_nan=True)
