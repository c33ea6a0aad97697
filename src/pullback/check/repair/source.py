"""The source of a Python function as a syntax tree, and functions made of a changed tree.

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
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

_OUTER, _INNER = "__outer", "__inner"


class Source:
    """A function and its definition.

    Attributes
    ----------
    function : function
    tree : ast.FunctionDef
        Its definition, numbered by the lines of its file, without decorators; a lambda as a
        definition that returns its expression.
    """

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self.function = function
        self.tree = tree

    def made(self, tree: ast.FunctionDef, more: Mapping[str, CellType]) -> Any:
        """Return the function of a changed definition.

        Parameters
        ----------
        tree : ast.FunctionDef
        more : mapping
            Cells of names that the definition has beside those of the original, or in their place.
        """
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

    def known(self) -> dict[str, Any]:
        """Return the values of the names that it does not bind itself."""
        closed = inspect.getclosurevars(self.function).nonlocals
        return {**vars(builtins), **self.function.__globals__, **closed}


def copied(node: Any) -> Any:
    """Return a copy of a tree; `copy.deepcopy` takes five times as long."""
    if isinstance(node, list):
        return [copied(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    other = type(node)()
    other.__dict__.update(node.__dict__)
    for name in node._fields:
        value = other.__dict__.get(name)
        if isinstance(value, (list, ast.AST)):
            other.__dict__[name] = copied(value)
    return other


def source_of(function: Any) -> Source | None:
    """Return a function's source; None if it is no Python function or has none."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    found = [
        node
        for node in _definitions(code.co_filename, len(_lines(function)))
        if node.name == code.co_name and _first_line(node) == code.co_firstlineno
    ]
    if len(found) != 1:
        return None
    tree = copied(found[0])
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


def _lines(function: FunctionType) -> list[str]:
    return linecache.getlines(function.__code__.co_filename, function.__globals__)


@functools.lru_cache(maxsize=64)
def _definitions(filename: str, lines: int) -> list[ast.FunctionDef]:
    """Return the functions that a file defines; `lines`, how many it has, tells editions apart."""
    try:
        module = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return []
    return list(_functions_in(module))


def _functions_in(module: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.Lambda):
            value = ast.copy_location(ast.Return(node.body), node.body)
            made = ast.FunctionDef("<lambda>", node.args, [value], [])
            yield ast.copy_location(made, node)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(found.lineno for found in node.decorator_list)])


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
