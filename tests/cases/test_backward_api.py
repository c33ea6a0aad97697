"""What backward() accepts and does (cases B01 to B05, B15, B16)."""

import numpy as np
import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def constant(data):
    """Return a float64 tensor that does not require grad."""
    return pb.tensor(data, dtype=pb.float64)


# --- B01: values -----------------------------------------------------------------------------


def test_B01_gradients_of_a_composite_expression():
    x, y, z = leaf([1.0]), leaf([2.0]), leaf([3.0])
    a = x + (y * z) + 4 * z**2 * x / y
    a.backward(constant([10.0]))
    assert x.grad.tolist() == [190.0]  # g * (4z^2/y + 1)
    assert y.grad.tolist() == [-60.0]  # g * (z - 4xz^2/y^2)
    assert z.grad.tolist() == [140.0]  # g * (8xz/y + y)


def test_B01_elementwise_with_an_initial_gradient():
    rng = np.random.default_rng(0)
    x_, y_, z_, g_ = (rng.uniform(0.5, 2.0, (5, 5)) for _ in range(4))
    x, y, z = leaf(x_), leaf(y_), leaf(z_)
    a = x + (y * z) + 4 * z**2 * x / y
    assert a.backward(constant(g_)) is None
    np.testing.assert_allclose(x.grad.numpy(), g_ * (4 * z_**2 / y_ + 1), rtol=1e-13)
    np.testing.assert_allclose(y.grad.numpy(), g_ * (z_ - 4 * x_ * z_**2 / y_**2), rtol=1e-13)
    np.testing.assert_allclose(z.grad.numpy(), g_ * (8 * x_ * z_ / y_ + y_), rtol=1e-13)


def test_B01_backward_on_a_leaf_itself():
    x = leaf([1.0, 2.0])
    x.backward(constant([10.0, 20.0]))
    assert x.grad.tolist() == [10.0, 20.0]
    x.backward(constant([1.0, 1.0]))
    assert x.grad.tolist() == [11.0, 21.0]


def test_B01_backward_on_a_leaf_runs_its_hooks():
    x = leaf([3.0])
    x.register_hook(lambda grad: grad * 7)
    x.backward()
    assert x.grad.tolist() == [7.0]


# --- B02: the gradient of the root -----------------------------------------------------------


def test_B02_a_nonscalar_root_needs_a_gradient():
    x = leaf(np.ones((5, 5)))
    y = x * 2
    message = "grad can be implicitly created only for scalar outputs"
    with pytest.raises(RuntimeError, match=message):
        y.backward()
    with pytest.raises(RuntimeError, match=message):
        x.backward()
    with pytest.raises(RuntimeError, match=message):
        pb.autograd.grad(y, x)
    assert x.grad is None
    y.backward(pb.ones((5, 5), dtype=pb.float64))
    assert x.grad.tolist() == [[2.0] * 5] * 5


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_B02_one_element_roots_count_as_scalar(shape):
    x = leaf(np.full(shape, 3.0))
    (x * x).backward()
    assert x.grad.shape == shape
    assert x.grad.item() == 6.0


def test_B02_wrong_gradient_shape():
    y = leaf(np.ones((2, 2))) * 2
    message = r"Mismatch in shape: grad_output\[0\] has a shape of .*3.* and output\[0\] has a"
    with pytest.raises(RuntimeError, match=message):
        y.backward(constant([1.0, 1.0, 1.0]))
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[1\]"):
        pb.autograd.backward([y, y], [pb.ones((2, 2), dtype=pb.float64), constant([1.0])])


def test_B02_a_complex_gradient_for_a_real_root():
    y = leaf([1.0, 2.0]) * 2
    with pytest.raises(pb.AutogradError, match=r"(?s)complex.*float64|float64.*complex"):
        y.backward(pb.tensor([1.0, 1.0], dtype=pb.complex128))


def test_B02_the_number_of_gradients_must_match_the_roots():
    y = leaf([1.0, 2.0]).sum()
    with pytest.raises(pb.AutogradError, match=r"1.*2|2.*1"):
        pb.autograd.backward([y], [constant(1.0), constant(1.0)])


def test_B02_none_stands_for_an_implicit_gradient():
    x = leaf([2.0])
    pb.autograd.backward([x * 3, x * 5], [constant([10.0]), None])
    assert x.grad.tolist() == [35.0]


# --- B03: roots and inputs that do not require grad ------------------------------------------


def test_B03_a_root_without_a_graph_raises():
    message = "does not require grad and does not have a grad_fn"
    plain = constant([1.0])
    with pytest.raises(RuntimeError, match=message):
        plain.backward()
    with pytest.raises(RuntimeError, match=message):
        pb.autograd.backward(plain, constant([1.0]))
    with pytest.raises(RuntimeError, match=message):
        pb.autograd.grad(plain, leaf([1.0]))


def test_B03_one_such_root_in_a_list_raises_and_nothing_is_accumulated():
    x = leaf([2.0])
    plain = constant([1.0])
    ones = [constant([1.0]), constant([1.0])]
    message = "does not require grad and does not have a grad_fn"
    for roots in ([x * 3, plain], [plain, x * 3], [x, plain]):
        with pytest.raises(RuntimeError, match=message):
            pb.autograd.backward(roots, ones)
        assert x.grad is None


