"""What the source of an operation says of its arguments: how forward uses them.

Nobody who writes `offsets[index]` and `np.bincount(index)` needs to say what an index is. A local
name stands for the argument it holds, if it is assigned once. Must not know which inputs are made
of it.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import types
import typing
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.repair.source import definition_of
from pullback.core.tensor.tensor import Tensor

_ONLY_ARRAYS = {n for n in dir(np.ndarray) if not n.startswith("_") and not hasattr(Tensor, n)}


class Use(enum.StrEnum):
    """How an argument is used."""

    NUMBER, INDEX = "number", "index"
    OVERWRITTEN = "overwritten"  # an index of elements that are written: none may come twice
    SORTED, LOOKED_UP = "sorted", "looked up"  # a table, and what is looked up in one
    TENSOR, ARRAY = "tensor", "array"
    GRADIENT = "gradient"  # backward returns one for it
    LEFT_OUT = "left out"  # backward does not even name it, but others


class Takes(NamedTuple):
    """A function or method, and how it uses one operand; position 0 is that of a method's owner."""

    function: str
    position: int
    use: str = ""  # empty for one that tells nothing
    same: bool = False  # whether the result has the elements of the operand, at the same places


TAKES = (
    *(Takes(name, 0, Use.TENSOR, same=True) for name in ("numpy", "detach")),
    *(Takes(name, 0, same=True) for name in ("copy", "astype", "asarray", "array")),
    *(Takes(name, 0, Use.NUMBER) for name in ("item", "float", "int")),
    *(Takes(name, k, Use.NUMBER) for name in ("range", "arange") for k in range(3)),
    *(Takes("save_for_backward", k, Use.TENSOR) for k in range(1, 9)),
    Takes("bincount", 0, Use.INDEX),
    *(Takes(name, 1, Use.INDEX) for name in ("take", "take_along_axis", "at")),
    Takes("gather", 2, Use.INDEX),
    Takes("scatter", 2, Use.OVERWRITTEN),
    Takes("put_along_axis", 1, Use.OVERWRITTEN),
    Takes("searchsorted", 0, Use.SORTED),
    Takes("searchsorted", 1, Use.LOOKED_UP),
    Takes("digitize", 0, Use.LOOKED_UP),
    Takes("digitize", 1, Use.SORTED),
    Takes("interp", 0, Use.LOOKED_UP),
    Takes("interp", 1, Use.SORTED),
)


