"""Which arguments may have both signs: those of whose signs an operation takes care.

An absolute value, a sign or a comparison with 0 says so of an argument or of a product of
arguments. A difference has both signs whatever the arguments have, and a comparison that only leads
to an exception says the contrary. Must not know of calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.check.iterating import said_of, tree_of, trees_of

_OF_SIGNS = {"abs", "fabs", "absolute", "sign", "copysign", "signbit", "heaviside", "relu"}
_BOUNDS = {"maximum", "minimum", "clip", "max", "min"}
# What leaves positive values positive.
_KEEPS = {
    "numpy", "item", "tolist", "copy", "detach", "asarray", "array", "atleast_1d", "ravel",
    "reshape", "squeeze", "astype", "sum", "mean", "prod", "cumsum", "cumprod", "sqrt", "square",
    "floor", "ceil", "round", "rint", "trunc", "int",
    "max", "min", "take", "float", "outer", "broadcast_to", "repeat", "append", "concatenate",
}  # fmt: skip
_MADE = {"zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like"}
_PRODUCTS = (ast.Add, ast.Mult, ast.Div, ast.FloorDiv, ast.MatMult, ast.Pow)
_ROOTS = re.compile(r"\b(log\w*|sqrt)\(")
_SIGNS = re.compile(rf"\b({'|'.join(sorted(_OF_SIGNS))})\(|[<>]=? ?0\b(?!\.)")
_POSITIVE = r"\b(positive|not negative|non-?negative|above 0|greater than 0)\b|> 0"
_DEEPEST = 4  # names that are replaced by what they stand for


def said_positive(fn: Any, names: Sequence[str]) -> set[str]:
    """Return the arguments of which the docstring says that they are positive, or not negative.

    As in "width, depth: (n,) in m, positive; load: in kN".
    """
    text = " ".join(said_of(fn).split())
    one = rf"\b(?:{'|'.join(map(re.escape, names))})\b"
    group = rf"({one}(?:(?:, | and |, and ){one})*)\s*:"
    found: set[str] = set()
    for here in re.finditer(group, text):
        rest = text[here.end() :]
        following = re.search(rf"{group}|[;.]", rest)
        if re.search(_POSITIVE, rest[: following.start()] if following else rest):
            found.update(re.split(r", and | and |, ", here[1]))
    return found


def signed(fn: Any, names: Sequence[str]) -> set[str]:
    """Return the arguments of whose signs forward or backward takes care.

    Parameters
    ----------
    fn : callable
    names : sequence of str
        All arguments; they all count where a helper takes care of signs, or where backward takes
        logarithms or roots that forward does not.

    Examples
    --------
    >>> def forward(x, y, z):
    ...     return abs(x * 2) + max(y - z, 0)
    >>> signed(forward, ["x", "y", "z"])
    {'x'}
    """
    forward, rule = getattr(fn, "forward", fn), getattr(fn, "given_rule", None)
    own = [tree_of(part) for part in (forward, rule)]
    helpers = [tree for tree in trees_of(forward) if not any(tree is each for each in own)]
    if any(_SIGNS.search(ast.unparse(tree)) for tree in helpers):
        return set(names)
    of_forward, of_rule = (tree is not None and _ROOTS.search(ast.unparse(tree)) for tree in own)
    if of_rule and not of_forward:
        return set(names)
    trees = [tree for tree in own if tree is not None]
    meanings = _Meanings(trees, names)
    found: set[str] = set()
    for tree in trees:
        for operand in _operands(tree):
            found |= meanings.of(operand) or set()
    return found


def _operands(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is asked for its sign, but for what only leads to an exception."""
    guards = {
        id(node)
        for statement in ast.walk(tree)
        if isinstance(statement, ast.If) and isinstance(statement.body[0], ast.Raise)
        for node in ast.walk(statement.test)
    }
    for node in ast.walk(tree):
        if id(node) in guards:
            continue
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_zero, sides)):
                yield from (side for side in sides if not _is_zero(side))
        elif isinstance(node, ast.Call):
            name = _name(node.func)
            operands = [*_owner(node.func), *node.args]
            if name in _OF_SIGNS or (name in _BOUNDS and any(map(_is_zero, operands))):
                compared = operands if name in _BOUNDS - {"clip"} else operands[:1]
                yield from (each for each in compared if not _is_zero(each))


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and not node.value


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _owner(func: ast.expr) -> list[ast.expr]:
    """Return the array of a method's call; nothing for a function of a module."""
    if not isinstance(func, ast.Attribute):
        return []
    module = isinstance(func.value, ast.Name) and func.value.id in ("np", "pb", "numpy", "math")
    return [] if module else [func.value]


class _Meanings:
    """What names stand for in forward and backward, in terms of the arguments."""

    def __init__(self, trees: Sequence[ast.AST], names: Sequence[str]) -> None:
        self.names = set(names)
        self.values: dict[str, list[ast.expr]] = {}
        for tree in trees:
            for node in ast.walk(tree):
                self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self._bind(node.target, node.iter)
        elif isinstance(node, ast.Call) and _name(node.func) == "save_for_backward":
            for word in node.keywords:
                self.values.setdefault(word.arg or "", []).append(word.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Name, ast.Attribute)):
            self.values.setdefault(_name(target), []).append(value)
        elif isinstance(target, ast.Tuple):
            parts = value.elts if isinstance(value, ast.Tuple) else []
            if isinstance(value, ast.Call) and _name(value.func) == "zip":
                parts = value.args
            for one, part in zip(target.elts, parts, strict=False):
                self._bind(one, part)

    def of(self, node: ast.expr, depth: int = 0) -> set[str] | None:
        """Return the arguments in a product; None for what has a sign of its own."""
        if isinstance(node, ast.Constant):
            return set()
        if isinstance(node, ast.Call) and _name(node.func) in _MADE:
            return set()
        if isinstance(node, ast.Subscript):
            return self.of(node.value, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._of_name(node, depth)
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, _PRODUCTS):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Call) and _name(node.func) in _KEEPS:
            parts = [*_owner(node.func), *node.args][:1]
        found = [self.of(part, depth) for part in parts]
        if not found or any(each is None for each in found):
            return None
        return set().union(*(each for each in found if each is not None))

    def _of_name(self, node: ast.Name | ast.Attribute, depth: int) -> set[str] | None:
        name = _name(node)
        values = [v for v in self.values.get(name, ()) if _name(v) != name]
        if name in self.names and depth <= _DEEPEST and not values:
            return {name}
        if not values or depth == _DEEPEST:
            return self.of(node.value, depth) if isinstance(node, ast.Attribute) else None
        found = [self.of(value, depth + 1) for value in values]
        if any(each is None for each in found):
            return None
        own = {name} if name in self.names else set()
        return own.union(*(each for each in found if each is not None))
