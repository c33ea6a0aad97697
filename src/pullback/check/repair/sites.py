"""A function whose expressions are sites: their values are noted, or others put in their place.

The value of every expression is passed through a `Probe`, which hands it on. So values are known
without evaluating anything twice, and the effect of others is measured without another function.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FrameType, FunctionType
from typing import Any

import numpy as np

from pullback.check.repair.source import Source, replaced, source_of_helper
from pullback.check.values import host
from pullback.core.tensor.tensor import Tensor

_PROBE = "__probe__"  # not mangled in a class
_TURNS = 4  # how many times as often as in the unchanged function a loop may turn
_MOST_KEPT = 1_000_000  # numbers
_MOST_SITES = 1000  # beyond these functions that are called are left as they are
_SITES = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp,
    ast.Name, ast.Subscript, ast.UnaryOp,
)  # fmt: skip
_LEFT = (ast.Assert, ast.JoinedStr, ast.Raise, ast.pattern)  # messages, what is refused
_READ = (ast.Load, type(None))  # what else is assigned or deleted

Change = Callable[[Any], Any]  # from a value to another


class TooLongError(Exception):
    """A loop turns without end."""


@dataclasses.dataclass
class Seen:
    """What an expression had.

    Attributes
    ----------
    values : list
        Copies, each time that it was evaluated; only the first ones if they would take much memory.
    names : dict
        The variables when it first was.
    count : int
        How often it was.
    """

    values: list[Any]
    names: dict[str, Any]
    count: int = 1

    @property
    def value(self) -> Any:
        """What it had first."""
        return self.values[0]


class Probe:
    """What the values of a rewritten function pass through.

    Attributes
    ----------
    active : mapping of int to callable
        The changes by site.
    seen : dict of int to Seen, or None
        What is noted, if anything is.
    is_changed : bool
        Whether what runs is changed, by values or by another definition: it may not end.
    """

    def __init__(self) -> None:
        self.active: Mapping[int, Change] = {}
        self.seen: dict[int, Seen] | None = None
        self.is_changed = False
        self.turns = self.most = self.kept = 0  # turns in this call, in unchanged ones; numbers

    def value(self, k: int, value: Any) -> Any:
        """Hand on the value of site `k`, or what comes in its place."""
        if self.seen is not None:
            self._note(self.seen, k, value, sys._getframe(1))
        elif k in self.active:
            return _own(self.active[k](value))
        return value

    def _note(self, seen: dict[int, Seen], k: int, value: Any, frame: FrameType) -> None:
        self.kept += int(np.prod(shape_of(value)))
        if k not in seen:
            seen[k] = Seen([_own(value)], dict(frame.f_locals))
            return
        seen[k].count += 1
        if self.kept <= _MOST_KEPT:
            seen[k].values.append(_own(value))

    def own(self, value: Any) -> Any:
        """Return a copy of what comes in the place of a value: what follows may write to it."""
        return _own(value)

    def turn(self) -> None:
        """Count a turn of a loop."""
        self.turns += 1
        if not self.is_changed:
            self.most = max(self.most, self.turns)
        elif self.turns > _TURNS * self.most + 100:
            raise TooLongError


def _own(value: Any) -> Any:
    """Return a copy of an array: what follows may write to it."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.clone() if isinstance(value, Tensor) else value


def kind_of(value: Any) -> str:
    """Return the kind of a number's or an array's data type; empty if it is neither."""
    if not isinstance(value, (np.ndarray, Tensor, np.generic, bool, int, float, complex)):
        return ""
    kind = np.asarray(plain(value)).dtype.kind
    return "i" if kind == "u" else kind if kind in "bifc" else ""


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, that of a number."""
    return tuple(value.shape) if isinstance(value, (np.ndarray, Tensor)) else ()


def plain(value: Any) -> Any:
    """Return a tensor's array; anything else as it is."""
    return host(value) if isinstance(value, Tensor) else value


class Rewritten:
    """A function whose values pass through a probe, with the functions of its file that it calls.

    Attributes
    ----------
    source : Source
    probe : Probe
    sites : list of (Source, ast.expr)
        The expressions, each with its function; each has its number as the attribute `site`.
    sources : dict of function to Source
        All of its functions.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.probe = Probe()
        self.sites: list[tuple[Source, Any]] = []
        self.sources: dict[FunctionType, Source] = {}
        self._cells: dict[FunctionType, CellType] = {}  # of what is called in their places
        self._asked: set[FunctionType] = set()
        self._add(source)

    def _add(self, source: Source) -> None:
        """Rewrite a function; it may call itself."""
        self._cells[source.function], self.sources[source.function] = CellType(), source
        copy = replaced(source.tree, ())
        for node, twin in zip(ast.walk(source.tree), ast.walk(copy), strict=True):
            twin.origin = node  # type: ignore[attr-defined]
        probing = _Probing(source, self.sites)
        copy.body = [probing.visit(statement) for statement in copy.body]
        self._cells[source.function].cell_contents = self._made(source, copy, {})

    def _made(self, source: Source, tree: Any, more: Mapping[str, CellType]) -> FunctionType:
        cells = {_PROBE: CellType(self.probe), **more}
        for name in dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)):
            value = source.known.get(name)
            if isinstance(value, FunctionType):
                if value not in self._asked and value not in self._cells:
                    self._asked.add(value)
                    found = source_of_helper(value, source)
                    if found is not None and len(self.sites) < _MOST_SITES:
                        self._add(found)
                if value in self._cells:
                    cells[name] = self._cells[value]
        return source.made(tree, cells)

    def called(self) -> Any:
        """Return a function that runs it, changed or not."""
        cell = self._cells[self.source.function]

        @functools.wraps(cell.cell_contents)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.probe.turns = 0
            return cell.cell_contents(*args, **kwargs)

        return run

    @contextlib.contextmanager
    def noting(self) -> Iterator[dict[int, Seen]]:
        """Note what expressions have in the runs of a block."""
        self.probe.seen, self.probe.kept = {}, 0
        try:
            yield self.probe.seen
        finally:
            self.probe.seen = None

    def names_in(self, seen: Mapping[int, Seen], source: Source) -> dict[str, Any]:
        """Return the variables at the end of one of its functions."""
        names: dict[str, Any] = {}
        for k, each in seen.items():
            if self.sites[k][0] is source:
                names.update(each.names)
        return {n: v for n, v in names.items() if n.isidentifier() and not n.startswith("__")}

    @contextlib.contextmanager
    def with_values(self, changes: Mapping[int, Change]) -> Iterator[None]:
        """Let it run with other values of some expressions."""
        self.probe.active, self.probe.is_changed = changes, True
        try:
            yield
        finally:
            self.probe.active, self.probe.is_changed = {}, False

    @contextlib.contextmanager
    def with_tree(self, source: Source, tree: Any, lent: Mapping[str, CellType]) -> Iterator[None]:
        """Let it run with another definition of one of its functions, which may use more names."""
        for node in ast.walk(tree):
            _count_turns(node)
        cell = self._cells[source.function]
        before = cell.cell_contents
        cell.cell_contents, self.probe.is_changed = self._made(source, tree, lent), True
        try:
            yield
        finally:
            cell.cell_contents, self.probe.is_changed = before, False


class _Probing(ast.NodeTransformer):
    """Rewrites the copy of a definition, whose nodes know theirs of the source; adds its sites."""

    def __init__(self, source: Source, sites: list[tuple[Source, Any]]) -> None:
        self.source, self.sites = source, sites
        own = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and _is_stored(n)}
        own |= {n.arg for n in ast.walk(source.tree) if isinstance(n, ast.arg)}
        known = source.known.items()
        fixed = {name for name, value in known if callable(value) or inspect.ismodule(value)}
        self.fixed = fixed - own

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node."""
        if isinstance(node, _LEFT) or self._is_left(node):
            return node
        if not isinstance(node, _SITES) or _is_stored(node):
            node = super().visit(node)
            _count_turns(node)
            return node
        k, origin = len(self.sites), node.origin  # type: ignore[union-attr]
        self.sites.append((self.source, origin))
        origin.site = k
        return _through("value", [ast.Constant(k), self._inside(node)], node)

    def _is_left(self, node: Any) -> bool:
        """Return whether a node is a docstring, what forward refuses, a function, no number."""
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        if isinstance(node, ast.If) and not node.orelse:
            return all(isinstance(each, ast.Raise) for each in node.body)
        if isinstance(node, ast.Constant):
            return not isinstance(node.value, (int, float, complex, str))
        return isinstance(node, ast.Name) and node.id in self.fixed

    def _inside(self, node: Any) -> Any:
        """Rewrite what an expression is made of."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return node  # a negative number
        if isinstance(node, ast.Attribute):
            return node if isinstance(_root(node), ast.Name) else self.generic_visit(node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            return self.generic_visit(node)
        function, root = node.func, _root(node.func)
        if isinstance(function, ast.Attribute) and getattr(root, "id", "") not in self.fixed:
            function.value = self.visit(function.value)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        return node


def _is_stored(node: Any) -> bool:
    return not isinstance(getattr(node, "ctx", None), _READ)


def _count_turns(node: Any) -> None:
    if isinstance(node, (ast.For, ast.While)):
        node.body.insert(0, ast.Expr(_through("turn", [], node.body[0])))


def owned(new: Any) -> Any:
    """Return a changed expression, or statements, with copies of the arrays that it leads to."""
    if isinstance(new, list):
        return [owned(each) for each in new]
    if isinstance(new, ast.Assign):
        return ast.Assign(new.targets, owned(new.value))
    return _through("own", [new], new) if isinstance(new, ast.expr) else new


def _through(method: str, args: list[Any], at: ast.AST) -> ast.Call:
    function = ast.Attribute(ast.Name(_PROBE, ast.Load()), method, ast.Load())
    return ast.copy_location(ast.Call(function, args, []), at)


def _root(node: Any) -> Any:
    """Return what an expression is an attribute of, of an attribute of."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node
