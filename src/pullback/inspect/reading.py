"""Reading a recorded graph: from tensors to data, with names for the leaves.

Owns the walk over nodes and where names come from: a module, a dict, or the caller's variables.
Nothing of the graph is kept, and nothing of it is changed.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any, Self

from pullback.core.custom.operation import CustomOp
from pullback.core.graph.modes import STATE, ModeContext
from pullback.core.graph.node import AccumulateGrad, Node
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose
from pullback.inspect.data import Graph
from pullback.inspect.memory import Memory, memory_of, node_behind, reached, size_of
from pullback.inspect.observing import Recorder, facts_of
from pullback.inspect.records import Edge, GraphLeaf, GraphNode
from pullback.nn.walking import named_parameters

_MOST_NAMES = 10_000  # of one variable of the caller's


def graph(*tensors: Tensor, names: Any = None, reports: Iterable[Any] = ()) -> Graph:
    """Return the recorded graph of some tensors as data.

    Parameters
    ----------
    *tensors : Tensor
        What was computed, such as a loss; or gradients that were computed with ``create_graph``.
    names : Module, dict or object, optional
        Where the names of leaves come from; by default the variables of the caller, and the
        parameters of the modules among them.
    reports : iterable of Report
        Of `pb.check.check_op`: the nodes of their operations say what was found.

    Returns
    -------
    Graph

    Raises
    ------
    ArgumentTypeError
        If there is no tensor, or something else.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([1.0, 2.0], dtype=pb.float64, requires_grad=True)
    >>> g = pb.inspect.graph((w.exp() * w).sum())
    >>> [(node.name, node.saved_bytes) for node in g.nodes]
    [('ExpBackward', 16), ('MulBackward', 32), ('SumBackward', 0)]
    >>> g.leaves[0].name, len(g.edges), g.bytes_alone, g.bytes_shared
    ('w', 4, 16, 16)
    """
    named = _named(names, sys._getframe(1))
    return _of_tensors("inspect.graph", tensors, named, reports)


def _of_tensors(
    api: str, tensors: Sequence[Any], names: Mapping[int, str], reports: Iterable[Any]
) -> Graph:
    for tensor in tensors or (None,):
        if not isinstance(tensor, Tensor):
            came = "none" if tensor is None else type(tensor).__name__
            hint = "pass what you computed, such as the loss"
            raise ArgumentTypeError(compose(api, "tensors required", came, hint=hint))
    return graph_of([t._node for t in tensors if t._node is not None], tensors, names, reports)


def graph_of(
    roots: Sequence[Any],
    tensors: Sequence[Tensor] = (),
    names: Mapping[int, str] | None = None,
    reports: Iterable[Any] = (),
) -> Graph:
    """Return the graph that nodes lead to, with `names` by the ids of tensors."""
    memory, names = memory_of(roots, tensors), names or {}
    order, users, edges = reached(roots), defaultdict[int, list[int]](list), list[Edge]()
    uses: dict[int, list[Edge]] = {}
    for node in order:
        pairs = [(source, k) for source, k in node.next_functions if source is not None]
        uses[node.seq] = [Edge(source.seq, node.seq, k) for source, k in pairs]
        edges += uses[node.seq]
    for edge in edges:
        users[edge.source].append(edge.target)
    verdicts = {report.name: _verdict(report) for report in reports}
    nodes, leaves = list[GraphNode](), list[GraphLeaf]()
    for node in order:
        consumers = tuple(users.get(node.seq, ()))
        if isinstance(node, AccumulateGrad):
            leaves.append(_leaf(node, names, consumers))
        else:
            inputs = tuple([edge.source for edge in uses[node.seq]])
            nodes.append(_node(node, inputs, consumers, memory, verdicts))
    ends = ((t, node_behind(t._node)) for t in tensors if t._node is not None)
    outputs = tuple([(names.get(id(t), ""), node.seq) for t, node in ends])
    return Graph(tuple(nodes), tuple(leaves), tuple(edges), memory, outputs)


def _node(
    node: Node,
    inputs: tuple[int, ...],
    consumers: tuple[int, ...],
    memory: Memory,
    verdicts: Mapping[str, str],
) -> GraphNode:
    op = node.op if isinstance(node.op, CustomOp) else None
    size = sum(memory.sizes[k] for k in memory.saved[node.seq])
    verdict = None if op is None else verdicts.get(op.name)
    own = node.seq, node.name(), op, inputs, consumers, size, node.released
    return GraphNode(*own, **facts_of(node), verdict=verdict)


def _leaf(node: AccumulateGrad, names: Mapping[int, str], consumers: tuple[int, ...]) -> GraphLeaf:
    tensor = node.variable
    if tensor is None:
        return GraphLeaf(node.seq, "", None, 0, consumers)
    array = tensor.data_array()
    name = names.get(id(tensor), "")
    return GraphLeaf(node.seq, name, tuple(tensor.shape), size_of(array), consumers)


def _verdict(report: Any) -> str:
    """Return what a checker's report says in a few words."""
    causes = [failure.cause.name for failure in report.failures[:1]]
    return ": ".join([report.outcome, *causes])


# -- recording -------------------------------------------------------------------------------------
class record(ModeContext):  # noqa: N801  (a block, as `no_grad`)
    """Note lines, shapes, times, values and gradients of what runs inside, forward and backward.

    Of this thread. The notes belong to the nodes, so that any graph of them shows them, also after
    the block. Much slower than a plain run, and nothing outside of a block is.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.tensor([3.0, -4.0], requires_grad=True)
    >>> with pb.inspect.record() as r:
    ...     loss = (w * w).sum()
    ...     loss.backward()
    >>> node = r.graph().nodes[0]
    >>> node.name, node.shape, node.min, node.max, node.nan_count
    ('MulBackward', (2,), 9.0, 16.0, 0)
    >>> round(node.grad_norm, 3), node.released
    (1.414, True)
    """

    def __init__(self) -> None:
        self._recorders: list[Recorder] = []
        super().__init__({})

    def __enter__(self) -> Self:
        recorder = Recorder(STATE.get().observer)
        self._changes = {"observer": recorder}
        super().__enter__()
        self._recorders.append(recorder)
        return self

    def graph(self, *tensors: Tensor, names: Any = None, reports: Iterable[Any] = ()) -> Graph:
        """Return the graph of tensors, by default of all that was recorded and is still there."""
        named = _named(names, sys._getframe(1))
        if tensors:
            return _of_tensors("record.graph", tensors, named, reports)
        found = (node() for recorder in self._recorders for node in recorder.nodes)
        return graph_of([node for node in found if node is not None], (), named, reports)


# -- names -----------------------------------------------------------------------------------------
def _named(names: Any, caller: FrameType) -> dict[int, str]:
    """Return the names of tensors by their ids: of an object, or of the caller's variables."""
    if names is not None:
        return {id(tensor): name for name, tensor in named_parameters(names)}
    variables = caller.f_locals
    found = dict(_names_in(variables))
    # Before Python 3.13 a function's frame keeps this copy of its variables, and so the graph.
    if caller.f_code.co_flags & CO_OPTIMIZED and isinstance(variables, dict):
        variables.clear()
    return found


def _names_in(variables: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the ids of tensors with their names, the best name last."""
    for name, value in variables.items():
        if name.startswith("_") or isinstance(value, Tensor):
            continue
        with contextlib.suppress(Exception):  # of whatever a program's objects raise
            pairs = itertools.islice(named_parameters(value, name), _MOST_NAMES)
            yield from [(id(tensor), path) for path, tensor in pairs]
    yield from ((id(v), name) for name, v in variables.items() if isinstance(v, Tensor))
