"""Tensors that a function writes to in place, as seen by a transform that calls it.

A value that depends on a transform's arguments must not end in a tensor from outside: who reads it
later gets what only the transform can differentiate. Whether a tensor is from outside is known when
the function has returned: its own are gone then, except for those that were made in it by creation.
So a plain tensor that a wrapped value is written to is brought into the wrapping library, and put
back, with an error, if it is still there afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import ref


class _Adopted(NamedTuple):
    """A tensor that was brought into a wrapping library: what it held, and the error."""

    tensor: ref[Any]
    array: Any
    node: Any
    error: Exception


class Writes:
    """What one call of a function wrote to, where it was a constant until then."""

    def __init__(self, outer: Writes | None, library: Any = None) -> None:
        self._outer = outer  # that of the call around it
        self._library = library  # the wrapping one of a transform that has one
        self.adopted: list[_Adopted] = []  # what was brought into the library
        self._made: set[int] = set()  # numbers of tensors; one from outside keeps its own
        self._written: list[ref[Any]] = []

    def _running(self) -> Iterator[Writes]:
        """Yield what this call and those around it write to."""
        writes: Writes | None = self
        while writes is not None:
            yield writes
            writes = writes._outer

    def made(self, tensor: Any) -> None:
        """Note a new tensor."""
        for writes in self._running():
            writes._made.add(id(tensor))

    def written(self, tensor: Any) -> None:
        """Note that a constant becomes part of the graph."""
        for writes in self._running():
            if id(tensor) not in writes._made:
                writes._written.append(ref(tensor))

    def adopt(self, tensor: Any, library: Any, error: Exception) -> bool:
        """Note a tensor that is about to be brought into a library, and the error if it may not.

        Returns False where no transform of that library is running.
        """
        for writes in self._running():
            if writes._library is library:
                writes.adopted.append(_Adopted(ref(tensor), tensor._data, tensor._node, error))
                return True
        return False

    def put_back(self) -> Exception | None:
        """Put back those that are still there, which were not made by the function.

        Returns the error of the first.
        """
        if any(a.tensor() is not None for a in self.adopted):
            gc.collect()  # the function's own may be part of a cycle
        first = None
        for tensor, array, node, error in reversed(self.adopted):
            if (result := tensor()) is not None:
                result._data, result._node, first = array, node, error
        return first

    def left(self) -> Iterator[Any]:
        """Yield the tensors from outside that were written to; after the function has returned."""
        for reference in self._written:
            tensor = reference()
            if tensor is not None and tensor._node is not None:
                yield tensor


WRITES: ContextVar[Writes | None] = ContextVar("pullback_writes", default=None)
