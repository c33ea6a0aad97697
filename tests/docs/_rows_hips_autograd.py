"""What the imports of docs/compat.md are used for, on either side, and what both give."""

import numpy as np

HIPS_AUTOGRAD = {
    "import pullback.compat.autograd.numpy as np": ("np.tanh(1.0)", np.tanh(1.0)),
    "import pullback.compat.autograd.numpy.random as npr": (
        "npr.RandomState(0).rand()",
        np.random.RandomState(0).rand(),
    ),
    "from pullback.compat.autograd import grad, jacobian": (
        "grad(lambda x: x**2)(3.0), jacobian(lambda x: x**2)(numpy.ones(2))",
        (6.0, 2 * np.eye(2)),
    ),
    "from pullback.compat.autograd.extend import primitive, defvjp": (
        "[f := primitive(lambda x: x), defvjp(f, lambda ans, x: lambda g: 5 * g), grad(f)(1.0)][2]",
        5.0,
    ),
    "from pullback.compat.autograd.scipy.special import gammaln": ("gammaln(4.0)", np.log(6.0)),
    "import pullback.compat.autograd.scipy.stats.norm as norm": (
        "norm.logpdf(0.0)",
        -0.5 * np.log(2 * np.pi),
    ),
    "from pullback.compat.autograd.misc.optimizers import adam": (
        "adam(lambda x, i: 2 * x, numpy.ones(2), num_iters=1, step_size=0.1)",
        np.full(2, 0.9),
    ),
    "from pullback.compat.autograd.misc import flatten": (
        "flatten((1.0, numpy.ones(2)))[0]",
        np.ones(3),
    ),
    "from pullback.compat.autograd.builtins import isinstance": (
        "[isinstance((1.0,), tuple), isinstance(1.0, tuple)]",
        (True, False),
    ),
    "from pullback.compat.autograd.test_util import check_grads": (
        "check_grads(lambda x: x**2, modes=['rev'])(1.0) is None",
        True,
    ),
    "import pullback.compat.autograd as autograd": ("autograd.grad(lambda x: x**3)(1.0)", 3.0),
}

# Of each convention: a program for the left cell and that of HIPS autograd's names, and what it
# gives; one for the cell of pullback's own names, and what that gives.
CONVENTIONS = {
    "gradient of `abs(z) ** 2` at `1 + 2j`": (
        "result = grad(lambda z: $0)($1) == $2",
        True,
        "result = pb.grad(lambda z: abs(z) ** 2)(1 + 2j) == $0",
        True,
    ),
    "gradient by a Python float": (
        "result = type(grad(lambda x: x**2)(3.0)) is $0",
        True,
        "result = type(pb.grad(lambda x: x**2)(3.0)) is $0",
        True,
    ),
    "result that depends on no argument": (
        """
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    gradient = grad(lambda x: 3.0)(1.0)
result = gradient, str(said[0].message)
""",
        (0.0, "Output seems independent of input."),
        """
try:
    pb.grad(lambda x: 3.0)(1.0)
except pb.AutogradError as error:
    result = "does not depend on argument 0" in str(error)
""",
        True,
    ),
    "`np.array([x, y])`, `np.sum([x, y])`, `np.full(3, x)` of traced values": (
        "result = grad(lambda x, y: np.sum($0) + $1 + np.sum($2))(1.0, 2.0)",
        5.0,
        "result = pb.grad(lambda x, y: $0.sum())(1.0, 2.0)",
        1.0,
    ),
    "gradient of `np.linalg.eigh(a)`": (
        "result = grad(lambda a: $0[0][1])(numpy.ones((2, 2)))",
        [[0.5, 0.0], [1.0, 0.5]],
        "result = pb.grad(lambda a: numpy.linalg.eigh(a)[0][1])(numpy.ones((2, 2)))",
        [[0.5, 0.5], [0.5, 0.5]],
    ),
    "a rule": (
        """
f = primitive(lambda x: x)
defvjp(f, lambda ans, x: lambda g: 5 * g)
result = grad(f)(1.0)
""",
        5.0,
        """
f = pb.autograd_function(lambda ctx, x: x * 1)
$0
def rule(ctx, g):
    return {"x": 5 * g}
result = pb.grad(f)(1.0)
""",
        5.0,
    ),
    "what a rule gets": (
        """
are_arrays = []
f = primitive(lambda x: x**3)
def rule(ans, x):
    are_arrays.append(isinstance(x, numpy.ndarray))
    return lambda g: 3 * x**2 * g
defvjp(f, rule)
gradient = grad(lambda x: np.sum(f(x)))
gradient(numpy.ones(2))
first = all(are_arrays)
grad(lambda x: np.sum(gradient(x)))(numpy.ones(2))
result = first, all(are_arrays)
""",
        (True, False),
        """
f = pb.autograd_function(lambda ctx, x: x * 1)
@f.backward
def rule(ctx, g):
    global result
    result = isinstance(g, pb.Tensor)
    return g
pb.grad(f)(1.0)
""",
        True,
    ),
}

# An operation of your own: HIPS autograd's program, ours, and what both give.
OWN_OPERATION = {
    "`@primitive` on `f`": (
        """
$0
def f(x):
    return x**2
defvjp(f, lambda ans, x: lambda g: 2 * x * g)
result = grad(f)(3.0)
""",
        """
$0
def f(ctx, x):
    ctx.save_for_backward(x=x)
    return x**2
@f.backward
def rule(ctx, g):
    return {"x": 2 * ctx.saved_variables.x * g}
result = pb.grad(f)(3.0)
""",
        6.0,
    ),
    "`defvjp(f, lambda ans, x, y: lambda g: g * y, ...)`, one rule per position": (
        """
f = primitive(lambda x, y: x * y)
defvjp(f, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)
result = grad(f, 0)(2.0, 3.0), grad(f, 1)(2.0, 3.0)
""",
        """
@pb.autograd_function
def f(ctx, x, y):
    ctx.save_for_backward(x=x, y=y)
    return x * y
$0
def rule(ctx, g):
    x, y = ctx.saved_variables
    return {"x": g * y, "y": g * x}
result = pb.grad(f, (0, 1))(2.0, 3.0)
""",
        (3.0, 2.0),
    ),
    "rules read the arguments and `ans`": (
        """
f = primitive(lambda x, y: x / y)
defvjp(f, lambda ans, x, y: lambda g: g * ans / x)
result = grad(f)(3.0, 2.0)
""",
        """
@pb.autograd_function
def f(ctx, x, y):
    $0
    return x / y
@f.backward
def rule(ctx, g):
    assert [*ctx.saved_variables.keys()] == ["x", "y"]
    return {"x": g / ctx.saved_variables.y}
result = pb.grad(f)(3.0, 2.0)
""",
        0.5,
    ),
}
