"""The rules of the source tree: what imports what, and how long things are."""

import ast
import functools
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from pullback.ops.declare import REGISTRY

ROOT = Path(__file__).parents[1] / "src" / "pullback"
MODULES = sorted(ROOT.rglob("*.py"))

# A file imports from its own package and from the layers before it.
LAYERS = [
    {"public_names"},
    {"errors"},
    {"extras", "hints"},
    {"arrays"},
    *({f"core.{name}"} for name in ("graph", "tensor", "function", "custom", "backward", "debug")),
    {"ops.declare", "ops.examples"},
    {"ops.samples"},
    {
        *("ops.arguments", "ops.axes", "ops.from_scipy", "ops.matrices", "ops.shape_integrals"),
        *("ops.torch_words", "ops.windows"),
    },
    {"ops.gaps"},
    {"ops.primitives"},
    {"ops.functions"},
    {"ops.methods", "nn"},
    {"autograd", "cuda", "fft", "linalg", "special"},
    {"numpy_protocol", "optim"},
    {"transforms"},
    {"implicit"},
    {"check"},
    {"inspect", "interop", "optimize"},
    {"data", "saving", "plot", "versions", "cli"},
    {"compat"},
    {"__main__"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
# Users of the public API, which may import the package as its users do.
MAY_IMPORT_THE_WHOLE = RANK["inspect"]
# Packages that say of themselves no more than their docstring.
NO_PART = {"__init__.py", "core/__init__.py", "ops/__init__.py"}

ARRAY_LIBRARIES = {
    *("array_api_compat", "array_api_strict", "cupy", "cupyx", "dask", "jax", "jaxlib", "numpy"),
    *("tensorflow", "torch"),
}
MAY_IMPORT_ARRAY_LIBRARIES = {"arrays", "interop", "compat"}
# NumPy beside arrays/ only here, each for the reason given.
MAY_IMPORT_NUMPY = {
    "inspect/folding.py": "sequences of operations are compared as arrays of numbers",
    "data/batches.py": "which rows a batch has is drawn by NumPy",
    "saving/encoding.py": "files hold NumPy's arrays, and its generators have states",
    "saving/files.py": "files hold NumPy's arrays",
    "core/tensor/printing.py": "numbers are printed by NumPy's own formatting",
    # pb.tensor and pb.from_numpy take what NumPy reads: nested lists, its scalars and arrays
    "ops/functions/creation.py": "numbers of Python become arrays by NumPy's own reading of them",
    # NumPy hands over its own functions, and finds indices on the values for some of them
    **{
        f"numpy_protocol/{name}.py": "the protocol is NumPy's"
        for name in (
            *("arguments", "choosing", "computing", "products", "protocol"),
            *("reducing", "renamings", "shaping", "tensor", "ufunc_methods"),
        )
    },
}

# A gradient is compared on the host, whatever library it came from; SciPy's optimisers run there.
ON_THE_HOST = {"check", "optimize"}

MOST_LINES = 800
MOST_LINES_OF = {"core/backward/engine.py": 250}
MOST_LINES_OF_A_FUNCTION = 40

OPTIONAL = ["cupy", "dask", "jax", "matplotlib", "scipy", "sklearn", "torch", "tqdm"]


def place(path):
    return path.relative_to(ROOT).as_posix()


def part_of(path):
    """Return the layered package or module that a file belongs to."""
    return part_named(path.relative_to(ROOT).with_suffix("").parts)


def part_named(parts):
    """Return the part of pullback that a dotted name, split, belongs to; its head if none."""
    pairs = (".".join(parts[:2]), *parts[:1])
    return next((part for part in pairs if part in RANK), parts[0] if parts else "")


def every_module(test):
    return pytest.mark.parametrize("path", MODULES, ids=place)(test)


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


class Imports(ast.NodeVisitor):
    """The names that a module imports, those for the type checker included."""

    def __init__(self, path):
        self.package = ["pullback", *path.relative_to(ROOT).parts[:-1]]
        self.found = []  # (line, dotted name, inside a function)
        self.depth = 0
        self.visit(parsed(path))

    def visit_FunctionDef(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (ast's name)

    def visit_Import(self, node):
        for alias in node.names:
            self.add(node, alias.name)

    def visit_ImportFrom(self, node):
        base = self.package[: len(self.package) - node.level + 1] if node.level else []
        dotted = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            self.add(node, f"{dotted}.{alias.name}")

    def visit_Call(self, node):
        called = ast.unparse(node.func)
        importing = called in ("importlib.import_module", "import_module", "__import__")
        if importing and node.args and isinstance(node.args[0], ast.Constant):
            self.add(node, str(node.args[0].value))
        self.generic_visit(node)

    def add(self, node, dotted):
        self.found.append((node.lineno, dotted, self.depth > 0))


@functools.cache
def imports_of(path):
    """Return (line, dotted name, inside a function) for each import; many tests ask."""
    return Imports(path).found


def imports_of_pullback(path):
    """Return (line, part of pullback, inside a function) for each import of the package's own."""
    return [
        (line, part_named(dotted.split(".")[1:]), inside)
        for line, dotted, inside in imports_of(path)
        if dotted.split(".")[0] == "pullback"
    ]


@every_module
def test_every_module_has_its_place_in_the_order(path):
    assert part_of(path) in RANK or place(path) in NO_PART


@every_module
def test_imports_point_one_way(path):
    if place(path) in NO_PART:
        return
    own, rank = part_of(path), RANK[part_of(path)]
    for line, part, _ in imports_of_pullback(path):
        if part in RANK:
            assert part == own or RANK[part] < rank, f"line {line}: {own} imports {part}"
        else:
            assert rank >= MAY_IMPORT_THE_WHOLE, f"line {line}: {own} imports the whole package"


def modules_imported(path, names):
    """Return the modules of the package that a file imports."""
    found = (dotted for _, dotted, _ in imports_of(path))
    return {d if d in names else d.rpartition(".")[0] for d in found} & names


def test_no_two_modules_import_each_other_even_in_a_roundabout_way():
    dotted = (("pullback", *path.relative_to(ROOT).with_suffix("").parts) for path in MODULES)
    names = (".".join(parts).removesuffix(".__init__") for parts in dotted)
    paths = dict(zip(names, MODULES, strict=True))
    left = {
        name: modules_imported(path, paths.keys()) - {name, "pullback"}
        for name, path in paths.items()
        if name != "pullback"
    }
    while free := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in free:
            del left[name]
    assert left == {}


PRIMITIVES = [path for path in MODULES if place(path).startswith("ops/primitives/")]


@pytest.mark.parametrize("path", PRIMITIVES, ids=place)
def test_a_file_of_primitives_has_gradient_rules_and_nothing_else(path):
    for _, dotted, _ in imports_of(path):
        if dotted.startswith("pullback."):
            part, name = part_named(dotted.split(".")[1:]), dotted.rpartition(".")[2]
            assert part in {"errors", "arrays"} or part.startswith("ops."), dotted
            assert part != "ops.primitives" or name.endswith("_p"), dotted
    named = {n.id for n in ast.walk(parsed(path)) if isinstance(n, ast.Name)}
    assert not named & {"Tensor", "TENSORS", "box"}


@every_module
def test_no_import_of_the_package_hides_in_a_function(path):
    hidden = [(line, part) for line, part, inside in imports_of_pullback(path) if inside]
    assert hidden == []


@every_module
def test_array_libraries_are_imported_in_their_own_folder_alone(path):
    if part_of(path) in MAY_IMPORT_ARRAY_LIBRARIES:
        return
    found = {dotted.split(".")[0] for _, dotted, _ in imports_of(path)} & ARRAY_LIBRARIES
    found -= {"numpy"} if part_of(path) in ON_THE_HOST else set()
    assert found == ({"numpy"} if place(path) in MAY_IMPORT_NUMPY else set())


def test_the_exceptions_for_numpy_still_exist():
    assert set(MAY_IMPORT_NUMPY) <= {place(path) for path in MODULES}


@every_module
def test_no_file_is_too_long(path):
    count = len(path.read_text().splitlines())
    assert count < MOST_LINES_OF.get(place(path), MOST_LINES)


def lines_of(function):
    """Count a function's lines without its docstring."""
    count = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        first = function.body[0]
        count -= first.end_lineno - first.lineno + 1
    return count


@every_module
def test_no_function_is_too_long(path):
    functions = [
        node
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    long = {f.name: lines_of(f) for f in functions if lines_of(f) >= MOST_LINES_OF_A_FUNCTION}
    assert long == {}


def test_importing_pullback_loads_no_optional_library():
    program = f"import sys, pullback; print([m for m in {OPTIONAL} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# ---------------------------------------------------------------------- the rules themselves


SAMPLE = """
from __future__ import annotations
from typing import TYPE_CHECKING
import importlib
import numpy as np
from pullback.core.tensor import tensor
from . import sibling
from ...arrays import dtypes
if TYPE_CHECKING:
    from pullback.optim import SGD
else:
    import torch

def f():
    from pullback import ops
    importlib.import_module("cupy")

MOVING = {"reshape": 1, "permute": 1, "cat": 1, "stack": 1}
"""


@pytest.fixture
def sample(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "core" / "tensor" / "sample.py"
    path.parent.mkdir(parents=True)
    path.write_text(SAMPLE)
    return path


# Facts about operations stand in their declarations, never in a table of names elsewhere.
WITHOUT_TABLES = [path for path in MODULES if place(path).startswith(("core/", "transforms/"))]
MOST_NAMES = 3
OF_PYTHON = {"transforms/wrapped.py": "the operators, by Python's names for them"}


def names_listed(path):
    """Return the lists of words, in one text or several, that have names of operations in them."""
    for node in ast.walk(parsed(path)):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node])
        texts = [n.value for n in items if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        words = " ".join(texts).split()
        found = [word for word in words if word in REGISTRY]
        if 2 * len(found) > len(words):
            yield found


@pytest.mark.parametrize("path", WITHOUT_TABLES, ids=place)
def test_no_module_lists_operations_by_name(path):
    if place(path) not in OF_PYTHON:
        assert [found for found in names_listed(path) if len(found) > MOST_NAMES] == []


def test_imports_are_read_as_python_reads_them(sample):
    found = [(dotted, inside) for _, dotted, inside in imports_of(sample)]
    assert found == [
        ("__future__.annotations", False),
        ("typing.TYPE_CHECKING", False),
        ("importlib", False),
        ("numpy", False),
        ("pullback.core.tensor.tensor", False),
        ("pullback.core.tensor.sibling", False),
        ("pullback.arrays.dtypes", False),
        ("pullback.optim.SGD", False),
        ("torch", False),
        ("pullback.ops", True),
        ("cupy", True),
    ]
    assert [part for _, part, _ in imports_of_pullback(sample)] == [
        *("core.tensor", "core.tensor", "arrays", "optim", "ops")
    ]


def test_the_sample_breaks_the_rules(sample):
    for rule in (
        test_imports_point_one_way,
        test_no_import_of_the_package_hides_in_a_function,
        test_array_libraries_are_imported_in_their_own_folder_alone,
        test_no_module_lists_operations_by_name,
    ):
        with pytest.raises(AssertionError):
            rule(sample)


def test_length_is_counted_without_the_docstring():
    body = itertools.repeat("    x = 1\n", 5)
    source = 'def f():\n    """Say.\n\n    More.\n    """\n' + "".join(body)
    assert lines_of(ast.parse(source).body[0]) == 6
