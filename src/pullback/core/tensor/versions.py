"""Versions: how often the memory of a tensor was changed in place.

What counts the changes of a tensor is, first of all, nothing: a result that nobody saved needs no
counter. A result that was recorded is counted by its own node. Anything else gets a `Counter` when
one is needed: when it is saved, changed, or shares its memory with another tensor. A view has no
counter but its base's. So a recorded operation makes no object for it.
"""

from __future__ import annotations

from typing import Any
from weakref import ref


class Counter:
    """Counts the in-place changes of memory that several tensors may share.

    ``origin`` is a weak reference to the node that counted before, whose version follows this
    one: nodes that saved the memory look there.
    """

    __slots__ = ("origin", "version")

    def __init__(self, version: int = 0, origin: ref[Any] | None = None) -> None:
        self.version, self.origin = version, origin


# The counter of memory that is not the tensor's own: it is copied before it is written to.
BORROWED = Counter()

# Stands in a node's record for the node itself as the counter of its result: a reference to itself
# would keep the node alive.
ITSELF = Counter()

# Counts every in-place change anywhere: where it stands still, no version has changed.
EPOCH = [0]


def counter_of(tensor: Any) -> Any:
    """Return what counts the changes of a tensor's memory: a node or a `Counter`."""
    owner = tensor if tensor._base is None else tensor._base
    counter = owner._counter
    if counter is None:
        counter = owner._counter = Counter()
    return counter


def shared_counter(tensor: Any) -> Counter:
    """Return a counter of a tensor's memory that keeps no graph alive, to be shared with others."""
    counter = counter_of(tensor)
    if counter.__class__ is not Counter:
        owner = tensor if tensor._base is None else tensor._base
        counter = owner._counter = Counter(counter.version, ref(counter))
    return counter


def count_with(tensor: Any, other: Any) -> None:
    """Let `tensor` share the counter that `other`, a tensor of the same memory, got meanwhile.

    Both were counted by one node, and the first change in place gave `other` a counter of its own.
    """
    if other._data is tensor._data and other._counter is not None:
        (tensor if tensor._base is None else tensor._base)._counter = other._counter


def version_of(tensor: Any) -> int:
    """Return how often the memory of a tensor was changed in place."""
    counter = (tensor if tensor._base is None else tensor._base)._counter
    return 0 if counter is None else counter.version


def is_borrowed(tensor: Any) -> bool:
    """Return whether a tensor's memory must be copied before it is written to."""
    return (tensor if tensor._base is None else tensor._base)._counter is BORROWED


def bump(tensor: Any) -> None:
    """Count one change in place of a tensor's memory."""
    counter = shared_counter(tensor)
    counter.version += 1
    node = None if counter.origin is None else counter.origin()
    if node is not None:
        node.version = counter.version
    EPOCH[0] += 1
