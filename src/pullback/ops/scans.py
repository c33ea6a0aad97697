"""Running sums and products, and their derivatives.

The derivative of a running product is right with any number of zeros, since nothing is divided
by: what an element is multiplied by afterwards is a linear recurrence, solved from the end.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, DTypeError, ShapeError, compose
from pullback.ops._axes import either, normalize_axis
from pullback.ops._declare import (
    Operation,
    composition,
    face,
    needs_tensor,
    operation,
    real,
    sample,
)
from pullback.ops.conversion import astype

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "logcumsumexp",
]

_ALONG = (
    sample((3, 4), axis=0),
    sample((2, 5), axis=-1),
    sample((1,), axis=0),
    sample((0, 2), axis=0),
    sample((), axis=-1),
)


def _reversed_sums(g: Any, axis: int, xp: Any) -> Any:
    if not g.shape:
        return g
    flipped = xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis)
    return xp.flip(flipped, axis=axis)


def recurrence(a: Any, b: Any, xp: Any) -> Any:
    """Return s with s[k] = b[k] + a[k] * s[k + 1] along the last axis, s = 0 past the end.

    Two steps are one step of the same kind, so half of them suffice to find every second element:
    the work is linear in the length and the depth logarithmic.
    """
    n = b.shape[-1]
    if n < 2:
        return b
    if n % 2:
        rest = recurrence(a[..., 1:], b[..., 1:], xp)
        return xp.concat([b[..., :1] + a[..., :1] * rest[..., :1], rest], axis=-1)
    a0, a1, b0, b1 = a[..., ::2], a[..., 1::2], b[..., ::2], b[..., 1::2]
    even = recurrence(a0 * a1, b0 + a0 * b1, xp)
    after = xp.concat([even[..., 1:], xp.zeros_like(even[..., :1])], axis=-1)
    return xp.reshape(xp.stack([even, b1 + a1 * after], axis=-1), b.shape)


def _products_rule(g: Any, x: Any, out: Any, axis: int, xp: Any) -> Any:
    """Return the products before each element times what its later ones make of `g`."""
    if not x.shape or 0 in x.shape:
        return g
    g, x, out = (xp.moveaxis(t, axis, -1) for t in (g, x, out))
    later = recurrence(xp.concat([x[..., 1:], xp.zeros_like(x[..., :1])], axis=-1), g, xp)
    before = xp.concat([xp.ones_like(out[..., :1]), out[..., :-1]], axis=-1)
    return xp.moveaxis(before * later, -1, axis)


def _running(name: str, function: str, **declared: Any) -> Operation:
    def forward(xp: Any, x: Any, *, axis: int = -1) -> Any:
        axis = normalize_axis(name, axis, len(x.shape))
        scan = getattr(xp, function)
        return scan(x, axis=axis) if x.shape else scan(xp.reshape(x, (1,)), axis=0)[0, ...]

    return operation(name, forward, samples=_ALONG, **declared)


cumsum_ = _running(
    "cumsum",
    "cumulative_sum",
    rules={"x": _reversed_sums},
    doc="Return the running sum along an axis.",
)
cumprod_ = _running(
    "cumprod",
    "cumulative_prod",
    rules={"x": _products_rule},
    doc="Return the running product along an axis.",
)


# -- public faces ----------------------------------------------------------------------------------
@face(cumsum_)
def cumsum(x: Any, dim: int | None = None, *, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the running sum along an axis.

    `dim` and `axis` are two names of it; `dtype` is what `x` is converted to first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumsum(pb.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 3., 6.])
    """
    return _along("cumsum", cumsum_, x, either("cumsum", dim, axis), dtype)


