"""Rules marked `once_differentiable` run unrecorded; a second derivative through them raises."""

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import GraphError

TWICE = "differentiate twice a function that was marked with @once_differentiable"


class OnceSquare(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @staticmethod
    @pb.once_differentiable
    def backward(ctx, grad_output):
        assert not pb.is_grad_enabled()
        assert not grad_output.requires_grad
        x = ctx.saved_variables.x
        return {"x": pb.asarray(2.0 * x.detach().numpy() * grad_output.numpy())}


@pb.autograd_function
def once_square(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


@once_square.backward
@pb.once_differentiable
def _(ctx, grad_output):
    assert not pb.is_grad_enabled()
    assert not grad_output.requires_grad
    return {"x": pb.asarray(2.0 * ctx.saved_variables.x.detach().numpy() * grad_output.numpy())}


once = pytest.mark.parametrize("op", [OnceSquare.apply, once_square], ids=["class", "decorated"])


@pytest.mark.case("F14")
@once
def test_a_rule_marked_once_differentiable_gives_first_gradients_unrecorded(op):
    x = leaf([3.0, 4.0])
    op(x).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]


@pytest.mark.case("F14")
@once
def test_a_second_derivative_through_a_tracked_incoming_gradient_raises(op):
    x = leaf(3.0)
    y = op(x)
    (g,) = pb.autograd.grad(y * y, x, create_graph=True)
    assert g.item() == 108.0
    with pytest.raises(GraphError, match=TWICE):
        g.backward()


@pytest.mark.case("F14")
@once
def test_a_second_derivative_through_a_constant_incoming_gradient_raises_too(op):
    x = leaf(3.0)
    (g,) = pb.autograd.grad(op(x), x, create_graph=True)
    assert g.item() == 6.0
    assert g.requires_grad
    with pytest.raises(GraphError, match="once_differentiable"):
        pb.autograd.grad(g, x)
    with pytest.raises(GraphError, match="once_differentiable"):
        pb.autograd.grad((g * x).sum(), x)


def test_once_differentiable_can_raise_for_several_results():
    @pb.autograd_function
    def pair(ctx, x):
        return x * 2.0, x * 3.0

    @pair.backward
    @pb.once_differentiable
    def _(ctx, a, b):
        return {"x": a * 2.0 + b * 3.0}

    x = leaf(1.0)
    a, b = pair(x)
    (g,) = pb.autograd.grad(a * b, x, create_graph=True)
    assert g.item() == 12.0
    with pytest.raises(GraphError, match="once_differentiable"):
        g.backward()


def test_the_second_gradient_of_a_once_differentiable_rule_raises_for_inputs_of_two_shapes():
    @pb.autograd_function
    def product(ctx, x, y):
        return x.sum() * y.sum()

    @product.backward
    @pb.once_differentiable
    def _(ctx, g):
        return g * pb.ones(2), g * pb.ones(3)

    x, y = pb.ones(2, requires_grad=True), pb.ones(3, requires_grad=True)
    a, b = pb.autograd.grad(product(x, y), (x, y), create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        pb.autograd.grad(a.sum() + b.sum(), x)
