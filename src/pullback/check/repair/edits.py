"""The grammar of edits: what an expression, or a statement, may have been meant to be.

Each row of the tables is one kind of slip, with how unlikely it is: a sign, an operator, an order,
an end of a range cost less than a missing function. What comes is made of what is there.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from pullback.check.repair.sites import kind_of, shape_of
from pullback.check.repair.source import Places, Source, replaced
from pullback.core.tensor.tensor import Tensor

_LOAD = ast.Load()


class Form(NamedTuple):
    """An expression with x in it, for values of some kinds and shapes."""

    text: str
    cost: float
    kinds: str = "fc"
    fits: Callable[[tuple[int, ...]], bool] = lambda shape: True


class Row(NamedTuple):
    """One kind of slip: from an expression, or a statement, to what may have been meant."""

    name: str
    cost: float
    of: Callable[[Any, Source], Iterable[Any]]


def value_of(node: Any) -> Any:
    """Return what an expression of the source had; None if it was not evaluated."""
    if isinstance(node, ast.Constant):
        return node.value
    seen = getattr(node, "seen", None)
    return None if seen is None else seen.value


def _shape(node: Any) -> tuple[int, ...]:
    return shape_of(value_of(node))


def array_of(node: Any) -> Any:
    """Return the expression of the array that a call is of: a method's owner, or an argument."""
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return next((each for each in [*owner, *node.args[:1]] if _shape(each)), None)


def is_constant(node: Any) -> bool:
    """Return whether an expression is a literal, with a sign or without."""
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


@functools.cache
def _parsed(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def made(text: str, **nodes: Any) -> Any:
    """Return an expression, with others in the places of its names."""
    tree = _parsed(text)
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return replaced(tree, [(node, nodes[node.id]) for node in names if node.id in nodes])


# -- forms -----------------------------------------------------------------------------------------
def _has_axes(shape: tuple[int, ...]) -> bool:
    return len(shape) > 0


def _is_vector(shape: tuple[int, ...]) -> bool:
    return len(shape) == 1


def _is_matrix(shape: tuple[int, ...]) -> bool:
    return len(shape) > 1


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1]


FORMS = (
    Form("np.conj(x)", 0.8, "c"),
    Form("x.T", 0.9, "fcib", _is_square),
    Form("x.swapaxes(-1, -2)", 0.9, "fc", lambda shape: len(shape) > 2 and _is_square(shape[-2:])),
    Form("-x", 1.0, "fci"),
    Form("~x", 1.0, "b", _has_axes),
    Form("not x", 1.0, "b", lambda shape: not shape),
    Form("x + 1", 1.1, "i"),
    Form("x - 1", 1.1, "i"),
    Form("np.argsort(x)", 1.2, "i", _is_vector),
    Form("x.real", 1.6, "c"),
    Form("x[::-1]", 1.7, "fci", _has_axes),
    Form("np.flip(x, -1)", 1.8, "fc", _is_matrix),
    Form("(x + x.T) / 2", 1.9, "fc", _is_square),
    Form("x + x.T", 1.9, "fc", _is_square),
    Form("2 * x", 2.0, "fci"),
    Form("x / 2", 2.0),
    Form("x ** 2", 2.0),
    Form("1 - x", 2.0),
    Form("1 / x", 2.0),
    Form("np.roll(x, 1)", 2.0, "fc", _is_vector),
    Form("np.roll(x, -1)", 2.0, "fc", _is_vector),
    Form("np.cumsum(x[::-1])[::-1]", 2.5, "f", _is_vector),
    Form("np.cumsum(x, 0)", 2.6, "f", _has_axes),
)


# -- operators, operands, constants ----------------------------------------------------------------
_FAMILIES: tuple[tuple[type[ast.operator], ...], ...] = (
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.Mult, ast.Add),
    (ast.Mult, ast.MatMult),
    (ast.FloorDiv, ast.Mod, ast.Div),
    (ast.BitAnd, ast.BitOr),
)
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_COMMUTING = (ast.Add, ast.Mult, ast.BitAnd, ast.BitOr)


def _operators(node: Any, source: Source) -> Iterator[Any]:
    if isinstance(node, ast.BinOp):
        ops = itertools.chain(*(family for family in _FAMILIES if type(node.op) in family))
        yield from (ast.BinOp(node.left, op(), node.right) for op in dict.fromkeys(ops))
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from (ast.Compare(node.left, [op()], node.comparators) for op in _COMPARED)
    elif isinstance(node, ast.BoolOp):
        yield from (ast.BoolOp(op(), node.values) for op in (ast.And, ast.Or))


