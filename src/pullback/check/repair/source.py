"""The source of a Python function as a syntax tree, changed trees, functions made of them.

A changed function shares globals, defaults and the cells of its closure with the original, so that
it does what the original does but for the change.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import copy
import functools
import inspect
import linecache
from collections.abc import Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

_OUTER, _INNER = "__outer", "__inner"
_WIDEST = 76  # characters of a quotation
_SHOWN = (ast.expr, ast.Pass, ast.Assign, ast.AugAssign, ast.Expr, ast.Slice)

# What stands in a tree, and what comes there: an expression, or statements.
Places = Sequence[tuple[Any, Any]]


class Source:
    """A function and its definition, without decorators; a lambda as one that returns."""

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self.function = function
        self.tree = tree

    @functools.cached_property
    def known(self) -> dict[str, Any]:
        """The values of the names that it does not bind itself."""
        closed = inspect.getclosurevars(self.function).nonlocals
        return {**vars(builtins), **self.function.__globals__, **closed}

    def made(self, tree: ast.FunctionDef, more: Mapping[str, CellType]) -> FunctionType:
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


def _code(tree: ast.FunctionDef, free: list[str], filename: str) -> CodeType:
    """Return the code of a definition inside of one whose arguments are its free names."""
    tree = copy.copy(tree)
    name, tree.name = tree.name, _INNER
    arguments = ast.arguments([], [ast.arg(each) for each in free], None, [], [], None, [])
    outer = ast.FunctionDef(_OUTER, arguments, [tree], [])
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = __future__.annotations.compiler_flag
    compiled = compile(module, filename, "exec", flags=flags, dont_inherit=True)
    found = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    inner = [c for c in found.co_consts if isinstance(c, CodeType) and c.co_name == _INNER]
    return inner[0].replace(co_name=name if name != "<lambda>" else _INNER)


def source_of(function: Any) -> Source | None:
    """Return a function's source; None if it is no Python function or has none."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    known = _definitions(code.co_filename, len(lines))
    found = [n for line, n in known if (n.name, line) == (code.co_name, code.co_firstlineno)]
    if len(found) != 1:
        return None
    tree = replaced(found[0], ())
    tree.decorator_list, tree.returns = [], None
    for argument in ast.walk(tree.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return Source(function, tree)


def source_of_helper(value: Any, caller: Source) -> Source | None:
    """Return the source of a function of the same file as its caller's; None for anything else."""
    if not isinstance(value, FunctionType) or hasattr(value, "__wrapped__"):
        return None
    same = value.__code__.co_filename == caller.function.__code__.co_filename
    return source_of(value) if same else None


@functools.lru_cache(maxsize=64)
def _definitions(filename: str, lines: int) -> list[tuple[int, ast.FunctionDef]]:
    """Return the functions of a file by their lines; `lines` in all tells editions apart."""
    try:
        module = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found.append((first, node))
        elif isinstance(node, ast.Lambda):
            value = ast.copy_location(ast.Return(node.body), node.body)
            made = ast.FunctionDef("<lambda>", node.args, [value], [])
            found.append((node.lineno, ast.copy_location(made, node)))
    return found


# -- changing it -----------------------------------------------------------------------------------
def replaced(tree: Any, places: Places) -> Any:
    """Return a copy of a tree with other nodes in the places of some.

    What an expression had, its attribute `seen`, is not that of a changed one.
    `copy.deepcopy` takes five times as long.
    """
    return _copied(tree, {id(old): new for old, new in places}, [])


def _copied(node: Any, new: Mapping[int, Any], put: list[int]) -> Any:
    if isinstance(node, list):
        found: list[Any] = []
        for each in node:
            made = _copied(each, new, put)
            found += made if isinstance(made, list) else [made]
        return found
    if not isinstance(node, ast.AST):
        return node
    if id(node) in new:
        put.append(id(node))
        return _copied(new[id(node)], {}, [])
    other, before = type(node)(), len(put)
    other.__dict__.update(node.__dict__)
    for name in node._fields:
        value = other.__dict__.get(name)
        if isinstance(value, (list, ast.AST)):
            other.__dict__[name] = _copied(value, new, put)
    if len(put) > before:
        other.__dict__.pop("seen", None)
    return other


def quotation(tree: ast.AST, places: Places) -> tuple[str, str]:
    """Return the source before and after a change: the widest expression that is not too long."""
    changed = {id(old) for old, _ in places}
    around = [n for n in ast.walk(tree) if changed <= set(map(id, ast.walk(n)))]
    texts = [(ast.unparse(n), _text(replaced(n, places))) for n in around if isinstance(n, _SHOWN)]
    if not texts:  # in several statements
        before, after = zip(*(quotation(tree, [place]) for place in places), strict=True)
        return "; ".join(before), "; ".join(after)
    fitting = [each for each in texts if max(map(len, each)) <= _WIDEST and "\n" not in each[0]]
    return (fitting or texts[-1:])[0]


def _text(new: Any) -> str:
    nodes = new if isinstance(new, list) else [new]
    return "; ".join(ast.unparse(ast.fix_missing_locations(node)) for node in nodes)
