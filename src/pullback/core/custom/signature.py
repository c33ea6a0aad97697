"""Arguments by name: forward's signature, read once, and the calls bound to it.

Must not know Tensor.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.custom import pytree as tree

_KINDS = inspect.Parameter
_POSITIONAL = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)


class Arguments:
    """The names of one call's arguments, in the order of forward's parameters.

    Attributes
    ----------
    names : sequence of str
        One a value: the parameter's name, ``name[i]`` for ``*args``, the keyword for ``**kwargs``.
    groups : dict
        From ``*args`` and ``**kwargs`` parameters to the places of their values.
    skeleton : list or None
        The containers among the values with their leaves replaced, where they are traversed.
    """

    __slots__ = ("groups", "names", "plain", "skeleton")

    def __init__(
        self, names: Sequence[str], groups: dict[str, list[int]], skeleton: Any = None
    ) -> None:
        self.names = names
        self.groups = groups
        self.skeleton = skeleton
        self.plain = not groups and skeleton is None

    def fold(self, flags: Sequence[bool]) -> list[bool]:
        """Return one flag an argument from one flag an input."""
        if self.skeleton is None:
            return list(flags)
        pieces = iter(flags)
        return [
            any(list(itertools.islice(pieces, sum(1 for _ in tree.leaves(v)))))
            for v in self.skeleton
        ]

    def owner(self, i: int) -> str:
        """Return the name of the argument that input `i` belongs to."""
        if self.skeleton is None:
            return self.names[i]
        owners = [n for n, v in zip(self.names, self.skeleton, strict=True) for _ in tree.leaves(v)]
        return owners[i]


class Signature:
    """Forward's parameters after ctx, read once; binds calls to names."""

    def __init__(self, name: str, forward: Callable[..., Any], skip: int) -> None:
        signature = inspect.signature(forward)
        self.name = name
        self.parameters = list(signature.parameters.values())[skip:]
        self.full = signature.replace(parameters=self.parameters)
        plain = all(p.kind in _POSITIONAL for p in self.parameters)
        self.plain_count = len(self.parameters) if plain else -1
        self.plain = Arguments(tuple(p.name for p in self.parameters), {})

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, list[Any]]:
        """Return a call's names and values; raise Python's own TypeError for a wrong call."""
        if not kwargs and len(args) == self.plain_count:
            return self.plain, list(args)
        try:
            bound = self.full.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}() {error}") from None
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
        return Arguments(names, groups), values

    def spread(
        self, arguments: Arguments, values: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments that put `values` where `bind` found them."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        place = 0
        for p in self.parameters:
            if p.kind in _POSITIONAL:
                positional.append(values[place])
                place += 1
            elif p.kind is _KINDS.KEYWORD_ONLY:
                keywords[p.name] = values[place]
                place += 1
            else:
                for i in arguments.groups[p.name]:
                    if p.kind is _KINDS.VAR_POSITIONAL:
                        positional.append(values[i])
                    else:
                        keywords[arguments.names[i]] = values[i]
                    place += 1
        return positional, keywords
