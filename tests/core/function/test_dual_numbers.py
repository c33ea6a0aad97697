"""Forward mode falls out of the seam: a function of tensors, run on dual numbers, gives its jvp."""

import numpy as np
import pytest
from tests.core.function._dual import jvp

import pullback as pb

STEP = 1e-6


def composed(x):
    """Return a function with branches that join, settings, numbers and a captured tensor."""
    weights = pb.tensor([0.5, -1.0, 2.0], dtype="float64")
    y = (x.sin() * weights + 2.0) / (x * x + 1.0).sqrt()
    z = -(y.exp() - x.cos()).log() + y.tanh()
    return (z * y).sum() * 3.0


def elementwise(x):
    return (x.tanh() * x).exp() - 1.0 / (x * x + 2.0)


X, V, U = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0]), np.array([0.2, 1.0, 0.7])


def tensor(array, requires_grad=False):
    return pb.tensor(array, requires_grad=requires_grad)


def difference(function, x, v):
    return (function(x + STEP * v) - function(x - STEP * v)) / (2 * STEP)


@pytest.mark.parametrize("function", [composed, elementwise])
@pytest.mark.parametrize("kind", [np.asarray, tensor])
def test_the_jvp_is_the_derivative_along_a_direction(function, kind):
    value, tangent = jvp(function, kind(X), kind(V))
    np.testing.assert_allclose(value.numpy(), function(tensor(X)).numpy(), rtol=1e-14)
    wanted = difference(lambda x: function(tensor(x)).numpy(), X, V)
    np.testing.assert_allclose(tangent.numpy(), wanted, rtol=1e-8)


@pytest.mark.parametrize("function", [composed, elementwise])
def test_reverse_over_forward(function):
    x, v = tensor(X, True), tensor(V, True)
    _, tangent = jvp(function, x, v)
    by_x, by_v = pb.autograd.grad(tangent.sum(), (x, v))

    def along(x, v):
        return jvp(function, x, v)[1].numpy().sum()

    wanted = [difference(lambda a: along(a, V), X, e) for e in np.eye(3)]
    np.testing.assert_allclose(by_x.numpy(), wanted, rtol=1e-7)
    (plain,) = pb.autograd.grad(function(y := tensor(X, True)).sum(), y)
    np.testing.assert_allclose(by_v.numpy(), plain.numpy(), rtol=1e-12)


def gradient_of(function):
    """Return the gradient of a function, by an unrecorded pass of its own."""

    def gradient(x):
        x = x.detach().requires_grad_()
        (g,) = pb.autograd.grad(function(x).sum(), x)
        return g

    return gradient


@pytest.mark.parametrize("function", [composed, elementwise])
def test_forward_over_reverse_and_reverse_over_that(function):
    x = tensor(X, True)
    _, product = jvp(gradient_of(function), x, tensor(V))
    plain = gradient_of(function)
    wanted = difference(lambda a: plain(tensor(a)).numpy(), X, V)
    np.testing.assert_allclose(product.detach().numpy(), wanted, rtol=1e-7)
    (third,) = pb.autograd.grad(product, x, tensor(U))

    def contracted(a):
        return jvp(plain, a, V)[1].numpy() @ U

    wanted = [difference(contracted, X, e) for e in np.eye(3)]
    np.testing.assert_allclose(third.numpy(), wanted, rtol=1e-6)


def test_a_function_that_the_library_lacks_raises():
    with pytest.raises(AttributeError, match="atan"):
        jvp(pb.atan, X, V)
    with pytest.raises(pb.errors.DeviceError, match=r"^dual: an array library with assignment"):
        jvp(lambda x: (x * 1.0).fill_(2.0), X, V)
