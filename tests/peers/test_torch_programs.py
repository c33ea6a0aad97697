"""The programs of the vignette, written for both libraries, step by step beside each other."""

import numpy as np
import pytest
import torch
from tests.operations import linear

import pullback as pb

pytestmark = pytest.mark.peers


# -- the operations, in pullback ------------------------------------------------------------------


@pb.autograd_function
def mul_constant(ctx, tensor, constant):
    ctx.save_for_backward(constant=constant)
    return tensor * constant


@mul_constant.backward
def _(ctx, grad_output):
    return {"tensor": grad_output * ctx.saved_variables.constant}


@pb.autograd_function
def exp2(ctx, i):
    result = i.exp()
    ctx.save_for_backward(result=result)
    return result


@exp2.backward
def _(ctx, grad_output):
    return {"i": grad_output * ctx.saved_variable.result}


@pb.autograd_function
def my_relu(ctx, input):
    ctx.save_for_backward(input=input)
    return input.clamp(min=0)


@my_relu.backward
def _(ctx, grad_output):
    grad_input = grad_output.clone()
    grad_input[ctx.saved_variables.input < 0] = 0
    return {"input": grad_input}


# -- the same in torch ----------------------------------------------------------------------------


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output = output + bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class MulConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.constant, None


class Exp2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        (result,) = ctx.saved_tensors
        return grad_output * result


class MyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


# my_relu's rule works in place on a clone of the gradient: both sides record that, so its second
# derivative is compared as well.
OPERATIONS = {
    "linear": (linear, Linear.apply, [(4, 3), (2, 3)], ()),
    "linear with bias": (linear, Linear.apply, [(4, 3), (2, 3), (2,)], ()),
    "mul_constant": (mul_constant, MulConstant.apply, [(2, 3)], (2.5,)),
    "exp2": (exp2, Exp2.apply, [(2, 3)], ()),
    "my_relu": (my_relu, MyReLU.apply, [(2, 3)], ()),
}


def derivatives(lib, op, shapes, constants):
    rng = np.random.default_rng(3)
    leaves = [lib.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]
    output = op(*leaves, *constants)
    settings = {"create_graph": True, "materialize_grads": True}
    first = lib.autograd.grad((output**3).sum(), leaves, **settings)
    second = lib.autograd.grad(sum((g * g).sum() for g in first), leaves, **settings)
    return [t.detach().numpy() for t in (output, *first, *second)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_operations_of_the_vignette_agree_with_torch(name):
    ours, theirs, shapes, constants = OPERATIONS[name]
    for a, b in zip(
        derivatives(pb, ours, shapes, constants),
        derivatives(torch, theirs, shapes, constants),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_gradients_are_computed_for_what_needs_them_only():
    for lib, op in ((pb, linear), (torch, Linear.apply)):
        input = lib.tensor([[1.0, 1.0], [1.0, 1.0]])
        weight = lib.tensor([[2.0, 3.0]], requires_grad=True)
        target = lib.tensor([[2.0], [2.0]])
        (target - op(input, weight)).pow(2).mean().backward()
        assert weight.grad.tolist() == [[6.0, 6.0]]
        assert input.grad is None


def two_layer_net(lib, relu, steps):
    """Run the tutorial's training loop from the same random numbers; return its losses."""
    rng = np.random.default_rng(0)
    x, y = (lib.tensor(rng.normal(size=shape)) for shape in ((64, 1000), (64, 10)))
    w1, w2 = (
        lib.tensor(rng.normal(size=shape), requires_grad=True) for shape in ((1000, 100), (100, 10))
    )
    learning_rate = 1e-6
    losses = []
    for _ in range(steps):
        y_pred = relu(x.mm(w1)).mm(w2)
        loss = (y_pred - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        with lib.no_grad():
            w1.sub_(learning_rate * w1.grad)
            w2.sub_(learning_rate * w2.grad)
            w1.grad.zero_()
            w2.grad.zero_()
    return losses


def test_the_two_layer_net_learns_step_by_step_like_torch():
    ours = two_layer_net(pb, my_relu, 100)
    theirs = two_layer_net(torch, MyReLU.apply, 100)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert ours[-1] < ours[0] / 1000
