"""Solutions without a derivative, those that look like it, and minima that rounding hides."""

import numpy as np
import pytest

import pullback as pb
from pullback import implicit

RANK_2 = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])

# Functions of a start at a distance from the solution and of a parameter, 2
SINGULAR = {
    "double root": lambda d, a: implicit.root(lambda x, a: (x - a) ** 2, 2 + d, a),
    "double root, expanded": lambda d, a: implicit.root(
        lambda x, a: x * x - 2 * x * a + a * a, 2 + d, a
    ),
    "triple root": lambda d, a: implicit.root(lambda x, a: (x - a) ** 3, 2 + d, a),
    "double root that parts": lambda d, a: implicit.root(
        lambda x, a: x * x - 2 * x + 3 - a, 1 + d, a
    ),
    "double root at 0": lambda d, a: implicit.root(lambda x, a: x * x + 2 - a, d, a),
    "double root at 0, hidden by rounding": lambda d, a: implicit.root(
        lambda x, a: np.cos(x) + 1 - a, d, a
    ),
    "triple root, expanded": lambda d, a: implicit.root(
        lambda x, a: ((x - 3 * a) * x + 3 * a * a) * x - a**3, 2 + d, a
    ),
    "double root in a direction": lambda d, a: implicit.root(
        lambda x, a: np.stack([np.cosh(x[0] + x[1] - 2) + 1 - a, x[0] - x[1] + 2 - a]),
        np.array([1.0 + d, 1.0]),
        a,
    ).sum(),
    "flat minimum": lambda d, a: implicit.argmin(lambda x, a: (x - a) ** 4, 2 + d, a),
    "flat minimum above 0": lambda d, a: implicit.argmin(lambda x, a: (x - a) ** 4 + 1, 2 + d, a),
    "flat in a direction": lambda d, a: implicit.argmin(
        lambda x, a: (x[0] + 3 * x[1] - a) ** 2, np.array([2 + d, 0.0]), a
    ).sum(),
    "singular block": lambda d, a: implicit.root(
        lambda x, a: np.stack([(x[0] - a) ** 2, x[1] - a]), np.array([2 + d, 0.0]), a
    ).sum(),
    "fixed point": lambda d, a: implicit.fixed_point(
        lambda x, a: x - (x - a) ** 3, 2 + min(d, 0.9), a, tol=1e-6, max_iter=10**5
    ),
    "rank": lambda d, a: implicit.linear_solve(
        lambda x, a: RANK_2 @ x * a, RANK_2.sum(axis=1) + d * 0, a
    ).sum(),
}


@pytest.mark.parametrize("distance", [0.0, 1e-9, 0.01, 1.0, 5.0])
@pytest.mark.parametrize("name", SINGULAR)
def test_a_derivative_of_root_or_argmin_where_the_jacobian_is_singular_raises(name, distance):
    with pytest.raises(pb.errors.ConvergenceError, match=r"(?i)a (singular one|Jacobian|singular)"):
        pb.grad(lambda a: SINGULAR[name](distance, a))(2.0)


def test_a_singular_jacobian_raises_in_every_transform():
    def solver(a):
        return implicit.argmin(lambda x, a: (x - a) ** 4, 1.0, a)

    calls = [
        lambda: pb.jvp(solver, (2.0,), (1.0,)),
        lambda: pb.hessian(solver)(2.0),
        lambda: pb.vmap(pb.grad(solver))(np.array([2.0, 3.0])),
    ]
    for call in calls:
        with pytest.raises(pb.errors.ConvergenceError, match="argmin: a Jacobian that can be inv"):
            call()


def test_values_of_root_and_argmin_are_found_where_the_jacobian_is_singular():
    assert implicit.root(lambda x: (x - 2) ** 2, 2.0) == 2.0
    assert implicit.root(lambda x: (x - 2) ** 2, 1.0) == pytest.approx(2.0, abs=1e-9)
    assert implicit.argmin(lambda x: (x - 2) ** 4 + 1, 1.0) == pytest.approx(2.0, abs=1e-5)
    x = implicit.argmin(lambda x: (x[0] + 3 * x[1] - 2) ** 2, np.zeros(2))
    assert x[0] + 3 * x[1] == pytest.approx(2.0)


