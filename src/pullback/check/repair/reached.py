"""What functions reach, so that no changed one calls compiled code that trusts its arguments.

Followed by the names of their code: through functions, methods, classes and containers, up to
libraries that check what they are given. Nothing is called.
"""

from __future__ import annotations

import builtins
import datetime
import dis
import gc
import sys
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback.check.values import holds_numbers
from pullback.core.custom.operation import CustomOp

_MOST = 20_000  # objects that are looked at
_OWN = __name__.partition(".")[0]
# What checks the arguments of its compiled code, and what of it does not.
_LIBRARIES = {_OWN, "numpy", "scipy", "torch", "jax", *sys.stdlib_module_names}
_CHECKED = _LIBRARIES - {"ctypes", "_ctypes"}
_UNCHECKED: tuple[Any, ...] = (np.ctypeslib, np.lib.stride_tricks.as_strided)
_OF_C = (types.MethodDescriptorType, types.ClassMethodDescriptorType, types.WrapperDescriptorType)
_CAPSULE = type(datetime.datetime_CAPI)  # which nothing can call
_BUILT_IN = (*vars(builtins).values(), *vars(types).values(), _CAPSULE)
_ATOMS = (bool, int, float, complex, str, bytes, type(None))


def is_library(value: Any) -> bool:
    """Return whether a value is a module whose functions check their arguments."""
    return isinstance(value, ModuleType) and _root(value) in _CHECKED


def why_untried(waiting: list[tuple[str, Any]], library: str) -> str:
    """Return why nothing that these values reach may be run changed; empty if it may.

    They come with their names. Arrays are those of a `library`, which checks its arguments too.
    """
    checked, seen = {*_CHECKED, library}, dict[int, Any]()  # which keeps what was made on the way
    for name, value in waiting:  # which grows
        if id(value) in seen:
            continue
        seen[id(value)] = value
        known = _root(value) in checked
        if (isinstance(value, ModuleType) and not known) or len(seen) > _MOST:
            return f"what `{name}` calls is not known, and changed arguments can crash it"
        compiled = not known and isinstance(value, (BuiltinFunctionType, *_OF_C))
        if compiled or any(value is each for each in _UNCHECKED):
            return f"`{name}` is compiled code, which changed arguments can crash"
        waiting += _parts(name, value, checked, known)
    return ""


def _root(value: Any) -> str:
    """Return the package of a function, a class or a module, or of the class of a value."""
    if isinstance(value, FunctionType):  # whatever it says that it wraps
        module = value.__globals__.get("__name__")
    elif isinstance(value, ModuleType):
        module = value.__name__
    else:
        if isinstance(value, BuiltinFunctionType) and not value.__module__:
            value = value.__self__
        owner = value.__objclass__ if isinstance(value, _OF_C) else value
        owner = owner if isinstance(owner, (type, BuiltinFunctionType)) else type(owner)
        module = owner.__module__  # for which compiled classes without one have "builtins"
        if module == "builtins" and not any(owner is each for each in _BUILT_IN):
            return ""
    return str(module).partition(".")[0]


def _parts(name: str, value: Any, checked: Collection[str], known: bool) -> Iterator[Any]:
    """Yield what a value can call; of a library's own, what it was given."""
    parts: Iterable[Any] = ()
    if isinstance(value, CustomOp):
        parts = value.forward, value.setup_context, value.given_rule
    elif isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        closed = {n: each for n, cell in cells for each in gc.get_referents(cell)}
        yield from closed.items()
        parts = value.__defaults__, value.__kwdefaults__, vars(value)
        if not known:
            names = {**vars(builtins), **value.__globals__, **closed}
            yield from _named(value.__code__, names, checked)
    elif isinstance(value, type):
        parts = () if known else (*vars(value).values(), *value.__mro__)
    elif not (holds_numbers(value) or isinstance(value, ModuleType) or _root(value) == _OWN):
        parts = *gc.get_referents(value), type(value)
    yield from ((name, part) for part in parts if type(part) not in _ATOMS)


def _named(code: CodeType, names: Mapping[str, Any], checked: Collection[str]) -> Iterator[Any]:
    """Yield what the names in a code stand for; of modules what is taken of them."""
    steps = [*dis.get_instructions(code)]
    for k, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            yield step.argval, sys.modules.get(step.argval, ModuleType(step.argval))
        if not step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")):
            continue
        path, found, is_checked = step.argval, names.get(step.argval), False
        for after in steps[k + 1 :]:
            if not after.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
                break
            path += f".{after.argval}"
            if isinstance(found, ModuleType):
                is_checked |= _root(found) in checked
                found = getattr(found, after.argval, None)
                if any(found is each for each in _UNCHECKED):
                    yield path, found
        if not is_checked:
            yield path, found
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _named(each, names, checked)
