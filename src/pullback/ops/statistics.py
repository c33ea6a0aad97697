"""Statistics: the spread of numbers, and sums that leave out what is not a number."""

from __future__ import annotations

from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError, compose
from pullback.ops._axes import count, either, normalize_axes
from pullback.ops._declare import composition, elementwise, needs_tensor, real, sample, standard
from pullback.ops.comparison import isnan, logical_not
from pullback.ops.elementwise import where
from pullback.ops.reductions import AXES, NO_AXIS, in_dtype, mean, sum_
from pullback.ops.shape import reshape, tensor_of

__all__ = [
    "nanmean",
    "nansum",
    "std",
    "std_mean",
    "var",
    "var_mean",
]


# -- spread ----------------------------------------------------------------------------------------
@composition(*AXES, sample((4, 3), axis=0, correction=1.0))
def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance over `axis`: squared deviations over (count - correction).

    Examples
    --------
    >>> import pullback as pb
    >>> pb.var(pb.tensor([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    needs_tensor("var", x)
    normalize_axes("var", axis, len(x.shape))
    return _spread(x, mean(x, axis=axis, keepdims=True), axis, correction, keepdims)


def freedom(
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
    return either(op, dim, axis), correction if unbiased is None else int(unbiased)


def _spread(x: Any, center: Tensor, axis: Any, correction: float, keepdims: bool) -> Tensor:
    deviation = x - center
    squares = deviation * deviation
    if deviation.is_complex():
        squares = TENSORS.real(deviation * TENSORS.conj(deviation))
    n = count(x.shape, axis) - correction
    if n <= 0:
        n = float("nan")
    return sum_(squares, axis=axis, keepdims=keepdims) / n


def _root_rule(g: Any, out: Any, xp: Any) -> Any:
    still = out == 0
    safe = xp.where(still, xp.ones_like(out), out)
    return xp.where(still, xp.zeros_like(g), g / (2 * safe))


root = elementwise(
    "root",
    standard("sqrt"),
    x=_root_rule,
    domain=real(0.5, 3),
    doc="Return the square root of a spread; the derivative at 0, where it is least, is 0.",
)


@composition(*AXES[:4], sample((4, 3), axis=0, correction=1.0))
def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over `axis`, the root of `var`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.std(pb.tensor([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    return root(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _moments(op: str, x: Any, axis: Any, correction: float, kept: bool) -> tuple[Tensor, Tensor]:
    needs_tensor(op, x)
    normalize_axes(op, axis, len(x.shape))
    center = mean(x, axis=axis, keepdims=True)
    spread = _spread(x, center, axis, correction, kept)
    return spread, center if kept else reshape(center, spread.shape)


@composition(AXES[1], AXES[2], multi=True)
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
    over, correction = freedom("var_mean", dim, axis, unbiased, correction)
    return _moments("var_mean", x, over, correction, keepdim or keepdims)


@composition(AXES[1], AXES[2], multi=True)
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
    over, correction = freedom("std_mean", dim, axis, unbiased, correction)
    spread, center = _moments("std_mean", x, over, correction, keepdim or keepdims)
    return root(spread), center


# -- without what is not a number ------------------------------------------------------------------
@composition(*AXES[1:5], sample((0, 3), axis=0), NO_AXIS[0])
def nansum(
    x: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
) -> Tensor:
    """Return the sum over axes of what is not NaN; a NaN has the gradient 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.nansum(pb.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """
    x = tensor_of("nansum", x)
    over = either("nansum", dim, axis)
    return in_dtype(sum_, _numbers(x), dtype, axis=over, keepdims=keepdim or keepdims)


def _numbers(x: Tensor) -> Tensor:
    return where(isnan(x), 0, x) if x.dtype.is_inexact else x


@composition(*AXES[1:5])
def nanmean(
    x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
) -> Tensor:
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
    over, kept = either("nanmean", dim, axis), keepdim or keepdims
    normalize_axes("nanmean", over, len(x.shape))
    number = TENSORS.astype(logical_not(isnan(x)), x.dtype)
    counted = sum_(number, axis=over, keepdims=kept)
    return sum_(_numbers(x), axis=over, keepdims=kept) / counted
