"""One wrong rule for each explanation, and what is said of it."""

import numpy as np
import pytest
from tests.check._explain import evidence, op_of

import pullback as pb
from pullback.check import check_op
from pullback.check.explain import cause_of, diagnose

X = np.array([0.4, -1.3, 2.1, 0.7, -0.2, 1.6])
W = np.array([1.2, 0.7, -0.4, 0.9, 1.5, -0.8])
ROWS = np.random.default_rng(3).normal(size=(4, 5))
MASK = np.array([True, False, True, True, False, False])


def found(op, x, *args):
    return cause_of(evidence(op, pb.tensor(x, requires_grad=True), *args), 0)


TIMES = np.arange(1, 7)
COUNTS = np.array([3, 1, 4, 2])

# Forward of x, y and k; its wrong rule; further arguments; the cause, and words of its text.
CASES = {
    "one output negated": (
        lambda x, y=None, k=2.0: (np.sin(x), np.cos(x)),
        lambda g, x, y, k: g[0] * np.cos(x) + g[1] * np.sin(x),
        (X,),
        "sign",
        "has the wrong sign in what comes from output 1",
    ),
    "mean of grad_output": (
        lambda x, y=None, k=2.0: np.sin(x),
        lambda g, x, y, k: g.mean() * np.cos(x),
        (X,),
        "nonlinear",
        "sees only the mean of grad_output",
    ),
    "grad_output rolled": (
        lambda x, y=None, k=2.0: np.sin(x) * y,
        lambda g, x, y, k: np.roll(g, 1) * np.cos(x) * y,
        (X, W),
        "misplaced",
        "grad_output is used as if it were rolled by 1 along axis 0",
    ),
    "a setting ignored": (
        lambda x, y=None, k=2.0: np.exp(k * x) + x,
        lambda g, x, y, k: g * (2.0 * np.exp(2.0 * x) + 1),
        (X, None, 3.0),
        "other-value",
        "`k` is used as if it were 2.0, not 3.0",
    ),
    "a mask inverted": (
        lambda x, y=None, k=2.0: np.where(y, np.sin(x), x),
        lambda g, x, y, k: g * np.where(y, 1.0, np.cos(x)),
        (X, MASK),
        "other-value",
        "`y` is used as if it were the inverse mask",
    ),
    "formula of the output": (
        lambda x, y=None, k=2.0: np.log1p(np.exp(x)) + 1,
        lambda g, x, y, k: g * (1 - np.exp(1 - x)),
        (X,),
        "other-value",
        "the formula for the output is applied to `x` itself",
    ),
    "a factor missing": (
        lambda x, y=None, k=2.0: x * x,
        lambda g, x, y, k: g,
        (X,),
        "extra-factor",
        "the factor 2 * `x` is missing from the gradient of `x`",
    ),
    "the index left out": (
        lambda x, y=None, k=2.0: np.sin(x * TIMES),
        lambda g, x, y, k: g * np.cos(x * TIMES),
        (X,),
        "elements",
        "there it lacks the factor the index (from 1) along axis 0",
    ),
    "an end of a range": (
        lambda x, y=None, k=2.0: np.sum(x**2 * (np.arange(5) < y[:, None])),
        lambda g, x, y, k: g * 2 * x * (np.arange(5) < y[:, None] - 1),
        (ROWS, COUNTS),
        "elements",
        "where the index along axis 1 == y - 1 (off by one?); there it is zero",
    ),
    "a slope kept from an earlier call": (
        lambda x, y=None, k=2.0: np.sin(x) * x,
        lambda g, x, y, k: g * np.cos(np.cumsum(X)) * X,
        (X,),
        "state",
        "does not change when the values do",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_rule_is_explained(case):
    forward, rule, args, name, words = CASES[case]
    cause = found(op_of(forward, rule), *args)
    assert (cause.name, words in cause.text) == (name, True), cause.text


@pytest.mark.parametrize("factor", [1.005, 0.995, 1.1])
def test_a_factor_near_one_is_no_lack_of_precision(factor):
    op = op_of(lambda x, y=None, k=2.0: np.exp(x), lambda g, x, y, k: g * np.exp(x) * factor)
    assert found(op, X).name == "factor"


def test_two_numbers_have_a_ratio_but_no_factor():
    def forward(ctx, x, scale):
        ctx.save_for_backward(x=x, scale=scale)
        return (x * scale).sin().sum()

    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return {"x": g * scale * (x * scale).cos(), "scale": g * (x * scale).cos().sum()}

    op = pb.autograd_function(forward, backward, name="op")
    assert cause_of(evidence(op, X, np.array(0.7)), 1).name != "factor"


GATED = np.random.default_rng(0).uniform(0.2, 0.8, (3, 4))


# -- several arguments -----------------------------------------------------------------------------
def mixture(rule):
    """Return gate * a + (1 - gate) * b with another gradient of the gate."""

    def forward(ctx, gate, a, b):
        ctx.save_for_backward(gate=gate, a=a, b=b)
        return gate * a.cumsum(0) + (1 - gate) * b.cumsum(0)

    def backward(ctx, g):
        s = ctx.saved_variables
        back = [(g * w).flip(0).cumsum(0).flip(0) for w in (s.gate, 1 - s.gate)]
        return {"gate": rule(g, s), "a": back[0], "b": back[1]}

    return pb.autograd_function(forward, backward, name="mixture")


def test_what_a_gradient_ignores_is_named():
    cause = cause_of(evidence(mixture(lambda g, s: g * s.a.cumsum(0)), *GATED), 0)
    assert cause.name == "missing-term"
    assert "it does not change as it should with `b`" in cause.text


def test_the_term_of_a_normalising_constant_is_named():
    def forward(ctx, x, sigma):
        ctx.save_for_backward(x=x, sigma=sigma)
        return -0.5 * ((x / sigma) ** 2).sum() - len(x) * pb.log(sigma)

    def backward(ctx, g):
        x, sigma = ctx.saved_tensors
        return {"x": -g * x / sigma**2, "sigma": g * (x**2).sum() / sigma**3}

    op = pb.autograd_function(forward, backward, name="op")
    assert cause_of(evidence(op, X, np.array(1.5)), 1).text == (
        "the term -6 * grad_output / `sigma` is missing from `sigma` (or its opposite is too many)"
    )


def test_two_arguments_that_have_each_others_gradient_share_a_cause():
    op = pb.autograd_function(
        lambda ctx, x, y: 2 * x + 3 * y, lambda ctx, g: {"x": 3 * g, "y": 2 * g}
    )
    ((i, cause),) = diagnose(evidence(op, X, W), [0, 1])
    assert (i, cause.text) == (0, "the gradients of `x` and `y` are swapped")


def test_a_search_that_fails_loses_no_wrong_gradient(monkeypatch):
    def fails(evidence, wrong):
        raise IndexError("of the checker")

    monkeypatch.setattr("pullback.check.properties.first.diagnose", fails)
    op = pb.autograd_function(lambda ctx, x: x * 2.0, lambda ctx, g: {"x": g * 3.0}, name="tripled")
    report = check_op(op, np.ones(3), raise_exception=False)
    (failure,) = report.failures
    assert failure.cause.text.startswith("the gradient of `x` is wrong")
    assert "the checker's mistake: IndexError('of the checker')" in failure.cause.hint


def test_a_vague_cause_comes_after_a_sure_one_from_which_it_may_follow():
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return pb.sin(x * y).sum() + y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return {"x": g.sum() * y * pb.exp(x), "y": -g - g.sum() * x * pb.cos(x * y)}

    op = pb.autograd_function(forward, backward)
    report = check_op(op, X, W, raise_exception=False, repair=False)
    assert [(f.argument, f.cause.vague) for f in report.failures] == [("y", False), ("x", True)]
    assert report.failures[1].cause.hint == "it may follow from what is said first"
