"""The parts of a source that tell how arguments are used: what functions take, parts of a tree.

Must not know what is read of them.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

from pullback.check.sources import tree_of


class Use(enum.StrEnum):
    """How an argument is used."""

    CALLED, NUMBER, AXIS = "called", "number", "axis"
    INDEX, MASK = "index", "mask"
    OVERWRITTEN = "overwritten"  # an index of elements that are written: none may come twice
    EQUAL = "equal"  # compared with a whole number: one itself, if it is no tensor
    SORTED, LOOKED_UP = "sorted", "looked up"  # a table, and what is looked up in one
    TENSOR, ARRAY = "tensor", "array"
    CONJUGATED = "conjugated"
    GRADIENT, UNGIVEN = "gradient", "ungiven"  # backward returns one for it, or None


class Takes(NamedTuple):
    """A function or method, and how it uses one operand.

    Attributes
    ----------
    function : str
    position : int
        Of the operand; that of a method's owner is 0.
    use : str
        One of the uses above; empty for one that tells nothing.
    same : bool
        Whether the result has the elements of the operand, at the same places.
    """

    function: str
    position: int
    use: str = ""
    same: bool = False


TAKES = (
    Takes("numpy", 0, Use.TENSOR, same=True),
    Takes("detach", 0, Use.TENSOR, same=True),
    Takes("copy", 0, same=True),
    Takes("astype", 0, same=True),
    Takes("asarray", 0, same=True),
    Takes("array", 0, same=True),
    Takes("item", 0, Use.NUMBER),
    Takes("float", 0, Use.NUMBER),
    Takes("int", 0, Use.NUMBER),
    *(Takes(name, k, Use.NUMBER) for name in ("range", "arange") for k in range(3)),
    *(Takes("save_for_backward", k, Use.TENSOR) for k in range(1, 9)),
    Takes("bincount", 0, Use.INDEX),
    Takes("take", 1, Use.INDEX),
    Takes("take_along_axis", 1, Use.INDEX),
    Takes("at", 1, Use.INDEX),
    Takes("gather", 2, Use.INDEX),
    Takes("scatter", 2, Use.OVERWRITTEN),
    Takes("put_along_axis", 1, Use.OVERWRITTEN),
    Takes("where", 0, Use.MASK),
    Takes("conj", 0, Use.CONJUGATED),
    Takes("conjugate", 0, Use.CONJUGATED),
    Takes("searchsorted", 0, Use.SORTED),
    Takes("searchsorted", 1, Use.LOOKED_UP),
    Takes("digitize", 0, Use.LOOKED_UP),
    Takes("digitize", 1, Use.SORTED),
    Takes("interp", 0, Use.LOOKED_UP),
    Takes("interp", 1, Use.SORTED),
)


# -- parts of a tree -------------------------------------------------------------------------------
def function_of(fn: Any) -> Any:
    """Return the tree of a function's definition, None if it has no source."""
    tree = tree_of(fn) if fn is not None else None
    nodes = ast.walk(tree) if tree is not None else ()
    return next((n for n in nodes if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)


def nodes_of(function: Any) -> list[ast.AST]:
    """Return all parts of a function's body."""
    body = function.body if isinstance(function.body, list) else [function.body]
    return [node for statement in body for node in ast.walk(statement)]


def assigned(node: Any) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a statement assigns an expression, each with that."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        match target, node.value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                pairs = list(zip(targets, values, strict=False))
            case _, value:
                pairs = [(target, value)]
        yield from ((t.id, value) for t, value in pairs if isinstance(t, ast.Name))


def brackets(node: ast.Subscript) -> list[ast.AST]:
    """Return what stands in the brackets that pick elements of an array, apart."""
    if is_shape(node.value):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def is_shape(node: ast.AST) -> bool:
    """Return whether an expression is a shape, or ``np.r_``, of which brackets take no element."""
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "r_", "c_")


def ends(node: ast.AST, name: str) -> bool:
    """Return whether an expression is a name, or ends with an attribute; perhaps in place."""
    found: str = getattr(node, "attr" if isinstance(node, ast.Attribute) else "id", "")
    return found in (name, f"{name}_")


def transposed(node: ast.AST) -> ast.AST | None:
    """Return what an expression is the transpose of, None if it is none."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "T" else None


def is_none(node: ast.AST) -> bool:
    """Return whether an expression is None."""
    return isinstance(node, ast.Constant) and node.value is None


def may_be_none(node: ast.AST) -> bool:
    """Return whether an expression is None, or is under some condition."""
    if isinstance(node, ast.IfExp):
        return may_be_none(node.body) or may_be_none(node.orelse)
    return is_none(node)


def whole(node: ast.AST) -> int | None:
    """Return the whole number that is written, None if none is."""
    try:
        found = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return found if type(found) is int else None


def at_least(axis: ast.AST) -> int:
    """Return the least number of axes of an array that has this axis, 0 if it is not written."""
    found = whole(axis)
    return 0 if found is None else found + 1 if found >= 0 else -found
