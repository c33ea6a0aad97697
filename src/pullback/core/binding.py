"""Arguments by name: forward's signature, read once, and the calls bound to it.

Must not know Tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

_KINDS = inspect.Parameter


class Arguments:
    """The arguments of one call, in the order of forward's parameters.

    ``names`` has one entry a value: the parameter's name, ``name[i]`` for ``*args`` and the
    keyword for ``**kwargs``. ``groups`` maps a parameter with several values to their places.
    """

    __slots__ = ("groups", "names", "values")

    def __init__(
        self, names: Sequence[str], values: Sequence[Any], groups: dict[str, list[int]]
    ) -> None:
        self.names = names
        self.values = values
        self.groups = groups


class Signature:
    """Forward's parameters after ctx, read once; binds calls to names."""

    def __init__(self, forward: Callable[..., Any], skip: int) -> None:
        signature = inspect.signature(forward)
        parameters = list(signature.parameters.values())[skip:]
        self.full = signature.replace(parameters=parameters)
        self.parameters = parameters
        plain = all(p.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD) for p in parameters)
        self.names = tuple(p.name for p in parameters)
        self.plain_count = len(parameters) if plain else -1

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Return the call's arguments; raise Python's own TypeError for a wrong call."""
        if not kwargs and len(args) == self.plain_count:
            return Arguments(self.names, args, {})
        bound = self.full.bind(*args, **kwargs)
        bound.apply_defaults()
        names: list[str] = []
        values: list[Any] = []
        groups: dict[str, list[int]] = {}
        for p in self.parameters:
            value = bound.arguments[p.name]
            if p.kind is _KINDS.VAR_POSITIONAL:
                groups[p.name] = list(range(len(names), len(names) + len(value)))
                names += [f"{p.name}[{i}]" for i in range(len(value))]
                values += value
            elif p.kind is _KINDS.VAR_KEYWORD:
                groups[p.name] = list(range(len(names), len(names) + len(value)))
                names += value
                values += value.values()
            else:
                names.append(p.name)
                values.append(value)
        return Arguments(names, values, groups)

    def call(self, forward: Callable[..., Any], lead: tuple[Any, ...], values: Sequence[Any], names: Sequence[str]) -> Any:
        """Call forward with `values` in the places that `bind` found for them."""
        if self.plain_count == len(values):
            return forward(*lead, *values)
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        place = 0
        by_keyword = {p.name for p in self.parameters if p.kind is _KINDS.KEYWORD_ONLY}
        starred = [p.name for p in self.parameters if p.kind is _KINDS.VAR_POSITIONAL]
        ordinary = {p.name for p in self.parameters} - by_keyword
        for name, value in zip(names, values, strict=True):
            if name in by_keyword or (name not in ordinary and not (starred and name.startswith(f"{starred[0]}["))):
                keywords[name] = value
            else:
                positional.append(value)
            place += 1
        return forward(*lead, *positional, **keywords)
