"""Reductions: sums, products, extremes, and exponential sums over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pullback.core.tensor.tensor import Tensor
from pullback.ops.declare import composition, wrapper_of
from pullback.ops.functions.data_types import astype
from pullback.ops.primitives.reductions import max, min, prod_p, sum_p
from pullback.ops.primitives.softmax import log_softmax_p, logsumexp_p, softmax_p
from pullback.ops.samples import AXES, real
from pullback.ops.torch_words import torch_words


# -- sums and products -----------------------------------------------------------------------------
@wrapper_of(sum_p)
@torch_words(sum_p)
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over `axis`, all axes by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sum(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    return in_dtype(sum_p.public, x, dtype, axis=axis, keepdims=keepdims)


@wrapper_of(prod_p)
@torch_words(prod_p)
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over `axis`, all axes by default; the gradient is right with zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prod(pb.tensor([2.0, 3.0]))
    tensor(6.)
    """
    return in_dtype(prod_p.public, x, dtype, axis=axis, keepdims=keepdims)


def in_dtype(function: Callable[..., Tensor], x: Any, dtype: Any, **settings: Any) -> Tensor:
    """Call an operation on `x` converted to a dtype, if one is given, which the result has too."""
    if dtype is None:
        return function(x, **settings)
    result: Tensor = astype(function(astype(x, dtype), **settings), dtype, copy=False)
    return result


# -- PyTorch's names -------------------------------------------------------------------------------
@composition(AXES[1], domain=real(-2, 2), distinct=True, reference="numpy.max", scalars=False)
@torch_words()
def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over axes: PyTorch's name of `max`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.amax(pb.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=0)
    tensor([4., 3.])
    """
    return max(x, axis=axis, keepdims=keepdims)


@composition(AXES[1], domain=real(-2, 2), distinct=True, reference="numpy.min", scalars=False)
@torch_words()
def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over axes: PyTorch's name of `min`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.amin(pb.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=0)
    tensor([1., 2.])
    """
    return min(x, axis=axis, keepdims=keepdims)


class Extremes(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


@composition(
    AXES[1],
    AXES[0],
    domain=real(-2, 2),
    distinct=True,
    multi=True,
    reference=(lambda np, x, axis, keepdims: (np.min(x, axis), np.max(x, axis))),
    scalars=False,
    methods="aminmax",
)
@torch_words()
def aminmax(x: Any, *, axis: Any = None, keepdims: bool = False) -> Extremes:
    """Return the smallest and the largest element over axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.aminmax(pb.tensor([1.0, 3.0, 2.0]))
    Extremes(min=tensor(1.), max=tensor(3.))
    """
    return Extremes(min(x, axis=axis, keepdims=keepdims), max(x, axis=axis, keepdims=keepdims))


# -- exponential sums ------------------------------------------------------------------------------
@wrapper_of(softmax_p, methods="softmax")
@torch_words(softmax_p)
def softmax(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis, without overflow.

    `dim` and `axis` are two names of it; `dtype` is what `x` is converted to first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.softmax(pb.tensor([1000.0, 1000.0]), 0)
    tensor([0.5000, 0.5000])
    """
    return in_dtype(softmax_p.public, x, dtype, axis=axis)


@wrapper_of(log_softmax_p, methods="log_softmax")
@torch_words(log_softmax_p)
def log_softmax(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax` along an axis, without overflow.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.log_softmax(pb.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    return in_dtype(log_softmax_p.public, x, dtype, axis=axis)


@wrapper_of(logsumexp_p, methods="logsumexp")
@torch_words()
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return log(sum(exp(x))) over axes, all by default, without overflow; of nothing, -inf.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logsumexp(pb.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6932)
    """
    return logsumexp_p.public(x, axis=axis, keepdims=keepdims)
