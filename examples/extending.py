"""Operations of our own, in the three ways to write one.

The programs of R torch's vignette "Extending Autograd", of its tutorial "Defining new autograd
functions" and of its reference page `autograd_function`, in Python:

    python examples/extending.py
"""

import pullback as pb

# 1. Two plain functions: forward and backward ----------------------------------------------------


def linear(ctx, input, weight, bias=None):
    ctx.save_for_backward(input=input, weight=weight, bias=bias)
    output = input.mm(weight.t())
    if bias is not None:
        output = output + bias.unsqueeze(0).expand_as(output)
    return output


def linear_backward(ctx, grad_output):
    s = ctx.saved_variables
    grads = {"input": None, "weight": None, "bias": None}
    if ctx.needs_input_grad.input:
        grads["input"] = grad_output.mm(s.weight)
    if ctx.needs_input_grad.weight:
        grads["weight"] = grad_output.t().mm(s.input)
    if s.bias is not None and ctx.needs_input_grad.bias:
        grads["bias"] = grad_output.sum(dim=0)
    return grads


linear = pb.autograd_function(linear, linear_backward)


# 2. A decorated forward, its rule beside it ------------------------------------------------------


@pb.autograd_function
def exp2(ctx, i):
    result = i.exp()
    ctx.save_for_backward(result=result)
    return result


@exp2.backward
def _(ctx, grad_output):
    return {"i": grad_output * ctx.saved_variable.result}


# 3. A class with two static methods --------------------------------------------------------------


class MyReLU(pb.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input=input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        grad_input = grad_output.clone()
        grad_input[ctx.saved_variables.input < 0] = 0
        return {"input": grad_input}


# The same operation in all three ways; its second argument and what it saves are not tensors ----


def mul_constant(ctx, tensor, constant):
    ctx.save_for_backward(constant=constant)
    return tensor * constant


def mul_constant_backward(ctx, grad_output):
    v = ctx.saved_variables
    return {"tensor": grad_output * v.constant}


mul_constant_from_two = pb.autograd_function(mul_constant, mul_constant_backward)

mul_constant_decorated = pb.autograd_function(mul_constant)
mul_constant_decorated.backward(mul_constant_backward)


class MulConstant(pb.Function):
    forward = staticmethod(mul_constant)
    backward = staticmethod(mul_constant_backward)


# All of them in use -------------------------------------------------------------------------------


def show_linear() -> None:
    input = pb.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    weight = pb.tensor([[1.0, -1.0], [0.5, 2.0]], requires_grad=True)
    bias = pb.tensor([10.0, 20.0], requires_grad=True)

    print("linear without bias:", linear(input, weight).tolist())
    output = linear(input, weight, bias)
    print("linear with bias:   ", output.tolist())
    output.sum().backward()
    print("  input.grad: ", input.grad.tolist())
    print("  weight.grad:", weight.grad.tolist())
    print("  bias.grad:  ", bias.grad.tolist())


def show_mul_constant() -> None:
    ways = {
        "two functions": mul_constant_from_two,
        "decorated": mul_constant_decorated,
        "class": MulConstant.apply,
    }
    for way, op in ways.items():
        x = pb.tensor(1.0, requires_grad=True)
        o = op(x, 2)
        o.backward()
        print(f"mul_constant ({way}): {o.item()}, x.grad: {x.grad}")


def show_exp2() -> None:
    i = pb.tensor([0.0, 1.0], requires_grad=True)
    result = exp2(i)
    result.sum().backward()
    print("exp2:", result)
    print("  i.grad:", i.grad)


def show_my_relu() -> None:
    x = pb.tensor([-1.0, 2.0, -3.0, 4.0], requires_grad=True)
    output = MyReLU.apply(x)
    output.sum().backward()
    print("my_relu:", output)
    print("  x.grad:", x.grad)


if __name__ == "__main__":
    show_linear()
    show_mul_constant()
    show_exp2()
    show_my_relu()
