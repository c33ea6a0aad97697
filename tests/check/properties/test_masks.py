"""The part that differentiates subsets of the arguments."""

import numpy as np
from tests.check._parts import (
    NORMAL,
    failures,
    linear,
    linear_inputs,
    product_backward,
    ran,
    with_backward,
)

import pullback as pb
from pullback.check.properties.masks import check_masks, subsets
from pullback.check.report import INAPPLICABLE, PASSED


def test_masks_tries_every_subset_of_few_arguments_and_single_ones_of_many():
    assert subsets(2) == [(0,), (1,)]
    assert len(subsets(3)) == 6
    assert len(subsets(4)) == 14
    assert sorted(map(len, subsets(6))) == [1] * 6 + [5] * 6


def test_masks_pass_where_each_gradient_is_computed_by_itself():
    result, report = ran(check_masks, linear, *linear_inputs())
    assert (result.status, report.failures) == (PASSED, [])


def test_masks_say_that_one_argument_has_no_subsets():
    result, _ = ran(check_masks, lambda x: pb.sin(x), np.ones(3))
    assert (result.status, result.reason) == (INAPPLICABLE, "only one argument is differentiated")


def test_masks_find_a_gradient_that_is_wrong_alone():
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        by_x = grad * y if needs.x else None
        by_y = grad * x if needs.x and needs.y else grad if needs.y else None
        return by_x, by_y

    @with_backward(backward)
    def times(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    (found,) = failures(check_masks, times, NORMAL(size=3), NORMAL(size=3))
    assert (found.cause.name, found.argument) == ("needs-input-grad", "y")
    assert found.cause.text == "`y` is wrong when only it needs a gradient"
    assert found.wrong.all()
    assert not found.situation


def test_masks_name_the_argument_that_is_left_out():
    def backward(ctx, grad):
        x, w, _ = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return grad @ w, grad.mT @ x, grad.sum(0) if needs.w else grad[0]

    @with_backward(backward)
    def affine(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return x @ w.mT + b

    (found,) = failures(check_masks, affine, *linear_inputs())
    assert found.cause.text == "`b` is wrong when `w` needs no gradient"


def test_masks_report_an_exception_with_what_was_left_out():
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        if ctx.needs_input_grad.x:
            by_x = grad * y
        return by_x, grad * x

    @with_backward(backward)
    def times(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    (found,) = failures(check_masks, times, NORMAL(size=3), NORMAL(size=3))
    assert found.cause.name == "needs-input-grad"
    assert found.cause.text.startswith("backward raises when `x` needs no gradient: Unbound")


def test_masks_find_what_is_wrong_for_the_gradients_asked_for_alone():
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        both = all(ctx.needs_input_grad) or not ctx.both
        return grad * y if both else grad, grad * x

    @with_backward(backward)
    def times(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.both = all(ctx.needs_input_grad)
        return x * y

    (found,) = failures(check_masks, times, NORMAL(size=3), NORMAL(size=3))
    assert found.cause.text == "`x` is wrong when only it needs a gradient"
    assert found.situation == "pb.autograd.grad(outputs, [x])"


def test_masks_report_a_forward_that_needs_all_gradients():
    def forward(ctx, x, y):
        if not ctx.needs_input_grad.y:
            raise ValueError("no y")
        ctx.save_for_backward(x, y)
        return x * y

    times = pb.autograd_function(forward, product_backward, name="times")
    (found,) = failures(check_masks, times, NORMAL(size=3), NORMAL(size=3))
    assert found.cause.text == "forward raises when `y` needs no gradient: ValueError: no y"
