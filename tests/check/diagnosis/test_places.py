"""Gradients of a few elements exchanged, running sums from the wrong end, simple factors."""

import numpy as np
import pytest
from tests.check._diagnosis import evidence

import pullback as pb
from pullback.check.diagnosis import cause_of

X = np.array([0.4, -1.3, 2.1, 0.7, -0.2, 1.6])


def cause(forward, rule, *args):
    def on_arrays(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.asarray(forward(x.numpy()))

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": pb.asarray(rule(g.numpy(), ctx.saved_variables.x.numpy()))}

    op = pb.autograd_function(on_arrays, backward, name="op")
    return cause_of(evidence(op, *args), 0)


def quantile(x):
    a, b = np.sort(x)[2:4]
    return 0.3 * a + 0.7 * b


def exchanged_weights(g, x):
    order, grad = np.argsort(x), np.zeros_like(x)
    grad[order[2]], grad[order[3]] = 0.7 * g, 0.3 * g
    return grad


def test_two_elements_that_have_each_others_gradient_are_named():
    found = cause(quantile, exchanged_weights, X)
    assert found.name == "misplaced"
    assert found.text == (
        "the gradients of two elements of `x`, [0] and [3], are exchanged: the weights of two "
        "neighbours?"
    )


@pytest.mark.parametrize(
    ("forward", "rule", "end"),
    [
        (lambda x: np.sum(np.cumsum(x) ** 3), lambda s: np.cumsum(s), "first"),
        (
            lambda x: np.sum(np.cumsum(x[::-1])[::-1] ** 3),
            lambda s: np.cumsum(s[::-1])[::-1],
            "last",
        ),
    ],
)
def test_a_running_sum_from_the_wrong_end_is_named(forward, rule, end):
    def slopes(x):
        sums = np.cumsum(x) if end == "first" else np.cumsum(x[::-1])[::-1]
        return 3 * sums**2

    found = cause(forward, lambda g, x: g * rule(slopes(x)), X)
    assert found.name == "misplaced"
    assert f"a running sum (cumsum) starts from the {end} element" in found.text
    assert "the wrong end" in found.text


def window_mean(x):
    return np.array([x[max(0, k - 2) : k + 1].mean() for k in range(len(x))])


def by_whole_windows(g, x):
    grad = np.zeros_like(x)
    for k in range(len(x)):
        grad[max(0, k - 2) : k + 1] += g[k] / 3
    return grad


def test_a_count_that_is_not_the_one_of_forward_leaves_simple_factors():
    found = cause(window_mean, by_whole_windows, X)
    assert "off by a simple factor (1/3, 2/3): another count or size is meant?" in found.text
