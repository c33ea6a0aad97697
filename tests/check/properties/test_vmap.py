"""The part `vmap`: a rule for batches that was given against a loop."""

import numpy as np
import pytest

import pullback as pb
from pullback.check import gradcheck


def _forward(ctx, a, b):
    ctx.save_for_backward(a=a, b=b)
    return a * b


def _backward(ctx, grad_output):
    saved = ctx.saved_variables
    return {"a": grad_output * saved.b, "b": grad_output * saved.a}


def product(vmap):
    op = pb.autograd_function(_forward, _backward, name="product")
    op.vmap(lambda info, in_dims, a, b: vmap(op, info, in_dims, a, b))
    inputs = (np.array([0.5, -1.2, 2.0]), np.array([1.5, 0.7, -0.4]))
    return gradcheck(op, inputs, raise_exception=False)


def whole(info, in_dims, a, b):
    return [
        t.expand((info.batch_size, *t.shape)) if axis is None else t.movedim(axis, 0)
        for t, axis in zip((a, b), in_dims, strict=True)
    ]


def right(op, info, in_dims, a, b):
    return op(*whole(info, in_dims, a, b)), 0


def elsewhere(op, info, in_dims, a, b):
    return op(*whole(info, in_dims, a, b)).movedim(0, 1), 1


def sheared(op, info, in_dims, a, b):
    a, b = whole(info, in_dims, a, b)
    return op(a.flip(0), b), 0


def without_gradient(op, info, in_dims, a, b):
    a, b = whole(info, in_dims, a, b)
    return op(a, b.detach()), 0


def always_mapped(op, info, in_dims, a, b):
    return op(a.movedim(in_dims[0] + 0, 0), b.movedim(in_dims[1] + 0, 0)), 0


def summed(op, info, in_dims, a, b):
    return op(*whole(info, in_dims, a, b)).sum(0), None


def outcome(report):
    return next(part.status for part in report.parts if part.name == "vmap")


@pytest.mark.parametrize("rule", [right, elsewhere])
def test_a_right_rule_passes(rule):
    report = product(rule)
    assert report.ok
    assert outcome(report) == "passed"


def test_an_operation_without_one_is_not_asked():
    op = pb.autograd_function(_forward, _backward)
    report = gradcheck(op, (np.ones(2), np.ones(2)), only=["vmap"], raise_exception=False)
    assert outcome(report) == "not applicable"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (sheared, "vmap, mapped over `a` and `b`, is not the loop over the samples: the value"),
        (without_gradient, "is not the loop over the samples: the gradient of `b` differs"),
        (always_mapped, "vmap raises where it is mapped over `a`: "),
        (summed, "is not the loop over the samples: the value differs"),
        (lambda op, *args: right(op, *args)[0], "vmap raises where it is mapped over `a` and `b`"),
    ],
    ids=["samples mixed", "no gradient", "None", "summed", "no axes"],
)
def test_a_wrong_rule_is_reported(rule, words):
    report = product(rule)
    assert {failure.part for failure in report.failures} == {"vmap"}
    assert words in report.failures[0].cause.text
