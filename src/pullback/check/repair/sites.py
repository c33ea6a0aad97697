"""The expressions of a function, each with a hook through which its value can be changed.

Owns the rewriting: the value of every expression is passed through a `Probe`, which hands it on,
notes it, or puts another in its place. So one compiled function tries every change.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FrameType, FunctionType
from typing import Any

import numpy as np

from pullback.check.repair.source import Source, copied, source_of_helper
from pullback.core.tensor.tensor import Tensor

_PROBE = "__probe__"  # not mangled in a class
# What these return depends on the frame that calls them.
_OF_THE_FRAME = {"super", "locals", "vars", "globals", "eval", "exec", "dir"}
# How many times as often as in the unchanged function a loop may turn.
_TURNS = 4
_LATER = 3  # values that are kept of an expression beside its first
_LARGEST, _GROWTH = 10_000, 100  # of whole numbers, and how many times as large they may become
_MOST_KEPT = 1_000_000  # numbers on a tape
_MOST_SITES = 1000  # beyond these functions that are called are left as they are

# From the variables where an expression stands, and its value, to another value.
Change = Callable[[dict[str, Any], Any], Any]


class TooLongError(Exception):
    """A loop turns without end, or too often for all of its values to be kept."""


@dataclasses.dataclass
class Site:
    """One expression of a function.

    Attributes
    ----------
    source : Source
        The function: the one that was rewritten, or one that it calls.
    node : ast.expr
        In the tree of the source.
    line : int
        The line at which its statement begins.
    role : str
        ``"saved"`` if it is given to the context, ``"test"`` if a branch depends on it, else empty.
    """

    source: Source
    node: Any
    line: int
    role: str


@dataclasses.dataclass
class Seen:
    """What an expression had when it was first evaluated, and how often it was.

    Attributes
    ----------
    value : any
    then : any
        A copy of it, if it is an array: what follows may have written to it.
    names : dict
        The variables then.
    count : int
    later : list
        The values that it had then, a few of them.
    """

    value: Any
    then: Any
    names: dict[str, Any]
    count: int = 1
    later: list[Any] = dataclasses.field(default_factory=list)


class Probe:
    """What the values of a rewritten function pass through.

    Attributes
    ----------
    active : dict of int to callable
        The changes by site.
    changed : bool
        Whether what runs is changed, in this way or by another definition: it may not end.
    seen : dict of int to Seen, or None
        What is noted, if anything is.
    tape : dict of int to list, or None
        Where all values are kept, each time an expression is evaluated, if they are.
    turns, most : int
        How often loops turned in this call, and in unchanged ones.
    largest : int
        What whole numbers must not exceed with a change.
    kept : int
        How many numbers are on the tape.
    """

    def __init__(self) -> None:
        self.active: dict[int, Change] = {}
        self.changed = False
        self.seen: dict[int, Seen] | None = None
        self.tape: dict[int, list[Any]] | None = None
        self.turns = self.most = self.kept = 0
        self.largest = _LARGEST

    def value(self, k: int, value: Any) -> Any:
        """Hand on the value of site `k`, or what comes in its place."""
        if self.changed:
            change = self.active.get(k)
            value = value if change is None else _own(change(sys._getframe(1).f_locals, value))
            if isinstance(value, (int, np.integer)) and value > self.largest:
                raise TooLongError  # it may be a number of steps
            return value
        if self.seen is not None:
            self._note(self.seen, k, value, sys._getframe(1))
        elif self.tape is not None:
            self._keep(self.tape, k, value)
        return value

    def _keep(self, tape: dict[int, list[Any]], k: int, value: Any) -> None:
        """Keep a copy of a value; where that would take much memory, keep none."""
        is_array = isinstance(value, np.ndarray)
        self.kept += value.size if is_array else value.numel() if isinstance(value, Tensor) else 1
        if self.kept > _MOST_KEPT:
            raise TooLongError
        tape.setdefault(k, []).append(_own(value))

    def _note(self, seen: dict[int, Seen], k: int, value: Any, frame: FrameType) -> None:
        if isinstance(value, (int, np.integer)):
            self.largest = max(self.largest, _GROWTH * abs(int(value)))
        if k in seen:
            seen[k].count += 1
            if len(seen[k].later) < _LATER:
                seen[k].later.append(value)
        else:
            seen[k] = Seen(value, _own(value), dict(frame.f_locals))

    def turn(self) -> None:
        """Count a turn of a loop."""
        self.turns += 1
        if self.changed and self.turns > _TURNS * self.most + 100:
            raise TooLongError


def _own(value: Any) -> Any:
    """Return a copy of an array: what follows may write to it."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.clone() if isinstance(value, Tensor) else value


