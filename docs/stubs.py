"""Write what follows from the declarations: exports, and stubs for type checkers.

    python docs/stubs.py [--check]

A declared function that is exported nowhere is added to a table of contents: that of `pullback`,
of `pullback.linalg`, `pullback.fft` or `pullback.nn.functional`, by the file it is in. Another
place is chosen by moving the name by hand. `pullback/__init__.pyi` says that what the table of
contents imports is exported; `core/tensor/methods.pyi` lists the methods that declarations,
`pullback.ops.methods` and `pullback.numpy_protocol` give Tensor; `nn/layers/functions.pyi` has the
settings of the layers that are functions. `--check` writes nothing and fails
where something is missing or a stub is not what it would be.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pullback
from pullback.nn.layers import functions
from pullback.numpy_protocol.protocol import NumPyMethods
from pullback.ops.declare import Primitive
from pullback.ops.methods.attach import TensorMethods, declared_methods, methods_of

PACKAGE = Path(__file__).parents[1] / "src" / "pullback"

WIDTH = 100

# -- Tensor's methods ------------------------------------------------------------------------------
METHODS = '''\
"""Tensor's methods, for type checkers. Written by `make stubs`; not to be edited."""

import builtins
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from pullback.core.tensor.tensor import Tensor

class Methods:
'''
KNOWN = {"Any", "Iterable", "Iterator", "NoReturn", "None", "Tensor"}
# Names that a file gives to built-in types which methods hide.
OTHER_NAMES = {"Bool": "bool", "Int": "int"}
# Python's own classes declare other results of these.
OVERRIDDEN = {"__eq__", "__ne__"}


class Spelled(ast.NodeTransformer):
    """An annotation in the names that the stub knows; any other name is Any."""

    def visit_Name(self, node):
        name = OTHER_NAMES.get(node.id, node.id)
        if name in KNOWN:
            return ast.Name(name)
        return ast.parse(f"builtins.{name}").body[0].value if hasattr(builtins, name) else ANY

    def visit_Attribute(self, node):
        return ANY

    def visit_Subscript(self, node):
        known = self.generic_visit(node)
        return ANY if ast.unparse(known.value) == "Any" else known


ANY = ast.Name("Any")


def spelled(annotation, default):
    if annotation in (inspect.Parameter.empty, ""):
        return default
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    return ast.unparse(Spelled().visit(ast.parse(text, mode="eval")))


def parameter_of(parameter, *, first):
    """Return a parameter as code; the first one of a method is the tensor itself."""
    if first:
        return "self"
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    annotation = spelled(parameter.annotation, "Any")
    default = "" if parameter.default is parameter.empty else " = ..."
    return f"{star}{parameter.name}: {annotation}{default}"


def parameters_of(function, *, method=True):
    """Return the parameters of a function as code, with the marks ``/`` and ``*``."""
    parameters = list(inspect.signature(function).parameters.values())
    if method and parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return ["self", *(parameter_of(p, first=False) for p in parameters)]
    found = []
    for i, p in enumerate(parameters):
        before = parameters[i - 1] if i else None
        if before and before.kind is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            found.append("/")
        if p.kind is p.KEYWORD_ONLY and (
            before is None or before.kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        ):
            found.append("*")
        found.append(parameter_of(p, first=method and i == 0))
    if parameters and parameters[-1].kind is inspect.Parameter.POSITIONAL_ONLY:
        found.append("/")
    return found


_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_COMPARISONS = "eq ne lt le gt ge"
BINARY = {f"__{p}{n}__" for n in _ARITHMETIC.split() for p in ("", "r", "i")}
BINARY |= {f"__{n}__" for n in _COMPARISONS.split()}


def method(name, value):
    """Return the lines of one method or property."""
    if isinstance(value, property):
        result = spelled(value.fget.__annotations__.get("return", ""), "Any")
        return ["    @property", f"    def {name}(self) -> {result}: ..."]
    result = spelled(getattr(value, "__annotations__", {}).get("return", ""), "Tensor")
    note = "  # type: ignore[override]" if name in OVERRIDDEN else ""
    if name in BINARY:
        return [f"    def {name}(self, other: Any, /) -> Tensor: ...{note}"]
    if isinstance(getattr(value, "primitive", None), Primitive):
        result = "Tensor" if result == "Any" else result
    return [f"    def {name}({', '.join(parameters_of(value))}) -> {result}: ..."]


def methods_stub():
    """Return the text of core/tensor/methods.pyi."""
    found = methods_of(*TensorMethods.__mro__[-2::-1], NumPyMethods) | declared_methods()
    lines = [line for name in sorted(found) for line in method(name, found[name])]
    return METHODS + "\n".join(lines) + "\n"


# -- the table of contents -------------------------------------------------------------------------
CONTENTS = '''\
"""What `pullback` exports, for type checkers. Written by `make stubs`; not to be edited."""

import builtins
from typing import Any

