"""The pages about errors: each class has one, with the message that its program raises today."""

import importlib.util
import re
from pathlib import Path

import pytest

from pullback import errors

PAGES = Path(__file__).parents[2] / "docs" / "error_pages"
CLASSES = [
    cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, Exception) and cls.__module__ == errors.__name__
]
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@pytest.fixture(scope="module")
def write():
    spec = importlib.util.spec_from_file_location("write_error_pages", PAGES / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_class_of_errors_has_a_page_and_a_program(write):
    names = {cls.__name__ for cls in CLASSES}
    assert {path.stem for path in PAGES.glob("*.md")} == names | {"index"}
    assert set(write.PROGRAMS) == names


@every_class
def test_the_failing_program_raises_the_class_of_its_page(write, cls):
    raised, _ = write.message(cls)
    assert isinstance(raised, cls)
    assert type(raised) is cls or cls is errors.AutogradError


@every_class
def test_a_page_of_an_error_is_what_its_programs_print(write, cls):
    page = (PAGES / f"{cls.__name__}.md").read_text(encoding="utf-8")
    assert page == write.page(cls), "run docs/error_pages/write.py"


@every_class
def test_the_mended_program_of_an_error_runs_and_prints(write, cls):
    assert write.execute(write.PROGRAMS[cls.__name__].mended)


def test_the_index_of_errors_has_the_tree_of_classes(write):
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    assert text == write.index(), "run docs/error_pages/write.py"
    depths = {m[2]: len(m[1]) // 2 for m in re.finditer(r"^( *)\* \[(\w+)\]", text, re.MULTILINE)}
    for cls in CLASSES:
        within = [base for base in cls.__mro__ if base.__module__ == errors.__name__]
        assert depths[cls.__name__] == len(within) - 1


def test_every_link_of_an_error_page_leads_to_a_file():
    for path in PAGES.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_an_uninstalled_package_is_missing_within_the_block_alone(write):
    with write.uninstalled(("tqdm",)), pytest.raises(ModuleNotFoundError, match="'tqdm'"):
        importlib.import_module("tqdm")
    assert importlib.import_module("tqdm")
