"""Values at hand where an expression stands, and what is made of them: factors, terms, others.

Owns what may be meant but is written nowhere: of what an expression would need, every product and
sum of products of two values at hand is compared with it, or with what it lacks.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.repair.edits import Edits, Rule, made, value_of
from pullback.check.repair.source import kind_of, plain, shape_of
from pullback.check.repair.trials import Need
from pullback.check.values import Array
from pullback.core.custom.context import Context
from pullback.core.custom.saved_variables import Named
from pullback.core.tensor.tensor import Tensor

_MOST, _LONGEST = 60, 60  # values, and characters of an expression
_LARGEST = 100_000  # numbers of a value
_MOST_NUMBERS = 4_000_000  # in all combinations of one shape
_LONGER = 1e-3  # how much likelier it is for each character: a factor belongs to a whole product
_RTOL = 1e-5
_MOST_FACTORS = 12  # numbers at hand that are combined
_FEW = 2  # numbers, which are in proportion to anything
_LOAD = ast.Load()
_ONCE = (ast.comprehension, ast.Lambda, ast.NamedExpr, ast.Starred, ast.Yield, ast.YieldFrom)


class Atom(NamedTuple):
    """A value that could stand in an expression: as it is written, and how far-fetched it is."""

    node: Any
    value: Any
    cost: float
    varies: bool = False


def atoms_of(
    names: Mapping[str, Any], beside: Mapping[str, Any], nodes: Iterable[Any]
) -> list[Atom]:
    """Return the different values at hand, the simplest expression of each.

    They are variables, those of forward `beside` them, and expressions.
    """
    found: dict[Any, Atom] = {}
    for atom in sorted(_atoms(names, beside, nodes), key=lambda atom: atom.cost):
        array = np.asarray(plain(atom.value))
        if 0 < array.size <= _LARGEST:
            key = array.shape, array.dtype.kind, array.tobytes(), atom.varies
            found.setdefault(key, atom)
    return list(found.values())[:_MOST]


def _atoms(
    names: Mapping[str, Any], beside: Mapping[str, Any], nodes: Iterable[Any]
) -> Iterator[Atom]:
    own = [Atom(ast.Name(name, _LOAD), value, 0.0) for name, value in names.items()]
    others = [Atom(ast.Name(name, _LOAD), value, 0.5) for name, value in beside.items()]
    for atom in (*own, *itertools.chain(*map(_saved, own)), *others):
        if kind_of(atom.value):
            yield atom
            yield from _of_array(atom)
    for node in nodes:
        first, *more = map(plain, node.seen.values)
        text = ast.unparse(node)
        is_literal = isinstance(node, ast.Constant)
        if kind_of(first) and not is_literal and len(text) <= _LONGEST and _can_repeat(node):
            is_name = isinstance(node, (ast.Attribute, ast.Name))
            varies = not all(np.array_equal(each, first) for each in more)
            yield Atom(node, node.seen.value, 0.2 if is_name else 1.0 + len(text) / 60, varies)


def _saved(atom: Atom) -> Iterator[Atom]:
    """Yield what was saved, as attributes of what holds it."""
    path, value = atom.node, atom.value
    if isinstance(value, Context):
        for own, kept in vars(value).items():
            if not own.startswith("_"):
                yield Atom(ast.Attribute(path, own, _LOAD), kept, 0.1)
        value, path = value.saved_variables, ast.Attribute(path, "saved_variables", _LOAD)
    if isinstance(value, Named):
        keys: list[str] = value.keys()  # iterating gives the values
        yield from (Atom(ast.Attribute(path, own, _LOAD), value[own], 0.2) for own in keys)


def _of_array(atom: Atom) -> Iterator[Atom]:
    """Yield the lengths of an array's axes, where it is positive, and its signs."""
    for axis, length in enumerate(shape_of(atom.value)):
        node = made(f"x.shape[{axis}]", {"x": atom.node})
        yield Atom(node, length, atom.cost + 0.6)
    array = plain(atom.value)
    if shape_of(array) and kind_of(array) == "f" and array.size and array.min() < 0 < array.max():
        node = atom.node if array is atom.value else made("x.numpy()", {"x": atom.node})
        yield Atom(made("x > 0", {"x": node}), array > 0, atom.cost + 0.3)
        yield Atom(made("np.sign(x)", {"x": node}), np.sign(array), atom.cost + 0.8)