# The derivative at 1, and a solver with a Jacobian that is small, large or far from constant.
REGULAR = {
    "small x": (0.5e9, lambda a: implicit.root(lambda x, a: x * x - a * 1e-18, 1e-9, a) * 1e18),
    "small F": (1.0, lambda a: implicit.root(lambda x, a: (x - a) * 1e-12, 0.0, a)),
    "units of x": (
        1001.0,
        lambda a: (
            implicit.root(
                lambda x, a: np.stack([x[0] * 1e9 - a, x[1] ** 3 - 1e9 * a**3]), np.ones(2), a
            )
            @ np.array([1e9, 1.0])
        ),
    ),
    "units of x in argmin": (
        2.0,
        lambda a: (
            implicit.argmin(
                lambda x, a: (x[0] * 1e9 - a) ** 2 + (x[1] - a) ** 2 * 1e-6, np.ones(2), a
            )
            @ np.array([1e9, 1.0])
        ),
    ),
    "cancellation": (
        1.0,
        lambda a: implicit.root(lambda x, a: np.exp(x) - 1 - a * 1e-12, 1e-6, a) * 1e12,
    ),
    "nearly a double root": (
        0.5e4,
        lambda a: implicit.root(lambda x, a: (x - 1) ** 2 - a * 1e-8, 2.0, a) * 1e8,
    ),
    "an active bound": (
        0.5,
        lambda a: implicit.fixed_point(
            lambda x, a: np.clip(x - 0.1 * (x - a * np.array([3.0, 0.5, -2.0])), 0, 1),
            np.zeros(3),
            a,
        ).sum(),
    ),
}


@pytest.mark.parametrize("name", REGULAR)
def test_a_derivative_of_root_or_argmin_does_not_depend_on_units(name):
    expected, solver = REGULAR[name]
    assert pb.grad(solver)(1.0) == pytest.approx(expected, rel=1e-6)


