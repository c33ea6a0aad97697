"""Values that are at hand where an expression stands, with the expressions that give them.

Owns what a factor, a term or a replacement may be: names, what was saved, and expressions that
forward or backward compute themselves.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np

from pullback.check.repair.sites import Change, Seen, Site
from pullback.check.repair.source import Source
from pullback.check.values import host
from pullback.core.custom.context import Context
from pullback.core.custom.named import Named
from pullback.core.tensor.tensor import Tensor

# Methods and functions without effects.
_PURE = {
    "abs", "arange", "astype", "clip", "conj", "copy", "cos", "cosh", "cumsum", "diff", "dot",
    "exp", "expm1", "eye", "flip", "float", "full", "int", "item", "len", "log", "log1p", "max",
    "maximum", "mean", "min", "minimum", "norm", "numpy", "ones", "ones_like", "outer", "prod",
    "range", "reshape", "roll", "sign", "sin", "sinh", "sqrt", "square", "std", "sum", "swapaxes",
    "tan", "tanh", "transpose", "var", "where", "zeros", "zeros_like",
}  # fmt: skip
# Functions of libraries that write to their arguments, or draw numbers.
_EFFECTS = re.compile(
    r"\.at$|random|put|fill|copyto|place|shuffle|save|load|set_|seterr|no_grad|from"
)
_LIBRARIES = ("np.", "numpy.", "pb.", "math.")
_MOST = 60
_LONGEST = 60  # characters of an expression


@dataclasses.dataclass
class Atom:
    """A value that could stand in an expression.

    Attributes
    ----------
    node : ast.expr
    value : array or number
        In the unchanged function.
    cost : float
        How far-fetched it is.
    varies : bool
        Whether it had other values as well.
    """

    node: Any
    value: Any
    cost: float
    varies: bool = False

    @functools.cached_property
    def text(self) -> str:
        """The expression as it is written."""
        return ast.unparse(self.node)


class Names:
    """The names that a function knows beside its variables: global ones, and those of forward.

    Parameters
    ----------
    source : Source
        The function.
    beside : dict
        The variables of forward in the run that is tried.
    lent : mapping
        Global names that forward knows.
    """

    def __init__(self, source: Source, beside: dict[str, Any], lent: Mapping[str, Any]) -> None:
        self.beside = beside
        self.known = {"np": np, "pb": sys.modules["pullback"], **lent, **source.known()}

    def change(self, node: Any) -> Change:
        """Return what computes an expression from the variables where it stands."""
        code: CodeType | None = None

        def evaluated(names: dict[str, Any], value: Any) -> Any:
            nonlocal code
            if code is None:
                expression = ast.fix_missing_locations(ast.Expression(node))
                code = compile(expression, "<change>", "eval")
            return eval(code, self.known, _Chain(names, self.beside))

        return evaluated


class _Chain(dict[str, Any]):
    """Variables, with others where there are none of a name."""

    def __init__(self, names: dict[str, Any], beside: dict[str, Any]) -> None:
        super().__init__(names)
        self.beside = beside

    def __missing__(self, name: str) -> Any:
        return self.beside[name]


def is_array(value: Any) -> bool:
    """Return whether a value is a numerical array or tensor with axes."""
    return (
        isinstance(value, (np.ndarray, Tensor)) and bool(value.shape) and kind_of(value) in "fcib"
    )


def kind_of(value: Any) -> str:
    """Return the kind of a number's or an array's data type; empty if it is neither."""
    if isinstance(value, (bool, np.bool_)):
        return "b"
    if isinstance(value, (int, np.integer)):
        return "i"
    if isinstance(value, (float, complex, np.floating, np.complexfloating)):
        return "c" if isinstance(value, (complex, np.complexfloating)) else "f"
    if isinstance(value, (np.ndarray, Tensor)):
        kind = np.asarray(host(value)).dtype.kind
        return "i" if kind == "u" else kind
    return ""


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, that of a number."""
    return tuple(getattr(value, "shape", ()))


def plain(value: Any) -> Any:
    """Return a tensor's array; anything else as it is."""
    return host(value) if isinstance(value, Tensor) else value


def atoms_of(
    sites: Iterable[tuple[Site, Seen]], names: dict[str, Any], beside: dict[str, Any]
) -> list[Atom]:
    """Return the different values at hand, the simplest expression of each.

    Parameters
    ----------
    sites : iterable of (Site, Seen)
        The expressions of backward, and of forward.
    names : dict
        The variables of backward at its end.
    beside : dict
        Those of forward, by other names than those of backward.
    """
    found: dict[Any, Atom] = {}
    for node, value, cost, varies in _candidates(sites, names, beside):
        if kind_of(value) not in ("f", "c", "i", "b"):
            continue
        array = np.asarray(plain(value))
        if not array.size or array.size > 100_000:
            continue
        key = (array.shape, array.dtype.kind, array.tobytes(), varies and ast.unparse(node))
        if key in found and found[key].cost <= cost:
            continue
        found[key] = Atom(node, value, cost, varies)
    return sorted(found.values(), key=lambda atom: atom.cost)[:_MOST]


