"""What forward saved for backward: the arrays in the nodes of a run, with names for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.arrays import is_array
from pullback.check.subject import Run
from pullback.core.backward.engine import collect
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import Kept, SavedContainer, SavedTensor
from pullback.core.graph.node import CustomNode


def saved_arrays(run: Run) -> list[tuple[str, Any]]:
    """Return the arrays that the nodes of a run saved, with labels."""
    found: list[tuple[str, Any]] = []
    for node in collect([out._node for out in run.outputs if out._node is not None])[0]:
        saved = node.saved if isinstance(node.saved, tuple) else ()  # a hook may have packed it
        if saved and isinstance(node, CustomNode):
            found += _saved_by_user(node)
        else:
            label = f"the value `{node.name()}.saved`"
            found += [(label, value) for value in saved if is_array(value)]
    return found


def _saved_by_user(node: CustomNode) -> Iterator[tuple[str, Any]]:
    *flat, attributes = node.saved
    items = [flat[k : k + 4] for k in range(0, len(flat), 4)]
    for k, (name, item) in enumerate(zip(node.names, items, strict=True)):
        label = f"the saved value `{name or _origin(node, k, item[3])}`"
        yield from ((label, array) for array in _arrays_of(item[0]))
    for name, value in (attributes or {}).items():
        if name == "_attributes":
            for key, item in value.items():
                yield from ((f"the saved value `{key}`", a) for a in _arrays_of(item[0]))
        else:
            yield from ((f"the saved value `{name}`", a) for a in _arrays_of(value))


def _origin(node: CustomNode, k: int, position: int | None) -> str:
    """Return a label for a saved value without a name."""
    if position is None:
        return f"saved_tensors[{k}]"
    return node.arguments.owner(position) if position >= 0 else f"output {-1 - position}"


def _arrays_of(value: Any) -> Iterator[Any]:
    """Yield the arrays of a saved value."""
    if isinstance(value, SavedTensor):
        value = value.array
    elif isinstance(value, SavedContainer):
        value = value.structure
    for leaf in tree.leaves(value):
        if isinstance(leaf, Kept):
            yield from _arrays_of(leaf.items[0])
        elif is_array(leaf):
            yield leaf
