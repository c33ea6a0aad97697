"""docs/scipy.md: its lists are the tables of the tests, and its programs print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import scipy
from tests.scipy_support._document import sections

TEXT = (Path(__file__).parents[2] / "docs" / "scipy.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def section(heading):
    return re.split(r"\n###? ", TEXT.partition(f"\n### {heading}\n")[2])[0].strip()


@pytest.mark.parametrize("heading", sections())
def test_a_list_of_the_document_is_the_table(heading):
    assert section(heading).endswith(sections()[heading])


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
