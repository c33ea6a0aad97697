"""Causes of gradients that are wrong at some elements, or not finite."""

import numpy as np
import pytest
from tests.check._explain import SEEDS, evidence, poly, poly_rule, with_rule

import pullback as pb
from pullback.check.explain import features
from pullback.check.explain.elements import elements as by_values
from pullback.check.explain.elements import listed, nan, positions, precision
from pullback.check.explain.features import explanation

HIGH = 0.75


def elements(e, i):
    """Return the cause found by a predicate over values or over indices."""
    return by_values(e, i) or positions(e, i)


ELEMENTS = (nan, elements, listed)


def spoiled(holds, change=3.0):
    """Return an operation whose gradient is multiplied by a number where a predicate holds."""

    def rule(g, x, mask, y, high, index):
        there = np.broadcast_to(holds(x, mask, y, high, index), x.shape)
        return poly_rule(g, x) * np.where(there, change, 1)

    value, backward = with_rule(poly, rule)

    def forward(ctx, x, mask, y, high, index):
        return value(ctx, x, mask, y, high, index)

    return pb.autograd_function(forward, backward, name="spoiled")


def arguments(seed):
    """Return arguments at which each predicate of the test holds at elements of its own."""
    rng = np.random.default_rng(seed)
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


def column(x):
    return np.arange(x.shape[1])


def line(x):
    return np.arange(x.shape[0])[:, None]


VALUES = {
    "x == 0": lambda x, mask, y, high, index: x == 0,
    "x < 0": lambda x, mask, y, high, index: x < 0,
    "mask is true": lambda x, mask, y, high, index: mask,
    "mask is false": lambda x, mask, y, high, index: ~mask,
    "x > high": lambda x, mask, y, high, index: x > high,
    "x == high": lambda x, mask, y, high, index: x == high,
    "x < y": lambda x, mask, y, high, index: x < y,
    "x == y": lambda x, mask, y, high, index: x == y,
    "y < 0": lambda x, mask, y, high, index: y < 0,
    "the output < 0": lambda x, mask, y, high, index: x * x + 3 * x < 0,
    "x occurs more than once along axis 1": lambda x, mask, y, high, index: (
        (x[:, :, None] == x[:, None, :]).sum(2) > 1
    ),
    "x is the smallest": lambda x, mask, y, high, index: x == x.min(),
    "x is a whole number": lambda x, mask, y, high, index: x == np.round(x),
    "the index along axis 0 is repeated in index": lambda x, mask, y, high, index: (
        counts(x, index) > 1
    ),
    "the index along axis 0 occurs in index as a negative number": (
        lambda x, mask, y, high, index: counts(x, index[index < 0]) > 0
    ),
    "the index along axis 0 does not occur in index": lambda x, mask, y, high, index: (
        counts(x, index) == 0
    ),
}

PLACES = {
    "the index along axis 1 is odd": lambda x, *_: column(x) % 2 == 1,
    "the index along axis 1 is 1 modulo 3": lambda x, *_: column(x) % 3 == 1,
    "the index along axis 1 is the last": lambda x, *_: column(x) == 6,
    "the index along axis 1 is at least 4": lambda x, *_: column(x) >= 4,
    "the index along axis 0 == the index along axis 1 (the diagonal)": lambda x, *_: (
        line(x) == column(x)
    ),
    "the index along axis 0 < the index along axis 1 (the diagonal)": lambda x, *_: (
        line(x) < column(x)
    ),
    "the element is at the border": lambda x, *_: (line(x) % 5 == 0) | (column(x) % 6 == 0),
}


def name(text):
    return text.replace(" ", "_")


# -- the predicate is found ------------------------------------------------------------------------
@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("text", [*VALUES, *PLACES], ids=name)
def test_the_feature_that_holds_at_the_wrong_elements_is_named(text, seed):
    holds = {**VALUES, **PLACES}[text]
    x, *others = arguments(seed)
    e = evidence(spoiled(holds), x, *others, seed=seed)
    plain = [o.numpy() if isinstance(o, pb.Tensor) else o for o in others]
    count = int(np.broadcast_to(holds(x, *plain), x.shape).sum())
    assert elements(e, 0).text == (
        f"`x` is right except at {count} of 42 elements, all where {text}; there it is off by the "
        "factor 3.000"
    )


@SEEDS
def test_a_threshold_is_named_by_a_round_number(seed):
    x = np.concatenate([np.linspace(-0.93, 0.91, 7), [1.4, -1.6]])
    x = np.random.default_rng(seed).permutation(x)
    op = pb.autograd_function(*with_rule(poly, lambda g, x: poly_rule(g, x) * (abs(x) < 1.2)))
    assert "except at 2 of 9 elements, all where |x| > 1; there it is zero" in (
        elements(evidence(op, x, seed=seed), 0).text
    )


