"""The viewer: one HTML file with a graph in it, which needs no network and no kernel.

Owns how a graph is packed for the page, by columns and compressed; what is drawn of it, and how it
is laid out, is in assets/.
"""

from __future__ import annotations

import base64
import html
import json
import math
import tempfile
import webbrowser
import zlib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from pullback.inspect.formats import bytes_text, counts_text
from pullback.inspect.records import Block

_DIGITS = 4  # of numbers that were measured
_MEASURED = (
    *("seconds", "backward_seconds", "grad_norm", "min", "max", "nan_count"),
    *("grad_nan_count", "inf_count", "grad_inf_count"),
)
_TEXTS = ("name", "line", "dtype", "verdict")
_HEIGHT = 640  # of the frame in a notebook, in pixels


def html_of(graph: Any) -> str:
    """Return the page of a graph."""
    packed = zlib.compress(json.dumps(_packed(graph), separators=(",", ":")).encode(), 6)
    names = [name for name, _ in graph.outputs if name]
    title = f"Graph of {', '.join(names)}" if names else "Graph"
    parts = {
        "TITLE": html.escape(title),
        "STYLE": _asset("viewer.css"),
        "DAGRE": _asset("dagre.min.js"),
        "LICENCE": html.escape(_asset("dagre.LICENSE")),
        "SCRIPT": _asset("viewer.js"),
        "DATA": base64.b64encode(packed).decode(),
    }
    text = _asset("viewer.html")
    for name, value in parts.items():
        text = text.replace(f"<!--{name}-->", value)
    return text


def show(graph: Any) -> None:
    """Write the page of a graph to a temporary file, print where, and open it in a browser."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
        file.write(html_of(graph))
    print(f"page: {file.name}")  # there may be no browser
    webbrowser.open(Path(file.name).as_uri())


def frame(graph: Any) -> str:
    """Return the page as a frame of another page."""
    style = f"width:100%;height:{_HEIGHT}px;border:1px solid #8886"
    return f'<iframe title="graph" style="{style}" srcdoc="{html.escape(html_of(graph))}"></iframe>'


def _asset(name: str) -> str:
    return resources.files("pullback.inspect").joinpath("assets", name).read_text("utf-8")


# -- packing ---------------------------------------------------------------------------------------
def _packed(graph: Any) -> dict[str, Any]:
    """Return a graph by columns; nodes and leaves by their numbers, leaves after the nodes."""
    number = {node.id: k for k, node in enumerate(graph.nodes)}
    number |= {leaf.id: len(number) + k for k, leaf in enumerate(graph.leaves)}
    columns: dict[str, Any] = {key: _column(graph.nodes, key) for key in _MEASURED}
    columns |= {key: _texts(getattr(node, key) for node in graph.nodes) for key in _TEXTS}
    columns |= {
        kind: _texts(stages.get(node.id) for node in graph.nodes)
        for kind, stages in graph.faults.items()
    }
    columns["op"] = _texts(None if node.op is None else node.op.name for node in graph.nodes)
    columns["shape"] = _texts(map(_shape_text, graph.nodes))
    columns["saved"] = [graph.memory.saved[node.id] for node in graph.nodes]
    columns["released"] = [int(node.released) for node in graph.nodes]
    return {
        "id": [each.id for each in (*graph.nodes, *graph.leaves)],
        "nodes": columns,
        "leaves": [[leaf.name, _shape_text(leaf), leaf.bytes] for leaf in graph.leaves],
        "sources": [number[edge.source] for edge in graph.edges],
        "targets": [number[edge.target] for edge in graph.edges],
        "outputs": [[name, number[k]] for name, k in graph.outputs],
        "sizes": graph.memory.sizes,
        "frees": [*map(int, graph.memory.alone)],
        "blocks": [_tree(block, number) for block in graph.blocks],
        "counts": counts_text(graph),
        "alone": bytes_text(graph.bytes_alone),
        "shared": bytes_text(graph.bytes_shared),
    }


def _shape_text(record: Any) -> str | None:
    return None if record.shape is None else "x".join(map(str, record.shape)) or "scalar"


def _column(nodes: Iterable[Any], key: str) -> list[Any] | None:
    """Return a number of each node; None where there is none at all."""
    values = [getattr(node, key) for node in nodes]
    if values.count(None) == len(values):
        return None
    return [_rounded(v) if isinstance(v, float) else v for v in values]


def _rounded(value: float) -> float | str:
    """Return a number with few digits; as a word where it is not finite."""
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)


def _texts(values: Iterable[str | None]) -> list[Any] | None:
    """Return the different texts, and which of them each node has."""
    known: dict[str | None, int] = {}
    numbers = [known.setdefault(value, len(known)) for value in values]
    return None if [*known] == [None] else [list(known), numbers]


def _tree(block: Block, number: dict[int, int]) -> list[Any]:
    if block.children:
        return [block.name, block.count, [_tree(child, number) for child in block.children], None]
    return [block.name, block.count, None, [number[k] for k in block.nodes]]
