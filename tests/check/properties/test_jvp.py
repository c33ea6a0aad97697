"""The part `jvp`: a forward derivative that was given against backward."""

import numpy as np
import pytest

import pullback as pb
from pullback.check import gradcheck


def product(jvp, **options):
    op = pb.autograd_function(_forward, _backward, name="product")
    op.jvp(jvp)
    inputs = (np.array([0.5, -1.2, 2.0]), np.array([1.5, 0.7, -0.4]))
    return gradcheck(op, inputs, raise_exception=False, **options)


def _forward(ctx, a, b):
    ctx.save_for_backward(a=a, b=b)
    return a * b


def _backward(ctx, grad_output):
    saved = ctx.saved_variables
    return {"a": grad_output * saved.b, "b": grad_output * saved.a}


def right(ctx, a, b):
    saved = ctx.saved_variables
    terms = [t * s for t, s in ((a, saved.b), (b, saved.a)) if t is not None]
    return sum(terms)


def outcome(report):
    return next(part.status for part in report.parts if part.name == "jvp")


def test_a_right_jvp_passes():
    report = product(right)
    assert report.ok
    assert outcome(report) == "passed"


def test_an_operation_without_one_is_not_asked():
    op = pb.autograd_function(_forward, _backward)
    report = gradcheck(op, (np.ones(2), np.ones(2)), only=["jvp"], raise_exception=False)
    assert outcome(report) == "not applicable"


@pytest.mark.parametrize(
    ("jvp", "words"),
    [
        (lambda ctx, a, b: -right(ctx, a, b), "along `a`: <g, jvp(v)> is with the other sign"),
        (lambda ctx, a, b: 2 * right(ctx, a, b), "jvp is not the transpose of backward along `a`"),
        (lambda ctx, a, b: a * ctx.saved_variables.b, "jvp raises along `b`: ArgumentTypeError"),
        (lambda ctx, a: a * ctx.saved_variables.b, "jvp raises along `b`: ArgumentError"),
        (lambda ctx, a, b: right(ctx, a, b)[:1], "jvp raises along `a`: ShapeError"),
    ],
    ids=["sign", "factor", "None", "left-out", "shape"],
)
def test_a_wrong_jvp_is_reported_with_its_argument(jvp, words):
    report = product(jvp)
    assert {failure.part for failure in report.failures} == {"jvp"}
    assert words in report.failures[0].cause.text
