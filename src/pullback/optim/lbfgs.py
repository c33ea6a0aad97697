"""L-BFGS: steps along the inverse Hessian that the last gradients suggest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pullback.core.graph.modes import enable_grad, no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.extras import optional
from pullback.ops.functions.complex_numbers import view_as_complex, view_as_real
from pullback.ops.functions.creation import zeros_like
from pullback.ops.functions.joining import cat
from pullback.optim._base import Optimizer, Params


class LBFGS(Optimizer):
    """L-BFGS, by the two-loop recursion of Nocedal and Wright, "Numerical optimization", 7.4.

    One `step` makes up to `max_iter` iterations, and calls its closure for each: it clears the
    gradients, computes the loss, calls backward and returns the loss.

    Parameters
    ----------
    params : iterable of Tensor, or one parameter group
        The leaves to optimize.
    lr : float
        Length of a step, in units of the full one.
    max_iter : int
        Iterations of a step.
    max_eval : int, optional
        Calls of the closure in a step; by default 5/4 of `max_iter`.
    tolerance_grad : float
        A step ends where no element of the gradient is larger.
    tolerance_change : float
        A step ends where neither the loss nor a parameter changes by more.
    history_size : int
        Gradients that are remembered.
    line_search_fn : str, optional
        ``"strong_wolfe"``: steps as long as the strong Wolfe conditions ask for, by SciPy's
        `line_search`, which needs the extra ``scipy``.

    Raises
    ------
    ValueError
        There are several groups, or an option is outside its range.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([3.0, -2.0], dtype="float64", requires_grad=True)
    >>> optimizer = pb.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (w[0] - 1) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     _ = optimizer.step(closure)
    >>> w.detach().round(decimals=4)
    tensor([1., 1.], dtype=float64)
    """

    _state_names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise self._value_error("one parameter group required", str(len(self.param_groups)))

    def _check(self, group: Mapping[str, Any]) -> None:
        names = ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size")
        self._check_at_least_zero(group, *names)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            required = "a line_search_fn of 'strong_wolfe' or None required"
            raise self._value_error(required, repr(group["line_search_fn"]))

    def _update(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        raise NotImplementedError  # `step` moves all parameters together

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to `max_iter` iterations, and return the first loss.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss, calls backward and returns the loss.

        Raises
        ------
        TypeError
            There is no closure.
        """
        if closure is None:
            raise self._type_error("step needs a closure that computes the loss again", "None")
        evaluate = enable_grad(closure)
        loss = evaluate()
        with no_grad():
            _Run(self, evaluate).iterate(float(loss))
        return loss

    def _flat_grad(self) -> Tensor:
        return cat([_flat(zeros_like(p) if p.grad is None else p.grad) for p in self._own()])

    def _flat_params(self) -> Tensor:
        return cat([_flat(p) for p in self._own()])

    def _set_params(self, values: Tensor) -> None:
        begin = 0
        for p in self._own():
            size = p.numel() * (2 if p.is_complex() else 1)
            part = values[begin : begin + size]
            begin += size
            shape = (*p.shape, 2) if p.is_complex() else p.shape
            part = part.reshape(shape)
            p.copy_(view_as_complex(part) if p.is_complex() else part)

    def _own(self) -> list[Tensor]:
        parameters: list[Tensor] = self.param_groups[0]["params"]
        return parameters


def _flat(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return (view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)


class _Run:
    """The iterations of one step; what the next step goes on from is the optimizer's state."""

    def __init__(self, optimizer: LBFGS, evaluate: Callable[[], Any]) -> None:
        self.optimizer, self.evaluate = optimizer, evaluate
        self.group = optimizer.param_groups[0]
        empty: dict[str, Any] = {"n_iter": 0, "old_dirs": [], "old_stps": []}
        self.state = optimizer.state.setdefault(optimizer._own()[0], empty)
        self.calls = 1

    def iterate(self, loss: float) -> None:
        group, state = self.group, self.state
        grad = self.optimizer._flat_grad()
        for _ in range(group["max_iter"]):
            if float(grad.abs().max()) <= group["tolerance_grad"]:
                return
            state["n_iter"] += 1
            direction = self._direction(grad)
            slope = float(grad @ direction)
            first = min(1.0, 1.0 / float(grad.abs().sum())) if state["n_iter"] == 1 else 1.0
            if slope > -group["tolerance_change"]:
                return
            before, start = loss, self.optimizer._flat_params()
            loss, new, length = self._move(start, direction, first * group["lr"], loss, grad)
            self._remember(new - grad, length * direction)
            grad = new
            change = float((length * direction).abs().max())
            done = self.calls >= group["max_eval"] or change <= group["tolerance_change"]
            if done or abs(loss - before) < group["tolerance_change"]:
                return

    def _direction(self, grad: Tensor) -> Tensor:
        """Return minus the inverse Hessian of the last gradients times the newest."""
        q = -grad
        steps, changes = self.state["old_stps"], self.state["old_dirs"]
        factors = []
        for s, y in zip(reversed(steps), reversed(changes), strict=True):
            factors.append((s @ q) / (y @ s))
            q = q - factors[-1] * y
        if steps:
            s, y = steps[-1], changes[-1]
            q = q * ((y @ s) / (y @ y))
        for s, y, a in zip(steps, changes, reversed(factors), strict=True):
            q = q + s * (a - (y @ q) / (y @ s))
        return q

    def _remember(self, change: Tensor, step: Tensor) -> None:
        """Add how the gradient changed with a step, where the loss is curved upwards along it."""
        if float(change @ step) <= 1e-10:
            return
        for name, value in (("old_dirs", change), ("old_stps", step)):
            self.state[name].append(value)
            del self.state[name][: -self.group["history_size"]]

    def _at(self, point: Tensor) -> tuple[float, Tensor]:
        self.optimizer._set_params(point)
        self.calls += 1
        loss = float(self.evaluate())
        return loss, self.optimizer._flat_grad()

    def _move(
        self, start: Tensor, direction: Tensor, length: float, loss: float, grad: Tensor
    ) -> tuple[float, Tensor, float]:
        """Move the parameters, and return the loss, its gradient and the length of the step."""
        if self.group["line_search_fn"] is not None:
            found = self._searched(start, direction, loss, grad)
            length = length if found is None else found
        return (*self._at(start + length * direction), length)

    def _searched(
        self, start: Tensor, direction: Tensor, loss: float, grad: Tensor
    ) -> float | None:
        """Return a length that the strong Wolfe conditions allow, None where none is known."""
        api = "LBFGS(line_search_fn='strong_wolfe')"
        line_search = optional(api, "scipy.optimize", "SciPy", "scipy").line_search
        evaluated: dict[bytes, tuple[float, Tensor]] = {}

        def at(x: Any) -> tuple[float, Tensor]:  # the search asks for value and slope apart
            key = x.tobytes()
            if key not in evaluated:
                evaluated[key] = self._at(start.new_tensor(x))
            return evaluated[key]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no length was found
            found = line_search(
                lambda x: at(x)[0],
                lambda x: at(x)[1].numpy(),
                start.numpy(),
                direction.numpy(),
                grad.numpy(),
                loss,
                maxiter=25,
            )
        return None if found[0] is None else float(found[0])
