import numpy as np
import pytest

import pullback as pb
from pullback.check.agreement import looks_right
from pullback.check.inputs.arguments import Inputs, first_run


def op_of(gradients):
    """Return x * 1e6 summed, plus y**2 summed, with these gradients of x and y."""

    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        return 1e6 * x.sum() + (y * y).sum()

    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return dict(zip(("x", "y"), gradients(x, y, grad_output), strict=True))

    return pb.autograd_function(forward, backward)


def looks(op, *args, seed=0):
    return looks_right(first_run(op, Inputs(args, {})), seed)


def looked_at(gradients):
    return looks(op_of(gradients), np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7]))


def test_what_is_right_looks_right():
    assert looked_at(lambda x, y, g: (1e6 * g + 0 * x, 2 * y * g))


@pytest.mark.parametrize(
    "gradients",
    [
        lambda x, y, g: (1e6 * g + 0 * x, 2.02 * y * g),
        lambda x, y, g: (1e6 * g + 0 * x, None),
        lambda x, y, g: (1e6 * g + 0 * x, 1e-9 * y * g),
        lambda x, y, g: (1.00001e6 * g + 0 * x, 2 * y * g),
        lambda x, y, g: (None, 2 * y * g),
    ],
    ids=["small", "small and left out", "all but left out", "large", "large and left out"],
)
def test_a_wrong_gradient_of_one_argument_is_not_hidden_by_a_large_one_of_another(gradients):
    assert not looked_at(gradients)


def test_mistakes_in_what_two_arguments_have_in_common_do_not_cancel():
    def forward(ctx, x, a, b):
        ctx.save_for_backward(x=x, a=a, b=b)
        return x * (a / b)

    def backward(ctx, grad_output):  # the first element is left out of the ratio's gradient
        x, a, b = ctx.saved_tensors
        by_ratio = (grad_output * x)[1:].sum()
        return {"x": grad_output * a / b, "a": by_ratio / b, "b": -by_ratio * a / b**2}

    op = pb.autograd_function(forward, backward)
    call = (np.array([1.0, -2.0, 0.5]), np.array(3.0), np.array(0.7))
    assert not any(looks(op, *call, seed=seed) for seed in range(20))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_does_not_look_right(value):
    assert not looked_at(lambda x, y, g: (1e6 * g + 0 * x, value * y))


def test_a_kink_of_one_argument_is_no_matter_where_each_is_right_alone():
    calls = []

    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        calls.append(bool((x > y).any()))
        return ((x > y) * x).sum()

    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return {"x": (x > y) * grad_output, "y": None}

    step = pb.autograd_function(forward, backward)
    x = np.ones(200)
    # A step is at most 1.5e-5 long: of one argument too short to cross, of both not.
    assert looks(step, x, x + 1.6e-5)
    assert calls == [False, True, True, False, False, False, False]
