"""Optimizers whose steps are scaled element by element, by averages that they keep.

Owns the state of a parameter: the number of steps, and an array for each average, made when it is
first asked for. The real and the imaginary part of a complex parameter are optimized as two real
ones. Must not know any formula.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.ops.functions.complex_numbers import view_as_complex, view_as_real
from pullback.optim._base import Optimizer


class Adaptive(Optimizer):
    """The base of Adam and its kind; a subclass supplies `_kept` and `_step_real`."""

    def _update(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        grad = self._penalized(param, grad, group)
        state = self.state.setdefault(param, {"step": 0})
        state["step"] += 1
        averages = []
        for name in self._kept(group):
            if name not in state:
                first = self._first(name, group)
                first = complex(first, first) if param.is_complex() else first
                state[name] = grad.detach().clone().fill_(first)
            averages.append(state[name])
        if not param.is_complex():
            self._step_real(param, grad, averages, state["step"], group)
            return
        p, g, *parts = map(view_as_real, (param, grad, *averages))
        self._step_real(p, g, parts, state["step"], group)
        for whole, changed in zip((param, *averages), (p, *parts), strict=True):
            whole.copy_(view_as_complex(changed))

    @abstractmethod
    def _kept(self, group: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the averages, which are among the class's `_state_names`."""

    def _first(self, name: str, group: Mapping[str, Any]) -> Any:
        """Return what an average begins with."""
        return 0.0

    @abstractmethod
    def _step_real(
        self,
        param: Tensor,
        grad: Tensor,
        averages: list[Tensor],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        """Change a real parameter and the averages in place; `step` counts from 1."""
