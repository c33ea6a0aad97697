"""Calls with other settings and values than the user's, which show what these hide."""

import enum
from typing import Literal

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import Inputs
from pullback.check.inputs.variations import variations
from pullback.check.naming import parameters_of

X = np.array([[0.4, -1.3, 2.1], [1.7, 0.2, -0.6]])


def found(fn, *args, **kwargs):
    return [v.what for v in variations(fn, parameters_of(fn), Inputs(args, kwargs))]


def operation(forward, rule):
    return pb.autograd_function(forward, rule, name="tried")


def test_settings_that_keep_their_default_are_varied():
    def fn(x, axis=-1, keepdims=False, scale=2.0, tol=1e-6, reduction="mean"):
        out = x.sum(axis, keepdim=keepdims) * scale + tol
        return out.mean() if reduction == "mean" else out.sum() if reduction == "sum" else out

    assert found(fn, X)[:8] == [
        "`axis` = 1 in place of -1",
        "`axis` = 0 in place of -1",
        "`axis` = -2 in place of -1",
        "`keepdims` = True in place of False",
        "`scale` = 3.0 in place of 2.0",
        "`reduction` = 'sum' in place of 'mean'",
        "`reduction` = 'none' in place of 'mean'",
        "whole numbers in place of the values",
    ]


@pytest.mark.parametrize("passed", [((5.0,), {}), ((), {"scale": 5.0})])
def test_settings_that_were_passed_are_varied_too(passed):
    def fn(x, scale=2.0):
        return x * scale

    args, kwargs = passed
    assert found(fn, X, *args, **kwargs)[0] == "`scale` = 7.5 in place of 5.0"


def test_a_number_that_is_the_length_of_an_axis_stays():
    assert "`n` = 3 in place of 2" not in found(lambda x, n: x.sum(0) * n, X, 2)


def test_a_number_that_is_a_length_by_chance_does_not():
    assert "`stride` = 3 in place of 2" in found(lambda x, stride: x.sum(0) * stride, X, 2)


class Kind(enum.Enum):
    ADD, MULTIPLY = 1, 2


def with_settings(
    x,
    order=(0, 1),
    kind=Kind.ADD,
    mode: Literal["near", "far"] = "near",
    how="sum",
    bias=None,
    index=None,
    n_iter=50,
):
    """Return what depends on all of these but the last."""
    y = x.permute(order) * (2.0 if kind is Kind.ADD else 3.0) + (1.0 if mode == "near" else 2.0)
    y = y if how == "sum" else y.exp() if how == "stretched" else None
    y = y if bias is None else y * bias
    return y if index is None else y[index]


def test_every_kind_of_setting_is_varied():
    assert found(with_settings, X)[:7] == [
        "`order` = (1, 0) in place of (0, 1)",
        f"`kind` = {Kind.MULTIPLY!r} in place of {Kind.ADD!r}",
        "`mode` = 'far' in place of 'near'",
        "`how` = 'stretched' in place of 'sum'",
        "`bias` given",
        "`index` given",
        "whole numbers in place of the values",
    ]


def test_an_array_that_may_be_left_out_is():
    def fn(x, bias=None):
        return x if bias is None else x + bias

    assert "`bias` left out" in found(fn, X, X)


def test_an_axis_is_counted_from_the_other_end_as_well():
    assert found(lambda x, axis: x.cumsum(axis), X, 1)[0] == "`axis` = -1 in place of 1"


def arrays(what, x, **settings):
    calls = variations(lambda x, **settings: x * 1.0, None, Inputs((x,), settings))
    return next(v.inputs.args[0].tolist() for v in calls if v.what == what)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("values of both signs", [-1.5, 3.0, -2.0, 0.25]),
        ("a zero among the values", [1.5, 3.0, 0.0, 0.25]),
        ("ties: the two largest values equal", [1.5, 3.0, 3.0, 0.25]),
        ("ties: the two smallest values equal", [0.25, 3.0, 2.0, 0.25]),
        ("ties: all values equal", [1.5, 1.5, 1.5, 1.5]),
        ("values around `low` = -1", [-1.1875, 0.3125, -0.6875, -2.4375]),
    ],
)
def test_values_are_varied(what, expected):
    assert arrays(what, np.array([1.5, 3.0, 2.0, 0.25]), low=-1.0) == expected


def test_values_that_have_bounds_keep_them():
    inputs = Inputs((np.array([1.5, 3.0, 2.0]),), {}, bounded=frozenset({"x"}))
    calls = variations(lambda x: x * 1.0, parameters_of(lambda x: x), inputs)
    arrays = [v.inputs.args[0] for v in calls]
    assert len(arrays) > 3
    assert all(a.min() >= 1.5 and a.max() <= 3.0 for a in arrays)


