"""A user's operation: one call of forward, recorded; one call of backward, checked.

Owns `CustomOp`, the one machinery behind `autograd_function` and `Function` (define.py). Its call
is written in call_codegen.py, with call.py for the uncommon; the run of its rule in
backward_codegen.py.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pullback.core.custom.backward_codegen import written_backward
from pullback.core.custom.call_codegen import written_call
from pullback.core.custom.forward_rule import ForwardRule
from pullback.core.custom.signature import Signature, names_ctx
from pullback.core.custom.vmap_rule import VmapRule
from pullback.core.function.record import NodeOperation
from pullback.core.graph.node import UNKNOWN, CustomNode

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CustomOp(NodeOperation):
    """One user-defined operation: call it like its forward, less ctx."""

    takes_none = True  # backward is called with zeros then
    surrogate_reason = ""  # why the rule's gradient is meant to differ from the derivative
    # What the user gave, and what is made of it: a jvp alone is a gradient rule, too.
    given_rule: Callable[..., Any] | None = None
    given_jvp: Callable[..., Any] | None = None
    given_vmap: Callable[..., Any] | None = None
    rule: Callable[..., Any] | None = None
    forward_rule: ForwardRule | None = None
    vmap_rule: VmapRule | None = None
    once = False
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
        setup_context: Callable[..., Any] | None = None,
        traverse: bool = False,
        jvp: Callable[..., Any] | None = None,
        vmap: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.node_name = f"{name}Backward"
        self.forward = forward
        self.setup_context = setup_context
        self.signature = Signature(name, forward, 0 if setup_context else 1)
        self.__signature__ = self.signature.full
        self.traverse = traverse
        # Else it may have been forgotten, which an error for a wrong call then says.
        self.takes_ctx_by_name = bool(setup_context) or names_ctx(forward)
        # Whether the number of inputs is only known in a call.
        self.in_loop = traverse or not self.signature.is_fixed
        # What gradients of the arguments, and of the one result, of the last call must fit.
        self.described = (UNKNOWN,) * len(self.signature.parameters)
        self.result_described = (UNKNOWN,)
        self.learned = False  # whether the call was written for what forward saves
        # Of the class, where Python looks for it; static, so that no `self` counts as an argument.
        written = written_call(self)
        type(self).__call__ = staticmethod(written)  # type: ignore[method-assign]
        if backward is not None:
            self.set_backward(backward)
        if jvp is not None:
            self.set_jvp(jvp)
        if vmap is not None:
            self.set_vmap(vmap)

    def __copy__(self, memo: Any = None) -> Any:
        """Return the operation itself, as functions are copied."""
        return self

    __deepcopy__ = __copy__

    def __reduce__(self) -> Any:
        """Pickle the name of an operation that its module has, else what it is made of."""
        name = getattr(self, "__qualname__", None)
        result = sys.modules.get(getattr(self, "__module__", ""), None)
        if name is not None and getattr(result, name, None) is self:
            return str(name)
        parts = (self.name, self.forward, self.given_rule, self.setup_context, self.traverse)
        state = {"surrogate_reason": self.surrogate_reason}
        return type(self).__base__, (*parts, self.given_jvp, self.given_vmap), state

    def set_backward(self, rule: Callable[..., Any]) -> None:
        """Make `rule` the gradient rule."""
        self.given_rule = rule
        self._run_in_backward(rule)

    def _run_in_backward(self, rule: Callable[..., Any]) -> None:
        self.rule = rule
        self.once = getattr(rule, "_once_differentiable", False)
        parameters = list(inspect.signature(rule).parameters.values())[1:]
        self.takes_tuple = len(parameters) == 1 and parameters[0].kind in _POSITIONAL
        self.__dict__.pop("differentiate", None)  # what was written for another rule

    def set_jvp(self, rule: Callable[..., Any]) -> None:
        """Make `rule` the forward derivative, and its transpose the gradient rule if none is."""
        self.forward_rule = ForwardRule(self.name, self.signature, rule)
        self.given_jvp = rule
        if self.given_rule is None:
            self._run_in_backward(self.forward_rule.transposed)
            self.takes_tuple = False

    def set_vmap(self, rule: Callable[..., Any]) -> None:
        """Make `rule` what computes all samples of a batch."""
        self.vmap_rule = VmapRule(self.name, rule)
        self.given_vmap = rule

    def differentiate(self, node: CustomNode, g: Any, wanted: Any, recorded: bool) -> Sequence[Any]:
        """Return one gradient an input from what the user's backward gives."""
        return self.written_backward()(node, g, wanted, recorded)

    def written_backward(self) -> Callable[..., Sequence[Any]]:
        """Return what runs the rule of a node, which is written once it is needed."""
        if "differentiate" not in vars(self):
            self.differentiate = written_backward(self)  # type: ignore[method-assign]
        return self.differentiate

    @staticmethod
    def release(node: CustomNode) -> None:
        """Drop what a node saved; its edges stay."""
        node.released = True
        node.saved = ()
