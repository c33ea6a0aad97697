"""Functions that are solved get tensors with the methods of what the caller gives."""

import numpy as np
import pytest

import pullback as pb
from pullback.numpy_protocol.tensor import NumPyTensor

START = np.array([1.0, 2.0])
seen = []


def moved(x, a):
    """Return a function whose fixed point is a - 1 at a standard deviation of a that is NumPy's."""
    seen.append((type(x), type(a)))
    return x * 0.5 + (a - a.std() * 2) * 0.5 + x.std() * 0.0


def change(y, t, a):
    return moved(y, a) - y


SOLVED = {
    "fixed_point": lambda a: pb.implicit.fixed_point(moved, START, a),
    "root": lambda a: pb.implicit.root(lambda x, a: moved(x, a) - x, START, a),
    "odeint": lambda a: pb.implicit.odeint(lambda y, t, a: moved(y, a) - y, START, [0.0, 40.0], a)[
        -1
    ],
}


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


@pytest.mark.parametrize("name", SOLVED)
def test_under_a_transform_of_arrays_they_are_numpys(name):
    gradient = pb.grad(lambda a: SOLVED[name](a)[0])(np.array([1.0, 3.0]))
    np.testing.assert_allclose(gradient, [2.0, -1.0], rtol=1e-4)
    assert set(seen) == {(NumPyTensor, NumPyTensor)}


@pytest.mark.parametrize("name", SOLVED)
def test_beside_plain_tensors_they_are_pytorchs(name):
    found = SOLVED[name](pb.asarray(np.array([1.0, 3.0])))
    np.testing.assert_allclose(found.numpy(), [1 - np.sqrt(8), 3 - np.sqrt(8)], rtol=1e-4)
    assert set(seen) == {(pb.Tensor, pb.Tensor)}


@pytest.mark.parametrize("name", SOLVED)
def test_of_arrays_alone_the_unknown_is_numpys(name):
    found = SOLVED[name](np.array([1.0, 3.0]))
    np.testing.assert_allclose(found, [-1.0, 1.0], atol=1e-4)
    assert type(found) is np.ndarray
    assert set(seen) == {(NumPyTensor, np.ndarray)}
