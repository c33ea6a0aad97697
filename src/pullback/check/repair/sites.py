"""Functions that run with changed definitions, and what their expressions had.

The value of every expression can be noted: in a definition of its own it passes through a probe,
which hands it on. What an expression had when its function ran unchanged becomes the attribute
``seen`` of its node.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType
from typing import Any

import numpy as np

from pullback.check.repair.source import Places, Source, rebuilt, replaced, source_of, through
from pullback.check.values import host
from pullback.core.tensor.tensor import Tensor

_PROBE, _TURN = "__probe__", "__turn__"  # not mangled in a class
_MOST_FUNCTIONS = 30  # that are changed with the one that calls them
_MOST_KEPT = 1_000_000  # numbers
_TURNS = 4  # how many times as often as in the unchanged function a loop may turn
_NOTED = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp,
    ast.Name, ast.Subscript, ast.UnaryOp,
)  # fmt: skip
_LEFT = (ast.Assert, ast.JoinedStr, ast.Raise, ast.pattern)  # messages, what is refused
_READ = ast.Load()


class TooLongError(Exception):
    """A loop turns without end."""


@dataclasses.dataclass
class Seen:
    """What an expression of a function had each time, or first if that takes much memory."""

    source: Source
    values: list[Any]  # copies
    count: int = 1

    @property
    def value(self) -> Any:
        """What it had first."""
        return self.values[0]


def own(value: Any) -> Any:
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


class Noted:
    """What expressions had in some runs, by node, and the variables of functions at their ends."""

    def __init__(self) -> None:
        self.seen: dict[Any, Seen] = {}
        self.names: dict[Source, dict[str, Any]] = {}
        self._kept = 0

    def note(self, source: Source, node: Any, value: Any) -> None:
        """Note what an expression has, if that is no function or module."""
        if callable(value) or inspect.ismodule(value):
            return
        self._kept += int(np.prod(shape_of(value)))
        if node not in self.seen:
            self.seen[node] = Seen(source, [own(value)])
            names = sys._getframe(2).f_locals.items()
            found = {n: v for n, v in names if n.isidentifier() and not n.startswith("__")}
            self.names.setdefault(source, {}).update(found)
            return
        self.seen[node].count += 1
        if self._kept <= _MOST_KEPT:
            self.seen[node].values.append(own(value))


class Rewritten:
    """A function whose definition can be changed, with the functions of its file that it calls."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.sources = {source.function: source}
        self._noted: Noted | None = None
        self._turns, self._most = 0, 1
        for caller in (found := [source]):  # which grows
            for helper in _helpers_of(caller):
                if helper.function not in self.sources and len(found) < _MOST_FUNCTIONS:
                    found.append(helper)
                    self.sources[helper.function] = helper
        # What is called in the places of the functions, and by which names each knows it.
        self._cells = {function: CellType() for function in self.sources}
        self._called: dict[Source, dict[str, CellType]] = {}
        for each in found:
            known = [(n, f) for n, f in each.known.items() if isinstance(f, FunctionType)]
            self._called[each] = {n: self._cells[f] for n, f in known if f in self._cells}
            self._cells[each.function].cell_contents = self._made(each, each.tree, {})

    def _made(self, source: Source, tree: Any, more: Mapping[str, CellType]) -> FunctionType:
        return source.made(tree, {**self._called[source], **more})

    def called(self) -> Any:
        """Return a function that runs it, changed or not."""
        cell = self._cells[self.source.function]

        @functools.wraps(cell.cell_contents)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._turns = 0
            return cell.cell_contents(*args, **kwargs)

        return run

    @contextlib.contextmanager
    def _running(self, functions: Mapping[Source, FunctionType]) -> Iterator[None]:
        cells = [(self._cells[source.function], made) for source, made in functions.items()]
        before = [cell.cell_contents for cell, _ in cells]
        for cell, made in cells:
            cell.cell_contents = made
        try:
            yield
        finally:
            for (cell, _), made in zip(cells, before, strict=True):
                cell.cell_contents = made

    @contextlib.contextmanager
    def noting(self) -> Iterator[Noted]:
        """Note what expressions have in the runs of a block."""
        with self._running(self._probed):
            found = self._noted = Noted()
            yield found
        self._most = max([self._most, *(seen.count for seen in found.seen.values())])

    @functools.cached_property
    def _probed(self) -> dict[Source, FunctionType]:
        nodes: list[tuple[Source, Any]] = []

        def probe(k: int, value: Any) -> Any:
            if self._noted is not None:
                self._noted.note(*nodes[k], value)
            return value

        cells = {_PROBE: CellType(probe)}
        found = {}
        for source in self.sources.values():
            body = _probing(source.tree.body, source, nodes)
            found[source] = self._made(source, rebuilt(source.tree, body=body), cells)
        return found

    @contextlib.contextmanager
    def changed(self, source: Source, places: Places, more: Mapping[str, Any]) -> Iterator[None]:
        """Let it run with a change of one of its functions, which may use more names."""
        for _, new in places:
            ast.fix_missing_locations(new)
        turns = [(test, through(_TURN, replaced(test, places))) for test in source.loops]
        cells = {n: v if isinstance(v, CellType) else CellType(v) for n, v in more.items()}
        cells[_TURN] = CellType(self._turn)
        made = self._made(source, replaced(source.tree, [*places, *turns]), cells)
        with self._running({source: made}):
            yield

    def _turn(self, test: Any) -> Any:
        self._turns += 1
        if self._turns > _TURNS * self._most + 100:
            raise TooLongError
        return test


def _probing(node: Any, source: Source, nodes: list[tuple[Source, Any]]) -> Any:
    """Return a tree in which values pass through a probe; adds the nodes that these are of."""
    if isinstance(node, list):
        return [_probing(each, source, nodes) for each in node]
    if not isinstance(node, ast.AST) or isinstance(node, _LEFT):
        return node
    is_read = isinstance(getattr(node, "ctx", _READ), ast.Load)
    is_noted, k = isinstance(node, _NOTED) and is_read, len(nodes)
    nodes += [(source, node)] if is_noted else []
    fields = {}
    if not isinstance(node, ast.Attribute) or not isinstance(_root(node), ast.Name):
        fields = dict(ast.iter_fields(node))
    if isinstance(fields.get("func"), ast.Name):
        del fields["func"]
    for name, value in fields.items():
        if name == "func" and isinstance(value, ast.Attribute):  # a method is not noted
            fields[name] = rebuilt(value, value=_probing(value.value, source, nodes))
        else:
            fields[name] = _probing(value, source, nodes)
    changed = rebuilt(node, **fields)
    return through(_PROBE, ast.Constant(k), changed) if is_noted else changed


def _root(node: Any) -> Any:
    """Return what an expression is an attribute of, of an attribute of."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _helpers_of(source: Source) -> list[Source]:
    """Return the functions that one calls, of its own file, with a source and not wrapped."""
    names = dict.fromkeys(n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name))
    called = [f for f in map(source.known.get, names) if isinstance(f, FunctionType)]
    file = source.function.__code__.co_filename
    own = [f for f in called if f.__code__.co_filename == file and not hasattr(f, "__wrapped__")]
    return [found for found in map(source_of, own) if found is not None]
