"""x0, bounds and results in containers of any form; dtypes are kept, computing is in float64."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from scipy import optimize

import pullback as pb
from pullback.optimize import minimize


class Pair(NamedTuple):
    """A container with names."""

    left: object
    right: object


@dataclasses.dataclass
class Model:
    """A container with a field that stays."""

    weight: object
    bias: object
    depth: int = 3


def half(value):
    """Return a cost with its minimum, 0, where every number is a half."""
    if isinstance(value, dict):
        return sum(half(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(half(item) for item in value)
    if isinstance(value, Model):
        return half([value.weight, value.bias])
    return ((value - 0.5) ** 2).sum()


FORMS = {
    "an array": np.zeros((2, 3)),
    "an array of float32": np.zeros(3, np.float32),
    "a number": 0.0,
    "a number of NumPy": np.float32(0.0),
    "an array without axes": np.zeros(()),
    "a tensor": pb.zeros(2, 2),
    "a tensor of float64": pb.zeros(2, dtype=pb.float64),
    "a dict": {"a": np.zeros(2), "b": 0.0},
    "a list": [0.0, np.zeros(2, np.float32)],
    "a tuple": (np.zeros((1, 2)), pb.zeros(1)),
    "a named tuple": Pair(np.zeros(2), 0.0),
    "a dataclass": Model(np.zeros(2), 0.0),
    "nested": {"layers": [Pair(np.zeros((2, 2)), 0.0)], "scale": (pb.zeros(1), {"x": 0.0})},
}


def leaves(value):
    if isinstance(value, Model):
        return [*leaves(value.weight), *leaves(value.bias)]
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list, tuple)):
        return [leaf for item in items for leaf in leaves(item)]
    return [value]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact", "Powell"])
def test_x_comes_back_in_the_form_of_x0(form, method):
    start = FORMS[form]
    found = minimize(half, start, method=method)
    for value in (found.x, found.get("jac", found.x)):
        assert type(value) is type(start)
        pairs = zip(leaves(start), leaves(value), strict=True)
        for before, after in pairs:
            assert type(after) is type(before)
            assert np.shape(after) == np.shape(before)
            assert getattr(after, "dtype", None) == getattr(before, "dtype", None)
    for leaf in leaves(found.x):
        np.testing.assert_allclose(np.asarray(leaf), 0.5, atol=1e-3)
        assert not getattr(leaf, "requires_grad", False)


def test_computing_is_in_float64():
    seen = set()

    def cost(p):
        seen.update(leaf.dtype for leaf in p.values())
        return half(p)

    start = {"a": np.zeros(2, np.float32), "b": pb.zeros(1), "c": 0.0, "d": np.float16(0)}
    found = minimize(cost, start, method="BFGS")
    assert seen == {pb.float64}
    assert (found.x["a"].dtype, found.x["b"].dtype) == (np.float32, pb.float32)


def test_a_field_that_is_an_integer_or_none_stays():
    start = {"w": np.zeros(2), "n": 2, "none": None, "index": np.array([1, 0])}
    cost = lambda p: ((p["w"][p["index"]] * p["n"] - np.array([2.0, 4.0])) ** 2).sum()  # noqa: E731
    for method in ("BFGS", "trust-ncg"):
        found = minimize(cost, start, method=method)
        np.testing.assert_allclose(found.x["w"], [2.0, 1.0], atol=1e-6)
        assert (found.x["n"], found.x["none"]) == (2, None)
        assert found.jac["n"] == 2
    model = minimize(half, Model(np.zeros(2), 0.0, depth=7)).x
    assert model.depth == 7


def test_x0_and_results_share_no_memory():
    start = np.zeros(3)

    def spoiling(x):
        value = half(x)
        x.detach()[...] = 99.0
        return value

    kept = []
    found = minimize(half, start, method="BFGS", callback=kept.append)
    assert (start == 0).all()
    assert not any(np.shares_memory(x, found.x) for x in kept[:-1])
    found.x[:] = 7.0
    assert kept[-1][0] != 7.0
    np.testing.assert_allclose(minimize(spoiling, start, method="Nelder-Mead").x, 0.5, atol=1e-3)


def test_arrays_of_another_library_come_back():
    strict = pytest.importorskip("array_api_strict")
    start = strict.asarray([0.0, 0.0], dtype=strict.float32)
    found = minimize(half, start, method="BFGS")
    assert type(found.x) is type(start)
    assert found.x.dtype == strict.float32
    assert abs(float(found.x[0]) - 0.5) < 1e-6


# ---- bounds --------------------------------------------------------------------------------------
LOW = {"w": np.zeros(3), "b": 0.0}


def cost(p):
    return ((p["w"] - 2) ** 2).sum() + (p["b"] + 2) ** 2


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Powell"])
@pytest.mark.parametrize(
    "bounds",
    [
        {"w": (None, 1.0), "b": (-1.0, None)},
        {"w": (-5.0, np.ones(3)), "b": (np.float32(-1), 5)},
        {"b": [-1.0, 3.0], "w": (pb.full((3,), -4.0), pb.ones(3))},
        [(-5, 1)] * 3 + [(-1, 5)],
        np.array([[-5.0, 1.0]] * 3 + [[-1.0, 5.0]]),
        optimize.Bounds([-5, -5, -5, -1], [1, 1, 1, 5]),
    ],
)
def test_bounds_in_every_form(method, bounds):
    found = minimize(cost, LOW, method=method, bounds=bounds)
    np.testing.assert_allclose(found.x["w"], [1.0, 1.0, 1.0], atol=1e-3)
    assert abs(found.x["b"] + 1.0) < 1e-3


def test_an_item_without_a_bound_is_left_out_of_a_dict():
    found = minimize(cost, LOW, bounds={"b": (-1.0, None)})
    np.testing.assert_allclose(found.x["w"], [2.0, 2.0, 2.0], atol=1e-5)
    assert abs(found.x["b"] + 1.0) < 1e-8


def test_bounds_of_one_array_are_a_pair_or_a_pair_for_each_number():
    start = np.zeros((1, 3))
    for bounds in ((None, 0.25), (np.zeros(3), np.full((1, 3), 0.25)), [(None, 0.25)] * 3):
        np.testing.assert_allclose(minimize(half, start, bounds=bounds).x, [[0.25] * 3])
    # Of two numbers both readings fit, and SciPy's is taken: 0 to 0.1, and 0.2 to 0.3.
    two = minimize(half, np.zeros(2), bounds=((0.0, 0.1), (0.2, 0.3))).x
    np.testing.assert_allclose(two, [0.1, 0.3])
    assert minimize(half, 0.0, bounds=(None, 0.25)).x == 0.25


def test_bounds_follow_nested_containers():
    start = Pair([np.zeros(2), 0.0], Model(np.zeros(1), 0.0))
    bounds = Pair([(None, 0.1), None], Model((None, 0.2), None, None))
    found = minimize(half, start, bounds=bounds).x
    np.testing.assert_allclose(found.left[0], [0.1, 0.1])
    np.testing.assert_allclose(found.right.weight, [0.2])
    assert abs(found.left[1] - 0.5) < 1e-6
