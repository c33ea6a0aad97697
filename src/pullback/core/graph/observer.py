"""What may watch a program from inside its mode: anomaly detection, viewers, profilers.

Owns the one interface that calls of operations and the engine speak. An observer is part of a
`Mode`; where there is none, nothing here is ever called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pullback.core.graph.node import Node


class Observer:
    """Is called at every operation and every step of backward; each method may raise.

    A mode has one observer of each kind. One that does not watch takes the place of none: it ends
    the watching of its kind.
    """

    kind: object = None
    watches = True

    def result(
        self,
        op: str,
        inputs: Sequence[tuple[str, Any]],
        results: Iterable[Any],
        settings: Mapping[str, Any] = {},
        moves: bool = False,
    ) -> None:
        """Look at what the operation named `op` made of its inputs, recorded or not.

        `moves`: it computes no number, as `Primitive` says.
        """

    def recorded(self, node: Node, results: Sequence[Any], seconds: float | None = None) -> None:
        """Look at a node that was just made for these results, in a call that took so long."""

    def roots(self, api: str, name: str, roots: Sequence[Any], seeds: Sequence[Any]) -> None:
        """Look at what backward starts from: tensors and the gradients of them."""

    def arrived(self, node: Node, g: Any) -> None:
        """Look at the sum of the gradients that reached a node, after the tensor's hooks."""

    def entering(self, node: Node, g: Any) -> None:
        """Look at a node before its rule runs, after its pre-hooks."""

    def computed(self, node: Node, g: Any, grads: Sequence[Any], seconds: float) -> None:
        """Look at the gradients of a node's inputs, as its rule gave them in so many seconds."""

    def failed(self, node: Node, error: Exception) -> None:
        """Look at an error that a node's rule raised, on its way to the caller."""

    def hooked(self, node: Node, grads: Sequence[Any]) -> None:
        """Look at the gradients that a node's post-hooks gave back."""


class Together(Observer):
    """Several observers of one mode, each of its own kind; they look in this order."""

    def __init__(self, each: Sequence[Observer]) -> None:
        self.each = tuple(each)


def _shared(name: str) -> Any:
    def look(self: Together, *args: Any) -> None:
        for observer in self.each:
            getattr(observer, name)(*args)

    look.__doc__ = getattr(Observer, name).__doc__
    return look


for _name in [name for name, value in vars(Observer).items() if name[0] != "_" and callable(value)]:
    setattr(Together, _name, _shared(_name))


def beside(current: Observer | None, new: Observer) -> Observer | None:
    """Return an observer beside those of other kinds that a mode has, None if none is left."""
    each = current.each if isinstance(current, Together) else (current,)
    left = [other for other in each if other is not None and other.kind != new.kind]
    left += [new] if new.watches else []
    return left[0] if len(left) == 1 else Together(left) if left else None