def _can_repeat(node: Any) -> bool:
    """Return whether an expression may be evaluated elsewhere too: it works on numbers alone."""
    nodes = [*ast.walk(node)]
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    used = [part for call in calls for part in (*call.args, getattr(call.func, "value", None))]
    values = [value_of(part) for part in used if hasattr(part, "seen")]
    known = all(kind_of(value) or isinstance(value, (str, tuple)) for value in values)
    return known and not any(isinstance(each, _ONCE) for each in nodes)


# -- in the place of an expression, or beside it ---------------------------------------------------
_WITH = (  # another value y, of these kinds
    Rule("x", "y", 1.5, "fcib"),
    Rule("x", "x[y]", 2.0, "i"),
    Rule("x", "x * y", 2.6, "fcib"),
    Rule("x", "x * ~y", 2.7, "b"),
    Rule("x", "x / y", 2.7, "fci"),
    Rule("x", "x * y[..., None]", 2.9, "fcib"),
    Rule("x", "x * y[:, None]", 3.0, "fcib"),
    Rule("x", "x + y", 3.2, "fc"),
    Rule("x", "x - y", 3.3, "fc"),
)


def edits_with(node: Any, atoms: Sequence[Atom], needs: Sequence[Need] | None) -> Edits:
    """Yield what one expression may have been meant to be, with another value at hand.

    Where it is known what it needs, only what leads to that.
    """
    value, more = node.seen.value, -_LONGER * len(ast.unparse(node))
    x, kind = np.asarray(plain(value)), kind_of(value)
    for atom in atoms if needs is None or needs else ():
        y, other = np.asarray(plain(atom.value)), atom.node
        less = 0.0 if y.ndim else -1.2  # a setting that was forgotten
        if isinstance(atom.value, Tensor) and not isinstance(value, Tensor):
            other = made("y.numpy()", {"y": other})
        for rule in _WITH if kind in "fc" else _WITH[:2]:
            found = _evaluated(rule.new, x, y) if kind_of(y) in rule.kinds else None
            kinds = {kind, kind_of(found)}
            if found is None or kinds not in ({kind}, {"f", "i"}) or found.shape != x.shape:
                continue
            met = needs is None or any(need.is_met_by(found) for need in needs)
            if atom.varies or (met and not np.array_equal(found, x)):
                cost = rule.cost + atom.cost + more + (less if rule.new != "y" else 0.0)
                yield made(rule.new, {"x": node, "y": other}), cost


@functools.cache
def _function(text: str) -> Callable[..., Any]:
    found: Callable[..., Any] = eval(f"lambda x, y, t=1: {text}", {"np": np})
    return found


def _evaluated(text: str, x: Array, y: Array) -> Any:
    try:
        return np.asarray(_function(text)(x, y))
    except (TypeError, ValueError, IndexError):
        return None


# -- terms -----------------------------------------------------------------------------------------
# What may be lacking, of one value or two.
_ALONE = ("x", "x.T", "x.sum()", "x.sum(0)", "x.sum(-1)")
_PRODUCTS = (
    "x * y", "x / y", "x @ y", "x.T @ y", "x @ y.T", "(x @ y).T", "x * y.T", "x * y[:, None]",
    "x / y[:, None]", "np.outer(x, y)", "(x * y).sum()", "(x * y).sum(0)", "(x * y).sum(-1)",
)  # fmt: skip
_SCALED = ("t", "x * t", "t / x", "x * y * t", "x / y * t")  # a term, with one number or two


