"""What operations hand down to core, each once, at import: core knows no operation by itself.

`TENSORS` is the namespace of operations over tensors, the ``xp`` of rules whose backward is
recorded; `RECORDED` has the operations that core itself records: casting, choosing, and
stacking the tensors in a list.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

TENSORS = SimpleNamespace()


class Recorded:
    """Recorded operations for core's own use."""

    astype: Callable[..., Any]  # astype(tensor, dtype)
    where: Callable[..., Any]  # where(condition, x, y)
    beside: Callable[..., Any]  # beside(lists, tensor): a tensor of nested lists


RECORDED = Recorded()
