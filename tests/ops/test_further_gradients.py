"""The gradients of every declared operation, by the checker: further samples, complex numbers.

`test_registry.py` differentiates all of these twice as well; the checker's other parts: stress.
"""

import pytest
from tests.ops._gradients import FURTHER, findings

every = pytest.mark.parametrize("case", FURTHER, ids=str)


@every
def test_the_gradient_checker_finds_nothing_wrong_with_first_derivatives(case):
    found, report = findings(case, only=("first",))
    assert found == [], report


@pytest.mark.stress
@every
def test_the_gradient_checker_finds_nothing_wrong_with_any_sample(case):
    found, report = findings(case, seed=1)
    assert found == [], report
