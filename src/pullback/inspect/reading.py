"""Reading a recorded graph: from tensors to data, with names for the leaves.

Owns the walk over nodes and where names come from: a module, a dict, or the caller's variables.
Nothing of the graph is kept, and nothing of it is changed.
"""

from __future__ import annotations

import contextlib
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import CO_OPTIMIZED
from sys import getrefcount
from types import FrameType
from typing import Any

from pullback.check import Report
from pullback.core.custom import pytree as tree
from pullback.core.custom.operation import CustomOp
from pullback.core.graph.modes import ModeContext
from pullback.core.graph.node import AccumulateGrad, Node
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose
from pullback.inspect.data import Graph
from pullback.inspect.memory import Memory, memory_of, node_behind, reached, roots_of, size_of
from pullback.inspect.observing import Recorder, facts_of
from pullback.inspect.records import Edge, GraphLeaf, GraphNode
from pullback.nn.walking import Walked, named_parameters

_MOST = 10_000  # of the caller's objects that are looked at for names
_OF_FRAME = 3  # references to a frame's copy of its variables: the frame's, a variable, a call's


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
    return graph_of(roots_of(api, tensors), tensors, names, reports)


def graph_of(
    roots: Sequence[Any],
    tensors: Sequence[Tensor] = (),
    names: Mapping[int, str] | None = None,
    reports: Iterable[Any] = (),
) -> Graph:
    """Return the graph that nodes lead to, with `names` by the ids of tensors."""
    order, names = reached(roots), names or {}
    memory = memory_of(order, roots, tensors)
    users, edges = defaultdict[int, list[int]](list), list[Edge]()
    uses: dict[int, list[Edge]] = {}
    for node in order:
        pairs = [(source, k) for source, k in node.next_functions if source is not None]
        uses[node.seq] = [Edge(source.seq, node.seq, k) for source, k in pairs]
        edges += uses[node.seq]
    for edge in edges:
        users[edge.source].append(edge.target)
    verdicts = dict(map(_verdict, reports))
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


def _verdict(report: Any) -> tuple[str, str]:
    """Return the name of what the checker checked, and what it says of that in a few words."""
    if not isinstance(report, Report):
        required = "reports of pb.check.check_op required"
        raise ArgumentTypeError(compose("inspect.graph", required, type(report).__name__))
    causes = [failure.cause.name for failure in report.failures[:1]]
    return report.name, ": ".join([report.outcome, *causes])


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
        self._recorder = Recorder()
        super().__init__({"observer": self._recorder})

    def graph(self, *tensors: Tensor, names: Any = None, reports: Iterable[Any] = ()) -> Graph:
        """Return the graph of tensors, by default of all that was recorded and is still there."""
        named = _named(names, sys._getframe(1))
        if tensors:
            return _of_tensors("record.graph", tensors, named, reports)
        nodes = [node for each in self._recorder.nodes if (node := each()) is not None]
        return graph_of(nodes, (), named, reports)


# -- names -----------------------------------------------------------------------------------------
def _named(names: Any, caller: FrameType) -> dict[int, str]:
    """Return the names of tensors by their ids: of an object, or of the caller's variables."""
    if names is not None:
        return {id(tensor): name for name, tensor in named_parameters(names)}
    variables = caller.f_locals
    result = dict(names_in(variables))
    # Before Python 3.13 a function's frame keeps this copy of its variables, and so the graph; one
    # that the caller holds is left as it is.
    is_copy = caller.f_code.co_flags & CO_OPTIMIZED and isinstance(variables, dict)
    if is_copy and getrefcount(variables) <= _OF_FRAME:
        variables.clear()
    return result


def names_in(variables: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the ids of tensors in variables with their names, the best name last."""
    left = [_MOST]  # how much more is looked at
    in_order = sorted(
        variables.items(), key=lambda item: (issubclass(type(item[1]), Tensor), item[0][:1] != "_")
    )
    for name, value in in_order:
        with contextlib.suppress(Exception):  # of whatever a program's objects raise
            yield from [(id(tensor), path) for path, tensor in _tensors_in(name, value, left)]


def _tensors_in(name: str, value: Any, left: list[int]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a variable: in modules, and in containers that are not too large."""
    left[0] -= 1
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Walked):
        yield from named_parameters(value, name)
    elif type(value) in (dict, list, tuple) and len(value) <= left[0]:
        for key, item in tree.children(value) or ():
            yield from _tensors_in(tree.path_of(name, value, key), item, left)
