"""Learning rates that change from epoch to epoch: PyTorch's schedulers.

A schedule says what the rate of a parameter group is in an epoch, from the rate that the group had
at first: `step` sets it, and may be given up and gone on with by `state_dict`. Must not know any
optimizer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Never, Self

from pullback.errors import ArgumentError, ArgumentTypeError, compose
from pullback.hints import Answering, absent
from pullback.optim._base import Optimizer, refuse_unknown
from pullback.public_names import listed as _listed

__all__ = [
    *("ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR"),
    *("LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR", "ReduceLROnPlateau"),
    *("SequentialLR", "StepLR"),
]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> Never:
    raise absent(__name__, name)


class _Schedule(Answering):
    """What all schedules are: the rates of an optimizer's groups, and a state to go on from."""

    _kind = "Schedule"
    optimizer: Optimizer

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Look at the options' names, before Python refuses one without a hint."""
        refuse_unknown(cls, options)
        for optimizer in args[:1] or [v for k, v in options.items() if k == "optimizer"]:
            if not isinstance(optimizer, Optimizer):
                came = type(optimizer).__name__
                raise ArgumentTypeError(compose(cls.__name__, "an Optimizer required", came))
        return super().__new__(cls)

    def get_last_lr(self) -> list[float]:
        """Return the rates that are set, one a group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return what the schedule goes on from: numbers and lists, no functions."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "optimizer" and not _holds_functions(value)
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; the optimizer's rates are its own state."""
        self.__dict__.update(state_dict)


def _holds_functions(value: Any) -> bool:
    if isinstance(value, list):
        return any(callable(v) or hasattr(v, "step") for v in value)
    return callable(value)


