"""What another call than the user's shows, and what must not accuse there."""

import numpy as np
import pytest
from tests.check._situations import checked, situation

import pullback as pb
from pullback.check import check_op

X = np.array([0.3, 1.2, 0.7, 2.1])


# -- what is found ---------------------------------------------------------------------------------
def test_what_is_positive_gets_both_signs_where_forward_treats_them_differently():
    def forward(ctx, span):
        ctx.save_for_backward(span=span)
        return abs(span) + span**2

    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return {"span": g * (1 + 2 * r)}

    assert "all where span < 0" in situation(checked(forward, backward, X))


def test_what_one_argument_equals_another_is_tried_where_forward_compares_them():
    def forward(ctx, ka, ke):
        ctx.same = abs(ka.item() - ke.item()) < 1e-8
        ctx.ka, ctx.ke = ka.item(), ke.item()
        if ctx.same:
            return pb.asarray(np.array(ctx.ka * np.exp(-ctx.ka)))
        return pb.asarray(np.array(_between(ctx.ka, ctx.ke)))

    def backward(ctx, g):
        if ctx.same:
            return {"ka": g * np.exp(-ctx.ka), "ke": 0 * g}
        h = 1e-5
        by_ka = _between(ctx.ka + h, ctx.ke) - _between(ctx.ka - h, ctx.ke)
        by_ke = _between(ctx.ka, ctx.ke + h) - _between(ctx.ka, ctx.ke - h)
        return {"ka": g * by_ka / (2 * h), "ke": g * by_ke / (2 * h)}

    report = checked(forward, backward, np.array(1.3), np.array(0.4))
    assert "a row of another argument in" in report.failures[-1].situation


def _between(ka, ke):
    return ka * (np.exp(-ke) - np.exp(-ka)) / (ka - ke)


def test_a_sum_of_samples_is_as_exact_at_other_samples():
    def forward(ctx, rate, hours):
        ctx.hours = hours
        return pb.asarray(np.array(np.trapezoid(rate.numpy(), hours)))

    def backward(ctx, g):  # of samples that are as far apart as the first two
        weights = np.full(len(ctx.hours), ctx.hours[1] - ctx.hours[0])
        weights[[0, -1]] /= 2
        return {"rate": pb.asarray(g.item() * weights)}

    op = pb.autograd_function(forward, pb.once_differentiable(backward))
    rate = pb.asarray(np.append(X, [1.7, 0.4])).requires_grad_()
    report = check_op(op, rate, np.arange(6) * 1.5, raise_exception=False)
    assert [failure.argument for failure in report.failures] == ["rate"]
    assert "other values of `hours`" in str(report)


def test_a_mistake_at_another_setting_is_told_beside_that_of_a_dtype():
    def forward(ctx, x, power=2):
        ctx.save_for_backward(x=x)
        return x**power

    def backward(ctx, g):
        x = ctx.saved_variables.x
        if x.dtype == pb.float32:
            raise TypeError("no float32")
        return {"x": 2.0 * g * x}

    first, second = checked(forward, backward, X).failures
    assert "backward raises in float32 alone" in str(first)
    assert "(with `power` = 3 in place of 2)" in str(second)


def test_a_size_is_not_blamed_for_the_values_that_it_brings():
    def forward(ctx, x):
        return pb.asarray(np.maximum(x.numpy(), 1.0))

    def backward(ctx, g):  # new rows of another size are a little smaller, and below 1
        return {"x": g}

    (failure,) = checked(forward, backward, np.array([1.001, 1.002, 1.0005])).failures
    assert failure.part == "first"
    assert "it should be zero" in str(failure)


# -- what must not accuse --------------------------------------------------------------------------
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def read_loss(ctx, logits, labels, blank=0):
    """Return -log of the labels' shares and of the blank's, which is none of them."""
    p = softmax(logits.numpy())
    count = np.bincount(labels, minlength=p.size).astype(float)
    count[blank] = 1.0
    ctx.residual = (1 + len(labels)) * p - count
    return pb.asarray(np.array(-np.log(p[[*labels, blank]]).sum()))


def test_a_number_that_stands_apart_from_the_labels_stays_apart():
    logits = pb.asarray(np.array([0.3, -0.2, 1.1, 0.4])).requires_grad_()
    backward = pb.once_differentiable(
        lambda ctx, g: {"logits": pb.asarray(g.item() * ctx.residual)}
    )
    assert check_op(pb.autograd_function(read_loss, backward), logits, [1, 3]).ok


def test_a_zero_that_nobody_gave_makes_no_nan_of_a_right_guess():
    def forward(ctx, gap, pull):
        ctx.save_for_backward(gap=gap, pull=pull)
        return gap**2 / (1 + gap**2) * pull

    def backward(ctx, g):
        d, v = ctx.saved_tensors
        share = d**2 / (1 + d**2)
        return {"gap": g * v * share * 2 / d / (1 + d**2), "pull": g * share}

    report = check_op(pb.autograd_function(forward, backward), raise_exception=False)
    assert not report.failures


