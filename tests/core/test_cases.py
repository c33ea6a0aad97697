"""Every case of cases.md has a test that is marked with its id, and no test has another id."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
LISTED = re.findall(r"(?m)^\| ([A-Z]+\d+) \|", (HERE / "cases.md").read_text(encoding="utf-8"))


def ids_of(test: ast.FunctionDef) -> set[str]:
    """Read the ids off the markers of a test, without importing anything."""
    marks = [d for d in test.decorator_list if isinstance(d, ast.Call)]
    marks = [d for d in marks if ast.unparse(d.func) == "pytest.mark.case"]
    return {ast.literal_eval(argument) for mark in marks for argument in mark.args}


def marked(folder: Path) -> set[str]:
    """Return the ids that mark tests, and rows of the tables of mistakes."""
    rows = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("mistakes/*.txt"))
    found = {name for ids in re.findall("(?m)^>>> .*# (.*)$", rows) for name in ids.split()}
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py")]
    nodes = [node for text in texts if "mark.case(" in text for node in ast.parse(text).body]
    return found.union(*(ids_of(node) for node in nodes if isinstance(node, ast.FunctionDef)))


def test_every_case_has_a_test() -> None:
    assert set(LISTED) - marked(HERE.parent) == set()


def test_no_test_has_an_unknown_case() -> None:
    assert marked(HERE.parent) - set(LISTED) == set()


def test_the_list_is_complete_and_names_each_case_once() -> None:
    assert len(LISTED) == 144
    assert len(set(LISTED)) == 144
