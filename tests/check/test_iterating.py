"""Whether a forward repeats a step as often as its values ask for, and whether calls end."""

import time

import numpy as np
import pytest
from scipy.optimize import brentq

import pullback as pb
from pullback.check.iterating import ends
from pullback.check.report import Report
from pullback.check.session import Session
from pullback.check.slopes import Options
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
