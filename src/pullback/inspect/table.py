"""What a graph saved, as a table: which operation keeps which array, the largest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pullback.arrays import is_array
from pullback.core.custom.context import saved_items
from pullback.core.function.primitive import Primitive
from pullback.core.graph.node import CustomNode, Node
from pullback.core.tensor.printing import html_table
from pullback.core.tensor.saved import Packed
from pullback.core.tensor.tensor import Tensor
from pullback.inspect.formats import bytes_text
from pullback.inspect.memory import arrays_in, reached, roots_of, size_of
from pullback.inspect.observing import facts_of

_HEADS = ("operation", "name", "shape", "bytes", "line")


class SavedValue(NamedTuple):
    """One array that a node keeps for backward.

    Attributes
    ----------
    operation, name : str
        The node's name, and what its rule calls the array.
    shape : tuple of int
    bytes : int
        What it keeps: of a view, those of the whole array.
    line : str or None
        The user's line, if the node was recorded within `record`.
    """

    operation: str
    name: str
    shape: tuple[int, ...]
    bytes: int
    line: str | None


class SavedTable(tuple[SavedValue, ...]):
    """Saved values, the largest first; prints as a table."""

    __slots__ = ()

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (v.operation, v.name, str(v.shape), bytes_text(v.bytes), v.line or "") for v in self
        ]

    def __repr__(self) -> str:
        rows = [_HEADS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows."""
        return {"text/plain": repr(self), "text/html": html_table(self._rows(), _HEADS)}


def saved(*tensors: Tensor) -> SavedTable:
    """Return what the graph of some tensors keeps for backward, the largest first.

    Parameters
    ----------
    *tensors : Tensor
        What was computed, such as a loss.

    Returns
    -------
    SavedTable
        A tuple of `SavedValue`. An array that several nodes keep has a row for each of them. What
        the hooks of `saved_tensors_hooks` made of an array is called *packed*; it may have no
        array, and no bytes then. A checkpoint's arrays have no names.

    Raises
    ------
    ArgumentTypeError
        If there is no tensor, or something else.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    >>> pb.inspect.saved((w.exp() * w).sum())
    operation    name  shape  bytes  line
    ExpBackward  out   (2,)   16 B
    MulBackward  x     (2,)   16 B
    MulBackward  y     (2,)   16 B
    """
    roots = roots_of("inspect.saved", tensors)
    rows = [row for node in reached(roots) if node.runs for row in _rows_of(node)]
    return SavedTable(sorted(rows, key=lambda row: -row.bytes))


def _rows_of(node: Node) -> Iterator[SavedValue]:
    line = facts_of(node).get("line")
    for name, value in _saved_by(node):
        arrays = [value] if is_array(value) else arrays_in(value)
        if isinstance(value, Packed):
            name, arrays = f"{name}, packed", arrays or [None]
        for array in arrays:
            shape, size = ((), 0) if array is None else (tuple(array.shape), size_of(array))
            yield SavedValue(node.name(), name, shape, size, line)


def _saved_by(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield what a node saved, each with what its rule calls it."""
    if isinstance(node, CustomNode):
        return saved_items(node)
    saved = () if node.released else node.record[node.count :]
    if isinstance(node.op, Primitive):
        return ((name, saved[at]) for name, at in node.op.layout.items() if saved)
    return (("", value) for value in saved)
