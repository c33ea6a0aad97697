"""Other statements than those of a function: what was assigned, added or changed in place."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from pullback.check.repair.edits import indices
from pullback.check.repair.source import copied

_OTHER_WAY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


def statements(
    tree: ast.FunctionDef, indices: Mapping[str, Any]
) -> Iterator[tuple[list[tuple[Any, Any]], float]]:
    """Yield statements, each with what may have been meant, and how unlikely that is.

    Parameters
    ----------
    tree : ast.FunctionDef
    indices : mapping
        Expressions of integers by how they are written: where else something may be added.
    """
    nodes: list[Any] = list(ast.walk(tree))
    for node in nodes:
        for other, cost in _elsewhere_too(node, indices):
            yield [(node, ast.Module([node, other], []))], cost
    for old, new, cost in _single(tree):
        yield [(old, new)], cost
    adding = [node for node in nodes if _adds_to_elements(node)]
    if len(adding) > 1:
        yield [(node, _added(node.target, node.value)) for node in adding], 1.0
    for a, b in _neighbours(tree):
        yield [(a, b), (b, a)], 1.4


def _adds_to_elements(node: Any) -> bool:
    augmented = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
    return augmented and isinstance(node.target, ast.Subscript)


def _neighbours(tree: ast.FunctionDef) -> Iterator[tuple[Any, Any]]:
    """Yield the statements that follow each other: they may be in the wrong order."""
    for node in ast.walk(tree):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            for a, b in itertools.pairwise(block) if isinstance(block, list) else ():
                if isinstance(a, _SIMPLE) and isinstance(b, _SIMPLE):
                    yield a, b


def _single(tree: ast.FunctionDef) -> Iterator[tuple[Any, Any, float]]:
    """Yield a statement, what may have been meant, and how unlikely that is.

    Indices that occur more than once are the commonest slip: NumPy adds to each of them once.
    """
    zeros = _set_to_zero(tree)
    for node in ast.walk(tree):
        yield from _elsewhere(node)
        if isinstance(node, (ast.For, ast.While)):
            yield from _added_up(node, zeros)
        if isinstance(node, ast.AugAssign):
            yield from _in_place(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            yield node, _added(target, node.value), 1.0
            yield node, ast.AugAssign(target, ast.Add(), node.value), 1.1
            yield node, ast.Pass(), 1.8
        elif isinstance(node, ast.Assign):
            yield from _cut_off(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, ast.Pass(), 1.8
            yield from _appended(node, node.value)


def _added_up(loop: ast.For | ast.While, zeros: set[str]) -> Iterator[tuple[Any, Any, float]]:
    """Yield for what a loop assigns to a name a sum over its turns: likely if it was 0 before."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            cost = 0.5 if node.targets[0].id in zeros else 1.5
            yield node, ast.AugAssign(node.targets[0], ast.Add(), node.value), cost


def _set_to_zero(tree: ast.FunctionDef) -> set[str]:
    """Return the names that are set to the number 0."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    zeros = [n for n in assigned if isinstance(n.value, ast.Constant) and n.value.value == 0]
    return {t.id for node in zeros for t in node.targets if isinstance(t, ast.Name)}


def _appended(node: ast.Expr, call: ast.Call) -> Iterator[tuple[Any, Any, float]]:
    """Yield for what is put in a list a copy of it: it may be changed afterwards."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "append" or len(call.args) != 1:
        return
    item = call.args[0]
    copies: list[ast.expr] = [_copy(item)]
    if isinstance(item, ast.Tuple):
        parts = item.elts
        copies = [
            ast.Tuple([*parts[:j], _copy(each), *parts[j + 1 :]], ast.Load())
            for j, each in enumerate(parts)
            if isinstance(each, ast.Name)
        ]
    for other in copies:
        yield node, ast.Expr(ast.Call(function, [other], [])), 0.4


def _copy(node: Any) -> ast.Call:
    return ast.Call(ast.Attribute(node, "copy", ast.Load()), [], [])


def _cut_off(node: Any) -> Iterator[tuple[Any, Any, float]]:
    """Yield for an array that is shifted round one that does not wrap."""
    target = node.targets[0]
    calls = [each.func for each in ast.walk(node.value) if isinstance(each, ast.Call)]
    if isinstance(target, ast.Name) and any(ast.unparse(f).endswith("roll") for f in calls):
        for index in ("-1", "0", "..., -1", "..., 0"):
            zeroed = ast.parse(f"{target.id}[{index}] = 0").body[0]
            yield node, ast.Module([node, zeroed], []), 1.3


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
    target = copied(node.target)
    if isinstance(target, ast.Name):
        value = ast.BinOp(ast.Name(target.id, ast.Load()), node.op, node.value)
        yield node, ast.Assign([target], value), 1.0
    yield node, ast.Assign([target], node.value), 1.5
    other = _OTHER_WAY.get(type(node.op))
    if other is not None:
        yield node, ast.AugAssign(target, other(), node.value), 1.2
    yield node, ast.Pass(), 1.6


def _elsewhere_too(node: Any, others: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
    """Yield for a statement that adds to elements one that adds to others as well.

    Of what depends on two elements, one is forgotten: the other end of an edge, the other half of
    a symmetric matrix.
    """
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        target = node.target
        signs = [op for op in (ast.Add, ast.Sub) if isinstance(node.op, (ast.Add, ast.Sub))]
        for index, cost in _other_indices(target.slice, others):
            place = ast.Subscript(target.value, index, ast.Store())
            yield from ((ast.AugAssign(place, op(), node.value), cost) for op in signs)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if ast.unparse(call.func) == "np.add.at" and len(call.args) == 3:
            array, at, value = call.args
            for index, cost in _other_indices(at, others):
                for new in (value, ast.UnaryOp(ast.USub(), value)):
                    yield ast.Expr(ast.Call(call.func, [array, index, new], [])), cost


def _other_indices(index: Any, others: Mapping[str, Any]) -> Iterator[tuple[Any, float]]:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if len(parts) == 2 and not any(isinstance(each, ast.Slice) for each in parts):
        yield ast.Tuple(parts[::-1], ast.Load()), 1.9
    for j, part in enumerate(parts):
        for text, other in others.items() if isinstance(part, (ast.Name, ast.Attribute)) else ():
            if text != ast.unparse(part):
                new = [*parts[:j], other, *parts[j + 1 :]]
                yield new[0] if len(new) == 1 else ast.Tuple(new, ast.Load()), 2.1


def _added(target: ast.Subscript, value: Any) -> ast.Expr:
    """Return the statement that adds at every index, however often it occurs."""
    index = target.slice
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    made = [_as_call(each) if isinstance(each, ast.Slice) else each for each in parts]
    position = ast.Tuple(made, ast.Load()) if isinstance(index, ast.Tuple) else made[0]
    function = ast.parse("np.add.at", mode="eval").body
    array = copied(target.value)
    return ast.Expr(ast.Call(function, [array, position, value], []))


def _as_call(found: ast.Slice) -> ast.Call:
    ends = [e or ast.Constant(None) for e in (found.lower, found.upper)]
    return ast.Call(ast.Name("slice", ast.Load()), ends, [])