def test_parts_of_complex_numbers_have_signs():
    z = np.random.default_rng(0).standard_normal((5, 2)).view(complex)
    wrong = with_rule(lambda z: z * z, lambda g, z: g * 2 * z.conj() * np.sign(z.imag))
    text = elements(evidence(pb.autograd_function(*wrong), z), 0).text
    assert "all where x.imag < 0; there it has the wrong sign" in text


def test_repeated_indices_are_counted_line_by_line():
    def forward(ctx, x, index):
        ctx.args = x.shape, index.numpy()
        return x.gather(1, index) * 2

    @pb.once_differentiable
    def backward(ctx, grad):
        shape, index = ctx.args
        out = np.zeros(shape)
        np.put_along_axis(out, index, 2 * grad.numpy(), 1)  # the last of the repeated wins
        return pb.asarray(out), None

    index = np.array([[0, 1, 1], [2, 3, 0], [3, 3, 3]])
    x = np.random.default_rng(0).standard_normal((3, 4))
    text = elements(evidence(pb.autograd_function(forward, backward), x, index), 0).text
    assert "2 of 12 elements, all where the index along axis 1 is repeated in index" in text


def test_elements_without_a_gradient_tell_nothing():
    """Where the right gradient is 0, the wrong one may be right by accident."""

    def forward(ctx, x, y):
        ctx.args = x.numpy(), y.numpy()
        return x.clamp(min=0.0) * y

    @pb.once_differentiable
    def backward(ctx, grad):
        x, y = ctx.args
        return pb.asarray(grad.numpy() * (x > 0) * abs(y)), pb.asarray(grad.numpy() * x * (x > 0))

    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    e = evidence(pb.autograd_function(forward, backward), x, y)
    assert "all where y < 0; there it has the wrong sign" in elements(e, 0).text
    assert elements(e, 1) is None


def test_without_a_predicate_the_elements_are_listed():
    indices = ([0, 2, 3, 3, 4], [1, 2, 0, 5, 3])

    def rule(g, x):
        grad = poly_rule(g, x)
        grad[indices] = 1.5
        return grad

    x = np.random.default_rng(0).standard_normal((5, 6))
    e = evidence(pb.autograd_function(*with_rule(poly, rule)), x)
    assert elements(e, 0) is None
    assert listed(e, 0).text == (
        "`x` is right except at 5 of 30 elements: [0, 1], [2, 2], [3, 0], [3, 5], ..."
    )


def test_a_large_argument_is_measured_at_some_elements():
    x = np.random.default_rng(0).standard_normal((40, 50))
    op = with_rule(poly, lambda g, x: poly_rule(g, x) * (np.arange(50) < 45))
    text = elements(evidence(pb.autograd_function(*op), x), 0).text
    assert " elements measured, all where the index along axis 1 is at least 4" in text
    assert text.endswith("; there it is zero")


@SEEDS
def test_what_fits_by_accident_is_found_out(seed):
    """All negative numbers stand in the last column, and it is their sign that matters."""
    x = np.random.default_rng(seed).uniform(0.5, 1, (4, 3))
    x[:, -1] *= -1
    by_sign = pb.autograd_function(*with_rule(poly, lambda g, x: poly_rule(g, x) * (x > 0)))
    by_place = pb.autograd_function(
        *with_rule(poly, lambda g, x: poly_rule(g, x) * (np.arange(3) < 2))
    )
    assert "all where x < 0" in elements(evidence(by_sign, x, seed=seed), 0).text
    assert "axis 1 is the last" in elements(evidence(by_place, x, seed=seed), 0).text
    # Without running it again the simpler one is named.
    assert "all where x < 0" in elements(evidence(by_place, x, seed=seed, fast=True), 0).text


def two_arguments(value, rule):
    """Return an operation of two arrays; the rule gives the first's gradient."""

    def forward(ctx, x, other):
        ctx.args = x.numpy(), other.numpy()
        return value(x, other)

    @pb.once_differentiable
    def backward(ctx, grad):
        return pb.asarray(rule(grad.numpy(), *ctx.args)), None

    return pb.autograd_function(forward, backward)


