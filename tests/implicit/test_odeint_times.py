"""The derivatives of `odeint` by its times, also where f has an infinite slope there."""

import functools
import itertools

import numpy as np
import pytest

import pullback as pb
from pullback.implicit import odeint

# Slopes with an infinite derivative by t at the first or the last time, and those times.
STEEP = {
    "sqrt": (lambda y, t: pb.sqrt(t) + 0 * y, [0.0, 1.0]),
    "cbrt": (lambda y, t: np.cbrt(t) + 0 * y, [0.0, 0.4, 1.0]),
    "power": (lambda y, t: t**0.9 + 0 * y, [0.0, 1.0]),
    "sqrt times y": (lambda y, t: pb.sqrt(t) * y, [0.0, 1.0]),
    "sqrt at the end": (lambda y, t: pb.sqrt(1 - t) + 2 * y, [0.0, 0.3, 1.0]),
    "decreasing": (lambda y, t: pb.sqrt(t) * y, [1.0, 0.5, 0.0]),
}
steep = pytest.mark.parametrize("name", STEEP)


def differences(f, x, h=1e-6):
    return np.stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=-1)


# ---- infinite slopes -----------------------------------------------------------------------------
@steep
def test_odeint_has_gradients_by_times_at_which_the_slope_is_infinite(name):
    f, times = STEEP[name]
    t, y = np.array(times), odeint(f, 1.3, np.array(times))
    # dy(t1)/dt1 = f(y1, t1), dy(t1)/dt0 = -f(y0, t0) dy(t1)/dy0
    along = pb.grad(lambda y0: odeint(f, y0, t)[-1])(1.3)
    expected = np.zeros(len(t))
    expected[0] = -float(f(1.3, pb.asarray(t[0]))) * along
    expected[-1] = float(f(y[-1], pb.asarray(t[-1])))

    def end(t):
        return odeint(f, 1.3, t)[-1]

    for found in (pb.grad(end)(t), pb.jacfwd(end)(t), pb.jacrev(end)(t)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    x = pb.tensor(t, requires_grad=True)
    (found,) = pb.autograd.grad(end(x), x, create_graph=True)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odeint_has_mixed_second_derivatives_where_the_slope_by_time_is_infinite():
    t, slope = np.array([0.0, 1.0]), STEEP["sqrt times y"][0]

    def end(t, y0):
        return odeint(slope, y0, t)[-1]

    for outer, inner in itertools.product((pb.jacfwd, pb.jacrev), repeat=2):
        found = outer(inner(end, argnum=1), argnum=0)(t, 1.3)
        np.testing.assert_allclose(found, [0.0, np.exp(2 / 3)], rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odeint_has_no_finite_second_derivative_by_a_time_where_there_is_none():
    hessian = pb.hessian(lambda t: odeint(STEEP["sqrt"][0], 1.0, t)[-1])(np.array([0.0, 1.0]))
    assert not np.isfinite(hessian[0, 0])
    assert hessian[1, 1] == pytest.approx(0.5)


# ---- smooth slopes -------------------------------------------------------------------------------
TIMES, START, RATE = np.array([0.1, 0.6, 1.0]), np.array([0.3, -0.5]), 0.8
WEIGHTS = np.arange(1.0, 7.0).reshape(3, 2)


def swing(y, t, k):
    return pb.stack([pb.sin(t * y[1]) + k * y[0] * t, pb.cos(y[0]) * k + t**2 * y[1]])


def total(t, y0, k):
    y = odeint(swing, y0, t, k, rtol=1e-7, atol=1e-9)
    return (y * y * y * WEIGHTS).sum()


def closing(t, y0, k):
    y = odeint(lambda y, t: swing(y, t, k), y0, t, rtol=1e-7, atol=1e-9)
    return (y * y * y * WEIGHTS).sum()


@pytest.mark.parametrize("times", [TIMES, TIMES[::-1].copy()], ids=["increasing", "decreasing"])
def test_gradients_of_odeint_by_times_are_those_of_differences(times):
    found = pb.grad(total)(times, START, RATE)
    expected = differences(lambda t: total(t, START, RATE), times)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


WAYS = [(*ways, total) for ways in itertools.product((pb.jacfwd, pb.jacrev), repeat=2)]


@functools.cache
def differences_of_gradients():
    """Return the differences of the gradients by times, as times, start and rate change."""
    return (
        differences(lambda t: pb.grad(total)(t, START, RATE), TIMES),
        differences(lambda y0: pb.grad(total)(TIMES, y0, RATE), START),
        differences(lambda k: pb.grad(total)(TIMES, START, k[0]), np.array([RATE]))[:, 0],
    )


@pytest.mark.parametrize(("outer", "inner", "function"), [*WAYS, (pb.jacfwd, pb.jacrev, closing)])
def test_second_derivatives_of_odeint_by_times_are_those_of_differences(outer, inner, function):
    arguments = (TIMES, START, RATE)
    by_time, by_start, by_rate = differences_of_gradients()
    close = {"rtol": 1e-5, "atol": 1e-6}
    of_time = outer(inner(function), argnum=(0, 1, 2))(*arguments)
    for found, expected in zip(of_time, (by_time, by_start, by_rate), strict=True):
        np.testing.assert_allclose(found, expected, **close)
    of_start = outer(inner(function, argnum=1))(*arguments)
    np.testing.assert_allclose(of_start, by_start.T, **close)
    of_rate = outer(inner(function, argnum=2))(*arguments)
    np.testing.assert_allclose(of_rate, by_rate, **close)


def reverse(f, i):
    v = (np.array([1.0, -2.0, 0.5]), np.array([0.7, 1.1]), np.float64(1.0))[i]
    return lambda *a: (pb.grad(f, argnum=i)(*a) * v).sum()


def forward(f, i):
    v = (np.array([1.0, -2.0, 0.5]), np.array([0.7, 1.1]), np.float64(1.0))[i]
    return lambda *a: pb.jvp(f, a, tuple(v if i == k else None for k in range(3)))[1]


@functools.cache
def differences_along(direction, i):
    """Return the difference along times of the second derivative by times and argument `i`."""
    one_less, h = reverse(reverse(total, 0), i), 1e-5
    ends = [one_less(TIMES + s * h * np.array(direction), START, RATE) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * h)


@pytest.mark.parametrize("order", [(0, 0, 2), (2, 0, 0), (0, 1, 0)])
@pytest.mark.parametrize("modes", [*itertools.product((reverse, forward), repeat=3)])
def test_third_derivatives_of_odeint_by_times_do_not_depend_on_the_order(modes, order):
    f = total
    for mode, i in zip(modes, order, strict=True):
        f = mode(f, i)
    expected = differences_along((1.0, -2.0, 0.5), max(order))
    assert float(f(TIMES, START, RATE)) == pytest.approx(expected, rel=1e-5)


def test_complex_solutions_of_odeint_have_gradients_by_times():
    def value(t):
        y = odeint(lambda y, t: 0.7j * t * y, np.array([1 + 0.5j, 2j]), t, rtol=1e-9)
        return (y.real * WEIGHTS + y.imag**2).sum()

    np.testing.assert_allclose(pb.grad(value)(TIMES), differences(value, TIMES), rtol=1e-6)
    expected = differences(pb.grad(value), TIMES)
    np.testing.assert_allclose(pb.hessian(value)(TIMES), expected, rtol=1e-5, atol=1e-7)


def test_the_gradient_of_odeint_by_times_for_each_sample():
    times = np.array([[0.0, 1.0], [0.0, 4.0]])
    found = pb.vmap(pb.grad(lambda t: odeint(STEEP["sqrt"][0], 1.0, t)[-1]))(times)
    np.testing.assert_allclose(found, [[0.0, 1.0], [0.0, 2.0]], rtol=1e-12, atol=1e-12)


def test_odeint_in_float32_with_times_in_float64():
    t = pb.tensor([0.0, 1.0], dtype=pb.float64, requires_grad=True)
    y = odeint(lambda y, s: pb.sqrt(s) * y, pb.tensor(1.0), t)
    y[-1].backward()
    assert t.grad.dtype is pb.float64
    assert t.grad.tolist() == pytest.approx([0.0, y[-1].item()], rel=1e-6)


def test_odeint_with_what_was_changed_in_place_since_raises():
    t, a = pb.tensor([0.5, 1.0], dtype=pb.float64, requires_grad=True), np.array(2.0)
    y = odeint(lambda y, s: a * s, 0.0, t)[-1]
    a[...] = 5.0
    with pytest.raises(
        pb.errors.InplaceError, match="the function that was integrated has other values"
    ):
        pb.autograd.grad(y, t, create_graph=True)
