"""The gradients of every declared operation, by the checker: further samples, complex numbers.

A third of them, and first derivatives alone; the checker's other parts, and all samples: stress.
"""

import pytest
from tests.ops._gradients import FURTHER, findings

every = pytest.mark.parametrize("case", FURTHER, ids=str)


@pytest.mark.parametrize("case", FURTHER[::3], ids=str)
def test_the_gradient_checker_finds_nothing_wrong_with_first_derivatives(case):
    found, report = findings(case, only=("first",))
    assert found == [], report


@pytest.mark.stress
@every
def test_the_gradient_checker_finds_nothing_wrong_with_any_sample(case):
    found, report = findings(case, seed=1)
    assert found == [], report
