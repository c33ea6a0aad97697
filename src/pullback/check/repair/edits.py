"""Small changes of a function, at each of its expressions: what may have been meant.

A change is cheap if people often slip there: a sign, an operator, exchanged operands, a name for
another, an axis, an end of a range. Factors and terms that are missing cost more. Every change is
an expression that stands in the place of another, and keeps its shape, so that what follows runs.
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from pullback.check.repair.atoms import is_array, kind_of, plain, shape_of
from pullback.check.repair.quoting import place_of
from pullback.check.repair.regrouping import regrouped
from pullback.check.repair.sites import Seen, Site


class Edit:
    """What comes in the place of one expression, or of several that belong together.

    Parameters
    ----------
    nodes : dict of int to ast.expr or callable
        What stands at each site then, or what makes that: of most edits the turn never comes.
    cost : float
        The less likely, the higher.
    """

    __slots__ = ("_nodes", "cost")

    def __init__(self, nodes: dict[int, Any], cost: float) -> None:
        self._nodes = nodes
        self.cost = cost

    @property
    def sites(self) -> Iterable[int]:
        """The sites of the expressions."""
        return self._nodes

    @property
    def nodes(self) -> dict[int, Any]:
        """What stands at each site then."""
        return {k: node() if callable(node) else node for k, node in self._nodes.items()}


# What an expression may have been meant to be, with x in its place: by the kind of its numbers.
_FLOATS = {
    "-x": 1.0, "2 * x": 2.0, "x / 2": 2.0, "x ** 2": 2.0, "1 - x": 2.0, "1 / x": 2.0,
    "np.abs(x)": 2.2, "np.sqrt(x)": 2.4, "np.exp(x)": 2.8, "np.cumsum(x, 0)": 2.6,
}  # fmt: skip
_TEMPLATES = {
    "f": _FLOATS,
    "c": {"np.conj(x)": 0.8, "x.real": 1.6, **_FLOATS},
    "b": {"~x": 1.0},
    "i": {"x + 1": 1.1, "x - 1": 1.1, "-x": 1.2, "x + 2": 1.3, "x - 2": 1.3, "2 * x": 1.8},
    "": {},
}
_VECTORS = {"x[::-1]": 1.7, "np.roll(x, 1)": 2.0, "np.roll(x, -1)": 2.0}
_MATRICES = {"x[::-1]": 1.7, "np.flip(x, -1)": 1.8}
_SQUARES = {"x.T": 0.9, "x + x.T": 1.8, "(x + x.T) / 2": 1.9, **_MATRICES}
_NO_WRAP = {"-1": "np.append(x[1:], 0)", "1": "np.append(0, x[:-1])"}  # in place of a roll
_SHIFTS = {
    **dict.fromkeys(_NO_WRAP.values(), 2.3), "np.cumsum(x[::-1])[::-1]": 2.5,
    "np.diff(x, prepend=0)": 2.5, "np.diff(x, append=0)": 2.5,
}  # fmt: skip
UNFIT = 3.0  # how much unlikelier a change is that does not lead to what is needed
_ITERATORS = (range, zip, enumerate, reversed)
_ORDERS = {"np.argsort(x)": 1.2}
# Operators that are taken for each other.
_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add, ast.MatMult),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.MatMult: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_SWAPPABLE = (ast.Sub, ast.Div, ast.Pow, ast.MatMult)
# Functions that are taken for each other.
_FUNCTIONS = (
    "sin cos", "sinh cosh", "tan tanh", "maximum minimum", "max min", "max sum", "argmax argmin",
    "floor ceil", "mean sum", "zeros_like ones_like", "zeros ones", "sqrt square", "log log1p",
    "exp expm1", "triu tril", "inner outer", "dot outer", "greater greater_equal", "any all",
    "less less_equal", "abs sign", "fft ifft", "rfft irfft", "fft2 ifft2", "nansum nanmean",
)  # fmt: skip
_WITH_AXIS = {
    "sum", "mean", "cumsum", "cumprod", "flip", "roll", "diff", "max", "min", "prod", "argsort",
    "sort", "std", "var", "norm", "any", "all", "argmax", "argmin", "repeat", "concatenate",
    "stack", "take", "fft", "ifft", "median",
}  # fmt: skip
_SLICES = (":", "1:", ":-1", "::-1", "2:", ":-2", "1:-1", "::2", "1::2")


class Values:
    """What expressions had when they were first evaluated, or later, by where they stand."""

    def __init__(self, sites: Sequence[Site], seen: dict[int, Seen], time: int = 0) -> None:
        self._found: dict[Any, Any] = {}
        for k, at in seen.items():
            values = [at.value, *at.later]
            self._found[place_of(sites[k].node)] = values[min(time, len(values) - 1)]

    def of(self, node: Any) -> Any:
        """Return the value of an expression of the source; None if it is not known."""
        if isinstance(node, ast.Constant):
            return node.value
        return self._found.get(place_of(node))


def made(template: str, **nodes: Any) -> Any:
    """Return the expression of a template, with expressions in the places of its names."""
    return _filled(_parsed(template), nodes)


_PARSED: dict[str, Any] = {}


def _parsed(template: str) -> Any:
    if template not in _PARSED:
        _PARSED[template] = ast.parse(template, mode="eval").body
    return _PARSED[template]


def _filled(node: Any, nodes: dict[str, Any]) -> Any:
    """Return a tree with others in the places of names; parts without these are shared."""
    if isinstance(node, ast.Name):
        return nodes.get(node.id, node)
    if isinstance(node, list):
        return [_filled(each, nodes) for each in node]
    if not isinstance(node, ast.AST):
        return node
    return type(node)(**{name: _filled(value, nodes) for name, value in ast.iter_fields(node)})


# -- changes of one expression ---------------------------------------------------------------------
def edits_of(
    k: int, node: Any, value: Any, values: Values, is_met: Callable[[Any], bool] | None = None
) -> Iterator[Edit]:
    """Yield the changes of one expression that need nothing else.

    If it is known what the expression needs, `is_met` tells whether another value is that; what
    leads to others comes late.
    """
    for new, cost in _meant(node, value, values):
        yield Edit({k: new}, cost)
    if not is_constant(node) and (kind_of(value) or isinstance(value, str)):
        for template, cost in _templates(value):
            unfit = is_met is not None and not is_met(_value_of(template, value))
            yield Edit({k: partial(made, template, x=node)}, cost + UNFIT * unfit)


def _meant(node: Any, value: Any, values: Values) -> Iterator[tuple[Any, float]]:
    if isinstance(node, ast.BinOp):
        yield from _operands(node, value, values)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        others = [op for op in _COMPARED if op is not type(node.ops[0])]
        yield from ((ast.Compare(node.left, [op()], node.comparators), 1.0) for op in others)
    elif is_constant(node):
        yield from _constants(value)
        return
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, 0.9
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values), 1.2
        yield from ((each, 1.5) for each in node.values)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body), 1.2
        yield from ((each, 1.5) for each in (node.body, node.orelse))
    elif isinstance(node, ast.Call):
        yield from _calls(node, value, values)
    elif isinstance(node, ast.Subscript):
        yield from ((ast.Subscript(node.value, i, ast.Load()), c) for i, c in indices(node.slice))
    if isinstance(value, (list, tuple, *_ITERATORS)):
        yield made("list(x)[::-1]", x=node), 1.2
    turned = _unturned(node)
    if turned is not None:
        yield turned, 1.3
    yield from regrouped(node, lambda call: operand_of(call, values))


def _templates(value: Any) -> Iterator[tuple[str, float]]:
    """Yield what an expression may have been meant to be, by the kind and shape of its value."""
    found = dict(_TEMPLATES[kind_of(value)])
    if kind_of(value) == "b" and not is_array(value):
        found = {"not x": 1.0}
    shape = shape_of(value)
    if len(shape) >= 2:
        found |= _SQUARES if shape[-1] == shape[-2] else _MATRICES
    elif shape:
        found |= _VECTORS
        found |= _ORDERS if kind_of(value) == "i" else {}
        found |= _SHIFTS if kind_of(value) == "f" else {}
    for template, cost in found.items():
        if len(shape) > 2:
            template = template.replace("x.T", "x.swapaxes(-1, -2)")
        yield template, cost


def _value_of(template: str, value: Any) -> Any:
    """Return the value of a template for that of x; None if it has none."""
    with np.errstate(all="ignore"):
        try:
            return eval(_compiled(template), {"np": np, "x": plain(value)})
        except Exception:  # it is not for values of this kind
            return None


@functools.cache
def _compiled(template: str) -> CodeType:
    return compile(template, "<template>", "eval")


def is_constant(node: Any) -> bool:
    """Return whether an expression is a literal, with a sign or without."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant)