class Reading:
    """What forward and backward say of the arguments, by name."""

    def __init__(self, fn: Any) -> None:
        # How each is used, by hints too; of those that are missing nothing is known.
        self.uses: dict[str, set[str]] = defaultdict(set)
        # Of those that forward takes apart element by element, or column by column.
        self.shapes: dict[str, tuple[str, ...]] = {}
        self.hints: dict[str, Any] = {}
        forward = getattr(fn, "forward", None)
        with contextlib.suppress(Exception):  # of a name that is not defined where it is read
            self.hints = typing.get_type_hints(forward or fn)
        for name, hint in self.hints.items():
            if hint in (Tensor, np.ndarray):
                self.uses[name].add(Use.GRADIENT if hint is Tensor else Use.ARRAY)
        function = definition_of(forward)
        if function is not None:  # perhaps of another signature than what wraps it
            a = function.args
            names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
            self._globals = getattr(forward, "__globals__", {})
            self._nodes = list(ast.walk(function))
            # From a local name to the argument that it holds, and whether to all its elements.
            self._held = {name: (name, True) for name in names}
            self._learn_names()
            for name, use in (used for node in self._nodes for used in self._uses_in(node)):
                self.uses[name].add(use)
            self.uses.pop("", None)
            self.shapes = self._taken_apart()
            self._read_results(getattr(fn, "rule", None), names[1:])

    def of(self, *kinds: str) -> set[str]:
        """Return the arguments that are used in one of these ways."""
        return {name for name, found in self.uses.items() if found.intersection(kinds)}

    # -- names ---------------------------------------------------------------------------------
    def _learn_names(self) -> None:
        """Learn which local names hold an argument, or a part of one."""
        names = [n for n in self._nodes if isinstance(n, ast.Name)]
        stores = Counter(n.id for n in names if isinstance(n.ctx, ast.Store))
        known = set()
        for name, value, part in (one for node in self._nodes for one in _assigned(node)):
            held, whole = self._holds(value)
            if held and (part or stores[name] == 1):
                self._held[name] = (held, whole and not part)
                known.add(name)
        for name in stores.keys() - known:
            self._held.pop(name, None)

    def _holds(self, node: ast.AST | None) -> tuple[str, bool]:
        """Return the argument whose elements an expression holds, and whether all in their places.

        The name is empty if it holds none's.
        """
        match node:
            case ast.Name(id=name):
                return self._held.get(name, ("", True))
            case ast.Subscript(value=value) | ast.Attribute(value=value, attr="T"):
                return self._holds(value)[0], False
            case ast.Call(func=called):
                if any(takes.same and _ends(called, takes.function) for takes in TAKES):
                    return self._holds(self._operand(node, 0))
        return "", True

    def _name(self, node: ast.AST | None) -> str:
        """Return the argument that an expression is; empty if it is none."""
        held, whole = self._holds(node)
        return held if whole else ""

    def _operand(self, node: ast.Call, position: int) -> ast.AST | None:
        """Return the operand of a call of a function or method; None if it has none there."""
        given: list[ast.AST] = list(node.args)
        if isinstance(node.func, ast.Attribute) and not self._module(node.func.value):
            given.insert(0, node.func.value)
        return given[position] if position < len(given) else None

    def _module(self, node: ast.AST) -> str:
        """Return the name of the module that an expression is, or is of; empty for others."""
        while isinstance(node, ast.Attribute):
            node = node.value
        name = getattr(node, "id", "")
        known = None if name in self._held else self._globals.get(name)
        return str(known.__name__) if isinstance(known, types.ModuleType) else ""

    # -- uses ----------------------------------------------------------------------------------
    def _uses_in(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield the arguments that a node uses, and how."""
        match node:
            case ast.Call(func=called, args=operands):
                for takes in TAKES:
                    if takes.use and _ends(called, takes.function):
                        yield self._name(self._operand(node, takes.position)), takes.use
                module = self._module(called)
                if module and not module.startswith("pullback"):
                    names = (operand for operand in operands if isinstance(operand, ast.Name))
                    yield from ((self._name(name), Use.ARRAY) for name in names)
            case ast.Assign(targets=[ast.Subscript() as written]):
                yield from ((self._holds(k)[0], Use.OVERWRITTEN) for k in _brackets(written))
            case ast.Subscript():
                yield from ((self._holds(k)[0], Use.INDEX) for k in _brackets(node))
            case ast.Attribute(value=ast.Name() as owner, attr=attr) if attr in _ONLY_ARRAYS:
                yield self._name(owner), Use.ARRAY

    # -- shapes --------------------------------------------------------------------------------
    def _taken_apart(self) -> dict[str, tuple[str, ...]]:
        """Return the shapes of those of which each element or column is taken by its number."""
        found: dict[str, set[tuple[int, int]]] = defaultdict(set)  # axes, and how many are taken
        for node in self._nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value):
                    name, whole = self._holds(value)
                    starred = any(isinstance(part, ast.Starred) for part in parts)
                    found[name].add((1 if whole else 2, 0 if starred else len(parts)))
                case ast.Subscript(value=value):
                    places = _brackets(node)
                    last = _whole(places[-1]) if places else None
                    found[self._name(value)].add((len(places), 0 if last is None else last + 1))
        return {
            name: ("n", str(most))[2 - axes :]
            for name, counts in found.items()
            if name and len({axes for axes, _ in counts}) == 1 and all(k > 0 for _, k in counts)
            for axes, most in [max(counts)]
            if axes <= 2 and most > 1
        }

    # -- results -------------------------------------------------------------------------------
    def _read_results(self, rule: Any, names: list[str]) -> None:
        """Read for which arguments each result of backward has a gradient, and which none names."""
        function = definition_of(rule)
        if function is None:
            return
        nodes = list(ast.walk(function))
        results = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
        rows: list[dict[Any, ast.AST]] = []
        for value in results:
            match value:
                case ast.Dict(keys=keys, values=values):
                    written = (getattr(key, "value", None) for key in keys)
                    rows.append(dict(zip(written, values, strict=True)))
                case ast.Tuple(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
                    rows.append(dict(zip(names, parts, strict=False)))
        for name in names if rows else ():
            texts = [ast.unparse(row[name]) if name in row else "None if left out" for row in rows]
            if not any(text.startswith("None") or text.endswith("else None") for text in texts):
                self.uses[name].add(Use.GRADIENT)
        said = {node.value for node in nodes if isinstance(node, ast.Constant)}.intersection(names)
        if said and not any(isinstance(value, ast.Tuple) for value in results):
            for name in {*names} - said:
                self.uses[name].add(Use.LEFT_OUT)


# -- parts of a tree -------------------------------------------------------------------------------
def _assigned(node: Any) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield the names that a statement assigns, each with what, and whether with a part of it."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        found: list[tuple[Any, ast.AST, bool]] = [(target, node.value, False)]
        match target, node.value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values):
                found = [(t, value, False) for t, value in zip(targets, values, strict=False)]
            case ast.Tuple(elts=targets), value:
                found = [(t, value, True) for t in targets]
        yield from ((t.id, value, part) for t, value, part in found if isinstance(t, ast.Name))


def _brackets(node: ast.Subscript) -> list[ast.AST]:
    """Return what stands in the brackets that pick elements of an array, apart."""
    if isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "r_", "c_"):
        return []  # of a shape, and of what makes an array
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _ends(node: ast.AST, name: str) -> bool:
    """Return whether an expression is a name, or ends with an attribute; perhaps in place."""
    found: str = getattr(node, "attr" if isinstance(node, ast.Attribute) else "id", "")
    return found in (name, f"{name}_")


def _whole(node: ast.AST) -> int | None:
    """Return the whole number that is written, None if none is."""
    text = ast.unparse(node)
    return int(text) if text.removeprefix("-").isdecimal() else None
