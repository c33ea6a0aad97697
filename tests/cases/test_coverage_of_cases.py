"""Every case of README.md has a test that carries its id, and no test carries another id."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
LISTED = re.findall(r"(?m)^\| ([A-Z]+\d+) \|", (HERE / "README.md").read_text(encoding="utf-8"))


def cases_tested(folder: Path) -> set[str]:
    """Read the ids off the names of the test functions, without importing anything."""
    found = set()
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                found.update(re.findall(r"^test_([A-Z]+[0-9]+)_", node.name))
    return found


def test_every_case_has_a_test() -> None:
    assert set(LISTED) - cases_tested(HERE.parent) == set()


def test_no_test_carries_an_unknown_id() -> None:
    assert cases_tested(HERE.parent) - set(LISTED) == set()


def test_the_list_is_complete_and_names_each_case_once() -> None:
    assert len(LISTED) == 144
    assert len(set(LISTED)) == 144
