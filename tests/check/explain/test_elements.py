"""Causes of gradients that are wrong at some elements, or not finite."""

import numpy as np
import pytest
from tests.check._explain import SEEDS, evidence, op_of, poly, poly_rule

import pullback as pb
from pullback.check.explain.elements import elements, listed, nan, precision

HIGH = 0.75


def spoiled(holds):
    """Return an operation whose gradient is three times too large where a predicate holds."""

    def rule(g, x, *others):
        return poly_rule(g, x) * np.where(holds(x, *others), 3.0, 1.0)

    return op_of(lambda x, mask, y, high, index: poly(x), rule)


def arguments():
    """Return arguments at which each predicate of the test holds at elements of its own."""
    rng = np.random.default_rng(0)
    x = 1.3 * rng.standard_normal((6, 7))
    x[1, 2] = x[4, 6] = 0
    x[0, 5], x[3, 1], x[2, 4] = 2, -1, -4.25
    x[5, 0] = x[2, 6] = HIGH
    x[3, 2] = x[3, 5]
    y = rng.standard_normal((6, 7))
    y[0, 1], y[2, 2], y[5, 3] = x[0, 1], x[2, 2], x[5, 3]
    return x, rng.random((6, 7)) < 0.4, pb.tensor(y), HIGH, np.array([4, 1, -2, 4, 1, 2, 1, 2])


def counts(x, index):
    return np.bincount(index % len(x), minlength=len(x))[:, None]


LINE, COLUMN = np.indices((6, 7))
FEATURES = {
    "x == 0": lambda x, *_: x == 0,
    "x < 0": lambda x, *_: x < 0,
    "mask is true": lambda x, mask, *_: mask,
    "mask is false": lambda x, mask, *_: ~mask,
    "x > high": lambda x, mask, y, high, index: x > high,
    "x == high": lambda x, mask, y, high, index: x == high,
    "x < y": lambda x, mask, y, *_: x < y,
    "x == y": lambda x, mask, y, *_: x == y,
    "y < 0": lambda x, mask, y, *_: y < 0,
    "the output < 0": lambda x, *_: x * x + 3 * x < 0,
    "x occurs more than once": lambda x, *_: (x[:, :, None, None] == x).sum((2, 3)) > 1,
    "x is the smallest": lambda x, *_: x == x.min(),
    "x is the largest along axis 1": lambda x, *_: x == x.max(1, keepdims=True),
    "x is a whole number": lambda x, *_: x == np.round(x),
    "the index along axis 0 is repeated in index": lambda x, m, y, h, i: counts(x, i) > 1,
    "the index along axis 0 occurs in index as a negative number": lambda x, m, y, h, i: (
        counts(x, i[i < 0]) > 0
    ),
    "the index along axis 0 does not occur in index": lambda x, m, y, h, i: counts(x, i) == 0,
    "the index along axis 1 is 1 modulo 2": lambda *_: COLUMN % 2 == 1,
    "the index along axis 1 is 1 modulo 3": lambda *_: COLUMN % 3 == 1,
    "the index along axis 1 is the last": lambda *_: COLUMN == 6,
    "the index along axis 1 is the first or the last": lambda *_: COLUMN % 6 == 0,
    "the index along axis 1 >= 4": lambda *_: COLUMN >= 4,
    "the index along axis 0 == the index along axis 1": lambda *_: LINE == COLUMN,
    "the index along axis 0 < the index along axis 1": lambda *_: LINE < COLUMN,
}


# -- the feature is found --------------------------------------------------------------------------
@pytest.mark.parametrize("text", FEATURES, ids=lambda text: text.replace(" ", "_"))
def test_the_feature_that_holds_at_the_wrong_elements_is_named(text):
    x, *others = arguments()
    plain = [o.numpy() if isinstance(o, pb.Tensor) else o for o in others]
    count = int(np.broadcast_to(FEATURES[text](x, *plain), x.shape).sum())
    assert elements(evidence(spoiled(FEATURES[text]), x, *others), 0).text == (
        f"`x` is right except at {count} of 42 elements, all where {text}; there it is off by the "
        "factor 3.000"
    )


@SEEDS
def test_a_threshold_is_named_by_a_round_number(seed):
    x = np.concatenate([np.linspace(-0.93, 0.91, 7), [1.4, -1.6]])
    x = np.random.default_rng(seed).permutation(x)
    op = op_of(poly, lambda g, x: poly_rule(g, x) * (abs(x) < 1.2))
    assert "except at 2 of 9 elements, all where |x| >= 1; there it is zero" in (
        elements(evidence(op, x, seed=seed), 0).text
    )


def test_parts_of_complex_numbers_have_signs():
    z = np.random.default_rng(0).standard_normal((5, 2)).view(complex)
    op = op_of(lambda x: x * x, lambda g, x: g * 2 * x.conj() * np.sign(x.imag))
    assert "where x.imag < 0; there it has the wrong sign" in elements(evidence(op, z), 0).text


