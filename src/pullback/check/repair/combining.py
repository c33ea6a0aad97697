"""Changes of expressions that use another value at hand: in their place, or beside them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from pullback.check.repair.atoms import Atom, kind_of, plain, shape_of
from pullback.check.repair.edits import UNFIT, Edit, Values, is_constant, made, operand_of
from pullback.check.repair.needed import Need
from pullback.check.repair.sites import Seen, Site
from pullback.check.repair.source import Source, source_of_helper
from pullback.check.values import Array
from pullback.core.tensor.tensor import Tensor

_LONGER = 1e-3  # how much likelier it is for each character: a factor belongs to a whole product
_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript)


def edits_with(
    k: int, node: Any, value: Any, atoms: Sequence[Atom], need: Need | None
) -> Iterator[Edit]:
    """Yield the changes of one expression that use another value at hand.

    Those that lead to what it needs come first, if that is known, and the others late: values at
    hand may have been others where it stands.
    """
    if not kind_of(value):
        return
    text = ast.unparse(node)
    for atom in atoms:
        if atom.text == text:
            continue
        for new, cost, found in (*_replaced(node, value, atom), *_combined(node, value, atom)):
            cost += atom.cost - _LONGER * len(text)
            if need is not None and not atom.varies and found is not None:
                cost += 0.0 if need.is_met_by(found) else UNFIT
            yield Edit({k: new}, cost)


def repeated(sites: Sequence[Site], seen: dict[int, Seen], atoms: Sequence[Atom]) -> Iterator[Edit]:
    """Yield the changes of a name or a number to a value at hand wherever a statement has it."""
    places: dict[tuple[int, str], list[int]] = {}
    for k, at in seen.items():
        node = sites[k].node
        if kind_of(at.value) and (is_constant(node) or isinstance(node, _SIMPLE)):
            places.setdefault((sites[k].line, ast.unparse(node)), []).append(k)
    for keys in places.values():
        for atom in atoms if len(keys) > 1 else ():
            for new, cost, _ in _replaced(sites[keys[0]].node, seen[keys[0]].value, atom):
                yield Edit(dict.fromkeys(keys, new), cost + 0.3 + atom.cost)


def completed(
    k: int, node: Any, functions: dict[str, Any], atoms: Sequence[Atom]
) -> Iterator[Edit]:
    """Yield a call of a user's function with a value at hand for an argument that it left out."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return
    function = functions.get(node.func.id)
    if not isinstance(function, FunctionType):
        return
    parameters = list(inspect.signature(function).parameters)
    given = {word.arg for word in node.keywords}
    for name in parameters[len(node.args) :]:
        for atom in atoms if name not in given else ():
            if _last_name(atom.node) == name:
                word = ast.keyword(name, atom.node)
                yield Edit({k: ast.Call(node.func, node.args, [*node.keywords, word])}, 0.9)


