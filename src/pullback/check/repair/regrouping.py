"""Operands that are grouped otherwise: brackets around others, a factor in or outside of a call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

_SUMS, _PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div)
# Functions through which a factor or a term may be moved by mistake.
_THROUGH = {
    "sum", "mean", "cumsum", "exp", "log", "sqrt", "abs", "outer", "dot", "maximum", "minimum",
    "where", "diff", "roll", "fft", "ifft", "conj",
}  # fmt: skip

Operand = Callable[[ast.Call], Any]


def regrouped(node: Any, operand_of: Operand) -> Iterator[tuple[Any, float]]:
    """Yield an expression with the same operands and operations in other groups.

    Parameters
    ----------
    node : ast.expr
    operand_of : callable
        From a call to the expression of the array that it is of; None if it has none.
    """
    if isinstance(node, ast.BinOp):
        yield from ((new, 1.3) for new in _brackets(node))
        yield from ((new, 1.5) for new in _into(node, operand_of))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.BinOp):
        inner = node.operand
        if isinstance(inner.op, _SUMS):
            yield ast.BinOp(ast.UnaryOp(node.op, inner.left), inner.op, inner.right), 1.3
    elif isinstance(node, ast.Call):
        yield from ((new, 1.5) for new in _out_of(node, operand_of))


def _associate(first: ast.operator, second: ast.operator) -> bool:
    """Return whether ``(a first b) second c`` is ``a first (b second c)``."""
    return (
        (isinstance(first, ast.Add) and isinstance(second, _SUMS))
        or (isinstance(first, ast.Mult) and isinstance(second, _PRODUCTS))
        or (isinstance(first, ast.MatMult) and isinstance(second, ast.MatMult))
    )


def _brackets(node: ast.BinOp) -> Iterator[Any]:
    left, op, right = node.left, node.op, node.right
    if isinstance(right, ast.BinOp) and not _associate(op, right.op):
        yield ast.BinOp(ast.BinOp(left, op, right.left), right.op, right.right)
        if isinstance(right.op, ast.Mult):
            yield ast.BinOp(right.left, right.op, ast.BinOp(left, op, right.right))
    if isinstance(left, ast.BinOp) and not _associate(left.op, op):
        yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, op, right))
        if isinstance(left.op, (*_PRODUCTS, *_SUMS)):
            yield ast.BinOp(ast.BinOp(left.left, op, right), left.op, left.right)
    if isinstance(left, ast.UnaryOp) and isinstance(op, _SUMS):
        yield ast.UnaryOp(left.op, ast.BinOp(left.operand, op, right))


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _of(call: ast.Call, old: Any, new: Any) -> ast.Call:
    """Return a call of another array."""
    function: Any = call.func
    if isinstance(function, ast.Attribute) and function.value is old:
        function = ast.Attribute(new, function.attr, ast.Load())
    args = [new if each is old else each for each in call.args]
    return ast.Call(function, args, call.keywords)


def _into(node: ast.BinOp, operand_of: Operand) -> Iterator[Any]:
    """Yield ``f(x * y)`` for ``f(x) * y`` and ``y * f(x)``."""
    sides = [(node.left, node.right)]
    sides += [(node.right, node.left)] if isinstance(node.op, (ast.Mult, ast.Add)) else []
    for call, other in sides:
        if isinstance(call, ast.Call) and _name(call) in _THROUGH:
            inner = operand_of(call)
            if inner is not None:
                yield _of(call, inner, ast.BinOp(inner, node.op, other))


def _out_of(node: ast.Call, operand_of: Operand) -> Iterator[Any]:
    """Yield ``f(x) * y`` for ``f(x * y)``."""
    inner = operand_of(node) if _name(node) in _THROUGH else None
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, (*_SUMS, *_PRODUCTS)):
        yield ast.BinOp(_of(node, inner, inner.left), inner.op, inner.right)
        if isinstance(inner.op, (ast.Mult, ast.Add)):
            yield ast.BinOp(_of(node, inner, inner.right), inner.op, inner.left)
