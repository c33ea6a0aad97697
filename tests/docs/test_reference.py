"""The reference of the operations is what the declarations say today, and its examples run."""

import doctest
import importlib.util
import io
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))


@pytest.fixture(scope="module")
def made():
    path = ROOT / "docs" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate_reference", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.pages()


def test_the_pages_are_those_that_the_declarations_make(made):
    assert [path.name for path in PAGES] == sorted(made), "run `make docs`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_says_what_the_declarations_say(path, made):
    assert path.read_text() == made[path.name], "run `make docs`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_examples_print_what_the_page_shows(path):
    for section in path.read_text().split("\n## "):
        test = doctest.DocTestParser().get_doctest(section, {}, path.name, str(path), 0)
        report = io.StringIO()
        result = doctest.DocTestRunner(verbose=False).run(test, out=report.write)
        assert result.failed == 0, report.getvalue()
