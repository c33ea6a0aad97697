"""The source of a function as a tree, parsed once. Must not know what is looked for in it."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
from typing import Any
from weakref import WeakKeyDictionary

_TREES: WeakKeyDictionary[Any, ast.AST | None] = WeakKeyDictionary()


def tree_of(fn: Any) -> ast.AST | None:
    """Return the source of a function as a tree; None if it has none, or is part of a line.

    The tree is shared: it must not be changed.
    """
    with contextlib.suppress(TypeError):  # one that cannot be looked up, or only held
        if fn not in _TREES:
            _TREES[fn] = _parsed(fn)
        return _TREES[fn]
    return _parsed(fn)


def _parsed(fn: Any) -> ast.AST | None:
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