def _constants(value: Any) -> Iterator[tuple[Any, float]]:
    if isinstance(value, bool):
        yield ast.Constant(not value), 1.0
    elif isinstance(value, str):
        yield from ((ast.Constant(text), 1.2) for text in _subscripts(value))
    elif value is not None:
        steps = [value + 1, value - 1, value + 2, value - 2, -value, 2 * value, value / 2]
        steps += [1 / value] if value else []
        for j, new in enumerate(dict.fromkeys(steps)):
            if new != value:
                yield ast.Constant(new), 1.1 + 0.1 * j


def _subscripts(text: str) -> Iterator[str]:
    """Yield the other orders of neighbouring letters in an operand of an Einstein sum."""
    if "->" not in text:
        return
    for j in range(len(text) - 1):
        if text[j : j + 2].isalpha():
            yield text[:j] + text[j + 1] + text[j] + text[j + 2 :]


def _operands(node: ast.BinOp, value: Any, values: Values) -> Iterator[tuple[Any, float]]:
    """Yield one operand alone, other operators, and the operands exchanged."""
    for side in (node.left, node.right):
        found = values.of(side)
        if found is not None and shape_of(found) == shape_of(value):
            yield side, 1.2
    for op in _OPERATORS.get(type(node.op), ()):
        cost = 1.6 if op in (ast.Mult, ast.MatMult) and not isinstance(node.op, ast.Div) else 1.0
        yield ast.BinOp(node.left, op(), node.right), cost
    if isinstance(node.op, _SWAPPABLE):
        yield ast.BinOp(node.right, node.op, node.left), 1.1


