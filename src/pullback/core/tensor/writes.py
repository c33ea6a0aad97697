"""Tensors that a function writes to in place, as seen by a transform that calls it.

A value that depends on a transform's arguments must not end in a tensor from outside: who reads it
later gets what only the transform can differentiate. Whether a tensor is from outside is known when
the function has returned: its own are gone then, except for those that were made in it by creation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any
from weakref import ref

__all__ = ["WRITES", "Writes"]


class Writes:
    """What one call of a function wrote to, where it was a constant until then.

    Parameters
    ----------
    outer : Writes or None
        That of the call around it.
    """

    def __init__(self, outer: Writes | None) -> None:
        self._outer = outer
        self._made: set[int] = set()  # numbers of tensors; one from outside keeps its own
        self._written: list[ref[Any]] = []

    def made(self, tensor: Any) -> None:
        """Note a new tensor."""
        writes: Writes | None = self
        while writes is not None:
            writes._made.add(id(tensor))
            writes = writes._outer

    def written(self, tensor: Any) -> None:
        """Note that a constant becomes part of the graph."""
        writes: Writes | None = self
        while writes is not None:
            if id(tensor) not in writes._made:
                writes._written.append(ref(tensor))
            writes = writes._outer

    def left(self) -> Iterator[Any]:
        """Yield the tensors from outside that were written to; after the function has returned."""
        for reference in self._written:
            tensor = reference()
            if tensor is not None and tensor._node is not None:
                yield tensor


WRITES: ContextVar[Writes | None] = ContextVar("pullback_writes", default=None)
