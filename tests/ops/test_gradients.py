"""The gradients of every declared operation, by the checker: the first sample, every part."""

import pytest
from tests.ops._gradients import FIRST, findings

import pullback as pb
from pullback.check import gradcheck


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_the_gradient_checker_finds_nothing_wrong(case):
    found, report = findings(case)
    assert found == [], report


def test_the_checks_of_the_registry_can_fail():
    (case, *_) = [case for case in FIRST if case.name == "sin"]
    wrong = pb.autograd_function(lambda ctx, x: x * 1, lambda ctx, g: g * 1.5)
    report = gradcheck(
        lambda x: wrong(case.call([x])[0]), case.arrays()[0], raise_exception=False, only=("first",)
    )
    assert [failure.cause.name for failure in report.failures] == ["factor"]
