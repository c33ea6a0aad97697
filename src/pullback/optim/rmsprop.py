"""RMSprop: steps scaled by a running average of the squared gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pullback.optim._adaptive import Adaptive
from pullback.optim._base import Params


class RMSprop(Adaptive):
    """RMSprop, of Hinton's lecture 6e (2012), with PyTorch's variations.

    With gradient ``g``, parameter ``p``, and ``v``, ``m`` and ``b`` all 0 at first, a step is::

        g = -g                                 if maximize
        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g * g
        m = alpha * m + (1 - alpha) * g        if centered
        u = v - m * m if centered else v
        g = g / (sqrt(u) + eps)
        b = momentum * b + g
        p = p - lr * b

    Parameters
    ----------
    params : iterable of Tensor, or iterable of dict
        The leaves to optimize, or parameter groups.
    lr : float
        Learning rate, at least 0.
    alpha : float
        Decay of the running averages, at least 0.
    eps : float
        Added to the denominator, at least 0.
    weight_decay : float
        Factor of the L2 penalty, at least 0.
    momentum : float
        Share of the previous step that is kept, at least 0.
    centered : bool
        Scale by an estimate of the variance.
    maximize : bool
        Maximize the objective instead of minimizing it.

    Raises
    ------
    ValueError
        An option is outside its range.
    TypeError
        An option is not a number.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = pb.optim.RMSprop([w], lr=0.05)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    _state_names: ClassVar[tuple[str, ...]] = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, group: Mapping[str, Any]) -> None:
        self._check_at_least_zero(group, "lr", "alpha", "eps", "weight_decay", "momentum")

    def _kept(self, group: Mapping[str, Any]) -> Sequence[str]:
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] else []
        return [*names, "grad_avg"] if group["centered"] else names

    def _step_real(
        self,
        xp: Any,
        param: Any,
        grad: Any,
        averages: list[Any],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        kept = dict(zip(self._kept(group), averages, strict=True))
        lr, alpha, eps, momentum = (
            float(group[name]) for name in ("lr", "alpha", "eps", "momentum")
        )
        square = kept["square_avg"]
        square *= alpha
        square += (1 - alpha) * (grad * grad)
        if group["centered"]:
            mean = kept["grad_avg"]
            mean *= alpha
            mean += (1 - alpha) * grad
            square = square - mean * mean
        change = grad / (xp.sqrt(square) + eps)
        if momentum:
            buffer = kept["momentum_buffer"]
            buffer *= momentum
            buffer += change
            change = buffer
        param -= lr * change
