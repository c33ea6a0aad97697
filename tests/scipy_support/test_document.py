"""docs/scipy.md: its lists have every function once, and its programs print what it shows."""

import os
import re
import subprocess
import sys

import pytest
import scipy
from tests.scipy_support._document import ERRORS, FAILING, GRADIENT, TEXT, VALUES, every_call

PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_lists_have_every_function_that_is_called_once():
    assert sorted([*GRADIENT, *VALUES, *FAILING]) == sorted(every_call())
    assert set(FAILING.values()) == set(ERRORS)


def test_the_version_of_the_document_is_the_one_that_is_tested():
    assert re.findall(r"SciPy (\d+\.\d+)", TEXT)[0] == ".".join(scipy.__version__.split(".")[:2])


def test_the_document_has_programs():
    assert len(PROGRAMS) == TEXT.count("```python\n") >= 3


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_prints_what_the_document_shows(number):
    program, printed = PROGRAMS[number]
    without = {k: v for k, v in os.environ.items() if k != "SCIPY_ARRAY_API"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=without,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == (printed, "")
