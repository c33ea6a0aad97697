"""Source files with operations, for the tests that find and check operations in files."""

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