def decayed(ctx, duration):
    """Return the mean of exp(-u) from 0 to the duration u, which is positive."""
    ctx.u = duration.numpy()
    return pb.asarray(-np.expm1(-ctx.u) / ctx.u)


@pb.once_differentiable
def decayed_backward(ctx, g):
    small = ctx.u < 1e-3  # as if no number were less than 0
    u = np.where(small, 1.0, ctx.u)
    exact = ((1 + u) * np.exp(-u) - 1) / u**2
    return {"duration": g * pb.asarray(np.where(small, -0.5 + ctx.u / 3, exact))}


@pytest.mark.parametrize("given", [("duration: (n,) positive",), (np.array([0.7, 2.1, 0.4, 1.3]),)])
def test_what_is_positive_stays_so(given):
    op = pb.autograd_function(decayed, decayed_backward)
    report = check_op(op, *given, raise_exception=False)
    assert not report.failures


def test_small_outputs_whose_terms_cancel_are_rounded_as_their_terms():
    def forward(ctx, x, sharpness):
        ctx.save_for_backward(x=x, sharpness=sharpness)
        s = sharpness.item()
        return pb.asarray(np.array(np.log(np.exp(s * x.numpy()).mean()) / s))

    def backward(ctx, g):
        x, s = ctx.saved_variables.x.numpy(), ctx.saved_variables.sharpness.item()
        grown = np.exp(s * x)
        share = grown / grown.sum()
        value = np.log(grown.mean()) / s
        by_s = ((share @ x) - value) / s if abs(s) > 1e-4 else np.var(x) / 2
        return {"x": pb.asarray(g.numpy() * share), "sharpness": g * by_s}

    assert checked(forward, backward, X, np.array(1.5)).outcome == "right"


def test_an_output_that_rounding_keeps_still_has_no_slope_of_zero():
    def forward(ctx, x):
        ctx.mean = np.cos(x.numpy()).prod()
        ctx.save_for_backward(x=x)
        return pb.asarray(np.array(ctx.mean)), pb.asarray(np.array(1 - ctx.mean * ctx.mean))

    def backward(ctx, g, h):
        slope = -ctx.mean * np.tan(ctx.saved_variables.x.numpy())
        return {"x": pb.asarray((g.item() - 2 * ctx.mean * h.item()) * slope)}

    assert checked(forward, backward, X).outcome == "right"


def test_saved_steps_need_no_second_derivative():
    def forward(ctx, x, width):
        ctx.turns = np.floor(x.numpy() / width.numpy())
        return pb.asarray(x.numpy() - width.numpy() * ctx.turns)

    def backward(ctx, g):
        return {"x": g, "width": (-g * pb.asarray(ctx.turns)).sum()}

    report = check_op(pb.autograd_function(forward, backward), 3 * X, np.array(0.8))
    assert report.outcome == "right"
    assert any(note.startswith("second derivative: not available") for note in report.notes)


def test_equal_arguments_beyond_what_forward_reaches_are_no_matter_of_ties():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        return pb.asarray(np.minimum(x.numpy() / y.numpy() ** 2, 1e4))

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return {"x": g / y**2, "y": -2 * g * x / y**3}

    op = pb.autograd_function(forward, backward)
    report = check_op(op, np.array([1e-6]), np.array([2.0]), only=["aliases"])
    assert not report.failures


def test_coordinates_may_be_three():
    def forward(ctx, points, metric):
        ctx.save_for_backward(points=points, metric=metric)
        return pb.asarray(np.einsum("ni,ij,nj->n", points.numpy(), metric.numpy(), points.numpy()))

    def backward(ctx, g):
        p, m = (v.numpy() for v in ctx.saved_tensors)
        by_points, flow = np.zeros((len(p), 3)), g.numpy()[:, None]
        by_points += flow * (p @ (m + m.T))
        return {"points": pb.asarray(by_points), "metric": pb.asarray((flow * p).T @ p)}

    points = np.arange(12.0).reshape(4, 3) / 7 + 0.1
    report = checked(forward, backward, points, np.diag([1.0, 2.0, 3.0]) + 0.1)
    assert report.outcome == "right"


def test_constant_probabilities_of_other_sizes_have_a_sum_of_one():
    def forward(ctx, x, moves):
        rest = 1.5 - moves.sum(axis=1)
        if (rest < 0).any():
            ctx.moves = moves * np.nan_to_num(rest)[:, None]
        else:
            ctx.moves = moves
        return pb.asarray(moves @ x.numpy())

    def backward(ctx, g):
        return {"x": pb.asarray(ctx.moves.T @ g.numpy())}

    moves = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])
    x = pb.tensor(X[:3], requires_grad=True)
    op = pb.autograd_function(forward, pb.once_differentiable(backward))
    assert check_op(op, x, moves, only=["shapes"]).outcome == "right"
