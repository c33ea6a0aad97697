"""What is handed down, each once, at import, to what must not know who has it.

`TENSOR_XP` is the namespace of operations over tensors, the ``xp`` of rules whose backward is
recorded; `CORE_OPS` has the operations that core itself records: casting, choosing, and stacking
the tensors in a list; and the engine's `grad`, for a rule that runs a backward pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

TENSOR_XP = SimpleNamespace()


class CoreOps:
    """Functions of tensors for core's own use."""

    astype: Callable[..., Any]  # astype(tensor, dtype)
    where: Callable[..., Any]  # where(condition, x, y)
    beside: Callable[..., Any]  # beside(lists, tensor): a tensor of nested lists
    grad: Callable[..., Any]  # see core/backward/api.py


CORE_OPS = CoreOps()