@face(cumprod_)
def cumprod(
    x: Any, dim: int | None = None, *, axis: int | None = None, dtype: Any = None
) -> Tensor:
    """Return the running product along an axis.

    `dim` and `axis` are two names of it; `dtype` is what `x` is converted to first. The gradient
    is right with any number of zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumprod(pb.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    return _along("cumprod", cumprod_, x, either("cumprod", dim, axis), dtype)


def _along(op: str, scan: Operation, x: Any, axis: Any, dtype: Any) -> Tensor:
    needs_tensor(op, x)
    if dtype is None:
        return scan(x, axis=axis)
    return astype(scan(astype(x, dtype, copy=False), axis=axis), dtype, copy=False)


_STANDARD = (
    sample((4,)),
    sample((2, 3), axis=0, include_initial=True),
    sample((2, 0), axis=-1, include_initial=True),
)


@composition(*_STANDARD)
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running sum along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        May be left out if `x` is a vector.
    dtype : dtype, optional
        What `x` is converted to first; by default small integers become larger ones.
    include_initial : bool
        Whether the result begins with 0, and is longer by one.

    Raises
    ------
    ArgumentError
        If there is no axis and `x` is no vector.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumulative_sum(pb.tensor([1.0, 2.0, 3.0]), include_initial=True)
    tensor([0., 1., 3., 6.])
    """
    return _standard("cumulative_sum", cumsum_, 0, x, axis, dtype, include_initial)


@composition(*_STANDARD)
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running product along an axis; the gradient is right with any number of zeros.

    Parameters and errors are those of `cumulative_sum`; the initial element is 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumulative_prod(pb.tensor([1.0, 2.0, 3.0]), include_initial=True)
    tensor([1., 1., 2., 6.])
    """
    return _standard("cumulative_prod", cumprod_, 1, x, axis, dtype, include_initial)


def _standard(
    op: str, scan: Operation, initial: int, x: Any, axis: Any, dtype: Any, include_initial: bool
) -> Tensor:
    needs_tensor(op, x)
    if not x.shape:
        raise ShapeError(compose(op, "at least 1 dimension required", "none", ("x", x)))
    if axis is None:
        if len(x.shape) > 1:
            required = "an axis required, since x is no vector"
            raise ArgumentError(compose(op, required, "none", ("x", x)))
        axis = 0
    axis = normalize_axis(op, axis, len(x.shape))
    result = _along(op, scan, x, axis, dtype)
    if not include_initial:
        return result
    shape = (*result.shape[:axis], 1, *result.shape[axis + 1 :])
    first = TENSORS.full(shape, initial, dtype=result.dtype, device=result.device)
    joined: Tensor = TENSORS.concat([first, result], axis=axis)
    return joined


# -- exponentials ----------------------------------------------------------------------------------
def _log_sums(xp: Any, x: Any, *, axis: int = -1) -> Any:
    """Return the running logaddexp, by doubling strides: log2(n) of them at once."""
    axis = normalize_axis("logcumsumexp", axis, len(x.shape))
    if library_of(x).dtype(x).is_complex:
        came = str(x.dtype).rpartition(".")[2]
        raise DTypeError(compose("logcumsumexp", "real numbers required", came, ("x", x)))
    if not x.shape:
        return library_of(x).copy(x)
    x = xp.moveaxis(x, axis, -1)
    n, step = x.shape[-1], 1
    while step < n:
        joined = xp.logaddexp(x[..., step:], x[..., :-step])
        x, step = xp.concat([x[..., :step], joined], axis=-1), 2 * step
    return library_of(x).copy(xp.moveaxis(x, -1, axis))


def _quotient(a: Any, b: Any, xp: Any) -> Any:
    """Return exp(a - b) of a <= b, 0 where both are -inf."""
    return xp.exp(a - xp.where(b == -float("inf"), xp.zeros_like(b), b))


def _log_sums_rule(g: Any, x: Any, out: Any, axis: int, xp: Any) -> Any:
    """Return sum over i >= k of g[i] exp(x[k] - out[i]), of factors that are at most 1."""
    if not x.shape or 0 in x.shape:
        return g
    g, x, out = (xp.moveaxis(t, axis, -1) for t in (g, x, out))
    steps = _quotient(out[..., :-1], out[..., 1:], xp)
    steps = xp.concat([steps, xp.zeros_like(out[..., :1])], axis=-1)
    return xp.moveaxis(_quotient(x, out, xp) * recurrence(steps, g, xp), -1, axis)


logcumsumexp_ = operation(
    "logcumsumexp",
    _log_sums,
    rules={"x": _log_sums_rule},
    floating=True,
    domain=real(-2, 2),
    samples=_ALONG,
    doc="Return the logarithm of running sums of exponentials.",
)


@face(logcumsumexp_)
def logcumsumexp(x: Any, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis, without overflow.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logcumsumexp(pb.tensor([1000.0, 1000.0]), 0)
    tensor([1000.0000, 1000.6932])
    """
    return logcumsumexp_(x, axis=either("logcumsumexp", dim, axis))
