"""How gradients accumulate in `.grad` (cases AC1 to AC5)."""

import warnings

import numpy as np
import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def test_AC1_accumulation_is_in_place_without_create_graph():
    x = leaf(np.full((2, 2), 3.0))
    out = (x * 4).sum()
    out.backward(retain_graph=True)
    held = x.grad
    assert held.tolist() == [[4.0] * 2] * 2
    out.backward()
    assert x.grad is held
    assert held.tolist() == [[8.0] * 2] * 2


def test_AC1_into_an_assigned_gradient_too():
    x = leaf([1.0, 2.0])
    mine = pb.tensor([10.0, 20.0], dtype=pb.float64)
    x.grad = mine
    (x * 3).sum().backward()
    assert x.grad is mine
    assert mine.tolist() == [13.0, 23.0]


def test_AC1_accumulation_is_out_of_place_with_create_graph():
    x = leaf([2.0])
    out = x**3
    with pytest.warns(UserWarning, match="create_graph"):
        out.backward(create_graph=True)
    held = x.grad
    assert held.tolist() == [12.0]
    with pytest.warns(UserWarning, match="create_graph"):
        out.backward(create_graph=True)
    assert x.grad is not held
    assert held.tolist() == [12.0]
    assert x.grad.tolist() == [24.0]
    assert x.grad.requires_grad is True


def test_AC1_a_kept_reference_survives_create_graph():
    x = leaf([2.0])
    (x * 5).backward()
    held = x.grad
    with pytest.warns(UserWarning, match="create_graph"):
        (x**3).backward(create_graph=True)
    assert held.tolist() == [5.0]
    assert x.grad.tolist() == [17.0]


def test_AC2_buffers_shared_by_several_consumers():
    x, y = leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))
    a, b, c = x + 2, y + 2, x + 2
    add2 = (a + b) + c
    for _ in range(4):
        a, b, c = a * 2, b * 2, c * 2
    out = add2 + (a + b + c)
    out.backward(pb.ones((2, 2), dtype=pb.float64))
    assert x.grad.tolist() == [[34.0] * 2] * 2
    assert y.grad.tolist() == [[17.0] * 2] * 2


def test_AC2_a_gradient_that_is_passed_on_and_added_to():
    x = leaf([1.0])
    a = x + 0
    b = a + a
    c = b + a
    d = c + b + a
    seen = {}

    def keep(name):
        def hook(grad):
            seen[name] = grad

        return hook

    for name, t in (("a", a), ("b", b), ("c", c), ("d", d)):
        t.register_hook(keep(name))
    d.backward()
    assert {name: grad.item() for name, grad in seen.items()} == {"a": 6, "b": 2, "c": 1, "d": 1}
    assert x.grad.tolist() == [6.0]


def test_AC3_leaves_of_a_sum_of_three_share_no_gradient_buffer():
    x, y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, 6.0])
    ((x + y) + z).backward(pb.tensor([1.0, 2.0], dtype=pb.float64))
    arrays = [t.grad.numpy() for t in (x, y, z)]
    assert not np.shares_memory(arrays[0], arrays[1])
    assert not np.shares_memory(arrays[1], arrays[2])
    assert not np.shares_memory(arrays[0], arrays[2])
    assert [a.tolist() for a in arrays] == [[1.0, 2.0]] * 3


def test_AC3_leaves_share_no_view_of_one_gradient():
    x, y = leaf([[1.0, 2.0]]), leaf([[3.0], [4.0]])

    class Transposed(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y.t()

        @staticmethod
        def backward(ctx, grad_output):
            return {"x": grad_output, "y": grad_output.t()}

    Transposed.apply(x, y).sum().backward()
    x.grad.mul_(100)
    assert y.grad.tolist() == [[1.0], [1.0]]


def test_AC3_the_input_buffer_does_not_change_the_users_gradient():
    # two roots that lead to one node: its buffer starts as the user's own gradient
    x = leaf([1.0])
    y = x * 1
    mine = pb.tensor([5.0], dtype=pb.float64)
    pb.autograd.backward([y, y], [mine, mine])
    assert mine.tolist() == [5.0]
    assert x.grad.tolist() == [10.0]


def test_AC4_gradients_without_elements():
    a = pb.zeros((4, 0), dtype=pb.float64, requires_grad=True)
    b = leaf([[1.0], [2.0], [3.0], [4.0]])
    c = a + b
    assert tuple(c.shape) == (4, 0)
    c.sum().backward()
    assert tuple(a.grad.shape) == (4, 0)
    assert b.grad.tolist() == [[0.0]] * 4


def test_AC5_backward_with_create_graph_warns_of_the_reference_cycle():
    x = leaf([2.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (x**3).backward(create_graph=True)
    assert [w.category for w in caught] == [UserWarning]
    assert "backward() with create_graph=True" in str(caught[0].message)
    assert "reference cycle" in str(caught[0].message)


def test_AC5_grad_with_create_graph_does_not_warn():
    x = leaf([2.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (first,) = pb.autograd.grad(x**3, x, create_graph=True)
    assert caught == []
    assert first.tolist() == [12.0]