def _candidates(
    sites: Iterable[tuple[Site, Seen]], names: dict[str, Any], beside: dict[str, Any]
) -> Iterator[tuple[Any, Any, float, bool]]:
    for scope, cost in ((names, 0.0), (beside, 0.5)):
        for name, value in scope.items():
            if name.isidentifier() and not name.startswith("__"):
                yield ast.Name(name, ast.Load()), value, cost, False
    saved = list(_saved(names))
    yield from ((*found, False) for found in saved)
    own = [(ast.Name(name, ast.Load()), value, 0.0) for name, value in names.items()]
    yield from ((*found, False) for found in _signs([*own, *saved]))
    known = [(ast.Name(name, ast.Load()), value, 0.6) for name, value in names.items()]
    known += [(node, value, 0.8) for node, value, _ in saved]
    known += [(ast.Name(name, ast.Load()), value, 1.1) for name, value in beside.items()]
    yield from ((*found, False) for found in _lengths(known))
    for site, seen in sites:
        if not is_pure(site.node):
            continue
        size = sum(1 for _ in ast.walk(site.node))
        simple = isinstance(site.node, (ast.Attribute, ast.Name))
        cost = 0.2 if simple else 1.0 + size / 20
        if isinstance(site.node, ast.Constant) or len(ast.unparse(site.node)) > _LONGEST:
            continue
        yield site.node, seen.value, cost, _varies(seen)


def _varies(seen: Seen) -> bool:
    """Return whether an expression that was evaluated several times had several values."""
    if not kind_of(seen.value):
        return False
    return any(not np.array_equal(plain(seen.value), plain(each)) for each in seen.later)


def _lengths(arrays: Iterable[tuple[Any, Any, float]]) -> Iterator[tuple[Any, Any, float]]:
    """Yield the lengths of the axes of arrays."""
    for node, value, cost in arrays:
        for axis, length in enumerate(shape_of(value) if is_array(value) else ()):
            shape = ast.Attribute(node, "shape", ast.Load())
            if length > 1:
                yield ast.Subscript(shape, ast.Constant(axis), ast.Load()), length, cost


def _signs(arrays: Iterable[tuple[Any, Any, float]]) -> Iterator[tuple[Any, Any, float]]:
    """Yield where arrays of both signs are positive, and their signs."""
    for node, value, cost in arrays:
        array = plain(value) if is_array(value) and kind_of(value) == "f" else None
        if array is not None and array.size and array.min() < 0 < array.max():
            if isinstance(value, Tensor):
                node = ast.Call(ast.Attribute(node, "numpy", ast.Load()), [], [])
            positive = ast.Compare(node, [ast.Gt()], [ast.Constant(0)])
            yield positive, array > 0, cost + 0.3
            path = ast.parse("np.sign", mode="eval").body
            yield ast.Call(path, [node], []), np.sign(array), cost + 0.8


def _saved(names: dict[str, Any]) -> Iterator[tuple[Any, Any, float]]:
    """Yield what was saved, as attributes of what holds it."""
    for name, value in names.items():
        path: Any = ast.Name(name, ast.Load())
        holder, cost = value, 0.1
        if isinstance(value, Context):
            for own, kept in vars(value).items():
                if not own.startswith("_"):
                    yield ast.Attribute(path, own, ast.Load()), kept, 0.1
            holder, cost = value.saved_variables, 0.2
            path = ast.Attribute(path, "saved_variables", ast.Load())
        if isinstance(holder, Named):
            kept_names: list[str] = holder.keys()  # iterating gives the values
            for own in kept_names:
                yield ast.Attribute(path, own, ast.Load()), holder[own], cost


def is_pure(node: ast.AST) -> bool:
    """Return whether an expression has no effects."""
    for each in ast.walk(node):
        if isinstance(each, (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.Starred)):
            return False
        if isinstance(each, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return False
        if isinstance(each, ast.Call) and not _is_pure_function(each.func):
            return False
    return True


def _is_pure_function(function: Any) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _PURE
    if not isinstance(function, ast.Attribute):
        return False
    path = ast.unparse(function)
    if path.startswith(_LIBRARIES):
        return not has_effects(path)
    return function.attr in _PURE


def has_effects(path: str) -> bool:
    """Return whether a function of a library, by its path, does more than return a value."""
    return _EFFECTS.search(path) is not None


# Methods that write to what they are called on, or that give something else each time.
_ONCE = re.compile(
    r"\b(pop|append|extend|insert|remove|sort|update|setdefault|fill|clear|next|add)$"
)


def can_repeat(node: ast.AST) -> bool:
    """Return whether an expression may be evaluated twice."""
    for each in ast.walk(node):
        if isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(each, ast.Call):
            path = ast.unparse(each.func)
            if has_effects(path) or _ONCE.search(path):
                return False
    return True
