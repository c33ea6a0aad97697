"""Causes that take another call to see: other settings, simpler inputs, other values and sizes."""

import numpy as np
import pytest
from tests.check._explain import SEEDS, evidence

import pullback as pb
from pullback.check import check_op
from pullback.check.explain import cause_of


def with_arrays(forward, backward, name="op"):
    """Return an operation by functions of arrays; ``backward(g, *args)`` gives ``x``'s gradient."""
    op = pb.autograd_function(_saving(forward), _rule(backward), name=name)
    return op


def _saving(forward):
    def saved(ctx, x, other=None, k=2.0):
        ctx.args = (x.numpy().copy(), None if other is None else np.asarray(other), k)
        return pb.asarray(forward(*ctx.args))

    return saved


def _rule(backward):
    @pb.once_differentiable
    def rule(ctx, g):
        return {"x": pb.asarray(backward(g.numpy(), *ctx.args))}

    return rule


def found(op, x, *args, seed=0):
    asked = pb.tensor(x, requires_grad=True)
    return cause_of(evidence(op, asked, *args, seed=seed), 0)


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


# -- the gradient of another call ------------------------------------------------------------------
@SEEDS
@pytest.mark.parametrize(("k", "used"), [(3.0, 2.0), (2.0, 1.0), (0.3, 0.7), (2.0, 0.0)])
def test_a_setting_that_backward_takes_for_another_is_named(k, used, seed):
    op = with_arrays(
        lambda x, other, k: np.exp(k * x) + x,
        lambda g, x, other, k: g * (used * np.exp(used * x) + 1),
    )
    cause = found(op, numbers(seed, 4), None, k, seed=seed)
    assert (cause.name, cause.text) == (
        "other-value",
        f"`x`: the gradient is that with `k` = {used}, not {k}",
    )


@SEEDS
def test_an_inverted_mask_is_named(seed):
    mask = np.array([True, False, True, True, False, False])
    op = with_arrays(
        lambda x, mask, k: np.where(mask, np.sin(x), x),
        lambda g, x, mask, k: g * np.where(mask, 1.0, np.cos(x)),
    )
    cause = found(op, numbers(seed, 6), mask, seed=seed)
    assert cause.text == "`x`: `other` is used as if it were the inverse mask"


@SEEDS
def test_weights_that_are_left_out_are_named(seed):
    op = with_arrays(lambda x, w, k: np.cumsum(w * x), lambda g, x, w, k: np.cumsum(g[::-1])[::-1])
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, 5)
    cause = found(op, numbers(seed, 5), weights, seed=seed)
    assert cause.name in ("extra-factor", "other-value")
    assert "`other`" in cause.text


@SEEDS
def test_a_derivative_taken_at_the_output_is_named(seed):
    op = with_arrays(lambda x, other, k: np.sinh(x), lambda g, x, other, k: g * np.cosh(np.sinh(x)))
    cause = found(op, numbers(seed, 5), seed=seed)
    assert cause.text == "`x`: the derivative is taken at the output instead of `x`"


@SEEDS
def test_a_formula_of_the_output_that_is_given_the_input_is_named(seed):
    op = with_arrays(
        lambda x, other, k: np.log1p(np.exp(x)) + 1, lambda g, x, other, k: g * (1 - np.exp(1 - x))
    )
    cause = found(op, numbers(seed, 5), seed=seed)
    assert cause.text == "`x`: the formula for the output is applied to `x` itself"


# -- simpler inputs --------------------------------------------------------------------------------
@SEEDS
def test_a_rule_for_symmetric_matrices_is_right_if_the_matrix_is_symmetric(seed):
    op = with_arrays(
        lambda x, a, k: a @ (a @ x) + x**2, lambda g, x, a, k: a.T @ (a @ g) + 2 * x * g
    )
    cause = found(op, numbers(seed, 4), numbers(seed + 5, 4, 4), seed=seed)
    assert cause.text.endswith("it is right if `other` is symmetric")


@SEEDS
def test_a_rule_for_one_setting_is_right_with_that_setting(seed):
    op = with_arrays(
        lambda x, other, k: np.abs(x) ** k + np.cumsum(x),
        lambda g, x, other, k: g * 2 * x + np.cumsum(g[::-1])[::-1],
    )
    cause = found(op, numbers(seed, 5), None, 2.7, seed=seed)
    assert "`k`" in cause.text
    assert "2.0, not 2.7" in cause.text


# -- identities ------------------------------------------------------------------------------------
def log_softmax(x, other, k):
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


@SEEDS
def test_a_normalisation_that_is_taken_for_a_constant_breaks_the_invariance_to_shifts(seed):
    op = with_arrays(
        lambda x, other, k: log_softmax(x, other, k)[:, :3] ** 2,
        lambda g, x, other, k: (
            np.pad(2 * g * log_softmax(x, other, k)[:, :3], ((0, 0), (0, 1))) * np.cos(x)
        ),
    )
    cause = found(op, numbers(seed, 3, 4), seed=seed)
    assert cause.name == "missing-term"
    assert "do not change when all columns of `x` are moved alike" in cause.text


