"""Programs drawn at random do the same in pullback and in PyTorch, step by step.

PROGRAMS=20000 PROGRAMS_FIRST=0 runs that many, from that seed; the seed of one that differs is
printed with a program as short as can be.
"""

import os

import pytest
import torch
from tests.peers import program_runs
from tests.peers._random_programs_table import explained
from tests.peers.random_programs import draw

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

COUNT = int(os.environ.get("PROGRAMS", "600"))
FIRST = int(os.environ.get("PROGRAMS_FIRST", "0"))
TOGETHER = 50  # programs of a test


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small arrays are slower with several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def every_step(seed):
    """Return whether tensors are looked at after each step: looking brings views up to date."""
    return seed % 3 != 0


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, TOGETHER))
def test_random_programs_do_the_same_as_in_torch(first):
    for seed in range(first, min(first + TOGETHER, FIRST + COUNT)):
        found = program_runs.compare(draw(seed), every_step(seed))
        if found is not None and explained(found) is None:
            found = program_runs.shrink(found, every_step(seed), explained)
            program = "\n".join(f"    {line}" for line in found.lines)
            pytest.fail(f"seed {seed}:\n{program}\n{found}", pytrace=False)


def test_a_program_is_the_same_for_the_same_seed():
    assert draw(7) == draw(7) != draw(8)


def test_a_difference_is_found_and_shrunk_to_the_statements_that_show_it():
    lines = [
        "t1 = lib.tensor(array([1.0, 2.0]), requires_grad=True)",
        "t2 = lib.tensor(array([3.0, 4.0]))",
        "t3 = t2 * 2",
        "t4 = t1 + (1 if lib.__name__ == 'torch' else 2)",
        "t5 = t3 - t2",
        "t6 = t4 * t5",
    ]
    found = program_runs.compare(lines, every_step=False)
    assert (found.step, found.what) == (5, "t4.value")
    assert program_runs.shrink(found, every_step=False).lines == (lines[0], lines[3])