def _orders(node: Any, source: Source) -> Iterator[Any]:
    """Yield operands, branches or arguments in another order."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, _COMMUTING):
        yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Call):
        numbers = [j for j, each in enumerate(node.args) if kind_of(value_of(each))]
        for a, b in itertools.combinations(numbers, 2):
            yield ast.Call(node.func, _swapped(node.args, a, b), node.keywords)
    if isinstance(value_of(node), (list, tuple, range, zip, enumerate, reversed)):
        yield made("list(x)[::-1]", x=node)


def _swapped(items: Sequence[Any], a: int, b: int) -> list[Any]:
    found = list(items)
    found[a], found[b] = found[b], found[a]
    return found


def _parts(node: Any, source: Source) -> Iterator[Any]:
    """Yield an operand, a branch, or what a function is of, alone."""
    names = ("left", "right", "body", "orelse")
    parts = [getattr(node, name, None) for name in names] + getattr(node, "values", [])
    parts += [array_of(node), *node.args[:1]] if isinstance(node, ast.Call) else []
    yield from (part for part in parts if part is not None and _shape(part) == _shape(node))


def _constants(node: Any, source: Source) -> Iterator[Any]:
    value = value_of(node) if is_constant(node) else None
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, str) and "->" in value:  # the letters of an Einstein sum
        for j in range(len(value) - 1):
            if value[j : j + 2].isalpha():
                yield ast.Constant(value[:j] + value[j + 1] + value[j] + value[j + 2 :])
    elif isinstance(value, (int, float, complex)):
        steps = [value + 1, value - 1, -value, value + 2, value - 2, 2 * value, value / 2]
        yield from map(ast.Constant, dict.fromkeys([*steps, 1 / (value or 1)]))


# -- brackets --------------------------------------------------------------------------------------
def _brackets(node: Any, source: Source) -> Iterator[Any]:
    """Yield the same operands and operations in other groups."""
    if not isinstance(node, ast.BinOp):
        return
    left, op, right = node.left, node.op, node.right
    if isinstance(right, ast.BinOp):
        yield ast.BinOp(ast.BinOp(left, op, right.left), right.op, right.right)
    if isinstance(left, ast.BinOp):
        yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, op, right))
        yield ast.BinOp(ast.BinOp(left.left, op, right), left.op, left.right)
    elif isinstance(left, ast.UnaryOp):
        yield ast.UnaryOp(left.op, ast.BinOp(left.operand, op, right))


def _into_calls(node: Any, source: Source) -> Iterator[Any]:
    """Yield ``f(x * y)`` for ``f(x) * y``, and the opposite."""
    if isinstance(node, ast.BinOp):
        for call, other in ((node.left, node.right), (node.right, node.left)):
            inner = array_of(call) if isinstance(call, ast.Call) else None
            if inner is not None:
                yield replaced(call, [(inner, ast.BinOp(inner, node.op, other))])
    elif isinstance(node, ast.Call):
        inner = array_of(node)
        if isinstance(inner, ast.BinOp):
            yield ast.BinOp(replaced(node, [(inner, inner.left)]), inner.op, inner.right)
            yield ast.BinOp(inner.left, inner.op, replaced(node, [(inner, inner.right)]))


# -- calls -----------------------------------------------------------------------------------------
def _functions(node: Any, source: Source) -> Iterator[Any]:
    """Yield calls of other functions of the same module with the same arguments."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    owner, count = node.func.value, len(node.args)
    module = source.known.get(owner.id) if isinstance(owner, ast.Name) else None
    if not isinstance(module, ModuleType):  # a method is a function of its library
        found, count = value_of(owner), count + 1
        if not kind_of(found):
            return
        module = sys.modules["pullback"] if isinstance(found, Tensor) else np
    for other in functions_like(module, node.func.attr, count):
        yield ast.Call(ast.Attribute(owner, other, _LOAD), node.args, node.keywords)


@functools.cache
def functions_like(module: ModuleType, name: str, count: int) -> list[str]:
    """Return the functions of a module that take as many arguments of the same names."""
    own = _arguments(getattr(module, name, None), count)
    names = [each for each in sorted(vars(module)) if each != name and not each.startswith("_")]
    return [each for each in names if own and _arguments(vars(module)[each], count) == own]


def _arguments(function: Any, count: int) -> Any:
    """Return the first arguments of a function; None if it cannot be called with these alone."""
    if isinstance(function, np.ufunc):
        return "ufunc" if function.nin == count and function.nout == 1 else None
    inner = inspect.unwrap(function) if callable(function) else None
    if not isinstance(inner, FunctionType):
        return None
    code, optional = inner.__code__, len(inner.__defaults__ or ())
    fits = code.co_argcount - optional <= count <= code.co_argcount
    return code.co_varnames[:count] if fits else None


