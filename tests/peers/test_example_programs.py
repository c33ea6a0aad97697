"""Example programs of HIPS autograd and PyTorch run on pullback with other imports alone."""

import re

import numpy as np
import pytest
from tests.peers.example_programs import (
    EXAMPLES,
    LEFT_OUT,
    PAGE,
    PYTORCHS,
    edits,
    program_of,
    rows,
    run,
)
from tests.peers.hips_source import hips_source

pytestmark = pytest.mark.peers
EVERY = [*EXAMPLES, *PYTORCHS]
# HIPS autograd solves for the derivative of a solution to a tolerance of its own, and Adam makes
# steps of a size of the gradients that are zero but for that.
TOLERANCE = {"fixed_points": (5e-3, 1e-8), "ode_net": (1e-6, 5e-3)}


@pytest.mark.parametrize("name", EVERY)
def test_a_program_computes_what_it_computes_on_its_own_library(name):
    (ours, _), (theirs, _) = run(name, own=False), run(name, own=True)
    assert ours.keys() == theirs.keys()
    assert theirs, "a program without numbers shows nothing"
    rtol, atol = TOLERANCE.get(name, (1e-6, 1e-8))
    for key, expected in theirs.items():
        assert ours[key].shape == expected.shape, key
        np.testing.assert_allclose(ours[key], expected, rtol, atol, err_msg=key)


@pytest.mark.parametrize("name", EVERY)
def test_some_lines_of_imports_are_changed_and_no_other(name):
    imports = re.findall(r"^ *(?:from|import) ", program_of(name).read_text(), re.MULTILINE)
    assert 1 <= edits(name) <= len(imports)


def test_every_example_is_run_or_left_out_with_a_reason():
    folder = hips_source() / "examples"
    found = {p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.py")}
    helpers = {"__init__", "data", "data_mnist"}
    assert found - helpers == EXAMPLES.keys() | LEFT_OUT.keys()
    assert not EXAMPLES.keys() & LEFT_OUT.keys()


@pytest.mark.parametrize("names", [EXAMPLES, PYTORCHS], ids=["HIPS", "PyTorch"])
def test_the_page_tells_the_edits(names):
    text = PAGE.read_text()
    for row in rows(names, dict.fromkeys(names, 0.0)):
        told = row.removesuffix("0.00 |")
        assert re.search(rf"^{re.escape(told)}\d\.\d\d \|$", text, re.MULTILINE), row
    if names is EXAMPLES:
        for name, reason in LEFT_OUT.items():
            assert f"| `{name}` | {reason} |" in text
