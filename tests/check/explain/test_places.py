"""Elements exchanged, running sums from the wrong end, ends of ranges, simple factors and terms."""

import numpy as np
import pytest
from tests.check._explain import evidence

import pullback as pb
from pullback.check.explain import cause_of
from pullback.check.explain.relations import swapped

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


# -- ends of ranges --------------------------------------------------------------------------------
LENGTHS = np.array([3, 1, 4, 2, 5])
ROWS = np.random.default_rng(3).normal(size=(5, 6))


def squares_of_the_first(x, counts):
    return np.sum(x**2 * (np.arange(x.shape[1]) < counts[:, None]))


def test_an_end_of_a_range_left_out_is_an_index_off_by_one():
    def forward(ctx, x, counts):
        ctx.save_for_backward(x=x, counts=counts)
        return pb.asarray(squares_of_the_first(x.numpy(), counts))

    @pb.once_differentiable
    def backward(ctx, g):
        x, counts = ctx.saved_variables.x.numpy(), ctx.saved_variables.counts
        return {"x": pb.asarray(g.item() * 2 * x * (np.arange(6) < counts[:, None] - 1))}

    op = pb.autograd_function(forward, backward, name="op")
    found = cause_of(evidence(op, ROWS, LENGTHS), 0)
    assert found.name == "elements"
    assert found.text.endswith("; there it is zero; off by one?")


def test_a_target_that_is_left_out_is_where_the_index_equals_it():
    def forward(ctx, x, targets):
        ctx.save_for_backward(x=x, targets=targets)
        return pb.asarray(np.log(np.exp(x.numpy()).sum(1)) - x.numpy()[np.arange(5), targets])

    @pb.once_differentiable
    def backward(ctx, g):
        e = np.exp(ctx.saved_variables.x.numpy())
        return {"x": pb.asarray(g.numpy()[:, None] * e / e.sum(1, keepdims=True))}

    op = pb.autograd_function(forward, backward, name="op")
    found = cause_of(evidence(op, ROWS, LENGTHS), 0)
    assert "all where the index along axis 1 == targets" in found.text


# -- terms -----------------------------------------------------------------------------------------
def test_the_term_of_a_normalising_constant_is_named():
    def forward(ctx, x, sigma):
        ctx.save_for_backward(x=x, sigma=sigma)
        return -0.5 * ((x / sigma) ** 2).sum() - len(x) * pb.log(sigma)

    def backward(ctx, g):
        x, sigma = ctx.saved_tensors
        return {"x": -g * x / sigma**2, "sigma": g * (x**2).sum() / sigma**3}

    op = pb.autograd_function(forward, backward, name="op")
    found = cause_of(evidence(op, X, np.array(1.5)), 1)
    assert found.name == "missing-term"
    assert found.text == (
        "the term -6 * grad_output / `sigma` is missing from `sigma` (or its opposite is too many)"
    )


def test_two_numbers_have_a_ratio_but_no_factor():
    def forward(ctx, x, scale):
        ctx.save_for_backward(x=x, scale=scale)
        return (x * scale).sin().sum()

    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return {"x": g * scale * (x * scale).cos(), "scale": g * (x * scale).cos().sum()}

    op = pb.autograd_function(forward, backward, name="op")
    found = cause_of(evidence(op, X, np.array(0.7)), 1)
    assert "factor" not in found.text


def test_a_missing_factor_may_be_a_multiple_of_an_array():
    square = pb.autograd_function(lambda ctx, x: x * x, lambda ctx, g: {"x": g}, name="square")
    found = cause_of(evidence(square, X), 0)
    assert found.text == "the factor 2 * `x` is missing from the gradient of `x`"


@pb.once_differentiable
def swapping_backward(ctx, g):  # as if all of x were below y
    return {"x": pb.asarray(2.0 * g.numpy()), "y": pb.asarray(5.0 * g.numpy())}


def test_two_arguments_that_have_each_others_gradient_at_some_elements_are_named():
    def forward(ctx, x, y):
        low, high = np.minimum(x.numpy(), y.numpy()), np.maximum(x.numpy(), y.numpy())
        return pb.asarray(5.0 * low + 2.0 * high)

    op = pb.autograd_function(forward, swapping_backward)
    j, found = swapped(evidence(op, X, X[::-1] - 0.1), 0, [1])
    assert (j, found.name) == (1, "swapped")
    assert found.text.startswith("the gradients of `x` and `y` are swapped at 3 of 6 elements")
    assert "all where x < y" in found.text
    assert found.hint == "a rule for one order of the two is used for the other one?"


def test_gradients_that_are_wrong_at_some_elements_otherwise_are_not_swapped():
    def forward(ctx, x, y):
        low, high = np.minimum(x.numpy(), y.numpy()), np.maximum(x.numpy(), y.numpy())
        return pb.asarray(4.0 * low + 2.0 * high)

    op = pb.autograd_function(forward, swapping_backward)
    assert swapped(evidence(op, X, X[::-1] - 0.1), 0, [1]) is None
