"""The part that checks that backward is linear in grad_output."""

import numpy as np
import pytest
from tests.check._parts import X, check, only_failure, op

import pullback as pb
from pullback.check.properties.linear import check_linear


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda g: g * g, "it is multiplied by it twice"),
        (lambda g: g.sign(), "its size does not count"),
        (lambda g: g.abs(), "only its absolute value counts"),
        (lambda g: g.clamp(-2.0, 2.0), "2 times that does not give 2 times the gradient"),
        (lambda g: g.clamp(-100.0, 100.0), "(a bound, an eps?)"),
        (lambda g: g * (g.abs() > 0.01), "(a bound, an eps?)"),
        (lambda g: g + 1e-9, "a term is not multiplied by grad_output"),
        (lambda g: g.abs().max() * g.sign(), "that of a sum is not the sum"),
    ],
)
def test_a_backward_that_is_not_linear_is_found(rule, words):
    name, text = only_failure(check_linear, op(lambda ctx, x: x * 1, lambda ctx, g: rule(g)), X)
    assert name == "nonlinear"
    assert "`x` is not linear in grad_output" in text
    assert words in text


def test_a_backward_that_divides_by_grad_output_is_found():
    def backward(ctx, g):
        return g * (g / g)

    name, text = only_failure(check_linear, op(lambda ctx, x: x * 1, backward), X)
    assert name == "zero-grad"
    assert "where that is zero, it is NaN" in text


def test_a_backward_that_raises_for_zero_is_found():
    def backward(ctx, g):
        if not g.any():
            raise ValueError("no gradient")
        return g

    name, text = only_failure(check_linear, op(lambda ctx, x: x * 1, backward), X)
    assert name == "zero-grad"
    assert text == "backward raises when grad_output is zero: ValueError: no gradient"


def test_infinite_derivatives_and_tiny_and_huge_values_are_linear_enough():
    for array in (np.array([0.0, 1.0]), np.array([1e-200, 1e200]), np.zeros((0, 2)), np.array(2.0)):
        assert check(check_linear, pb.sqrt, array).ok
    assert check(check_linear, lambda x: x.softmax(0), np.array([1e3, 0.0, 1e3 + 1], np.float32)).ok
    assert check(check_linear, pb.exp, np.array([1.0, -3.0], np.float16)).ok
