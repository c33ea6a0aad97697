"""Causes found in the Jacobian: what one output element gives to one element of an argument."""

import numpy as np
import pytest
from tests.check._explain import SEEDS, evidence

import pullback as pb
from pullback.check import check_op
from pullback.check.explain import cause_of
from pullback.check.explain.contributions import _between


def linear_map(right, wrong=None, transposed=None):
    """Return ``x -> right @ x`` whose backward multiplies by the transpose of another matrix."""
    wrong = right if wrong is None else wrong

    def forward(ctx, x):
        return pb.asarray(right @ x.numpy().ravel()).reshape(transposed or (len(right),))

    @pb.once_differentiable
    def backward(ctx, grad_output):
        return {"x": pb.asarray(wrong.T @ grad_output.numpy().ravel())}

    return pb.autograd_function(forward, backward, name="linear_map")


def named(right, wrong, seed=0, shape=None):
    x = np.random.default_rng(seed).standard_normal(right.shape[1])
    return cause_of(evidence(linear_map(right, wrong, shape), x, seed=seed), 0)


def full(seed, rows=6, columns=6):
    return np.random.default_rng(seed + 10).uniform(0.5, 1.5, (rows, columns))


ROWS, COLUMNS = np.indices((6, 6))


@SEEDS
@pytest.mark.parametrize(
    ("where", "words"),
    [
        (ROWS == 5, "the last element of the output is missing"),
        (ROWS > COLUMNS, "later elements of the output should be zero"),
        (ROWS % 2 == 1, "the odd elements of the output is missing"),
        (ROWS > COLUMNS, "later elements of the output is missing"),
        (ROWS - COLUMNS == 1, "the neighbouring output element, one step later, is missing"),
        (ROWS == COLUMNS, "the output element at the same index is missing"),
    ],
    ids=lambda v: v.replace(" ", "_") if isinstance(v, str) else "",
)
def test_the_output_elements_whose_contribution_is_missing_are_named(where, words, seed):
    right = full(seed)
    if "zero" in words:
        cause = named(np.where(where, 0.0, right), right, seed)
    else:
        cause = named(right, np.where(where, 0.0, right), seed)
    assert cause.text == f"`x`: what comes from {words}"


@SEEDS
@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (lambda a: -a, "sign", "has the wrong sign"),
        (lambda a: 2 * a, "factor", "is off by the factor 2.000"),
        (lambda a: a + a**2, "elements", "is wrong"),
    ],
)
def test_how_these_contributions_are_wrong_is_said(change, name, words, seed):
    right = full(seed)
    cause = named(right, np.where(ROWS < 5, right, change(right)), seed)
    assert cause.name == name
    assert cause.text == f"`x`: what comes from the last element of the output {words}"


def test_contributions_without_a_place_in_common_are_counted():
    right = full(0)
    wrong = right.copy()
    wrong[[0, 2, 3], [1, 4, 0]] *= -1
    cause = named(right, wrong)
    assert cause.text.endswith(
        "3 of the 36 contributions of single output elements have the wrong sign"
    )


@SEEDS
def test_a_gradient_that_is_overwritten_is_distinguished_from_one_that_is_added_up(seed):
    windows = np.array([[0, 1, 2], [2, 3, 4], [3, 4, 5]])
    right = np.zeros((9, 6))
    right[np.arange(9), windows.ravel()] = full(seed).ravel()[:9]
    wrong = right.copy()
    wrong[2, 2] = wrong[4, 3] = wrong[5, 4] = 0  # a later window assigns the same element
    cause = named(right, wrong, seed)
    assert cause.name == "missing-sum"
    assert "only the last contributes; the others are missing: overwritten" in cause.text


@SEEDS
def test_exchanged_weights_of_two_neighbours_are_named(seed):
    weights = np.random.default_rng(seed).uniform(0.1, 0.4, 5)
    right, wrong = np.zeros((5, 6)), np.zeros((5, 6))
    rows = np.arange(5)
    right[rows, rows], right[rows, rows + 1] = weights, 1 - weights
    wrong[rows, rows], wrong[rows, rows + 1] = 1 - weights, weights
    cause = named(right, wrong, seed)
    assert cause.name == "misplaced"
    assert "the weights of its two neighbours are exchanged" in cause.text


@SEEDS
@pytest.mark.parametrize(
    ("order", "words"),
    [
        (lambda n: np.roll(np.arange(n), -1), "rolled by one place along axis 0"),
        (lambda n: np.arange(n)[::-1], "reversed along axis 0"),
        (lambda n: np.array([2, 0, 3, 1, 5, 4]), "that of output element [0] is used for [2]"),
    ],
)
def test_a_grad_output_in_another_order_is_named(order, words, seed):
    right = full(seed, 6, 4)
    cause = named(right, right[order(6)], seed)
    assert cause.name == "misplaced"
    assert "grad_output" in cause.text
    assert words in cause.text


@SEEDS
def test_a_transposed_grad_output_is_named_though_the_output_is_no_square(seed):
    right = full(seed, 6, 5)
    index = np.arange(6).reshape(2, 3)
    wrong = np.zeros_like(right)
    for a in range(2):
        for b in range(2):
            wrong[index[a, b]] = right[index[b, a]]
    cause = named(right, wrong, seed, (2, 3))
    assert (cause.name, "as if it were transposed" in cause.text) == ("misplaced", True)


