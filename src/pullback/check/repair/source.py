"""Functions by their sources: read as syntax trees, changed, run with what they had noted.

A changed function is another one that reads the same globals and closure, so that it does what the
original does but for the change. Trees are never written to: changed ones share what is unchanged.
What an expression had when its function ran unchanged is the attribute ``seen`` of its node.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import dataclasses
import functools
import inspect
import itertools
import linecache
import operator
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from pullback.check.values import host
from pullback.core.tensor.tensor import Tensor

_INNER, _PROBE, _TURN = "__inner", "__probe__", "__turn__"
_WIDEST = 76  # characters of a quotation
_SHOWN = (ast.expr, ast.Pass, ast.Assign, ast.AugAssign, ast.Expr, ast.Slice)
_MOST_FUNCTIONS = 30  # that are changed with those that call them
_MOST_KEPT = 1_000_000  # numbers
_MOST_TURNS = 10_000  # of the loops of a changed function
_NOTED = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp,
    ast.Name, ast.Subscript, ast.UnaryOp,
)  # fmt: skip
_LEFT = (ast.Assert, ast.JoinedStr, ast.Raise, ast.pattern)  # messages, what is refused

# What stands in a tree, and what comes there: expressions, or statements.
Places = Sequence[tuple[Any, Any]]


class Source:
    """A function and its definition, without decorators; a lambda as one that returns."""

    def __init__(self, function: FunctionType, tree: Any) -> None:
        self.function = function
        self.tree = tree

    @functools.cached_property
    def known(self) -> dict[str, Any]:
        """The values of the names that it does not bind itself."""
        closed = inspect.getclosurevars(self.function).nonlocals
        return {**vars(builtins), **self.function.__globals__, **closed}

    @functools.cached_property
    def names(self) -> set[str]:
        """The names that mean something in it."""
        code = self.function.__code__
        return {*self.known, *code.co_varnames, *code.co_cellvars}

    def made(self, tree: Any, more: Mapping[str, Any]) -> FunctionType:
        """Return the function of a changed definition, with more names, or others."""
        module, original = ast.Module([rebuilt(tree, name=_INNER)], []), self.function
        flags = __future__.annotations.compiler_flag
        compiled = compile(
            module, original.__code__.co_filename, "exec", flags=flags, dont_inherit=True
        )
        codes = [each for each in compiled.co_consts if isinstance(each, CodeType)]
        code = next(each for each in codes if each.co_name == _INNER)
        names = {**self.known, **more}
        found = FunctionType(code, names, original.__name__, original.__defaults__)
        found.__kwdefaults__ = original.__kwdefaults__
        found.__dict__.update(original.__dict__)
        return found


def definition_of(fn: Any) -> ast.FunctionDef | None:
    """Return the definition of a function, without decorators; a lambda as one that returns.

    None if it has no source, or is one of several of a line that have the same arguments.
    """
    fn = inspect.unwrap(fn)
    code = getattr(fn, "__code__", None)
    if code is None:
        return None
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    names = [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    own = [code.co_name, code.co_firstlineno, names]
    found = [node for *key, node in _definitions(code.co_filename, len(lines)) if key == own]
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _definitions(filename: str, lines: int) -> list[tuple[str, int, list[str], ast.FunctionDef]]:
    """Return the functions of a file by name, line and arguments; `lines` tells editions apart."""
    try:
        module = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(module):
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            continue
        a, decorators = node.args, getattr(node, "decorator_list", [])
        line = min([node.lineno, *(each.lineno for each in decorators)])
        name, body = getattr(node, "name", "<lambda>"), node.body
        if isinstance(body, ast.expr):
            body = [ast.copy_location(ast.Return(body), body)]
        made = ast.copy_location(ast.FunctionDef(name, a, body, []), node)
        found.append((name, line, [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)], made))
    return found


def source_of(function: Any) -> Source | None:
    """Return a function's source; None if it is no Python function or has none."""
    function = inspect.unwrap(function)
    found = definition_of(function) if isinstance(function, FunctionType) else None
    # Of its own: what expressions had is kept in it. This is five times as fast as `copy.deepcopy`.
    return Source(function, pickle.loads(pickle.dumps(found))) if found else None


def with_helpers(source: Source) -> list[Source]:
    """Return a function and those that it calls, of its own file, with a source and not wrapped."""
    found = {source.function: source}
    for each in (reached := [source]):  # which grows
        file = each.function.__code__.co_filename
        names = dict.fromkeys(n.id for n in ast.walk(each.tree) if isinstance(n, ast.Name))
        for f in (f for f in map(each.known.get, names) if isinstance(f, FunctionType)):
            is_own = f.__code__.co_filename == file and not hasattr(f, "__wrapped__")
            helper = source_of(f) if is_own and f not in found else None
            if helper is not None and len(reached) < _MOST_FUNCTIONS:
                found[f] = helper
                reached.append(helper)
    return reached


# -- trees -----------------------------------------------------------------------------------------
def rebuilt(node: Any, **fields: Any) -> Any:
    """Return a copy of a node with other fields."""
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **fields}), node)


def replaced(tree: Any, places: Places) -> Any:
    """Return a tree with other nodes in the places of some; the rest is shared."""
    new = {id(old): other for old, other in places}

    def of(node: Any) -> Any:
        if id(node) in new:
            return new[id(node)]
        if isinstance(node, list):
            found = list(map(of, node))
            return node if all(map(operator.is_, found, node)) else found
        if not isinstance(node, ast.AST):
            return node
        parts = {n: v for n, v in node.__dict__.items() if isinstance(v, (ast.AST, list))}
        changed = {name: of(value) for name, value in parts.items()}
        same = all(map(operator.is_, changed.values(), parts.values()))
        return node if same else rebuilt(node, **changed)

    return of(tree)


