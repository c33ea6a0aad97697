"""Finding the function of another library that is running, where an error is about to be raised.

The stack tells it where the function is written in Python, the user's line where it is compiled.
"""

from __future__ import annotations

import ast
import dis
import inspect
import itertools
import linecache
import sys
from collections.abc import Iterable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from pullback.hints.other_packages import WAYS as OTHER_PACKAGES
from pullback.hints.table import TABLES, way_out

__all__ = ["is_imported", "way_out_here", "way_out_of"]


# A frame, and where in its code it is.
Place = tuple[FrameType, int]


def way_out_here() -> str:
    """Return what a hint says instead of what is running; "" if that is nobody's function."""
    return _search(_outwards(sys._getframe(1)))


def way_out_of(error: BaseException, kind: type) -> str:
    """Return what a hint says instead of a function that was given a `kind` and raised an error."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        places.append((trace.tb_frame, trace.tb_lasti))
        trace = trace.tb_next
    places.reverse()
    inner = list(itertools.takewhile(lambda entry: _package(entry[0]) in TABLES, places))
    if any(_is_there(frame.f_locals.values(), kind) for frame, _ in inner):
        return _search(inner)
    return _search(places[:1]) if not inner and _is_given(*places[0], kind) else ""


def is_imported(frame: FrameType) -> bool:
    """Return whether what runs in a frame is ``from module import name``."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _outwards(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield frame, frame.f_lasti
        frame = frame.f_back


def _is_there(values: Iterable[Any], kind: type) -> bool:
    """Return whether a value is a `kind`, or a sequence or closure that has one."""
    for value in values:
        parts: Iterable[Any] = value if isinstance(value, (list, tuple)) else (value,)
        if isinstance(value, FunctionType):
            parts = inspect.getclosurevars(value).nonlocals.values()
        if any(isinstance(part, kind) for part in parts):
            return True
    return False


def _is_given(frame: FrameType, instruction: int, kind: type) -> bool:
    """Return whether a `kind` is named in the arguments of the call that runs in a frame."""
    call = _expression(frame, instruction)
    if not isinstance(call, ast.Call):
        return False
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    names = {n.id for value in arguments for n in ast.walk(value) if isinstance(n, ast.Name)}
    return _is_there([frame.f_locals.get(name) for name in names], kind)


def _search(places: Iterable[Place]) -> str:
    """Return what is known of the function that frames, the innermost first, are in.

    Of calls within a library the outermost counts, which the user wrote; an inner one of SciPy's
    where that is not known. The search ends at the function that a transform differentiates.
    """
    result, unknown, left_pullback = "", "", False
    for frame, instruction in places:
        package = _package(frame)
        if package == "pullback":
            if left_pullback:
                break
        elif package in OTHER_PACKAGES:
            return OTHER_PACKAGES[package]
        else:
            left_pullback = True
            is_library = package in TABLES
            if result and not is_library:
                break
            names = list(_names_of(frame) if is_library else _names_called(frame, instruction))
            inner = "" if package == "numpy" else result
            result = next(filter(None, map(way_out, names)), inner)
            if package == "scipy" and names:
                unknown = names[-1]
    return result or (
        unknown and f"an operation of yours around {unknown}, by pb.autograd_function"
    )


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _names_of(frame: FrameType) -> Iterator[str]:
    """Return the names of what users may have called to get to a frame of a library."""
    module, function = str(frame.f_globals["__name__"]), frame.f_code.co_name
    for variable in frame.f_code.co_freevars:  # a decorator's, which reads the arguments first
        wrapped = frame.f_locals.get(variable)
        if isinstance(wrapped, FunctionType) and wrapped.__module__.partition(".")[0] in TABLES:
            yield from _public(wrapped.__module__, wrapped.__name__)
    owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
    if owner is not None:
        kind = _class_of(owner).__name__.removesuffix("_gen")
        for name in (f"{getattr(owner, 'name', kind)}.{function}", f"{kind}.{function}"):
            yield from _public(module, name)
        yield from _public(module, function)
        yield from _public(module, kind)
    yield from _public(module, function)


def _public(module: str, name: str) -> Iterator[str]:
    """Return a name below the public part of a module's name, and below NumPy."""
    parts = module.split(".")
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    while private and parts[0] in TABLES:
        yield ".".join((*parts[:private], name))
        private = private - 1 if parts[0] == "numpy" or private == len(parts) > 2 else 0


def _names_called(frame: FrameType, instruction: int) -> Iterator[str]:
    """Return the names of the functions in the expression that runs in a user's frame."""
    expression, scope = _expression(frame, instruction), {**frame.f_globals, **frame.f_locals}
    if isinstance(expression, ast.BinOp) and any(
        isinstance(operand, (ast.List, ast.Tuple))
        or (isinstance(operand, ast.Name) and isinstance(scope.get(operand.id), (list, tuple)))
        for operand in (expression.left, expression.right)
    ):
        return  # an array's operator took the list: no function did
    if isinstance(expression, ast.Subscript):  # the target of an assignment
        yield "numpy.ndarray.__setitem__"
    running = [expression] if isinstance(expression, ast.Call) else ast.walk(expression)
    for call in running:
        if isinstance(call, ast.Call):
            yield from _resolved(call.func, scope)


def _expression(frame: FrameType, instruction: int) -> ast.AST:
    """Return the expression that runs, as the source has it; an empty one if there is none."""
    first, last, start, end = list(frame.f_code.co_positions())[instruction // 2]
    if first is None or last is None:
        return ast.Pass()
    file = frame.f_code.co_filename
    numbers = range(first, last + 1)
    lines = [linecache.getline(file, n, frame.f_globals).encode() for n in numbers]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return ast.Pass()


def _resolved(function: ast.expr, scope: dict[str, Any]) -> Iterator[str]:
    """Return the names that a dotted expression may have, read through modules alone."""
    *attributes, root = _parts(function)
    value, names = scope.get(root), attributes[::-1]
    while names and isinstance(value, ModuleType):
        space, name = value.__name__, names.pop(0)
        value = getattr(value, name, None)
        if not isinstance(value, ModuleType):
            yield f"{space}.{name}"
            yield from (f"{space}.{method}" for method in names[-1:])
    if attributes and root in scope:  # a method, of what no module holds
        kind = _class_of(scope[root])
        yield from _public(kind.__module__, kind.__name__)
        yield from _public(kind.__module__, attributes[0])
        yield f"{kind.__name__}.{attributes[0]}"
    elif root in scope:
        yield from _public(str(getattr(value, "__module__", "")), getattr(value, "__name__", ""))


def _class_of(value: Any) -> type:
    return value if isinstance(value, type) else type(value)


def _parts(expression: Any) -> list[str]:
    """Return the names of a dotted expression, the last first; of a call those of its function."""
    result = []
    while isinstance(expression, (ast.Attribute, ast.Call, ast.Subscript)):
        if isinstance(expression, ast.Attribute):
            result.append(expression.attr)
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return [*result, expression.id if isinstance(expression, ast.Name) else ""]
