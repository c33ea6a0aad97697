"""Arguments by name: forward's signature, read once.

Must not know Tensor.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.core.custom import pytree as tree

_KINDS = inspect.Parameter
_POSITIONAL = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)


@dataclass(slots=True, eq=False)
class Arguments:
    """The names of one call's arguments, in the order of forward's parameters."""

    # One a value: the parameter's name, name[i] for *args, the keyword for **kwargs.
    names: Sequence[str]
    groups: dict[str, list[int]]  # from parameters with a star to the places of their values
    # The containers among the values with their leaves replaced, where they are traversed.
    skeleton: list[Any] | None = None

    def traversed(self, skeleton: Any) -> Arguments:
        """Return these arguments with the structure of the containers among the values."""
        return Arguments(self.names, self.groups, skeleton)

    def fold(self, flags: Sequence[bool]) -> list[bool]:
        """Return one flag an argument from one flag an input."""
        if self.skeleton is None:
            return list(flags)
        pieces = iter(flags)
        return [
            any(list(itertools.islice(pieces, sum(1 for _ in tree.leaves(v)))))
            for v in self.skeleton
        ]

    def in_containers(self, values: Sequence[Any]) -> list[Any]:
        """Return one value an argument from one an input, those of a container in one like it."""
        return list(values) if self.skeleton is None else tree.refilled(self.skeleton, values)

    def by_parameter(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return values by the parameters of forward, those of one with a star by their names."""
        if not self.groups:
            return dict(zip(self.names, values, strict=True))
        grouped = {i for places in self.groups.values() for i in places}
        pairs = list(zip(self.names, values, strict=True))
        alone = {name: value for i, (name, value) in enumerate(pairs) if i not in grouped}
        starred = {name: dict(pairs[i] for i in self.groups[name]) for name in self.groups}
        return alone | starred

    def owner(self, i: int) -> str:
        """Return the name of the argument that input `i` belongs to."""
        if self.skeleton is None:
            return self.names[i]
        owners = [n for n, v in zip(self.names, self.skeleton, strict=True) for _ in tree.leaves(v)]
        return owners[i]


def names_ctx(forward: Callable[..., Any]) -> bool:
    """Return whether the name of forward's first parameter says that it is ctx."""
    first = next(iter(inspect.signature(forward).parameters), "")
    return first.strip("_") in ("", "args", "c", "context", "ctx", "self")


class Signature:
    """Forward's parameters after ctx, read once."""

    def __init__(self, name: str, forward: Callable[..., Any], skip: int) -> None:
        signature = inspect.signature(forward)
        self.name = name
        self.parameters = list(signature.parameters.values())[skip:]
        self.full = signature.replace(parameters=self.parameters)
        kinds = {p.kind for p in self.parameters}
        self.is_fixed = not kinds & {_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD}
        self.is_positional = kinds.issubset(_POSITIONAL)
        self.fixed = Arguments(tuple(p.name for p in self.parameters), {})

    def arguments(self, *variable: tuple[str, ...]) -> Arguments:
        """Return the names of one call, given the names within ``*args`` and ``**kwargs``."""
        names: list[str] = []
        groups: dict[str, list[int]] = {}
        within = iter(variable)
        for p in self.parameters:
            if p.kind in (_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD):
                own = next(within)
                groups[p.name] = list(range(len(names), len(names) + len(own)))
                names += own
            else:
                names.append(p.name)
        return Arguments(names, groups)

    def spread(
        self, arguments: Arguments, values: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments that put `values` where they were found."""
        if self.is_positional:  # as most are
            return list(values), {}
        return spread(self.parameters, arguments.by_parameter(values))


def spread(
    parameters: Sequence[inspect.Parameter], values: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments from values by parameter."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for p in parameters:
        value = values[p.name]
        if p.kind in _POSITIONAL:
            positional.append(value)
        elif p.kind is _KINDS.VAR_POSITIONAL:
            positional += value.values()
        elif p.kind is _KINDS.VAR_KEYWORD:
            keywords |= value
        else:
            keywords[p.name] = value
    return positional, keywords


def positional_count(function: Callable[..., Any]) -> float:
    """Return how many arguments a function takes by position."""
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if _KINDS.VAR_POSITIONAL in kinds:
        return math.inf
    return sum(kind in _POSITIONAL for kind in kinds)


def head_of(function: Callable[..., Any]) -> str:
    """Return the name and the parameters of a function, for errors."""
    return f"{getattr(function, '__name__', 'function')}{inspect.signature(function)}"
