"""The reference is generated: every public operation has an entry, and its example is executed."""

import doctest
import importlib.util
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as pb
from pullback.ops.declare import REGISTRY

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "docs" / "generate.py"
HEADING = re.compile(r"^## `(.+)`$", re.MULTILINE)


def load():
    spec = importlib.util.spec_from_file_location("generate_reference", GENERATOR)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generate = load()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of the reference, written as `make docs` writes it."""
    path = tmp_path_factory.mktemp("site")
    program = [sys.executable, "-W", "error", str(GENERATOR), str(path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return path / "docs" / "reference"


def sections(folder):
    """Return the text of every entry by its heading."""
    found = {}
    for path in sorted(folder.glob("*.md")):
        _, *parts = re.split(r"^(?=## `)", path.read_text(), flags=re.MULTILINE)
        for text in parts:
            heading = HEADING.match(text)[1]
            assert heading not in found, f"{heading} is described twice"
            found[heading] = text
    return found


def public_operations():
    """Return the declared operations that users can name, each with its spellings."""
    spelled = {name: generate.where_found(d.public)[0] for name, d in REGISTRY.items()}
    return {name: names for name, names in spelled.items() if names}


def test_most_declared_operations_are_public():
    assert len(public_operations()) > 0.9 * len(REGISTRY)


def test_every_public_operation_has_an_entry_with_an_example(folder):
    entries = sections(folder)
    missing = [name for name, names in public_operations().items() if names[0] not in entries]
    assert missing == []
    assert [heading for heading, text in entries.items() if ">>> " not in text] == []


@pytest.mark.parametrize("space", ["linalg", "fft"])
def test_a_namespace_is_described_whole(folder, space):
    module = getattr(pb, space)
    described = "".join(sections(folder).values())
    functions = [n for n in module.__all__ if hasattr(getattr(module, n), "primitive")]
    assert functions
    assert [n for n in functions if f"`pb.{space}.{n}`" not in described] == []


def test_the_index_links_to_every_entry(folder):
    rows = re.findall(
        r"^\| \[`(.+?)`\]\((.+?)\.md#(.+?)\)", (folder / "index.md").read_text(), re.M
    )
    assert sorted(name for name, _, _ in rows) == sorted(sections(folder))
    for name, page, _ in rows:
        assert f"## `{name}`\n" in (folder / f"{page}.md").read_text()


@pytest.mark.parametrize("page", sorted(generate.themes()))
def test_the_examples_print_what_the_page_shows(folder, page):
    for section in (folder / f"{page}.md").read_text().split("\n## "):
        test = doctest.DocTestParser().get_doctest(section, {}, page, page, 0)
        report = io.StringIO()
        result = doctest.DocTestRunner(verbose=False).run(test, out=report.write)
        assert result.failed == 0, report.getvalue()


def test_every_page_is_a_theme_or_the_index(folder):
    assert {path.stem for path in folder.glob("*.md")} == {"index", *generate.themes()}


def test_the_documents_are_copied_with_their_links(folder):
    site = folder.parents[1]
    for path in sorted(site.rglob("*.md")):
        links = re.findall(r"\]\(([^)#]+)", path.read_text())
        local = [link for link in links if "://" not in link and link != "examples"]
        assert [link for link in local if not (path.parent / link).exists()] == []
