"""The source of a Python function as a syntax tree, changed trees, functions made of them.

A changed function shares globals, defaults and the cells of its closure with the original, so that
it does what the original does but for the change. Trees are never written to: changed ones share
what is unchanged.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import functools
import inspect
import linecache
import operator
import pickle
from collections.abc import Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

_OUTER, _INNER = "__outer", "__inner"
_WIDEST = 76  # characters of a quotation
_SHOWN = (ast.expr, ast.Pass, ast.Assign, ast.AugAssign, ast.Expr, ast.Slice)

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
    def loops(self) -> list[Any]:
        """The conditions of its loops that may have no end."""
        return [node.test for node in ast.walk(self.tree) if isinstance(node, ast.While)]

    @functools.cached_property
    def names(self) -> set[str]:
        """The names that mean something in it."""
        code = self.function.__code__
        return {*self.known, *code.co_varnames, *code.co_cellvars}

    def made(self, tree: Any, more: Mapping[str, CellType]) -> FunctionType:
        """Return the function of a changed definition, with more names, or others."""
        original = self.function
        cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
        cells |= more
        code = _code(tree, list(cells), original.__code__.co_filename)
        closure = tuple(cells[name] for name in code.co_freevars)
        found = FunctionType(
            code, original.__globals__, original.__name__, original.__defaults__, closure
        )
        found.__kwdefaults__ = original.__kwdefaults__
        found.__dict__.update(original.__dict__)
        return found


def _code(tree: Any, free: list[str], filename: str) -> CodeType:
    """Return the code of a definition inside of one whose arguments are its free names."""
    outer: Any = ast.parse(f"def {_OUTER}({', '.join(free)}):\n pass")
    outer.body[0].body = [rebuilt(tree, name=_INNER)]
    flags = __future__.annotations.compiler_flag
    compiled = compile(outer, filename, "exec", flags=flags, dont_inherit=True)
    found = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    inner = next(c for c in found.co_consts if isinstance(c, CodeType) and c.co_name == _INNER)
    return inner.replace(co_name=tree.name if tree.name != "<lambda>" else _INNER)


def source_of(function: Any) -> Source | None:
    """Return a function's source; None if it is no Python function or has none."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    known = _definitions(code.co_filename, len(lines))
    found = [n for line, n in known if (n.name, line) == (code.co_name, code.co_firstlineno)]
    # Of its own: what expressions had is kept in it. This is five times as fast as `copy.deepcopy`.
    return Source(function, pickle.loads(pickle.dumps(found[0]))) if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _definitions(filename: str, lines: int) -> list[tuple[int, Any]]:
    """Return the functions of a file by their lines; `lines` in all tells editions apart."""
    try:
        module = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.append((first, rebuilt(node, decorator_list=[])))
        elif isinstance(node, ast.Lambda):
            value = ast.copy_location(ast.Return(node.body), node.body)
            made = ast.FunctionDef("<lambda>", node.args, [value], [])
            found.append((node.lineno, ast.copy_location(made, node)))
    return found


# -- trees -----------------------------------------------------------------------------------------
def rebuilt(node: Any, **fields: Any) -> Any:
    """Return a copy of a node with other fields."""
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **fields}), node)


def replaced(tree: Any, places: Places) -> Any:
    """Return a tree with other nodes in the places of some; the rest is shared."""
    new = {id(old): other for old, other in places}
    lines = [(old.lineno, old.end_lineno) for old, _ in places]

    def is_apart(node: Any) -> bool:
        return all(node.end_lineno < first or last < node.lineno for first, last in lines)

    def of(node: Any) -> Any:
        if isinstance(node, list):
            found = list(map(of, node))
            return node if all(map(operator.is_, found, node)) else found
        if id(node) in new:
            return new[id(node)]
        if not isinstance(node, ast.AST) or (isinstance(node, ast.stmt) and is_apart(node)):
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
