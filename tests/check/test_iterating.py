"""Forwards that iterate: which do, whether they end, and rules right for the exact result alone."""

import time

import numpy as np
import pytest
from scipy.optimize import brentq

import pullback as pb
from pullback.check import check_op
from pullback.check.deadline import ends
from pullback.check.report import Options, Report
from pullback.check.session import Session
from pullback.check.subject import Subject

X = np.array([0.3, 1.2])


def until_close(x):
    y = np.ones(x.shape)
    while abs(y * y - x.detach().numpy()).max() > 1e-6:
        y = (y + x.detach().numpy() / y) / 2
    return pb.asarray(y)


def by_a_solver(x):
    return pb.asarray(
        np.array([brentq(lambda y, v=v: y**3 - v, 0.0, 9.0) for v in x.detach().numpy()])
    )


def each(x):
    rows = x * 1.0
    for k in range(len(x)):
        rows = rows + x[k]
    return rows


@pytest.mark.parametrize(
    ("fn", "expected"),
    [(until_close, True), (by_a_solver, True), (each, False), (pb.sin, False), (pb.exp, False)],
)
def test_lines_that_run_more_often_elsewhere_show_an_iteration(fn, expected):
    assert Session(Subject(fn, (X,)), Options(), Report("", 0)).iterates is expected


def test_a_call_that_never_ends_is_stopped():
    def forever():
        while True:
            pass

    start = time.perf_counter()
    assert not ends(forever, 0.05)
    assert ends(lambda: 1 / 0, 1.0)
    assert time.perf_counter() - start < 5


# -- rules that are right for the exact result -----------------------------------------------------
def root(steps=100, tol=0.0, slope=0.5):
    """Return the square root by Newton's method, with the derivative of the exact one."""

    def forward(ctx, x):
        a, y = x.numpy(), np.full(x.shape, 2.0)
        for _ in range(steps):
            y, before = (y + a / y) / 2, y
            if np.abs(y - before).max() < tol:
                break
        ctx.save_for_backward(x=x)
        return pb.asarray(y)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": g * slope / ctx.saved_variables.x.sqrt()}

    return pb.autograd_function(forward, backward, name="root")


def checked(op, **options):
    return check_op(op, X, raise_exception=False, only=["first", "shapes"], **options)


def test_a_rule_that_is_as_right_as_forward_is_right_and_its_precision_is_noted():
    report = checked(root(tol=1e-3))
    assert report.outcome == "right"
    (note,) = [n for n in report.notes if "forward's own precision" in n]
    assert note.startswith("the gradients are right to forward's own precision, about ")


def test_an_error_of_one_percent_is_no_matter_of_accuracy():
    assert checked(root(steps=4, slope=0.51)).outcome == "wrong"


def test_a_small_error_of_a_forward_that_does_not_iterate_is_wrong():
    @pb.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    square.backward(lambda ctx, g: {"x": 2.0001 * g * ctx.saved_variables.x})
    assert checked(square).outcome == "wrong"