@SEEDS
def test_an_index_as_long_as_an_axis_is_no_label(seed):
    """The index [2, 0, 1, 3] is no property of row 0, a label of row 0 is one."""

    def lookup_rule(g, table, index):
        out = np.zeros_like(table)
        np.add.at(out, index, g)
        return out * (np.arange(4) != 0)[:, None]

    def labelled_rule(g, x, labels):
        return g * (labels != 2)[:, None]

    x, index = np.random.default_rng(seed).standard_normal((4, 2)), np.array([2, 0, 1, 3])
    op = two_arguments(lambda x, index: x[index], lookup_rule)
    assert "axis 0 is the first; there it is zero" in elements(evidence(op, x, index), 0).text
    op = two_arguments(lambda x, labels: x * 1, labelled_rule)
    assert "all where other == 2; there it is zero" in elements(evidence(op, x, index), 0).text


@SEEDS
def test_a_threshold_may_be_one_on_a_difference(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((5, 6)), rng.standard_normal((5, 6))
    op = two_arguments(lambda x, y: (x - y) ** 3, lambda g, x, y: 3 * g * (x - y) * abs(x - y))
    assert "all where x < other; there it has the wrong sign" in (
        elements(evidence(op, x, y, seed=seed), 0).text
    )
    op = two_arguments(
        lambda x, y: (x - y) ** 3, lambda g, x, y: 3 * g * (x - y) * np.minimum(x - y, 1.0)
    )
    text = elements(evidence(op, x, y, seed=seed), 0).text
    assert float(text.split("all where x - other > ")[1]) == pytest.approx(1, abs=0.4)


# -- wrong everywhere is something else ------------------------------------------------------------
@SEEDS
@pytest.mark.parametrize(
    "rule",
    [
        lambda g, x: 3 * poly_rule(g, x),
        lambda g, x: g * np.cos(x),
        lambda g, x: g * (2 * x + 2.5),
        lambda g, x: -poly_rule(g, x),
        lambda g, x: np.zeros_like(x),
        lambda g, x: poly_rule(g, x)[::-1],
    ],
)
def test_a_formula_wrong_everywhere_is_not_wrong_at_elements(rule, seed):
    x = np.random.default_rng(seed).standard_normal((4, 3))
    e = evidence(pb.autograd_function(*with_rule(poly, rule)), x, seed=seed)
    assert e.wrong[0].all()
    assert not [h for h in (precision, *ELEMENTS) if h(e, 0)]


# -- NaN -------------------------------------------------------------------------------------------
@SEEDS
def test_nan_is_located(seed):
    x = np.random.default_rng(seed).standard_normal((4, 3))
    x[1, 1] = x[2, 0] = 0
    op = pb.autograd_function(*with_rule(poly, lambda g, x: poly_rule(g, x) * x / x))
    cause = nan(evidence(op, x, seed=seed), 0)
    assert (cause.name, cause.text) == ("nan", "`x` is NaN at 2 of 12 elements, all where x == 0")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda g, x: g / (0 * x), "`x` is infinite at all 5 elements"),
        (lambda g, x: g / np.maximum(x - 2, 0), "`x` is infinite at 2 of 5 elements, all where x"),
        (lambda g, x: np.log(x - 1), "`x` is NaN or infinite at 2 of 5 elements, all where x < "),
    ],
)
def test_infinite_gradients_are_distinguished_from_nan(rule, text):
    e = evidence(pb.autograd_function(*with_rule(poly, rule)), np.array([0.5, 1, 3, 1.5, 2.5]))
    if "all 5" not in text and "NaN" not in text:
        text = text.replace("2 of", "3 of")
    assert nan(e, 0).text.startswith(text)


# -- no cause for a right gradient -----------------------------------------------------------------
@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("fn", [pb.exp, pb.sum, poly, lambda x: x @ x.mT])
def test_a_right_gradient_has_no_cause(fn, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, 3))
    if dtype.startswith("complex"):
        x = x + 1j * rng.uniform(0.2, 0.6, x.shape)
    e = evidence(fn, x.astype(dtype), seed=seed)
    assert [h(e, 0) for h in (precision, *ELEMENTS)] == [None] * 4


def counted(calls):
    """Return evidence on a rule that is wrong where x < 0, and counts the calls of forward."""

    def forward(ctx, x):
        calls.append(x)
        ctx.save_for_backward(x=x)
        return 3.0 * abs(x)

    def backward(ctx, g):
        return {"x": 3.0 * g}

    x = np.random.default_rng(0).standard_normal((3, 4))
    return evidence(pb.autograd_function(forward, backward), x)


def wrong_of(e, i):
    return e.wrong[i]


def test_a_search_for_a_pattern_without_time_left_makes_no_further_calls(monkeypatch):
    calls = []
    e = counted(calls)
    assert e.wrong[0].any()
    before = len(calls)
    monkeypatch.setattr(features, "_SECONDS", 0.0)
    assert explanation(e, 0, wrong_of)
    assert len(calls) == before
