"""What is read of a function: its name, place, parameters and source, and names for a call's items.

Must not know what is looked for in them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

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


def tree_of(fn: Any) -> ast.AST | None:
    """Return the source of a function as a tree; None if it has none, or is part of a line."""
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(fn))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if getattr(fn, "__name__", "") != "<lambda>":
        return found
    # What stands around a function without a name is the caller's; others have other arguments.
    names = [*inspect.signature(fn).parameters]
    inside = [node for node in ast.walk(found) if isinstance(node, ast.Lambda)]
    own = [node for node in inside if [a.arg for a in node.args.args] == names]
    return own[0] if own else found


def labels_of(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return a name for every leaf of the arguments of a call."""
    names: list[str] = []
    for p in parameters_of(fn) or ():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{i}]" for i in range(len(args) - len(names))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
    names += [f"input {i}" for i in range(len(names), len(args))]
    named = [*zip(names, args, strict=False), *kwargs.items()]
    return [label for name, value in named for label in _paths(name, value)]


def _paths(name: str, value: Any) -> Iterator[str]:
    """Yield a name for each leaf of an argument."""
    items = tree.children(value)
    if items is None:
        yield name
        return
    for key, item in items:
        yield from _paths(f"{name}[{key!r}]", item)