def test_variations_that_forward_refuses_are_left_out():
    def fn(x, scale=2.0):
        if scale != 2.0 or not np.array_equal(x.numpy(), X):
            raise ValueError("no")
        return x * scale

    assert found(fn, X) == []


def calls_of(fn, x):
    return [v.inputs.args[0] for v in variations(fn, None, Inputs((x,), {}))]


def test_arrays_with_a_structure_keep_it():
    for p in calls_of(lambda a: a * a, np.array([0.3, 0.5, 0.2])):
        assert np.isclose(p.sum(), 1.0)
        assert (p >= 0).all()
    for a in calls_of(lambda a: a * a, np.array([-1.0, 0.5, 2.0, 2.5])):
        assert (np.diff(a) >= 0).all()


def test_a_symmetric_matrix_is_tried_without_symmetry():
    calls = found(lambda a: a * a, np.array([[2.0, 1.0], [1.0, 3.0]]))
    assert calls[0] == "matrices that are not symmetric"
    assert set(calls[1:]) == {"other values of `a`"}


def test_values_that_are_positive_stay_so():
    (first, *_) = variations(lambda x: x.log(), None, Inputs((np.array([0.1, 2.7]),), {}))
    assert first.inputs.args[0].tolist() == [1.0, 4.0]


WRONG = {
    "for another axis": (
        lambda ctx, x, axis=-1: (ctx.save_for_backward(x=x, axis=axis), x.cumsum(axis))[1],
        lambda ctx, g: {"x": g.flip(-1).cumsum(-1).flip(-1)},
        (X,),
        "with `axis` = 0 in place of -1",
    ),
    "for another factor": (
        lambda ctx, x, gain=1.0: x * gain,
        lambda ctx, g: {"x": g},
        (X,),
        "with `gain` = 0.35 in place of 1.0",
    ),
    "at 0": (
        lambda ctx, x: (ctx.save_for_backward(x=x), x.prod())[1],
        lambda ctx, g: {
            "x": pb.where(
                ctx.saved_variables.x == 0,
                0.0,
                ctx.saved_variables.x.prod() / ctx.saved_variables.x,
            )
            * g
        },
        (np.array([0.1, 1.4, 0.9, -2.0]),),
        "with whole numbers in place of the values",
    ),
    "for large values": (
        lambda ctx, x: (ctx.save_for_backward(x=x), x * x)[1],
        lambda ctx, g: {"x": g * 2.0 * ctx.saved_variables.x.clip(-3.0, 3.0)},
        (np.array([0.3, -1.2, 1.1]),),
        "with larger values",
    ),
    "where exp overflows": (
        lambda ctx, x: (ctx.save_for_backward(x=x), pb.logsumexp(x, 0))[1],
        lambda ctx, g: {"x": g * ctx.saved_variables.x.exp() / ctx.saved_variables.x.exp().sum()},
        (np.array([0.9, -1.2, 0.8]),),
        "with values of a thousand and more",
    ),
    "for every other word": (
        lambda ctx, x, link="log": (
            ctx.save_for_backward(x=x, link=link),
            x.exp() if link == "log" else x.log(),
        )[1],
        lambda ctx, g: {
            "x": g * (ctx.saved_variables.x.exp() if ctx.saved_variables.link == "log" else 1.0)
        },
        (np.array([0.3, -1.2, 1.1]),),
        "with `link` = 'other' in place of 'log'",
    ),
    "where a mask hides something": (
        lambda ctx, x, mask: (ctx.save_for_backward(x=x, mask=mask), x * x * mask)[1],
        lambda ctx, g: {"x": g * 2.0 * ctx.saved_variables.x},
        (np.array([0.3, -1.2, 1.1, 0.7]), np.ones(4, bool)),
        "with masks that are not all true",
    ),
    "for repeated indices": (
        lambda ctx, table, index: (ctx.save_for_backward(i=index, t=table), table[index])[1],
        lambda ctx, g: {
            "table": pb.zeros_like(ctx.saved_variables.t).index_put((ctx.saved_variables.i,), g)
        },
        (np.array([0.3, -1.2, 1.1, 0.7]), np.array([2, 0])),
        "with indices that repeat",
    ),
}


@pytest.mark.parametrize("where", WRONG)
def test_a_rule_that_is_wrong_only_there_is_caught_on_plain_inputs(where):
    forward, rule, inputs, situation = WRONG[where]
    with np.errstate(all="ignore"):
        report = check_op(operation(forward, rule), *inputs, raise_exception=False)
    assert report.outcome == "wrong"
    assert situation in report.failures[0].situation


