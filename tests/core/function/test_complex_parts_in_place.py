"""A view of one part of complex numbers follows its base, and is not written to itself."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import InplaceError

PARTS = {
    "real": lambda y: y.real,
    "imag": lambda y: y.imag,
    "real of a transpose": lambda y: y.T.real,
    "real of a row": lambda y: y[0].real,
    "a row of real": lambda y: y.real[0],
    "one real part": lambda y: y.real[0, 0],
    "one of the rows of real": lambda y: y.real.unbind()[0],
}
WRITES = {
    "mul_": lambda part: part.mul_(3),
    "add_ of a tensor": lambda part: part.add_(pb.ones_like(part)),
    "zero_": lambda part: part.zero_(),
    "copy_": lambda part: part.copy_(pb.ones_like(part)),
    "setitem": lambda part: part.__setitem__((..., 0) if part.ndim else (), 5.0),
    "iadd": lambda part: part.__iadd__(1.0),
    "masked_fill_": lambda part: part.masked_fill_(part > 0, 0.0),
}
VALUES = np.array([[1 + 2j, 0.5 - 1j], [0.3j, -1 + 0.2j]])


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("tracked", [False, True])
def test_a_write_to_a_part_is_refused_with_the_way_out(name, write, tracked):
    y = pb.tensor(VALUES, requires_grad=tracked) * 1
    part = PARTS[name](y)
    with pytest.raises(InplaceError) as caught:
        WRITES[write](part)
    assert "a view of the real or imaginary part of a complex tensor cannot be written to" in str(
        caught.value
    )
    assert "hint: write the complex tensor itself" in str(caught.value)
    assert (y._version, part._version) == (0, 0)
    np.testing.assert_array_equal(y.detach().numpy(), VALUES)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("mode", [pb.no_grad, pb.inference_mode])
@pytest.mark.parametrize("tracked", [False, True])
def test_a_write_to_a_part_is_refused_in_every_mode(name, mode, tracked):
    y = pb.tensor(VALUES, requires_grad=tracked) * 1
    with mode(), pytest.raises(InplaceError, match="cannot be written to"):
        PARTS[name](y).mul_(3)
    np.testing.assert_array_equal(y.detach().numpy(), VALUES)


def test_a_part_is_no_place_for_the_result_of_an_operation():
    y = pb.tensor(VALUES)
    with pytest.raises(InplaceError, match="add: a view of the real or imaginary part"):
        pb.add(pb.ones(2, 2), 1.0, out=y.real)
    np.testing.assert_array_equal(y.numpy(), VALUES)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_follows_a_change_of_its_base(name):
    y = pb.tensor(VALUES, requires_grad=True) * 1
    part = PARTS[name](y)
    y.mul_(1j)
    np.testing.assert_array_equal(part.detach().numpy(), PARTS[name](y).detach().numpy())
    assert part.grad_fn is not None


CHANGES = {
    "the way out": lambda y: y.copy_(pb.complex(y.real * 3, y.imag)),
    "whole numbers": lambda y: y[0].mul_(2),
    "one number": lambda y: y.__setitem__((0, 0), 5.0),
    "a transpose": lambda y: y.T.add_(1j),
}


def loss(x, change):
    y = x * 2
    real = y.real
    change(y)
    z = y * y
    return (z.real * 1.3 + z.imag * 0.7).sum() + (real * real).sum()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_a_changed_base_is_the_central_difference(name, create_graph):
    change = CHANGES[name]
    x = pb.tensor(VALUES, requires_grad=True)
    (ours,) = pb.autograd.grad(loss(x, change), x, create_graph=create_graph)
    expected = np.zeros_like(VALUES)
    for index in np.ndindex(VALUES.shape):
        for unit in (1, 1j):
            around = []
            for step in (1e-6, -1e-6):
                moved = VALUES.copy()
                moved[index] += step * unit
                around.append(loss(pb.tensor(moved), change).item())
            expected[index] += unit * (around[0] - around[1]) / 2e-6
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=1e-6, atol=1e-6)
