"""Leaves that are constants by now: those that stood for the arguments of a call that returned.

Owns the mark that makes a leaf a constant, and since when: what runs again must see no mark that it
did not see the first time. Times are numbers in the count of nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pullback.core.graph.node import AccumulateGrad, edges_of, next_seq
from pullback.core.tensor.tensor import Tensor

__all__ = ["as_of", "differentiated", "reaches_others", "stand_for_arguments"]

# Marks the leaf that replaced an argument, once the call that made it has returned: with the times
# of that, of which there are several where one was not seen.
_CONSTANT = "stood for an argument"
# From the start of a first run to that of the second, for each that is running: not seen there.
_UNSEEN: ContextVar[tuple[tuple[int, int], ...]] = ContextVar("pullback_unseen", default=())


@contextmanager
def as_of(time: int) -> Iterator[None]:
    """Let leaves that were marked since a time be none of the constants while more is computed.

    Those that are marked meanwhile are: a second run has the leaves of its own calls.
    """
    token = _UNSEEN.set((*_UNSEEN.get(), (time, next_seq())))
    try:
        yield
    finally:
        _UNSEEN.reset(token)


def _is_constant(leaf: AccumulateGrad) -> bool:
    times = () if leaf.extra is None else leaf.extra.metadata.get(_CONSTANT, ())
    unseen = _UNSEEN.get()
    return any(not any(start <= time <= end for start, end in unseen) for time in times)


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
            if node not in ours and not _is_constant(node):
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
        if tensor.is_leaf and not _is_constant(tensor._node):
            metadata = tensor._node.metadata
            metadata[_CONSTANT] = (*metadata.get(_CONSTANT, ()), next_seq())


@contextmanager
def differentiated(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Let leaves that stood for arguments be none of the constants while more is computed.

    A user's backward, called again, may differentiate by them.
    """
    nodes = {t._node for t in tensors if t.is_leaf and t.requires_grad}
    noted = [n.metadata for n in nodes if n.extra is not None and _CONSTANT in n.metadata]
    times = [metadata.pop(_CONSTANT) for metadata in noted]
    try:
        yield
    finally:
        for metadata, time in zip(noted, times, strict=True):
            metadata[_CONSTANT] = time
