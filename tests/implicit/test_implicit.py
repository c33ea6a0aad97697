"""Solutions of equations: their values, and derivatives of the solution whatever found it."""

import numpy as np
import pytest

import pullback as pb
from pullback import implicit

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
THETA = np.array([0.7, -0.4, 1.2])
TIMES = np.array([0.0, 0.4, 1.0])


def fixed(theta):
    return implicit.fixed_point(lambda x, c: 0.3 * np.sin(x) * c + c, np.zeros(3), theta)


def rooted(theta):
    return implicit.root(lambda x, c: x**3 + x + (A @ x) * 0.1 - c, np.ones(3), theta)


def solved(theta):
    return implicit.linear_solve(lambda x, c: A @ x + c * c * x, np.cos(theta), theta)


def least(theta):
    def cost(x, c):
        return ((x - c) ** 4).sum() / 4 + (x * x * np.exp(c)).sum() + (x @ (A @ x)) / 2

    return implicit.argmin(cost, np.zeros(3), theta)


def integrated(theta):
    rates = lambda y, t, c: np.sin(c * y) - t * y  # noqa: E731
    return implicit.odeint(rates, np.cos(theta), TIMES, theta)


def interpolated(theta):
    points = np.array([-1.0, 0.1, 0.9, 2.0])
    return implicit.interp(theta, points * 1.1, np.array([0.0, 2.0, 1.0, 5.0]))


SOLVERS = [fixed, rooted, solved, least, integrated, interpolated]
every = pytest.mark.parametrize("solver", SOLVERS)


# ---- derivatives ---------------------------------------------------------------------------------
@every
def test_the_checker_finds_the_derivatives_right(solver):
    parts = ["first", "second_order"]
    report = pb.check.gradcheck(solver, (THETA,), only=parts, rtol=1e-5, raise_exception=False)
    assert report.ok, report


@every
def test_forward_mode_agrees_with_reverse_mode(solver):
    v = np.array([1.0, -2.0, 0.5])
    value, tangent = pb.jvp(solver, (THETA,), (v,))
    np.testing.assert_allclose(value, solver(THETA), rtol=1e-9)
    np.testing.assert_allclose(tangent, pb.jacrev(solver)(THETA) @ v, rtol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS[:-1])
def test_hessian_products_agree_with_differences_of_the_gradient(solver):
    def total(theta):
        return (solver(theta) ** 2).sum()

    v, h = np.array([1.0, -2.0, 0.5]), 1e-5
    expected = (pb.grad(total)(THETA + h * v) - pb.grad(total)(THETA - h * v)) / (2 * h)
    np.testing.assert_allclose(pb.hvp(total)(THETA, v), expected, rtol=2e-5, atol=1e-7)


def test_closed_over_leaves_get_gradients():
    w = pb.tensor([2.0, 5.0], dtype=pb.float64, requires_grad=True)
    x = implicit.root(lambda x: x * x - w, np.ones(2))
    x.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 0.5 / np.sqrt([2.0, 5.0]))


def test_a_start_has_no_derivative():
    x0 = pb.tensor([1.0], dtype=pb.float64, requires_grad=True)
    assert not implicit.root(lambda x: x * x - 2, x0).requires_grad


def test_an_integral_has_derivatives_by_its_times():
    def end(t):
        return implicit.odeint(lambda y, s: y * 0 + s * s, np.array(0.0), t)[-1]

    assert end(TIMES) == pytest.approx(1 / 3)
    assert pb.grad(end)(np.array([1.0, 2.0])).tolist() == pytest.approx([-1.0, 4.0])


def test_an_interpolation_has_derivatives_by_its_points_and_values():
    arguments = (np.array([0.5, 2.5, 9.0]), np.array([0.0, 1.0, 3.0]), np.array([1.0, 4.0, 2.0]))
    report = pb.check.gradcheck(implicit.interp, arguments, only=["first", "second_order"])
    assert report.ok


# ---- values --------------------------------------------------------------------------------------
def test_values_are_those_of_closed_forms():
    exact = {"rtol": 1e-12}
    np.testing.assert_allclose(
        implicit.linear_solve(lambda x: A @ x, THETA), np.linalg.solve(A, THETA), **exact
    )
    np.testing.assert_allclose(implicit.fixed_point(np.cos, 1.0), 0.7390851332151607, **exact)
    x = np.linspace(-2, 5, 30)
    points, values = np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0, 7.0])
    np.testing.assert_allclose(implicit.interp(x, points, values), np.interp(x, points, values))
    y = implicit.odeint(
        lambda y, t: np.stack([y[1], -y[0]]), np.array([0.0, 1.0]), np.linspace(0, 6, 7)
    )
    np.testing.assert_allclose(y[:, 0], np.sin(np.linspace(0, 6, 7)), atol=1e-6)
    y = implicit.odeint(lambda y, t: -y, 1.0, np.array([1.0, 0.0]))
    np.testing.assert_allclose(y, [1.0, np.e], rtol=1e-6)


def test_numbers_give_numbers_arrays_arrays_and_tensors_tensors():
    assert isinstance(implicit.root(lambda x: x - 1, 0.0), float)
    assert isinstance(implicit.root(lambda x: x - 1, np.zeros(1)), np.ndarray)
    found = implicit.root(lambda x: x - 1, pb.zeros(1))
    assert (found.dtype, found.tolist()) == (pb.float32, [1.0])


def test_a_minimum_is_found_from_where_the_hessian_is_not_positive():
    found = implicit.argmin(lambda x: ((x * x - 1) ** 2).sum(), np.array([0.1, -0.1]))
    np.testing.assert_allclose(abs(found), [1.0, 1.0])


# ---- misuse --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: implicit.fixed_point(lambda x: 2 * x + 1, 1.0, max_iter=5),
            "fixed_point: .* within 5",
        ),
        (lambda: implicit.root(lambda x: x * x + 1, 0.7), "root: .* to converge within 100"),
        (lambda: implicit.argmin(lambda x: -x * x, 1.0, max_iter=3), "argmin: .* to converge"),
        (lambda: implicit.odeint(lambda y, t: y * y, 1.0, [0.0, 2.0]), "odeint: steps above"),
    ],
    ids=["fixed_point", "root", "argmin", "odeint"],
)
def test_what_does_not_converge_raises(call, message):
    with pytest.raises(pb.errors.ConvergenceError, match=message):
        call()
    assert pb.is_grad_enabled()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: implicit.root(3, 1.0), "root: a function required, got int"),
        (lambda: implicit.root(lambda x: x, 1), "root: floating-point numbers required in x0"),
        (lambda: implicit.odeint(lambda y, t: y, 1, [0.0, 1.0]), "odeint: floating-point numbers"),
        (lambda: implicit.odeint(3, 1.0, [0.0, 1.0]), "odeint: a function required, got int"),
        (lambda: implicit.odeint(lambda y, t: y, 1.0, [0.0, 0.0]), "odeint: increasing or decreas"),
        (
            lambda: implicit.fixed_point(lambda x: x[:1], np.ones(2)),
            r"fixed_point: .* shape \(2,\)",
        ),
        (lambda: implicit.interp(1.0, [0.0, 1.0], [1.0]), "interp: xp and fp of one axis and one"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(pb.AutogradError, match=message):
        call()
