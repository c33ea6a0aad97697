"""The tests of a name of the engine or of custom operations are found by it.

A test, or the file that it is in, has the name in its own: `test_mark_dirty_of_a_view...`,
`test_retain_grad.py`. Operations are exempt: the registry's tests run each under its own name.
"""

import ast
import re
from pathlib import Path

import pytest

import pullback as pb
from pullback.core.custom.context import Context

TESTS = Path(__file__).parents[1]
NODE = ("name", "next_functions", "metadata", "register_hook", "register_prehook")


def is_of_core(value: object) -> bool:
    value = value.fget if isinstance(value, property) else value
    return str(getattr(value, "__module__", "")).startswith("pullback.core.")


def public(namespace: object) -> set[str]:
    """Return the public names that core defines in a module or class."""
    members = vars(namespace).items()
    return {n for n, v in members if is_of_core(v) and (n == "_version" or not n.startswith("_"))}


NAMES = {*NODE, *pb.autograd.__all__}.union(*map(public, (pb, pb.Tensor, pb.Function, Context)))


def names_of_tests() -> str:
    """Return the names of all tests and of their files."""
    found = []
    for path in TESTS.rglob("test_*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found += [path.stem, *(n.name for n in nodes if isinstance(n, ast.FunctionDef))]
    return "\n".join(name for name in found if name.startswith("test_"))


FOUND = names_of_tests()


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_name_is_in_that_of_a_test_or_of_its_file(name: str) -> None:
    words = re.escape(name.strip("_").lower())
    assert re.search(rf"_{words}(_|$)", FOUND.lower(), re.MULTILINE)


def test_the_names_are_those_of_engine_and_custom_operations() -> None:
    assert {"mark_dirty", "retain_grad", "register_prehook", "autograd_function", "grad"} <= NAMES
    assert len(NAMES) > 50
