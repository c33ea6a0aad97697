"""Calls with other settings and values than the user's, which show what these hide."""

import numpy as np
import pytest

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import Inputs
from pullback.check.inputs.variations import variations
from pullback.check.naming import parameters_of

X = np.array([[0.4, -1.3, 2.1], [1.7, 0.2, -0.6]])


def found(fn, *args, **kwargs):
    return [what for what, _ in variations(fn, parameters_of(fn), Inputs(args, kwargs))]


def operation(forward, rule):
    return pb.autograd_function(forward, rule, name="tried")


def test_settings_that_keep_their_default_are_varied():
    def fn(x, axis=-1, keepdims=False, scale=2.0, tol=1e-6, reduction="mean"):
        out = x.sum(axis, keepdim=keepdims) * scale + tol
        return out.mean() if reduction == "mean" else out.sum() if reduction == "sum" else out

    assert found(fn, X)[:6] == [
        "`axis` = 0 in place of -1",
        "`axis` = -2 in place of -1",
        "`scale` = 3.0 in place of 2.0",
        "`reduction` = 'sum' in place of 'mean'",
        "`reduction` = 'none' in place of 'mean'",
        "whole numbers in place of the values",
    ]


def test_settings_that_were_passed_are_respected():
    def fn(x, scale=2.0):
        return x * scale

    assert "`scale` = 3.0 in place of 2.0" not in found(fn, X, 5.0)
    assert "`scale` = 3.0 in place of 2.0" not in found(fn, X, scale=5.0)


def test_variations_that_forward_refuses_are_left_out():
    def fn(x, scale=2.0):
        if scale != 2.0 or abs(x).max() > 2.5:
            raise ValueError("no")
        return x * scale

    assert found(fn, X) == []


def test_arrays_with_a_structure_keep_their_values():
    assert found(lambda a: a * a, np.array([[2.0, 1.0], [1.0, 3.0]])) == []


def test_values_that_are_positive_stay_so():
    ((_, inputs), *_) = variations(lambda x: x.log(), None, Inputs((np.array([0.1, 2.7]),), {}))
    assert inputs.args[0].tolist() == [1.0, 4.0]


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
    report = check_op(operation(forward, rule), *inputs, raise_exception=False)
    assert report.outcome == "wrong"
    assert situation in report.failures[0].situation


def test_a_fast_check_leaves_variations_out():
    forward, rule, inputs, _ = WRONG["for another factor"]
    assert check_op(operation(forward, rule), *inputs, fast=True).outcome == "right"


def test_no_two_arrays_become_zero_at_once():
    x, y = np.array([0.1, -1.3, 0.2]), np.array([0.2, 1.1, -0.1])
    ((_, inputs), *_) = variations(lambda x, y: x * y, None, Inputs((x, y), {}))
    assert [a.tolist() for a in inputs.args] == [[0.0, -2.0, 0.0], [1.0, 2.0, -1.0]]
