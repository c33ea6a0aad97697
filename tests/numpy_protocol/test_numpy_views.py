"""flip, fliplr, flipud and rot90 of NumPy give views of tensors, nan_to_num(copy=False) writes."""

import numpy as np
import pytest

import pullback as pb

TURNS = {f"rot90 by {k}": lambda y, k=k: np.rot90(y, k) for k in range(-1, 5)}
VIEWS = {
    "flip": np.flip,
    "flip of one axis": lambda y: np.flip(y, 1),
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90 of other axes": lambda y: np.rot90(y, 1, (-1, 0)),
    **TURNS,
}


def cleaned(x):
    y = np.where(x > 2, np.nan, x) * 2.0
    result = np.nan_to_num(y, copy=False, nan=5.0)
    result *= 3.0
    return np.sum(y * y * x)


def written(name):
    def f(x):
        y = x * 1.0
        part = VIEWS[name](y)
        part[0] = 10.0 * x[1, 1]
        part *= 2.0
        return np.sum(y * y * np.arange(6.0).reshape(2, 3))

    return f


@pytest.mark.parametrize(
    "f", [cleaned, *map(written, VIEWS)], ids=["nan_to_num without copy", *VIEWS]
)
def test_what_is_written_to_views_of_numpys_flip_and_rot90_reaches_the_tensor(f):
    x, h = np.arange(6.0).reshape(2, 3) + 0.5, 1e-6
    expected = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        expected[i] = (f(x + step) - f(x - step)) / (2 * h)
    value, gradient = pb.value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x))
    np.testing.assert_allclose(pb.vmap(f)(np.stack([x, x]))[1], f(x))
    for found in (gradient, pb.jacfwd(f)(x), pb.vmap(pb.grad(f))(np.stack([x, x]))[1]):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


def test_flip_of_numpy_gives_a_view_and_that_of_pullback_a_copy():
    x = pb.tensor([1.0, 2.0])
    np.flip(x)[0] = 5.0
    pb.flip(x)[0] = 7.0
    assert x.tolist() == [1.0, 5.0]


def test_nan_to_num_of_numpy_without_copy_writes_to_the_tensor():
    x = pb.tensor([1.0, pb.nan])
    assert np.nan_to_num(x, copy=False) is x
    assert x.tolist() == [1.0, 0.0]
