"""Other statements than those of a function: what was assigned, added or changed in place."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from pullback.check.mending.edits import indices

_OTHER_WAY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


def statements(tree: ast.FunctionDef) -> Iterator[tuple[Any, Any, float]]:
    """Yield a statement, what may have been meant, and how unlikely that is.

    Indices that occur more than once are the commonest slip: NumPy adds to each of them once.
    """
    for node in ast.walk(tree):
        yield from _elsewhere(node)
        if isinstance(node, ast.AugAssign):
            yield from _in_place(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            yield node, _added(target, node.value), 1.0
            yield node, ast.AugAssign(target, ast.Add(), node.value), 1.1
            yield node, ast.Pass(), 1.8
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, ast.Pass(), 1.8


def _elsewhere(node: ast.AST) -> Iterator[tuple[Any, Any, float]]:
    """Yield a statement that writes to elements, with other elements."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not isinstance(node, (ast.Assign, ast.AugAssign)) or len(targets) != 1:
        return
    target = targets[0]
    if isinstance(target, ast.Subscript):
        for index, cost in indices(target.slice):
            other = ast.Subscript(target.value, index, ast.Store())
            if isinstance(node, ast.Assign):
                yield node, ast.Assign([other], node.value), cost
            else:
                yield node, ast.AugAssign(other, node.op, node.value), cost


def _in_place(node: ast.AugAssign) -> Iterator[tuple[Any, Any, float]]:
    if isinstance(node.target, ast.Subscript) and isinstance(node.op, ast.Add):
        yield node, _added(node.target, node.value), 0.9
    target = copy.deepcopy(node.target)
    if isinstance(target, ast.Name):
        value = ast.BinOp(ast.Name(target.id, ast.Load()), node.op, node.value)
        yield node, ast.Assign([target], value), 1.0
    yield node, ast.Assign([target], node.value), 1.5
    other = _OTHER_WAY.get(type(node.op))
    if other is not None:
        yield node, ast.AugAssign(target, other(), node.value), 1.2
    yield node, ast.Pass(), 1.6


def _added(target: ast.Subscript, value: Any) -> ast.Expr:
    """Return the statement that adds at every index, however often it occurs."""
    index = target.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    made = [_as_call(each) if isinstance(each, ast.Slice) else each for each in parts]
    position = ast.Tuple(made, ast.Load()) if isinstance(index, ast.Tuple) else made[0]
    function = ast.parse("np.add.at", mode="eval").body
    array = copy.deepcopy(target.value)
    return ast.Expr(ast.Call(function, [array, position, value], []))


def _as_call(found: ast.Slice) -> ast.Call:
    ends = [e or ast.Constant(None) for e in (found.lower, found.upper)]
    return ast.Call(ast.Name("slice", ast.Load()), ends, [])
