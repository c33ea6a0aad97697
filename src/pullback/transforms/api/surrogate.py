"""Gradients that are no derivative on purpose: `pullback.surrogate`.

Worked operations on the public API: each declares why its gradient differs, so that the checker
compares everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.custom.define import autograd_function
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops.functions.creation import asarray
from pullback.public_names import listed as _listed
from pullback.transforms.api.arguments import name_of

__all__ = ["clip_gradient", "reverse_gradient", "straight_through"]
__dir__ = _listed(__name__)


@autograd_function
def _through(ctx: Any, x: Any, value: Any) -> Any:
    return value.clone()


@_through.surrogate("straight-through estimate")
def _(ctx: Any, grad_output: Any) -> Any:
    return {"x": grad_output, "value": None}


@autograd_function
def _reversed(ctx: Any, x: Any, scale: float) -> Any:
    ctx.scale = scale
    return x.clone()


@_reversed.surrogate("the gradient is reversed")
def _(ctx: Any, grad_output: Any) -> Any:
    return {"x": -ctx.scale * grad_output}


@autograd_function
def _clipped(ctx: Any, x: Any, limit: float) -> Any:
    ctx.limit = limit
    return x.clone()


@_clipped.surrogate("the gradient is clipped")
def _(ctx: Any, grad_output: Any) -> Any:
    return {"x": grad_output.clamp(-ctx.limit, ctx.limit)}


def straight_through(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `fun` as a function whose gradient is that of the identity.

    Bengio et al. (2013), Estimating or propagating gradients through stochastic neurons for
    conditional computation, arXiv:1308.3432.

    Parameters
    ----------
    fun : callable
        From a tensor to a tensor of the same shape, such as ``pb.round``.

    Raises
    ------
    ArgumentTypeError
        If `fun` is no function.
    ShapeError
        When called, if the result has another shape.

    Examples
    --------
    >>> import pullback as pb
    >>> rounded = pb.surrogate.straight_through(pb.round)
    >>> rounded(pb.tensor(2.7)), pb.grad(rounded)(2.7)
    (tensor(3.), 1.0)
    """
    if not callable(fun):
        raise ArgumentTypeError(compose("straight_through", "a function required", repr(fun)))

    def estimate(x: Any) -> Any:
        x = asarray(x)
        value = asarray(fun(x.detach()))
        if value.shape != x.shape:
            required = f"a result of the shape {x.shape} of {name_of(fun)} required"
            raise ShapeError(compose("straight_through", required, str(value.shape), ("x", x)))
        return _through(x, value.detach().to(x.dtype))

    return estimate


def reverse_gradient(x: Any, scale: float = 1.0) -> Any:
    """Return `x`; its gradient is multiplied by ``-scale``.

    Ganin and Lempitsky (2015), Unsupervised domain adaptation by backpropagation, arXiv:1409.7495.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.grad(lambda x: pb.surrogate.reverse_gradient(x, 0.5) * 3)(2.0)
    -1.5
    """
    return _reversed(asarray(x), float(scale))


def clip_gradient(x: Any, limit: float) -> Any:
    """Return `x`; each element of its gradient is clipped to ``[-limit, limit]``.

    Raises
    ------
    ArgumentError
        If the limit is not positive.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.grad(lambda x: pb.surrogate.clip_gradient(x, 1.0) * 3)(2.0)
    1.0
    """
    if not limit > 0:
        raise ArgumentError(compose("clip_gradient", "a limit above 0 required", str(limit)))
    return _clipped(asarray(x), float(limit))
