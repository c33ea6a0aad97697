"""Statistics: spreads, quantiles, modes, covariances.

Edge values: NaN is the result where there is a NaN, but for `nanmedian` and `nanquantile`, which
leave it out. At an exact position of a quantile the gradient goes to the element there, and the
slope in `q` is 0. The median of a whole tensor shares the gradient evenly between elements that
tie, as `max` does; along a dimension it goes to the element that `indices` names.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    compose,
)
from pullback.ops.arguments import array_of, holds_somewhere, tensor_of
from pullback.ops.axes import merge_axis_args, normalize_axes, normalize_axis
from pullback.ops.declare import composition, needs_one_library, needs_order, needs_tensor
from pullback.ops.functions import complex_numbers, manipulation, pointwise
from pullback.ops.functions.creation import arange, ones_like, zeros_like
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.diagonals import diag
from pullback.ops.functions.gathering import take_along_axis
from pullback.ops.functions.joining import cat
from pullback.ops.functions.manipulation import expand_dims, moveaxis, reshape
from pullback.ops.functions.pointwise import add, clamp, where
from pullback.ops.functions.products import matmul
from pullback.ops.functions.reductions import in_dtype
from pullback.ops.functions.sorting import (
    ValuesAndIndices,
    argsort,
    at_places,
    cummax,
    rows_of,
)
from pullback.ops.primitives import rounding
from pullback.ops.primitives.arithmetic import divide, multiply, subtract
from pullback.ops.primitives.comparison import isnan, logical_not, not_equal
from pullback.ops.primitives.complex_numbers import conj
from pullback.ops.primitives.exponential import sqrt
from pullback.ops.primitives.gathering import gather_p
from pullback.ops.primitives.reductions import argmax, mean, std, sum_p, var
from pullback.ops.primitives.sorting import argsort_p, median_of_all_p, middle
from pullback.ops.samples import AXES, NO_AXIS, both, integers, real, sample
from pullback.ops.torch_words import torch_words


# -- spread ----------------------------------------------------------------------------------------
def axis_and_correction(
    op: str, dim: Any, axis: Any, unbiased: bool | None, correction: float | None
) -> tuple[Any, float]:
    """Return the axis and the correction, of PyTorch's arguments: `dim` may be `unbiased`."""
    if isinstance(dim, bool):
        if unbiased is not None:
            raise ArgumentTypeError(f"{op}: axis must be an integer, got bool")
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"{op}: give unbiased or correction, not both")
    correction = 1 if correction is None else correction
    return merge_axis_args(op, dim, axis), correction if unbiased is None else int(unbiased)


def _moments(
    op: str, spread: Any, x: Any, axis: Any, correction: float, keepdims: bool
) -> tuple[Tensor, Tensor]:
    needs_tensor(op, x)
    normalize_axes(op, axis, len(x.shape))
    result = spread(x, axis=axis, correction=correction, keepdims=keepdims)
    return result, mean(x, axis=axis, keepdims=keepdims)


