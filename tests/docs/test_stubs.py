"""What `make stubs` writes: stubs that say what there is at run time, exports of declarations."""

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

import pullback as pb
from pullback.nn import pooling
from pullback.ops.methods import ABSENT
from pullback.ops.primitives import exponential

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "docs" / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["__init__.pyi", "core/tensor/methods.pyi", "nn/layers/functions.pyi"]
)
def test_a_stub_is_up_to_date(stubs, name):
    assert (stubs.PACKAGE / name).read_text() == stubs.STUBS[name](), "run `make stubs`"


def test_the_stub_of_the_methods_has_every_public_attribute_that_is_attached(stubs):
    (listed,) = (n for n in ast.parse(stubs.methods_stub()).body if isinstance(n, ast.ClassDef))
    names = {node.name for node in listed.body}
    tree = ast.parse(inspect.getsource(pb.Tensor))
    own = {n.name for n in tree.body[0].body if isinstance(n, ast.FunctionDef)}
    attached = {n for n in vars(pb.Tensor) if n[0] != "_"} - own - {*ABSENT}
    assert attached - names <= {"backward"}  # declared in the class for type checkers


def test_the_stub_of_the_package_exports_what_the_package_has(stubs):
    tree = ast.parse(stubs.contents_stub())
    imported = {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    declared = {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    written = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert (imported - {None}) | declared | written == {*pb.__all__}


# -- exports --------------------------------------------------------------------------------------
def test_every_declared_function_is_exported(stubs):
    missing = [
        f"{table}: from {module} import {name}" for table, module, name in stubs.unexported()
    ]
    assert missing == [], "run `make stubs`, or add these lines by hand"


def test_a_function_that_is_exported_nowhere_is_found(stubs, monkeypatch):
    monkeypatch.setattr(exponential, "expm2", exponential.expm1, raising=False)
    monkeypatch.setattr(pooling, "lp_pool4d", pooling.lp_pool3d, raising=False)
    assert stubs.unexported() == [
        ("nn/functional.py", "pullback.nn.pooling", "lp_pool4d"),
        ("__init__.py", "pullback.ops.primitives.exponential", "expm2"),
    ]


@pytest.mark.parametrize(
    ("table", "module"),
    [
        ("__init__.py", "pullback.ops.primitives.exponential"),
        ("__init__.py", "pullback.ops.functions.inner"),  # a new file
        ("nn/functional.py", "pullback.nn.pooling"),
        ("linalg.py", "pullback.ops.functions.norms"),
        ("fft.py", "pullback.ops.functions.fourier"),
    ],
)
def test_a_name_is_added_to_a_table_of_contents_and_nothing_else_changes(stubs, table, module):
    text = (stubs.PACKAGE / table).read_text()
    before, after = imported_by(text), imported_by(stubs.with_export(text, module, "fresh"))
    assert after == before | {(module, "fresh")}
    assert max(map(len, stubs.with_export(text, module, "fresh").splitlines())) <= 100
    assert ("    fresh as fresh,\n" in stubs.with_export(text, module, "fresh")) == (
        table[0] != "_"
    )


def imported_by(text):
    tree = ast.parse(text)
    return {(n.module, a.name) for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
