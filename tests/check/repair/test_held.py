"""The part of forward through which a gradient is wrong, and how it is wrong there."""

import importlib

import numpy as np
import pytest
from tests.check._situations import checked

import pullback as pb
from pullback.check import repair

held = importlib.import_module("pullback.check.repair.held")  # the package has a function so named
X = np.array([0.3, 1.2, 0.7, 0.4, 0.9])


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch):
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(held, "_SECONDS", 60.0)
    monkeypatch.setattr(repair, "repairs", lambda evidence, wrong: [])


def hint(forward, backward, *args, **kwargs):
    """Return the hint of the only mistake."""
    (failure,) = checked(forward, backward, *args, **kwargs).failures
    return failure.repair


def place(said, text):
    """Return a hint that what depends on x through an expression, alone on its line, is wrong."""
    return (
        f"what depends on `x` through one expression {said}\n"
        f"line {{}} of forward: `{text}`; all else is right"
    )


# ---- how it is wrong -----------------------------------------------------------------------------
def scaled(ctx, x, rate=1.7):
    scale = np.exp(x.numpy().mean())
    ctx.save_for_backward(x=x.numpy(), scale=scale)
    ctx.rate = rate
    return pb.asarray(np.sin(x.numpy()) * scale * rate)


LINE = scaled.__code__.co_firstlineno + 1  # of the scale


def through_scale(times):
    """Return a rule with so many times what depends on x through the scale."""

    def backward(ctx, g):
        (x, scale), g = ctx.saved_variables, g.numpy() * ctx.rate
        through = (g @ np.sin(x)) * scale / x.size
        return {"x": pb.asarray(g * np.cos(x) * scale + times(ctx.rate) * through)}

    return backward


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (lambda rate: 0.0, "is left out, as if it were constant"),
        (lambda rate: -1.0, "has the wrong sign"),
        (lambda rate: 2.0, "counts twice"),
        (lambda rate: 0.5, "counts half"),
        (lambda rate: 3.0, "is 3 times what it should be"),
        (lambda rate: rate, "is `rate` times what it should be"),
        (lambda rate: 1 / rate, "lacks the factor `rate`"),
    ],
)
def test_what_is_wrong_about_the_part_is_said(times, said):
    found = hint(scaled, through_scale(times), X)
    assert found == place(said, "scale").format(LINE)


def test_a_part_that_is_wrong_by_no_one_factor_is_not_named():
    def backward(ctx, g):
        (x, scale), g = ctx.saved_variables, g.numpy() * ctx.rate
        return {"x": pb.asarray(g * np.cos(x) * scale + 0.3 * g.sum())}

    report = checked(scaled, backward, X)
    assert report.outcome == "wrong"
    assert "through one expression" not in str(report)


# ---- where it is ---------------------------------------------------------------------------------
def test_an_expression_is_quoted_with_what_stands_around_it():
    def forward(ctx, x):
        ctx.save_for_backward(x=x.numpy())
        return pb.asarray(np.sin(x.numpy()) * x.numpy().mean())

    def backward(ctx, g):
        (x,) = ctx.saved_variables
        return {"x": pb.asarray(g.numpy() * np.cos(x) * x.mean())}

    found = hint(forward, backward, X)
    assert "`x.numpy().mean()` in `np.sin(x.numpy()) * x.numpy().mean()`; all else" in found


def totals(ctx, x):
    sold = np.cumsum(x.numpy())
    ctx.save_for_backward(sold=sold)
    return pb.asarray(np.array((sold**2).sum()))


def pulling(spoil):
    """Return the rule of the totals with something wrong about what they pull."""

    def backward(ctx, g):
        pull = spoil(2 * g.numpy() * ctx.saved_variables.sold)
        return {"x": pb.asarray(np.cumsum(pull[::-1])[::-1])}

    return backward


@pytest.mark.parametrize(
    ("spoil", "said", "text"),
    [
        (lambda pull: pull * [1, 1, 1, 1, 0], "is left out, as if it were constant", "sold[-1]"),
        (lambda pull: pull * [0, 1, 1, 1, 1], "is left out, as if it were constant", "sold[0]"),
        (lambda pull: pull * [1, -1, 1, -1, 1], "has the wrong sign", "sold[1::2]"),
        (lambda pull: pull * [2, 2, 2, 2, 1], "counts twice", "sold[:-1]"),
    ],
)
def test_a_part_of_an_array_is_told_from_the_rest(spoil, said, text):
    line = totals.__code__.co_firstlineno + 1
    assert hint(totals, pulling(spoil), X) == place(said, text).format(line)


def test_the_last_of_every_row_is_told_from_the_rest():
    def forward(ctx, x):
        total = np.cumsum(x.numpy(), axis=1)
        ctx.save_for_backward(total=total)
        return pb.asarray(total**2)

    def backward(ctx, g):
        pull = 2 * g.numpy() * ctx.saved_variables.total
        pull[:, -1] = 0.0
        return {"x": pb.asarray(np.cumsum(pull[:, ::-1], axis=1)[:, ::-1])}

    rows = np.array([[0.3, 1.2, 0.7], [0.4, 0.9, 0.5]])
    assert "`total[..., -1]`; all else is right" in hint(forward, backward, rows)


def test_of_each_argument_its_own_part_is_named():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x.numpy(), y=y.numpy())
        first = x.numpy().mean()
        second = np.exp(y.numpy()).sum()
        return pb.asarray(first * x.numpy() + second * np.sin(y.numpy()))

    def backward(ctx, g):
        (x, y), g = ctx.saved_variables, g.numpy()
        by_x = x.mean() * g - (g @ x) / x.size
        return {"x": pb.asarray(by_x), "y": pb.asarray(np.exp(y).sum() * np.cos(y) * g)}

    report = checked(forward, backward, X, X[::-1] + 0.1)
    by_argument = {failure.argument: failure.repair for failure in report.failures}
    assert "has the wrong sign" in by_argument["x"]
    assert "`first`" in by_argument["x"]
    assert "is left out" in by_argument["y"]
    assert "`second`" in by_argument["y"]


# ---- what is not blamed --------------------------------------------------------------------------
def test_a_number_is_in_proportion_to_anything():
    def forward(ctx, x):
        ctx.save_for_backward(x=x.numpy())
        return pb.asarray(np.sin(x.numpy()) * np.exp(x.numpy()))

    def backward(ctx, g):
        (x,) = ctx.saved_variables
        return {"x": pb.asarray(g.numpy() * (np.sin(x) + 1.3 * np.cos(x)) * np.exp(x))}

    report = checked(forward, backward, np.array(0.7))
    assert report.outcome == "wrong"
    assert "times what it should be" not in str(report)
