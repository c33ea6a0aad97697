"""What is varied, or guessed, beyond what anybody means accuses no right operation."""

import numpy as np
import pytest
from tests.check._situations import checked, situation

import pullback as pb
from pullback.check import check_op

X = np.array([0.3, 1.2, 0.7, 2.1])


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


def test_lists_say_how_many_elements_there_are():
    def forward(ctx, late, edges):
        ctx.edges, time = edges, np.zeros(len(edges) + 1)
        for k, (start, minutes) in enumerate(edges):
            time[k + 1] = time[start] + minutes + late.numpy()[k]
        return pb.asarray(time)

    def backward(ctx, g):
        back, by_late = g.numpy().copy(), np.zeros(len(ctx.edges))
        for k in reversed(range(len(ctx.edges))):
            by_late[k] = back[k + 1]
            back[ctx.edges[k][0]] += back[k + 1]
        return {"late": pb.asarray(by_late)}

    late = pb.asarray(np.arange(5.0)).requires_grad_()
    edges = [(0, 3.0), (0, 2.0), (1, 4.0), (2, 1.0), (2, 2.5)]
    op = pb.autograd_function(forward, pb.once_differentiable(backward))
    assert check_op(op, late, edges).ok


def test_what_forward_uses_as_an_array_and_backward_does_not_name_is_a_constant():
    def forward(ctx, x, weights=None):
        w = np.ones(x.shape) if weights is None else weights
        ctx.slope = 2 * w / w.sum() * x.numpy()
        return pb.asarray(np.array((w / w.sum() * x.numpy() ** 2).sum()))

    def backward(ctx, g):
        return {"x": pb.asarray(g.item() * ctx.slope)}

    op = pb.autograd_function(forward, pb.once_differentiable(backward))
    report = check_op(op, raise_exception=False)
    assert not report.failures


def test_single_numbers_stay_where_all_others_get_a_thousand_times_larger():
    def forward(ctx, power, shape):
        z = np.array([0.0, 0.3, 0.6, 0.9, 14.0]) ** shape.item()
        ctx.often, ctx.slope = -np.diff(np.exp(-z)), z * np.exp(-z)
        ctx.logs = np.log(np.array([1.0, 0.3, 0.6, 0.9, 14.0]))
        ctx.power = power.numpy()
        return pb.asarray(np.array(ctx.often @ ctx.power))

    def backward(ctx, g):
        by_shape = ctx.power @ np.diff(ctx.slope * ctx.logs)  # inf * 0 for a shape of 2000
        return {"power": g * pb.asarray(ctx.often), "shape": g * by_shape}

    assert checked(forward, backward, X, np.array(2.0)).ok


def test_limits_that_rise_stay_apart_where_others_are_tied():
    def forward(ctx, x, limits):
        k = np.clip(np.searchsorted(limits, x.numpy()) - 1, 0, len(limits) - 2)
        rise = 1 / (limits[k + 1] - limits[k])
        part = (x.numpy() - limits[k]) * rise
        ctx.slope = np.where((part > 0) & (part < 1), 1.0, 0.0) * rise
        return pb.asarray(np.clip(part, 0, 1) + k)

    def backward(ctx, g):
        return {"x": g * pb.asarray(ctx.slope)}

    x = pb.asarray(np.array([0.4, 1.7, 0.9, 2.4])).requires_grad_()
    limits = np.array([0.0, 1.0, 2.6])
    assert check_op(pb.autograd_function(forward, backward), x, limits).ok


def test_a_forward_that_cancels_until_nothing_moves_tells_nothing_at_tiny_values():
    def forward(ctx, width, angle):
        ctx.r, ctx.a = np.exp(-1e-3 * width.numpy()), 1e-3 * angle.numpy()
        ctx.still = 1 - 2 * ctx.r * np.cos(ctx.a) + ctx.r**2
        return pb.asarray(np.log(ctx.still))

    def backward(ctx, g):
        by_r = 2 * (ctx.r - np.cos(ctx.a)) / ctx.still
        by_a = 2 * ctx.r * np.sin(ctx.a) / ctx.still
        return {"width": g * pb.asarray(-1e-3 * ctx.r * by_r), "angle": g * pb.asarray(1e-3 * by_a)}

    assert checked(forward, backward, 60 * X, 500 * X).ok


# ---- guesses -------------------------------------------------------------------------------------
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


def test_what_is_positive_gets_both_signs_where_forward_treats_them_differently():
    def forward(ctx, span):
        ctx.save_for_backward(span=span)
        return abs(span) + span**2

    def backward(ctx, g):
        (r,) = ctx.saved_tensors
        return {"span": g * (1 + 2 * r)}

    assert "all where span < 0" in situation(checked(forward, backward, X))


# ---- what is found -------------------------------------------------------------------------------
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


def test_none_of_what_has_a_length_is_tried_with_several():
    def forward(ctx, x, lifter=0):
        lift = 1 + np.sin(np.pi * np.arange(len(x)) / lifter) if lifter else 1.0
        return x * lift

    assert "`lifter` = 3 in place of 0" in situation(checked(forward, lambda ctx, g: {"x": g}, X))


def test_what_is_left_out_is_tried_as_a_word_that_it_is_compared_with():
    def forward(ctx, x, clause=None):
        ratio = x.mean() if clause == "full" else 1.0
        return x * ratio

    report = checked(forward, lambda ctx, g: {"x": g}, X)
    assert "`clause` given" in situation(report)


def test_what_is_left_out_is_given_with_as_many_axes_as_the_docstring_says():
    def forward(ctx, inflow, demand, pattern=None):
        """Return what is lacking; pattern: (n,), the demand's factors."""
        ctx.share = np.ones(inflow.shape) if pattern is None else np.asarray(pattern, float)
        return (demand.item() * pb.asarray(ctx.share) - inflow).sum()

    def backward(ctx, g):  # a pattern of one number would not do
        n = ctx.share.shape[0]
        return {"inflow": -g * pb.ones(n, dtype=g.dtype), "demand": g * ctx.share.sum()}

    op = pb.autograd_function(forward, backward)
    demand = pb.asarray(np.array(1.5)).requires_grad_()
    assert check_op(op, pb.asarray(X).requires_grad_(), demand).ok


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
