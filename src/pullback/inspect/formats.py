"""A graph as text: a tree for the terminal, JSON, Mermaid and Graphviz.

Must not know how a graph was read; drawings are of the folded graph.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

from pullback.inspect.faults import words_of
from pullback.inspect.records import Block

_SHOWN = 40  # blocks of one level in a text
_DEPTH = 3  # levels of blocks in a text


def to_json(graph: Any) -> str:
    """Return a graph as strict JSON."""
    nodes = [_plain(node) for node in graph.nodes]
    for node, data in zip(graph.nodes, nodes, strict=True):
        data["op"] = None if node.op is None else node.op.name
    found = {
        "nodes": nodes,
        "leaves": [_plain(leaf) for leaf in graph.leaves],
        "edges": [_plain(edge) for edge in graph.edges],
        "outputs": [{"name": name, "id": number} for name, number in graph.outputs],
        "blocks": [_tree(block) for block in graph.blocks],
        "faults": graph.faults,
        "bytes_alone": graph.bytes_alone,
        "bytes_shared": graph.bytes_shared,
    }
    return json.dumps(found, allow_nan=False)


def _plain(record: Any) -> dict[str, Any]:
    """Return a record's fields; a number that is not finite is None."""
    pairs = ((f.name, getattr(record, f.name)) for f in dataclasses.fields(record))
    return {name: finite(value) for name, value in pairs}


def finite(value: Any) -> Any:
    """Return a value, None in place of a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tree(block: Block) -> dict[str, Any]:
    inside: dict[str, Any] = {"children": [_tree(child) for child in block.children]}
    inside = inside if block.children else {"nodes": list(block.nodes)}
    return {"name": block.name, "count": block.count, **inside}


# -- for people ------------------------------------------------------------------------------------
def bytes_text(size: float) -> str:
    """Return a number of bytes with a unit.

    Examples
    --------
    >>> bytes_text(16), bytes_text(2_500_000)
    ('16 B', '2.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.3g} {unit}"


def counts_text(graph: Any) -> str:
    """Return how many nodes and leaves there are."""
    count, leaves = len(graph.nodes), len(graph.leaves)
    ending = "leaf" if leaves == 1 else "leaves"
    return f"{count} node{'s' * (count != 1)} and {leaves} {ending}"


def _rows(graph: Any) -> tuple[str, list[str]]:
    """Return the first line of a graph in words, and one for each leaf."""
    head = (
        f"graph of {counts_text(graph)}: {bytes_text(graph.bytes_alone)} held by the graph alone, "
        f"{bytes_text(graph.bytes_shared)} also yours"
    )
    named = [f"{leaf.name or 'leaf'} {leaf.shape or ''}".rstrip() for leaf in graph.leaves]
    return head, named


def _label(block: Block, graph: Any) -> str:
    ids = [k for part in block.leaves() for k in part.nodes]
    size, faults = graph.memory.bytes_of(ids), words_of(graph.faults, ids)
    times = f"{block.count} x " if block.count > 1 else ""
    return "  ".join(filter(None, (times + block.name, size and bytes_text(size), faults)))


def _lines(graph: Any) -> Iterator[tuple[int, str]]:
    """Yield the lines of a graph's tree, each with its depth."""
    head, leaves = _rows(graph)
    yield 0, head
    yield 1, f"leaves: {', '.join(leaves[:_SHOWN]) or 'none'}"
    yield from _lines_of(graph.blocks, graph, 1)


def _lines_of(blocks: tuple[Block, ...], graph: Any, depth: int) -> Iterator[tuple[int, str]]:
    for block in blocks[:_SHOWN]:
        yield depth, _label(block, graph)
        if block.children and depth < _DEPTH:
            yield from _lines_of(block.children, graph, depth + 1)
    if len(blocks) > _SHOWN:
        yield depth, f"... {len(blocks) - _SHOWN} more"


def to_text(graph: Any) -> str:
    """Return a graph's tree of blocks as lines."""
    return "\n".join("  " * depth + line for depth, line in _lines(graph))


def to_rich(graph: Any) -> Any:
    """Return the same tree as Rich prints one."""
    from rich.text import Text
    from rich.tree import Tree

    (_, head), *lines = _lines(graph)
    path = [Tree(Text(head))]  # from the root to the last line
    for depth, line in lines:
        del path[depth:]
        path.append(path[-1].add(Text(line)))
    return path[0]


# -- drawings --------------------------------------------------------------------------------------
def _drawn(graph: Any) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str]]]:
    """Return boxes, as (id, label, whether a leaf), and arrows between different ones."""
    box_of: dict[int, str] = {}
    boxes = [(f"l{leaf.id}", leaf.name or "leaf", True) for leaf in graph.leaves]
    box_of |= {leaf.id: f"l{leaf.id}" for leaf in graph.leaves}
    for k, block in enumerate(graph.blocks):
        boxes.append((f"b{k}", _label(block, graph), False))
        box_of |= {n: f"b{k}" for part in block.leaves() for n in part.nodes}
    arrows = ((box_of[edge.source], box_of[edge.target]) for edge in graph.edges)
    return boxes, [pair for pair in dict.fromkeys(arrows) if pair[0] != pair[1]]


def _for_dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _for_mermaid(text: str) -> str:
    for character, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(character, code)
    return text


def to_mermaid(graph: Any) -> str:
    """Return the folded graph as a Mermaid flow chart."""
    boxes, arrows = _drawn(graph)
    lines = ["flowchart TD"]
    for name, label, is_leaf in boxes:
        lines.append(
            f'  {name}(["{_for_mermaid(label)}"])'
            if is_leaf
            else f'  {name}["{_for_mermaid(label)}"]'
        )
    return "\n".join([*lines, *(f"  {a} --> {b}" for a, b in arrows)])


def to_dot(graph: Any) -> str:
    """Return the folded graph in Graphviz's language."""
    boxes, arrows = _drawn(graph)
    lines = ["digraph {", "  node [shape=box]"]
    for name, label, is_leaf in boxes:
        lines.append(f'  {name} [label="{_for_dot(label)}"{", shape=ellipse" if is_leaf else ""}]')
    return "\n".join([*lines, *(f"  {a} -> {b}" for a, b in arrows), "}"])
