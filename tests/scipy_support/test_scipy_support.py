"""SciPy's functions on tensors: gradients checked by differences, refusals by their errors.

The calls are run by `program.py`, in one process of its own: SciPy reads SCIPY_ARRAY_API once.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.scipy_support._document import ERRORS, FAILING, GRADIENT, VALUES, every_call

ROOT = Path(__file__).parents[2]
CALLS = every_call()
# A permutation test: its p-value is another in every run.
RANDOM = {"stats.bws_test"}


@pytest.fixture(scope="module")
def report():
    """What the program prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.scipy_support.program"],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": ""},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", GRADIENT)
def test_a_function_has_the_gradient_of_differences(report, name):
    assert set(report["outcomes"][name]) == {"gradient"}


@pytest.mark.parametrize("name", VALUES)
def test_a_function_without_a_gradient_by_nature_has_its_value(report, name):
    assert set(report["outcomes"][name]) == {"values"}


@pytest.mark.parametrize("name", FAILING)
def test_a_function_that_would_lose_the_history_says_so(report, name):
    for outcome in report["outcomes"][name]:
        assert outcome.startswith(ERRORS[FAILING[name]])


def test_every_function_that_takes_arrays_of_any_library_by_scipys_table_is_called(report):
    called = {name.partition("[")[0] for name in CALLS}
    assert called == {name for name, kind in report["support"].items() if kind == "any"}


def test_no_function_for_numpys_arrays_alone_loses_a_history_without_a_word(report):
    lost = report["lost"]
    assert len(lost) > 150
    assert {name: shapes for name, shapes in lost.items() if shapes and name not in RANDOM} == {}