class LRScheduler(_Schedule, ABC):
    """The base of all schedulers; a subclass supplies `_rate`.

    Parameters
    ----------
    optimizer : Optimizer
        Its groups get the rates; each keeps its first as ``"initial_lr"``.
    last_epoch : int
        The epoch before the one to begin with, -1 for the beginning.

    Attributes
    ----------
    last_epoch : int
        The epoch whose rates are set.

    Examples
    --------
    >>> import pullback as pb
    >>> class InverseRoot(pb.optim.lr_scheduler.LRScheduler):
    ...     def _rate(self, i, base, epoch):
    ...         return base / (epoch + 1) ** 0.5
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = InverseRoot(optimizer)
    >>> for _ in range(3):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        self.base_lrs = [
            float(group.setdefault("initial_lr", group["lr"])) for group in optimizer.param_groups
        ]
        self.last_epoch = last_epoch
        self.step()

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to one: call it after the optimizer's steps of this one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set_rates()

    def _set_rates(self) -> None:
        groups = self.optimizer.param_groups
        for i, (group, base) in enumerate(zip(groups, self.base_lrs, strict=True)):
            group["lr"] = self._rate(i, base, self.last_epoch)

    @abstractmethod
    def _rate(self, i: int, base: float, epoch: int) -> float:
        """Return the rate of group `i` in an epoch, given its first rate."""


class StepLR(LRScheduler):
    """The rate times `gamma` every `step_size` epochs.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
    gamma : float
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     scheduler.step()
    >>> [round(rate, 6) for rate in rates]
    [1.0, 1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        return float(base * self.gamma ** (epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each of some epochs.

    Parameters
    ----------
    optimizer : Optimizer
    milestones : sequence of int
    gamma : float
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> for _ in range(3):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        return float(base * self.gamma ** bisect_right(self.milestones, epoch))


class ExponentialLR(LRScheduler):
    """The rate times `gamma` every epoch.

    Parameters
    ----------
    optimizer : Optimizer
    gamma : float
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        return float(base * self.gamma**epoch)


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable, or list of callable
        ``lr_lambda(epoch)``, one for all groups or one a group. It is not part of the state.
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        required = f"one function, or one for each of {groups} groups, required"
        if not callable(lr_lambda) and not isinstance(lr_lambda, Sequence):
            raise ArgumentTypeError(compose("LambdaLR", required, type(lr_lambda).__name__))
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ArgumentError(compose("LambdaLR", required, str(len(self.lr_lambdas))))
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        return float(base * self.lr_lambdas[i](epoch))


class LinearLR(LRScheduler):
    """The first rate times a factor that goes from one number to another in a line, then stays.

    Parameters
    ----------
    optimizer : Optimizer
    start_factor, end_factor : float
    total_iters : int
        The epoch from which on the factor is `end_factor`.
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        part = min(epoch, self.total_iters) / self.total_iters
        return float(base * (self.start_factor + (self.end_factor - self.start_factor) * part))


class ConstantLR(LinearLR):
    """The first rate times a factor for some epochs, then the first rate.

    Parameters
    ----------
    optimizer : Optimizer
    factor : float
    total_iters : int
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> pb.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5).get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        super().__init__(optimizer, factor, 1.0, total_iters, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        return float(base * (self.start_factor if epoch < self.total_iters else 1.0))


class CosineAnnealingLR(LRScheduler):
    """The rate along half a cosine: Loshchilov and Hutter (2017), without restarts.

    ``eta_min + (lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``.

    Parameters
    ----------
    optimizer : Optimizer
    T_max : int
        The epoch in which the rate is `eta_min`.
    eta_min : float
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> [round(rate, 6) for rate in scheduler.get_last_lr()]
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        part = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
        return float(self.eta_min + (base - self.eta_min) * part)


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate along half a cosine, again and again: Loshchilov and Hutter (2017).

    Parameters
    ----------
    optimizer : Optimizer
    T_0 : int
        The epochs before the first restart.
    T_mult : int
        How many times longer than the last each period is.
    eta_min : float
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     scheduler.step()
    >>> [round(rate, 6) for rate in rates]
    [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                required = f"a positive int required in {name}"
                raise ArgumentError(compose("CosineAnnealingWarmRestarts", required, repr(value)))
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.fraction = 0.0  # of the epoch, set by steps within one
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next epoch, or to one or a point within one: ``step(epoch + i / batches)``.

        Parameters
        ----------
        epoch : float, optional
        """
        if epoch is None:
            super().step()
            return
        if epoch < 0:
            required = "an epoch of at least 0 required"
            raise ArgumentError(compose("CosineAnnealingWarmRestarts", required, repr(epoch)))
        self.last_epoch = math.floor(epoch)
        self.fraction = epoch - self.last_epoch
        self._set_rates()

    def _rate(self, i: int, base: float, epoch: int) -> float:
        since, length = epoch + self.fraction, self.T_0
        if self.T_mult == 1:
            since %= length
        while since >= length:
            since -= length
            length *= self.T_mult
        part = (1 + math.cos(math.pi * since / length)) / 2
        return float(self.eta_min + (base - self.eta_min) * part)


class OneCycleLR(LRScheduler):
    """One cycle of the rate, up and then down to far below the first: Smith and Topin (2018).

    The momentum, of SGD, or the first beta, of Adam, goes the other way.

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : float or sequence of float
        The largest rate, one for all groups or one a group.
    total_steps : int, optional
        The number of steps; by default ``epochs * steps_per_epoch``.
    epochs, steps_per_epoch : int, optional
    pct_start : float
        The part of the steps that goes up.
    anneal_strategy : str
        ``"cos"`` or ``"linear"``.
    cycle_momentum : bool
    base_momentum, max_momentum : float
    div_factor, final_div_factor : float
        The first rate is max_lr / div_factor, the last that over final_div_factor.
    three_phase : bool
        Go down as slowly as up, and then on to the last rate.
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pb.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> [round(rate, 6) for rate in scheduler.get_last_lr()]
    [0.02]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ArgumentError("OneCycleLR: give total_steps, or epochs and steps_per_epoch")
        if anneal_strategy not in ("cos", "linear"):
            required = "an anneal_strategy of 'cos' or 'linear' required"
            raise ArgumentError(compose("OneCycleLR", required, repr(anneal_strategy)))
        self.optimizer = optimizer
        self.total_steps = total_steps or (epochs or 0) * (steps_per_epoch or 0)
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        groups = len(optimizer.param_groups)
        largest = list(max_lr) if isinstance(max_lr, Sequence) else [max_lr] * groups
        first = [rate / div_factor for rate in largest]
        last = [rate / final_div_factor for rate in first]
        self._ends = [pct_start * self.total_steps - 1, self.total_steps - 1.0]
        self._rates, self._momenta = [first, largest, last], [max_momentum, base_momentum]
        if three_phase:
            self._ends.insert(1, 2 * pct_start * self.total_steps - 2)
            self._rates.insert(2, first)
        self._momenta += [max_momentum] * (len(self._ends) - 1)
        self._begin(first)
        super().__init__(optimizer, last_epoch)

    def _begin(self, rates: list[float]) -> None:
        """Give the groups their first rates, after looking for what is cycled beside them."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            if self.cycle_momentum and not group.keys() & {"momentum", "betas"}:
                required = "an optimizer with momentum or betas for cycle_momentum required"
                raise ArgumentError(compose("OneCycleLR", required, "one without"))
            group["initial_lr"] = rate

    def _set_rates(self) -> None:
        super()._set_rates()
        if not self.cycle_momentum:
            return
        for group in self.optimizer.param_groups:
            momentum = self._along([[m] for m in self._momenta], 0, self.last_epoch)
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum

    def _rate(self, i: int, base: float, epoch: int) -> float:
        return self._along(self._rates, i, epoch)

    def _along(self, values: list[list[float]], i: int, step: int) -> float:
        """Return the value of group `i` in a step, between those at the ends of its phase."""
        if step > self.total_steps:  # after the last step of the optimizer one may follow
            required = f"at most {self.total_steps} steps required"
            raise ArgumentError(compose("OneCycleLR", required, str(step + 1)))
        begin = 0.0
        for phase, end in enumerate(self._ends):
            if step <= end or phase == len(self._ends) - 1:
                part = (step - begin) / (end - begin)
                if self.anneal_strategy == "cos":
                    part = (1 - math.cos(math.pi * part)) / 2
                start, stop = values[phase][i], values[phase + 1][i]
                return float(start + (stop - start) * part)
            begin = end
        raise AssertionError  # the last phase is the last


class SequentialLR(LRScheduler):
    """One schedule after the other, each from its own beginning.

    Parameters
    ----------
    optimizer : Optimizer
    schedulers : sequence of LRScheduler
    milestones : sequence of int
        The epochs in which the second and the following begin.
    last_epoch : int

    Examples
    --------
    >>> import pullback as pb
    >>> schedules = pb.optim.lr_scheduler
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> warm_up = schedules.LinearLR(optimizer, 0.5, total_iters=2)
    >>> after = schedules.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = schedules.SequentialLR(optimizer, [warm_up, after], milestones=[2])
    >>> for _ in range(3):
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            required = f"{len(schedulers) - 1} milestones for {len(schedulers)} schedulers required"
            raise ArgumentError(compose("SequentialLR", required, str(len(milestones))))
        if any(each.optimizer is not optimizer for each in schedulers):
            raise ArgumentError("SequentialLR: schedulers of this optimizer required")
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def _rate(self, i: int, base: float, epoch: int) -> float:
        k = bisect_right(self.milestones, epoch)
        begin = self.milestones[k - 1] if k else 0
        return self.schedulers[k]._rate(i, base, epoch - begin)


class ReduceLROnPlateau(_Schedule):
    """The rate times `factor` once a measure has not become better for some epochs.

    Parameters
    ----------
    optimizer : Optimizer
    mode : str
        ``"min"`` if smaller is better, ``"max"`` if larger is.
    factor : float
        Below 1.
    patience : int
        Epochs without improvement after which the rate is reduced.
    threshold : float
        Changes below it are none.
    threshold_mode : str
        ``"rel"``, of the best value, or ``"abs"``.
    cooldown : int
        Epochs after a reduction that do not count.
    min_lr : float or list of float
        The rates do not become smaller.
    eps : float
        A rate that would change by less is left as it is.

    Examples
    --------
    >>> import pullback as pb
    >>> optimizer = pb.optim.SGD([pb.zeros(1, requires_grad=True)], lr=1.0)
    >>> scheduler = pb.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if not 0 < factor < 1:
            raise ArgumentError(
                compose("ReduceLROnPlateau", "a factor below 1 required", f"{factor}")
            )
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            required = "mode 'min' or 'max' and threshold_mode 'rel' or 'abs' required"
            came = f"{mode!r} and {threshold_mode!r}"
            raise ArgumentError(compose("ReduceLROnPlateau", required, came))
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        groups = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * groups
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Tell the measure of this epoch, or of one: a number or a tensor of one."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                rate = max(group["lr"] * self.factor, least)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        if math.isinf(self.best):
            return sign * value < sign * self.best
        return sign * value < sign * self.best - margin
