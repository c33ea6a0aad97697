"""The documents say what happens: their examples run, their tables hold, their names exist.

README.md's examples with prompts are collected by pytest itself; those of the other documents,
programs without prompts, tables of values, quotations of the source, links and names here.
"""

import doctest
import functools
import io
import itertools
import math
import operator
import os
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.ops.declare import REGISTRY

ROOT = Path(__file__).parents[2]
GUIDES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/start/*.md")])
DOCUMENTS = sorted([*ROOT.glob("*.md"), *GUIDES, ROOT / "bench" / "README.md"])


def name(path):
    return path.relative_to(ROOT).as_posix()


def every(paths):
    return pytest.mark.parametrize("path", paths, ids=name)


def test_the_documents_are_found():
    found = {name(path) for path in DOCUMENTS}
    assert found >= {
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md"),
        *("docs/custom-functions.md", "docs/engine.md", "docs/edge-values.md"),
    }


# Examples with prompts ---------------------------------------------------------------------------


@every([*GUIDES, ROOT / "CONTRIBUTING.md"])
def test_the_examples_print_what_the_document_shows(path):
    text = path.read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, name(path), str(path), 0)
    assert len(test.examples) == len(re.findall(r"^ *>>> ", text, re.MULTILINE))
    report = io.StringIO()
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.write)
    assert result.failed == 0, report.getvalue()


# Programs without prompts, and what they print ---------------------------------------------------

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path):
    """Return the fenced blocks of a document: pairs of language and text."""
    return FENCE.findall(path.read_text())


def programs():
    """Return the whole programs of all documents, each with the text block that follows it."""
    found = []
    for path in DOCUMENTS:
        fenced = blocks(path)
        for (language, text), (after, printed) in itertools.pairwise(fenced):
            if language == "python" and after == "text":
                found.append(pytest.param(text, printed, id=name(path)))
    return found


def test_the_readme_begins_with_a_program():
    assert "README.md" in [param.id for param in programs()]


@pytest.mark.parametrize(("text", "printed"), programs())
def test_a_program_prints_what_the_document_shows(text, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a program may write files
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(text, "program", "exec"), {"__name__": "__main__"})
    assert output.getvalue() == printed


# Runs a program, and kills it in the middle of an epoch, at a step of the optimizer.
KILLED = """
import os, runpy, sys
import pullback as pb

steps = iter(range(int(sys.argv[1])))
pb.optim.AdamW.step = lambda self, step=pb.optim.AdamW.step: (
    os._exit(9) if next(steps, None) is None else step(self)
)
runpy.run_path("train.py", run_name="__main__")
"""


def test_the_training_program_killed_and_run_again_in_new_processes_has_the_same_losses(tmp_path):
    ((text, printed),) = [p.values for p in programs() if p.id == "docs/training.md"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

    def run(folder, *arguments):
        call = [sys.executable, *arguments]
        return subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True)

    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    assert run(tmp_path / "whole", "train.py").stdout == printed
    for steps in ("5", "40", "30"):  # before anything is saved, in the fourth epoch, in the sixth
        killed = run(tmp_path / "killed", "-c", KILLED, steps)
        assert (killed.returncode, killed.stdout) == (9, ""), killed.stderr
    assert len(pb.load(tmp_path / "killed" / "train.safetensors")["losses"]) == 5
    assert run(tmp_path / "killed", "train.py").stdout == printed
    whole, killed = (pb.load(tmp_path / name / "train.safetensors") for name in ("whole", "killed"))
    assert whole["losses"] == killed["losses"]
    assert whole["accuracies"] == killed["accuracies"]


# Quotations of the source ------------------------------------------------------------------------

QUOTED = [
    pytest.param(*text.split("\n", 1), id=text.split("\n", 1)[0])
    for path in DOCUMENTS
    for language, text in blocks(path)
    if language == "python" and re.match(r"# (src|tests|examples)/\S+\.py\n", text)
]


def test_contributing_quotes_a_declaration():
    assert any("src/pullback/ops/" in param.id for param in QUOTED)


@pytest.mark.parametrize(("head", "text"), QUOTED)
def test_quoted_source_is_the_source(head, text):
    source = (ROOT / head.removeprefix("# ")).read_text()
    assert all(part.strip("\n") in source for part in re.split(r"^ *\.\.\.\n", text, flags=re.M))


# The table of edge values ------------------------------------------------------------------------

EDGES = (ROOT / "docs" / "edge-values.md").read_text()
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \| `(.+?)` \| `(.+?)` \| .+ \|$", re.MULTILINE)
CONSTANTS = {"inf": math.inf, "nan": math.nan, "pb": pb}


def read(cell):
    """Return the values in a cell, several of them separated by commas."""
    return eval(f"({cell},)", dict(CONSTANTS))


@pytest.mark.parametrize(("expression", "at", "value", "gradient"), ROW.findall(EDGES))
def test_an_edge_has_the_value_and_the_gradient_of_the_table(expression, at, value, gradient):
    points = eval(f"dict({at})", dict(CONSTANTS))
    wide = {k: np.asarray(v, np.result_type(np.float64, np.asarray(v))) for k, v in points.items()}
    leaves = {k: pb.tensor(v, requires_grad=True) for k, v in wide.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of a mean of nothing
        result = eval(expression, CONSTANTS | leaves)
        grads = pb.autograd.grad(result.sum(), list(leaves.values()))
    same = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=0, equal_nan=True)
    same(result.detach().numpy(), read(value)[0])
    for grad, expected in zip(grads, read(gradient), strict=True):
        same(grad.numpy(), expected)


def test_every_row_of_the_table_is_read():
    rows = [line for line in EDGES.splitlines() if line.startswith("| ")]
    headers = [line for line in rows if line.startswith("| expression ")]
    assert len(ROW.findall(EDGES)) == len(rows) - len(headers)
    assert len(headers) >= 5


def with_a_kink():
    """Return the operations whose declaration keeps samples away from some points."""
    return [n for n, d in REGISTRY.items() if d.distinct or any(x.away for x in d.domain.values())]


@pytest.mark.parametrize("op", with_a_kink())
def test_an_operation_with_a_kink_has_a_row(op):
    names = REGISTRY[op].names
    assert any(re.search(rf"\b{each}\(", row[0]) for each in names for row in ROW.findall(EDGES))


# Names and links ---------------------------------------------------------------------------------


def names_of(path):
    return sorted(set(re.findall(r"\bpb\.([A-Za-z_][\w.]*\w)", path.read_text())))


@every(DOCUMENTS)
def test_every_name_of_the_package_exists(path):
    missing = []
    for dotted in names_of(path):
        try:
            operator.attrgetter(dotted)(pb)
        except AttributeError:
            missing.append(f"pb.{dotted}")
    assert missing == []


@every(DOCUMENTS)
def test_every_link_leads_to_a_file(path):
    text = re.sub(r"`[^`\n]+`", "", path.read_text())  # f(x)[0](v) is no link
    links = re.findall(r"\]\(([^)#]+)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []
