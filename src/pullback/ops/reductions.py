"""Reductions, scans and softmax.

Edge values: elements that tie for a maximum or minimum share its gradient evenly; prod is right
with any number of zeros; an empty sum is 0 and an empty prod 1.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import library_of
from pullback.core.primitive import TENSORS
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, DTypeError
from pullback.ops._axes import count, keep_axes, normalize_axes, normalize_axis, spread
from pullback.ops._declare import (
    Operation,
    composition,
    elementwise,
    face,
    grid,
    needs_order,
    needs_tensor,
    operation,
    real,
    sample,
    standard,
)

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cumsum",
    "cumulative_sum",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "softmax",
    "std",
    "sum",
    "var",
]

_AXES = (
    sample((3, 4), axis=None, keepdims=False),
    sample((3, 4), axis=1, keepdims=False),
    sample((3, 4), axis=-2, keepdims=True),
    sample((2, 3, 4), axis=(0, 2), keepdims=False),
    sample((), axis=None, keepdims=False),
    sample((1,), axis=0, keepdims=True),
)
_EMPTY = (
    sample((0, 3), axis=0, keepdims=False),
    sample((0, 3), axis=1, keepdims=False),
    sample((2, 0), axis=None, keepdims=False),
)
_NO_AXIS = (sample((2, 3), axis=(), keepdims=False), sample((2, 3), axis=(), keepdims=True))


def _axes_of(x: Any, op: str, axis: Any) -> Any:
    return None if axis is None else normalize_axes(op, axis, len(x.shape))


def _sum(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return xp.sum(x, axis=_axes_of(x, "sum", axis), keepdims=keepdims)


sum_ = operation(
    "sum",
    _sum,
    rules={
        "x": lambda g, x_shape, axis, keepdims, xp: spread(g, x_shape, axis, keepdims, xp),
    },
    samples=(*_AXES, *_EMPTY, *_NO_AXIS),
    doc="Return the sum over axes.",
)


def _mean(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    if not library_of(x).dtype(x).is_inexact:
        raise DTypeError(
            f"mean: needs a floating point or complex dtype, got {x.dtype}.\n"
            "hint: convert it first, for instance with .float()."
        )
    return xp.mean(x, axis=_axes_of(x, "mean", axis), keepdims=keepdims)


mean = operation(
    "mean",
    _mean,
    rules={
        "x": lambda g, x_shape, axis, keepdims, xp: spread(
            g / count(x_shape, axis), x_shape, axis, keepdims, xp
        ),
    },
    samples=(*_AXES, *_NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
    doc="Return the mean over axes.",
)


def _prod(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normalize_axes("prod", axis, len(x.shape))
    if not axes:
        return library_of(x).copy(x)
    for a in axes:  # some libraries' prod takes one axis at a time
        x = xp.prod(x, axis=a, keepdims=True)
    return x if keepdims else xp.reshape(x, _dropped(x.shape, axis))


def _dropped(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    axes = normalize_axes("prod", axis, len(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _prod_rule(g: Any, x: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
    """Return g times the product of the other elements: right with any number of zeros.

    The reduced axes become one; the products before and after each element are cumulative
    products, so nothing is divided by.
    """
    shape = x.shape
    axes = normalize_axes("prod", axis, len(shape))
    if not axes:
        return g
    if 0 in shape:
        return xp.zeros_like(x)
    others = [i for i in range(len(shape)) if i not in axes]
    order = (*others, *axes)
    rows = tuple(shape[i] for i in others)
    flat = xp.reshape(xp.permute_dims(x, order), (*rows, count(shape, axis)))
    n = flat.shape[-1]
    one = xp.ones_like(flat[..., :1])
    before = _cumulative_product(xp.concat([one, flat[..., : n - 1]], axis=-1), xp)
    back = xp.flip(flat, axis=-1)
    after = xp.flip(_cumulative_product(xp.concat([one, back[..., : n - 1]], axis=-1), xp), axis=-1)
    product = xp.reshape(before * after, tuple(shape[i] for i in order))
    inverse = tuple(order.index(i) for i in range(len(shape)))
    return keep_axes(g, shape, axis, keepdims, xp) * xp.permute_dims(product, inverse)


def _cumulative_product(x: Any, xp: Any) -> Any:
    """Return the cumulative product over the last axis, by doubling strides: log2(n) products."""
    n = x.shape[-1]
    step = 1
    while step < n:
        x = xp.concat([x[..., :step], x[..., step:] * x[..., : n - step]], axis=-1)
        step *= 2
    return x


prod_ = operation(
    "prod",
    _prod,
    rules={"x": _prod_rule},
    samples=(*_AXES, *_EMPTY, *_NO_AXIS),
    doc="Return the product over axes; its gradient is right with any number of zeros.",
)


def _extreme(name: str) -> Operation:
    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if count(x.shape, axis) == 0:
            raise ArgumentError(
                f"{name}: a reduction over no elements has no value, got shape {x.shape}"
            )
        needs_order(name, x)
        return getattr(xp, name)(x, axis=_axes_of(x, name, axis), keepdims=keepdims)

    def rule(g: Any, x: Any, out: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
        best = keep_axes(out, x.shape, axis, keepdims, xp)
        ties = (x == best) | ((x != x) & (best != best))  # all NaN: every element ties
        share = xp.where(ties, xp.ones_like(x), xp.zeros_like(x))
        total = xp.sum(share, axis=_axes_of(x, name, axis), keepdims=True)
        return share * (keep_axes(g, x.shape, axis, keepdims, xp) / total)

    return operation(
        name,
        forward,
        rules={"x": rule},
        samples=(*_AXES, *_NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
        domain=real(-2, 2),
        distinct=True,
        doc=f"Return the {name} over axes; elements that tie share the gradient evenly.",
    )


amax, amin = _extreme("max"), _extreme("min")


def _cumsum(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("cumsum", axis, len(x.shape))
    return xp.cumulative_sum(x, axis=axis) if x.shape else xp.sum(x)


def _reversed_cumsum(g: Any, axis: int, xp: Any) -> Any:
    if not g.shape:
        return g
    flipped = xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis)
    return xp.flip(flipped, axis=axis)


cumsum = operation(
    "cumsum cumulative_sum",
    _cumsum,
    rules={"x": _reversed_cumsum},
    samples=(
        sample((3, 4), axis=0),
        sample((3, 4), axis=-1),
        sample((1,), axis=0),
        sample((0, 2), axis=0),
        sample((), axis=-1),
    ),
    doc="Return the running sum along an axis.",
)


def _softmax(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("softmax", axis, len(x.shape))
    if not x.shape:
        return xp.ones_like(x)
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

softmax = operation(
    "softmax",
    _softmax,
    rules={
        "x": lambda g, out, axis, xp: (
            (g - xp.sum(g * out, axis=axis, keepdims=True)) * out if out.shape else g * 0
        )
    },
    domain=real(-2, 2),
    floating=True,
    samples=_ALONG,
    doc="Return exp(x) normalised to sum 1 along an axis, without overflow.",
)


def _log_softmax(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("log_softmax", axis, len(x.shape))
    if not x.shape or 0 in x.shape:
        return xp.zeros_like(x)
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


log_softmax = operation(
    "log_softmax",
    _log_softmax,
    rules={
        "x": lambda g, out, axis, xp: (
            g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True) if out.shape else g * 0
        )
    },
    domain=real(-2, 2),
    floating=True,
    samples=_ALONG,
    doc="Return the logarithm of softmax, without overflow.",
)


def _logsumexp(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normalize_axes("logsumexp", axis, len(x.shape))
    if not axes:
        return x + 0
    top = xp.max(x, axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    return total if keepdims else xp.reshape(total, _dropped(total.shape, axis))


logsumexp = operation(
    "logsumexp",
    _logsumexp,
    rules={
        "x": lambda g, x, out, axis, keepdims, xp: (
            keep_axes(g, x.shape, axis, keepdims, xp)
            * xp.exp(x - keep_axes(out, x.shape, axis, keepdims, xp))
        )
    },
    domain=real(-2, 2),
    floating=True,
    samples=(*_AXES, *_NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
    doc="Return log(sum(exp(x))) over axes, without overflow.",
)


# -- compositions ----------------------------------------------------------------------------------
@face(sum_)
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over `axis`, all axes by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sum(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    return _in_dtype(sum_, x, dtype, axis=axis, keepdims=keepdims)


@face(prod_)
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over `axis`, all axes by default; the gradient is right with zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prod(pb.tensor([2.0, 3.0]))
    tensor(6.)
    """
    return _in_dtype(prod_, x, dtype, axis=axis, keepdims=keepdims)


