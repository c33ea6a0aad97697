"""docs/numpy.md lists what is mapped and what is not."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.numpy_protocol._document import groups
from tests.numpy_protocol._methods import OF_THE_ARRAY, RAISES

from pullback.numpy_protocol.table import NO_COUNTERPART

pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="the lists are those of NumPy 2.4"
)
TEXT = (Path(__file__).parents[2] / "docs" / "numpy.md").read_text()
HEADINGS = {
    "ufuncs": "Element by element",
    "functions": "Functions of arrays",
    "linalg": "np.linalg",
    "fft": "np.fft",
    "values": "Answers without a gradient",
    "like": "Making tensors",
}


def section(heading):
    return TEXT.partition(f"\n### {heading}\n")[2].partition("\n#")[0]


@pytest.mark.parametrize("group", HEADINGS)
def test_a_list_of_the_document_is_the_table(group):
    names = section(HEADINGS[group]).strip().split("\n\n")[-1]
    assert re.findall(r"`(.+?)`", names) == groups()[group]


def test_every_reason_is_in_the_document():
    rows = re.findall(r"^\| `(.+?)` \| (.+) \|$", section("None"), re.MULTILINE)
    assert rows == sorted(NO_COUNTERPART.items())


def test_every_attribute_about_memory_is_in_the_document():
    told = set(re.findall(r"`(\w+)`", section("Tensors with NumPy's methods")))
    assert {*OF_THE_ARRAY, *RAISES} <= told