# Solutions that are 0 to rounding where the parameter is 1, and their derivative there.
AT_0 = {
    "exp": (implicit.root, lambda x, a: np.exp(x) - a, 1.0),
    "sqrt": (implicit.root, lambda x, a: np.sqrt(x * x + 4) + x - 2 * a, 2.0),
    "log": (implicit.root, lambda x, a: np.log(2 + x) - a * np.log(2), 2 * np.log(2)),
    "least exp": (implicit.argmin, lambda x, a: np.exp(x) - a * x, 1.0),
    "least softplus": (implicit.argmin, lambda x, a: np.logaddexp(x, 0) - a * x / 2, 2.0),
    "least quartic": (implicit.argmin, lambda x, a: (x + 1) ** 4 - 4 * a * x, 1 / 3),
    "contraction": (implicit.fixed_point, lambda x, a: (np.exp(-x) - a) / 2, -1 / 3),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("start", [1.0, -1.0, 0.5, 1e-3, 0.0])
@pytest.mark.parametrize("name", AT_0)
def test_a_derivative_of_root_or_argmin_at_0_is_found_from_every_start(name, start, dtype):
    solver, f, expected = AT_0[name]
    x0, a = (pb.tensor(v, dtype=dtype) for v in (start, 1.0))
    assert pb.grad(lambda a: solver(f, x0, a))(a).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_a_derivative_of_root_or_argmin_is_found_where_some_elements_are_0(seed):
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    x = rng.normal(size=3) * rng.permutation([1.0, 0.0, 1e-17])
    units = 10 ** rng.uniform(-6, 6, size=3)

    def loss(x):
        return np.logaddexp(0.0, A @ x + y).sum() + (x * x).sum() / 4

    def least(b):
        return implicit.argmin(lambda x, b: loss(x * units) - b @ (x * units), x + 0.5, b) * units

    def level(b):
        return (
            implicit.root(lambda x, b: pb.grad(loss)(x * units) - b, (x + 0.1) / units, b) * units
        )

    slope, hessian = pb.grad(loss)(x), pb.hessian(loss)(x)
    for solver in (least, level) if seed % 2 else (level,):
        np.testing.assert_allclose(pb.jacobian(solver)(slope) @ hessian, np.eye(3), atol=1e-6)


@pytest.mark.parametrize("tol", [0.5, 1e-3, 1e-9])
def test_derivatives_of_fixed_point_and_root_do_not_depend_on_the_tolerance(tol):
    def fixed(a):
        return implicit.fixed_point(lambda x, a: np.cos(a * x), 1.0, a, tol=tol)

    def cube_root(a):
        return implicit.root(lambda x, a: x**3 - a, 1.0, a, tol=tol)

    # x = cos(a x) at a = 0.9, by differences of a solution of 50 digits
    assert pb.grad(fixed)(0.9) == pytest.approx(-0.31207016665701337, rel=1e-9)
    assert pb.grad(pb.grad(fixed))(0.9) == pytest.approx(0.13636992226088, rel=1e-9)
    assert pb.grad(pb.grad(cube_root))(8.0) == pytest.approx(-1 / 144, rel=1e-9)


def test_fixed_point_that_runs_off_to_infinity_does_not_converge():
    with np.errstate(all="ignore"), pytest.raises(pb.errors.ConvergenceError):
        implicit.fixed_point(lambda x: x * x, 3.0)


# ---- where rounding hides the minimum ------------------------------------------------------------
@pytest.mark.parametrize("start", [-3.0, -1.0, 0.0, 0.5, 1.0, 3.0])
def test_argmin_stops_where_rounding_hides_the_descent(start):
    found = implicit.argmin(lambda x: x * x + np.exp(x), start)
    assert found == pytest.approx(-0.35173371124919584, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_argmin_of_convex_functions_has_no_gradient_left(seed):
    rng = np.random.default_rng(seed)
    A, b, scale = rng.normal(size=(5, 3)), rng.normal(size=5), 10 ** rng.uniform(-3, 3)
    f = [
        lambda x: np.exp(A @ x + b).sum() + (x * x).sum(),
        lambda x: scale * (np.logaddexp(0.0, A @ x + b).sum() + 0.1 * (x * x).sum()),
        lambda x: np.sqrt(1 + (A @ x - b) ** 2).sum() + scale,
        lambda x: np.cosh(A @ x - b).sum() * scale + 1e3,
    ][seed % 4]
    x = implicit.argmin(f, rng.normal(size=3))
    step = np.linalg.solve(pb.hessian(f)(x), pb.grad(f)(x))
    np.testing.assert_allclose(step, 0.0, atol=1e-9)


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_argmin_of_a_logistic_regression_with_a_ridge(penalty):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 4))
    y = (X @ np.array([1.0, -2.0, 0.5, 0.0]) + rng.normal(size=60) > 0).astype(float)

    def weights(penalty):
        def loss(w, penalty):
            return (np.logaddexp(0.0, X @ w) - y * (X @ w)).sum() + penalty * (w * w).sum() / 2

        return implicit.argmin(loss, np.zeros(4), penalty)

    h = 1e-4 * penalty
    expected = (weights(penalty + h) - weights(penalty - h)) / (2 * h)
    np.testing.assert_allclose(pb.jacobian(weights)(penalty), expected, rtol=1e-5)


@pytest.mark.parametrize("x0", [0.0, np.array([0.0, 0.0])])
def test_argmin_that_starts_at_a_maximum_or_a_saddle_point_raises(x0):
    signs = np.array([-1.0, 1.0])[: np.size(x0)] if np.ndim(x0) else -1.0
    with pytest.raises(pb.errors.ConvergenceError, match=r"argmin: a minimum required .* -2"):
        implicit.argmin(lambda x: (signs * x * x).sum(), x0)
