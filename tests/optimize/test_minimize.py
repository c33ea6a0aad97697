"""Minima of functions with known ones, by every method; how often the function runs."""

import numpy as np
import pytest

import pullback as pb
from pullback.optimize import minimize

METHODS = [
    *("Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "COBYQA"),
    *("SLSQP", "trust-constr", "dogleg", "trust-ncg", "trust-krylov", "trust-exact"),
]
WITHOUT_DERIVATIVES = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]
every_method = pytest.mark.parametrize("method", METHODS)
OPTIONS = {
    "COBYLA": {"maxiter": 20000},
    "SLSQP": {"ftol": 1e-12},
}


def rosenbrock(x):
    """The minimum is 0, at ones."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def wood(x):
    """Colville's function: the minimum is 0, at ones."""
    return (
        100 * (x[1] - x[0] ** 2) ** 2
        + (1 - x[0]) ** 2
        + 90 * (x[3] - x[2] ** 2) ** 2
        + (1 - x[2]) ** 2
        + 10.1 * ((x[1] - 1) ** 2 + (x[3] - 1) ** 2)
        + 19.8 * (x[1] - 1) * (x[3] - 1)
    )


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


@every_method
def test_every_method_finds_the_minimum_of_rosenbrocks_function(method):
    # dogleg wants a Hessian that is positive definite on its way
    start = np.array([1.1, 1.2, 1.3]) if method == "dogleg" else np.array([1.3, 0.7, 0.8])
    found = minimize(rosenbrock, start, method=method, options=OPTIONS.get(method))
    assert found.success
    assert found.fun < (1e-2 if method == "COBYLA" else 1e-7)
    np.testing.assert_allclose(found.x, np.ones(3), atol=0.2 if method == "COBYLA" else 3e-4)


@pytest.mark.parametrize("method", ["BFGS", "trust-ncg", "trust-exact", "trust-krylov"])
def test_the_minimum_of_woods_function_is_found(method):
    found = minimize(wood, np.array([-3.0, -1.0, -3.0, -1.0]), method=method)
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-4)


def test_the_default_methods_are_scipys():
    assert "hess_inv" in minimize(rosenbrock, np.zeros(2))  # BFGS
    bounded = minimize(rosenbrock, np.zeros(2), bounds=[(0, 0.5), (None, None)])
    np.testing.assert_allclose(bounded.x, [0.5, 0.25], atol=1e-6)
    constraint = {"type": "eq", "fun": lambda x: x.sum() - 1}
    constrained = minimize(rosenbrock, np.zeros(2), constraints=constraint)
    assert "multipliers" in constrained  # SLSQP
    assert abs(constrained.x.sum() - 1) < 1e-8


@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B", "TNC", "SLSQP"])
def test_value_and_gradient_take_one_call_for_each_point(method):
    function = Counted(rosenbrock)
    found = minimize(function, np.array([1.3, 0.7, 0.8]), method=method)
    assert function.calls == found.nfev


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-exact"])
def test_second_derivatives_take_one_further_call_for_each_point(method):
    function = Counted(rosenbrock)
    found = minimize(function, np.array([1.3, 0.7, 0.8]), method=method)
    # SciPy's nhev counts products, of which there are several at a point.
    assert found.nfev < function.calls <= 2 * found.nfev


@pytest.mark.parametrize("method", WITHOUT_DERIVATIVES)
def test_a_method_without_derivatives_takes_a_function_that_has_none(method):
    def distance(x):
        return float((np.asarray(x) - 1.0) @ (np.asarray(x) - 1.0))

    found = minimize(distance, np.zeros(2), method=method)
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-2)


def test_a_method_of_ones_own_gets_all_derivatives():
    def newton(fun, x, args, jac, hess, hessp, **_):
        for _ in range(20):
            matrix = hess(x)
            np.testing.assert_allclose(hessp(x, np.eye(2)[0]), matrix[:, 0])
            x = x - np.linalg.solve(matrix, jac(x))
        return pytest.importorskip("scipy.optimize").OptimizeResult(x=x, fun=fun(x), jac=jac(x))

    found = minimize(rosenbrock, np.array([1.2, 1.2]), method=newton)
    np.testing.assert_allclose(found.x, [1.0, 1.0], rtol=1e-10)


def test_arguments_go_to_the_function():
    def distance(x, center, power):
        return (abs(x - center) ** power).sum()

    center = np.array([1.0, -2.0])
    found = minimize(distance, np.zeros(2), (center, 2), "BFGS")
    np.testing.assert_allclose(found.x, center, atol=1e-6)
    alone = minimize(lambda x, c: (x - c) ** 2, 0.0, 3.0)
    assert abs(alone.x - 3.0) < 1e-6


def test_tolerance_and_options_are_scipys():
    loose = minimize(rosenbrock, np.zeros(3), method="BFGS", tol=1.0)
    tight = minimize(rosenbrock, np.zeros(3), method="BFGS", tol=1e-9)
    assert loose.nit < tight.nit
    short = minimize(rosenbrock, np.zeros(3), method="BFGS", options={"maxiter": 2})
    assert (short.nit, short.success) == (2, False)


def test_an_infinite_number_marks_what_is_outside_of_the_domain():
    def cost(x):
        return float("inf") if x <= 0 else x - pb.log(x)

    for method in ("trust-exact", "Nelder-Mead"):
        assert abs(minimize(cost, 3.0, method=method).x - 1.0) < 1e-4


def test_an_operation_without_a_second_derivative_will_do_for_methods_of_first_order():
    class Square(pb.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x=x)
            return x * x

        @staticmethod
        @pb.once_differentiable
        def backward(ctx, grad_output):
            return {"x": 2 * ctx.saved_variables.x * grad_output}

    def cost(x):
        return Square.apply(x - 2.0).sum()

    np.testing.assert_allclose(minimize(cost, np.zeros(2), method="SLSQP").x, [2.0, 2.0])
    with pytest.raises(pb.AutogradError, match="Square"):
        minimize(cost, np.zeros(2), method="trust-exact")


def test_the_errors_of_the_function_reach_the_caller():
    def failing(x):
        raise KeyError("mine")

    for method in ("BFGS", "COBYLA", "TNC"):
        with pytest.raises(KeyError, match="mine"):
            minimize(failing, np.zeros(2), method=method)


def test_recording_is_as_before_and_no_gradient_is_left_in_what_is_closed_over():
    scale = pb.tensor([2.0, 3.0], requires_grad=True, dtype=pb.float64)
    with pb.no_grad():
        minimize(lambda x: (scale * x * x).sum(), np.ones(2))
    assert scale.grad is None
    assert pb.is_grad_enabled()


def test_a_tensor_that_gets_no_gradient_warns():
    theta = pb.tensor([1.0, 2.0], requires_grad=True, dtype=pb.float64)
    for method in ("BFGS", "Nelder-Mead"):
        with pytest.warns(pb.UntrackedTensorWarning, match=r"pullback\.implicit has solutions"):
            found = minimize(lambda x: ((x - theta) ** 2).sum(), np.zeros(2), method=method)
        np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-4)
