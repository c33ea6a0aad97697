"""Derivatives by differences: right, with an honest error, and aware of kinks, jumps and edges."""

import math

import numpy as np
import pytest

from pullback.check.numerical import slope

EPS = 2.0**-52


def at(f, x, scale=None):
    """Return the slope of a function of one number at x."""
    return slope(lambda t: np.array([f(x + t)]), [scale or abs(x) or 1.0], EPS)


SMOOTH = [
    ("sin", math.sin, 0.7, math.cos(0.7)),
    ("a fast sine", lambda x: math.sin(200 * x), 0.3, 200 * math.cos(60.0)),
    ("exp, steep", lambda x: math.exp(20 * x), 1.5, 20 * math.exp(30.0)),
    ("a square at 0", lambda x: x * x, 0.0, 0.0),
    ("a huge argument", lambda x: x * x, 1e150, 2e150),
    ("a tiny argument", math.log, 1e-150, 1e150),
    ("a constant", lambda x: 5.0, 0.3, 0.0),
    ("close to a pole", lambda x: 1 / x, 1e-6, -1e12),
    ("a power 3/2 at 0", lambda x: abs(x) ** 1.5, 0.0, 0.0),
]


@pytest.mark.parametrize(
    ("f", "x", "right"), [case[1:] for case in SMOOTH], ids=[case[0] for case in SMOOTH]
)
def test_the_slope_is_within_its_error(f, x, right):
    found = at(f, x)
    assert abs(found.value[0] - right) <= 10 * found.error[0] + 1e-9 * abs(right)
    assert found.error[0] <= 1e-6 * abs(right) + 1e-6


@pytest.mark.parametrize("x", [1e-3, 1e-5, -1e-4])
def test_a_kink_close_by_does_not_matter(x):
    found = at(abs, x, scale=1.0)
    assert found.low[0] == found.high[0] == pytest.approx(math.copysign(1.0, x), abs=1e-9)
    assert not found.kink[0]


def test_at_a_kink_the_range_is_that_of_the_one_sided_slopes():
    found = at(lambda x: max(2 * x, -x), 0.0)
    assert found.kink[0]
    assert (found.low[0], found.high[0]) == pytest.approx((-1.0, 2.0), abs=1e-6)


def test_a_kink_too_close_to_be_resolved_leaves_room_for_both_sides():
    found = at(abs, 1e-9, scale=1.0)
    error = 10 * found.error[0]
    assert found.low[0] - error <= 1.0 <= found.high[0] + error


def test_nothing_is_known_at_a_jump():
    found = at(math.floor, 2.0)
    assert found.kink[0]
    assert found.high[0] - found.low[0] + 10 * found.error[0] > 1e3


def test_at_the_edge_of_the_domain_the_one_side_counts_unless_it_is_infinite():
    found = at(lambda x: x**3 + 2 * x if x >= 0 else math.nan, 0.0)
    assert found.kink[0]
    assert found.value[0] == pytest.approx(2.0, abs=1e-4)
    found = at(lambda x: math.sqrt(x) if x >= 0 else math.nan, 0.0)
    assert (found.low[0], found.high[0]) == (-math.inf, math.inf)


def test_a_function_that_is_undefined_beside_the_point_is_unknown():
    found = slope(lambda t: np.array([1.0]) if t == 0 else None, [1.0], EPS)
    assert (found.low[0], found.high[0]) == (-math.inf, math.inf)


def test_outputs_are_measured_together_each_by_its_own_step():
    found = slope(lambda t: np.array([math.sin(500 * t), t, abs(t)]), [1.0], EPS)
    assert found.low == pytest.approx([500.0, 1.0, -1.0], rel=1e-6)
    assert found.kink.tolist() == [False, False, True]


def test_the_error_is_that_of_the_rounding_of_the_values():
    single = float(np.finfo("f4").eps)
    found = slope(lambda t: np.sin(np.float32([0.5 + t])).astype(np.float64), [0.5], single)
    assert abs(found.value[0] - math.cos(0.5)) <= 10 * found.error[0] < 0.1
    found = at(lambda x: 1e8 + x, 0.3)
    assert abs(found.value[0] - 1.0) <= found.error[0] < 1e-2
    found = at(lambda x: math.sin(x) * (1 + 1e-9 * math.cos(1e9 * x)), 0.7)  # noise of its own
    assert abs(found.value[0] - math.cos(0.7)) <= 10 * found.error[0] < 1e-4


def test_a_formula_that_cancels_around_its_special_case_makes_no_kink():
    def share(rate, months=48):  # of a loan that is paid back each month
        return 1 / months if abs(rate) < 1e-12 else rate / (1 - (1 + rate) ** -months)

    for scale in (1.0, 0.01, 0.00063):
        found = at(share, 0.0, scale)
        assert found.low == found.high == pytest.approx(49 / 96, rel=2e-3)


def test_a_kink_is_one_also_where_rounding_shows_beside_it():
    def f(x):
        return abs(x) + 100 * x**2 + 1e-10 * math.cos(1e13 * x)

    found = at(f, 0.0)
    assert found.low == pytest.approx(-1.0, rel=2e-2)
    assert found.high == pytest.approx(1.0, rel=2e-2)


def test_outputs_that_stay_the_same_beside_others_that_move_cost_no_more_calls():
    calls = []

    def line(t):
        calls.append(t)
        return np.array([math.sin(1.0 + t), 1e-3])

    found = slope(line, [1.0], EPS)
    assert found.low == pytest.approx([math.cos(1.0), 0.0])
    assert len(calls) == 7  # at the point, and at one set of steps to either side
