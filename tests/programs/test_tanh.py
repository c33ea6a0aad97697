"""A function of one's own and its derivatives on a grid, each the gradient of the one before."""

import numpy as np

from pullback import elementwise_grad


def tanh(x):
    y = np.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


def derivatives(count, x):
    """Return the function and its first derivatives at the points of a grid."""
    found, f = [tanh(x)], tanh
    for _ in range(count):
        f = elementwise_grad(f)
        found.append(f(x))
    return found


def test_the_derivatives_of_tanh_are_the_polynomials_in_its_value():
    x = np.linspace(-3, 3, 61)
    found = derivatives(4, x)
    y = np.tanh(x)
    expected = [
        y,
        1 - y**2,
        -2 * y + 2 * y**3,
        -2 + 8 * y**2 - 6 * y**4,
        16 * y - 40 * y**3 + 24 * y**5,
    ]
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours) is np.ndarray
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    assert np.count_nonzero(np.diff(np.sign(found[4][np.abs(x) > 1e-9]))) == 3  # its other zeros
