"""Leaves that are constants by now: those that stood for the arguments of a call that returned."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pullback.core.graph.node import AccumulateGrad, edges_of
from pullback.core.tensor.tensor import Tensor

__all__ = ["differentiated", "reaches_others", "stand_for_arguments"]

# Marks the leaf that replaced an argument, once the call that made it has returned.
_CONSTANT = "stood for an argument"


def reaches_others(tensor: Tensor, ours: Collection[Any] = ()) -> bool:
    """Return whether a tensor depends on a leaf that is not one of `ours`, nor a constant.

    Depth first: what an enclosing call recorded soon ends at a leaf of that.
    """
    left = [] if tensor._node is None else [tensor._node]
    seen: set[Any] = {None, *left}
    meet, follow = seen.add, left.append
    while left:
        node = left.pop()
        if node.__class__ is AccumulateGrad:
            if node not in ours and (node.extra is None or _CONSTANT not in node.extra.metadata):
                return True
            continue
        for target in edges_of(node):
            if target not in seen:
                meet(target)
                follow(target)
    return False


def stand_for_arguments(tensors: Sequence[Tensor]) -> None:
    """Mark the leaves among tensors as constants to whatever looks at the graph from now on."""
    for tensor in tensors:
        if tensor.is_leaf:
            tensor._node.metadata[_CONSTANT] = True


@contextmanager
def differentiated(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Let leaves that stood for arguments be none of the constants while more is computed.

    A user's backward, called again, may differentiate by them.
    """
    nodes = {t._node for t in tensors if t.is_leaf and t.requires_grad}
    marked = [n for n in nodes if n.extra is not None and n.extra.metadata.pop(_CONSTANT, False)]
    try:
        yield
    finally:
        for node in marked:
            node.metadata[_CONSTANT] = True
