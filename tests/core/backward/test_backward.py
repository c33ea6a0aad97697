"""backward(): its roots, their initial gradients, and the inputs that it fills."""

import numpy as np
import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.autograd import backward, increment_version
from pullback.errors import ArgumentTypeError


@pytest.mark.case("B01")
def test_backward_of_a_composite_expression():
    x, y, z = leaf([1.0]), leaf([2.0]), leaf([3.0])
    a = x + (y * z) + 4 * z**2 * x / y
    a.backward(constant([10.0]))
    assert x.grad.tolist() == [190.0]  # g * (4z^2/y + 1)
    assert y.grad.tolist() == [-60.0]  # g * (z - 4xz^2/y^2)
    assert z.grad.tolist() == [140.0]  # g * (8xz/y + y)


@pytest.mark.case("B01")
def test_backward_of_a_leaf_itself():
    x = leaf([1.0, 2.0])
    assert x.backward(constant([10.0, 20.0])) is None
    assert x.grad.tolist() == [10.0, 20.0]


@pytest.mark.case("B02")
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_backward_takes_a_root_of_one_element_for_a_scalar(shape):
    x = leaf(np.full(shape, 3.0))
    (x * x).backward()
    assert x.grad.shape == shape
    assert x.grad.item() == 6.0


@pytest.mark.case("B02")
def test_backward_takes_none_for_an_implicit_gradient():
    x = leaf([2.0])
    backward([x * 3, x * 5], [constant([10.0]), None])
    assert x.grad.tolist() == [35.0]


@pytest.mark.case("B15")
def test_backward_of_a_complex_root_takes_a_complex_gradient():
    z = pb.tensor(1.0 + 2.0j, dtype=pb.complex128, requires_grad=True)
    (z * 2).backward(pb.tensor(1.0 + 0.0j, dtype=pb.complex128))
    assert z.grad.item() == 2.0 + 0.0j


def test_backward_differentiates_tensors_alone():
    with pytest.raises(ArgumentTypeError, match=r"tensors\[1\] must be a Tensor, got float"):
        backward([leaf([1.0]).sum(), 3.0])
    with pytest.raises(ArgumentTypeError, match=r"increment_version: takes Tensors, got float"):
        increment_version([1.0])


def test_backward_takes_an_array_but_no_number_for_an_initial_gradient():
    x = leaf([1.0, 2.0])
    (x * 2.0).backward(np.array([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]
    with pytest.raises(ArgumentTypeError, match="can be either Tensors or None, got float"):
        backward([x * 2.0], [1.0])


# -- several roots ---------------------------------------------------------------------------------
@pytest.mark.case("B04")
def test_backward_adds_up_the_gradients_of_several_roots():
    x, y = leaf([2.0]), leaf([5.0])
    product = x * y
    backward([product, x + y, product], [constant([g]) for g in (1.0, 7.0, 10.0)])
    assert x.grad.tolist() == [62.0]
    assert y.grad.tolist() == [29.0]


@pytest.mark.case("B04")
def test_backward_and_grad_of_a_root_that_depends_on_another():
    x = leaf([2.0])
    y = x**2
    z = y**3
    backward([y, z], [constant([1.0]), constant([1.0])], retain_graph=True)
    assert x.grad.tolist() == [196.0]  # 2x * gy + 6x^5 * gz
    (g,) = pb.autograd.grad([y, z, y], x, [constant([g]) for g in (1.0, 1.0, 10.0)])
    assert g.tolist() == [236.0]


# -- inputs= ---------------------------------------------------------------------------------------
@pytest.mark.case("B05")
@pytest.mark.parametrize("asked", ["x", "y", "xy", "xx"])
def test_backward_fills_its_inputs_alone(asked):
    leaves = {"x": leaf([1.0, 2.0]), "y": leaf([3.0, 5.0])}
    x, y = leaves.values()
    inputs = [leaves[name] for name in asked]
    root, ones = x**2 + y * x + y**2, constant([1.0, 1.0])
    backward(root, ones, inputs=y if asked == "y" else inputs)
    expected = {"x": [5.0, 9.0], "y": [7.0, 12.0]}  # 2x + y, x + 2y
    for name, tensor in leaves.items():
        assert (tensor.grad.tolist() == expected[name]) if name in asked else tensor.grad is None


@pytest.mark.case("B05")
def test_backward_fills_the_grad_of_inputs_that_are_results():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    x_nonleaf, y_nonleaf = x * 2, y * 2
    unrelated = leaf([1.0, 1.0]) * 2
    out = x_nonleaf**2 + y_nonleaf * x_nonleaf + y_nonleaf**2
    out.backward(constant([1.0, 1.0]), inputs=[x_nonleaf, y_nonleaf, unrelated, x])
    assert x_nonleaf.grad.tolist() == [10.0, 18.0]  # 2 (2x) + 2y
    assert y_nonleaf.grad.tolist() == [14.0, 24.0]  # 2x + 2 (2y)
    with pytest.warns(UserWarning, match="not a leaf"):
        assert unrelated.grad is None
    assert x.grad.tolist() == [20.0, 36.0]
    assert y.grad is None


@pytest.mark.case("B05")
def test_backward_leaves_an_input_outside_of_the_graph_without_grad():
    x, outside = leaf([1.0]), leaf([1.0])
    (x * 2).backward(inputs=[outside, x])
    assert outside.grad is None
    assert x.grad.tolist() == [2.0]


# -- .grad -----------------------------------------------------------------------------------------
@pytest.mark.case("B16")
def test_grad_of_a_leaf_may_be_assigned_and_cleared():
    x = leaf(np.ones((5, 5)))
    new = pb.full((5, 5), 3.0, dtype=pb.float64)
    x.grad = new
    assert x.grad.tolist() == [[3.0] * 5] * 5
    x.sum().backward()
    assert x.grad.tolist() == [[4.0] * 5] * 5
    x.grad = None
    assert x.grad is None
