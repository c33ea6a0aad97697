"""The package `pullback.check`: what imports what, and what is loaded when."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as pb

SRC = Path(pb.__file__).parent
CHECK = SRC / "check"

# As the package's docstring lists them: a group imports from itself and from those above it.
GROUPS = (
    {"deadline", "ending", "exceptions", "iterating", "naming", "progress", "values"},
    {"numerical", "plot", "report", "rounding", "subject"},
    {"comparison", "nearby", "resizing", "session"},
    {"explain"},
    {"repair"},
    {"properties"},
    {"api"},
    {"inputs"},
    {"first_look", "ops"},
    {"discovery", "loading"},
)
RANK = {name: rank for rank, group in enumerate(GROUPS) for name in group}
USERS = {"cli.py"}  # the command line; the pytest plugin loads by name


def imports_of_check(path):
    """Return the modules of the checker that a file imports, relative to the package."""
    nodes = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
    found = [n.module or "" for n in nodes if n.level == 0]
    return [m.removeprefix("pullback.check.") for m in found if m.startswith("pullback.check.")]


def relative(path):
    return path.relative_to(CHECK).as_posix()


@pytest.mark.parametrize("path", sorted(CHECK.rglob("*.py")), ids=relative)
def test_imports_point_to_the_groups_above(path):
    own = path.relative_to(CHECK).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for module in imports_of_check(path):
        assert RANK[module.split(".")[0]] <= RANK[own], f"{own} imports {module}"


def test_there_are_no_circles_of_imports():
    graph = {}
    for path in CHECK.rglob("*.py"):
        name = ".".join(path.relative_to(CHECK).with_suffix("").parts)
        graph[name.removesuffix(".__init__")] = set(imports_of_check(path))
    del graph["__init__"]
    while leaves := [name for name, used in graph.items() if not used & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert not graph


def test_nothing_else_imports_the_modules_of_the_checker():
    others = [p for p in SRC.rglob("*.py") if CHECK not in p.parents]
    users = {p.relative_to(SRC).as_posix() for p in others if imports_of_check(p)}
    assert users == USERS


def test_the_checker_is_loaded_when_it_is_used():
    program = (
        "import sys, pullback as pb\n"
        "print([m for m in sys.modules if m.startswith('pullback.check.')])\n"
        "pb.check.PARTS\n"
        "print('pullback.check.properties.first' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.split("\n")[:2] == ["[]", "True"], run.stderr


def test_the_public_names_are_listed_and_others_refused():
    assert set(pb.check.__all__) <= set(dir(pb.check))
    for name in pb.check.__all__:
        assert getattr(pb.check, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        pb.check.absent  # noqa: B018
