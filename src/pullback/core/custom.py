"""A user's operation: one call of forward, recorded; one call of backward, checked.

Owns `CustomOp`, the one machinery behind `autograd_function` and `Function` (extend.py): binding
arguments to names (prepared once, when the operation is defined), running forward on untracked
inputs, giving the results their history, and calling backward. What backward returned is read
and checked in returned.py.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import tree
from pullback.core.binding import Arguments, Signature
from pullback.core.call import Call, Record
from pullback.core.context import Context
from pullback.core.function import new_node
from pullback.core.modes import NO_GRAD, STATE, with_grad
from pullback.core.node import Node
from pullback.core.returned import read_gradients
from pullback.core.tensor import Tensor, box
from pullback.core.views import sync
from pullback.errors import GraphError, MissingRuleError, UntrackedTensorWarning

_KINDS = inspect.Parameter


class CustomOp:
    """One user-defined operation."""

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None,
        *,
        setup_context: Callable[..., Any] | None = None,
        traverse: bool = False,
    ) -> None:
        self.name = name
        self.node_name = f"{name}Backward"
        self.forward = forward
        self.setup_context = setup_context
        self.signature = Signature(forward, 0 if setup_context else 1)
        self.traverse = traverse
        self.takes_none = True
        self.backward: Callable[..., Any] | None = None
        self.once = False
        if backward is not None:
            self.set_backward(backward)

    def set_backward(self, backward: Callable[..., Any]) -> None:
        """Make `backward` the gradient rule."""
        self.backward = backward
        self.once = getattr(backward, "_once_differentiable", False)
        try:
            parameters = list(inspect.signature(backward).parameters.values())[1:]
        except (TypeError, ValueError):
            parameters = []
        self.takes_tuple = len(parameters) == 1 and parameters[0].kind in (
            _KINDS.POSITIONAL_ONLY,
            _KINDS.POSITIONAL_OR_KEYWORD,
        )

    # -- forward ------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = self.signature.bind(args, kwargs)
        mode = STATE.get()
        inner, inputs = self._enter(arguments, mode.grad)
        tracked = [t is not None and t._node is not None for t in inputs]
        flags = tuple(tracked) if mode.grad else (False,) * len(tracked)
        if self.traverse:
            flags = _fold(arguments.values, flags)
        ctx = Context(self, arguments.names, flags)
        versions = [None if t is None else t._counter[0] for t in inputs]
        STATE.set(NO_GRAD if mode.hooks is None and not mode.anomaly else with_grad(mode, False))
        try:
            result = self._run_forward(ctx, arguments, inner)
        finally:
            STATE.set(mode)
        call = Call(self, ctx, arguments, inputs, inner)
        call.check_inputs(versions)
        return call.tracked(result) if mode.grad and any(tracked) else call.untracked(result)

    def _run_forward(self, ctx: Context, arguments: Arguments, inner: Sequence[Any]) -> Any:
        if self.setup_context is None:
            return self.signature.call(self.forward, (ctx,), inner, arguments.names)
        result = self.signature.call(self.forward, (), inner, arguments.names)
        self.setup_context(ctx, tuple(inner), result)
        return result

    def _enter(self, arguments: Arguments, grad: bool) -> tuple[list[Any], list[Tensor | None]]:
        """Return what forward is called with, and one tensor or None an input.

        A tracked tensor enters as an untracked twin on the same memory; others as they are.
        """
        if self.traverse:
            values = list(arguments.values)
            inputs = [v if isinstance(v, Tensor) else None for v in tree.leaves(values)]
            return tree.map_leaves(_twin, values), inputs
        inner = []
        inputs = []
        for name, value in zip(arguments.names, arguments.values, strict=True):
            if isinstance(value, Tensor):
                inputs.append(value)
                inner.append(_twin(value))
            else:
                inputs.append(None)
                inner.append(value)
                if grad and isinstance(value, (list, tuple, dict)):
                    self._warn_untracked(name, value)
        return inner, inputs

    def _warn_untracked(self, name: str, value: Any) -> None:
        if any(isinstance(v, Tensor) and v.requires_grad for v in tree.leaves(value)):
            warnings.warn(
                f"{self.name}: the argument '{name}' is a {type(value).__name__} holding a tensor "
                "that requires grad; containers are not searched, so no gradient flows to it. "
                "Pass the tensor itself, or define the operation with traverse=True.",
                UntrackedTensorWarning,
                stacklevel=4,
            )

    # -- backward -----------------------------------------------------------------------------
    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return one gradient an input from what the user's backward gives."""
        record = node.saved
        if record.__class__ is not Record:
            record = record.unpack(node)
        if self.backward is None:
            raise MissingRuleError(
                f"{self.name}: no gradient can be computed: you must implement either the backward "
                f"or vjp method for your custom operation '{self.name}' to use it in backward.\n"
                "hint: pass a backward function, or detach() the result."
            )
        needed = [
            t is not None and (wanted is None or t in wanted) for t in node.inputs
        ]
        grads = record.output_grads(node, g)
        ctx = record.ctx
        if self.once:
            previous = STATE.get()
            STATE.set(with_grad(previous, False))
            try:
                result = self._call_backward(ctx, [None if x is None else x.detach() for x in grads])
            finally:
                STATE.set(previous)
        else:
            result = self._call_backward(ctx, grads)
        found = read_gradients(self, record, result, needed)
        if not recorded:
            return [None if r is None else r.data_array() for r in found]
        return self._poisoned(node, grads, found) if self.once else found

    def _call_backward(self, ctx: Context, grads: list[Any]) -> Any:
        assert self.backward is not None
        if self.takes_tuple and len(grads) != 1:
            return self.backward(ctx, tuple(grads))
        return self.backward(ctx, *grads)

    def _poisoned(self, node: Node, grads: list[Any], found: list[Any]) -> list[Any]:
        """Give gradients that were computed unrecorded a history that raises when used."""
        sources = [t for t in node.inputs if t is not None]
        sources += [g._node for g in grads if g is not None and g._node is not None]
        poison = new_node(Node, OncePoison(self), tuple(sources))
        return [None if r is None else box(r.data_array(), poison) for r in found]


class OncePoison:
    """The operation of a gradient that must not be differentiated again."""

    takes_none = False

    def __init__(self, op: CustomOp) -> None:
        self.op = op
        self.node_name = f"{op.name}OnceDifferentiable"

    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Raise."""
        raise GraphError(
            f"{self.op.name}: trying to differentiate twice a function that was marked with "
            "@once_differentiable.\nhint: write backward with differentiable operations and "
            "remove the mark."
        )


def _twin(value: Any) -> Any:
    """Return a tracked tensor's untracked twin on the same memory; anything else as it is."""
    if isinstance(value, Tensor):
        if value._view is not None:
            sync(value)
        if value._node is not None:
            return box(value._data, None, value._counter)
    return value


def _fold(values: Sequence[Any], flags: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return one flag an argument from one flag a leaf."""
    pieces = iter(flags)
    return tuple([any([next(pieces) for _ in tree.leaves(v)]) for v in values])
