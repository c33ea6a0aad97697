"""The source of a function as a tree, parsed once. Must not know what is looked for in it."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

_TREES: WeakKeyDictionary[Any, ast.AST | None] = WeakKeyDictionary()


def tree_of(fn: Any) -> ast.AST | None:
    """Return the source of a function as a tree; None if it has none, or is part of a line.

    The tree is shared: it must not be changed.
    """
    with contextlib.suppress(TypeError):  # one that cannot be looked up
        if fn in _TREES:
            return _TREES[fn]
    tree = _parsed(fn)
    with contextlib.suppress(TypeError):  # one that can only be held
        _TREES[fn] = tree
    return tree


def _parsed(fn: Any) -> ast.AST | None:
    try:
        found = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(fn))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if getattr(fn, "__name__", "") != "<lambda>":
        return found
    # What stands around a function without a name is the caller's.
    inside = [node for node in ast.walk(found) if isinstance(node, ast.Lambda)]
    own = inside if len(inside) == 1 else [n for n in inside if _does(n) == fn.__code__.co_code]
    return own[0] if own else found


def _does(node: ast.Lambda) -> bytes:
    """Return the instructions of a function without a name that has no free variables."""
    made = compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval")
    return next(c.co_code for c in made.co_consts if isinstance(c, CodeType))