class Terms:
    """What may be lacking: the products, sums of products and matrix products of values at hand."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        pool = [atom for atom in atoms if kind_of(atom.value) in "fci" and not atom.varies]
        self._values = [(np.asarray(plain(a.value)), a.node) for a in pool]
        self._table = functools.cache(self._combined)
        numbers = [(float(v.real), node) for v, node in self._values if not v.ndim]
        found = [(v, node) for v, node in numbers if v > 0 and v not in (1, 2)]
        self._numbers = [(2.0, ast.Constant(2)), *found][:_MOST_FACTORS]

    def edits(self, need: Need) -> Edits:
        """Yield what makes the value of an expression the right one."""
        known = np.isfinite(need.needed)
        lacking = np.where(known, need.needed - need.value, 0.0)
        targets = [(lacking, known, "x + t", 4.0), (need.needed, known, "t", 4.5)]
        for axis in range(lacking.ndim if known.all() else 0):  # along which it is constant
            part = lacking.take(0, axis)
            if np.allclose(lacking, np.expand_dims(part, axis), _RTOL, _RTOL * np.abs(part).max()):
                form = f"x + t[{', '.join([':'] * axis + ['None'])}]" if axis else "x + t"
                targets.append((part, np.ones(part.shape, bool), form, 4.2))
        for target, where, form, cost in targets:
            for sign, term in self._of(target, where):
                minus = form.replace("+", "-") if "+" in form else f"-{form}"
                yield made(minus if sign < 0 else form, {"x": need.node, "t": term}), cost

    def _of(self, target: Array, known: Array) -> Iterator[tuple[float, Any]]:
        """Yield terms that are a target, but for a sign."""
        terms, rows = self._table(target.shape)
        rows, wanted = rows[:, known.ravel()], target[known]
        if not rows.size or not np.any(wanted):
            return
        ratios = (rows.conj() @ wanted).real / np.sum(np.abs(rows) ** 2, axis=1)
        off = np.abs(ratios[:, None] * rows - wanted).max(axis=1)
        for j in map(int, np.flatnonzero(off <= _RTOL * np.abs(wanted).max())):
            term = self._scaled(abs(ratios[j]), made(*terms[j]), target.size)
            if term is not None:
                yield ratios[j], term

    def _scaled(self, ratio: float, term: Any, size: int) -> Any:
        """Return a term multiplied by numbers at hand, or 2; None if by others."""
        known = self._numbers if size > _FEW else self._numbers[:1]
        pairs = itertools.product(known, known)
        for text, ((v, a), (w, b)) in itertools.product(_SCALED, pairs):
            if abs(_function(text)(v, w) - ratio) <= _RTOL * ratio:
                return made(text, {"x": a, "y": b, "t": term})
        return None

    def _combined(self, shape: tuple[int, ...]) -> tuple[list[tuple[str, Any]], Array]:
        """Return every combination of values that has a shape, one in each row."""
        most = _MOST_NUMBERS // max(1, int(np.prod(shape)))
        found = list(itertools.islice(self._combinations(shape), most))
        rows = np.stack([row.ravel() for _, row in found]) if found else np.zeros((0, 0))
        return [term for term, _ in found], rows

    def _combinations(self, shape: tuple[int, ...]) -> Iterator[tuple[tuple[str, Any], Array]]:
        near = [(array, node) for array, node in self._values if array.ndim <= len(shape) + 1]
        alone = ((text, own, own) for own in near for text in _ALONE)
        pairs = ((text, *pair) for pair in itertools.product(near, near) for text in _PRODUCTS)
        for text, (x, x_node), (y, y_node) in itertools.chain(alone, pairs):
            found = _evaluated(text, x, y)
            if found is not None and found.shape == shape:
                yield (text, {"x": x_node, "y": y_node}), found
