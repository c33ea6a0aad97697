"""The forward derivative that a user gives an operation: ``jvp(ctx, *tangents)``.

Owns how it is called, and the backward that an operation with nothing else gets: its transpose.
Must not know forward mode, which calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.custom import pytree as tree
from pullback.core.custom.signature import Arguments, Signature, head_of, positional_count, spread
from pullback.core.function.namespace import CORE_OPS
from pullback.core.graph.modes import run_in_mode
from pullback.core.graph.node import zeros_for
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, compose


class ForwardRule:
    """A user's ``jvp``, with how it takes tangents read once.

    It takes one for each argument of forward, in order; or by name, if all its parameters are names
    of forward's arguments. A tangent is None where an argument does not change. ``rule(ctx,
    *tangents)`` returns one tangent for each output.
    """

    def __init__(self, name: str, signature: Signature, rule: Callable[..., Any]) -> None:
        self.name, self.rule = name, rule
        if not callable(rule):
            came = type(rule).__name__
            raise ArgumentTypeError(compose(f"{name}.jvp", "a function required", came))
        own = list(inspect.signature(rule).parameters.values())
        known = [p.name for p in signature.parameters]
        # Written with *tangents, or with a parameter for each argument whatever it is called.
        many = any(p.kind is p.VAR_POSITIONAL and p.name not in known for p in own)
        named = len(own) > 1 and {p.name for p in own[1:]} <= set(known) and not many
        self.parameters = own[1:] if named else None
        fits = many or named or len(own) - 1 == len(known)
        if positional_count(rule) < 1 or not fits:
            arguments = ", ".join(known)
            required = f"a function of ctx and of tangents of the arguments ({arguments}) required"
            hint = f"write def jvp(ctx, {arguments}), or some of these names"
            raise ArgumentError(compose(f"{name}.jvp", required, head_of(rule), hint=hint))

    def __call__(self, ctx: Any, arguments: Arguments, tangents: Sequence[Any]) -> Any:
        """Return what the rule returns for one tangent, or None, for each input."""
        tangents = arguments.in_containers(tangents)
        if arguments.skeleton is not None:
            tangents = [t if _changes(t) else None for t in tangents]
        if self.parameters is None:
            return self.rule(ctx, *tangents)
        values, names = arguments.by_parameter(tangents), [p.name for p in self.parameters]
        left = [name for name, t in values.items() if name not in names and _changes(t)]
        if left:
            required = f"a parameter for the tangent of `{left[0]}` required"
            hint = f"jvp takes {', '.join(names)} alone: add `{left[0]}`, or detach it"
            raise ArgumentError(compose(f"{self.name}.jvp", required, "none", hint=hint))
        positional, keywords = spread(self.parameters, values)
        return self.rule(ctx, *positional, **keywords)

    # -- the backward of an operation that has nothing else ----------------------------------------
    def transposed(self, ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the gradients of the inputs: the rule is linear in tangents; its transpose."""
        node, recorded = ctx._alive(), ctx._pass[1]
        tangents = [
            None if not wanted else box(zeros_for(meta)).requires_grad_()
            for wanted, meta in zip(ctx._needed(), node.input_metas, strict=True)
        ]
        result = run_in_mode({"grad": True, "parts": False}, self, ctx, node.arguments, tangents)
        outs = [result] if isinstance(result, Tensor) else list(tree.leaves(result))
        pairs = [
            (out, g)
            for out, g in zip(outs, tree.leaves(list(grads)), strict=True)
            if isinstance(out, Tensor) and out.requires_grad and g is not None
        ]
        chosen = [t for t in tangents if t is not None]
        gradients: Sequence[Tensor | None] = [None] * len(chosen)
        if pairs:
            roots, seeds = zip(*pairs, strict=True)
            more = {"create_graph": recorded, "allow_unused": True}
            gradients = CORE_OPS.grad(roots, chosen, seeds, **more)
        left = iter(gradients)
        gradients = [None if t is None else next(left) for t in tangents]
        return tuple(node.arguments.in_containers(gradients))


def _changes(tangent: Any) -> bool:
    return any(leaf is not None for leaf in tree.leaves(tangent))
