"""Which way comparisons go in forward and in backward."""

import numpy as np
import pytest
from tests.check._repair import defined

import pullback as pb
from pullback.check.repair import Branches

X = np.array([0.3, 1.2, 0.7])


def branches(forward, backward, *args, **kwargs):
    tensors = [pb.tensor(x, requires_grad=True) if isinstance(x, np.ndarray) else x for x in args]
    found = Branches(pb.autograd_function(forward, backward)).of(tuple(tensors), kwargs)
    return {branch.text: set(branch.outcomes) for branch in found.values()}


def hinge(ctx, x, low=0.5):
    ctx.save_for_backward(x=x)
    return pb.where(x > low, x, 0.0)


def hinge_rule(ctx, g):
    return g * (ctx.saved_variables.x > 0.5)


def test_a_comparison_that_goes_both_ways_has_both_outcomes():
    found = branches(hinge, hinge_rule, X)
    assert found == {"x > low": {True, False}, "ctx.saved_variables.x > 0.5": {True, False}}


def test_a_comparison_that_goes_one_way_has_one():
    assert branches(hinge, hinge_rule, X, 0.1)["x > low"] == {True}


@pytest.mark.parametrize(
    ("expression", "text", "outcome"),
    [
        ("np.maximum(x, 0.0)", "x > 0.0", True),
        ("np.minimum(x, 0.0)", "x < 0.0", False),
        ("np.abs(x)", "x < 0", False),
        ("np.clip(x, 0.0, 2.0)", "x > 2.0", False),
    ],
)
def test_functions_that_compare_count(expression, text, outcome):
    source = (
        "import numpy as np\nimport pullback as pb\n"
        f"def forward(ctx, x):\n    x = x.numpy()\n    return pb.asarray({expression})\n"
    )
    forward = defined(source, "forward", f"<{expression}>")
    assert branches(forward, lambda ctx, g: g, X)[text] == {outcome}


def test_equality_of_floats_is_no_branch():
    def forward(ctx, x):
        return pb.where(x == 0.0, 1.0, x)

    assert branches(forward, lambda ctx, g: g, X) == {}


def test_an_operation_without_source_is_not_known():
    assert not Branches(np.sin).known
