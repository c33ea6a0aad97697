"""The programs of the pages about errors: for each class one that raises it, and one mended."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorProgram:
    """What a page says: when a class is raised, a program that does, and how it is mended.

    `without` names packages that the failing program runs without, as if they were not installed.
    """

    when: str
    failing: str
    repair: str
    mended: str
    without: tuple[str, ...] = ()


PROGRAMS = {
    "AutogradError": ErrorProgram(
        when="""
Catch it where any of them counts, whatever its kind. It is never raised itself: the program
multiplies matrices whose shapes do not fit, and what is raised is a subclass.
""",
        failing="""
import pullback as pb

weight = pb.ones(3, 4, requires_grad=True)
weight.mm(pb.ones(3, 2))
""",
        repair="The program goes on after any error of the library, and lets all others pass.",
        mended="""
import pullback as pb

weight = pb.ones(3, 4, requires_grad=True)
try:
    weight.mm(pb.ones(3, 2))
except pb.AutogradError as error:
    print(type(error).__name__, "is a RuntimeError:", isinstance(error, RuntimeError))
print(weight.mm(pb.ones(4, 2)).shape)
""",
    ),
    "GraphError": ErrorProgram(
        when="""
Such are `backward` of a result that is not a number or that nothing was recorded for, a second
derivative that a rule cannot give, a tensor from another transform. Subclasses name the most common
ones.
""",
        failing="""
import pullback as pb

x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
y.backward()
""",
        repair="""
`backward` computes the gradient of one number. Reduce the result to the number that you mean, or
pass `gradient`, the gradient of such a number with respect to each element.
""",
        mended="""
import pullback as pb

x = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x * x
y.sum().backward()
print(x.grad)
""",
    ),
    "InplaceError": ErrorProgram(
        when="""
Backward would compute wrong gradients with the values that are there now. A leaf that requires grad
cannot be changed in place while operations are recorded, and the forward of your own operation has
to declare what it changes.
""",
        failing="""
import pullback as pb

x = pb.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
z = y * y
y += 1.0
z.sum().backward()
""",
        repair="""
The product needs the factors as they were. An operation that is not in place leaves them: `y + 1.0`
is a new tensor.
""",
        mended="""
import pullback as pb

x = pb.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
z = y * y
y = y + 1.0
z.sum().backward()
print(x.grad)
""",
    ),
    "ReleasedError": ErrorProgram(
        when="""
Backward releases the values that operations saved as it goes, so that their memory is free. A
second pass through the same graph finds none.
""",
        failing="""
import pullback as pb

x = pb.tensor(2.0, requires_grad=True)
y = x**3
y.backward()
y.backward()
""",
        repair="Say at the first pass that there will be another one.",
        mended="""
import pullback as pb

x = pb.tensor(2.0, requires_grad=True)
y = x**3
y.backward(retain_graph=True)
y.backward()
print(x.grad)
""",
    ),
    "BatchedValueError": ErrorProgram(
        when="""
Inside of `pb.vmap` a value stands for those of all samples. `if`, `float`, `item` and functions of
other libraries need a single one.
""",
        failing="""
import numpy as np
import pullback as pb


def leaky(x):
    if x > 0:
        return x
    return 0.1 * x


pb.vmap(leaky)(np.array([-1.0, 2.0]))
""",
        repair="`pb.where` chooses for each sample.",
        mended="""
import numpy as np
import pullback as pb


def leaky(x):
    return pb.where(x > 0, x, 0.1 * x)


print(pb.vmap(leaky)(np.array([-1.0, 2.0])))
""",
    ),
    "MissingRuleError": ErrorProgram(
        when="""
An operation of your own runs without a rule, as long as nobody asks for its gradient.
""",
        failing="""
import pullback as pb


