"""A user's operation in forward mode: by its own jvp, else by the transpose of its backward.

Owns the call of an operation on arrays with tangents. Forward runs on the values; tangents come
from transposing backward, see transpose.py. Where a graph of such arrays asks for it one node is
recorded, whose backward does the same to the operation's backward, and so on for every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.backward import api as engine
from pullback.core.custom.context import backward_context
from pullback.core.custom.pytree import Structure, rebuild
from pullback.core.function.dispatch import unwrap_escaped, wrap_in
from pullback.core.graph.modes import STATE, run_in_mode
from pullback.core.graph.node import Output
from pullback.core.tensor.tensor import Tensor, new_leaf
from pullback.errors import GraphError, InplaceError
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.directions import directions
from pullback.transforms.forward.transpose import jvp_by_rows, jvp_by_transpose, stand_ins
from pullback.transforms.levels import WRAPPING, new_level, run_at_level, run_recorded
from pullback.transforms.user_calls import (
    OperationCall,
    call_function,
    name_of_function,
    record_call,
)
from pullback.transforms.wrapped import in_one_library, run_within, to_tensor

__all__ = ["call_user_op", "jvp_of_function"]

OfParts = Callable[..., list[Tensor]]


def call_user_op(library: Any, op: Any, arguments: Any, values: Sequence[Any]) -> Any:
    """Return the result of a user's operation on tensors of a library of tangents."""
    for running in WRAPPING.get():
        running.user_ops.append(op)
    call = _ForwardCall(op, arguments, values, "forward mode")
    for tensor in call.tensors:
        if tensor._base is not None:
            tensor.data_array()
    tensors = [wrap_in(t, library) for t in call.tensors]
    return call.result(jvp_of_function(library, call, tensors))


class _ForwardCall(OperationCall):
    """One call of a user's operation, which may have a jvp."""

    def jvp_by_rule(
        self, values: Sequence[Tensor], along: Sequence[Tensor | None]
    ) -> list[tuple[Tensor, Tensor | None]] | None:
        """Return the results with their tangents by the jvp that the user gave.

        None where the call recorded nothing of the operation itself, as in nested forward mode.
        """
        kept = STATE.get().grad and any(
            t is not None and t.requires_grad for t in (*values, *along)
        )
        level = new_level()
        return run_recorded(level, self._by_rule, level, values, along, kept)  # type: ignore[no-any-return]

    def _by_rule(self, level: int, values: Any, along: Any, kept: bool) -> Any:
        outs = self(*stand_ins(level, values, along, kept))
        node = next((n for n in map(_node_of, outs) if n is not None and n.op is self.op), None)
        if node is None:
            return None
        vectors = iter(along)
        tangents = [next(vectors) if isinstance(x, Tensor) else None for x in self.leaves]
        ctx = backward_context(node, None, kept)
        rule = self.op.forward_rule
        result = run_in_mode({"grad": kept}, rule, ctx, node.arguments, tangents)
        result, structure = _like(self.structure, result), self.structure
        vectors = directions(f"{self.op.name}.jvp", "the result", result, self.results, structure)
        pairs = zip(self.results, vectors, strict=True)
        every = [(x, v) for x, v in pairs if isinstance(x, Tensor)]
        return [(x if kept else x._alias(), v) for x, v in every]


def _node_of(tensor: Tensor) -> Any:
    node = tensor._node
    return node.node if node.__class__ is Output else node


def _like(structure: Structure | None, found: Any) -> Any:
    """Return tangents in the structure of the results, which they may be given for in order."""
    if structure is None or not isinstance(found, (tuple, list)):
        return found
    return found if len(structure.items) != len(found) else rebuild(structure.like, list(found))


# -- functions of parts on arrays with tangents ----------------------------------------------------
def jvp_of_function(library: Any, function: OfParts, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of a function of values, with their tangents, and record its node."""
    values, along = [], []
    for t in tensors:
        array = t._data
        values.append(to_tensor(array.value))
        along.append(None if array.tangent is None else to_tensor(array.whole_tangent))
    result = run_within(library, _of_parts, function, values, along)
    outs = [library.wrapped(out, tangent) for out, tangent in result]

    def pull(tensors: Any, chosen: Sequence[bool], cotangents: Sequence[Tensor | None]) -> Any:
        given = [g is not None for g in cotangents]
        gradients = _gradients_of(function, chosen, given)
        return call_function(gradients, [*tensors, *(g for g in cotangents if g is not None)])

    return record_call(name_of_function(function), tensors, outs, pull)  # type: ignore[no-any-return]


def _of_parts(function: OfParts, values: Any, along: Any) -> Any:
    pairs = _jvp(function, values, along)
    return [(unwrap_escaped(out), unwrap_escaped(tangent)) for out, tangent in pairs]


def _jvp(function: OfParts, values: Any, along: Any) -> Any:
    """Call the given forward derivative, or transpose the backward of a function.

    A backward that cannot be recorded is transposed element by element.
    """
    if isinstance(function, _ForwardCall) and function.op.forward_rule is not None:
        changes = any(v is not None for v in along)  # else the rule is not asked
        result = function.jvp_by_rule(values, along) if changes else None
        if result is not None:
            return result
    try:
        return jvp_by_transpose(function, values, along)
    except (GraphError, RuntimeError) as error:
        has_graph = any(t is not None and t.requires_grad for t in (*values, *along))
        if isinstance(error, InplaceError) or (STATE.get().grad and has_graph):
            raise
        return jvp_by_rows(name_of_function(function), function, values, along)


def _gradients_of(function: OfParts, wanted: Sequence[bool], given: Sequence[bool]) -> OfParts:
    """Return the function of the arguments, and of cotangents where `given`, that pulls back."""

    def gradients(*parts: Tensor) -> list[Tensor]:
        level = new_level()
        return run_at_level(level, pulled, level, in_one_library(parts))  # type: ignore[no-any-return]

    def pulled(level: int, parts: Sequence[Tensor]) -> list[Tensor]:
        inputs = [
            new_leaf(t.data_array(), level) if w and not t.requires_grad else t
            for t, w in zip(parts, wanted, strict=False)
        ]
        outs = [o for o, g in zip(function(*inputs), given, strict=True) if g]
        pairs = [(o, g) for o, g in zip(outs, parts[len(wanted) :], strict=True) if o.requires_grad]
        chosen = [t for t, w in zip(inputs, wanted, strict=True) if w]
        result: Sequence[Tensor | None] = [None] * len(chosen)
        if pairs:
            roots, seeds = zip(*pairs, strict=True)
            result = engine.pulled_back(roots, chosen, seeds, True, True)
        return [
            zeros_like(t.detach()) if g is None else g for t, g in zip(chosen, result, strict=True)
        ]

    gradients.__name__ = name_of_function(function)
    return gradients