def _keywords(node: Any, source: Source) -> Iterator[Any]:
    """Yield a call with an axis, or without one of its keywords."""
    if isinstance(node, ast.Call):
        for word in node.keywords:
            yield ast.Call(node.func, node.args, [each for each in node.keywords if each != word])
        for axis in range(len(_shape(array_of(node)))):
            if "axis" not in [word.arg for word in node.keywords]:
                word = ast.keyword("axis", ast.Constant(axis))
                yield ast.Call(node.func, node.args, [*node.keywords, word])


def _scans(node: Any, source: Source) -> Iterator[Any]:
    """Yield a call that runs through its array from the end, or no longer does."""
    call = _turned(node)
    inner = array_of(call) if isinstance(call, ast.Call) else None
    if inner is not None and _turned(inner) is not None:
        yield replaced(call, [(inner, _turned(inner))])
    inner = array_of(node) if isinstance(node, ast.Call) else None
    if inner is not None and _shape(inner) == _shape(node):
        words = [word.value for word in node.keywords if word.arg == "axis"]
        axis = [a for a in [*words, *node.args[1:2]] if kind_of(value_of(a)) == "i"]
        first = made("np.flip(x, a)", x=inner, a=axis[0] if axis else ast.Constant(0))
        yield replaced(first, [(first.args[0], replaced(node, [(inner, first)]))])


def _turned(node: Any) -> Any:
    """Return what an expression reverses: ``x`` of ``x[::-1]`` and ``np.flip(x)``; else None."""
    if isinstance(node, ast.Subscript):
        return node.value if ast.unparse(node.slice) == "::-1" else None
    is_flip = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("flip")
    return array_of(node) if is_flip else None


# -- indices ---------------------------------------------------------------------------------------
_SLICES = tuple(_parsed(f"x[{part}]").slice for part in ("1:", ":-1", ":", "::-1", "2:", ":-2"))
_NEW_AXES = tuple(_parsed(text).slice for text in ("x[:, None]", "x[..., None]"))


def _indices(node: Any, source: Source) -> Iterator[Any]:
    if isinstance(node, ast.Subscript):
        yield from (ast.Subscript(node.value, new, node.ctx) for new in other_indices(node.slice))
        if isinstance(value_of(node.slice), int):  # a sum over the axis
            yield made("x.sum(0)", x=node.value)


def other_indices(index: Any) -> Iterator[Any]:
    """Yield other indices than one: other slices, neighbours, the parts in another order."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for j, part in enumerate(parts):
        for new in _positions(part):
            changed = [*parts[:j], new, *parts[j + 1 :]]
            yield new if len(parts) == 1 else ast.Tuple(changed, _LOAD)
    for j in range(len(parts) - 1):
        yield ast.Tuple(_swapped(parts, j, j + 1), _LOAD)


def _positions(part: Any) -> Iterator[Any]:
    if isinstance(part, ast.Constant) and part.value is None:  # an axis is added elsewhere
        yield from _NEW_AXES
    if isinstance(part, ast.Slice):
        yield from _SLICES
        for end in filter(None, (part.lower, part.upper)):
            yield from (replaced(part, [(end, made(step, x=end))]) for step in ("x + 1", "x - 1"))


EXPRESSIONS = (
    Row("sign too many", 0.9, lambda node, source: filter(None, [getattr(node, "operand", None)])),
    Row("operator", 1.0, _operators),
    Row("order", 1.1, _orders),
    Row("part alone", 1.2, _parts),
    Row("constant", 1.2, _constants),
    Row("index", 1.2, _indices),
    Row("scan", 1.3, _scans),
    Row("function", 1.3, _functions),
    Row("brackets", 1.3, _brackets),
    Row("factor in a call", 1.5, _into_calls),
    Row("keyword", 1.6, _keywords),
)


def edits_of(node: Any, source: Source) -> Iterator[tuple[Any, float]]:
    """Yield what one expression may have been meant to be, with how unlikely that is."""
    for row in EXPRESSIONS:
        yield from ((new, row.cost) for new in row.of(node, source))
    kind = "" if is_constant(node) else kind_of(value_of(node))
    for form in FORMS if kind else ():
        if kind in form.kinds and form.fits(_shape(node)):
            yield made(form.text, x=node), form.cost


# -- two expressions -------------------------------------------------------------------------------
def exchanges(tree: ast.FunctionDef) -> Iterator[tuple[Places, float]]:
    """Yield two expressions of a statement, or of two that follow each other, exchanged."""
    found = [(each.lineno, _by_text(each)) for each in ast.walk(tree) if isinstance(each, ast.stmt)]
    lines = [own for _, own in sorted(found, key=lambda pair: pair[0]) if own]
    for own, following in itertools.pairwise([*lines, {}]):
        pairs = [(a, b, 0.0) for a, b in itertools.combinations(own.values(), 2)]
        pairs += [(a, b, 0.4) for a, b in itertools.product(own.values(), following.values())]
        for a, b, more in pairs:
            if _alike(a[0], b[0]):
                named = all(isinstance(node, (ast.Name, ast.Attribute)) for node in (a[0], b[0]))
                places = [(old, b[0]) for old in a] + [(old, a[0]) for old in b]
                yield places, (1.4 if named else 1.9) + more


def _by_text(statement: ast.stmt) -> dict[str, list[Any]]:
    """Return the expressions of a statement, not of those in it, by how they are written."""
    found: dict[str, list[Any]] = {}
    nodes: list[Any] = [statement]
    for node in nodes:
        nodes += [c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt)]
        if isinstance(node, ast.expr) and kind_of(value_of(node)):
            found.setdefault(ast.unparse(node), []).append(node)
    return found


def _alike(a: Any, b: Any) -> bool:
    """Return whether two expressions could be exchanged: neither is a part of the other."""
    if kind_of(value_of(a)) != kind_of(value_of(b)) or _shape(a) != _shape(b):
        return False
    start, end = (a.lineno, a.col_offset), (a.end_lineno, a.end_col_offset)
    return (b.end_lineno, b.end_col_offset) <= start or end <= (b.lineno, b.col_offset)


# -- statements ------------------------------------------------------------------------------------
def _target(node: Any) -> Any:
    """Return the only thing that a statement assigns to; None if it is another one."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return targets[0] if isinstance(node, (ast.Assign, ast.AugAssign)) else None


