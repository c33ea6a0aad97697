"""The page of benchmarks shows what was recorded of each, whole: first the rows that lose."""

import json
import math
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "docs" / "recorded" / "bench"
MAKEFILE = (ROOT / "Makefile").read_text()
NAMES = re.search(r"^BENCHMARKS := (.+)$", MAKEFILE, re.MULTILINE)[1].split()
FIGURES = runpy.run_path(str(ROOT / "docs" / "bench_figures.py"))


def record(name):
    return json.loads((RECORDS / f"{name}.json").read_text())


def test_there_is_a_record_of_each_benchmark_that_make_bench_runs_and_no_other():
    assert len(NAMES) >= 8
    assert sorted(path.stem for path in RECORDS.iterdir()) == sorted(NAMES)
    assert all((ROOT / "bench" / f"{name}.py").exists() for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_when_and_where_and_has_a_ratio_in_every_row(name):
    found = record(name)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert all(found[fact] for fact in ("processor", "system", "python"))
    assert {"pullback", "numpy", "torch", "jax", "autograd"} <= found["versions"].keys()
    assert found["ratios"]
    for ratios in found["ratios"].values():
        assert ratios
        assert all(0 < ratio < math.inf for ratio in ratios.values())


def rows_of(text):
    """Return the benchmark and the name of each row of the tables."""
    rows = []
    for part in text.split("\n### ")[1:]:
        name = part.partition(".py")[0]
        cells = [line.split(" | ")[0][2:] for line in part.splitlines() if line.startswith("| ")]
        rows += [(name, re.sub(r"\\(.)", r"\1", cell)) for cell in cells[1:]]
    return rows


def test_each_row_is_on_the_page_once_and_those_that_lose_come_first():
    first, others = FIGURES["text"]().split("\n## The other rows\n")
    losing, every = set(), set()
    for name in NAMES:
        for row, ratios in record(name)["ratios"].items():
            every.add((name, row))
            beside = [r for peer, r in ratios.items() if not peer.endswith("NumPy")]
            if any(round(r, 2) > 1 for r in beside):
                losing.add((name, row))
    assert sorted(rows_of(first)) == sorted(losing)
    assert sorted(rows_of(others)) == sorted(every - losing)
    assert "| models | 3 |" in first  # of how many rows each has


def test_a_ratio_above_one_is_bold_and_as_recorded():
    table = FIGURES["table"]({"a * b": {"PyTorch": 1.234, "NumPy": 0.5}, "c": {"PyTorch": 1.004}})
    assert table[0] == "| | PyTorch | NumPy |"
    assert table[2:] == ["| a \\* b | **1.23** | 0.50 |", "| c | 1.00 |  |"]