# -- rewriting -------------------------------------------------------------------------------------
class Rewritten:
    """A function whose values pass through a probe, with the functions of its file that it calls.

    Attributes
    ----------
    source : Source
    probe : Probe
    sites : list of Site
    helpers : dict of function to cell
        The functions that it calls, each with the cell of what is called in its place.
    lent : mapping
        Values of names that a changed definition may use beside its own.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lent: Mapping[str, Any] = {}
        self.probe = Probe()
        self.sites: list[Site] = []
        self.helpers: dict[FunctionType, CellType] = {}
        self._unchanged = self._current = self._made(source, source.tree, self.sites)
        self._running = self.sites  # those of the definition that runs

    def _made(self, source: Source, tree: ast.FunctionDef, sites: list[Site]) -> Any:
        rewriting = _Rewriting(source, sites)
        changed = rewriting.of(tree)
        cells = {_PROBE: CellType(self.probe)}
        for name in _loaded(tree) if self.lent else ():
            if name in self.lent and name not in rewriting.known:
                cells[name] = CellType(self.lent[name])
        for name in sorted(rewriting.called):
            found = source_of_helper(rewriting.known.get(name), source)
            if found is not None and len(self.sites) < _MOST_SITES:
                cells[name] = self._helper(found)
        return source.made(changed, cells)

    def _helper(self, source: Source) -> CellType:
        """Return the cell of a rewritten function; it may call itself."""
        if source.function not in self.helpers:
            cell = self.helpers[source.function] = CellType()
            cell.cell_contents = self._made(source, source.tree, self.sites)
        return self.helpers[source.function]

    def called(self) -> Any:
        """Return a function that runs it, changed or not."""

        @functools.wraps(self._unchanged)
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._current(*args, **kwargs)

        return run

    def names_in(self, seen: dict[int, Seen], source: Source | None = None) -> dict[str, Any]:
        """Return the variables at the end of the function, or of one that it calls."""
        source = source or self.source
        names: dict[str, Any] = {}
        for k, each in seen.items():
            if self._running[k].source is source:
                names.update(each.names)
        return {name: value for name, value in names.items() if not name.startswith("__")}

    @contextlib.contextmanager
    def changed(self, change: dict[int, Change] | ast.FunctionDef) -> Iterator[None]:
        """Let it run with some expressions changed, or with another definition."""
        self.probe.changed = True
        try:
            if isinstance(change, dict):
                self.probe.active = change
            else:
                self._running = [*self.sites]  # helpers keep their numbers
                self._current = self._made(self.source, change, self._running)
            yield
        finally:
            self.probe.active, self.probe.changed = {}, False
            self._current, self._running = self._unchanged, self.sites


class _Rewriting(ast.NodeTransformer):
    """Rewrites the body of a definition; collects its sites."""

    def __init__(self, source: Source, sites: list[Site]) -> None:
        self.source, self.sites = source, sites
        self.known = source.known()
        bound = _bound(source.tree)
        self.fixed = {
            name
            for name, value in self.known.items()
            if (callable(value) or inspect.ismodule(value)) and name not in bound
        }
        self.called: set[str] = set()  # the names of functions from outside
        self.role, self.line = "", 0

    def of(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        """Return a copy of a definition with its expressions rewritten."""
        tree = copy.copy(tree)
        tree.body = [self.visit(copied(statement)) for statement in tree.body]
        return tree

    def visit(self, node: ast.AST) -> Any:
        """Rewrite a node."""
        if isinstance(node, ast.stmt):
            self.line = node.lineno
        return super().visit(node)

    def _in_role(self, role: str, node: Any) -> Any:
        before, self.role = self.role, role or self.role
        found = self.generic_visit(node)
        self.role = before
        return found

    # -- statements ------------------------------------------------------------------------------
    def visit_Expr(self, node: ast.Expr) -> Any:
        return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        saves = any(isinstance(target, ast.Attribute) for target in node.targets)
        return self._in_role("saved" if saves else "", node)

    def visit_If(self, node: ast.If) -> Any:
        if not node.orelse and all(isinstance(each, ast.Raise) for each in node.body):
            return node  # what forward refuses
        before, self.role = self.role, "test"
        node.test = self.visit(node.test)
        self.role = before
        node.body = [self.visit(each) for each in node.body]
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    def visit_For(self, node: ast.For) -> Any:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> Any:
        return self._loop(node)

    def visit_match_case(self, node: ast.match_case) -> Any:
        if node.guard is not None:  # a pattern is no expression
            node.guard = self.visit(node.guard)
        node.body = [self.visit(each) for each in node.body]
        return node

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body = [ast.Expr(_through("turn", [], node.body[0])), *node.body]
        return node

    # -- expressions -----------------------------------------------------------------------------
    def _site(self, node: Any, rewrite: Callable[[Any], Any]) -> Any:
        """Return a rewritten expression whose value passes through the probe."""
        k = len(self.sites)
        self.sites.append(Site(self.source, copied(node), self.line, self.role))
        return _through("value", [ast.Constant(k), rewrite(node)], node)

    def _whole(self, node: Any) -> Any:
        return self._site(node, self.generic_visit)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._whole(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        return self._whole(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.operand, ast.Constant):  # a negative number
            return self._site(node, lambda same: same)
        return self._whole(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._whole(node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self._whole(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.fixed:
            self.called.add(node.id)
            return node
        plain = not isinstance(node.ctx, ast.Load)
        return node if plain else self._site(node, lambda same: same)

    def visit_Constant(self, node: ast.Constant) -> Any:
        plain = not isinstance(node.value, (int, float, complex, str))
        return node if plain else self._site(node, lambda same: same)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        return self._site(node, self._attribute)

    def _attribute(self, node: ast.Attribute) -> Any:
        if not _is_path(node.value):
            node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        return node if name in _OF_THE_FRAME else self._site(node, self._call)

    def _call(self, node: ast.Call) -> Any:
        function = node.func
        saves = isinstance(function, ast.Attribute) and function.attr.startswith("save_for_")
        if isinstance(function, ast.Attribute):
            function.value = self._owner(function.value)
        else:
            node.func = self.visit(function)
        kept, node.func = node.func, ast.Name("_", ast.Load())
        self._in_role("saved" if saves else "", node)
        node.func = kept
        return node

    def _owner(self, node: Any) -> Any:
        """Rewrite what a method is called on, unless it is a module."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        is_module = isinstance(root, ast.Name) and root.id in self.fixed
        return node if is_module else self.visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.ctx, ast.Load):
            return self._whole(node)
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node


def _through(method: str, args: list[Any], at: ast.AST) -> ast.Call:
    function = ast.Attribute(ast.Name(_PROBE, ast.Load()), method, ast.Load())
    return ast.copy_location(ast.Call(function, args, []), at)


def _is_path(node: Any) -> bool:
    """Return whether an expression is a name, or attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _loaded(tree: ast.AST) -> set[str]:
    """Return the names that a function reads and does not bind."""
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return {n.id for n in nodes if isinstance(n.ctx, ast.Load)} - _bound(tree)


def _bound(tree: ast.AST) -> set[str]:
    """Return the names that a function binds."""
    nodes = list(ast.walk(tree))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in nodes if isinstance(n, ast.arg)}
