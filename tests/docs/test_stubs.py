"""The stubs for type checkers say what there is at run time."""

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

import pullback as pb

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "docs" / "stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["__init__.pyi", "core/tensor/methods.pyi"])
def test_a_stub_is_up_to_date(stubs, name):
    assert (stubs.PACKAGE / name).read_text() == stubs.STUBS[name](), "run `make stubs`"


def test_the_stub_of_the_methods_has_every_public_attribute_that_is_attached(stubs):
    (listed,) = (n for n in ast.parse(stubs.methods_stub()).body if isinstance(n, ast.ClassDef))
    names = {node.name for node in listed.body}
    tree = ast.parse(inspect.getsource(pb.Tensor))
    own = {n.name for n in tree.body[0].body if isinstance(n, ast.FunctionDef)}
    attached = {n for n in vars(pb.Tensor) if n[0] != "_"} - own
    assert attached - names <= {"backward"}  # declared in the class for type checkers


def test_the_stub_of_the_package_exports_what_the_package_has(stubs):
    tree = ast.parse(stubs.contents_stub())
    imported = {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    declared = {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    written = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert (imported - {None}) | declared | written == {*pb.__all__}