def test_B03_grad_with_respect_to_a_constant_raises():
    x = leaf([2.0])
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require"):
        pb.autograd.grad(x * 3, [constant([1.0])])
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require"):
        pb.autograd.grad(x * 3, [x, constant([1.0])])


# --- B04: several roots ----------------------------------------------------------------------


def test_B04_the_gradients_of_several_roots_add_up():
    x, y = leaf([2.0]), leaf([5.0])
    pb.autograd.backward([x * y, x + y], [constant([10.0]), constant([1.0])])
    assert x.grad.tolist() == [51.0]
    assert y.grad.tolist() == [21.0]


def test_B04_a_root_that_depends_on_another():
    x = leaf([2.0])
    y = x**2
    z = y**3
    pb.autograd.backward([y, z], [constant([1.0]), constant([1.0])])
    assert x.grad.tolist() == [196.0]  # 2x * gy + 6x^5 * gz


def test_B04_the_same_root_twice_counts_twice():
    x, y = leaf([2.0]), leaf([5.0])
    product = x * y
    pb.autograd.backward([product, product], [constant([1.0]), constant([10.0])])
    assert x.grad.tolist() == [55.0]
    assert y.grad.tolist() == [22.0]


def test_B04_grad_of_several_roots():
    x = leaf([2.0])
    y = x**2
    z = y**3
    (grad,) = pb.autograd.grad([y, z, y], x, [constant([g]) for g in (1.0, 1.0, 10.0)])
    assert grad.tolist() == [236.0]


# --- B05: backward(inputs=...) ---------------------------------------------------------------


def test_B05_only_the_inputs_accumulate():
    x, y = leaf([[1.0, 2.0]]), leaf([[3.0, 5.0]])

    def f():
        return x**2 + y * x + y**2

    ones = pb.ones((1, 2), dtype=pb.float64)
    f().backward(ones, inputs=[x, y])
    assert x.grad.tolist() == [[5.0, 9.0]]  # 2x + y
    assert y.grad.tolist() == [[7.0, 12.0]]  # x + 2y
    x.grad = y.grad = None
    f().backward(ones, inputs=[x])
    assert x.grad.tolist() == [[5.0, 9.0]]
    assert y.grad is None
    x.grad = y.grad = None
    f().backward(ones, inputs=[y])
    assert x.grad is None
    assert y.grad.tolist() == [[7.0, 12.0]]
    f().backward(ones, inputs=y)
    assert x.grad is None
    assert y.grad.tolist() == [[14.0, 24.0]]
    f().backward(ones, inputs=(x, x))
    assert x.grad.tolist() == [[5.0, 9.0]]


def test_B05_the_function_form():
    x, y = leaf([2.0]), leaf([3.0])
    pb.autograd.backward(x * y, inputs=y)
    assert x.grad is None
    assert y.grad.tolist() == [2.0]


def test_B05_no_inputs_raise():
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="cannot be empty"):
        y.backward(inputs=[])


def test_B05_nonleaf_inputs_get_their_grad_filled():
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


def test_B05_an_input_outside_the_graph_keeps_grad_none():
    x, outside = leaf([1.0]), leaf([1.0])
    (x * 2).backward(inputs=[outside, x])
    assert outside.grad is None
    assert x.grad.tolist() == [2.0]


# --- B15, B16 --------------------------------------------------------------------------------


def test_B15_a_complex_root_has_no_implicit_gradient():
    z = pb.tensor(1.0 + 2.0j, dtype=pb.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        z.backward()
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        (z * 2).backward()
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        pb.autograd.grad(z * 2, z)
    (z * 2).backward(pb.tensor(1.0 + 0.0j, dtype=pb.complex128))
    assert z.grad.item() == 2.0 + 0.0j


def test_B16_grad_may_be_assigned_and_cleared():
    x = leaf(np.ones((5, 5)))
    new = pb.full((5, 5), 3.0, dtype=pb.float64)
    x.grad = new
    assert x.grad.tolist() == [[3.0] * 5] * 5
    x.sum().backward()
    assert x.grad.tolist() == [[4.0] * 5] * 5
    x.grad = None
    assert x.grad is None


@pytest.mark.parametrize("wrong", [0, 1.5, "grad", [1.0, 1.0]], ids=repr)
def test_B16_assigning_a_non_tensor_is_a_type_error(wrong):
    x = leaf([1.0, 1.0])
    with pytest.raises(TypeError):
        x.grad = wrong
    assert x.grad is None


def test_B16_assigning_the_wrong_shape_dtype_or_the_tensor_itself():
    x = leaf([[1.0, 1.0]])
    with pytest.raises(RuntimeError, match="2, 2"):
        x.grad = pb.ones((2, 2), dtype=pb.float64)
    with pytest.raises(RuntimeError, match="float32"):
        x.grad = pb.ones((1, 2), dtype=pb.float32)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    assert x.grad is None
