"""Saved values: their versions, and the packing of them by `saved_tensors_hooks`.

A node saves arrays, each with the version counter of its tensor and the version it had; reading one
whose version has moved on is an error. Built-in and user operations save alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.graph.node import Node
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentTypeError, InplaceError


def stale(node: Any, version: int, expected: int, what: str = "a saved tensor") -> InplaceError:
    """Return the error for a saved tensor that was changed in place since.

    It names the node, or what else kept the array and has a method `name`.
    """
    return InplaceError(
        f"{node.name()}: one of the variables needed for gradient computation has been modified "
        f"by an inplace operation: {what} is at version {version}; expected version {expected}.\n"
        "hint: use the operation that is not in place, or clone() the tensor before changing it."
    )


class Packed:
    """What a pack hook made of a saved array, with the array's version."""

    __slots__ = ("counter", "unpack_hook", "value", "version")

    def __init__(self, hooks: Any, array: Any, counter: Any) -> None:
        self.counter, self.version = counter, counter.version
        self.unpack_hook: Callable[[Any], Any] = hooks.unpack
        self.value = hooks.pack(box(array, None, counter))
        if counter.version != self.version:
            raise InplaceError(
                "saved_tensors_hooks: a saved tensor pack hook is modifying its input in place.\n"
                "hint: clone() the tensor in the hook first."
            )

    def unpack(self, node: Any) -> Any:
        """Return the array of the tensor that the unpack hook gives back; errors as in `stale`."""
        tensor = self.unpack_hook(self.value)
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"{node.name()}: the unpack hook of saved_tensors_hooks must return a Tensor, got "
                f"{type(tensor).__name__}"
            )
        if tensor._counter is self.counter and self.counter.version != self.version:
            # the hooks kept the memory itself
            raise stale(node, self.counter.version, self.version)
        return tensor.data_array()


def unpacked(record: tuple[Any, ...], node: Node) -> tuple[Any, ...]:
    """Return a node's record with the arrays that unpack hooks give back."""
    for item in record:
        if item.__class__ is Packed:
            return tuple([i.unpack(node) if i.__class__ is Packed else i for i in record])
    return record
