"""Arguments by name: forward's signature, read once.

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

    __slots__ = ("groups", "names", "skeleton")

    def __init__(
        self, names: Sequence[str], groups: dict[str, list[int]], skeleton: Any = None
    ) -> None:
        self.names = names
        self.groups = groups
        self.skeleton = skeleton

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

    POSITIONAL = _POSITIONAL

    def __init__(self, name: str, forward: Callable[..., Any], skip: int) -> None:
        signature = inspect.signature(forward)
        self.name = name
        self.parameters = list(signature.parameters.values())[skip:]
        self.full = signature.replace(parameters=self.parameters)
        kinds = {p.kind for p in self.parameters}
        self.is_fixed = not kinds & {_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD}
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
        """Return positional and keyword arguments that put `values` where `bind` found them."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        index = 0
        for p in self.parameters:
            if p.kind in _POSITIONAL:
                positional.append(values[index])
                index += 1
            elif p.kind is _KINDS.KEYWORD_ONLY:
                keywords[p.name] = values[index]
                index += 1
            else:
                for i in arguments.groups[p.name]:
                    if p.kind is _KINDS.VAR_POSITIONAL:
                        positional.append(values[i])
                    else:
                        keywords[arguments.names[i]] = values[i]
                    index += 1
        return positional, keywords