def _assigned(node: Any, source: Source) -> Iterator[Any]:
    """Yield what is added, subtracted, assigned or made anew instead."""
    target = _target(node)
    if isinstance(target, (ast.Name, ast.Subscript)):
        read = copy.copy(target)
        read.ctx = _LOAD
        op: ast.operator = getattr(node, "op", ast.Add())
        families = [family for family in _FAMILIES[:2] if type(op) in family]
        for other in dict.fromkeys([type(op), *itertools.chain(*families)]):
            yield ast.Assign([target], ast.BinOp(read, other(), node.value))
            if isinstance(target, ast.Subscript):
                yield ast.AugAssign(target, other(), node.value)
        yield ast.Assign([target], node.value)


def _at_every_index(node: Any, source: Source) -> Iterator[Any]:
    """Yield what adds as often as an index occurs: NumPy's ``x[i] += y`` adds once."""
    target = _target(node)
    adds = isinstance(getattr(node, "op", ast.Add()), ast.Add)
    if isinstance(target, ast.Subscript) and adds and not _has_slice(target.slice):
        call = made("np.add.at(x, i, y)", x=target.value, i=target.slice, y=node.value)
        yield ast.Expr(call)


def _has_slice(index: Any) -> bool:
    return any(isinstance(each, ast.Slice) for each in ast.walk(index))


def _elsewhere(node: Any, source: Source) -> Iterator[Any]:
    """Yield what writes to other elements."""
    target = _target(node)
    for index in other_indices(target.slice) if isinstance(target, ast.Subscript) else ():
        yield replaced(node, [(target.slice, index)])


def _copies(node: Any, source: Source) -> Iterator[Any]:
    """Yield a statement that keeps copies: what it keeps may be changed afterwards."""
    for each in ast.walk(node.value) if isinstance(node, ast.Expr) else ():
        if isinstance(each, ast.Name) and isinstance(value_of(each), np.ndarray):
            yield replaced(node, [(each, made("x.copy()", x=each))])


def _dropped(node: Any, source: Source) -> Iterator[Any]:
    if isinstance(node, (ast.AugAssign, ast.Expr)):
        yield ast.Pass()


STATEMENTS = (
    Row("indices that occur twice", 0.9, _at_every_index),
    Row("copy", 0.9, _copies),
    Row("assignment", 1.0, _assigned),
    Row("place", 1.2, _elsewhere),
    Row("statement too many", 1.7, _dropped),
)


def statements(source: Source) -> Iterator[tuple[Places, float]]:
    """Yield other statements than those of a function; all that add, and two in another order."""
    simple = (ast.Assign, ast.AugAssign, ast.Expr)
    nodes = [each for each in ast.walk(source.tree) if isinstance(each, simple)]
    for node, row in itertools.product(nodes, STATEMENTS):
        yield from (([(node, new)], row.cost) for new in row.of(node, source))
    adding = [(node, new) for node in nodes for new in _at_every_index(node, source)]
    if len(adding) > 1:
        yield adding, 1.0
    blocks = (getattr(each, "body", None) for each in ast.walk(source.tree))
    for block in (each for each in blocks if isinstance(each, list)):
        for a, b in itertools.pairwise(block):
            if isinstance(a, simple) and isinstance(b, simple):
                yield [(a, b), (b, a)], 1.4
