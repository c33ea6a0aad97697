"""What is read of a function: its name, place, parameters and source, and names for a call's items.

Must not know what is looked for in them.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
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


def definition_of(fn: Any) -> ast.FunctionDef | None:
    """Return the definition of a function, without decorators; a lambda as one that returns.

    None if it has no source, or is one of several of a line that have the same arguments.
    """
    fn = inspect.unwrap(fn)
    code = getattr(fn, "__code__", None)
    if code is None:
        return None
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    names = [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    own = [code.co_name, code.co_firstlineno, names]
    found = [node for *key, node in _definitions(code.co_filename, len(lines)) if key == own]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _definitions(filename: str, lines: int) -> list[tuple[str, int, list[str], ast.FunctionDef]]:
    """Return the functions of a file by name, line and arguments; `lines` tells editions apart."""
    try:
        module = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(module):
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            continue
        a, decorators = node.args, getattr(node, "decorator_list", [])
        line = min([node.lineno, *(each.lineno for each in decorators)])
        name, body = getattr(node, "name", "<lambda>"), node.body
        if isinstance(body, ast.expr):
            body = [ast.copy_location(ast.Return(body), body)]
        made = ast.copy_location(ast.FunctionDef(name, a, body, []), node)
        found.append((name, line, [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)], made))
    return found


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
