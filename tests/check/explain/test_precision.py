"""Causes of gradients that are right to a few digits only."""

import numpy as np
import pytest
from tests.check._explain import SEEDS, evidence, with_rule

import pullback as pb
from pullback.check.explain.precision import PRECISION, cancellation, few_digits, single


def narrowed_argument(g, x):
    return g * np.exp(x.astype(np.float32))


def narrowed_gradient(g, x):
    return g.astype(np.float32) * np.exp(x)


def narrowed_result(g, x):
    return (g * np.exp(x)).astype(np.float32).astype(np.float64)


@SEEDS
@pytest.mark.parametrize("rule", [narrowed_argument, narrowed_gradient, narrowed_result])
def test_float32_in_backward_is_seen(rule, seed):
    x = np.random.default_rng(seed).standard_normal((4, 3))
    e = evidence(pb.autograd_function(*with_rule(pb.exp, rule)), x, seed=seed)
    cause = single(e, 0)
    assert cause.name == "precision"
    assert "e-8 only" in cause.text or "e-7 only" in cause.text
    assert "float32" in cause.text


@SEEDS
@pytest.mark.parametrize(
    "rule",
    [
        lambda g, x: g * (np.exp(x + 0.02) - np.exp(x - 0.02)) / 0.04,
        lambda g, x: g * np.exp(x) / (1 + 1e-4 * x),
        lambda g, x: g * np.exp(x.astype(np.float16)),
    ],
)
def test_a_few_digits_are_distinguished_from_a_wrong_formula(rule, seed):
    x = np.random.default_rng(seed).standard_normal((4, 3))
    e = evidence(pb.autograd_function(*with_rule(pb.exp, rule)), x, seed=seed)
    assert few_digits(e, 0).name == "precision"


@pytest.mark.parametrize("factor", [1.005, 0.995, 1.1])
def test_a_factor_near_one_is_no_lack_of_precision(factor):
    x = np.random.default_rng(0).standard_normal((4, 3))
    op = pb.autograd_function(*with_rule(pb.exp, lambda g, x: g * np.exp(x) * factor))
    assert not [h for h in PRECISION if h(evidence(op, x), 0)]


def one_pass_variance(g, x):
    n = x.dtype.type(x.size)
    return g * 2 * (x - x.sum() / n) / np.sqrt(np.abs((x * x).sum() / n - (x.sum() / n) ** 2))


def standard_deviation(x):
    return ((x - x.mean()) ** 2).mean().sqrt() * 2 * x.numel()


@SEEDS
def test_cancellation_is_distinguished_from_a_wrong_formula(seed):
    x = (1000 + np.random.default_rng(seed).standard_normal(8)).astype(np.float32)
    op = pb.autograd_function(*with_rule(standard_deviation, one_pass_variance))
    e = evidence(op, x, seed=seed)
    assert e.wrong[0].any()
    text = cancellation(e, 0).text
    assert text.startswith("`x`: float32 cancellation, not a formula error: off by ")
    wrong = pb.autograd_function(
        *with_rule(standard_deviation, lambda g, x: 2 * one_pass_variance(g, x))
    )
    assert cancellation(evidence(wrong, x, seed=seed), 0) is None