'''


def exported(node):
    """Return the lines that one statement of the table of contents makes in the stub."""
    if isinstance(node, ast.ImportFrom):
        names = [a.name for a in node.names if a.asname is None]
        return [line for name in names for line in imported(node.module, name)]
    if isinstance(node, ast.Assign):
        names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        return [line for n in names for line in declared(n)]
    return []


def imported(module, name):
    """Return the lines of one name; what is written at run time has its signature here."""
    function = getattr(pullback, name)
    op = getattr(function, "primitive", None)
    result = ""
    if isinstance(op, Primitive) and op.public is function:
        result = "list[Tensor]" if op.multi else "Tensor"
    elif hasattr(function, "has_torch_words"):
        result = spelled(function.__annotations__["return"], "Any")
    if result:
        parameters = ", ".join(parameters_of(function, method=False))
        return [f"def {name}({parameters}) -> {result}: ..."]
    return [f"from {module} import {name} as {name}"]


def declared(name):
    if name == "__version__":
        return ["__version__: str"]
    if name == "_LATER":
        return [
            f"from {f'pullback.{module}'.removesuffix(f'.{each}')} import {each} as {each}"
            for each, module in pullback._LATER.items()
        ]
    return [] if name.startswith("_") else [f"{name}: DType"]


def contents_stub():
    """Return the text of __init__.pyi."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    return CONTENTS + "\n".join(line for node in tree.body for line in exported(node)) + "\n"


# -- layers ----------------------------------------------------------------------------------------
LAYERS = '''\
"""Layers that are functions, for type checkers. Written by `make stubs`; not to be edited."""

from typing import Any

from pullback.nn.layers.declared import FunctionLayer

'''


def layers_stub():
    """Return the text of nn/layers/functions.pyi."""
    declared = vars(functions).items()
    signatures = {n: inspect.signature(v.__init__) for n, v in declared if isinstance(v, type)}
    lines = [
        f"class {name}(FunctionLayer):\n    def __init__{signature}: ..."
        for name, signature in signatures.items()
    ]
    return LAYERS + "\n".join(lines) + "\n"


# -- exports ---------------------------------------------------------------------------------------
# Where the functions of a file are exported; the first that fits.
TABLES = {
    "pullback.nn.": "nn/functional.py",
    "pullback.ops.functions.fourier": "fft.py",
    "pullback.ops.functions.linear_algebra": "linalg.py",
    "pullback.ops.functions.matrix_functions": "linalg.py",
    "pullback.ops.": "__init__.py",
}
SPACES = (pullback, pullback.linalg, pullback.fft, pullback.special, pullback.nn.functional)
# Functions for methods alone; PyTorch has none of these names.
NOT_EXPORTED = {"expand", "unfold_along"}


def unexported():
    """Return (table, module, name) of each declared function that users reach nowhere."""
    exported = {name for space in SPACES for name in space.__all__} | NOT_EXPORTED
    return [
        (table_of(module), module, name)
        for module in sorted(sys.modules)
        if table_of(module)
        for name, value in vars(sys.modules[module]).items()
        if name[0] != "_" and name not in exported and is_declared(value, module)
    ]


def table_of(module):
    """Return the table of contents for the functions of a module, None if it has none."""
    return next((table for start, table in TABLES.items() if module.startswith(start)), None)


def is_declared(value, module):
    """Return whether a value is the function of an operation that this module declares."""
    if not callable(value) or getattr(value, "primitive", None) is None:
        return False
    written = value.__module__ == "pullback" and module.startswith("pullback.ops.primitives.")
    return written or value.__module__ == module


def with_export(text, module, name):
    """Return the text of a table of contents with one name more."""
    tree, lines = ast.parse(text), text.splitlines()
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if node.module == module]
    names = [a.name for node in own for a in node.names]
    folder = module.rpartition(".")[0]
    near = own or [node for node in imports if node.module.startswith(folder)]
    statement = import_of(module, sorted([*names, name], key=in_order), "# fmt: off" in lines)
    lines[near[-1].lineno - 1 if own else near[-1].end_lineno : near[-1].end_lineno] = statement
    return "\n".join(lines) + "\n"


def in_order(name):
    """Return the key by which imported names are sorted: classes come first."""
    return name.islower(), name.lower()


def import_of(module, names, packed):
    """Return the lines of an import: packed for the table of contents, or else exports."""
    start = f"from {module} import "
    if not packed:
        return [f"{start}(", *(f"    {name} as {name}," for name in names), ")"]
    if len(start) + len(", ".join(names)) <= WIDTH:
        return [start + ", ".join(names)]
    return textwrap.wrap(f"{start}({', '.join(names)})", WIDTH, subsequent_indent="    ")


STUBS = {
    "__init__.pyi": contents_stub,
    "core/tensor/methods.pyi": methods_stub,
    "nn/layers/functions.pyi": layers_stub,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    missing = unexported()
    for table, module, name in missing:
        print(f"{'missing' if check else 'added'}: from {module} import {name}, in {table}")
        if not check:
            path = PACKAGE / table
            path.write_text(with_export(path.read_text(), module, name))
    if missing and not check:  # the stubs are of the package with these names
        return subprocess.call([sys.executable, __file__])
    stale = [name for name, text in STUBS.items() if is_stale(PACKAGE / name, text())]
    for name in stale:
        if not check:
            (PACKAGE / name).write_text(STUBS[name]())
        print(f"{'stale' if check else 'written'}: {name}")
    return int(check and bool(stale or missing))


def is_stale(path, text):
    return not path.exists() or path.read_text() != text


if __name__ == "__main__":
    sys.exit(main())
