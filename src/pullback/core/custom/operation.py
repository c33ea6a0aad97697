"""A user's operation: one call of forward, recorded; one call of backward, checked.

Owns `CustomOp`, the one machinery behind `autograd_function` and `Function` (define.py). Its calls
are call.py's; what backward returned is read in gradients.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import ref

from pullback.arrays import NUMPY
from pullback.core.custom import pytree as tree
from pullback.core.custom.call import call
from pullback.core.custom.context import Context, backward_context
from pullback.core.custom.entering import written_call
from pullback.core.custom.gradients import read_gradients
from pullback.core.custom.signature import Signature
from pullback.core.function.record import new_node
from pullback.core.graph.modes import STATE, with_grad
from pullback.core.graph.node import CustomNode, Node, WideNode, release, zeros_for
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import Tensor, borrowed, box
from pullback.errors import GraphError, MissingRuleError

_ndarray = NUMPY.array_types[0]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CustomOp:
    """One user-defined operation: call it like its forward, less ctx."""

    takes_none = True  # backward is called with zeros then
    adds_into = None
    release = staticmethod(release)
    if TYPE_CHECKING:  # each instance's class has its own

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Run forward on the arguments and record the operation."""

    def __new__(cls, name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return an instance of a class of its own, whose call is written from the signature."""
        own = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})
        return super().__new__(own)

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
        # What gradients of the arguments, and of the results, of the last call must fit.
        self.described: tuple[Any, ...] = (False,) * len(self.signature.parameters)
        self.results_described: tuple[Any, ...] = ()
        # Whether forward is called with ctx and the values of its parameters, in order.
        self.takes_values = self.signature.is_plain and not traverse and setup_context is None
        # Of the class, where Python looks for it; static, so that no `self` counts as an argument.
        type(self).__call__ = staticmethod(written_call(self, call))  # type: ignore[method-assign]
        self._rule: Callable[..., Any] | None = None
        self.once = False
        if backward is not None:
            self.set_backward(backward)

    def saves_input(self, i: int, record: tuple[Any, ...]) -> bool:
        """Return False: reading a saved value checks for itself."""
        return False

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

    # -- backward -----------------------------------------------------------------------------
    def differentiate(self, node: CustomNode, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return one gradient an input from what the user's backward gives."""
        if node.released:
            raise node.released_error()
        rule = self._rule
        if rule is None:
            raise MissingRuleError(
                f"{self.name}: no gradient can be computed: you must implement either the backward "
                f"or vjp method for your custom operation '{self.name}' to use it in backward.\n"
                "hint: give it a backward, or detach() the result."
            )
        needed: Sequence[Any] = node.record[: node.count]
        if wanted is not None:
            needed = [t if t in wanted else None for t in needed]
        ctx = backward_context(self, node, wanted, recorded and not self.once)
        if self.once:
            return self._differentiate_once(ctx, node, g, needed, recorded)
        if g.__class__ is _ndarray:  # one output, an ordinary gradient
            result = rule(ctx, borrowed(g))
        else:
            result = self._call_rule(rule, ctx, self._output_grads(ctx, node, g))
        if getrefcount(ctx) != SOLE:
            ctx._node = ref(node)  # who keeps ctx does not keep the graph
        return read_gradients(self, node, result, needed, recorded)

    def _differentiate_once(
        self, ctx: Context, node: CustomNode, g: Any, needed: Sequence[Any], recorded: bool
    ) -> Sequence[Any]:
        """Run the rule unrecorded; where the pass is recorded, its gradients raise when used."""
        grads = self._output_grads(ctx, node, g)
        previous = STATE.get()
        STATE.set(with_grad(previous, False))
        try:
            bare = tree.map_leaves(lambda x: x.detach() if isinstance(x, Tensor) else x, grads)
            result = self._call_rule(self._rule, ctx, bare)
        finally:
            STATE.set(previous)
        found = read_gradients(self, node, result, needed, recorded)
        return self._poisoned(node, grads, found) if recorded else found

    def _call_rule(self, rule: Any, ctx: Context, grads: list[Any]) -> Any:
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
            box(zeros_for(meta)) if x is None and meta is not None and zeros else borrowed(x)
            for x, meta in zip(raw, metas, strict=True)
        ]
        if ctx._structure is None:
            return grads
        pieces = iter(grads)
        return [tree.map_leaves(lambda _: next(pieces), item) for item in ctx._structure]

    def _poisoned(self, node: Node, grads: list[Any], found: Sequence[Any]) -> list[Any]:
        """Give gradients that were computed unrecorded a node that raises when it runs."""
        given = [g for g in tree.leaves(grads) if isinstance(g, Tensor)]
        sources = [t for t in (*node.edges, *(g._node for g in given)) if t is not None]
        poison = OncePoison(self)
        # A node each: the gradients of the gradients are added only where these are one tensor.
        return [
            None if r is None else box(r.data_array(), new_node(WideNode, poison, tuple(sources)))
            for r in found
        ]


class OncePoison:
    """The operation of a gradient that must not be differentiated again."""

    takes_none = False
    adds_into = None
    release = staticmethod(release)

    def __init__(self, op: CustomOp) -> None:
        self.op = op
        self.node_name = f"{op.name}OnceDifferentiable"

    def saves_input(self, i: int, record: tuple[Any, ...]) -> bool:
        """Return False: nothing is saved."""
        return False

    def differentiate(self, node: Node, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Raise."""
        raise GraphError(
            f"{self.op.name}: trying to differentiate twice a function that was marked with "
            "@once_differentiable.\nhint: write backward with differentiable operations and "
            "remove the mark."
        )
