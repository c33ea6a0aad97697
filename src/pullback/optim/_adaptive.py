"""Optimizers whose steps are scaled element by element, by averages that they keep.

Owns the state of a parameter: the number of steps, and an array for each average, made when it is
first asked for. The real and the imaginary part of a complex parameter are optimized as two real
ones. Must not know any formula. A formula is one of arrays or of tensors: plain arrays of NumPy are
written to directly, which takes a third of the time where they are small.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pullback.arrays import NUMPY
from pullback.core.function.inplace import writable_arrays
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.tensor.tensor import Tensor
from pullback.core.tensor.versions import bump
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
            self._step(param, grad, averages, state["step"], group)
            return
        p, g, *parts = map(view_as_real, (param, grad, *averages))
        self._step_real(TENSOR_XP, p, g, parts, state["step"], group)
        for whole, changed in zip((param, *averages), (p, *parts), strict=True):
            whole.copy_(view_as_complex(changed))

    def _step(
        self,
        param: Tensor,
        grad: Tensor,
        averages: list[Tensor],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        """Change a real parameter and the averages in place, where it can be by their arrays."""
        written = [param, *averages]
        arrays, g = writable_arrays(written), grad.data_array()
        if arrays is None or g.__class__ is not arrays[0].__class__ or g.dtype != arrays[0].dtype:
            self._step_real(TENSOR_XP, param, grad, averages, step, group)
            return
        self._step_real(NUMPY.xp, arrays[0], g, arrays[1:], step, group)
        for tensor in written:
            bump(tensor)

    @abstractmethod
    def _kept(self, group: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the averages, which are among the class's `_state_names`."""

    def _first(self, name: str, group: Mapping[str, Any]) -> Any:
        """Return what an average begins with."""
        return 0.0

    @abstractmethod
    def _step_real(
        self,
        xp: Any,
        param: Any,
        grad: Any,
        averages: list[Any],
        step: int,
        group: Mapping[str, Any],
    ) -> None:
        """Change a real parameter and the averages in place; `step` counts from 1.

        All are tensors or all arrays, and `xp` is their namespace.
        """
