"""`pb.interop.scipy.integrate`: SciPy's numbers, with derivatives of first and second order."""

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
    DTypeError,
    ShapeError,
    UntrackedTensorWarning,
)

integrate = pb.interop.scipy.integrate
METHODS = ["RK45", "RK23", "DOP853", "Radau", "BDF"]
IMPLICIT = ["Radau", "BDF", "LSODA"]
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
    # SciPy solves the equations of implicit steps to a part of the tolerance, not to rounding.
    rtol = 1e-6 if method in IMPLICIT else 1e-10
    np.testing.assert_allclose(found.y, expected.y, rtol=rtol, atol=rtol)
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
    rtol = 1e-3 if method in IMPLICIT else 1e-9
    np.testing.assert_allclose(found.sol(T_EVAL).detach(), expected.sol(T_EVAL), rtol=rtol)
    np.testing.assert_allclose(found.sol(0.7).detach(), expected.sol(0.7), rtol=rtol)
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


def test_a_list_of_tensors_and_numbers_is_a_slope_and_a_start():
    speed = pb.tensor(2.0, dtype=pb.float64, requires_grad=True)

    def fall(t, y):
        return [y[1], -9.81]

    height = integrate.solve_ivp(fall, (0.0, 0.5), [0.0, speed]).y[0, -1]
    assert height.item() == pytest.approx(1.0 - 9.81 / 8, rel=1e-12)
    assert pb.autograd.grad(height, speed)[0].item() == pytest.approx(0.5)
    found = integrate.solve_ivp(lambda t, y: [0.1], (0.0, 1.0), [0.0]).y[0, -1]
    assert found == pytest.approx(0.1, rel=1e-14)


def test_what_solve_ivp_cannot_do_is_refused():
    def decay(t, y):
        return -y

    with pytest.raises(ArgumentError, match="a method of RK23, RK45, DOP853, Radau, BDF, LSODA"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], "Euler")
    with pytest.raises(ArgumentError, match=r"(?s)options of Radau.*got lband.*jac_sparsity"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], "LSODA", lband=1)
    with pytest.raises(ArgumentError, match=r"times of one axis from 0.0 to 1.0, in order, req"):
        integrate.solve_ivp(decay, (0.0, 1.0), [1.0], t_eval=[0.5, 1.5])
    with pytest.raises(ShapeError, match="y0 of one axis required"):
        integrate.solve_ivp(decay, (0.0, 1.0), [[1.0]])
    with pytest.raises(ArgumentTypeError, match="a function required"):
        integrate.solve_ivp(1.0, (0.0, 1.0), [1.0])
    with pytest.raises(AttributeError, match="one of cumulative_trapezoid"):
        _ = integrate.dblquad


# -- stiff equations -------------------------------------------------------------------------------
def robertson(t, y, fast):
    """Three substances whose rates differ by nine powers of ten."""
    xp = pb if isinstance(y, pb.Tensor) else np
    first, second, third = 0.04 * y[0], 1e4 * y[1] * y[2], fast * y[1] * y[1]
    return xp.stack([second - first, first - second - third, third])


