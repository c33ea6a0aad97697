"""The source of forward and backward: which argument a local name holds, what functions take.

A local name stands for the argument it holds if it is assigned once; what forward saves comes back
in backward. Must not know what is read of it.
"""

from __future__ import annotations

import ast
import builtins
import enum
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.sources import tree_of


class Use(enum.StrEnum):
    """How an argument is used."""

    CALLED, NUMBER, AXIS = "called", "number", "axis"
    WINDOW = "window"  # the length of a slice
    INDEX, MASK = "index", "mask"
    OVERWRITTEN = "overwritten"  # an index of elements that are written: none may come twice
    # The entries of a sparse matrix, their columns, and where its rows start.
    ENTRIES, COLUMNS, POINTERS = "entries", "columns", "pointers"
    SORTED, LOOKED_UP = "sorted", "looked up"  # a table, and what is looked up in one
    TENSOR, ARRAY = "tensor", "array"
    FOREIGN = "foreign"  # an array, used in a way that tensors are not
    CONJUGATED = "conjugated"
    GRADIENT, UNGIVEN = "gradient", "ungiven"  # backward returns one for it, or None
    EQUAL = "equal"  # compared with a whole number: one itself, if it is no tensor


class Takes(NamedTuple):
    """A function or method, and how it uses one operand.

    Attributes
    ----------
    function : str
    position : int
        Of the operand; that of a method's owner is 0.
    keyword : str
    use : str
        One of the uses above; empty for one that tells nothing.
    same : bool
        Whether the result has the elements of the operand, at the same places.
    """

    function: str
    position: int
    keyword: str = ""
    use: str = ""
    same: bool = False


TAKES = (
    Takes("numpy", 0, use=Use.TENSOR, same=True),
    Takes("detach", 0, use=Use.TENSOR, same=True),
    Takes("clone", 0, use=Use.TENSOR, same=True),
    Takes("data_array", 0, use=Use.TENSOR, same=True),
    Takes("item", 0, use=Use.TENSOR),
    Takes("item", 0, use=Use.NUMBER),
    Takes("copy", 0, same=True),
    Takes("astype", 0, same=True),
    Takes("asarray", 0, same=True),
    Takes("array", 0, same=True),
    Takes("ascontiguousarray", 0, same=True),
    Takes("float", 0, use=Use.NUMBER),
    Takes("int", 0, use=Use.NUMBER),
    Takes("eye", 0, use=Use.NUMBER),
    *(Takes(name, k, use=Use.NUMBER) for name in ("range", "arange") for k in range(3)),
    Takes("bincount", 0, use=Use.INDEX),
    Takes("take", 1, "indices", Use.INDEX),
    Takes("take_along_axis", 1, "indices", Use.INDEX),
    Takes("at", 1, "indices", Use.INDEX),
    Takes("index_select", 2, "index", Use.INDEX),
    Takes("index_add", 2, "index", Use.INDEX),
    Takes("gather", 2, "index", Use.INDEX),
    Takes("scatter_add", 2, "index", Use.INDEX),
    Takes("scatter", 2, "index", Use.OVERWRITTEN),
    Takes("index_copy", 2, "index", Use.OVERWRITTEN),
    Takes("index_fill", 2, "index", Use.OVERWRITTEN),
    Takes("put_along_axis", 1, "indices", Use.OVERWRITTEN),
    Takes("masked_fill", 1, "mask", Use.MASK),
    Takes("all", 0, use=Use.MASK),
    Takes("any", 0, use=Use.MASK),
    Takes("conj", 0, use=Use.CONJUGATED),
    Takes("conjugate", 0, use=Use.CONJUGATED),
    Takes("searchsorted", 0, "a", Use.SORTED),
    Takes("searchsorted", 1, "v", Use.LOOKED_UP),
    Takes("digitize", 0, "x", Use.LOOKED_UP),
    Takes("digitize", 1, "bins", Use.SORTED),
    Takes("bucketize", 0, "input", Use.LOOKED_UP),
    Takes("bucketize", 1, "boundaries", Use.SORTED),
    Takes("histogram", 1, "bins", Use.SORTED),
    Takes("interp", 0, "x", Use.LOOKED_UP),
    Takes("interp", 1, "xp", Use.SORTED),
)