def _in_dtype(function: Operation, x: Any, dtype: Any, **settings: Any) -> Tensor:
    if dtype is None:
        return function(x, **settings)
    result: Tensor = TENSORS.astype(
        function(TENSORS.astype(x, dtype), **settings), dtype, copy=False
    )
    return result


@composition(*_AXES, sample((4, 3), axis=0, correction=1.0))
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
    deviation = x - mean(x, axis=axis, keepdims=True)
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


@composition(*_AXES[:4], sample((4, 3), axis=0, correction=1.0))
def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over `axis`, the root of `var`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.std(pb.tensor([1.0, 2.0, 3.0]), correction=1)
    tensor(1.)
    """
    return root(var(x, axis=axis, correction=correction, keepdims=keepdims))


@face(amax)
def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over `axis`; ties share the gradient evenly.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.max(pb.tensor([1.0, 3.0, 2.0]))
    tensor(3.)
    """
    return amax(x, axis=axis, keepdims=keepdims)


@face(amin)
def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over `axis`; ties share the gradient evenly.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.min(pb.tensor([1.0, 3.0, 2.0]))
    tensor(1.)
    """
    return amin(x, axis=axis, keepdims=keepdims)


def _whole(name: str, doc: str) -> Operation:
    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return getattr(xp, name)(x, axis=_axes_of(x, name, axis), keepdims=keepdims)

    return operation(
        name,
        forward,
        differentiable=False,
        samples=(*_AXES, *_EMPTY, *_NO_AXIS),
        domain=grid(-1, 1),
        doc=doc,
    )


any_ = _whole("any", "Return whether any element over axes is true.")
all_ = _whole("all", "Return whether all elements over axes are true.")


def _position(name: str) -> Operation:
    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = None if axis is None else normalize_axis(name, axis, len(x.shape))
        needs_order(name, x)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return operation(
        name,
        forward,
        differentiable=False,
        domain=grid(-2, 2),
        samples=(
            sample((3, 4), axis=None, keepdims=False),
            sample((3, 4), axis=None, keepdims=True),
            sample((3, 4), axis=1, keepdims=True),
            sample((2, 3, 4), axis=-2, keepdims=False),
            sample((0, 3), axis=1, keepdims=False),
            sample((), axis=None, keepdims=False),
        ),
        doc=f"Return the index of the {name[3:]}imum along an axis.",
    )


argmax, argmin = _position("argmax"), _position("argmin")

any, all = any_, all_
cumulative_sum = cumsum
