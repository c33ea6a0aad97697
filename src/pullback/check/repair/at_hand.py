"""Values at hand where an expression stands, and what is made of them: factors, terms, others.

Owns what may be meant but is written nowhere: of what an expression would need, every product and
sum of products of two values at hand is compared with it, or with what it lacks.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.check.repair.edits import Form, made, value_of
from pullback.check.repair.sites import kind_of, plain, shape_of
from pullback.check.repair.trials import Need
from pullback.check.values import Array
from pullback.core.custom.context import Context
from pullback.core.custom.named import Named
from pullback.core.tensor.tensor import Tensor

_MOST, _LONGEST = 60, 60  # values, and characters of an expression
_LARGEST = 100_000  # numbers of a value
_MOST_NUMBERS = 4_000_000  # in all combinations of one shape
_LONGER = 1e-3  # how much likelier it is for each character: a factor belongs to a whole product
_SIZES = (1.0, 2.0, 0.5)
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

    Parameters
    ----------
    names, beside : mapping
        The variables of backward at its end, and those of forward.
    nodes : iterable of ast.expr
        The expressions of both.
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
    own += [atom for named in own for atom in _saved(named)]
    others = [Atom(ast.Name(name, _LOAD), value, 0.5) for name, value in beside.items()]
    for atom in (*own, *others):
        if kind_of(atom.value):
            yield atom
            yield from _of_array(atom)
    for node in nodes:
        values = node.seen.values
        if kind_of(values[0]) and not isinstance(node, ast.Constant) and can_repeat(node):
            cost = 0.2 if isinstance(node, (ast.Attribute, ast.Name)) else 1.0
            varies = any(not np.array_equal(plain(each), plain(values[0])) for each in values[1:])
            if len(ast.unparse(node)) <= _LONGEST:
                size = sum(1 for _ in ast.walk(node)) / 20
                yield Atom(node, values[0], cost + (cost == 1.0) * size, varies)


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
        node = made("x.shape[a]", x=atom.node, a=ast.Constant(axis))
        yield Atom(node, length, atom.cost + 0.6)
    array = plain(atom.value)
    if shape_of(array) and kind_of(array) == "f" and array.size and array.min() < 0 < array.max():
        node = atom.node if array is atom.value else made("x.numpy()", x=atom.node)
        yield Atom(made("x > 0", x=node), array > 0, atom.cost + 0.3)
        yield Atom(made("np.sign(x)", x=node), np.sign(array), atom.cost + 0.8)


def can_repeat(node: Any) -> bool:
    """Return whether an expression may be evaluated elsewhere too: it works on numbers alone."""
    for each in ast.walk(node):
        if isinstance(each, _ONCE):
            return False
        if isinstance(each, ast.Call):
            owner = each.func.value if isinstance(each.func, ast.Attribute) else None
            known = [value_of(part) for part in (*each.args, owner) if hasattr(part, "seen")]
            if not all(kind_of(value) or isinstance(value, (str, tuple)) for value in known):
                return False
    return True


# -- in the place of an expression, or beside it ---------------------------------------------------
# Of another value y of these kinds.
_WITH = (
    Form("y", 1.5, "fcib"),
    Form("x[y]", 2.0, "i"),
    Form("x * y", 2.6, "fcib"),
    Form("x * ~y", 2.7, "b"),
    Form("x / y", 2.7, "fci"),
    Form("x * y[..., None]", 2.9, "fcib"),
    Form("x * y[:, None]", 3.0, "fcib"),
    Form("x + y", 3.2),
    Form("x - y", 3.3),
)


def edits_with(
    node: Any, atoms: Sequence[Atom], needs: Sequence[Need] | None
) -> Iterator[tuple[Any, float]]:
    """Yield what one expression may have been meant to be, with another value at hand.

    Where it is known what it needs, only what leads to that.
    """
    value, more = node.seen.value, -_LONGER * len(ast.unparse(node))
    x, kind = np.asarray(plain(value)), kind_of(value)
    for atom in atoms if needs is None or needs else ():
        y, other = np.asarray(plain(atom.value)), atom.node
        less = 0.0 if y.ndim else -1.2  # a setting that was forgotten
        if isinstance(atom.value, Tensor) and not isinstance(value, Tensor):
            other = made("y.numpy()", y=other)
        for form in _WITH if kind in "fc" else _WITH[:2]:
            found = _evaluated(form.text, x, y) if kind_of(y) in form.kinds else None
            if found is None or found.shape != x.shape or not _is_like(kind_of(found), kind):
                continue
            met = needs is None or any(need.is_met_by(found) for need in needs)
            if atom.varies or (met and not np.array_equal(found, x)):
                cost = form.cost + atom.cost + more + (less if form.text != "y" else 0.0)
                yield made(form.text, x=node, y=other), cost


def _is_like(kind: str, other: str) -> bool:
    return kind == other or {kind, other} == {"f", "i"}


@functools.cache
def _function(text: str) -> Callable[..., Any]:
    found: Callable[..., Any] = eval(f"lambda x, y: {text}", {"np": np})
    return found


def _evaluated(text: str, x: Array, y: Array | None = None) -> Any:
    try:
        return np.asarray(_function(text)(x, y))
    except (TypeError, ValueError, IndexError):
        return None


# -- terms -----------------------------------------------------------------------------------------
# By the numbers of axes of one value or two, and of the result.
_PRODUCTS = {
    (0, 0): "x",
    (1, 0): "x.sum()",
    (2, 0): "x.sum()",
    (1, 1): "x",
    (2, 1): "x.sum(0); x.sum(1)",
    (2, 2): "x; x.T",
    (3, 2): "x.sum(0); x.sum(1); x.sum(2)",
    (3, 3): "x",
    (0, 0, 0): "x * y; x / y",
    (0, 1, 1): "x * y; x / y",
    (1, 0, 1): "x / y",
    (1, 1, 0): "(x * y).sum()",
    (1, 1, 1): "x * y; x / y",
    (1, 1, 2): "np.outer(x, y)",
    (0, 2, 2): "x * y; x * y.T",
    (2, 0, 2): "x / y",
    (2, 1, 0): "(x * y).sum(); (x * y[:, None]).sum()",
    (2, 1, 1): "x @ y; x.T @ y; x.sum(0) * y; x.sum(1) * y",
    (2, 1, 2): "x * y; x * y[:, None]; x / y; x / y[:, None]; x.T * y",
    (2, 2, 0): "(x * y).sum()",
    (2, 2, 1): "(x * y).sum(0); (x * y).sum(1); (x * y.T).sum(1)",
    (2, 2, 2): "x * y; x / y; x @ y; x.T @ y; x @ y.T; (x @ y).T",
    (3, 2, 2): "(x * y[:, None]).sum(0); (x * y[..., None]).sum(1); (x * y[..., None]).sum(0)",
    (3, 3, 3): "x * y; x / y; x @ y",
}


class Terms:
    """What may be lacking: the products, sums of products and matrix products of values at hand.

    Parameters
    ----------
    atoms : sequence of Atom
    """

    def __init__(self, atoms: Sequence[Atom]) -> None:
        pool = [atom for atom in atoms if kind_of(atom.value) in "fci" and not atom.varies]
        self._values = [(np.asarray(plain(a.value)), a.node) for a in pool]
        self._tables: dict[tuple[int, ...], tuple[list[Callable[[], Any]], Array]] = {}
        numbers = [(float(v.real), node) for v, node in self._values if not v.ndim]
        self._numbers = [(v, node) for v, node in numbers if v > 0 and v != 1][:_MOST_FACTORS]

    def edits(self, need: Need) -> Iterator[tuple[Any, float]]:
        """Yield what makes the value of an expression the right one."""
        known = np.isfinite(need.needed)
        lacking = np.where(known, need.needed - need.value, 0.0)
        for target, form, cost in ((lacking, "x + t", 4.0), (need.needed, "t", 4.5)):
            yield from self._of(target, known, form, cost, need.node)
        scale = np.abs(lacking).max(initial=0.0)
        for axis in range(lacking.ndim if known.all() else 0):  # along which it is constant
            part = lacking.take(0, axis)
            if np.abs(lacking - np.expand_dims(part, axis)).max() <= _RTOL * scale:
                form = f"x + t[{', '.join([':'] * axis + ['None'])}]" if axis else "x + t"
                yield from self._of(part, np.ones(part.shape, bool), form, 4.2, need.node)

    def _of(
        self, target: Array, known: Array, form: str, cost: float, node: Any
    ) -> Iterator[tuple[Any, float]]:
        terms, rows = self._table(target.shape)
        rows, wanted = rows[:, known.ravel()], target[known]
        if not rows.size or not np.any(wanted):
            return
        ratios = (rows.conj() @ wanted).real / np.sum(np.abs(rows) ** 2, axis=1)
        off = np.abs(ratios[:, None] * rows - wanted).max(axis=1)
        for j in map(int, np.flatnonzero(off <= _RTOL * np.abs(wanted).max())):
            factor = self._factor(abs(ratios[j]), target.size)
            if factor is not None:
                minus = form.replace("+", "-") if "+" in form else f"-{form}"
                term = made(factor[0], t=terms[j](), **factor[1])
                yield made(minus if ratios[j] < 0 else form, x=node, t=term), cost

    def _factor(self, ratio: float, size: int) -> tuple[str, dict[str, Any]] | None:
        """Return how a term is multiplied by small numbers and those at hand; None if by others."""
        forms: list[tuple[str, float, dict[str, Any]]] = [("t", 1.0, {})]
        for v, a in self._numbers if size > _FEW else ():
            forms += [("a * t", v, {"a": a}), ("t / a", 1 / v, {"a": a})]
            pairs = [(v, w, {"a": a, "b": b}) for w, b in self._numbers]
            forms += [("a * b * t", v * w, names) for v, w, names in pairs]
            forms += [("a / b * t", v / w, names) for v, w, names in pairs]
        for (text, number, names), scale in itertools.product(forms, _SIZES):
            if abs(scale * number - ratio) <= _RTOL * ratio:
                return text if scale == 1 else f"{scale:g} * {text}", names
        return None

    def _table(self, shape: tuple[int, ...]) -> tuple[list[Callable[[], Any]], Array]:
        """Return every combination of values that has a shape, one in each row."""
        if shape not in self._tables:
            most = _MOST_NUMBERS // max(1, int(np.prod(shape)))
            found = list(itertools.islice(self._combinations(shape), most))
            rows = np.stack([row.ravel() for _, row in found]) if found else np.zeros((0, 0))
            self._tables[shape] = [term for term, _ in found], rows
        return self._tables[shape]

    def _combinations(self, shape: tuple[int, ...]) -> Iterator[tuple[Callable[[], Any], Array]]:
        pairs = itertools.product(self._values, self._values)
        for operands in (*((own,) for own in self._values), *pairs):
            axes = (*(array.ndim for array, _ in operands), len(shape))
            for text in filter(None, _PRODUCTS.get(axes, "").split("; ")):
                found = _evaluated(text, *(array for array, _ in operands))
                if found is not None and found.shape == shape:
                    nodes = dict(zip("xy", (node for _, node in operands), strict=False))
                    yield partial(made, text, **nodes), found
