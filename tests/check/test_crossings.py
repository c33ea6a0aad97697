"""Calls in which a comparison goes the way that it did not go."""

import numpy as np

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import Inputs
from pullback.check.inputs.crossing import crossings

X = np.array([0.3, 1.2, 0.7])


def found(forward, backward, *args):
    """Return what is different in the calls that are found."""
    op = pb.autograd_function(forward, backward)
    tensors = tuple(
        pb.tensor(x, requires_grad=True) if isinstance(x, np.ndarray) else x for x in args
    )
    return [
        (what, call.args[0].detach().numpy()) for what, call in crossings(op, Inputs(tensors, {}))
    ]


def leaky(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.where(x > 0, x, 0.1 * x)


def forgetful(ctx, g):
    return g


def test_an_argument_is_moved_to_the_other_side_of_what_it_is_compared_with():
    ((what, x),) = found(leaky, forgetful, X)
    assert what == "`x > 0` false"
    assert (x <= 0).any()


def test_a_comparison_that_went_both_ways_is_not_crossed():
    assert found(leaky, forgetful, np.array([-0.3, 1.2, 0.7])) == []


def test_something_computed_is_crossed_by_other_values():
    def forward(ctx, x):
        return x * 2 if x.sum().item() > 0 else x * 3

    ((what, x),) = found(forward, forgetful, X)
    assert what == "`x.sum().item() > 0` false"
    assert x.sum() <= 0


def test_probabilities_stay_between_zero_and_one():
    for _, x in found(leaky, forgetful, np.array([0.3, 0.2, 0.5])):
        assert ((x >= 0) & (x <= 1)).all()


def test_an_operation_that_compares_nothing_has_no_crossings():
    assert found(lambda ctx, x: x * 2, lambda ctx, g: g * 2, X) == []


def test_the_call_itself_is_as_it_was():
    x = X.copy()
    found(leaky, forgetful, x)
    assert np.array_equal(x, X)


def test_a_call_that_raises_has_no_crossings():
    def forward(ctx, x):
        raise ValueError("never")

    assert found(forward, forgetful, X) == []


def test_a_check_finds_what_is_wrong_on_the_other_side():
    op = pb.autograd_function(leaky, forgetful)
    report = check_op(op, X, raise_exception=False)
    assert report.failures
    assert not [note for note in report.notes if note.startswith("no change of the source")]
