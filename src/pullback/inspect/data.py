"""A graph as data: what `pullback.inspect.graph` returns, and the ways to show it."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pullback.inspect import formats, page
from pullback.inspect.faults import faults_of
from pullback.inspect.folding import folded
from pullback.inspect.memory import Memory
from pullback.inspect.records import Block, Edge, GraphLeaf, GraphNode


@dataclass(frozen=True, eq=False)
class Graph:
    """A recorded graph, to be read.

    Attributes
    ----------
    nodes : tuple of GraphNode
        In the order of creation.
    leaves : tuple of GraphLeaf
    edges : tuple of Edge
        One for each use of a result; a result that is used twice by one node has two.
    memory : Memory
        The arrays that the nodes saved.
    outputs : tuple of (str, int)
        The names of the tensors that it was asked of, and the ids of their nodes.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> g = pb.inspect.graph(loss)
    >>> [node.name for node in g.nodes], g.leaves[0].name
    (['MulBackward', 'SumBackward'], 'w')
    """

    nodes: tuple[GraphNode, ...]
    leaves: tuple[GraphLeaf, ...]
    edges: tuple[Edge, ...]
    memory: Memory = field(repr=False)  # which arrays, see pullback.inspect.memory
    outputs: tuple[tuple[str, int], ...] = field(default=())  # of the tensors: a name, an id

    @property
    def bytes_alone(self) -> int:
        """The bytes that would be freed with the graph."""
        return sum(itertools.compress(self.memory.sizes, self.memory.alone))

    @property
    def bytes_shared(self) -> int:
        """The bytes that the graph holds and that are also reachable otherwise."""
        return sum(self.memory.sizes) - self.bytes_alone

    @functools.cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The nodes folded by repetition, then by operation, line and file."""
        return folded(self.nodes)

    @functools.cached_property
    def faults(self) -> dict[str, dict[int, str]]:
        """What NaN and infinities do at nodes, where `record` was on, by kind and id.

        The kinds are ``"NaN"`` and ``"infinity"``; each ``"begins here"``, ``"passes"`` or is
        ``"in gradient"``, that which arrived.
        """
        return faults_of(self.nodes)

    def to_json(self) -> str:
        """Return the graph as strict JSON: a number that is not finite is null."""
        return formats.to_json(self)

    def to_mermaid(self) -> str:
        """Return the folded graph as a Mermaid flow chart."""
        return formats.to_mermaid(self)

    def to_dot(self) -> str:
        """Return the folded graph in Graphviz's language."""
        return formats.to_dot(self)

    def save(self, path: str | Path) -> None:
        """Write the viewer of this graph as one HTML file that needs no network."""
        Path(path).write_text(page.html_of(self), encoding="utf-8")

    def show(self) -> None:
        """Open the viewer in a browser; in a notebook, the value itself shows it."""
        page.show(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows: the viewer in a frame, which needs no kernel."""
        return {"text/plain": str(self), "text/html": page.frame(self)}

    def __rich__(self) -> Any:
        """Return the tree that Rich prints."""
        return formats.to_rich(self)

    def __str__(self) -> str:
        return formats.to_text(self)

    def __repr__(self) -> str:
        return f"<Graph of {formats.counts_text(self)}>"
