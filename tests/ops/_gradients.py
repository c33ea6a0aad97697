"""What the tests of every operation's gradient share: their cases, and the checker on a case."""

from tests.ops import _cases

from pullback.check import gradcheck

CHECKED = [case for case in _cases.cases(differentiable=True) if case.wanted]
# The first sample of each operation: in real numbers, where it takes them.
FIRST = list({case.name: case for case in reversed(CHECKED)}.values())[::-1]
FURTHER = [case for case in CHECKED if case not in FIRST]


def findings(case, **options):
    """Return what the gradient checker finds wrong with a case, and its report."""
    tensors = _cases.leaves(case.arrays(), case.wanted)
    report = gradcheck(
        lambda *given: case.call(list(given)), tuple(tensors), raise_exception=False, **options
    )
    return report.failures, str(report)