def own_functions(source: Source) -> list[str]:
    """Return the functions of one argument, of the same file, that a function calls by name."""
    known = source.known()
    called = [node.func for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    names = dict.fromkeys(each.id for each in called if isinstance(each, ast.Name))
    helpers = [(name, source_of_helper(known.get(name), source)) for name in names]
    return [
        name
        for name, helper in helpers
        if helper is not None and len(inspect.signature(helper.function).parameters) == 1
    ]


def passed(k: int, node: Any, value: Any, functions: Sequence[str]) -> Iterator[Edit]:
    """Yield a number or an array passed through a function that forward passes its own through."""
    for name in functions if kind_of(value) == "f" else ():
        yield Edit({k: made(f"{name}(x)", x=node)}, 1.7)


def _last_name(node: Any) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def copied(k: int, node: Any, value: Any) -> Iterator[Edit]:
    """Yield a copy of what forward saves: it may change it afterwards."""
    if isinstance(value, (np.ndarray, Tensor)):
        method = "clone" if isinstance(value, Tensor) else "copy"
        yield Edit({k: made(f"x.{method}()", x=node)}, 1.0)


def by_groups(k: int, node: Any, values: Values, atoms: Sequence[Atom]) -> Iterator[Edit]:
    """Yield for a sum over all elements the sums over those of one group, one for each element."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "sum":
        return
    inner = operand_of(node, values)
    shape = shape_of(values.of(inner))
    for atom in atoms if len(shape) == 1 else ():
        groups = kind_of(atom.value) == "i" and shape_of(atom.value) == shape
        if groups and np.min(plain(atom.value), initial=0) >= 0:
            new = made("np.bincount(y, weights=x)[y]", x=inner, y=atom.node)
            yield Edit({k: new}, 2.2 + atom.cost)


_Changed = tuple[Any, float, Any]  # an expression, how unlikely it is, and its value


def _replaced(node: Any, value: Any, atom: Atom) -> Iterator[_Changed]:
    kinds = {kind_of(atom.value), kind_of(value)}
    if is_constant(node) and shape_of(atom.value):  # a mask or weights that are all one
        yield atom.node, 2.6, None
    if (len(kinds) > 1 and kinds != {"f", "i"}) or shape_of(atom.value) != shape_of(value):
        return
    if atom.varies or not np.array_equal(plain(atom.value), plain(value)):
        simple = isinstance(node, _SIMPLE) or kinds == {"i"}
        new = _like(atom.node, atom.value, value)
        yield new, 1.5 if simple else 2.5, np.asarray(plain(atom.value))


def _combined(node: Any, value: Any, atom: Atom) -> Iterator[_Changed]:
    """Yield the products, quotients, sums and differences with a value at hand."""
    if kind_of(value) not in "fc":
        return
    kind, found = kind_of(atom.value), _broadcast(atom, value)
    if found is None:
        return
    other, y, more = found
    x = np.asarray(plain(value))
    more -= 0.0 if shape_of(atom.value) else 1.2  # a setting that was forgotten
    if kind == "i" and _picks(atom.value, value):
        yield partial(made, "x[y]", x=node, y=atom.node), 2.0, x[y]
    if atom.varies or not np.all(y == 1):
        yield partial(made, "x * y", x=node, y=other), 2.6 + more, x * y
        opposite = "x * ~y" if kind == "b" else "x / y"
        yield partial(made, opposite, x=node, y=other), 2.7 + more, x * ~y if kind == "b" else x / y
    if kind in "fc" and (atom.varies or np.any(y)):
        yield partial(made, "x + y", x=node, y=other), 3.2 + more, x + y
        yield partial(made, "x - y", x=node, y=other), 3.3 + more, x - y


def _broadcast(atom: Atom, value: Any) -> tuple[Any, Array, float] | None:
    """Return how a value is broadcast to another's shape, as it is written; None if it is not."""
    own, shape = shape_of(atom.value), shape_of(value)
    node, array = _like(atom.node, atom.value, value), np.asarray(plain(atom.value))
    if _fits(own, shape):
        return node, array, 0.0
    if own and len(own) < len(shape) and _fits((*own, 1), shape):
        return made("y[..., None]", y=node), array[..., None], 0.3
    if len(own) > 1 and len(own) < len(shape) and _fits((own[0], 1, *own[1:]), shape):
        return made("y[:, None]", y=node), array[:, None], 0.4
    return None


def _picks(index: Any, value: Any) -> bool:
    """Return whether integers are an index that puts the rows of an array in another order."""
    rows = np.asarray(plain(index))
    count = len(value) if shape_of(value) else 0
    if rows.shape != (count,) or not count:
        return False
    return bool(rows.min() >= 0 and rows.max() < count and np.any(rows != np.arange(count)))


def _like(node: Any, own: Any, value: Any) -> Any:
    """Return an expression whose value is an array where it stands beside arrays."""
    if isinstance(own, Tensor) and not isinstance(value, Tensor):
        return made("y.numpy()", y=node)
    return node


def _fits(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False
