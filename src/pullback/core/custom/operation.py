"""A user's operation: one call of forward, recorded; one call of backward, checked.

Owns `CustomOp`, the one machinery behind `autograd_function` and `Function` (define.py). The call
with plain positional arguments in the default mode is short; whatever is unusual about arguments,
mode or results goes through call.py, to the same nodes. What backward returned is read in
gradients.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from pullback.arrays import DTYPES, NUMPY
from pullback.core.backward.hooks import lend
from pullback.core.custom import call
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import Context, backward_context, forward_context, seal
from pullback.core.custom.gradients import read_gradients
from pullback.core.custom.signature import Signature
from pullback.core.function.dispatch import new_node
from pullback.core.graph.modes import NO_GRAD, RECORD, STATE, with_grad
from pullback.core.graph.node import RELEASED, CustomNode, Meta, Node, meta_of, next_seq, zeros_for
from pullback.core.tensor.tensor import EPOCH, Tensor, box
from pullback.core.tensor.views import sync
from pullback.errors import GraphError, MissingRuleError

_array = NUMPY.array_types[0]
_F32 = DTYPES["float32"].dtype
_F64 = DTYPES["float64"].dtype
_mode = STATE.get
_set_mode = STATE.set
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONTAINERS = frozenset((list, tuple, dict))


class CustomOp:
    """One user-defined operation: call it like its forward, less ctx."""

    takes_none = True  # backward is called with zeros then
    saves_inputs = False

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
        self.signature = Signature(name, forward, 0 if setup_context else 1)
        self.__signature__ = self.signature.full
        self.traverse = traverse
        short = setup_context is None and not traverse
        self._short_count = self.signature.plain_count if short else -1
        self._rule: Callable[..., Any] | None = None
        self.once = False
        if backward is not None:
            self.set_backward(backward)

    def set_backward(self, rule: Callable[..., Any]) -> None:
        """Make `rule` the gradient rule."""
        self._rule = rule
        self.once = getattr(rule, "_once_differentiable", False)
        parameters = list(inspect.signature(rule).parameters.values())[1:]
        self.takes_tuple = len(parameters) == 1 and parameters[0].kind in _POSITIONAL

    @property
    def rule(self) -> Callable[..., Any] | None:
        """The gradient rule, None where there is none."""
        return self._rule

    # -- forward ------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward on the arguments and record the operation."""
        if kwargs or len(args) != self._short_count or _mode() is not RECORD:
            return call.general(self, args, kwargs)
        entered = _enter(args)
        if entered is None:
            return call.general(self, args, kwargs)
        inner, targets, versions = entered
        ctx = forward_context(self, self.signature.plain, targets)
        epoch = EPOCH[0]
        _set_mode(NO_GRAD)
        try:
            out = self.forward(ctx, *inner)
        finally:
            _set_mode(RECORD)
        if out.__class__ is Tensor and EPOCH[0] == epoch and not ctx.__dict__:
            data = out._data
            if data.__class__ is _array and out._view is None and out._node is None:
                dtype = data.dtype
                if dtype is _F32 or dtype is _F64:
                    for value in inner:
                        if value is out:
                            break
                    else:
                        return self._record(ctx, targets, inner, out, (data.shape, dtype, "cpu"))
        return call.finish(self, ctx, args, targets, inner, versions, out)

    def _record(
        self,
        ctx: Context,
        targets: list[Any],
        inner: list[Any],
        out: Tensor,
        meta: Meta,
    ) -> Tensor:
        """Return the one, ordinary result of forward with its history."""
        node = CustomNode()
        node.op = self
        node.inputs = tuple(targets)
        node.seq = next_seq()
        node.guard = node.shapes = node.extra = None
        node.metas = (meta,)
        shape, dtype, _ = meta
        given: list[Any] = []
        for a, target in zip(inner, targets):  # noqa: B905  (strict costs time here)
            if a.__class__ is not Tensor:
                given.append(None if not isinstance(a, Tensor) else True)
            elif target is None:
                given.append(True)
            else:
                data = a._data
                same = data.__class__ is _array and data.dtype is dtype and data.shape == shape
                given.append(meta if same else meta_of(data))
        node.given = tuple(given)
        seal(ctx, node, inner, (out,))
        t = Tensor()  # forward may have kept its own result: never make that tracked
        t._data = out._data
        t._counter = out._counter
        t._node = node
        t._view = t._grad = None
        return t

    # -- backward -----------------------------------------------------------------------------
    def differentiate(self, node: CustomNode, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return one gradient an input from what the user's backward gives."""
        if node.saved is RELEASED:
            RELEASED.unpack(node)
        rule = self._rule
        if rule is None:
            raise MissingRuleError(
                f"{self.name}: no gradient can be computed: you must implement either the backward "
                f"or vjp method for your custom operation '{self.name}' to use it in backward.\n"
                "hint: give it a backward, or detach() the result."
            )
        needed: Sequence[Any] = node.inputs
        if wanted is not None:
            needed = [t if t in wanted else None for t in needed]
        ctx = backward_context(self, node, wanted, recorded and not self.once)
        if g.__class__ is _array and not self.once:  # one output, an ordinary gradient
            lent = Tensor()
            lent._data = g
            lent._counter = [0, True]
            lent._node = lent._view = lent._grad = None
            result = rule(ctx, lent)
            ctx._node = ref(node)  # who keeps ctx does not keep the graph
            return read_gradients(self, node, result, needed, recorded)
        grads = self._output_grads(ctx, node, g)
        if not self.once:
            result = self._call_rule(rule, ctx, grads)
            ctx._node = ref(node)
            return read_gradients(self, node, result, needed, recorded)
        previous = _mode()
        _set_mode(with_grad(previous, False))
        try:
            bare = tree.map_leaves(lambda x: x.detach() if isinstance(x, Tensor) else x, grads)
            result = self._call_rule(rule, ctx, bare)
        finally:
            _set_mode(previous)
        found = read_gradients(self, node, result, needed, recorded)
        return self._poisoned(node, grads, found) if recorded else found

    def _call_rule(self, rule: Callable[..., Any], ctx: Context, grads: list[Any]) -> Any:
        if self.takes_tuple and len(grads) != 1:
            return rule(ctx, tuple(grads))
        return rule(ctx, *grads)

    @staticmethod
    def _output_grads(ctx: Context, node: CustomNode, g: Any) -> list[Any]:
        """Return one gradient an output, as backward is given them."""
        metas = node.metas
        raw = [g] if len(metas) == 1 else g
        if raw is None:
            raw = [None] * len(metas)
        zeros = ctx._materialize
        grads = [
            box(zeros_for(meta)) if x is None and meta is not None and zeros else lend(x)
            for x, meta in zip(raw, metas, strict=True)
        ]
        if ctx._structure is None:
            return grads
        pieces = iter(grads)
        return [tree.map_leaves(lambda _: next(pieces), item) for item in ctx._structure]

    def _poisoned(self, node: Node, grads: list[Any], found: Sequence[Any]) -> list[Any]:
        """Give gradients that were computed unrecorded a history that raises when used."""
        given = [g for g in tree.leaves(grads) if isinstance(g, Tensor)]
        sources = [t for t in (*node.inputs, *(g._node for g in given)) if t is not None]
        poison = OncePoison(self)
        # A node each: the gradients of the gradients are added only where these are one tensor.
        return [
            None if r is None else box(r.data_array(), new_node(Node, poison, tuple(sources)))
            for r in found
        ]


def _enter(args: tuple[Any, ...]) -> tuple[list[Any], list[Any], list[Any]] | None:
    """Return what forward is called with, its places in the history and the versions.

    None where nothing is tracked, or an argument needs a closer look.
    """
    inner: list[Any] = []
    targets: list[Any] = []
    versions: list[Any] = []
    tracked = False
    for a in args:
        if a.__class__ is Tensor:
            if a._view is not None:
                sync(a)
            node = a._node
            counter = a._counter
            targets.append(node)
            versions.append(counter[0])
            if node is not None:
                tracked = True
                t = Tensor()  # forward sees an untracked twin on the same memory
                t._data = a._data
                t._counter = counter
                t._node = t._view = t._grad = None
                inner.append(t)
            else:
                inner.append(a)
        elif a.__class__ in _CONTAINERS or isinstance(a, Tensor):
            return None
        else:
            inner.append(a)
            targets.append(None)
            versions.append(None)
    return (inner, targets, versions) if tracked else None


class OncePoison:
    """The operation of a gradient that must not be differentiated again."""

    takes_none = False
    saves_inputs = False

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