@pb.autograd_function
def cube(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x * x


x = pb.tensor(2.0, requires_grad=True)
cube(x).backward()
""",
        repair="Give it the rule.",
        mended="""
import pullback as pb


@pb.autograd_function
def cube(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x * x


@cube.backward
def _(ctx, grad_output):
    return {"x": grad_output * 3 * ctx.saved_variables.x ** 2}


x = pb.tensor(2.0, requires_grad=True)
cube(x).backward()
print(x.grad)
""",
    ),
    "GradientError": ErrorProgram(
        when="""
It has the wrong shape, an unknown name, a dtype of integers, or there are too few. The message has
the file and the line of the rule.
""",
        failing="""
import pullback as pb


@pb.autograd_function
def shift(ctx, image, bias):
    return image + bias


@shift.backward
def _(ctx, grad_output):
    return {"image": grad_output, "bias": grad_output}


image = pb.zeros(2, 3)
bias = pb.zeros(3, requires_grad=True)
shift(image, bias).sum().backward()
""",
        repair="""
The gradient of an argument has its shape. Forward used each element of `bias` twice, so its
gradient is the sum over both uses.
""",
        mended="""
import pullback as pb


@pb.autograd_function
def shift(ctx, image, bias):
    return image + bias


@shift.backward
def _(ctx, grad_output):
    return {"image": grad_output, "bias": pb.sum_to_size(grad_output, (3,))}


image = pb.zeros(2, 3)
bias = pb.zeros(3, requires_grad=True)
shift(image, bias).sum().backward()
print(bias.grad)
""",
    ),
    "AnomalyError": ErrorProgram(
        when="""
An operation or a rule made it from finite numbers. The error has the operation, the argument, the
place in the array and your line also as attributes. See [Where NaN comes from](../anomaly.md).
""",
        failing="""
import pullback as pb

p = pb.tensor([0.5, 0.0, 1.0], requires_grad=True)
with pb.detect_anomaly():
    loss = -pb.log(p).mean()
""",
        repair="""
The logarithm of zero is an infinity. Keep its argument away from zero, by as much as the problem
allows.
""",
        mended="""
import pullback as pb

p = pb.tensor([0.5, 0.0, 1.0], requires_grad=True)
loss = -pb.log(p.clamp(min=1e-3)).mean()
loss.backward()
print(p.grad)
""",
    ),
    "GradcheckError": ErrorProgram(
        when="""
The rule that you wrote is not the derivative of forward. The message is the text of `error.report`.
See [How to trust a gradient you wrote](../gradient-checker.md).
""",
        failing="""
import numpy as np
import pullback as pb


@pb.autograd_function
def half_square(ctx, x):
    ctx.save_for_backward(x=x)
    return 0.5 * x * x


@half_square.backward
def _(ctx, grad_output):
    return {"x": 2 * ctx.saved_variables.x * grad_output}


pb.check.check_op(half_square, np.array([1.0, 2.0]))
""",
        repair="The derivative of `0.5 x²` is `x`.",
        mended="""
import numpy as np
import pullback as pb


@pb.autograd_function
def half_square(ctx, x):
    ctx.save_for_backward(x=x)
    return 0.5 * x * x


@half_square.backward
def _(ctx, grad_output):
    return {"x": ctx.saved_variables.x * grad_output}


print(pb.check.check_op(half_square, np.array([1.0, 2.0])).outcome)
""",
    ),
    "UncheckedError": ErrorProgram(
        when="""
Forward raises beside the inputs, its result jumps there, or it is NaN. The report says what, why,
and what to give.
""",
        failing="""
import numpy as np
import pullback as pb


@pb.autograd_function
def lookup(ctx, x):
    if (x.numpy() % 0.5).any():
        raise ValueError("only multiples of 0.5 are in the table")
    return x * x


@lookup.backward
def _(ctx, grad_output):
    return {"x": grad_output}


pb.check.check_op(lookup, np.array([0.5, 1.0]))
""",
        repair="""
Differences need a forward that takes values between those of the table. Here it can interpolate;
and now that it is compared, the rule has to be right.
""",
        mended="""
import numpy as np
import pullback as pb

grid = np.arange(-4.0, 4.5, 0.5)


@pb.autograd_function
def lookup(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.asarray(np.interp(x.numpy(), grid, grid**2))


@lookup.backward
@pb.once_differentiable
def _(ctx, grad_output):
    cell = np.floor(ctx.saved_variables.x.numpy() / 0.5)
    return {"x": grad_output * pb.asarray(cell + 0.5)}


print(pb.check.check_op(lookup, np.array([0.7, 1.2]), fast=True).outcome)
""",
    ),
    "ShapeError": ErrorProgram(
        when="""
The operands of a product, the gradient that is passed to `backward`, the new shape of a view: the
message has the shapes that came, and what was required of them.
""",
        failing="""
import pullback as pb

x = pb.ones(5, 3)
weight = pb.ones(2, 3)
x @ weight
""",
        repair="The rows of `weight` are the outputs: its transpose has the shape that fits.",
        mended="""
import pullback as pb

x = pb.ones(5, 3)
weight = pb.ones(2, 3)
print((x @ weight.T).shape)
""",
    ),
    "DTypeError": ErrorProgram(
        when="""
Integers have no gradient, an operation in place keeps the dtype of what it changes, and some
operations are for real numbers only.
""",
        failing="""
import pullback as pb

x = pb.tensor([1, 2, 3], requires_grad=True)
""",
        repair="Write the numbers as floats, or name a dtype.",
        mended="""
import pullback as pb

x = pb.tensor([1, 2, 3], dtype=pb.float64, requires_grad=True)
print(x.sum())
""",
    ),
    "ConvergenceError": ErrorProgram(
        when="""
That is an iteration of `pb.implicit` or of an ODE solver. A solution without a derivative, such as
a multiple root, is one of these errors too, where a derivative is recorded.
""",
        failing="""
import pullback as pb


def step(x, a):
    return a * x * (1 - x)


pb.implicit.fixed_point(step, 0.3, 3.9, max_iter=100)
""",
        repair="""
This iteration wanders: with the factor 3.9 the logistic map is chaotic. The fixed point exists all
the same, and Newton's method finds it as a root.
""",
        mended="""
import pullback as pb


def equation(x, a):
    return a * x * (1 - x) - x


print(round(pb.implicit.root(equation, 0.8, 3.9), 6))
""",
    ),
    "DeviceError": ErrorProgram(
        when="""
Nothing is moved unasked, since a copy between devices is slow, and the place of the result would be
a guess.
""",
        failing="""
import array_api_strict
import pullback as pb

x = pb.ones(2)
y = pb.asarray(array_api_strict.ones(2))
x + y
""",
        repair="Move one of them: `cpu` gives a tensor of NumPy.",
        mended="""
import array_api_strict
import pullback as pb

x = pb.ones(2)
y = pb.asarray(array_api_strict.ones(2))
print(x + y.cpu())
""",
    ),
    "ArgumentError": ErrorProgram(
        when="""
A name that is none of the choices, a number out of its range, bounds for a parameter that there is
not.
""",
        failing="""
import pullback as pb

pb.optimize.minimize(lambda p: p["x"] ** 2, {"x": 1.0}, bounds={"y": (0.0, 2.0)})
""",
        repair="The bounds have the names of the parameters.",
        mended="""
import pullback as pb

result = pb.optimize.minimize(lambda p: p["x"] ** 2, {"x": 1.0}, bounds={"x": (0.5, 2.0)})
print(result.x)
""",
    ),
    "ArgumentTypeError": ErrorProgram(
        when="""
A string where a number belongs, a list where a tensor does: the message has the types. What Python
itself finds wrong with a call, such as a missing argument, is Python's own `TypeError`.
""",
        failing="""
import pullback as pb

x = pb.ones(2, 3)
x.sum(dim="rows")
""",
        repair="Dimensions are numbers, from 0.",
        mended="""
import pullback as pb

x = pb.ones(2, 3)
print(x.sum(dim=0))
""",
    ),
    "TensorIndexError": ErrorProgram(
        when="""
Indices and dimensions count from 0, or from the end with -1. Both are checked against the shape,
which the message has.
""",
        failing="""
import pullback as pb

x = pb.ones(2, 3)
x.sum(dim=2)
""",
        repair="A matrix has the dimensions 0 and 1; -1 is the last one.",
        mended="""
import pullback as pb

x = pb.ones(2, 3)
print(x.sum(dim=-1))
""",
    ),
    "NameNotFoundError": ErrorProgram(
        when="""
The names are those that forward saved, by `save_for_backward` or as attributes of `ctx`, and those
of its arguments in `ctx.needs_input_grad`.
""",
        failing="""
import pullback as pb


@pb.autograd_function
def scale(ctx, x, factor):
    ctx.save_for_backward(factor=factor)
    return x * factor


@scale.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.saved_variables.facter}


x = pb.tensor(3.0, requires_grad=True)
scale(x, 2.0).backward()
""",
        repair="The saved values have the names that `save_for_backward` gave them.",
        mended="""
import pullback as pb


@pb.autograd_function
def scale(ctx, x, factor):
    ctx.save_for_backward(factor=factor)
    return x * factor


@scale.backward
def _(ctx, grad_output):
    return {"x": grad_output * ctx.saved_variables.factor}


x = pb.tensor(3.0, requires_grad=True)
scale(x, 2.0).backward()
print(x.grad)
""",
    ),
    "MissingExtraError": ErrorProgram(
        when="""
NumPy and array-api-compat are all that pullback requires. Some functions need another library; the
message has the command that installs what is missing. Here tqdm is, which shows bars of progress.
""",
        failing="""
import pullback as pb

pb.optimize.minimize(lambda x: x**2, 1.0, progress=True)
""",
        repair="Install the extra, `pip install 'pullback[progress]'`, or do without the bar.",
        mended="""
import pullback as pb

print(pb.optimize.minimize(lambda x: x**2, 1.0).success)
""",
        without=("tqdm",),
    ),
    "UntrackedTensorWarning": ErrorProgram(
        when="""
It is inside a container that an operation does not look into, in the forward of an operation that
closes over it, or made a plain number within a transform.
""",
        failing="""
import pullback as pb


@pb.autograd_function
def total(ctx, parts):
    return parts[0] + parts[1]


a = pb.tensor(1.0, requires_grad=True)
b = pb.tensor(2.0, requires_grad=True)
total([a, b])
""",
        repair="""
`traverse=True` tracks tensors in containers; their gradients come back in the same structure. A
tensor that is meant to be constant is passed as `a.detach()`.
""",
        mended="""
import pullback as pb


def forward(ctx, parts):
    return parts[0] + parts[1]


def backward(ctx, grad_output):
    return {"parts": [grad_output, grad_output]}


total = pb.autograd_function(forward, backward, name="total", traverse=True)
a = pb.tensor(1.0, requires_grad=True)
b = pb.tensor(2.0, requires_grad=True)
total([a, b]).backward()
print(a.grad, b.grad)
""",
    ),
    "UncheckedWarning": ErrorProgram(
        when="""
With `allow_unchecked=True`, a check of gradients passed over what it could not compare. Without it,
that is an [UncheckedError](UncheckedError.md).
""",
        failing="""
import numpy as np
import pullback as pb


@pb.autograd_function
def counted(ctx, x):
    return x.floor()


@counted.backward
def _(ctx, grad_output):
    return {"x": pb.zeros_like(grad_output)}


pb.check.check_op(counted, np.array([1.0, 2.0]), allow_unchecked=True)
""",
        repair="""
At whole numbers the result jumps, and there is no derivative to compare with. Between them there is
one.
""",
        mended="""
import numpy as np
import pullback as pb


@pb.autograd_function
def counted(ctx, x):
    return x.floor()


@counted.backward
def _(ctx, grad_output):
    return {"x": pb.zeros_like(grad_output)}


print(pb.check.check_op(counted, np.array([1.3, 2.6])).outcome)
""",
    ),
}
