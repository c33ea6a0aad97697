"""`pb.interop.scipy.integrate.quad`: SciPy's integrals, with derivatives of every argument."""

import numpy as np
import pytest
import scipy.integrate
from tests.interop._derivatives import check_derivatives

import pullback as pb
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    BatchedValueError,
    ConvergenceError,
    ShapeError,
)

quad = pb.interop.scipy.integrate.quad


def space(*values):
    return pb if any(isinstance(v, pb.Tensor) for v in values) else np


def wave(x, k, shift):
    xp = space(x, k, shift)
    return xp.exp(-k * x) * xp.cos(3 * x + shift)


def bell(x, k, shift):
    return space(x, k, shift).exp(-k * (x - shift) ** 2)


def power(x, k, shift):
    return x ** (k - 1.7) * (1 + shift * x)


CASES = {
    "finite": (wave, 0.3, 2.0, None),
    "backwards": (wave, 2.0, -0.5, None),
    "upwards": (wave, 0.3, np.inf, None),
    "downwards": (bell, -np.inf, 0.7, None),
    "everywhere": (bell, -np.inf, np.inf, None),
    "singular": (power, 0.0, 1.0, None),
    "points": (wave, 0.3, 2.0, [0.5, 1.5]),
}
PARAMETERS = (1.2, 0.4)


@pytest.mark.parametrize("name", list(CASES))
def test_an_integral_is_scipys_and_has_two_derivatives_in_parameters(name):
    func, a, b, points = CASES[name]
    found, error = quad(func, a, b, args=PARAMETERS, points=points)
    expected, _ = scipy.integrate.quad(func, a, b, args=PARAMETERS, points=points)
    assert found == pytest.approx(expected, rel=1e-8)
    assert error < 1e-7
    check_derivatives(lambda *p: quad(func, a, b, args=p, points=points)[0], *PARAMETERS)


@pytest.mark.parametrize("name", ["finite", "backwards"])
def test_an_integral_has_two_derivatives_in_its_limits_and_parameters_together(name):
    func, a, b, _ = CASES[name]
    check_derivatives(lambda a, b, *p: quad(func, a, b, args=p)[0], a, b, *PARAMETERS)


def test_half_infinite_integrals_have_two_derivatives_in_the_limit():
    check_derivatives(lambda a, k: quad(wave, a, np.inf, args=(k, 0.4))[0], 0.3, 1.2)
    check_derivatives(lambda b, k: quad(bell, -np.inf, b, args=(k, 0.4))[0], 0.3, 1.2)


def test_a_limit_has_a_third_derivative():
    third = pb.grad(pb.grad(pb.grad(lambda b: quad(wave, 0.0, b, args=PARAMETERS)[0])))
    h = 1e-3
    sides = [wave(0.8 + d * h, *PARAMETERS) for d in (-1, 0, 1)]
    assert third(0.8) == pytest.approx((sides[0] - 2 * sides[1] + sides[2]) / h**2, rel=1e-5)


def test_a_limit_beyond_a_jump_has_the_derivative_that_is_there():
    def step(x, height):
        return pb.where(x < 0.5, 1.0, height)

    def integral(b, height):
        return quad(step, 0.0, b, args=(height,), points=[0.5])[0]

    check_derivatives(integral, 1.3, 2.5)


def test_a_parameter_of_which_only_a_part_of_the_range_depends_has_its_gradient():
    early, late = (pb.tensor(v, dtype=pb.float64, requires_grad=True) for v in (2.0, 3.0))

    def func(x):
        return early * x if x < 0.6 else late * x * x

    found, _ = quad(func, 0.0, 1.0, points=[0.6])
    grads = [g.item() for g in pb.autograd.grad(found, (early, late))]
    np.testing.assert_allclose(grads, [0.6**2 / 2, (1 - 0.6**3) / 3], rtol=1e-12)


def test_a_derivative_that_is_harder_than_the_integral_is_precise():
    # The integrand hardly depends on the width; its derivative is a peak.
    def integral(w):
        return quad(lambda x: pb.atan((x - 0.3217) / w), 0.0, 1.0)[0]

    h = 1e-5
    values = [
        scipy.integrate.quad(
            lambda x, w=w: np.arctan((x - 0.3217) / w), 0, 1, points=[0.3217], epsabs=1e-13
        )[0]
        for w in (1e-3 - h, 1e-3 + h)
    ]
    assert pb.grad(integral)(1e-3) == pytest.approx((values[1] - values[0]) / (2 * h), rel=1e-5)


