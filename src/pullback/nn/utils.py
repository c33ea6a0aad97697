"""What is done to gradients between backward and a step: clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Never

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, GradientError, compose
from pullback.hints import absent, hinted
from pullback.ops.functions.creation import tensor
from pullback.ops.functions.joining import stack
from pullback.ops.functions.norms import vector_norm
from pullback.public_names import listed as _listed

__all__ = ["clip_grad_norm_", "clip_grad_value_"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> Never:
    raise absent(__name__, name)


def _gradients(op: str, parameters: Any) -> list[Tensor]:
    tensors: Iterable[Any] = [parameters] if isinstance(parameters, Tensor) else parameters
    if not isinstance(tensors, Iterable):
        came, hint = type(tensors).__name__, "write model.parameters()"
        raise ArgumentTypeError(compose(op, "tensors with gradients required", came, hint=hint))
    return [p.grad for p in tensors if p.grad is not None]


@hinted
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients down, in place, where their norm together is larger than a number.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient are left out.
    max_norm : float
        The largest norm.
    norm_type : float
        The order of the norm; ``inf`` for the largest element.
    error_if_nonfinite : bool
        Raise where the norm is NaN or infinite.

    Returns
    -------
    Tensor
        The norm before.

    Raises
    ------
    GradientError
        If the norm is not finite and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> pb.nn.utils.clip_grad_norm_([w], 1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    grads = _gradients("clip_grad_norm_", parameters)
    if not grads:
        return tensor(0.0)
    with no_grad():
        norms = [vector_norm(g, ord=norm_type) for g in grads]
        total = vector_norm(stack(norms), ord=norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise GradientError(
                f"clip_grad_norm_: a finite norm of the gradients was required, got {total.item()}"
            )
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.detach().mul_(factor.to(g.dtype))
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Bring each element of all gradients into [-clip_value, clip_value], in place.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([3.0, -0.5], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> pb.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    with no_grad():
        for g in _gradients("clip_grad_value_", parameters):
            g.detach().clamp_(-clip_value, clip_value)
