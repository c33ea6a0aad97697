"""The forward derivative that a user gives an operation: ``jvp(ctx, *tangents)``.

Owns how it is called, and the backward that an operation with nothing else gets: its transpose.
Must not know forward mode, which calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.custom import pytree as tree
from pullback.core.custom.signature import Arguments, Signature
from pullback.core.function.namespace import ENGINE
from pullback.core.graph.modes import run_in_mode
from pullback.core.graph.node import zeros_for
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError, compose

_KINDS = inspect.Parameter
_POSITIONAL = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)


class ForwardRule:
    """A user's ``jvp``, with how it takes tangents read once.

    It takes one for each argument of forward, in order; or by name, if all its parameters are names
    of forward's arguments. A tangent is None where an argument does not change.

    Parameters
    ----------
    name : str
        The operation's.
    signature : Signature
        That of forward.
    rule : callable
        ``rule(ctx, *tangents)`` returns one tangent for each output.
    """

    def __init__(self, name: str, signature: Signature, rule: Callable[..., Any]) -> None:
        self.name, self.rule = name, rule
        if not callable(rule):
            raise ArgumentTypeError(
                compose(f"{name}.jvp", "a function required", type(rule).__name__)
            )
        own = list(inspect.signature(rule).parameters.values())
        known = [p.name for p in signature.parameters]
        takes = [p.name for p in own[1:]]
        # Written with *tangents, or with a parameter for each argument whatever it is called.
        many = any(p.kind is _KINDS.VAR_POSITIONAL and p.name not in known for p in own)
        self.names = takes if takes and set(takes) <= set(known) and not many else None
        fits = many or self.names is not None or len(takes) == len(known)
        if not own or own[0].kind not in (*_POSITIONAL, _KINDS.VAR_POSITIONAL) or not fits:
            arguments = ", ".join(known)
            raise ArgumentError(
                compose(
                    f"{name}.jvp",
                    f"a function of ctx and of tangents of the arguments ({arguments}) required",
                    f"{getattr(rule, '__name__', 'function')}{inspect.signature(rule)}",
                    hint=f"write def jvp(ctx, {arguments}), or some of these names",
                )
            )

    def __call__(self, ctx: Any, arguments: Arguments, tangents: Sequence[Any]) -> Any:
        """Return what the rule returns for one tangent, or None, for each input."""
        if arguments.skeleton is not None:
            pieces = iter(tangents)
            tangents = [
                tree.map_leaves(lambda _: next(pieces), value) for value in arguments.skeleton
            ]
            tangents = [
                None if all(leaf is None for leaf in tree.leaves(t)) else t for t in tangents
            ]
        if self.names is None:
            return self.rule(ctx, *tangents)
        values = self._by_name(arguments, tangents)
        left = [name for name, t in values.items() if name not in self.names and _changes(t)]
        if left:
            required = f"a parameter for the tangent of `{left[0]}` required"
            hint = f"jvp takes {', '.join(self.names)} alone: add `{left[0]}`, or detach it"
            raise ArgumentError(compose(f"{self.name}.jvp", required, "none", hint=hint))
        parameters = list(inspect.signature(self.rule).parameters.values())[1:]
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for p in parameters:
            if p.kind is _KINDS.VAR_POSITIONAL:
                positional += values[p.name]
            elif p.kind is _KINDS.VAR_KEYWORD:
                keywords |= values[p.name]
            elif p.kind in _POSITIONAL:
                positional.append(values[p.name])
            else:
                keywords[p.name] = values[p.name]
        return self.rule(ctx, *positional, **keywords)

    @staticmethod
    def _by_name(arguments: Arguments, tangents: Sequence[Any]) -> dict[str, Any]:
        """Return tangents by the names of forward's parameters, several for one with a star."""
        grouped = {i for places in arguments.groups.values() for i in places}
        values = {
            name: t
            for i, (name, t) in enumerate(zip(arguments.names, tangents, strict=True))
            if i not in grouped
        }
        for name, places in arguments.groups.items():
            starred = any("[" in arguments.names[i] for i in places)
            values[name] = (
                [tangents[i] for i in places]
                if starred or not places
                else {arguments.names[i]: tangents[i] for i in places}
            )
        return values

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
            gradients = ENGINE.grad(roots, chosen, seeds, create_graph=recorded, allow_unused=True)
        left = iter(gradients)
        gradients = [None if t is None else next(left) for t in tangents]
        return tuple(_folded(node.arguments, gradients))


def _changes(tangent: Any) -> bool:
    return any(leaf is not None for leaf in tree.leaves(tangent))


def _folded(arguments: Arguments, gradients: Sequence[Any]) -> list[Any]:
    if arguments.skeleton is None:
        return list(gradients)
    pieces = iter(gradients)
    return [tree.map_leaves(lambda _: next(pieces), value) for value in arguments.skeleton]
