"""The reference is generated: every public operation has an entry, and its example is executed."""

import ast
import doctest
import importlib.util
import inspect
import io
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as pb
from pullback.ops.declare import REGISTRY

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "docs" / "generate.py"
ENTRY = re.compile(r"^\.\. (?:autofunction|py:function):: ([\w.]+)", re.MULTILINE)


def load():
    spec = importlib.util.spec_from_file_location("generate_reference", GENERATOR)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generate = load()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of the operations' pages, written as `make docs` writes it."""
    path = tmp_path_factory.mktemp("site")
    program = [sys.executable, "-W", "error", str(GENERATOR), str(path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return path / "operations"


def entries(folder):
    """Return the text of every entry by its name."""
    texts = {}
    for path in sorted(folder.glob("*.rst")):
        _, *parts = re.split(
            r"^(?=\.\. (?:auto|py:)function:: )", path.read_text(), flags=re.MULTILINE
        )
        for text in parts:
            name = ENTRY.match(text)[1]
            assert name not in texts, f"{name} is described twice"
            texts[name] = text
    return texts


def public_operations():
    """Return the declared operations that users can name, each with its spellings."""
    spelled = {name: generate.where_found(d.public)[0] for name, d in REGISTRY.items()}
    return {name: names for name, names in spelled.items() if names}


def test_most_declared_operations_are_public():
    assert len(public_operations()) > 0.9 * len(REGISTRY)


def test_every_public_name_of_an_operation_has_an_entry(folder):
    described = entries(folder)
    every = [generate.full(name) for names in public_operations().values() for name in names]
    assert [name for name in every if name not in described] == []


@pytest.mark.parametrize("space", ["linalg", "fft", "special", "nn.functional"])
def test_a_namespace_is_described_whole(folder, space):
    module = operator.attrgetter(space)(pb)
    functions = [n for n in module.__all__ if not inspect.isclass(getattr(module, n))]
    described = entries(folder)
    assert functions
    assert [n for n in functions if f"pullback.{space}.{n}" not in described] == []


def test_the_index_lists_every_function_once(folder):
    listed = re.findall(r"<(pullback\.\S+)>`", (folder / "index.rst").read_text())
    first = [generate.where_found(function)[0][0] for function in generate.functions()]
    assert sorted(listed) == sorted(map(generate.full, first))


def test_the_themes_stand_under_the_headings_of_the_package():
    assert generate.headings()["trigonometric"] == "Pointwise"
    assert generate.headings()["fourier"] == "Spectra"
    assert generate.headings()["pooling"] == "Neural networks"


@pytest.mark.parametrize("page", sorted(generate.themes()))
def test_every_operation_has_an_example_that_prints_what_is_shown(page):
    for function in generate.themes()[page][1]:
        name = generate.where_found(function)[0][0]
        declaration = REGISTRY.get(getattr(getattr(function, "primitive", None), "name", ""))
        doc = inspect.getdoc(function)
        lines = generate.example_of(function, name, declaration) if declaration else [doc]
        text = "\n".join(lines) + "\n"
        assert ">>> " in text or not declaration, name
        test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
        report = io.StringIO()
        result = doctest.DocTestRunner(verbose=False).run(test, out=report.write)
        assert result.failed == 0, report.getvalue()


def test_an_entry_shows_the_rule_of_each_input_and_the_edges_of_the_table(folder):
    text = entries(folder)["pullback.exp"]
    assert "* ``x``: ``g * out``\n" in text
    assert "* - ``pb.exp(x)``\n" in text


def test_every_page_is_a_theme_or_the_index(folder):
    assert {path.stem for path in folder.glob("*.rst")} == {"index", *generate.themes()}


def test_links_between_documents_lead_to_their_pages(folder):
    docs, site = ROOT / "docs", folder.parent
    texts = [generate.linked(path.read_text(), "docs") for path in docs.glob("*.md")]
    texts += [path.read_text() for path in site.glob("project/*.md")]
    links = {link for text in texts for link in re.findall(r"\]\(/([^)#]+)", text)}
    assert {"project/benchmarks.md", "calls.md"} <= links
    assert [link for link in links if not any((at / link).exists() for at in (docs, site))] == []


def test_an_example_becomes_a_page_with_a_heading_and_its_recorded_output(folder):
    text = (folder.parent / "example-sources" / "characters.py").read_text()
    doc = ast.get_docstring(ast.parse(text))
    assert doc.startswith("A recurrent model of characters\n====")
    assert "last loss 0.0" in doc
    records = {path.stem for path in (ROOT / "docs" / "recorded").glob("*.txt")}
    assert records <= {path.stem for path in (ROOT / "examples").glob("*.py")}
