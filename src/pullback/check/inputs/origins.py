"""Which argument a local name of forward or backward holds, by the source.

``W, d = links.numpy(), damping.numpy()`` gives arguments other names, and what forward saves comes
back in backward. Only names that are assigned once, and nothing that changes shape, count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pullback.check.sources import tree_of

# Methods and functions whose result has the elements of their operand, at the same places.
_SAME = {
    "numpy", "detach", "data_array", "copy", "clone", "contiguous", "asarray", "array", "tensor",
    "ascontiguousarray", "astype", "double", "float",
}  # fmt: skip
_ELEMENTWISE = {"exp", "log", "sqrt", "abs", "tanh", "square", "log1p", "expm1"}


def function_of(fn: Any) -> Any:
    """Return the tree of a function's definition, None if it has no source."""
    tree = tree_of(fn) if fn is not None else None
    return next((n for n in ast.walk(tree) if _is_function(n)), None) if tree else None


def names_of(function: Any) -> list[str]:
    """Return the names of a function's parameters, in order."""
    a = function.args
    return [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]


def own_nodes(function: Any) -> Iterator[ast.AST]:
    """Yield the nodes of a function, its decorators left out."""
    yield function
    body = function.body if isinstance(function.body, list) else [function.body]
    for statement in body:
        yield from ast.walk(statement)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.Lambda))


class Origins:
    """The arguments of forward that expressions of a function hold.

    Parameters
    ----------
    function : ast.FunctionDef or ast.Lambda
        Forward, or backward.
    forward : Origins, optional
        What is known of forward, for backward.
    """

    def __init__(self, function: Any, forward: Origins | None = None) -> None:
        self.forward = forward
        self.arguments = set(names_of(function)) if forward is None else set[str]()
        self.saved: dict[str, str] = {}  # from the name that forward saves to the argument
        self.order: list[str] = []  # the arguments as forward saves them, empty for other values
        self.names: dict[str, str] = {}
        pairs = [pair for node in own_nodes(function) for pair in _assigned(node)]
        targets = [name for name, _ in pairs]
        for name, node in pairs:
            found = self.name(node)
            if found and targets.count(name) == 1 and name not in self.arguments:
                self.names[name] = found
        if forward is None:
            self.arguments -= set(targets) - set(self.names)
            self.note_saved(function)
        else:
            self.unpack(function, forward)

    def note_saved(self, function: Any) -> None:
        """Note what forward saves for backward, as `save_for_backward` or on the context."""
        for node in own_nodes(function):
            if isinstance(node, ast.Call) and ends(node.func, "save_for_backward"):
                self.order = [self.name(given) for given in node.args]
                self.order += [self.name(k.value) for k in node.keywords]
                self.saved |= {k.arg: self.name(k.value) for k in node.keywords if k.arg}
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                self.saved[node.targets[0].attr] = self.name(node.value)

    def unpack(self, function: Any, forward: Origins) -> None:
        """Note the names that backward gives to the saved tensors."""
        for node in own_nodes(function):
            if not isinstance(node, ast.Assign) or not ends(node.value, "saved_tensors"):
                continue
            target = node.targets[0]
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            for part, name in zip(parts, forward.order, strict=False):
                if isinstance(part, ast.Name) and name:
                    self.names[part.id] = name

    def name(self, node: ast.AST) -> str:
        """Return the argument whose elements an expression holds; empty if it holds none's."""
        if isinstance(node, ast.Name):
            return node.id if node.id in self.arguments else self.names.get(node.id, "")
        if isinstance(node, ast.Attribute) and self.forward is not None:
            return self.forward.saved.get(node.attr, "")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _SAME:
                return ""
            return self.name(node.func.value) or (self.name(node.args[0]) if node.args else "")
        return ""

    def value(self, node: ast.AST) -> str:
        """Return the argument that an expression is made of elementwise; empty if there is none."""
        if isinstance(node, ast.UnaryOp):
            return self.value(node.operand)
        if isinstance(node, ast.Call) and ends(node.func, *_ELEMENTWISE) and len(node.args) == 1:
            return self.value(node.args[0])
        return self.name(node)


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a statement assigns, each with what it is assigned."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, (ast.AugAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from _of_loop(node)


def _pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        values = (
            value.elts if isinstance(value, ast.Tuple) and same else [target] * len(target.elts)
        )
        for part, given in zip(target.elts, values, strict=True):
            yield from _pairs(part, given)


def _of_loop(node: ast.For | ast.comprehension) -> Iterator[tuple[str, ast.AST]]:
    for item in ast.walk(node.target):
        if isinstance(item, ast.Name):
            yield item.id, node.target


def ends(node: ast.AST, *names: str) -> bool:
    """Return whether an expression is a name, or ends with an attribute, of these."""
    if isinstance(node, ast.Attribute):
        return node.attr in names
    return isinstance(node, ast.Name) and node.id in names