def test_a_fast_check_leaves_variations_out():
    forward, rule, inputs, _ = WRONG["for another factor"]
    assert check_op(operation(forward, rule), *inputs, fast=True).outcome == "right"


def test_no_two_arrays_become_zero_at_once():
    x, y = np.array([0.1, -1.3, 0.2]), np.array([0.2, 1.1, -0.1])
    (first, *_) = variations(lambda x, y: x * y, None, Inputs((x, y), {}))
    assert [a.tolist() for a in first.inputs.args] == [[0.0, -2.0, 0.0], [1.0, 2.0, -1.0]]


def test_equal_values_that_make_a_matrix_singular_accuse_nothing():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return (x - x.mean()).square().sum()  # all the same: forward takes what backward does not

    def backward(ctx, g):
        x = ctx.saved_variables.x
        if len(set(x.tolist())) < len(x):
            raise np.linalg.LinAlgError("Singular matrix")
        return 2 * g * (x - x.mean())

    report = check_op(operation(forward, backward), np.array([0.3, -1.2, 2.4]))
    assert report.ok
    assert all(part.status != "failed" for part in report.parts)


def test_float16_values_are_varied_without_warnings():
    def forward(ctx, x):
        y = pb.tanh(x)
        ctx.save_for_backward(y=y)
        return y

    def backward(ctx, g):
        return {"x": g * (1 - ctx.saved_variables.y**2)}

    tanh = operation(forward, backward)
    assert check_op(tanh, np.array([7.562, -20.92, -97.6, 72.0], np.float16)).ok


# -- ties ------------------------------------------------------------------------------------------
def nearest(rule):
    """Return the larger of two sums of distances to the nearest, which has no gradient at ties."""

    def forward(ctx, a, b):
        d = np.abs(a.numpy()[:, None] - b.numpy())
        ctx.save_for_backward(d=a.numpy()[:, None] - b.numpy())
        return pb.asarray(np.maximum(d.min(1).sum(), 0.9 * d.min(0).sum()))

    @pb.once_differentiable
    def backward(ctx, g):
        d = ctx.saved_variables.d
        costs = np.abs(d).min(1).sum(), 0.9 * np.abs(d).min(0).sum()
        taken = rule(np.abs(d), 1) if costs[0] > costs[1] else 0.9 * rule(np.abs(d), 0)
        by = g.item() * np.sign(d) * taken
        return {"a": pb.asarray(by.sum(1)), "b": pb.asarray(-by.sum(0))}

    return operation(forward, backward)


A, B = np.array([0.3, -1.2, 1.4, 0.9]), np.array([0.1, 1.9, -0.7])


def test_any_of_the_nearest_may_get_the_gradient():
    def first(d, axis):
        return np.arange(d.shape[axis]).reshape(
            (-1, 1) if axis == 0 else (1, -1)
        ) == np.expand_dims(d.argmin(axis), axis)

    assert check_op(nearest(first), A, B).ok


def test_not_each_of_the_nearest_gets_the_whole_gradient():
    report = check_op(
        nearest(lambda d, axis: d == d.min(axis, keepdims=True)), A, B, raise_exception=False
    )
    assert report.outcome == "wrong"
    assert "ties" in report.failures[0].situation


def test_only_one_array_gets_both_signs():
    d, a = np.array([0.4, 1.3, 2.2]), np.array([1.5, 0.7, 3.1])
    found = {v.what: v for v in variations(lambda d, a: d / a, None, Inputs((d, a), {}))}
    signs = found["values of both signs"].inputs.args
    assert [array.tolist() for array in signs] == [[-0.4, 1.3, -2.2], [1.5, 0.7, 3.1]]


def test_overflow_where_forward_is_constant_accuses_nothing():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return 1 / (1 + (-x).exp())

    def backward(ctx, g):  # inf / inf where x is far below 0, and forward 0
        e = (-ctx.saved_variables.x).exp()
        return {"x": g * e / (1 + e) ** 2}

    with np.errstate(all="ignore"):
        assert check_op(operation(forward, backward), np.array([0.9, -1.2, 0.8])).ok


def test_each_of_three_arrays_of_both_signs_gets_a_zero_in_turn():
    args = np.array([0.4, -1.3]), np.array([-0.5, 0.7]), np.array([1.5, -0.2]), np.array([2.0, 3.0])
    every = variations(lambda a, b, c, d: a * b * c * d, None, Inputs(args, {}))
    zeros = [v.inputs.args for v in every if v.what == "a zero among values of both signs"]
    assert [[k for k, a in enumerate(arrays) if (a == 0).any()] for arrays in zeros] == [
        [0],
        [1],
        [2],
    ]