def test_complex_functions_are_integrated_where_that_is_asked_for():
    def func(x, k):
        return space(x, k).exp(1j * k * x)

    found, _ = quad(func, 0.0, 1.0, args=(2.0,), complex_func=True)
    assert found == pytest.approx(scipy.integrate.quad(func, 0, 1, (2.0,), complex_func=True)[0])
    check_derivatives(lambda k: quad(func, 0.0, 1.0, args=(k,), complex_func=True)[0], 2.0)
    with pytest.raises(
        ArgumentError, match=r"(?s)real numbers required of func.*complex_func=True"
    ):
        quad(func, 0.0, 1.0, args=(2.0,))


def test_an_empty_range_is_zero_and_its_limits_have_a_gradient():
    assert quad(wave, 0.4, 0.4, args=PARAMETERS)[0] == 0.0
    slope = pb.grad(lambda b: quad(wave, 0.4, b, args=PARAMETERS)[0])(0.4)
    assert slope == pytest.approx(wave(0.4, *PARAMETERS))


def test_an_empty_range_at_infinity_is_zero():
    assert quad(lambda x: x, np.inf, np.inf) == (0.0, 0.0)


def test_a_function_of_integers_is_integrated_as_one_of_real_numbers():
    assert quad(lambda x: 1, 0, 1)[0] == pytest.approx(1.0)
    assert quad(lambda x: pb.tensor(3), 0.0, 2.0)[0] == pytest.approx(6.0)


@pytest.mark.parametrize("limit", [np.nan, 1j, np.zeros(2)])
def test_limits_are_single_real_numbers(limit):
    with pytest.raises(
        ArgumentError, match=r"quad: one real number, .*, required as 'b', got shape"
    ):
        quad(np.sin, 0.0, limit)


def test_an_integral_that_diverges_or_whose_derivative_does_is_an_error():
    with pytest.raises(ConvergenceError, match="the integral of func to converge"):
        quad(lambda x: 1 / x, 0.0, 1.0, limit=5)
    shift = pb.tensor(0.0, dtype=pb.float64, requires_grad=True)
    with pytest.raises(ConvergenceError, match="the integral of the derivative of func to conv"):
        quad(lambda x: pb.sqrt(x - shift), 0.0, 1.0, args=(), limit=2)


def test_what_quad_cannot_do_is_refused():
    with pytest.raises(ArgumentTypeError, match="a function required, got float"):
        quad(1.0, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="full_output=0 required"):
        quad(np.sin, 0.0, 1.0, full_output=1)
    with pytest.raises(ArgumentError, match="weight=None required, got 'cos'"):
        quad(np.sin, 0.0, 1.0, weight="cos")
    with pytest.raises(ArgumentError, match="finite limits required with points"):
        quad(bell, 0.0, np.inf, args=PARAMETERS, points=[1.0])
    with pytest.raises(ShapeError, match=r"(?s)one number required of func.*\(2,\).*each element"):
        quad(lambda x: pb.stack([x, x]), 0.0, 1.0)


RATES = np.array([0.5, 1.0, 3.0])


def decay(b, k):
    return quad(lambda x, k: pb.exp(-k * x), 0.0, b, args=(k,))


def test_vmap_integrates_for_each_sample_and_its_gradients_are_those_of_a_loop():
    def integral(b, k):
        return decay(b, k)[0]

    found, errors = pb.vmap(decay)(RATES, RATES + 1)
    np.testing.assert_allclose(found, (1 - np.exp(-RATES * (RATES + 1))) / (RATES + 1), rtol=1e-12)
    assert errors.shape == (3,)
    assert errors.max() < 1e-7
    slopes = pb.vmap(pb.grad(integral))(RATES, RATES + 1)
    np.testing.assert_allclose(slopes, np.exp(-RATES * (RATES + 1)), rtol=1e-12)
    second = pb.grad(pb.grad(integral, 1), 1)
    of_batch = pb.vmap(second, in_axes=(None, 0))(2.0, RATES)
    np.testing.assert_allclose(of_batch, [second(2.0, k) for k in RATES], rtol=1e-12)
    of_sum = pb.grad(lambda b: pb.vmap(integral)(b, RATES + 1).sum())
    np.testing.assert_allclose(of_sum(RATES), slopes, rtol=1e-12)


def test_a_batch_that_func_closes_over_is_an_error_that_says_to_hand_it_over():
    required = r"(?s)quad: what differs between the samples.*hand it over in args"
    with pytest.raises(BatchedValueError, match=required):
        pb.vmap(lambda k: quad(lambda x: k * x, 0.0, 1.0)[0])(RATES)


def test_quad_has_derivatives_by_a_limit_at_which_the_slope_is_infinite():
    def area(a, b):
        return pb.interop.scipy.integrate.quad(pb.sqrt, a, b)[0]

    assert pb.grad(area, argnum=(0, 1))(0.0, 1.0) == pytest.approx((0.0, 1.0))
    assert pb.jvp(area, (0.0, 1.0), (1.0, 2.0))[1] == pytest.approx(2.0)
