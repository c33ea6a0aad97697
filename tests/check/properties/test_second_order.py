"""The part that checks second derivatives."""

import numpy as np
import pytest
from tests.check._parts import NORMAL, failures, linear, linear_inputs, product, ran, with_backward

import pullback as pb
from pullback.check.properties.second_order import check_second_order
from pullback.check.report import INAPPLICABLE, PASSED


@pytest.mark.parametrize(
    "call",
    [
        (linear, *linear_inputs()),
        (product, NORMAL(size=3), NORMAL(size=(2, 3))),
        (lambda x: x.relu() * x.abs(), np.array([-1.0, 0.0, 2.0, 0.0])),
        (lambda x: x.max(), np.array([1.0, 3.0, 3.0, 2.0])),
        (lambda x: x.exp().sum(), NORMAL(size=4).astype(np.float32)),
        (lambda z: z * z.conj() * z, NORMAL(size=3) + 1j * NORMAL(size=3)),
        (lambda x: (x.sin(), x.cos()), NORMAL(size=3)),
    ],
)
def test_second_order_passes(call):
    result, report = ran(check_second_order, *call)
    assert (result.status, report.failures) == (PASSED, [])


def test_second_order_finds_a_detached_rule():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x.detach() ** 2

    @with_backward(backward)
    def cube(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    (found,) = failures(check_second_order, cube, NORMAL(size=3))
    assert (found.cause.name, found.argument) == ("second-order", "x")
    assert found.cause.text == (
        "the second derivative in `x` is wrong although the first is right: backward leaves the "
        "recorded operations (detach, numpy, no_grad)"
    )
    assert "pb.once_differentiable" in found.cause.hint
    assert found.wrong.all()


def test_second_order_finds_a_grad_output_that_is_detached():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad.detach()

    @with_backward(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    (found,) = failures(check_second_order, square, NORMAL(size=3))
    assert (found.cause.name, found.argument) == ("second-order", "grad_output")


def test_second_order_reports_the_trap_of_a_saved_intermediate():
    def forward(ctx, x):
        doubled = 2 * x
        ctx.save_for_backward(doubled=doubled)
        return doubled * doubled

    def backward(ctx, grad):
        return 4 * ctx.saved_variables.doubled * grad

    square = pb.autograd_function(forward, backward, name="square")
    (found,) = failures(check_second_order, square, NORMAL(size=3))
    assert found.cause.name == "second-order"
    assert found.cause.text.startswith("second derivative: backward raises when it is recorded")
    assert "'doubled' is neither an input nor an output" in found.cause.text
    assert "once_differentiable" in found.cause.hint


def test_second_order_reports_numpy_on_a_tracked_tensor():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * pb.asarray(np.cos(x.numpy()))

    @with_backward(backward)
    def sine(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    (found,) = failures(check_second_order, sine, NORMAL(size=3))
    assert found.cause.name == "second-order"
    assert "NumPy array" in found.cause.text
    assert found.cause.hint == "write it with tensor operations or mark it pb.once_differentiable"


def test_second_order_finds_a_rule_that_changes_when_it_is_recorded():
    def backward(ctx, grad):
        return 3 * grad if pb.is_grad_enabled() else 2 * grad

    @with_backward(backward)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(check_second_order, double, NORMAL(size=3))
    assert found.cause.name == "second-order"
    assert "different when backward is recorded" in found.cause.text


def test_second_order_does_not_apply_to_what_is_once_differentiable():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * pb.asarray(np.cos(x.numpy()))

    @with_backward(backward, once=True)
    def sine(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    for fn in (sine, lambda x: 2 * sine(x)):
        result, _ = ran(check_second_order, fn, NORMAL(size=3))
        assert (result.status, result.reason) == (INAPPLICABLE, "marked once_differentiable")
