"""What another call than the user's shows, and what must not accuse there."""

import numpy as np
import pytest
from tests.check._parts import of_saved, op, saving

import pullback as pb
from pullback.check import check_op

X = np.array([0.3, 1.2, 0.7, 2.1])


def checked(fn, *args, **options):
    """Return the report on an operation; of its arguments floating arrays require grad."""
    tensors = [
        pb.tensor(a, requires_grad=True) if isinstance(a, np.ndarray) and a.dtype == float else a
        for a in args
    ]
    return check_op(fn, *tensors, raise_exception=False, **options)


def of_all_saved(forward, rule):
    """Return an operation whose rule gets the arguments that are no tensors as well."""
    return op(saving(forward), lambda ctx, g: rule(g, *ctx.saved_variables), once=True)


# -- what is found ---------------------------------------------------------------------------------
WRONG = {
    "both signs of what is positive": (
        of_saved(lambda span: abs(span) + span**2, lambda g, span: g * (1 + 2 * span)),
        (X,),
        "all where span < 0",
    ),
    "one argument equal to another": (
        of_saved(
            lambda a, b: (a - b) ** 3 + a,
            lambda g, a, b: (3 * g * (a - b) ** 2 + g * (a != b), -3 * g * (a - b) ** 2),
        ),
        (X, X + 0.7),
        "all where a == b",
    ),
    "another limit and values between the two": (
        op(
            lambda ctx, x, limit=1.0: (ctx.save_for_backward(x=x), pb.clip(x, None, limit))[1],
            lambda ctx, g: g * (ctx.saved_variables.x < 1.0),
        ),
        (X,),
        "`limit`",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_rule_that_is_wrong_in_another_situation_is_found(what):
    fn, args, words = WRONG[what]
    report = checked(fn, *args, repair=False)
    assert report.outcome == "wrong"
    assert any(words in str(failure) for failure in report.failures)


def test_a_mistake_at_another_setting_is_told_beside_that_of_a_dtype():
    def backward(ctx, g):
        x = ctx.saved_variables.x
        if x.dtype == pb.float32:
            raise TypeError("no float32")
        return {"x": 2.0 * g * x}

    power = op(lambda ctx, x, power=2: (ctx.save_for_backward(x=x), x**power)[1], backward)
    first, second = checked(power, X).failures
    assert "backward raises in float32 alone" in str(first)
    assert "(with `power` = 3 in place of 2)" in str(second)


def test_a_size_is_not_blamed_for_the_values_that_it_brings():
    at_least_one = op(lambda ctx, x: pb.clip(x, 1.0), lambda ctx, g: g)
    (failure,) = checked(at_least_one, np.array([1.001, 1.002, 1.0005])).failures
    assert failure.part == "first"
    assert "it should be zero" in str(failure)


# -- what must not accuse --------------------------------------------------------------------------
def log_or_zero(x, y):
    """Return x * log(y), 0 where x is 0: y may be anything there."""
    with np.errstate(all="ignore"):
        return pb.where(x == 0, 0.0, x * pb.log(y))


def read(logits, labels, blank=0):
    """Return -log of the labels' shares and of the blank's, which is none of them."""
    return -pb.log(pb.softmax(logits, -1))[[*labels, blank]].sum()


def read_rule(g, logits, labels, blank=0):
    count = np.bincount(labels, minlength=len(logits)).astype(float)
    count[blank] = 1.0
    return g * ((1 + len(labels)) * pb.softmax(logits, -1) - count), None, None


def decay_rule(g, u):
    """Return the gradient of the mean of exp(-u) from 0 to u, as if no number were negative."""
    small = u < 1e-3
    v = pb.where(small, 1.0, u)
    return g * pb.where(small, u / 3 - 0.5, ((1 + v) * pb.exp(-v) - 1) / v**2)


def soft_mean(x, s):
    return pb.log(pb.exp(s * x).mean()) / s


def soft_mean_rule(g, x, s):
    share = pb.softmax(s * x, -1)
    by_s = ((share * x).sum() - soft_mean(x, s)) / s if abs(s) > 1e-4 else x.var(correction=0) / 2
    return g * share, g * by_s


def similarity(x):
    mean = pb.cos(x).prod()
    return mean, 1 - mean * mean


def similarity_rule(g, h, x):
    mean = pb.cos(x).prod()
    return (2 * mean * h - g) * mean * pb.tan(x)


RIGHT = {
    "beyond the domain that a guard hides": (
        of_saved(log_or_zero, lambda g, x, y: (g * pb.log(y), g * x / y)),
        (np.array([0.5, 1.2, 0.0]), np.array([2.0, 1.5, 0.7])),
    ),
    "a number that stands apart from labels": (of_all_saved(read, read_rule), (X, [1, 3])),
    "a zero in a guess": (
        of_saved(
            lambda gap, pull: gap**2 / (1 + gap**2) * pull,
            lambda g, d, v: (2 * g * v * d**2 / d / (1 + d**2) ** 2, g * d**2 / (1 + d**2)),
        ),
        (),
    ),
    "what is positive": (of_saved(lambda u: -pb.expm1(-u) / u, decay_rule), (X,)),
    "what is described as positive": (
        of_saved(lambda u: -pb.expm1(-u) / u, decay_rule),
        ("u: (n,) positive",),
    ),
    "small outputs whose terms cancel": (of_saved(soft_mean, soft_mean_rule), (X, np.array(1.5))),
    "an output that rounding keeps still": (of_saved(similarity, similarity_rule), (X,)),
    "equal arguments beyond what forward reaches": (
        of_saved(
            lambda x, y: pb.clip(x / y**2, None, 1e4), lambda g, x, y: (g / y**2, -2 * g * x / y**3)
        ),
        (np.array([1e-6]), np.array([2.0])),
    ),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_right_for_what_it_is_meant_for_is_not_accused(what):
    fn, args = RIGHT[what]
    report = checked(fn, *args)
    assert not report.failures, str(report)


def test_a_sorted_grid_that_is_not_differentiated_stays_sorted():
    def forward(ctx, x, grid):
        assert (np.diff(grid.numpy()) >= 0).all()
        ctx.save_for_backward(x=x)
        return x * x + grid[0]

    square = op(forward, lambda ctx, g: {"x": 2 * ctx.saved_variables.x * g})
    assert checked(square, X, pb.arange(4.0)).outcome == "right"


# -- loops that would not end ----------------------------------------------------------------------
def test_no_change_of_the_source_or_of_a_setting_is_tried_without_end():
    def forward(ctx, x, duration=1.0, dt=0.25):
        c, path, time = x.numpy(), [], 0.0
        while duration - time > 1e-9:
            h = min(dt, duration - time)
            path.append(c)
            c = c - h * c * c
            time += h
        ctx.path, ctx.dt = path, dt
        return pb.asarray(c.copy())

    def backward(ctx, g):
        adjoint = g.numpy()
        for c in reversed(ctx.path):
            adjoint = adjoint * (1 - ctx.dt * c)
        return {"x": pb.asarray(adjoint)}

    assert checked(op(forward, backward, once=True), X).outcome == "wrong"


def test_a_forward_that_never_ends_in_float32_is_stopped_there():
    def forward(ctx, x):
        a = root = np.abs(x.numpy()) + 1.0
        while np.abs(root * root - a).max() > 1e-12:
            root = (root + a / root) / 2
        ctx.save_for_backward(sign=np.sign(x.numpy()), root=root)
        return pb.asarray(root)

    def backward(ctx, g):
        s = ctx.saved_variables
        return {"x": pb.asarray(g.numpy() * s.sign / s.root / 2)}

    report = checked(op(forward, backward, once=True), X)
    assert report.outcome == "right"
    assert "forward does not end in float32: it waits for what never holds there" in report.notes


def test_whole_numbers_that_no_call_varies_are_named():
    def banded(x, widths):
        if widths != (1, 1):
            raise ValueError("three rows are one on each side")
        return x * 3.0

    op = of_all_saved(banded, lambda g, x, widths: 3.0 * g)
    assert checked(op, X, (1, 1)).notes == [
        "`widths` had one value in all calls: pass others as well"
    ]
