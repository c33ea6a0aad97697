"""The rows of docs/from-jax.md: JAX's program, ours, and what both give."""

import numpy as np
from tests.docs.coming_from import A, X, on_both

JAX = {
    "`@jax.custom_vjp` on `f`, then `f.defvjp(f_fwd, f_bwd)`": (
        """
@jax.custom_vjp
def f(x):
    return x**3
def f_fwd(x):
    return x**3, x
def f_bwd(x, g):
    return (g * 5 * x,)
f.defvjp(f_fwd, f_bwd)
result = jax.grad(f)(2.0)
""",
        """
@pb.autograd_function
def f(ctx, x):
    ctx.save_for_backward(x=x)
    return x**3
@f.backward
def _(ctx, g):
    return {"x": g * 5 * ctx.saved_variables.x}
result = pb.grad(f)(2.0)
""",
        10.0,  # the rule's own factor: what came from the rule, and not from its forward
    ),
    "`return out, (x, out)` in `f_fwd`": (
        """
@jax.custom_vjp
def f(x):
    return jax.numpy.exp(x)
def f_fwd(x):
    out = jax.numpy.exp(x)
    return out, (x, out)
f.defvjp(f_fwd, lambda residuals, g: (g * residuals[0] * residuals[1],))
result = jax.grad(f)(2.0)
""",
        """
@pb.autograd_function
def f(ctx, x):
    out = np.exp(x)
    ctx.save_for_backward(x=x, out=out)
    return out
@f.backward
def _(ctx, g):
    return {"x": g * ctx.saved_variables.x * ctx.saved_variables.out}
result = pb.grad(f)(2.0)
""",
        2 * np.exp(2.0),
    ),
    "`return (grad_x, grad_y)` in `f_bwd`": (
        """
@jax.custom_vjp
def f(x, y):
    return x * y
def f_bwd(residuals, g):
    grad_x, grad_y = 3 * g, 4 * g
    return (grad_x, grad_y)
f.defvjp(lambda x, y: (x * y, None), f_bwd)
result = jax.grad(f, argnums=(0, 1))(2.0, 5.0)
""",
        """
@pb.autograd_function
def f(ctx, x, y):
    return x * y
@f.backward
def _(ctx, g):
    grad_x, grad_y = 3 * g, 4 * g
    return {"x": grad_x, "y": grad_y}
result = pb.grad(f, argnums=(0, 1))(2.0, 5.0)
""",
        (3.0, 4.0),
    ),
    "`@partial(jax.custom_vjp, nondiff_argnums=(1,))`": (
        """
from functools import partial
@partial(jax.custom_vjp, nondiff_argnums=(1,))
def f(x, power):
    return x**power
f.defvjp(lambda x, power: (x**power, x), lambda power, x, g: (g * power * x ** (power - 1),))
result = jax.grad(f)(3.0, 2)
""",
        """
@pb.autograd_function
def f(ctx, x, power):
    ctx.save_for_backward(x=x)
    ctx.power = power
    return x**power
@f.backward
def _(ctx, g):
    return {"x": g * ctx.power * ctx.saved_variables.x ** (ctx.power - 1)}
result = pb.grad(f)(3.0, 2)
""",
        6.0,
    ),
    "`jax.grad(f, argnums=1)(y, x)`": (
        "f, y, x = lambda y, x: y * x**2, 2.0, 3.0\nresult = $0",
        "f, y, x = lambda y, x: y * x**2, 2.0, 3.0\nresult = $0\nassert result == $1",
        12.0,
    ),
    "`jax.value_and_grad(s)(x)`": on_both("jax", "result = $0", (9.0, 3 * X**2)),
    "`jax.vjp(f, x)[1](v)[0]`": on_both("jax", "result = $0", 2 * X),
    "`jax.jvp(f, (x,), (v,))[1]`": on_both("jax", "result = $0", 2 * X),
    "`jax.linearize(f, x)[1](v)`": on_both("jax", "result = $0", 2 * X),
    "`jax.jacrev(f)(x)`, `jax.jacfwd(f)(x)`": on_both(
        "jax", "result = $0, $1", (np.diag(2 * X), np.diag(2 * X))
    ),
    "`jax.hessian(s)(x)`": on_both("jax", "result = $0", np.diag(6 * X)),
    "`jax.jvp(jax.grad(s), (x,), (v,))[1]`": on_both("jax", "result = $0", 6 * X),
    "`jax.vmap(s)(a)`": on_both("jax", "result = $0", (A**3).sum(1)),
    "`@jax.custom_jvp` on `f`, then `@f.defjvp`": (
        """
$0
def f(x):
    return x**3
$2
def _(primals, tangents):
    return primals[0] ** 3, 5 * primals[0] * tangents[0]
result = jax.jvp(f, (2.0,), (1.0,))[1]
""",
        """
@pb.autograd_function
def f(ctx, x):
    ctx.save_for_backward(x=x)
    return x**3
$0
def _(ctx, tangent):
    return 5 * ctx.saved_variables.x * tangent
result = pb.jvp(f, (2.0,), (1.0,))[1]
h = pb.autograd_function(lambda ctx, x: x**3)
@h.backward
def _(ctx, g):
    return {"x": 7 * g}
assert pb.jvp(h, (2.0,), (1.0,))[1] == 7
""",
        10.0,
    ),
    "`jax.lax.stop_gradient(x)`": on_both(
        "jax", "result = jax.grad(lambda x: (x * $0).sum())(x)", X
    ),
    "`jax.test_util.check_grads(f, (x,), order=2)`": (
        "import jax.test_util\n$0\nresult = True",
        "result = bool($0)",
        True,
    ),
    "`jax.numpy.tanh(x)`": ("result = $0", "result = $0, $1\nresult = result[0]", np.tanh(X)),
}
