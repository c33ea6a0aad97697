"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.optim._base import Optimizer, Params


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if wanted.

    With gradient ``g``, parameter ``p`` and momentum buffer ``b`` a step is::

        g = -g                                   if maximize
        g = g + weight_decay * p
        b = g                                    in the first step
        b = momentum * b + (1 - dampening) * g   afterwards
        g = g + momentum * b                     if nesterov
        g = b                                    otherwise
        p = p - lr * g

    where the lines with ``b`` are left out if `momentum` is 0.

    Parameters
    ----------
    params : iterable of Tensor, or iterable of dict
        The leaves to optimize, or parameter groups.
    lr : float
        Learning rate, at least 0.
    momentum : float
        Share of the previous step that is kept, at least 0.
    dampening : float
        Share of the gradient that is withheld from the momentum buffer.
    weight_decay : float
        Factor of the L2 penalty, at least 0.
    nesterov : bool
        Look ahead by one step; needs a momentum above 0 and a dampening of 0.
    maximize : bool
        Maximize the objective instead of minimizing it.

    Raises
    ------
    ValueError
        An option is outside its range.
    TypeError
        An option is not a number.

    Notes
    -----
    The formulas are PyTorch's, which differ from Sutskever et al. (2013), "On the importance of
    initialization and momentum in deep learning", in that the learning rate is not part of the
    buffer.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([4.0], requires_grad=True)
    >>> optimizer = pb.optim.SGD([w], lr=0.1, momentum=0.5)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([1.2080], requires_grad=True)
    """

    _state_names: ClassVar[tuple[str, ...]] = ("momentum_buffer",)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, group: Mapping[str, Any]) -> None:
        self._check_at_least_zero(group, "lr", "momentum", "weight_decay")
        momentum, dampening = group["momentum"], group["dampening"]
        if group["nesterov"] and (momentum <= 0 or dampening != 0):
            raise self._value_error(
                "nesterov needs a momentum above 0 and a dampening of 0",
                f"momentum {momentum} and dampening {dampening}",
            )

    def _update(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        grad = self._penalized(param, grad, group)
        if group["momentum"] != 0:
            buffer = self._buffer(param, grad, group)
            grad = grad + group["momentum"] * buffer if group["nesterov"] else buffer
        param.sub_(group["lr"] * grad)

    def _buffer(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.state.setdefault(param, {})
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = grad.detach().clone()
        else:
            state["momentum_buffer"].mul_(group["momentum"]).add_((1 - group["dampening"]) * grad)
        buffer: Tensor = state["momentum_buffer"]
        return buffer