@SEEDS
def test_a_norm_that_is_taken_for_a_constant_breaks_the_invariance_to_scales(seed):
    def forward(x, other, k):
        return np.tanh(x / np.linalg.norm(x)) @ np.arange(20.0).reshape(5, 4)

    def backward(g, x, other, k):
        norm = np.linalg.norm(x)
        return np.arange(20.0).reshape(5, 4) @ g * (1 - np.tanh(x / norm) ** 2) / norm

    cause = found(with_arrays(forward, backward), numbers(seed, 5), seed=seed)
    assert cause.name == "missing-term"
    assert "do not change when `x` is scaled" in cause.text


@SEEDS
@pytest.mark.parametrize(
    ("rule", "name", "words"),
    [
        (lambda a, x: a @ x, "missing-term", "along `x` itself there is half of it"),
        (lambda a, x: 2 * a @ x, "missing-term", "it is right if `other` is symmetric"),
    ],
)
def test_half_of_a_quadratic_form_is_distinguished_from_a_transposed_half(rule, name, words, seed):
    op = with_arrays(lambda x, a, k: np.array([x @ a @ x]), lambda g, x, a, k: g * rule(a, x))
    cause = found(op, numbers(seed, 4), numbers(seed + 7, 4, 4), seed=seed)
    assert cause.name == name
    assert words in cause.text


@SEEDS
def test_the_factors_of_a_product_that_are_exchanged_are_named(seed):
    op = with_arrays(lambda x, w, k: x @ w, lambda g, x, w, k: w.T @ g)
    cause = found(op, numbers(seed, 3, 3), numbers(seed + 7, 3, 3), seed=seed)
    assert cause.text == "`x`: the factors of a matrix product are exchanged (left and right)"


@SEEDS
def test_two_arguments_that_backward_takes_for_each_other_are_named(seed):
    left, right = numbers(seed + 1, 3, 3), numbers(seed + 2, 3, 3)

    @pb.autograd_function
    def between(ctx, x, left, right):
        ctx.save_for_backward(left=left, right=right)
        return left @ x @ right

    @between.backward
    def _(ctx, g):
        s = ctx.saved_variables
        return {"x": s.right.T @ g @ s.left.T}

    x = pb.tensor(numbers(seed, 3, 3), requires_grad=True)
    cause = cause_of(evidence(between, x, pb.tensor(left), pb.tensor(right), seed=seed), 0)
    assert cause.text == "`x`: `left` and `right` are used as if they were exchanged"


@SEEDS
def test_an_eps_that_backward_leaves_out_is_named(seed):
    @pb.autograd_function
    def unit(ctx, x, eps=1e-4):
        ctx.save_for_backward(x=x)
        return x / ((x * x).mean() + eps).sqrt()

    @unit.backward
    def _(ctx, g):
        x = ctx.saved_variables.x
        rms = (x * x).mean().sqrt()
        return {"x": g / rms - x * (g * x).mean() / rms**3}

    cause = found(unit, numbers(seed, 5), seed=seed)
    assert cause.text == "`x`: the gradient is that with `eps` = 0.0, not 0.0001"


@SEEDS
def test_a_slope_of_an_earlier_call_is_named(seed):
    kept = {}

    def backward(g, x, other, k):
        return g * kept.setdefault(x.shape, np.cos(np.cumsum(x)) + x)

    op = with_arrays(lambda x, other, k: np.sin(x) * x, backward)
    op(pb.tensor([0.1, 0.2, 0.3, 0.4, 0.5], requires_grad=True)).sum().backward()
    cause = found(op, numbers(seed, 5), seed=seed)
    assert cause.name == "state"
    assert "does not change when the values do" in cause.text


# -- sizes -----------------------------------------------------------------------------------------
@SEEDS
def test_a_rule_that_is_wrong_for_odd_lengths_says_so(seed):
    op = with_arrays(
        lambda x, other, k: np.fft.fftshift(x) ** 2,
        lambda g, x, other, k: np.fft.fftshift(2 * g * np.fft.fftshift(x)),
    )
    report = check_op(op, pb.tensor(numbers(seed, 6), requires_grad=True), raise_exception=False)
    assert report.failures[0].cause.name == "size"
    assert "right for even lengths and wrong for odd ones" in str(report)


@SEEDS
def test_a_rule_that_is_right_for_sorted_values_says_so_at_another_size(seed):
    op = with_arrays(lambda x, other, k: np.sort(x) ** 2, lambda g, x, other, k: 2 * g * np.sort(x))
    x = np.sort(numbers(seed, 5))
    report = check_op(op, pb.tensor(x, requires_grad=True), raise_exception=False)
    assert report.failures[0].cause.name == "size"
    assert "it is right if `x` is sorted" in str(report)


@SEEDS
def test_a_rule_for_the_first_entry_of_a_batch_alone_says_so(seed):
    def first_only(g, x, other, k):
        out = np.zeros_like(x)
        out[0] = 3 * x[0] ** 2 * g[0]
        return out

    op = with_arrays(lambda x, other, k: x**3, first_only)
    cause = found(op, numbers(seed, 3, 4), seed=seed)
    assert cause.text.endswith("only the first entry of the batch along axis 0 gets a gradient")