@pytest.mark.parametrize("method", IMPLICIT)
def test_a_stiff_equation_has_the_gradient_of_differences_of_precise_solutions(method):
    def ends(fast, **bounds):
        start = [1.0, 0.0, 0.0]
        return scipy.integrate.solve_ivp(robertson, (0, 1e3), start, method, args=(fast,), **bounds)

    fast = pb.tensor(3e7, dtype=pb.float64, requires_grad=True)
    found = integrate.solve_ivp(
        robertson, (0.0, 1e3), [1.0, 0.0, 0.0], method, args=(fast,), rtol=1e-6, atol=1e-10
    )
    expected = ends(3e7, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(found.y[:, -1].detach(), expected.y[:, -1], rtol=1e-5)
    (g,) = pb.autograd.grad(found.y[2, -1], fast)
    precise = {"rtol": 1e-11, "atol": 1e-14}
    above, below = (ends(3e7 * (1 + h), **precise).y[2, -1] for h in (1e-3, -1e-3))
    assert g.item() * 3e7 == pytest.approx((above - below) / 2e-3, rel=1e-4)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_a_jacobian_that_is_given_finds_the_steps_that_scipy_takes_with_it(method):
    def jac(t, y, damping, drive):
        xp = pb if isinstance(y, pb.Tensor) else np
        return xp.stack([xp.stack([y[0] * 0, y[0] * 0 + 1]), xp.stack([-xp.cos(y[0]), -damping])])

    damping = np.array(0.3)
    for given in (jac, np.array([[0.0, 1.0], [-0.8, -0.3]])):
        settings = {"method": method, "args": (damping, 0.8), "jac": given}
        expected = scipy.integrate.solve_ivp(swing, (0.0, 2.0), Y0, **settings)
        settings["args"] = (pb.tensor(damping, requires_grad=True), 0.8)
        found = integrate.solve_ivp(swing, (0.0, 2.0), Y0, **settings)
        assert (found.nfev, found.njev, found.nlu) == (expected.nfev, expected.njev, expected.nlu)
        np.testing.assert_allclose(found.y.detach(), expected.y, rtol=1e-3, atol=1e-4)


def test_a_function_of_columns_is_called_with_one():
    def decay(t, y):
        assert y.shape[1:] == (1,)
        return -y

    found = integrate.solve_ivp(decay, (0.0, 1.0), Y0, vectorized=True, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.y[:, -1], Y0 * np.exp(-1), rtol=1e-6)


def test_an_equation_of_a_step_that_has_no_solution_is_an_error():
    def misleading(t, y):  # what its gradient says is not how it changes
        return pb.surrogate.reverse_gradient(y**2, 1.0) * -1e3

    settings = {"first_step": 0.1, "atol": 10.0}
    with pytest.raises(ConvergenceError, match="the equation of a step to be solved to rounding"):
        integrate.solve_ivp(misleading, (0.0, 0.1), [1.0], "Radau", **settings)


# -- what has no solution --------------------------------------------------------------------------
@pytest.mark.parametrize("method", [*METHODS, "LSODA"])
def test_a_slope_that_is_nan_from_the_start_is_an_error_and_no_endless_loop(method):
    required = rf"finite slopes of fun required by the method {method}, got nan at t = 0.5\n.*root"
    with pytest.raises(ArgumentError, match=required):
        integrate.solve_ivp(lambda t, y: y * np.nan, (0.5, 2.0), [1.0], method)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy's own
@pytest.mark.parametrize("method", ["RK45", "Radau", "LSODA"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_slope_that_is_not_finite_later_ends_the_solution_as_in_scipy(method, value):
    def fun(t, y):
        return -y if t < 0.5 else y * value

    y0 = pb.tensor([1.0], dtype=pb.float64, requires_grad=True)
    found = integrate.solve_ivp(fun, (0.0, 2.0), y0, method)
    name = "Radau" if method == "LSODA" else method
    expected = scipy.integrate.solve_ivp(fun, (0.0, 2.0), [1.0], name)
    assert (found.status, found.success, found.message) == (-1, False, expected.message)
    np.testing.assert_allclose(found.t, expected.t, rtol=1e-12)
    (g,) = pb.autograd.grad(found.y[0, -1], y0)
    assert g.item() == pytest.approx(np.exp(-0.5), rel=1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy's own
@pytest.mark.parametrize("method", ["BDF", "Radau"])
def test_a_jacobian_that_is_not_finite_is_an_error_that_names_the_time(method):
    def fun(t, y):
        return -y if t < 0.5 else y * np.inf

    if method == "BDF":  # which looks for a Jacobian where it could not step
        with pytest.raises(ArgumentError, match=r"finite slopes.*method BDF, got inf at t = 0.56"):
            integrate.solve_ivp(fun, (0.0, 2.0), [1.0], method)
    with pytest.raises(ArgumentError, match=f"elements of jac required by the method {method} at"):
        integrate.solve_ivp(fun, (0.0, 2.0), [1.0], method, jac=lambda t, y: [[np.nan]])
    with pytest.raises(ArgumentError, match="finite slopes of fun and their derivatives required"):
        integrate.solve_ivp(lambda t, y: y * np.inf, (0.0, 2.0), [1.0], method)


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_a_solution_that_grows_beyond_bounds_is_an_error_that_names_the_time(method):
    with pytest.raises(ConvergenceError, match=r"method \w+, got an end at t = (0.99|1.0)"):
        integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0], method)


def test_an_infinite_span_is_solved_up_to_an_event_and_refused_without():
    def low(t, y):
        return y[0] - 0.5

    low.terminal = True
    start = pb.tensor(1.0, dtype=pb.float64, requires_grad=True)
    settings = {"events": low, "rtol": 1e-8, "atol": 1e-8}
    found = integrate.solve_ivp(lambda t, y: -y, (start, np.inf), [1.0], **settings)
    assert found.t_events[0][0].item() == pytest.approx(1.0 + np.log(2), rel=1e-7)
    (g,) = pb.autograd.grad(found.t_events[0][0], start)
    assert g.item() == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(ArgumentError, match=r"finite times required in t_span, got 0, inf\n.*term"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, np.inf), [1.0])


def test_complex_values_are_solved_by_bdf_and_refused_by_methods_of_real_numbers():
    y0, rate = np.array([1.0 + 0.5j]), np.array(-0.3 + 2j)
    settings = {"max_step": 0.25, "first_step": 0.25, "rtol": 1e-1, "atol": 1e-1}

    def end(y0, rate):
        return integrate.solve_ivp(lambda t, y: rate * y, (0, 1.0), y0, "BDF", **settings).y[0, -1]

    expected = scipy.integrate.solve_ivp(lambda t, y: rate * y, (0, 1.0), y0, "BDF", **settings)
    assert complex(end(y0, rate)) == pytest.approx(expected.y[0, -1], rel=1e-9)
    check_derivatives(end, y0, rate)
    for method in ("Radau", "LSODA"):
        required = f"a real y0 required by the method {method}, got complex128\nhint: method='BDF'"
        with pytest.raises(DTypeError, match=required):
            integrate.solve_ivp(lambda t, y: rate * y, (0, 1.0), y0, method)


WRONG = {
    "two times required as t_span, got 3\n.*t_eval": {"t_span": (0.0, 1.0, 2.0)},
    "two times required as t_span, got float": {"t_span": 1.0},
    "real numbers required as t_span, got complex128": {"t_span": (0.0, 1j)},
    "single numbers required in t_span": {"t_span": (0.0, [1.0, 2.0])},
    "finite y0 required": {"y0": [1.0, np.nan]},
    r"a slope of shape \(2,\), that of y0, .*, got shape \(3,\)": {"fun": lambda t, y: np.ones(3)},
    r"a slope of shape \(2,\).*got shape \(2, 1\)": {"fun": lambda t, y: y[:, None]},
    r"a slope of shape \(2,\).*got shape \(\)": {"fun": lambda t, y: y[0], "method": "LSODA"},
    "real slopes required of fun for a real y0, got complex": {"fun": lambda t, y: 1j * y},
    "numbers required as what fun returns, got str": {"fun": lambda t, y: "ab"},
    "numbers required as y0, got NoneType": {"y0": None},
    "numbers required as first_step, got str": {"first_step": "a"},
    "numbers required of fun, got None": {"fun": lambda t, y: None},
    "a positive number required as first_step, got 0": {"first_step": 0.0},
    "a first_step of 1 or less required": {"first_step": 5.0},
    "a positive number required as max_step": {"max_step": np.nan},
    "finite tolerances of 0 or more required as atol": {"atol": [1e-3, -1.0]},
    "one number or one of each of y0 required as rtol": {"rtol": [1e-3, 1e-3, 1e-3]},
    r"jac of shape \(2, 2\) required": {"jac": np.ones((3, 3)), "method": "BDF"},
    "a tuple required as args, got float": {"args": 2.0},
    r".* in t_eval, got 5\n": {"t_eval": [0.0, 5.0]},
    r".* in t_eval, got nan\n": {"t_eval": [np.nan]},
}


@pytest.mark.parametrize("required", list(WRONG))
def test_what_does_not_fit_is_an_error_of_ours_that_names_the_argument(required):
    settings = {"fun": lambda t, y: -y, "t_span": (0.0, 1.0), "y0": [1.0, 2.0], **WRONG[required]}
    with pytest.raises(pb.AutogradError, match=f"(?s)^solve_ivp: {required}"):
        integrate.solve_ivp(**settings)


def test_one_slope_for_all_values_counts_for_each_as_in_scipy():
    found = integrate.solve_ivp(lambda t, y: 2.0, (0.0, 1.0), [1.0, 3.0])
    np.testing.assert_allclose(found.y[:, -1], [3.0, 5.0], rtol=1e-7)


# -- events ----------------------------------------------------------------------------------------
def ground(t, y, *args):
    return y[0]


def top(t, y, *args):
    return y[1]


ground.terminal, ground.direction = True, -1


def thrown(t, y, gravity, drag):
    xp = pb if isinstance(y, pb.Tensor) else np
    return xp.stack([y[1], -gravity - drag * y[1]])


@pytest.mark.parametrize("method", [*METHODS, "LSODA"])
@pytest.mark.parametrize("t_eval", [None, [0.1, 0.5, 4.0]])
def test_events_are_scipys(method, t_eval):
    start = np.array([0.1, 3.0])
    settings = {"t_eval": t_eval, "args": (9.81, 0.1), "rtol": 1e-6, "events": [top, ground]}
    expected = scipy.integrate.solve_ivp(thrown, (0.0, 5.0), start, method, **settings)
    found = integrate.solve_ivp(thrown, (0.0, 5.0), start, method, **settings)
    assert (found.status, found.message) == (1, expected.message)
    if method != "LSODA":
        np.testing.assert_allclose(found.t, expected.t, rtol=1e-5)
        np.testing.assert_allclose(found.y, expected.y, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(found.t_events, expected.t_events, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    for ours, theirs in zip(found.y_events, expected.y_events, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", [*METHODS, "LSODA"])
def test_the_time_of_an_event_and_the_state_there_have_two_derivatives(method):
    def landing(start, gravity, drag, limit):
        def near(t, y, *args):
            return y[0] - limit * t

        near.terminal = 2
        near.direction = -1
        found = integrate.solve_ivp(
            thrown,
            (0.0, 2.0),
            start,
            method,
            args=(gravity, drag),
            events=[top, near, ground],
            max_step=0.05,
            first_step=0.05,
            rtol=1e-1,
            atol=1e-1,
        )
        (times, near_times, ends), (states, _, _) = found.t_events, found.y_events
        parts = [times, near_times, ends, states.reshape((-1,)), found.y[:, -1], found.t[-1:]]
        return pb.concat(parts)

    check_derivatives(landing, np.array([0.1, 3.0]), 9.81, 0.1, 0.01)


def test_the_time_of_landing_is_the_one_that_a_formula_gives():
    def landing(v):
        start = v * pb.asarray(np.array([0.0, 1.0]))
        found = integrate.solve_ivp(thrown, (0.0, 5.0), start, args=(9.81, 0.0), events=ground)
        return found.t_events[0][0]

    assert landing(3.0).item() == pytest.approx(2 * 3 / 9.81, rel=1e-9)
    h = 1e-4
    slope = (landing(3 + h) - landing(3 - h)).item() / (2 * h)
    assert pb.grad(landing)(3.0) == pytest.approx(slope, rel=1e-7)


def test_an_event_may_end_the_solution_backwards_in_time():
    def event(t, y):
        return y[0] - 2.0

    event.terminal = True
    settings = {"events": event, "rtol": 1e-8, "atol": 1e-8, "dense_output": True}
    found = integrate.solve_ivp(lambda t, y: -y, (0.0, -5.0), [1.0], **settings)
    assert found.t[-1] == found.t_events[0][0] == pytest.approx(-np.log(2), rel=1e-6)
    assert found.y[0, -1] == pytest.approx(2.0, rel=1e-12)
    assert found.sol(-0.3)[0] == pytest.approx(np.exp(0.3), rel=1e-5)


def test_events_that_do_not_happen_are_empty_arrays():
    found = integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], events=lambda t, y: y[0] + 1)
    assert found.status == 0
    assert (found.t_events[0].shape, found.y_events[0].shape) == ((0,), (0,))


def test_an_event_that_nothing_is_derived_from_needs_no_slope():
    found = integrate.solve_ivp(
        lambda t, y: -y, (0.0, 1.0), [1.0], events=lambda t, y: y[0].item() - 0.5
    )
    assert found.t_events[0] == pytest.approx([np.log(2)], rel=1e-3)


@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF"])
def test_a_solution_over_no_time_has_the_slope_as_its_derivative(method):
    def end(t):
        return integrate.solve_ivp(lambda t, y: -2 * t * y, (1.0, t), [3.0], method).y[0, -1]

    found = integrate.solve_ivp(lambda t, y: -y, (1.0, 1.0), [3.0], method)
    np.testing.assert_array_equal(found.y, [[3.0, 3.0]])
    assert pb.grad(end)(1.0) == pytest.approx(-6.0)
    assert pb.grad(pb.grad(end))(1.0) == pytest.approx(6.0)  # -2 y + 4 t^2 y


def test_an_event_without_a_slope_or_of_another_shape_is_an_error():
    def jumps(t, y):
        return 1.0 if y[0].item() > 0.5 else -1.0

    tracked = pb.tensor([1.0], dtype=pb.float64, requires_grad=True)
    without_slope = r"(?s)crosses zero with a slope.*without float"
    for event in (jumps, lambda t, y: y[0].item() - 0.5):
        with (
            pytest.warns(UntrackedTensorWarning),
            pytest.raises(ArgumentError, match=without_slope),
        ):
            integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), tracked, events=event)
    with pytest.raises(ShapeError, match="one real number required of the event <lambda>"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0, 2.0], events=lambda t, y: y)
    with pytest.raises(ArgumentTypeError, match="functions required in events, got float"):
        integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], events=[1.0])


