"""Derivatives of derivatives (cases HO1 to HO3)."""

import math

import pytest

import pullback as pb
from pullback.autograd import grad


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def derivatives(function, at, orders):
    """Return the values of the first `orders` derivatives of `function`."""
    x = leaf(at)
    y = function(x)
    results = []
    for _ in range(orders):
        (y,) = grad(y, x, create_graph=True, materialize_grads=True)
        results.append(y.item())
    return results


def test_HO1_hessian_vector_products_through_backward():
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
    ones = pb.ones((2, 2), dtype=pb.float64)
    z = x**2 + y * x + y**2
    with pytest.warns(UserWarning, match="create_graph"):
        z.backward(ones, create_graph=True)
    assert x.grad.tolist() == [[7.0, 10.0], [13.0, 16.0]]  # 2x + y
    assert y.grad.tolist() == [[11.0, 14.0], [17.0, 20.0]]  # x + 2y
    grad_sum = 2 * x.grad + y.grad
    grad_sum.backward(ones)
    assert x.grad.tolist() == [[12.0, 15.0], [18.0, 21.0]]  # + 5
    assert y.grad.tolist() == [[15.0, 18.0], [21.0, 24.0]]  # + 4


def product(x):
    """Return the product over the last two dims."""
    return x.prod(dim=-1).prod(dim=-1)


class Product(pb.Function):
    """The same with a rule of its own."""

    @staticmethod
    def forward(ctx, x):
        y = product(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return (grad_output * y)[:, None, None] / x


@pytest.mark.parametrize("function", [product, Product.apply], ids=["built-in", "custom"])
def test_HO2_repeated_second_derivatives_on_one_graph(function):
    x = leaf([[[1.0] * 4] * 4] * 2)
    y = function(x)
    results = []
    for _ in range(2):
        (first,) = grad(y[0], x, create_graph=True)
        (second,) = grad(first[0, 0, 0], x, retain_graph=True)
        assert first[0].tolist() == [[1.0] * 4] * 4
        assert first[1].tolist() == [[0.0] * 4] * 4
        results.append(second.tolist())
    assert results[0][0][0][1] == 1.0
    assert results[0][0][0][0] == 0.0
    assert results[0][1] == [[0.0] * 4] * 4
    assert results[0] == results[1]


def test_HO3_derivatives_of_a_power():
    assert derivatives(lambda x: x**5, 2.0, 6) == [80.0, 160.0, 240.0, 240.0, 120.0, 0.0]


def test_HO3_derivatives_of_the_sine():
    sine, cosine = math.sin(0.5), math.cos(0.5)
    expected = [cosine, -sine, -cosine, sine, cosine, -sine]
    assert derivatives(lambda x: x.sin(), 0.5, 6) == pytest.approx(expected, rel=1e-14)


def test_HO3_derivatives_of_the_reciprocal():
    assert derivatives(lambda x: 1 / x, 2.0, 3) == pytest.approx([-0.25, 0.25, -0.375], rel=1e-14)


def test_HO3_a_first_order_pass_ends_the_chain():
    x = leaf(2.0)
    (first,) = grad(x**5, x, create_graph=True)
    (second,) = grad(first, x)
    assert second.item() == 160.0
    assert second.requires_grad is False
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        grad(second, x)


def test_HO3_mixed_derivatives():
    x, y = leaf(2.0), leaf(3.0)
    (by_x,) = grad(x**3 * y**2, x, create_graph=True)
    (by_xy,) = grad(by_x, y, create_graph=True)
    (by_xyx,) = grad(by_xy, x)
    assert by_x.item() == 108.0  # 3x^2 y^2
    assert by_xy.item() == 72.0  # 6x^2 y
    assert by_xyx.item() == 72.0  # 12x y


def test_HO3_second_order_with_respect_to_the_incoming_gradient():
    x, g = leaf([2.0]), leaf([5.0])
    (first,) = grad(x**3, x, g, create_graph=True)
    assert first.tolist() == [60.0]
    by_g, by_x = grad(first, [g, x])
    assert by_g.tolist() == [12.0]
    assert by_x.tolist() == [60.0]
