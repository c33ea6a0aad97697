"""What forward saved for backward: the arrays in the nodes of a run, with names for them."""

from __future__ import annotations

from typing import Any

from pullback.arrays import is_array
from pullback.check.subject import Run
from pullback.core.backward.collect import collect
from pullback.core.custom.context import saved_values
from pullback.core.graph.node import CustomNode


def saved_arrays(run: Run) -> list[tuple[str, Any]]:
    """Return the arrays that the nodes of a run saved, with labels."""
    found: list[tuple[str, Any]] = []
    for node in collect([out._node for out in run.outputs if out._node is not None])[0]:
        if isinstance(node, CustomNode):
            found += [(f"the saved value `{name}`", value) for name, value in saved_values(node)]
        else:
            label = f"the value `{node.name()}.saved`"
            found += [(label, v) for v in node.record[node.count :] if is_array(v)]
    return found
