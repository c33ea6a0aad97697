"""What autograd.grad() accepts and returns, and the graph it walks (cases B06 to B14, B17)."""

import numpy as np
import pytest

import pullback as pb
from pullback.autograd import grad


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def constant(data):
    """Return a float64 tensor that does not require grad."""
    return pb.tensor(data, dtype=pb.float64)


def quadratic(x, y):
    """Return x^2 + xy + y^2."""
    return x**2 + y * x + y**2


class Fail(pb.Function):
    """The identity, with a backward that must not run."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        raise RuntimeError("this backward was not needed")


def test_B06_grad_returns_a_tuple_in_input_order_and_touches_no_grad():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    ones = constant([1.0, 1.0])
    result = grad(quadratic(x, y), [y, x], ones)
    assert type(result) is tuple
    assert [g.tolist() for g in result] == [[7.0, 12.0], [5.0, 9.0]]
    assert x.grad is None
    assert y.grad is None
    (single,) = grad(quadratic(x, y), x, ones)
    assert single.tolist() == [5.0, 9.0]
    assert single.requires_grad is False


def test_B06_hessian_vector_products_by_grad_of_grad():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    ones = constant([1.0, 1.0])
    z = quadratic(x, y)
    with pytest.warns(UserWarning, match="create_graph"):
        z.backward(ones, create_graph=True)
    assert x.grad.tolist() == [5.0, 9.0]
    assert y.grad.tolist() == [7.0, 12.0]
    grad_sum = 2 * x.grad + y.grad
    (x_hv,) = grad([grad_sum], [x], [ones], create_graph=True)
    (y_hv,) = grad([grad_sum], [y], [ones])
    assert x_hv.tolist() == [5.0, 5.0]
    assert y_hv.tolist() == [4.0, 4.0]
    assert x.grad.tolist() == [5.0, 9.0]
    assert y.grad.tolist() == [7.0, 12.0]


def test_B06_the_same_input_may_be_asked_for_twice():
    x = leaf([3.0])
    first, second = grad(x * x, [x, x])
    assert first.tolist() == [6.0]
    assert second.tolist() == [6.0]


def test_B06_the_root_itself_may_be_asked_for():
    x = leaf([3.0])
    y = x * x
    grad_y, grad_x = grad(y, [y, x], constant([10.0]))
    assert grad_y.tolist() == [10.0]
    assert grad_x.tolist() == [60.0]
    (own,) = grad(x, [x], constant([4.0]))
    assert own.tolist() == [4.0]
    assert x.grad is None


def test_B07_an_unreachable_input():
    x, y = leaf([1.0]), leaf([1.0])
    z = x * 2
    message = r"(?s)not have been used in the graph.*Set allow_unused=True"
    with pytest.raises(RuntimeError, match=message):
        grad(z, [x, y], retain_graph=True)
    with pytest.raises(RuntimeError, match=message):
        grad(z, [x, y], retain_graph=True, allow_unused=False)
    grad_x, grad_y = grad(z, [x, y], retain_graph=True, allow_unused=True)
    assert grad_x.tolist() == [2.0]
    assert grad_y is None
    (grad_y,) = grad(z, [y], allow_unused=True)
    assert grad_y is None


def test_B07_allow_unused_with_every_input_used():
    x, y = leaf([1.0]), leaf([1.0])
    grads = grad(x * 2 + y * 3, [x, y], allow_unused=True)
    assert [g.tolist() for g in grads] == [[2.0], [3.0]]


def test_B08_materialize_grads_returns_zeros():
    x, y = leaf([1.0, 2.0]), leaf([[3.0], [4.0]])
    z = (x * 2).sum()
    grad_x, grad_y = grad(z, [x, y], retain_graph=True, materialize_grads=True)
    assert grad_x.tolist() == [2.0, 2.0]
    assert grad_y.tolist() == [[0.0], [0.0]]
    grads = grad(z, [x, y], retain_graph=True, materialize_grads=True, allow_unused=True)
    assert grads[1].tolist() == [[0.0], [0.0]]
    with pytest.raises(ValueError, match="allow_unused"):
        grad(z, [x, y], allow_unused=False, materialize_grads=True)


def test_B08_higher_derivatives_of_a_linear_function():
    x, a = leaf(0.5), leaf(1.0)
    first = grad(x * a, x, create_graph=True)
    assert first[0].item() == 1.0
    nothing = grad(first, x, create_graph=True, allow_unused=True)
    assert nothing == (None,)
    second = grad(first, x, create_graph=True, materialize_grads=True)
    assert second[0].item() == 0.0
    third = grad(second, x, materialize_grads=True)
    assert third[0].item() == 0.0


def test_B09_no_inputs_raise():
    z = leaf([1.0]) * 2
    with pytest.raises(pb.AutogradError, match="empty"):
        grad(z, [])


def test_B10_grad_with_respect_to_a_nonleaf_stops_there():
    start, y = leaf([1.0]), leaf([2.0])
    called = []
    start.register_hook(called.append)
    x = start * 1
    (grad_x,) = grad(quadratic(x, y), x)
    assert grad_x.tolist() == [4.0]  # 2x + y
    assert called == []
    assert start.grad is None
    assert y.grad is None


def test_B10_gradient_ascent_through_nonleaves():
    x_start, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[2.0, 2.0], [1.0, 1.0]])
    g = pb.ones((2, 2), dtype=pb.float64)
    x = x_start
    for _ in range(5):
        (grad_x,) = grad(quadratic(x, y), x, g, create_graph=True)
        expected = (2 * x + y).detach().numpy()
        np.testing.assert_allclose(grad_x.detach().numpy(), expected, rtol=1e-14)
        assert x_start.grad is None
        assert y.grad is None
        x = x + 0.05 * grad_x
    x.backward(g)
    # each step multiplies by 1 + 2 * 0.05
    np.testing.assert_allclose(x_start.grad.numpy(), np.full((2, 2), 1.1**5), rtol=1e-13)


def test_B10_two_outputs_of_one_op_can_be_requested_together():
    x = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    a, b = x.chunk(2)
    called = []
    x.register_hook(called.append)
    go = constant([[1.0, 2.0], [3.0, 5.0]])
    grad_a, grad_b = grad(a + 2 * b, [a, b], go, create_graph=True)
    assert grad_a.tolist() == [[1.0, 2.0], [3.0, 5.0]]
    assert grad_b.tolist() == [[2.0, 4.0], [6.0, 10.0]]
    assert called == []
    assert x.grad is None


def test_B11_a_node_that_is_not_needed_does_not_run():
    y, z = leaf([1.0]), leaf([1.0])
    x = Fail.apply(y)
    (grad_z,) = grad(x + z, [z])
    assert grad_z.tolist() == [1.0]


def test_B11_nor_does_it_with_an_unreachable_input():
    y, z = leaf([1.0]), leaf([1.0])
    (grad_z,) = grad(Fail.apply(y), [z], allow_unused=True)
    assert grad_z is None


def test_B11_nor_does_backward_with_inputs():
    y, z = leaf([1.0]), leaf([1.0])
    (Fail.apply(y) * z).backward(inputs=[z])
    assert z.grad.tolist() == [1.0]
    assert y.grad is None


def test_B12_backward_may_be_split():
    leaves = [leaf([[0.5, 1.0], [1.5, 2.0]]) for _ in range(10)]
    intermediates = [x * i + x * x for i, x in enumerate(leaves)]
    loss = sum(v * i for i, v in enumerate(intermediates)).sum()
    gradients = []
    for start in range(0, 10, 2):
        shard = intermediates[start : start + 2]
        gradients.extend(grad(loss, shard, retain_graph=True))
    pb.autograd.backward(intermediates, gradients)
    for i, x in enumerate(leaves):
        expected = [[i * i + 2 * i * v for v in row] for row in x.tolist()]
        assert x.grad.tolist() == expected


def test_B13_next_functions_of_an_op_with_two_leaves():
    x, y = leaf([1.0]), leaf([1.0])
    a = x + y
    edges = a.grad_fn.next_functions
    assert len(edges) == 2
    assert [node.name() for node, _ in edges] == ["AccumulateGrad", "AccumulateGrad"]
    assert [index for _, index in edges] == [0, 0]
    assert edges[0][0].variable is x
    assert edges[1][0].variable is y


def test_B13_next_functions_of_an_op_with_a_constant():
    x, y = leaf([1.0]), leaf([1.0])
    a = x + y
    b = a + 5
    edges = b.grad_fn.next_functions
    assert len(edges) == 2
    assert edges[0][0] is a.grad_fn
    assert edges[0][1] == 0
    assert tuple(edges[1]) == (None, 0)


def test_B13_a_leaf_always_yields_the_same_accumulator():
    x = leaf([1.0])
    first, second = x * 2, x + 1
    assert first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0]


def test_B14_unused_outputs_contribute_zeros():
    x = leaf([[1.0] * 10] * 10)
    outputs = x.chunk(5)
    assert [tuple(o.shape) for o in outputs] == [(2, 10)] * 5
    o = outputs[2]
    o = o * 4 + 2
    o.sum().backward()
    expected = [[0.0] * 10] * 4 + [[4.0] * 10] * 2 + [[0.0] * 10] * 4
    assert x.grad.tolist() == expected


def test_B17_a_batch_of_gradients():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    out = x.clone()
    batch = constant([[[float(k)] * 2] * 2 for k in range(3)])
    (result,) = grad(out, [x], [batch], is_grads_batched=True)
    assert tuple(result.shape) == (3, 2, 2)
    assert result.tolist() == [[[float(k)] * 2] * 2 for k in range(3)]


def test_B17_a_batch_through_operations():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    out = (x * y).sum()
    grads = grad(out, [x, y], [constant([1.0, 10.0])], is_grads_batched=True)
    assert grads[0].tolist() == [[3.0, 5.0], [30.0, 50.0]]
    assert grads[1].tolist() == [[1.0, 2.0], [10.0, 20.0]]


def test_B17_a_gradient_without_the_leading_dimension_raises():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match="is_grads_batched"):
        grad(x.clone(), [x], [pb.ones((2, 2), dtype=pb.float64)], is_grads_batched=True)


@pytest.mark.parametrize("first", [True, False])
def test_a_root_that_does_not_lead_to_the_inputs_does_not_run(first) -> None:
    x, w = leaf(2.0), leaf(3.0)
    a, d = x * x, w * w
    seen = []
    d.register_hook(seen.append)
    w.register_hook(seen.append)
    d.retain_grad()
    (g,) = pb.autograd.grad([a, d] if first else [d, a], [x])
    assert g.item() == 4.0
    assert seen == []
    assert d.grad is None
    d.backward()  # its graph is as it was
    assert w.grad.item() == 6.0
