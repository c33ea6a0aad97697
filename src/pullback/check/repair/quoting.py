"""A change of a function as a sentence that quotes the source before and after it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from pullback.check.repair.source import copied

_WIDEST = 76  # characters of a quotation


class _Replacing(ast.NodeTransformer):
    """Puts other expressions in the places of some, told by their positions."""

    def __init__(self, changes: Sequence[tuple[Any, Any]]) -> None:
        self.new = {place_of(old): new for old, new in changes}

    def visit(self, node: ast.AST) -> Any:
        found = self.new.get(place_of(node))
        if isinstance(found, ast.Module):  # several statements
            return found.body
        return self.generic_visit(node) if found is None else found


def grouped(text: str) -> str:
    """Return an expression as it is written where it is part of another: in brackets, if needed."""
    return text if text.replace(".", "").isidentifier() else f"({text})"


def replaced(tree: ast.FunctionDef, places: Sequence[tuple[Any, Any]]) -> ast.FunctionDef:
    """Return a copy of a definition with nodes replaced by others."""
    pairs = [(old, _in_place_of(copied(new), old)) for old, new in places]
    changed = _Replacing(pairs).visit(copied(tree))
    found: ast.FunctionDef = ast.fix_missing_locations(changed)
    return found


def _in_place_of(new: Any, old: Any) -> Any:
    for each in new.body if isinstance(new, ast.Module) else [new]:
        ast.copy_location(each, old)
    return new


def place_of(node: Any) -> Any:
    """Return what tells a node of a tree from all others: its kind and its position."""
    if not hasattr(node, "lineno"):
        return type(node), None
    return type(node), node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def quotation(tree: ast.FunctionDef, changes: Sequence[tuple[Any, Any]]) -> tuple[str, str]:
    """Return the source before and after a change: the widest expression that is not too long.

    Parameters
    ----------
    tree : ast.FunctionDef
    changes : sequence of (ast.expr, ast.expr)
        What stands in the tree, and what comes there.
    """
    if len(changes) == 1 and isinstance(changes[0][1], ast.Module):
        old, new = changes[0]
        return ast.unparse(old), "; ".join(ast.unparse(each) for each in new.body)
    found = None
    for node in _around(tree, {place_of(old) for old, _ in changes}):
        changed = _Replacing(changes).visit(copied(node))
        found = ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
        if max(map(len, found)) <= _WIDEST and "\n" not in found[0]:
            break
    if found is None:  # in several statements
        pairs = [quotation(tree, [change]) for change in changes]
        before, after = zip(*pairs, strict=True)
        return "; ".join(before), "; ".join(after)
    return found


def _around(tree: ast.FunctionDef, keys: set[Any]) -> list[Any]:
    """Return the nodes around all of some expressions, the widest first."""
    found: list[Any] = []

    def count(node: ast.AST) -> int:
        inside = (place_of(node) in keys) + sum(
            count(child) for child in ast.iter_child_nodes(node)
        )
        if inside == len(keys):
            found.append(node)
        return inside

    count(tree)
    shown = (ast.expr, ast.Pass, ast.Assign, ast.AugAssign, ast.Expr, ast.Slice)
    return [node for node in reversed(found) if isinstance(node, shown)]