RATES, STARTS = np.array([0.5, 1.0, 3.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
MESSAGE = "The equation was solved for each sample: see status."


def decays(rate, start, method="RK45", t_eval=(0.0, 0.5, 1.0), **settings):
    settings = {"t_eval": t_eval, **CLOSE, **settings}
    return integrate.solve_ivp(
        lambda t, y, rate: -rate * y, (0.0, 1.0), start, method, args=(rate,), **settings
    )


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_vmap_solves_for_each_sample_and_its_gradients_are_those_of_a_loop(method):
    found = pb.vmap(lambda rate, start: decays(rate, start, method).y)(RATES, STARTS)
    times = np.array([0.0, 0.5, 1.0])
    expected = STARTS[:, :, None] * np.exp(-RATES[:, None, None] * times)
    np.testing.assert_allclose(found, expected, rtol=1e-6)

    def end(rate, start):
        return decays(rate, start, method).y[0, -1]

    slopes = -STARTS[:, 0] * np.exp(-RATES)
    np.testing.assert_allclose(pb.vmap(pb.grad(end))(RATES, STARTS), slopes, rtol=1e-6)
    of_sum = pb.grad(lambda rates: pb.vmap(end)(rates, STARTS).sum())
    np.testing.assert_allclose(of_sum(RATES), slopes, rtol=1e-6)


def test_what_solve_ivp_says_has_a_value_for_each_sample_of_vmap():
    def counts(rate):
        found = decays(rate, [1.0])
        assert (found.message, found.sol, found.t_events) == (MESSAGE, None, None)
        return found.t, found.status, found.success, found.nfev

    times, status, success, calls = pb.vmap(counts)(RATES)
    np.testing.assert_array_equal(times, [[0.0, 0.5, 1.0]] * 3)
    assert (status.tolist(), success.tolist()) == ([0, 0, 0], [True, True, True])
    assert calls.tolist() == [decays(rate, [1.0]).nfev for rate in RATES]


def test_vmap_takes_events_and_times_that_differ_between_samples():
    def low(t, y, rate):
        return y[0] - 0.4

    def time(rate):
        settings = {"events": low, "t_eval": [0.0], **CLOSE}
        fun = lambda t, y, rate: -rate * y  # noqa: E731
        return integrate.solve_ivp(fun, (0.0, 9.0), [1.0], args=(rate,), **settings).t_events[0][0]

    expected = -np.log(0.4) / RATES
    np.testing.assert_allclose(pb.vmap(time)(RATES), expected, rtol=1e-7)
    np.testing.assert_allclose(pb.vmap(pb.grad(time))(RATES), -expected / RATES, rtol=1e-5)
    times = STARTS / 8
    found = pb.vmap(lambda t: decays(2.0, [1.0], t_eval=t).y[0])(times)
    np.testing.assert_allclose(found, np.exp(-2 * times), rtol=1e-7)


def test_a_batch_that_cannot_be_solved_is_an_error_that_names_what_to_do():
    def end(rate):
        return integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), [1.0]).y[0, -1]

    with pytest.raises(BatchedValueError, match=r"solve_ivp.*closes over it\n.*over in args"):
        pb.vmap(end)(RATES)
    with pytest.raises(BatchedValueError, match=r"solve_ivp: as many times and.*\n.*give t_eval"):
        pb.vmap(lambda rate: decays(rate, [1.0], t_eval=None).y[0, -1])(RATES)
    with pytest.raises(BatchedValueError, match=r"dense_output=False required in vmap"):
        pb.vmap(lambda rate: decays(rate, [1.0], dense_output=True).y[0, -1])(RATES)


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
