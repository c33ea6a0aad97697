"""The names that messages use for a function, its arguments and the items in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pullback.core.custom import pytree as tree


def name_of(fn: Any) -> str:
    """Return the name of a function in messages."""
    found = getattr(fn, "name", None) or getattr(fn, "__name__", None)
    owner = getattr(fn, "__self__", None)
    if found == "apply" and owner is not None:
        found = getattr(owner, "__name__", found)
    return str(found or type(fn).__name__)


def place_of(fn: Any) -> str:
    """Return the file and line of an operation's backward, or of a function; empty if unknown."""
    rule = getattr(fn, "given_rule", None) or inspect.unwrap(fn)
    code = getattr(inspect.unwrap(rule), "__code__", None)
    if code is None or code.co_filename.startswith("<"):  # generated
        return ""
    path, here = Path(code.co_filename), Path.cwd()
    path = path.relative_to(here) if path.is_relative_to(here) else path
    return f"{path}:{code.co_firstlineno}"


def quoted(names: Iterable[str], between: str = ", ") -> str:
    """Return names in backquotes, joined."""
    return between.join(f"`{name}`" for name in names)


def axes_text(axes: Sequence[int]) -> str:
    """Return axes as sentences name them."""
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {tuple(axes)}"


def parameters_of(fn: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return the parameters of a function, None if it has no signature."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return None


def labels_of(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return a name for every leaf of the arguments of a call."""
    named = [*zip(_positional(fn, len(args), kwargs), args, strict=True), *kwargs.items()]
    return [label for name, value in named for label in _paths(name, value)]


# Of a function, by how many arguments have a place and which a name: asked for each call of it.
_POSITIONAL: WeakKeyDictionary[Any, dict[tuple[Any, ...], list[str]]] = WeakKeyDictionary()


def _positional(fn: Callable[..., Any], count: int, keywords: Iterable[str]) -> list[str]:
    """Return the names of the first arguments of a call."""
    try:
        known = _POSITIONAL.setdefault(fn, {})
    except TypeError:  # one that cannot be looked up, or only held
        known = {}
    names = tuple(keywords)
    call = (count, names)
    if call not in known:
        try:
            bound = inspect.signature(fn).bind(*range(count), **dict.fromkeys(names))
            known[call] = _positional_names(bound, count)
        except (TypeError, ValueError):
            known[call] = [f"input {i}" for i in range(count)]
    return known[call]


def _positional_names(bound: inspect.BoundArguments, count: int) -> list[str]:
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(value))]
        elif kind is not inspect.Parameter.VAR_KEYWORD:
            names.append(name)
    return names[:count]


def _paths(name: str, value: Any) -> Iterator[str]:
    """Yield a name for each leaf of an argument."""
    items = tree.children(value)
    if items is None:
        yield name
        return
    for key, item in items:
        yield from _paths(f"{name}[{key!r}]", item)
