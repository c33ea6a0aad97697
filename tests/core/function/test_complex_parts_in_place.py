"""Writing through a view of one part of complex numbers leaves the gradient of the other alone."""

import numpy as np
import pytest

import pullback as pb

WRITES = {
    "real": lambda y: y.real.mul_(3),
    "imag": lambda y: y.imag.mul_(3),
    "real of a transpose": lambda y: y.T.real.add_(1),
    "real of a row": lambda y: y[0].real.mul_(2),
    "one real part": lambda y: y.real.__setitem__((0, 0), 5.0),
    "whole numbers": lambda y: y[0].mul_(2),
}


def loss(x, write):
    y = x * 2
    write(y)
    z = y * y
    return (z.real * 1.3 + z.imag * 0.7).sum()


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_is_the_central_difference(name, create_graph):
    write = WRITES[name]
    values = np.array([[1 + 2j, 0.5 - 1j], [0.3j, -1 + 0.2j]])
    x = pb.tensor(values, requires_grad=True)
    (ours,) = pb.autograd.grad(loss(x, write), x, create_graph=create_graph)
    expected = np.zeros_like(values)
    for index in np.ndindex(values.shape):
        for unit in (1, 1j):
            around = []
            for step in (1e-6, -1e-6):
                moved = values.copy()
                moved[index] += step * unit
                around.append(loss(pb.tensor(moved), write).item())
            expected[index] += unit * (around[0] - around[1]) / 2e-6
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=1e-6, atol=1e-6)
