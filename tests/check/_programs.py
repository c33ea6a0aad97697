"""Operations for the tests of reports; source files with some, for the tests that find them."""

import pullback as pb

RIGHT = """
import pullback as pb

@pb.autograd_function
def square(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x

@square.backward
def _(ctx, grad_output):
    return {"x": 2 * ctx.saved_variables.x * grad_output}
"""

WRONG = """
import pullback as pb

class Cube(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": 6 * ctx.saved_variables.x**2 * grad_output}
"""

UNGUESSED = """
import pullback as pb

def forward(ctx, x, layout):
    return x.reshape(layout["rows"], 10)

blocks = pb.autograd_function(forward, lambda ctx, g: {"x": g.reshape(-1)}, name="blocks")
"""


@pb.autograd_function
def double(ctx, x):
    return 2.0 * x


@double.backward
def _(ctx, grad_output):
    return {"x": 2.0 * grad_output}


# Off by a factor.
tripled = pb.autograd_function(
    lambda ctx, x: 2.0 * x,
    lambda ctx, grad_output: 3.0 * grad_output,
    name="tripled",
)


@pb.autograd_function
def dropped(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


@dropped.backward
def _(ctx, grad_output):  # no second derivative
    return {"x": 2.0 * ctx.saved_variables.x.detach() * grad_output}
