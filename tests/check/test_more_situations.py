"""Situations beyond the call: what is varied to find a mistake, and what must not accuse."""

import numpy as np
import pytest
from tests.check._situations import checked, is_float, situation

import pullback as pb
from pullback.check import check_op

X = np.array([0.3, 1.2, 0.7, 2.1])


# ---- what is varied ------------------------------------------------------------------------------
WAYS = {"plain": 1.0, "turned": -1.0}


def test_a_word_is_taken_from_a_table_that_forward_looks_it_up_in():
    def forward(ctx, x, way="plain"):
        return x * WAYS[way]

    assert "`way` = 'turned'" in situation(checked(forward, lambda ctx, g: {"x": g}, X))


def test_a_number_that_forward_refuses_is_followed_by_one_closer_to_the_default():
    def forward(ctx, x, spacing=1.0):
        if not 0.7 < spacing < 1.3:
            raise ValueError("the spacing does not fit")
        return x / spacing

    assert "`spacing` = 0.85" in situation(checked(forward, lambda ctx, g: {"x": g}, X))


def test_a_length_that_is_left_out_is_made_longer_than_the_arrays():
    def forward(ctx, x, n_fft=None):
        ctx.n = n_fft or len(x)
        if ctx.n < len(x):
            raise ValueError("too short")
        return pb.asarray(np.abs(np.fft.fft(x.numpy(), ctx.n)) ** 2), pb.asarray(x.numpy().copy())

    def backward(ctx, g, h):
        return {"x": h}

    report = checked(forward, backward, X)
    assert report.outcome == "wrong"


def test_a_periodic_function_is_tried_beyond_its_period():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.asarray(((x.numpy() + 180.0) % 360.0 - 180.0) ** 2)

    def backward(ctx, g):
        return {"x": 2.0 * g * ctx.saved_variables.x}

    assert "x.numpy() + 180.0" in situation(checked(forward, backward, X))


def test_rows_of_a_table_of_indices_get_one_in_common():
    def forward(ctx, x, pairs):
        values = x.numpy().copy()
        for a, b in pairs:
            values[a] = values[a] * values[b]
        ctx.save_for_backward(x=x)
        ctx.pairs = pairs
        return pb.asarray(values)

    def backward(ctx, g):  # right if no pair changes what a later one reads
        x, flow = ctx.saved_variables.x.numpy(), g.numpy().copy()
        for a, b in ctx.pairs:
            flow[b] += flow[a] * x[a]
            flow[a] *= x[b]
        return {"x": pb.asarray(flow)}

    report = checked(forward, backward, X, np.array([[0, 1], [3, 2]]))
    assert "other values of `pairs`" in situation(report)


def test_a_zero_is_put_among_values_of_both_signs():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x.numpy(), y=y.numpy())
        return pb.asarray(x.numpy() * np.sinc(y.numpy()))

    def backward(ctx, g):  # 0 / 0, though there is a derivative
        (x, y), g = ctx.saved_variables, g.numpy()
        with np.errstate(invalid="ignore"):
            by_y = x * (np.cos(np.pi * y) - np.sinc(y)) / y
        return {"x": pb.asarray(g * np.sinc(y)), "y": pb.asarray(g * by_y)}

    text = situation(checked(forward, backward, X - 1.0, X[::-1] - 1.0))
    assert "`y` is NaN at 1 of 4 elements" in text
    assert "with a zero in `y`" in text


# ---- mistakes of several kinds -------------------------------------------------------------------
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


# ---- what must not accuse ------------------------------------------------------------------------
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


@pytest.mark.parametrize("name", ["counts", "observed"])
def test_a_guess_takes_data_without_a_gradient_for_constants(name):
    forward = eval(f"lambda ctx, rate, {name}: _poisson(ctx, rate, {name})", globals())

    def backward(ctx, g):
        rate, found = ctx.saved_tensors
        return {"rate": pb.sum_to_size(g * (1 - found / rate), rate.shape)}

    op = pb.autograd_function(forward, backward, name="poisson")
    assert check_op(op, raise_exception=False).outcome == "right"


def _poisson(ctx, rate, found):
    ctx.save_for_backward(rate=rate, found=pb.asarray(found) if is_float(found) else found)
    if not (np.asarray(rate.detach()) > 0).all():
        raise ValueError("rate must be positive")
    return rate - found * pb.log(rate)