def through(name: str, *args: Any) -> ast.Call:
    """Return a call of one of the functions that a changed definition is given."""
    call = ast.Call(ast.Name(name, ast.Load()), list(args), [])
    for node in (call, call.func, args[0]):
        ast.copy_location(node, args[-1])
    return call


def quotation(tree: Any, places: Places) -> tuple[str, str]:
    """Return the source before and after a change: the widest expression that is not too long."""
    changed = {id(old) for old, _ in places}
    around = [n for n in ast.walk(tree) if changed <= set(map(id, ast.walk(n)))]
    texts = [
        (ast.unparse(n), ast.unparse(replaced(n, places))) for n in around if isinstance(n, _SHOWN)
    ]
    if not texts:  # in several statements
        before, after = zip(*(quotation(tree, [place]) for place in places), strict=True)
        return "; ".join(before), "; ".join(after)
    fitting = [each for each in texts if max(map(len, each)) <= _WIDEST and "\n" not in each[0]]
    return (fitting or texts[-1:])[0]


# -- values ----------------------------------------------------------------------------------------
def own(value: Any) -> Any:
    """Return a copy of an array: what follows may write to it."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.clone() if isinstance(value, Tensor) else value


def value_of(node: Any) -> Any:
    """Return what an expression had; None if it was not evaluated."""
    if isinstance(node, ast.Constant):
        return node.value
    seen = getattr(node, "seen", None)
    return None if seen is None else seen.value


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


class Noted:
    """What expressions had in some runs, by node, and the variables of functions at their ends."""

    def __init__(self) -> None:
        self.seen: dict[Any, Seen] = {}
        self.names: dict[Source, dict[str, Any]] = {}
        self._nodes: list[tuple[Source, Any]] = []
        self._kept = 0

    def probed(self, node: Any, source: Source) -> Any:
        """Return a tree of a function in which values pass through `note`."""
        if isinstance(node, list):
            return [self.probed(each, source) for each in node]
        if not isinstance(node, ast.AST) or isinstance(node, _LEFT):
            return node
        fields = dict(ast.iter_fields(node))
        if isinstance(fields.get("ctx"), ast.Store):  # what is written to stays
            fields.pop("value", None)
        fields = {name: self.probed(part, source) for name, part in fields.items()}
        changed = rebuilt(node, **fields)
        if not isinstance(node, _NOTED) or not isinstance(
            getattr(node, "ctx", ast.Load()), ast.Load
        ):
            return changed
        self._nodes.append((source, node))
        return through(_PROBE, ast.Constant(len(self._nodes) - 1), changed)

    def note(self, k: int, value: Any) -> Any:
        """Note what an expression has, if that is no function or module, and return it."""
        if callable(value) or inspect.ismodule(value):
            return value
        source, node = self._nodes[k]
        self._kept += int(np.prod(shape_of(value)))
        if node not in self.seen:
            self.seen[node] = Seen(source, [own(value)])
            names = sys._getframe(1).f_locals.items()
            found = {n: v for n, v in names if n.isidentifier() and not n.startswith("__")}
            self.names.setdefault(source, {}).update(found)
            return value
        self.seen[node].count += 1
        if self._kept <= _MOST_KEPT:
            self.seen[node].values.append(own(value))
        return value


# -- changed functions -----------------------------------------------------------------------------
class TooLongError(Exception):
    """A loop turns without end."""


class Rewritten:
    """Functions that run with a change in one of them, or in one of their file that they call."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = {source.function: source for source in sources}
        # What runs each of them, changed or not.
        self.calls = {function: self._call(function) for function in self.sources}
        self._running = {f: self._made(each, each.tree, {}) for f, each in self.sources.items()}

    def _call(self, function: FunctionType) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._running[function](*args, **kwargs)

        return run

    def _made(self, source: Source, tree: Any, more: Mapping[str, Any]) -> FunctionType:
        known = [(n, f) for n, f in source.known.items() if isinstance(f, FunctionType)]
        called = {name: self.calls[f] for name, f in known if f in self.calls}
        return source.made(tree, {**called, **more})

    @contextlib.contextmanager
    def noting(self) -> Iterator[Noted]:
        """Note what expressions have in the runs of a block."""
        noted, before = Noted(), self._running
        self._running = {}
        for function, source in self.sources.items():
            tree = rebuilt(source.tree, body=noted.probed(source.tree.body, source))
            self._running[function] = self._made(source, tree, {_PROBE: noted.note})
        try:
            yield noted
        finally:
            self._running = before

    @contextlib.contextmanager
    def changed(self, source: Source, places: Places, more: Mapping[str, Any]) -> Iterator[None]:
        """Let a function run with a change, which may use more names, within a block."""
        for _, new in places:
            ast.fix_missing_locations(new)
        loops = [node.test for node in ast.walk(source.tree) if isinstance(node, ast.While)]
        turned = [(test, through(_TURN, replaced(test, places))) for test in loops]
        turns, before = itertools.count(), self._running

        def turn(test: Any) -> Any:
            if next(turns) > _MOST_TURNS:
                raise TooLongError
            return test

        tree = replaced(source.tree, [*places, *turned])
        self._running = {**before, source.function: self._made(source, tree, {**more, _TURN: turn})}
        try:
            yield
        finally:
            self._running = before
