"""The records of a graph as data: nodes, leaves, edges and blocks.

They hold numbers, texts and the user's operations, nothing of the graph itself: looking at a graph
keeps nothing alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One recorded operation.

    Attributes
    ----------
    id : int
        Grows with creation; no two nodes or leaves of a process have the same.
    name : str
        As ``grad_fn.name()`` gives it, such as ``MulBackward``.
    op : operation or None
        The user's operation; None for one of the library's.
    inputs, consumers : tuple of int
        The ids of what its inputs came from, and of the nodes that use its result.
    saved_bytes : int
        What it keeps for backward; of a view the whole array that it keeps.
    released : bool
        Whether backward has freed that.
    shape, dtype : tuple of int, str; or None
        Of its first result; like all that follow None unless it was recorded within `record`.
    line : str or None
        The user's line, as ``"file.py:12"``.
    seconds, backward_seconds : float or None
        How long its forward and its gradient rule took.
    min, max, nan_count, inf_count : float, float, int, int; or None
        Of its results; of complex ones of their absolute values.
    grad_norm, grad_nan_count, grad_inf_count : float, int, int; or None
        Of the gradient that arrived for its results.
    verdict : str or None
        What the checker's report on its operation says, where one was passed.
    """

    id: int
    name: str
    op: Any
    inputs: tuple[int, ...]
    consumers: tuple[int, ...]
    saved_bytes: int
    released: bool
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    line: str | None = None
    seconds: float | None = None
    backward_seconds: float | None = None
    grad_norm: float | None = None
    min: float | None = None
    max: float | None = None
    nan_count: int | None = None
    grad_nan_count: int | None = None
    inf_count: int | None = None
    grad_inf_count: int | None = None
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class GraphLeaf:
    """A tensor whose gradient is asked for: its id, name, shape and bytes, and its consumers.

    The name is that of a variable or a module's parameter, else empty; a leaf that is gone has
    neither shape nor bytes.
    """

    id: int
    name: str
    shape: tuple[int, ...] | None
    bytes: int
    consumers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One use of a result: from the `source`, its output of that number, to the node `target`."""

    source: int
    target: int
    output: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the folded graph.

    Attributes
    ----------
    name : str
    count : int
        How often it is repeated, one after the other, within the block it is part of.
    children : tuple of Block
        What one repetition consists of; empty for a single operation.
    nodes : tuple of int
        The ids of a single operation's nodes in all repetitions; empty where there are children.
    """

    name: str
    count: int
    children: tuple[Block, ...] = ()
    nodes: tuple[int, ...] = ()

    def leaves(self) -> Iterator[Block]:
        """Yield the blocks of single operations within this one."""
        left = [self]
        while left:
            block = left.pop()
            if block.children:
                left.extend(reversed(block.children))
            else:
                yield block
