"""`pb.interop.scipy.integrate`: SciPy's numbers, with derivatives of first and second order."""

import numpy as np
import pytest
import scipy.integrate
from tests.interop._derivatives import check_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError

integrate = pb.interop.scipy.integrate
METHODS = ["RK45", "RK23", "DOP853"]
Y0 = np.array([1.0, 0.5])
T_EVAL = np.array([0.0, 0.4, 1.1, 2.0])


def swing(t, y, damping, drive):
    xp = pb if isinstance(y, pb.Tensor) else np
    return xp.stack([y[1], drive * xp.cos(t) - damping * y[1] - xp.sin(y[0])])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("t_eval", [None, T_EVAL])
@pytest.mark.parametrize("t_span", [(0.0, 2.0), (2.0, 0.0)])
def test_the_solution_is_scipys(method, t_eval, t_span):
    t_eval = t_eval if t_eval is None or t_span[0] == 0 else t_eval[::-1].copy()
    settings = {"method": method, "t_eval": t_eval, "args": (0.3, 0.8), "rtol": 1e-5}
    found = integrate.solve_ivp(swing, t_span, Y0, **settings)
    expected = scipy.integrate.solve_ivp(swing, t_span, Y0, **settings)
    assert set(found) == set(expected)
    assert (found.success, found.status, found.message) == (True, 0, expected.message)
    np.testing.assert_allclose(found.t, expected.t, rtol=1e-12)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-10)
    if t_eval is None:
        assert found.nfev == expected.nfev


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("t_eval", [None, T_EVAL])
def test_it_has_two_derivatives_by_values_and_parameters(method, t_eval):
    def ends(y0, damping, drive):
        # Fixed steps: the steps that an error bound chooses jump.
        settings = {"first_step": 0.25, "max_step": 0.25, "rtol": 1e-1, "atol": 1e-1}
        span, args = (0.0, 2.0), (damping, drive)
        return integrate.solve_ivp(swing, span, y0, method, t_eval, args=args, **settings).y

    check_derivatives(ends, Y0, 0.3, 0.8)


def test_it_has_derivatives_by_the_times():
    def ends(first, last, t):
        settings = {"max_step": 0.25, "first_step": 0.25, "rtol": 1e-1, "atol": 1e-1}
        found = integrate.solve_ivp(swing, (first, last), Y0, t_eval=t, args=(0.3, 0.8), **settings)
        return found.y

    leaves = [pb.tensor(x, requires_grad=True) for x in (0.0, 2.0, np.array([0.4, 1.1, 2.0]))]
    leaves = [x.to("float64").detach().requires_grad_() for x in leaves]
    (g,) = pb.autograd.grad(ends(*leaves)[0, 2], leaves[2])
    end = ends(*leaves).detach().numpy()[:, 2]
    assert g.numpy()[2] == pytest.approx(end[1], rel=1e-3)  # dy/dt
    last = integrate.solve_ivp(swing, (0.0, leaves[1]), Y0, args=(0.3, 0.8), rtol=1e-9, atol=1e-9)
    (g,) = pb.autograd.grad(last.y[0, -1], leaves[1])
    assert g.item() == pytest.approx(last.y[1, -1].item(), rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_the_dense_output_is_scipys_and_differentiable(method):
    settings = {"args": (0.3, 0.8), "dense_output": True, "method": method}
    expected = scipy.integrate.solve_ivp(swing, (0.0, 2.0), Y0, **settings)
    y0 = pb.tensor(Y0, requires_grad=True)
    found = integrate.solve_ivp(swing, (0.0, 2.0), y0, **settings)
    np.testing.assert_allclose(found.sol(T_EVAL).detach(), expected.sol(T_EVAL), rtol=1e-9)
    np.testing.assert_allclose(found.sol(0.7).detach(), expected.sol(0.7), rtol=1e-9)
    assert found.sol(0.7)[0].requires_grad


def test_complex_values_are_scipys_and_have_two_derivatives():
    def spiral(y0, rate):
        settings = {"max_step": 0.25, "first_step": 0.25, "rtol": 1e-1, "atol": 1e-1}
        found = integrate.solve_ivp(lambda t, y: rate * y * t, (0.0, 1.0), y0, **settings)
        return found.y

    y0, rate = np.array([1.0 + 0.5j]), np.array(0.3 + 2j)
    expected = scipy.integrate.solve_ivp(
        lambda t, y: rate * y * t,
        (0.0, 1.0),
        y0,
        max_step=0.25,
        first_step=0.25,
        rtol=0.1,
        atol=0.1,
    )
    np.testing.assert_allclose(spiral(y0, rate), expected.y, rtol=1e-12)
    check_derivatives(spiral, y0, rate)


def test_a_tensor_that_the_function_closes_over_has_a_gradient():
    rate = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)
    end = integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0], rtol=1e-10, atol=1e-10).y[
        0, -1
    ]
    (g,) = pb.autograd.grad(end, rate)
    assert g.item() == pytest.approx(-np.exp(-2.0), rel=1e-6)