def function_of(fn: Any) -> Any:
    """Return the tree of a function's definition, None if it has no source."""
    tree = tree_of(fn)
    nodes = ast.walk(tree) if tree is not None else ()
    return next((n for n in nodes if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)


class Source:
    """The source of forward, or of backward with what is known of forward."""

    def __init__(self, fn: Any, forward: Source | None = None) -> None:
        function = function_of(fn)
        body = function.body if isinstance(function.body, list) else [function.body]
        self.nodes = [node for statement in body for node in ast.walk(statement)]
        self.results = [n.value for n in self.nodes if isinstance(n, ast.Return) and n.value]
        if isinstance(function, ast.Lambda):
            self.results = [function.body]
        self.globals = getattr(fn, "__globals__", {})
        a = function.args
        self.parameters = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        self.forward = forward
        self.saved: dict[str, str] = {}  # from the name that forward saves to the argument
        self.order: list[str] = []  # what forward saves by position
        self.names: dict[str, str] = {} if forward else {n: n for n in self.parameters}
        self.assigned = [pair for node in self.nodes for pair in _assigned(node)]
        self._learn_names([name for name, _ in self.assigned])
        for node in self.nodes:
            self._note_saved(node) if forward is None else self._unpack(node, forward.order)

    def _learn_names(self, targets: list[str]) -> None:
        for name, node in self.assigned:
            found = self.name(node)
            if found and found != name and targets.count(name) == 1:
                self.names[name] = found
        for name in targets:
            if self.names.get(name) == name:  # it is assigned something else
                del self.names[name]

    def _note_saved(self, node: ast.AST) -> None:
        """Note what forward saves for backward, by `save_for_backward` or on the context."""
        if isinstance(node, ast.Call) and ends(node.func, "save_for_backward"):
            self.order = [self.name(value) for value in node.args]
            self.order += [self.name(k.value) for k in node.keywords]
            self.saved |= {k.arg: self.name(k.value) for k in node.keywords if k.arg}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            self.saved[node.targets[0].attr] = self.name(node.value)

    def _unpack(self, node: ast.AST, order: list[str]) -> None:
        """Note the names that backward gives to the saved tensors."""
        if isinstance(node, ast.Assign) and ends(node.value, "saved_tensors"):
            for part, name in zip(elements(node.targets[0]), order, strict=False):
                if isinstance(part, ast.Name) and name:
                    self.names[part.id] = name

    def name(self, node: ast.AST | None) -> str:
        """Return the argument whose elements an expression holds; empty if it holds none's."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute) and self.forward is not None:
            return str(self.forward.saved.get(node.attr, ""))
        if isinstance(node, ast.Call):
            same = [t for t in TAKES if t.same and ends(node.func, t.function)]
            return self.name(self.operand(node, same[0])) if same else ""
        return ""

    def number(self, node: ast.AST | None) -> str:
        """Return the argument that a number is made of, as in ``-np.exp(rate)``."""
        if isinstance(node, ast.UnaryOp):
            return self.number(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of_elements = isinstance(getattr(np, node.func.attr, None), np.ufunc)
            return self.number(node.args[0]) if of_elements else self.name(node)
        return self.name(node)

    def operand(self, node: ast.Call, takes: Takes) -> ast.AST | None:
        """Return the operand of a call of a function or method; None if it has none there."""
        given: list[ast.AST] = list(node.args)
        if isinstance(node.func, ast.Attribute) and self.module(node.func.value) is None:
            given.insert(0, node.func.value)
        if takes.position < len(given):
            return given[takes.position]
        return next((k.value for k in node.keywords if k.arg == takes.keyword), None)

    def module(self, node: ast.AST) -> str | None:
        """Return the name of the module that an expression is, or is of; None for others."""
        while isinstance(node, ast.Attribute):
            node = node.value
        known = self.globals.get(node.id) if isinstance(node, ast.Name) else None
        local = isinstance(node, ast.Name) and node.id in self.names
        return known.__name__ if isinstance(known, types.ModuleType) and not local else None


# -- parts of a tree -------------------------------------------------------------------------------
def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a statement assigns, each with what it is assigned."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, (ast.AugAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        names = (item for item in ast.walk(node.target) if isinstance(item, ast.Name))
        yield from ((item.id, node.target) for item in names)


def _pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    parts, values = elements(target), elements(value)
    if len(values) != len(parts):
        values = [target] * len(parts)
    for part, one in zip(parts, values, strict=True):
        yield from _pairs(part, one)


def elements(node: ast.AST) -> list[Any]:
    """Return the elements of a tuple or a list that is written out; none of other expressions."""
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else []


def brackets(node: ast.AST) -> list[Any]:
    """Return what stands in the brackets that pick elements of an array, apart."""
    if not isinstance(node, ast.Subscript) or is_shape(node.value):
        return []
    return elements(node.slice) if isinstance(node.slice, ast.Tuple) else [node.slice]


def ends(node: ast.AST, name: str) -> bool:
    """Return whether an expression is a name, or ends with an attribute; perhaps in place."""
    found: str = getattr(node, "attr" if isinstance(node, ast.Attribute) else "id", "")
    return found == name or found == f"{name}_"


def is_cast(node: ast.Call, takes: Takes) -> bool:
    """Return whether a method of the name of one of Python's functions is called."""
    return takes.use == Use.NUMBER and hasattr(builtins, takes.function) != isinstance(
        node.func, ast.Name
    )


def is_sparse(node: ast.AST) -> bool:
    """Return whether a function makes a matrix of compressed rows, or columns."""
    return any(ends(node, f"cs{k}_{kind}") for k in "rc" for kind in ("matrix", "array"))


def is_shape(node: ast.AST) -> bool:
    """Return whether an expression is a shape, or ``np.r_``, of which brackets take no element."""
    return any(ends(node, name) for name in ("shape", "r_", "c_"))


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


def at_least(axis: int) -> int:
    """Return the least number of axes of an array that has this axis."""
    return axis + 1 if axis >= 0 else -axis
