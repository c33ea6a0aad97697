"""Problems of Hock and Schittkowski (1981), doi:10.1007/978-3-642-48320-2, with their optima."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import optimize

import pullback as pb
from pullback.optimize import minimize

INF = np.inf


class Problem(NamedTuple):
    """A problem: equalities are 0, inequalities at least 0."""

    fun: object
    start: list
    optimum: list
    value: float
    equal: object = None
    atleast: object = None
    bounds: object = None


def hs71_product(x):
    return x[0] * x[1] * x[2] * x[3] - 25


def rosen_suzuki(x):
    """The inequalities of problem 43."""
    a, b, c, d = x[0], x[1], x[2], x[3]
    return pb.stack(
        [
            8 - a * a - b * b - c * c - d * d - a + b - c + d,
            10 - a * a - 2 * b * b - c * c - 2 * d * d + a + d,
            5 - 2 * a * a - b * b - c * c - 2 * a + b + d,
        ]
    )


PROBLEMS = {
    1: Problem(
        lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2,
        *([-2.0, 1.0], [1.0, 1.0], 0.0),
        bounds=[(None, None), (-1.5, None)],
    ),
    6: Problem(
        lambda x: (1 - x[0]) ** 2,
        *([-1.2, 1.0], [1.0, 1.0], 0.0),
        equal=lambda x: 10 * (x[1] - x[0] ** 2),
    ),
    7: Problem(
        lambda x: pb.log(1 + x[0] ** 2) - x[1],
        *([2.0, 2.0], [0.0, 3**0.5], -(3**0.5)),
        equal=lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4,
    ),
    21: Problem(
        lambda x: 0.01 * x[0] ** 2 + x[1] ** 2 - 100,
        *([5.0, -1.0], [2.0, 0.0], -99.96),
        atleast=lambda x: 10 * x[0] - x[1] - 10,
        bounds=[(2, 50), (-50, 50)],
    ),
    22: Problem(
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        *([2.0, 2.0], [1.0, 1.0], 1.0),
        atleast=lambda x: pb.stack([2 - x.sum(), x[1] - x[0] ** 2]),
    ),
    28: Problem(
        lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2,
        *([-4.0, 1.0, 1.0], [0.5, -0.5, 0.5], 0.0),
        equal=lambda x: x[0] + 2 * x[1] + 3 * x[2] - 1,
    ),
    35: Problem(
        lambda x: (
            (9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2)
            + (2 * x[0] * x[1] + 2 * x[0] * x[2])
        ),
        *([0.5, 0.5, 0.5], [4 / 3, 7 / 9, 4 / 9], 1 / 9),
        atleast=lambda x: 3 - x[0] - x[1] - 2 * x[2],
        bounds=[(0, None)] * 3,
    ),
    39: Problem(
        lambda x: -x[0],
        *([2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 0.0, 0.0], -1.0),
        equal=lambda x: pb.stack([x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2]),
    ),
    43: Problem(
        lambda x: (x**2 * np.array([1.0, 1.0, 2.0, 1.0]) + x * np.array([-5.0, -5, -21, 7])).sum(),
        *([0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, -1.0], -44.0),
        atleast=rosen_suzuki,
    ),
    71: Problem(
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        *([1.0, 5.0, 5.0, 1.0], [1.0, 4.7429994, 3.8211503, 1.3794082], 17.0140173),
        equal=lambda x: (x * x).sum() - 40,
        atleast=hs71_product,
        bounds=[(1, 5)] * 4,
    ),
}
every_problem = pytest.mark.parametrize("number", PROBLEMS)


def as_dicts(problem):
    both = [("eq", problem.equal), ("ineq", problem.atleast)]
    return [{"type": kind, "fun": fun} for kind, fun in both if fun is not None]


def as_objects(problem):
    both = [(problem.equal, 0.0), (problem.atleast, INF)]
    return [optimize.NonlinearConstraint(fun, 0, high) for fun, high in both if fun is not None]


def solved(problem, constraints, method, **settings):
    start = np.array(problem.start)
    bounds = problem.bounds
    return minimize(
        problem.fun, start, method=method, bounds=bounds, constraints=constraints, **settings
    )


def check(found, problem, within):
    np.testing.assert_allclose(found.x, problem.optimum, atol=within)
    assert abs(found.fun - problem.value) < within


@every_problem
@pytest.mark.parametrize("form", [as_dicts, as_objects])
def test_slsqp_finds_the_optimum(number, form):
    problem = PROBLEMS[number]
    check(solved(problem, form(problem), "SLSQP", options={"ftol": 1e-13}), problem, 2e-6)


@every_problem
@pytest.mark.parametrize("form", [as_dicts, as_objects])
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # SciPy's, of a linear constraint
def test_trust_constr_finds_the_optimum(number, form):
    problem = PROBLEMS[number]
    found = solved(problem, form(problem), "trust-constr", options={"maxiter": 3000})
    check(found, problem, 1e-3)


@pytest.mark.parametrize("number", [22, 35, 43])
@pytest.mark.parametrize("method", ["COBYLA", "COBYQA"])
@pytest.mark.parametrize("form", [as_dicts, as_objects])
def test_methods_without_derivatives_find_the_optimum(number, method, form):
    problem = PROBLEMS[number]
    check(solved(problem, form(problem), method, tol=1e-7), problem, 1e-3)


def test_second_derivatives_of_constraints_are_exact():
    # With exact ones Newton's method needs few steps; SciPy's approximation takes three times them.
    problem = PROBLEMS[71]
    exact = solved(problem, as_objects(problem), "trust-constr")
    by_steps = [
        optimize.NonlinearConstraint(c.fun, c.lb, c.ub, hess=optimize.SR1())
        for c in as_objects(problem)
    ]
    approximate = solved(problem, by_steps, "trust-constr")
    assert exact.nit < approximate.nit


def test_linear_constraints_go_by_the_numbers_in_order():
    budget = optimize.LinearConstraint([[1.0, 1.0, 1.0]], 3.0, 3.0)
    cost = lambda p: ((p["a"] - 1) ** 2).sum() + (p["b"] - 4) ** 2  # noqa: E731
    for method in ("SLSQP", "trust-constr"):
        start = {"a": np.zeros(2), "b": 0.0}
        found = minimize(cost, start, method=method, constraints=budget)
        np.testing.assert_allclose(found.x["a"], [0.0, 0.0], atol=1e-6)
        assert abs(found.x["b"] - 3.0) < 1e-6


def test_constraints_get_containers_and_arguments():
    circle = {"type": "eq", "fun": lambda p, r: p["x"] ** 2 + p["y"] ** 2 - r**2, "args": (2.0,)}
    found = minimize(lambda p: -p["x"] - p["y"], {"x": 1.0, "y": 0.0}, constraints=[circle])
    assert abs(found.x["x"] - 2**0.5) < 1e-5
    assert abs(found.x["y"] - 2**0.5) < 1e-5


def test_a_constraint_may_have_results_in_a_container():
    both = {"type": "ineq", "fun": lambda x: {"sum": 2 - x.sum(), "each": 1.5 - x}}
    found = minimize(lambda x: -(x[0] * 2 + x[1]), np.zeros(2), constraints=both)
    np.testing.assert_allclose(found.x, [1.5, 0.5], atol=1e-7)


def test_a_constraint_with_a_jacobian_of_its_own_keeps_it():
    asked = []

    def own(p):
        asked.append(p)
        return {"y": 4 * p["y"], "x": 2 * p["x"]}  # found by name

    disc = lambda p: p["x"] ** 2 + 2 * p["y"] ** 2 - 4  # noqa: E731
    for constraint in (
        {"type": "eq", "fun": disc, "jac": own},
        optimize.NonlinearConstraint(disc, 0, 0, jac=own),
    ):
        asked.clear()
        start = {"x": 1.0, "y": 0.0}
        found = minimize(lambda p: -p["x"] - p["y"], start, constraints=constraint)
        assert abs(found.x["x"] - (8 / 3) ** 0.5) < 1e-5
        assert abs(found.x["y"] - (2 / 3) ** 0.5) < 1e-5
        assert asked
        assert set(asked[0]) == {"x", "y"}


def test_a_constraint_runs_once_for_each_point():
    calls = []

    def constraint(x):
        calls.append(1)
        return (x * x).sum() - 1

    condition = {"type": "eq", "fun": constraint}
    found = minimize(lambda x: x.sum(), np.array([1.0, 0.5]), constraints=condition)
    assert len(calls) <= found.nfev + 1