@SEEDS
def test_sums_in_place_of_means_are_off_by_whole_numbers(seed):
    right, wrong = np.zeros((6, 6)), np.zeros((6, 6))
    for block in ([0], [1, 2], [3, 4, 5]):
        right[np.ix_(block, block)] = 1 / len(block)
        wrong[np.ix_(block, block)] = 1
    cause = named(right, wrong, seed)
    assert "a whole number of times too large (the factor 2, 3: a count left out?)" in cause.text


@SEEDS
def test_the_order_that_is_applied_again_is_distinguished_from_another_transposition(seed):
    order = np.array([2, 0, 3, 1])
    x = np.random.default_rng(seed).standard_normal(4)

    def again(ctx, x):
        return x[order]

    op = pb.autograd_function(again, lambda ctx, g: {"x": g[order]})
    cause = cause_of(evidence(op, x, seed=seed), 0)
    assert cause.name == "transposed"
    assert "inverse order (permutation)" in cause.hint


@SEEDS
def test_a_filter_that_is_not_conjugated_has_a_hint_of_it(seed):
    rng = np.random.default_rng(seed)
    transfer = np.fft.rfft(rng.standard_normal(6))

    def filtered(ctx, x):
        return pb.asarray(np.fft.irfft(np.fft.rfft(x.numpy()) * transfer, 6))

    @pb.once_differentiable
    def rule(ctx, g):
        return {"x": pb.asarray(np.fft.irfft(np.fft.rfft(g.numpy()) * transfer, 6))}

    op = pb.autograd_function(filtered, rule)
    cause = cause_of(evidence(op, rng.standard_normal(6), seed=seed), 0)
    assert cause.name == "transposed"
    assert "take the conjugate" in cause.hint


# -- by what the output elements are ---------------------------------------------------------------
def operation(forward, rule):
    def on_arrays(ctx, *args):
        ctx.args = [a.numpy() if isinstance(a, pb.Tensor) else a for a in args]
        outs = forward(*ctx.args)
        return tuple(map(pb.asarray, outs)) if isinstance(outs, tuple) else pb.asarray(outs)

    @pb.once_differentiable
    def backward(ctx, *grads):
        found = rule(*[g.numpy() for g in grads], *ctx.args)
        return tuple(map(pb.asarray, found))

    return pb.autograd_function(on_arrays, backward, name="op")


SIGNAL = np.array([0.4, -1.3, 2.1, 0.7, -0.2, 1.6, -2.2, 0.9])


def test_output_elements_are_told_by_the_values_of_an_argument_there():
    def forward(x, threshold):
        return np.where(np.abs(x) < threshold, x, threshold * (x + x**3))

    def rule(g, x, threshold):  # counts what is not compressed
        inside = np.abs(x) < threshold
        return (
            g * np.where(inside, 1.0, threshold * (1 + 3 * x**2)),
            np.sum(g * (x + x**3)),
        )

    cause = cause_of(evidence(operation(forward, rule), SIGNAL, np.array(1.0)), 1)
    assert cause.text == (
        "`args[1]`: what comes from output elements where |args[0]| < args[1] should be zero"
    )


def test_a_factor_may_be_the_index_of_the_output_element():
    times = np.arange(8)

    def forward(x, rate):
        return np.sin(x + rate * times)

    def rule(g, x, rate):
        slopes = g * np.cos(x + rate * times)
        return slopes, slopes.sum()

    cause = cause_of(evidence(operation(forward, rule), SIGNAL, np.array(0.3)), 1)
    assert cause.name == "factor"
    assert "lack a factor: the index (from 0) of the output element along axis 0" in cause.text


def test_the_only_output_that_contributes_wrongly_is_looked_at_alone():
    def forward(x, p):
        mean = p @ x
        return mean, p @ x**2 - mean**2

    def rule(g_mean, g_variance, x, p):  # takes the mean for a constant
        return (
            g_mean * p + g_variance * 2 * p * x,
            g_mean * x + g_variance * (x**2 - 2 * (p @ x) * x),
        )

    weights = np.array([0.1, 0.2, 0.05, 0.15, 0.1, 0.1, 0.2, 0.1])
    cause = cause_of(evidence(operation(forward, rule), SIGNAL, weights), 0)
    assert cause.name == "missing-term"
    assert cause.text.startswith("in what comes from output 1 alone, ")


def test_of_repeated_indices_in_each_row_only_the_last_counts():
    index = np.array([0, 2, 0, 1, 2])

    def forward(x, table):
        return x + table[index]

    def rule(g, x, table):
        grad = np.zeros_like(table)
        grad[index] = g.sum(axis=0)
        return g, grad

    x = np.random.default_rng(0).normal(size=(3, 5))
    cause = cause_of(evidence(operation(forward, rule), x, np.array([0.3, -1.2, 0.8])), 1)
    assert cause.name == "missing-sum"
    assert "only the last contributes" in cause.text


def test_places_are_found_along_each_of_three_axes():
    texts = [text for text, _ in _between((2, 2, 3), (2, 2, 3))]
    for axis in range(3):
        assert f"later indices along axis {axis}" in texts


def test_a_search_that_fails_loses_no_wrong_gradient(monkeypatch):
    def fails(evidence, wrong):
        raise IndexError("of the checker")

    monkeypatch.setattr("pullback.check.properties.first.diagnose", fails)
    op = pb.autograd_function(lambda ctx, x: x * 2.0, lambda ctx, g: {"x": g * 3.0}, name="tripled")
    report = check_op(op, np.ones(3), raise_exception=False)
    (failure,) = report.failures
    assert failure.cause.text.startswith("the gradient of `x` is wrong along a random direction")
    assert "the checker's mistake: IndexError('of the checker')" in failure.cause.hint
