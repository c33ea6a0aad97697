"""Rounding: how far it may move a result."""

import numpy as np
from tests.check._parts import X, Y

from pullback.check.comparison import rounding_noise
from pullback.check.exceptions import ForwardError


def test_noise_is_that_of_the_last_bits():
    quiet = rounding_noise(lambda xs, gs: [xs[0] * gs[0], gs[0]], [X], [Y])[0].max()
    loud = rounding_noise(lambda xs, gs: [(xs[0] + 1e9) - 1e9 + 0 * gs[0]], [1e9 * X], [Y])[0].max()
    assert 0 < quiet < 1e-12 < 1e-7 < loud

    def picky(xs, gs):
        if xs[0] is not X:
            raise ForwardError("not here")
        return [xs[0] * gs[0]]

    found = rounding_noise(picky, [X], [Y])[0].max()
    assert 0 < found < 1e-12


def test_equal_elements_are_moved_apart_where_that_is_asked_for():
    def compute(arrays, seeds):
        return [1e12 * (arrays[0][0] - arrays[0][1])]

    equal = [np.array([1.5, 1.5])]
    assert rounding_noise(compute, equal, [])[0].max() == 0.0
    assert rounding_noise(compute, equal, [], eps=2.0**-52)[0].max() > 1e-3
