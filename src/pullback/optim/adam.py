"""Adam: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pullback.core.tensor.tensor import Tensor
from pullback.optim._adaptive import Adaptive
from pullback.optim._base import Params


class Adam(Adaptive):
    """Adam, of Kingma and Ba (2015), "Adam: A method for stochastic optimization".

    With gradient ``g``, parameter ``p`` and running averages ``m`` and ``v``, both 0 at first, step
    number ``t`` is::

        g = -g                                 if maximize
        g = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        u = max(u, v) if amsgrad else v
        p = p - lr * (m / (1 - beta1**t)) / (sqrt(u / (1 - beta2**t)) + eps)

    The real and the imaginary part of a complex parameter are optimized as two real ones.

    Parameters
    ----------
    params : iterable of Tensor, or iterable of dict
        The leaves to optimize, or parameter groups.
    lr : float
        Learning rate, at least 0.
    betas : tuple of (float, float)
        Decay of the running averages ``m`` and ``v``, each at least 0 and below 1.
    eps : float
        Added to the denominator, at least 0.
    weight_decay : float
        Factor of the L2 penalty, at least 0.
    amsgrad : bool
        Divide by the largest ``v`` so far: Reddi et al. (2018), "On the convergence of Adam and
        beyond".
    maximize : bool
        Maximize the objective instead of minimizing it.

    Raises
    ------
    ValueError
        An option is outside its range, or `betas` are not two.
    TypeError
        An option is not a number.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = pb.optim.Adam([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    _state_names: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, group: Mapping[str, Any]) -> None:
        self._check_at_least_zero(group, "lr", "eps", "weight_decay")
        betas = group["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise self._value_error("betas must be two numbers", repr(betas))
        numbered = {f"betas[{i}]": beta for i, beta in enumerate(betas)}
        self._check_at_least_zero(numbered, *numbered)
        for name, beta in numbered.items():
            if beta >= 1:
                raise self._value_error(f"{name} must be below 1", str(beta))

    def _kept(self, group: Mapping[str, Any]) -> Sequence[str]:
        return self._state_names if group["amsgrad"] else self._state_names[:2]

    def _step_real(
        self,
        xp: Any,
        param: Any,
        grad: Any,
        averages: list[Any],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        lr, eps, beta1, beta2 = map(float, (group["lr"], group["eps"], *group["betas"]))
        mean, square, *largest = averages
        mean *= beta1
        mean += (1 - beta1) * grad
        square *= beta2
        square += (1 - beta2) * (grad * grad)
        for kept in largest:
            kept[...] = square = xp.maximum(kept, square)
        # The corrections make up for averages that started at 0.
        denominator = xp.sqrt(square / (1 - beta2**step)) + eps
        param -= lr / (1 - beta1**step) * mean / denominator


class AdamW(Adam):
    """Adam with decoupled weight decay: Loshchilov and Hutter (2019).

    A step first does ``p = p - lr * weight_decay * p``, then Adam's step without a penalty.

    Parameters
    ----------
    params, lr, betas, eps, amsgrad, maximize
        As for `Adam`.
    weight_decay : float
        Share of the parameter that a step takes away, times `lr`; at least 0.

    Raises
    ------
    ValueError, TypeError
        As `Adam`.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = pb.optim.AdamW([w], lr=0.5, weight_decay=0.2)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([ 0.4000, -1.3000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    @staticmethod
    def _penalized(param: Tensor, grad: Tensor, group: Mapping[str, Any]) -> Tensor:
        return -grad if group["maximize"] else grad

    def _step_real(
        self,
        xp: Any,
        param: Any,
        grad: Any,
        averages: list[Any],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        param *= 1 - float(group["lr"] * group["weight_decay"])
        super()._step_real(xp, param, grad, averages, step, group)