@composition(AXES[1], AXES[2], multi=True, result_dtype=("real", "same"), scalars=False)
def var_mean(
    x: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the variance, with Bessel's correction by default, and the mean over axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.var_mean(pb.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    over, correction = axis_and_correction("var_mean", dim, axis, unbiased, correction)
    return _moments("var_mean", var, x, over, correction, keepdim or keepdims)


@composition(AXES[1], AXES[2], multi=True, result_dtype=("real", "same"), scalars=False)
def std_mean(
    x: Any,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Any = None,
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation, with Bessel's correction by default, and the mean over axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.std_mean(pb.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    over, correction = axis_and_correction("std_mean", dim, axis, unbiased, correction)
    return _moments("std_mean", std, x, over, correction, keepdim or keepdims)


# -- without what is not a number ------------------------------------------------------------------
@composition(*AXES[1:5], sample((0, 3), axis=0), NO_AXIS[0], methods="nansum")
@torch_words()
def nansum(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over axes of what is not NaN; a NaN has the gradient 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nansum(pb.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    x = tensor_of("nansum", x)
    return in_dtype(sum_p.public, _numbers(x), dtype, axis=axis, keepdims=keepdims)


def _numbers(x: Tensor) -> Tensor:
    return where(isnan(x), 0, x) if x.dtype.is_inexact else x


@composition(*AXES[1:5], methods="nanmean")
@torch_words()
def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes of what is not NaN; a NaN has the gradient 0.

    Where all are NaN, the mean is NaN.

    Raises
    ------
    DTypeError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nanmean(pb.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    x = tensor_of("nanmean", x)
    if not x.dtype.is_inexact:
        required = "a floating point or complex dtype required"
        hint = "convert it first, for instance with .float()"
        raise DTypeError(compose("nanmean", required, x.dtype.name, ("x", x), hint=hint))
    normalize_axes("nanmean", axis, len(x.shape))
    number = astype(logical_not(isnan(x)), x.dtype)
    counted = sum_p.public(number, axis=axis, keepdims=keepdims)
    return sum_p.public(_numbers(x), axis=axis, keepdims=keepdims) / counted


def _median(op: str, x: Any, dim: int | None, keepdim: bool, skip_nan: bool) -> Any:
    row, axis, n = rows_of(op, x, 0 if dim is None else dim)
    if n == 0 or (dim is None and 0 in row.shape):
        required = f"at least one element along axis {axis} required"
        raise ArgumentError(compose(op, required, "none", ("input", x)))
    if dim is None:
        return median_of_all_p.public(x, skip_nan=skip_nan)
    position = box(middle(array_of(row), axis, skip_nan))
    indices = gather_p.public(argsort_p.public(row, axis=axis), position, axis=axis)
    return at_places(row, indices, axis, keepdim and bool(x.shape))


_MEDIANS = (
    sample((3, 4), dim=0),
    sample((2, 4), dim=-1, keepdim=True),
    sample((0, 3), dim=1),
    sample((), dim=0),
)
_MEDIAN: dict[str, Any] = {
    "domain": real(-2, 2),
    "distinct": True,
    "call": lambda f, input, **settings: f(input, **settings).values,
    "reference": lambda np, x, dim, keepdim=False: np.quantile(
        np.atleast_1d(x), 0.5, dim, keepdims=keepdim, method="lower"
    ),
}


# -- medians ---------------------------------------------------------------------------------------
@composition(*_MEDIANS, **_MEDIAN, methods="median")
@torch_words()
def median(input: Any, axis: int | None = None, keepdims: bool = False) -> Any:
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
    return _median("median", input, axis, keepdims, skip_nan=False)


@composition(*_MEDIANS, **_MEDIAN, methods="nanmedian")
@torch_words()
def nanmedian(input: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the median of the elements that are not NaN; see `median`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nanmedian(pb.tensor([4.0, float("nan"), 3.0]))
    tensor(3.)
    """
    return _median("nanmedian", input, axis, keepdims, skip_nan=True)


# -- quantiles -------------------------------------------------------------------------------------
_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    op: str, x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool
) -> Tensor:
    ordered, axis, n = rows_of(op, x, 0 if dim is None else dim)
    _check(op, x, interpolation)
    if dim is None:
        ordered, axis = manipulation.reshape(ordered, (-1,)), 0
        n = ordered.shape[0]
    if n == 0:
        raise ArgumentError(compose(op, "at least one element required", "none", ("input", x)))
    levels = _levels(op, q, array_of(x))
    order = [i for i in range(len(ordered.shape)) if i != axis]
    ordered = manipulation.permute_dims(ordered, (*order, axis))
    ordered = gather_p.public(ordered, argsort_p.public(ordered, axis=-1), axis=-1)
    ranks = _ranks(ordered, manipulation.reshape(levels, (-1,)), skip_nan)
    result = between(ordered, ranks, interpolation)
    rest = tuple(result.shape[:-1])
    last = len(rest)
    result = manipulation.permute_dims(result, (last, *range(last)))
    if keepdim:
        rest = (1,) * len(x.shape) if dim is None else (*rest[:axis], 1, *rest[axis:])
        rest = rest if x.shape else ()
    return manipulation.reshape(result, (*levels.shape, *rest))


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
    if holds_somewhere(~((array >= 0) & (array <= 1))):
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
    return pointwise.where(box(count < n), float(n - 1), levels * (n - 1))


def between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """Return the elements at the ranks along the last axis, between two of them interpolated."""
    below, above = rounding.floor(ranks.detach()), rounding.ceil(ranks.detach())

    def at(positions: Tensor) -> Tensor:
        return gather_p.public(ordered, astype(positions, DTYPES["int64"]), axis=-1)

    if interpolation == "lower":
        return at(below)
    if interpolation == "higher":
        return at(above)
    if interpolation == "nearest":
        return at(pointwise.round(ranks.detach()))
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
_QUANTILE: dict[str, Any] = {
    "domain": {"input": real(-2, 2), "q": real(0.4, 0.6)},
    "distinct": True,
    "reference": lambda np, x, q, dim=None, keepdim=False: np.quantile(
        x, q, dim if x.ndim else None, keepdims=keepdim
    ),
}


@composition(*_QUANTILES, **_QUANTILE, methods="quantile")
@torch_words()
def quantile(
    input: Any,
    q: Any,
    axis: int | None = None,
    keepdims: bool = False,
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
    return _quantile("quantile", input, q, axis, keepdims, interpolation, skip_nan=False)


@composition(*_QUANTILES, **_QUANTILE, methods="nanquantile")
@torch_words()
def nanquantile(
    input: Any,
    q: Any,
    axis: int | None = None,
    keepdims: bool = False,
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
    return _quantile("nanquantile", input, q, axis, keepdims, interpolation, skip_nan=True)


# -- modes -----------------------------------------------------------------------------------------
@composition(
    sample((2, 5)),
    sample((3, 2), dim=0, keepdim=True),
    sample(()),
    domain=real(-2, 2),
    distinct=True,
    multi=True,
    observed=lambda values, indices: values,
    methods="mode",
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
        return ValuesAndIndices(x.clone(), zeros_like(x.detach(), dtype="int64"))
    n = x.shape[axis]
    if n == 0:
        required = f"at least one element along axis {axis} required"
        raise ShapeError(compose("mode", required, "none", ("input", x)))
    rows = moveaxis(x.detach(), axis, -1)
    order = argsort(rows, stable=True)
    ordered = take_along_axis(rows, order, axis=-1)
    positions = arange(n, device=x.device)
    new = not_equal(ordered[..., 1:], ordered[..., :-1])
    starts = where(cat([ones_like(ordered[..., :1], dtype="bool"), new], dim=-1), positions, 0)
    run = cummax(starts, -1).values
    # The first of the longest runs has the least value.
    end = argmax(positions - run, axis=-1, keepdims=True)
    index = moveaxis(take_along_axis(order, end, axis=-1), -1, axis)
    return at_places(x, index, axis, keepdim)


# -- covariances -----------------------------------------------------------------------------------
@composition(
    sample((2, 4), (4,), (4,), correction=0),
    sample((3,), (3,), (3,)),
    domain={"input": both(-2, 2), "fweights": integers(1, 3), "aweights": real(0.5, 2)},
    constants=("fweights",),
    call=lambda f, input, fweights, aweights, **settings: f(
        input, fweights=fweights, aweights=aweights, **settings
    ),
    reference=(
        lambda np, x, fweights, aweights, correction=1: np.cov(
            x, ddof=correction, fweights=fweights, aweights=aweights
        )
    ),
    scalars=False,
    methods="cov",
)
def cov(input: Any, *, correction: float = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Return the covariances of variables, a row each, of which the columns are observations.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
    correction : float
        What is taken off the number of observations.
    fweights : Tensor of integers, optional
        How often each was observed.
    aweights : Tensor, optional
        How much each counts.

    Raises
    ------
    ShapeError
        If there are more dimensions, or not as many weights as observations.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cov(pb.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = tensor_of("cov", input, "input")
    for name, weight in (("fweights", fweights), ("aweights", aweights)):
        if weight is not None:
            needs_tensor("cov", weight, name)
    if len(x.shape) > 2:
        came = f"{len(x.shape)} dimensions"
        raise ShapeError(compose("cov", "at most 2 dimensions required", came, ("input", x)))
    square = len(x.shape) == 2 and x.shape[0] != 1
    x = x if len(x.shape) == 2 else reshape(x, (1, -1))
    weights = _weights(x, fweights, aweights)
    if weights is None:
        centred = subtract(x, mean(x, axis=1, keepdims=True))
        result = divide(matmul(centred, conj(centred).mT), max(x.shape[1] - correction, 0))
        return result if square else reshape(result, ())
    total = sum_p.public(weights, axis=None, keepdims=False)
    centre = divide(sum_p.public(multiply(x, weights), axis=1, keepdims=True), total)
    centred = subtract(x, centre)
    count = total
    if correction and aweights is None:
        count = subtract(total, correction)
    elif correction:
        squares = sum_p.public(multiply(weights, aweights), axis=None, keepdims=False)
        count = subtract(total, divide(multiply(squares, correction), total))
    result = matmul(multiply(centred, weights), conj(centred).mT)
    result = divide(result, clamp(count, min=0))
    return result if square else reshape(result, ())


def _weights(x: Tensor, fweights: Any, aweights: Any) -> Any:
    """Return what each observation counts for, None where all count the same."""
    weights = [w for w in (fweights, aweights) if w is not None]
    for w in weights:
        if tuple(w.shape) != x.shape[1:]:
            required = f"one weight for each of {x.shape[1]} observations required"
            came = f"shape {tuple(w.shape)}"
            raise ShapeError(compose("cov", required, came, ("input", x), ("weights", w)))
    return multiply(*weights) if len(weights) == 2 else weights[0] if weights else None


def near_one(x: Tensor, axis: Any) -> Tensor:
    """Return x over a power of two near the largest size along `axis`, a constant.

    What depends on ratios alone stays as it is, and its squares neither overflow nor vanish.
    """
    if 0 in x.shape or not x.dtype.is_inexact:
        return x
    array = array_of(x.detach())
    xp = library_of(array).xp
    size = xp.max(xp.abs(array), axis=axis, keepdims=True)
    size = xp.where((size > 0) & xp.isfinite(size), size, xp.ones_like(size))
    return divide(x, box(2.0 ** xp.floor(xp.log2(size))))


def _spread_out(x: Tensor) -> Tensor:
    """Bring samples of variables to ones that vary."""
    return add(x, arange(x.shape[-1], dtype=x.dtype, device=x.device))


@composition(
    sample((2, 4)),
    sample((3,)),
    domain=both(-2, 2)._replace(within=_spread_out),
    scalars=False,
    methods="corrcoef",
)
def corrcoef(input: Any) -> Tensor:
    """Return the correlation coefficients of variables, a row each: `cov` over the spreads.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.corrcoef(pb.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = tensor_of("corrcoef", input, "input")
    result = cov(near_one(x, -1) if x.shape else x)
    if not result.shape:
        return divide(result, result)
    spread = diag(result)
    spread = sqrt(complex_numbers.real(spread) if spread.dtype.is_complex else spread)
    return divide(divide(result, expand_dims(spread, 1)), spread)
