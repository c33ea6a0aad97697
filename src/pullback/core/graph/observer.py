"""What may watch a program from inside its mode: anomaly detection, viewers, profilers.

Owns the one interface that calls of operations and the engine speak. An observer is part of a
`Mode`; where there is none, nothing here is ever called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pullback.core.graph.node import Node


class Observer:
    """Is called at every operation and every step of backward; each method may raise."""

    def begins(self, op: str) -> None:
        """Look at the clock before the operation named `op` runs; an error may end it."""

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

    def recorded(self, node: Node, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Look at a node that was just made for these inputs and results."""

    def roots(self, api: str, name: str, roots: Sequence[Any], seeds: Sequence[Any]) -> None:
        """Look at what backward starts from: tensors and the gradients of them."""

    def arrived(self, node: Node, g: Any) -> None:
        """Look at the sum of the gradients that reached a node, after the tensor's hooks."""

    def entering(self, node: Node, g: Any) -> None:
        """Look at a node before its rule runs, after its pre-hooks."""

    def computed(self, node: Node, g: Any, grads: Sequence[Any]) -> None:
        """Look at the gradients of a node's inputs, as its rule gave them."""

    def failed(self, node: Node, error: Exception) -> None:
        """Look at an error that a node's rule raised, on its way to the caller."""

    def hooked(self, node: Node, grads: Sequence[Any]) -> None:
        """Look at the gradients that a node's post-hooks gave back."""
