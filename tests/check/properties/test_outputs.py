"""The part that differentiates each output alone."""

import numpy as np
import pytest
from tests.check._parts import X, check, only_failure, op, writeable_memory

import pullback as pb
from pullback.check.exceptions import InapplicableError
from pullback.check.properties.outputs import check_outputs


def sincos(backward, materialize):
    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    return op(forward, backward)


def test_one_output_has_no_others():
    with pytest.raises(InapplicableError, match="one differentiable output"):
        check(check_outputs, pb.sin, X)


def test_a_backward_that_cannot_take_none_is_found():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * x.cos() - h * x.sin()

    assert check(check_outputs, sincos(backward, True), X).ok
    name, text = only_failure(check_outputs, sincos(backward, False), X)
    assert name == "zero-grad"
    assert text.startswith("backward raises when only output 0 of 2 has a gradient, the others")


def test_a_backward_that_takes_none_for_something_else_is_found():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        h = 1.0 if h is None else h
        g = 1.0 if g is None else g
        return g * x.cos() - h * x.sin()

    name, text = only_failure(check_outputs, sincos(backward, False), X)
    assert name == "zero-grad"
    assert (
        "`x` depends on whether the others are left out or zero "
        "when only output 0 of 2 has a gradient" in text
    )


def test_a_backward_that_looks_at_one_output_when_both_have_gradients_is_found():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        if g.any() and h.any():
            return g * x.cos()
        return g * x.cos() - h * x.sin()

    name, text = only_failure(check_outputs, sincos(backward, True), X)
    assert name == "output-ignored"
    assert "`x` is not the sum of those through each output alone" in text


def test_one_array_for_two_output_gradients_is_tried():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        first = g * x.cos()
        if np.shares_memory(writeable_memory(g), writeable_memory(h)):
            return first
        return first - h * x.sin()

    name, text = only_failure(check_outputs, sincos(backward, True), X)
    assert name == "mutation"
    assert "`x` is wrong when outputs 0 and 1 have the same tensor as their gradient" in text