# -- calls -----------------------------------------------------------------------------------------
def operand_of(node: ast.Call, values: Values) -> Any:
    """Return the expression of the array that a call is of: a method's owner, or an argument."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    found = [*([] if owner is None else [owner]), *node.args[:1]]
    return next((each for each in found if is_array(values.of(each))), None)


def _calls(node: ast.Call, value: Any, values: Values) -> Iterator[tuple[Any, float]]:
    first = node.args[0] if node.args else None
    owner = operand_of(node, values) or first
    operand = values.of(owner)
    if kind_of(value) and kind_of(operand) and shape_of(operand) == shape_of(value):
        yield owner, 1.4
        if is_array(operand) and first is owner:
            yield _from_the_end(node)
            yield from _shifted(node, operand)
    if any(isinstance(each, ast.Starred) for each in node.args):
        return
    for a, one in enumerate(node.args):
        for b in range(a + 1, len(node.args)):
            if kind_of(values.of(one)) and kind_of(values.of(node.args[b])):
                yield ast.Call(node.func, swapped(node.args, a, b), node.keywords), 1.1
    for word in node.keywords:
        rest = [each for each in node.keywords if each is not word]
        yield ast.Call(node.func, node.args, rest), 1.8
    if isinstance(node.func, ast.Attribute):
        yield from _other_functions(node, node.func, operand)


def _from_the_end(node: ast.Call) -> tuple[Any, float]:
    """Return a call that runs through its argument from the end."""
    axes = [each for each in node.keywords if each.arg == "axis"]
    turned = made("np.flip(x)", x=node.args[0])
    turned.args += node.args[1:2]
    turned.keywords = axes
    found = made("np.flip(x)", x=ast.Call(node.func, [turned, *node.args[1:]], node.keywords))
    found.args += node.args[1:2]
    found.keywords = axes
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return found, 1.2 if name.startswith("cum") else 2.2


def _shifted(node: ast.Call, operand: Any) -> Iterator[tuple[Any, float]]:
    """Yield for an array that is shifted round by one place one that does not wrap."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name == "roll" and len(node.args) == 2 and np.ndim(operand) == 1:
        template = _NO_WRAP.get(ast.unparse(node.args[1]))
        if template:
            yield made(template, x=node.args[0]), 1.2