@pytest.mark.parametrize(
    ("change", "how"),
    [
        (lambda g, x, y: 0 * g, "is zero"),
        (lambda g, x, y: -g, "has the wrong sign"),
        (lambda g, x, y: g * y, "has the factor `y` too many"),
        (lambda g, x, y: 3 * g / (1 + x**2), ""),
    ],
)
def test_it_is_said_how_the_wrong_elements_are_wrong(change, how):
    def rule(g, x, y):
        right = g * np.cos(x)
        return np.where(x < 0, change(right, x, y), right)

    op = op_of(lambda x, y: np.sin(x), rule)
    x, y = np.random.default_rng(1).standard_normal((2, 4, 5))
    text = elements(evidence(op, x, y), 0).text
    assert text.endswith(f"x < 0; there it {how}" if how else "x < 0")


def test_elements_without_a_gradient_tell_nothing():
    """Where the right gradient is 0, the wrong one may be right by accident."""

    x, y = np.random.default_rng(1).standard_normal((2, 4, 5))
    op = op_of(lambda x, y: np.maximum(x, 0) * y, lambda g, x, y: g * (x > 0) * abs(y))
    text = elements(evidence(op, pb.tensor(x, requires_grad=True), y), 0).text
    assert "all where y < 0; there it has the wrong sign" in text


@SEEDS
def test_what_fits_by_accident_is_found_out(seed):
    """All negative numbers stand in the last column, and it is their sign that matters."""
    x = np.random.default_rng(seed).uniform(0.5, 1, (4, 3))
    x[:, -1] *= -1
    by_sign = op_of(poly, lambda g, x: poly_rule(g, x) * (x > 0))
    by_place = op_of(poly, lambda g, x: poly_rule(g, x) * (np.arange(3) < 2))
    assert "all where x < 0" in elements(evidence(by_sign, x, seed=seed), 0).text
    assert "axis 1 is the last" in elements(evidence(by_place, x, seed=seed), 0).text
    # Without running it again the simpler one is named.
    assert "all where x < 0" in elements(evidence(by_place, x, seed=seed, fast=True), 0).text


@SEEDS
def test_an_index_as_long_as_an_axis_is_no_label(seed):
    """The index [2, 0, 1, 3] is no property of row 0, a label of row 0 is one."""

    def lookup_rule(g, table, index):
        out = np.zeros_like(table)
        np.add.at(out, index, g)
        return out * (np.arange(4) != 0)[:, None]

    x, index = np.random.default_rng(seed).standard_normal((4, 2)), np.array([2, 0, 1, 3])
    op = op_of(lambda x, index: x[index], lookup_rule)
    assert "axis 0 is the first; there it is zero" in elements(evidence(op, x, index), 0).text
    op = op_of(lambda x, labels: x * 1, lambda g, x, labels: g * (labels != 2)[:, None])
    assert "all where labels == 2; there it is zero" in elements(evidence(op, x, index), 0).text


@SEEDS
def test_a_threshold_may_be_one_on_a_difference(seed):
    x, y = np.random.default_rng(seed).standard_normal((2, 5, 6))
    op = op_of(lambda x, y: (x - y) ** 3, lambda g, x, y: 3 * g * (x - y) * np.minimum(x - y, 1.0))
    text = elements(evidence(op, x, y, seed=seed), 0).text
    bound = text.split("all where x - y >= ")[1].split(";")[0]
    assert float(bound) == pytest.approx(1, abs=0.4)


# -- wrong everywhere is something else ------------------------------------------------------------
@pytest.mark.parametrize(
    "rule",
    [
        lambda g, x: 3 * poly_rule(g, x),
        lambda g, x: g * np.cos(x),
        lambda g, x: np.zeros_like(x),
        lambda g, x: poly_rule(g, x)[::-1],
    ],
)
def test_a_formula_wrong_everywhere_is_not_wrong_at_elements(rule):
    e = evidence(op_of(poly, rule), np.random.default_rng(0).standard_normal((4, 3)))
    assert e.wrong[0].all()
    assert not [explain for explain in (precision, nan, elements, listed) if explain(e, 0)]


# -- NaN -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda g, x: poly_rule(g, x) * x / x, "NaN at 1 of 6 elements, all where x == 0"),
        (lambda g, x: g / (0 * x), "infinite at all 6 elements"),
        (lambda g, x: poly_rule(g, x) / (x > 2), "infinite at 4 of 6 elements, all where x <"),
        (lambda g, x: poly_rule(g, x) + 0 * np.log(x - 1), "NaN at 3 of 6 elements, all where x <"),
    ],
)
def test_gradients_that_are_not_finite_are_located(rule, text):
    cause = nan(evidence(op_of(poly, rule), np.array([0.5, 1, 3, 1.5, 2.5, 0])), 0)
    assert (cause.name, cause.text[: len(text) + 7]) == ("nan", f"`x` is {text}")
