"""Roots of systems and least squares, with known solutions."""

import numpy as np
import pytest
from scipy import optimize

import pullback as pb
from pullback.optimize import least_squares, root

ROOT_METHODS = ["hybr", "lm", "broyden1", "anderson", "krylov", "df-sane"]


def system(x):
    """Powell's badly scaled cousin, tame: x + y = 3, x * y = 2."""
    return pb.stack([x[0] + x[1] - 3, x[0] * x[1] - 2])


@pytest.mark.parametrize("method", ROOT_METHODS)
def test_every_method_finds_the_root(method):
    found = root(system, np.array([0.8, 2.3]), method=method)
    assert found.success
    np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-5)


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov"])
def test_roots_of_containers(method):
    def equations(p, c):
        return {"sum": p["x"].sum() - c, "rest": p["x"] * p["y"] - 2.0}

    found = root(equations, {"x": np.array([0.9, 1.2], np.float32), "y": 1.5}, 2.0, method)
    np.testing.assert_allclose(found.x["x"], [1.0, 1.0], atol=1e-4)
    assert found.x["x"].dtype == np.float32
    assert abs(found.x["y"] - 2.0) < 1e-4
    assert set(found.fun) == {"sum", "rest"}
    assert found.fun["rest"].shape == (2,)


def test_value_and_jacobian_take_one_call_for_each_point():
    calls = []

    def counted(x):
        calls.append(1)
        return system(x)

    found = root(counted, np.array([0.8, 2.3]), method="hybr")
    assert len(calls) <= found.nfev + 1
    calls.clear()
    found = least_squares(counted, np.array([0.8, 2.3]))
    assert len(calls) <= found.nfev + 1


def test_a_callback_gets_x_and_the_value_in_their_forms():
    seen = []
    root(
        lambda p: {"f": p["x"] ** 3 - 8.0},
        {"x": 1.9},
        method="broyden1",
        callback=lambda x, f: seen.append((x, f)),
    )
    assert set(seen[-1][0]) == {"x"}
    assert abs(seen[-1][0]["x"] - 2.0) < 1e-3
    assert set(seen[-1][1]) == {"f"}


def test_more_equations_than_unknowns_have_a_least_square():
    found = root(lambda x: pb.stack([x - 1.0, x - 2.0, x - 6.0]), 0.0, method="lm")
    assert abs(found.x - 3.0) < 1e-6


# ---- least squares -------------------------------------------------------------------------------
T = np.linspace(0.0, 3.0, 12)
TRUE = {"size": np.array([2.0, 0.7]), "rate": 0.5}


def curve(p):
    return p["size"][0] * np.exp(-p["rate"] * T) + p["size"][1]


DATA = np.array(2.0 * np.exp(-0.5 * T) + 0.7)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("loss", ["linear", "soft_l1"])
def test_a_curve_is_fitted(method, loss):
    if (method, loss) == ("lm", "soft_l1"):
        with pytest.raises(ValueError, match="lm"):  # SciPy's
            least_squares(lambda p: curve(p) - DATA, TRUE, method=method, loss=loss)
        return
    start = {"size": np.array([1.0, 0.0]), "rate": 1.0}
    found = least_squares(lambda p: curve(p) - DATA, start, method=method, loss=loss)
    np.testing.assert_allclose(found.x["size"], [2.0, 0.7], atol=1e-5)
    assert abs(found.x["rate"] - 0.5) < 1e-5
    assert found.jac.shape == (12, 3)
    assert found.fun.shape == (12,)
    assert set(found.grad) == {"size", "rate"}


def test_the_jacobian_agrees_with_scipys_differences():
    start = {"size": np.array([1.0, 0.0]), "rate": 1.0}
    found = least_squares(lambda p: curve(p) - DATA, start, max_nfev=1)
    flat = lambda v: v[0] * np.exp(-v[2] * T) + v[1] - DATA  # noqa: E731
    reference = optimize.least_squares(flat, [1.0, 0.0, 1.0], jac="3-point", max_nfev=1)
    np.testing.assert_allclose(found.jac, reference.jac, atol=1e-8)


@pytest.mark.parametrize(
    "bounds",
    [
        {"rate": (0.6, None)},
        ([-10, -10, 0.6], np.inf),
        optimize.Bounds([-np.inf, -np.inf, 0.6], np.inf),
    ],
)
def test_bounds_of_least_squares(bounds):
    start = {"size": np.array([1.0, 0.0]), "rate": 1.0}
    found = least_squares(lambda p: curve(p) - DATA, start, bounds=bounds)
    assert abs(found.x["rate"] - 0.6) < 1e-3


def test_bounds_of_an_array_are_scipys_pair():
    found = least_squares(lambda x: x - 3.0, np.zeros(2), bounds=([-1, -1], [1.0, 5.0]))
    np.testing.assert_allclose(found.x, [1.0, 3.0], atol=1e-6)


def test_residuals_of_any_shape_and_in_containers():
    found = least_squares(lambda x: [x.reshape((2, 2)) - 1.0, {"prior": 0.0 * x[0]}], np.zeros(4))
    np.testing.assert_allclose(found.x, np.ones(4))
    assert found.fun[0].shape == (2, 2)
    assert found.jac.shape == (5, 4)


def test_tensors_come_back_for_tensors():
    found = least_squares(lambda x: x - 3.0, pb.zeros(2))
    assert isinstance(found.x, pb.Tensor)
    assert isinstance(found.fun, pb.Tensor)
    assert found.x.dtype is pb.float32
