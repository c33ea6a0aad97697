"""Adagrad: steps scaled by the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pullback.optim._adaptive import Adaptive
from pullback.optim._base import Params


class Adagrad(Adaptive):
    """Adagrad, of Duchi et al. (2011), "Adaptive subgradient methods".

    With gradient ``g``, parameter ``p`` and sum ``s``, step number ``t`` is::

        g = -g                                 if maximize
        g = g + weight_decay * p
        s = s + g * g
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Parameters
    ----------
    params : iterable of Tensor, or iterable of dict
        The leaves to optimize, or parameter groups.
    lr : float
        Learning rate, at least 0.
    lr_decay : float
        Decay of the learning rate, at least 0.
    weight_decay : float
        Factor of the L2 penalty, at least 0.
    initial_accumulator_value : float
        What ``s`` begins with, at least 0.
    eps : float
        Added to the denominator, at least 0.
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
    >>> optimizer = pb.optim.Adagrad([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    _state_names: ClassVar[tuple[str, ...]] = ("sum",)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, group: Mapping[str, Any]) -> None:
        names = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        self._check_at_least_zero(group, *names)

    def _kept(self, group: Mapping[str, Any]) -> Sequence[str]:
        return self._state_names

    def _first(self, name: str, group: Mapping[str, Any]) -> Any:
        return group["initial_accumulator_value"]

    def _step_real(
        self,
        xp: Any,
        param: Any,
        grad: Any,
        averages: list[Any],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        (total,) = averages
        total += grad * grad
        rate = float(group["lr"] / (1 + (step - 1) * group["lr_decay"]))
        param -= rate * grad / (xp.sqrt(total) + float(group["eps"]))
