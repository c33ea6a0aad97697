"""The part that passes one tensor for two arguments."""

import numpy as np
import pytest
from tests.check._parts import X, Y, check, only_failure, op

import pullback as pb
from pullback.check.exceptions import InapplicableError
from pullback.check.properties.aliases import check_aliases


def test_one_tensor_for_two_arguments_is_tried():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        ctx.same = np.shares_memory(x.numpy(), y.numpy())
        return x * y

    def backward(ctx, g):
        s = ctx.saved_variables
        return {"x": g * s.y, "y": None if ctx.same else g * s.x}

    name, text = only_failure(check_aliases, op(forward, backward), X, Y)
    assert name == "same-tensor"
    assert text == "the gradient is wrong when one tensor is passed for both `x` and `y`"

    def refusing(ctx, x, y):
        assert not np.shares_memory(x.numpy(), y.numpy()), "one tensor"
        return x + y

    name, text = only_failure(check_aliases, op(refusing, lambda ctx, g: (g, g)), X, Y)
    assert name == "same-tensor"
    assert "is an error, equal ones are not: AssertionError: one tensor" in text


def test_aliases_need_two_like_arguments_that_may_be_equal():
    with pytest.raises(InapplicableError, match="no two arguments have one shape"):
        check(check_aliases, lambda x, y: x * y.sum(), X, X[0])
    with pytest.raises(InapplicableError, match="works in place on an argument"):
        check(check_aliases, lambda x, y: x.add_(y), X, Y)

    def distinct(ctx, x, y):
        if np.array_equal(x.numpy(), y.numpy()):
            raise ValueError("equal")
        return x - y

    assert check(check_aliases, op(distinct, lambda ctx, g: (g, -g)), X, Y).ok


@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
def test_a_tie_of_two_arguments_shares_one_gradient(share):
    def forward(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return pb.maximum(a, b)

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return {"a": g * ((a > b) + share * (a == b)), "b": g * ((b > a) + share * (a == b))}

    report = check(check_aliases, op(forward, backward), np.array([1.0, 2.0]), np.array([0.5, 3.0]))
    assert [f.cause.name for f in report.failures] == ([] if share == 0.5 else ["ties"])


def test_rounding_that_differs_for_one_tensor_is_not_called_wrong():
    huge = 1e9 * (1 + X)

    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        ctx.order = 1 if np.shares_memory(x.numpy(), y.numpy()) else -1
        return 0.0 * x * y

    def backward(ctx, g):
        s = ctx.saved_variables
        # One number in two orders of its factors: all that is left of it is rounding.
        zero = g * ((0.3 * s.x) * 3.7 - (0.3 * 3.7) * s.x) * ctx.order
        return {"x": zero, "y": zero}

    assert check(check_aliases, op(forward, backward), huge, huge + 1).ok


def distance(ctx, x, y):
    ctx.save_for_backward(x=x.numpy(), y=y.numpy())
    return pb.asarray(np.sqrt(((x.numpy() - y.numpy()) ** 2).sum()))


def distance_backward(ctx, g):
    x, y = ctx.saved_variables
    pull = pb.asarray(x - y) * (g / np.sqrt(((x - y) ** 2).sum()))
    return {"x": pull, "y": -pull}


def guarded_backward(ctx, g):
    x, y = ctx.saved_variables
    with np.errstate(invalid="ignore"):
        pull = pb.asarray(g.numpy() * (x - y) / np.sqrt(((x - y) ** 2).sum()))
    return {"x": pull, "y": -pull}


def test_nan_where_two_arguments_are_equal_is_no_mistake_without_a_derivative():
    assert check(check_aliases, op(distance, distance_backward), X, Y).ok


def test_nan_where_two_arguments_are_equal_is_a_mistake_where_divisions_by_zero_are_cared_for():
    name, _ = only_failure(check_aliases, op(distance, guarded_backward), X, Y)
    assert name == "ties"