def test_what_solve_ivp_cannot_do_is_refused():
    def decay(t, y):
        return -y

    with pytest.raises(ArgumentError, match="explicit method, RK23, RK45, DOP853, required"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], "Radau")
    with pytest.raises(ArgumentError, match="no events"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], events=[lambda t, y: y[0]])
    with pytest.raises(ArgumentError, match=r"times of one axis from 0.0 to 1.0, in order, req"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], t_eval=[0.5, 1.5])
    with pytest.raises(ShapeError, match="y0 of one axis required"):
        integrate.solve_ivp(decay, (0.0, 1.0), [[1.0]])
    with pytest.raises(ArgumentTypeError, match="a function required"):
        integrate.solve_ivp(1.0, (0.0, 1.0), [1.0])
    with pytest.raises(AttributeError, match="one of cumulative_trapezoid"):
        _ = integrate.quad


def test_odeint_is_scipys_to_its_tolerance_and_has_two_derivatives():
    def f(y, t, damping, drive):
        return swing(t, y, damping, drive)

    expected = scipy.integrate.odeint(f, Y0, T_EVAL, args=(0.3, 0.8))
    np.testing.assert_allclose(
        integrate.odeint(f, Y0, T_EVAL, args=(0.3, 0.8)), expected, rtol=1e-6, atol=1e-7
    )
    swapped = integrate.odeint(swing, Y0, T_EVAL, args=(0.3, 0.8), tfirst=True)
    np.testing.assert_allclose(swapped, expected, rtol=1e-6, atol=1e-7)

    def ends(y0, damping, drive):
        return integrate.odeint(f, y0, T_EVAL[:2], args=(damping, drive), rtol=1e-6)

    check_derivatives(ends, Y0, 0.3, 0.8, rtol=1e-5)


# -- samples ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("name", ["trapezoid", "simpson", "cumulative_trapezoid"])
def test_an_integral_of_samples_is_scipys_and_has_two_derivatives(name, n):
    ours, theirs = getattr(integrate, name), getattr(scipy.integrate, name)
    rng = np.random.default_rng(n)
    y, x = rng.normal(size=(3, n)), np.cumsum(rng.uniform(0.5, 1.5, n))
    np.testing.assert_allclose(ours(y, dx=0.5), theirs(y, dx=0.5), rtol=1e-12)
    np.testing.assert_allclose(ours(y.T, x, axis=0), theirs(y.T, x, axis=0), rtol=1e-12)
    np.testing.assert_allclose(ours(y, x), theirs(y, x), rtol=1e-12)
    if n > 1:
        check_derivatives(ours, y, x)


def test_a_cumulative_integral_may_start_with_zero():
    y = np.array([1.0, 3.0, 5.0])
    found = integrate.cumulative_trapezoid(y, initial=0)
    np.testing.assert_array_equal(found, scipy.integrate.cumulative_trapezoid(y, initial=0))
    with pytest.raises(ArgumentError, match="initial None or 0"):
        integrate.cumulative_trapezoid(y, initial=1)
    with pytest.raises(ShapeError, match="as many places in x as samples, 3, required"):
        integrate.simpson(y, [0.0, 1.0])
