"""Exponentials and their sums, without overflow: softmax, log_softmax, logsumexp."""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.tensor.tensor import Tensor
from pullback.ops._axes import count, either, keep_axes, normalize_axes, normalize_axis
from pullback.ops._declare import both, face, operation, real, sample
from pullback.ops.reductions import AXES, NO_AXIS, dropped, in_dtype

__all__ = [
    "log_softmax",
    "logsumexp",
    "softmax",
]


def _total(x: Any, axis: int, xp: Any) -> Any:
    """Return the sum along an axis, which a tensor of 0 dimensions is itself."""
    return xp.sum(x, axis=axis, keepdims=True) if x.shape else x


def _softmax(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("softmax", axis, len(x.shape))
    if not x.shape:
        return x - x + 1  # NaN of what is not finite, as along an axis
    if 0 in x.shape:
        return xp.zeros_like(x)
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


_ALONG = (
    sample((3, 4), axis=-1),
    sample((3, 4), axis=0),
    sample((5,), axis=0),
    sample((), axis=-1),
    sample((0, 3), axis=1),
    sample((3, 0), axis=1),
)

softmax_ = operation(
    "softmax",
    _softmax,
    rules={"x": lambda g, out, axis, xp: (g - _total(g * out, axis, xp)) * out},
    domain=real(-2, 2),
    floating=True,
    samples=_ALONG,
    doc="Return exp(x) normalised to sum 1 along an axis, without overflow.",
)


def _log_softmax(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("log_softmax", axis, len(x.shape))
    if not x.shape or 0 in x.shape:
        return x - x
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


log_softmax_ = operation(
    "log_softmax",
    _log_softmax,
    rules={"x": lambda g, out, axis, xp: g - xp.exp(out) * _total(g, axis, xp)},
    domain=real(-2, 2),
    floating=True,
    samples=_ALONG,
    doc="Return the logarithm of softmax, without overflow.",
)


def _logsumexp(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normalize_axes("logsumexp", axis, len(x.shape))
    is_complex = "complex" in str(x.dtype)
    if not axes and not is_complex:  # of a complex number the logarithm is the principal one
        return x + 0
    if count(x.shape, axis) == 0:
        return _nothing(x, axes, keepdims)
    size = xp.real(x) if is_complex else x
    top = xp.max(size, axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    return total if keepdims else xp.reshape(total, dropped(total.shape, axis))


def _nothing(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the logarithm of empty sums."""
    library = library_of(x)
    device = library.native_device(library.device(x))
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    shape = kept if keepdims else dropped(x.shape, axes)
    return library.full(shape, -float("inf"), library.dtype(x), device)


logsumexp_ = operation(
    "logsumexp",
    _logsumexp,
    rules={
        "x": lambda g, x, out, axis, keepdims, xp: (
            keep_axes(g, x.shape, axis, keepdims, xp)
            * xp.exp(x - keep_axes(out, x.shape, axis, keepdims, xp))
        )
    },
    domain=both(-2, 2),
    floating=True,
    samples=(*AXES, *NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
    doc="Return log(sum(exp(x))) over axes, without overflow.",
)


# -- public faces ----------------------------------------------------------------------------------
@face(softmax_)
def softmax(
    x: Any, dim: int | None = None, *, axis: int | None = None, dtype: Any = None
) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis, without overflow.

    `dim` and `axis` are two names of it; `dtype` is what `x` is converted to first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softmax(pb.tensor([1000.0, 1000.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return in_dtype(softmax_, x, dtype, axis=either("softmax", dim, axis))


@face(log_softmax_)
def log_softmax(
    x: Any, dim: int | None = None, *, axis: int | None = None, dtype: Any = None
) -> Tensor:
    """Return the logarithm of `softmax` along an axis, without overflow.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.log_softmax(pb.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    return in_dtype(log_softmax_, x, dtype, axis=either("log_softmax", dim, axis))


@face(logsumexp_)
def logsumexp(
    x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
) -> Tensor:
    """Return log(sum(exp(x))) over axes, all by default, without overflow; of nothing, -inf.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logsumexp(pb.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    over = either("logsumexp", dim, axis)
    return logsumexp_(x, axis=over, keepdims=keepdim or keepdims)
