"""What shows in the source that a function approximates its result."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import pullback as pb
from pullback.check.iterating import iterates


def until_close(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = (x + a / x) / 2
    return x


def twenty_times(a):
    x = a
    for _ in range(20):
        x = (x + a / x) / 2
    return x


def until_done(a):
    x = a
    for k in range(100):
        x, before = (x + a / x) / 2, x * (k + 1) / (k + 1)
        if x == before:
            break
    return x


def by_helper(a):
    return 2.0 * until_close(a)


def each(rows):
    total = 0.0
    for row in rows:
        total += row**2
    return total


def test_loops_that_repeat_a_step_are_iterations():
    assert [iterates(f) for f in (until_close, twenty_times, until_done, by_helper)] == [True] * 4


def test_a_loop_over_elements_is_none():
    assert not iterates(each)
    assert not iterates(lambda x: np.linalg.solve(x, x))


def test_solvers_and_quadrature_are_approximations():
    assert iterates(lambda a: brentq(lambda x: x**3 - a, 0.0, 2.0))
    assert iterates(lambda a: quad(np.cos, 0.0, a)[0])


def test_the_forward_of_an_operation_is_read():
    def forward(ctx, a):
        return pb.asarray(until_close(a.numpy()))

    assert iterates(pb.autograd_function(forward, lambda ctx, g: {"a": g}))


@pytest.mark.parametrize("fn", [np.sin, pb.sin, len, eval("lambda x: x")])
def test_what_has_no_source_is_none(fn):
    assert not iterates(fn)
