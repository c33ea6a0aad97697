"""Levels: what each running transform differentiates by, and whether that is a constant by now.

Owns `Level`: one for each call of a transform in reverse mode, whose leaves stood for its
arguments. As long as the level is open a value that leads to one of them depends on the level; once
it is closed they are constants. A value depends on an outer level if it leads to a leaf of a level
that is open, or of no level: a user's own. Also what is running in forward mode or on a batch.

Times are numbers in the count of nodes: what runs again must see no level closed that the first run
saw open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from pullback.arrays import WrappingLibrary
from pullback.core.graph.node import AccumulateGrad, edges_of, next_seq
from pullback.core.tensor.tensor import Tensor

__all__ = [
    "RECORDING",
    "WRAPPING",
    "Level",
    "Running",
    "as_of",
    "close_levels",
    "depends_on_outer_level",
    "levels_reopened",
]

# The changes of the mode in which a transform runs a function that it differentiates.
RECORDING = {"grad": True, "inference": False}
# From the start of a first run to that of the second, for each that is running: not seen there.
_UNSEEN: ContextVar[tuple[tuple[int, int], ...]] = ContextVar("pullback_unseen", default=())


class Level:
    """One call of a transform in reverse mode.

    Attributes
    ----------
    number : int
        It grows from one level to the next.
    closed : tuple of int
        When it was closed: several times where one was not seen.
    """

    __slots__ = ("closed", "number")

    def __init__(self) -> None:
        self.number = next_seq()
        self.closed: tuple[int, ...] = ()

    def close(self) -> None:
        """Make its leaves constants to whatever looks at the graph from now on."""
        if self.is_open():
            self.closed = (*self.closed, next_seq())

    def is_open(self) -> bool:
        """Say whether its leaves are what a transform differentiates by."""
        if not self.closed:
            return True
        unseen = _UNSEEN.get()
        return all(any(start <= t <= end for start, end in unseen) for t in self.closed)


@contextmanager
def as_of(time: int) -> Iterator[None]:
    """Let levels that were closed since a time be open while more is computed.

    Those that are closed meanwhile are not: a second run has levels of its own calls.
    """
    token = _UNSEEN.set((*_UNSEEN.get(), (time, next_seq())))
    try:
        yield
    finally:
        _UNSEEN.reset(token)


def depends_on_outer_level(tensor: Tensor, level: Level | None = None) -> bool:
    """Return whether a tensor leads to what is differentiated by, but to leaves of `level`.

    Depth first: what an enclosing call recorded soon ends at a leaf of that.
    """
    left = [] if tensor._node is None else [tensor._node]
    seen: set[Any] = {None, *left}
    meet, follow = seen.add, left.append
    while left:
        node = left.pop()
        if node.__class__ is AccumulateGrad:
            own = node.level
            if own is None or (own is not level and own.is_open()):
                return True
            continue
        for target in edges_of(node):
            if target not in seen:
                meet(target)
                follow(target)
    return False


def _levels_of(tensors: Iterable[Tensor]) -> list[Level]:
    nodes = [t._node for t in tensors if t._node.__class__ is AccumulateGrad]
    return list(dict.fromkeys(node.level for node in nodes if node.level is not None))


def close_levels(tensors: Sequence[Tensor]) -> None:
    """Close the levels of the leaves among tensors."""
    for level in _levels_of(tensors):
        level.close()


@contextmanager
def levels_reopened(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Let the levels of leaves be open while more is computed.

    A user's backward, called again, may differentiate by them.
    """
    levels = _levels_of(tensors)
    times = [level.closed for level in levels]
    for level in levels:
        level.closed = ()
    try:
        yield
    finally:
        for level, closed in zip(levels, times, strict=True):
            level.closed = closed


class Running(NamedTuple):
    """A transform that is running on wrapped arrays.

    Attributes
    ----------
    library : WrappingLibrary
    start : int
        The number of the first node in it.
    size : int
        How many samples a batch has; 0 in forward mode.
    randomness : str
        How numbers are drawn for the samples of a batch.
    user_ops : list
        The users' operations that were called in it.
    """

    library: WrappingLibrary
    start: int
    size: int
    randomness: str
    user_ops: list[Any]


# Forward modes and batches that are running, the innermost last: what is differentiated inside of
# one is wrapped, so that its graph is one of wrapped arrays.
WRAPPING: ContextVar[tuple[Running, ...]] = ContextVar("pullback_wrapping", default=())