def _turning(node: Any) -> Any:
    """Return what an expression reverses: ``x`` of ``x[::-1]`` and ``x.flip(0)``; None if none."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "::-1":
        return node.value
    is_flip = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not is_flip or node.func.attr != "flip":
        return None
    return node.args[0] if ast.unparse(node.func) in ("np.flip", "pb.flip") else node.func.value


def _unturned(node: Any) -> Any:
    """Return ``f(x)`` for a call that runs through its argument from the end; None for others."""
    call = _turning(node)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    inner = _turning(call.func.value)
    if inner is not None:  # a method's
        return ast.Call(ast.Attribute(inner, call.func.attr, ast.Load()), call.args, call.keywords)
    inner = _turning(call.args[0]) if call.args else None
    return None if inner is None else ast.Call(call.func, [inner, *call.args[1:]], call.keywords)


def _other_functions(
    node: ast.Call, function: ast.Attribute, operand: Any
) -> Iterator[tuple[Any, float]]:
    """Yield the calls of functions with similar names, and along other axes."""
    for pair in map(str.split, _FUNCTIONS):
        if function.attr in pair:
            other = pair[1 - pair.index(function.attr)]
            made_of = ast.Attribute(function.value, other, ast.Load())
            yield ast.Call(made_of, node.args, node.keywords), 1.3
    given = {each.arg for each in node.keywords} & {"axis", "dim"}
    if function.attr in _WITH_AXIS and not given:
        for axis in range(len(shape_of(operand))):
            word = ast.keyword("axis", ast.Constant(axis))
            yield ast.Call(node.func, node.args, [*node.keywords, word]), 1.6


def swapped(items: Sequence[Any], a: int, b: int) -> list[Any]:
    """Return a list with two items exchanged."""
    found = list(items)
    found[a], found[b] = found[b], found[a]
    return found


# -- indices ---------------------------------------------------------------------------------------
def indices(index: Any) -> Iterator[tuple[Any, float]]:
    """Yield other indices than one: other slices, neighbours, the parts in another order."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    for j, part in enumerate(parts):
        for new, cost in _positions(part):
            if len(parts) == 1:
                yield new, cost
            else:
                yield ast.Tuple([*parts[:j], new, *parts[j + 1 :]], ast.Load()), cost + 0.1
    for j in range(len(parts) - 1):
        yield ast.Tuple(swapped(parts, j, j + 1), ast.Load()), 1.1


def _positions(part: Any) -> Iterator[tuple[Any, float]]:
    if isinstance(part, ast.Constant) and part.value is None:  # an axis is added elsewhere
        yield from ((_parsed(f"x[{other}]").slice, 1.2) for other in (":, None", "..., None"))
    if isinstance(part, ast.Slice):
        text = ast.unparse(part)
        for other in _SLICES:
            if other != text:
                yield _parsed(f"x[{other}]").slice, 1.2
        for name in ("lower", "upper"):
            end = getattr(part, name)
            for step in ("x + 1", "x - 1") if end is not None else ():
                new = copy.copy(part)
                setattr(new, name, made(step, x=end))
                yield new, 1.3


# -- expressions that are exchanged ----------------------------------------------------------------
def exchanged(
    sites: Sequence[Site], seen: dict[int, Seen], fits: Callable[[Any], bool]
) -> Iterator[Edit]:
    """Yield the exchanges of two expressions in a statement, or in two that follow each other."""
    lines: dict[int, dict[str, list[int]]] = {}
    for k, at in seen.items():
        site = sites[k]
        known = kind_of(at.value) or isinstance(at.value, str)
        if known and fits(site.node):
            lines.setdefault(site.line, {}).setdefault(ast.unparse(site.node), []).append(k)
    ordered = sorted(lines)
    for line, following in itertools.pairwise([*ordered, 0]):
        own, others = list(lines[line].values()), list(lines.get(following, {}).values())
        for j, a in enumerate(own):
            yield from (e for b in own[j + 1 :] for e in _exchange(a, b, sites, seen, 0.0))
            yield from (e for b in others for e in _exchange(a, b, sites, seen, 0.4))


def _exchange(
    a: Sequence[int], b: Sequence[int], sites: Sequence[Site], seen: dict[int, Seen], more: float
) -> Iterator[Edit]:
    """Yield the exchange of two expressions, wherever they stand, if they could be exchanged."""
    first, second = sites[a[0]].node, sites[b[0]].node
    one, other = seen[a[0]].value, seen[b[0]].value
    if kind_of(one) != kind_of(other) or one is other or _overlap(first, second):
        return
    if shape_of(one) != shape_of(other):
        return
    named = all(isinstance(node, (ast.Name, ast.Attribute)) for node in (first, second))
    constants = all(is_constant(node) for node in (first, second))
    cost = (1.4 if named else 1.9) + more + 0.5 * constants
    yield Edit({**dict.fromkeys(a, second), **dict.fromkeys(b, first)}, cost)


def _overlap(a: Any, b: Any) -> bool:
    """Return whether one expression is part of the other."""
    start, end = (a.lineno, a.col_offset), (a.end_lineno, a.end_col_offset)
    return not ((b.end_lineno, b.end_col_offset) <= start or end <= (b.lineno, b.col_offset))
