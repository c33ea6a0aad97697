"""vmap where functions close over batches, or constants made in it: right, or a clear error."""

import functools
import types

import numpy as np
import pytest

import pullback as pb
from pullback.errors import BatchedValueError, GraphError

RNG = np.random.default_rng(6)
# As many samples as elements: a batch that is taken for another of the same size would not show.
WS = RNG.uniform(0.5, 1.5, (3, 3))
Y = np.array([0.6, 0.9, 1.2])
ZERO = np.zeros(3)
V = np.array([0.3, -0.7, 1.1])


def forward(ctx, y, f):
    ctx.save_for_backward(y)
    ctx.f = f
    return f(y) * y


def backward(ctx, g):
    (y,) = ctx.saved_tensors
    return pb.vjp(lambda y: ctx.f(y) * y, y)[1](g)[0], None


of_a_function = pb.autograd_function(forward, backward, name="of_a_function")


def jacobian_forward(ctx, y, f):
    ctx.save_for_backward(y)
    ctx.f = f
    return pb.jacrev(f)(y) @ y


def jacobian_backward(ctx, g):
    (y,) = ctx.saved_tensors
    return pb.vjp(lambda y: pb.jacrev(ctx.f)(y) @ y, y)[1](g)[0], None


of_a_jacobian = pb.autograd_function(jacobian_forward, jacobian_backward, name="of_a_jacobian")


class Held:
    def __init__(self, w):
        self.w = w

    def equation(self, z, y):
        return z**3 + z - self.w * y

    __call__ = equation


def solved(equation, y):
    return pb.implicit.root(equation, ZERO, y)


# Each closes over w, and has another batch or a constant among its arguments.
CLOSURES = {
    "a built-in operation": lambda w, y: pb.sin(w * y) * y,
    "a Jacobian": lambda w, y: pb.jacrev(lambda v: pb.sin(w * v) * v.sum())(y) @ y,
    "a Jacobian in forward mode": lambda w, y: pb.jacfwd(lambda v: pb.sin(w * v))(y) @ y,
    "vmap": lambda w, y: pb.vmap(lambda v: pb.sin(w * v).sum())(pb.outer(y, y)),
    "a custom operation": lambda w, y: of_a_function(w * y, lambda v: w * v),
    "a custom operation of a constant": lambda w, y: of_a_function(y, lambda v: w * v),
    "a custom operation's Jacobian": lambda w, y: of_a_jacobian(w * y, lambda v: pb.sin(w * v)),
    "a solver": lambda w, y: solved(lambda z, y: z**3 + z - w * y, w * y),
    "a partial": lambda w, y: solved(functools.partial(lambda w, z, y: z**3 + z - w * y, w), w * y),
    "a partial's keyword": lambda w, y: solved(
        functools.partial(lambda z, y, w: z**3 + z - w * y, w=w), w * y
    ),
    "a default": lambda w, y: solved(lambda z, y, w=w: z**3 + z - w * y, w * y),
    "a bound method": lambda w, y: solved(Held(w).equation, w * y),
    "a callable object": lambda w, y: solved(Held(w), w * y),
    "a container": lambda w, y: solved(
        (lambda held: lambda z, y: z**3 + z - held["w"][0] * y)({"w": [w]}), w * y
    ),
    "a namespace": lambda w, y: solved(
        (lambda held: lambda z, y: z**3 + z - held.w * y)(types.SimpleNamespace(w=w)), w * y
    ),
    "a transform's function": lambda w, y: solved(
        pb.grad(lambda z, y: (z**4 / 4 + z**2 / 2 - w * y * z).sum()), w * y
    ),
    "a system of equations": lambda w, y: pb.implicit.linear_solve(
        functools.partial(lambda w, z: (2 + w * w) * z + 0.1 * z.sum(), w), y
    ),
}
INSIDE = {
    "itself": lambda f, y: f(y),
    "grad": lambda f, y: pb.grad(lambda y: f(y) @ V)(y),
    "jacrev": lambda f, y: pb.jacrev(f)(y),
    "jacfwd": lambda f, y: pb.jacfwd(f)(y),
    "vjp": lambda f, y: pb.vjp(f, y)[1](V)[0],
    "jvp": lambda f, y: pb.jvp(f, (y,), (V,))[1],
    "hessian": lambda f, y: pb.hessian(lambda y: f(y) @ V)(y),
}


def refusal(f):
    """Return what a function returns, and None; or None, and what it raises."""
    try:
        return f(), None
    except GraphError as error:
        return None, str(error)


@pytest.mark.parametrize("inside", list(INSIDE))
@pytest.mark.parametrize("closure", list(CLOSURES))
def test_a_batch_that_is_closed_over_is_no_other_batch(closure, inside):
    def f(w):
        y = pb.asarray(Y)
        return INSIDE[inside](lambda y: CLOSURES[closure](w, y), y)

    found, error = refusal(lambda: pb.vmap(f)(WS))
    if error is None:
        each = [np.asarray(f(pb.asarray(w))) for w in WS]
        np.testing.assert_allclose(found, each, rtol=1e-8, atol=1e-10)
    else:
        assert "closes over" in error


# -- constants that are made in the function -------------------------------------------------------
CONSTANT = {
    "a solver": lambda c, y: solved(lambda z, y: z**3 + c * z - y, y),
    "a system of equations": lambda c, y: pb.implicit.linear_solve(lambda z: c * z, y),
    "a custom operation": lambda c, y: of_a_function(y, lambda v: c * v),
    "a custom operation's Jacobian": lambda c, y: of_a_jacobian(y, lambda v: pb.sin(c * v)),
    "the constant itself": lambda c, y: of_a_function(y, lambda v: c),
}


@pytest.mark.parametrize("name", list(CONSTANT))
def test_a_constant_that_is_closed_over_is_the_same_for_each_sample(name):
    def f(y):
        return CONSTANT[name](pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64) * 0.5, y)

    def total(ys):
        return pb.vmap(f)(ys).sum()

    def looped(ys):
        return sum(f(ys[i]).sum() for i in range(3))

    found, each = pb.vmap(f)(WS), [f(pb.asarray(w)) for w in WS]
    np.testing.assert_allclose(found, np.stack([np.asarray(x) for x in each]), rtol=1e-10)
    for transform in (pb.grad, pb.hessian):
        np.testing.assert_allclose(transform(total)(WS), transform(looped)(WS), rtol=1e-8)
    of_each = [pb.jacrev(f)(w) for w in WS]
    np.testing.assert_allclose(pb.vmap(pb.jacrev(f))(WS), of_each, rtol=1e-10)


def test_what_is_tracked_outside_and_closed_over_keeps_its_gradient():
    def f(s, w):
        return solved(lambda z, y: z**3 + s * z - y, w)

    def gradients(s, w):
        return pb.grad(lambda w: f(s, w) @ V)(w)

    by_vmap = pb.grad(lambda s: pb.vmap(lambda w: gradients(s, w))(WS).sum())(Y)
    by_loop = pb.grad(lambda s: sum(gradients(s, w).sum() for w in WS))(Y)
    np.testing.assert_allclose(by_vmap, by_loop, rtol=1e-10)


def cube_forward(ctx, x, w):
    ctx.save_for_backward(x, w)
    return x * x * x * w


def cube_backward(ctx, g):
    x, w = ctx.saved_tensors
    return 3 * x * x * w * g, x * x * x * g


cube = pb.autograd_function(cube_forward, cube_backward, name="cube")


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_inside_keep_the_gradient_of_what_is_tracked_outside(order):
    def derivative(s, w):
        f = lambda x: pb.sin(cube(x, s * w))  # noqa: E731
        for _ in range(order):
            f = pb.grad(f)
        return f(0.7)

    by_vmap = pb.grad(lambda s: pb.vmap(lambda w: derivative(s, w))(Y).sum())(0.5)
    by_loop = pb.grad(lambda s: sum(derivative(s, w) for w in Y))(0.5)
    np.testing.assert_allclose(by_vmap, by_loop, rtol=1e-10)


def test_a_constant_that_is_differentiated_by_must_be_an_argument():
    def f(w):
        return pb.grad(lambda c: solved(lambda z, y: z**3 + c * z - y, w).sum())(Y)

    with pytest.raises(BatchedValueError, match="hand it over as theta"):
        pb.vmap(f)(WS)


# -- errors ----------------------------------------------------------------------------------------
def test_a_custom_operation_that_closes_over_a_batch_is_refused_with_its_line():
    with pytest.raises(BatchedValueError) as caught:
        pb.vmap(lambda w: of_a_function(w, lambda v: w * v))(WS)
    assert str(caught.value).startswith(
        "vmap: what differs between samples required among the arguments of what is called for "
        "each of them, got a function that closes over it\n"
    )
    assert "test_vmap_closures.py" in str(caught.value)
    assert "hint: hand it over as an argument" in str(caught.value)


@pytest.mark.parametrize(
    "closure",
    [
        lambda w: lambda v: w,
        lambda w: lambda v: v * float(w.sum()),
        lambda w: lambda v: v[w.argmax()] * v,
        lambda w: lambda v: pb.sort(w) * v,
        lambda w: lambda v: of_a_function(w, lambda x: x) * v,
    ],
    ids=["as it is", "as a number", "as an index", "alone", "in another operation"],
)
def test_a_batch_is_refused_however_it_is_used(closure):
    with pytest.raises(BatchedValueError, match="closes over it"):
        pb.vmap(lambda w: of_a_function(w, closure(w)))(WS)


def test_a_custom_operation_that_closes_over_what_changes_is_refused_in_forward_mode():
    def f(x):
        return of_a_function(2 * x, lambda v: x * v)

    with pytest.raises(GraphError) as caught:
        pb.jvp(f, (Y,), (V,))
    assert str(caught.value) == (
        "forward mode: what changes required among the arguments of custom operations, and of "
        "what vmap calls for each sample, got a function that closes over it\n"
        "hint: hand it over as an argument, or detach() what is meant to be constant"
    )
    detached = pb.jvp(lambda x: of_a_function(2 * x, lambda v: x.detach() * v), (Y,), (V,))[1]
    np.testing.assert_allclose(np.asarray(detached), 8 * Y * Y * V, rtol=1e-12)


# -- custom operations -----------------------------------------------------------------------------
def test_a_custom_operation_of_what_samples_share_has_a_gradient_for_each():
    def f(w):
        cube = lambda y: of_a_function(y, lambda v: v * v)  # noqa: E731
        return pb.grad(lambda y: (cube(y) * w).sum())(Y)

    np.testing.assert_allclose(pb.vmap(f)(WS), 3 * Y**2 * WS, rtol=1e-12)
    by_row = pb.vmap(lambda w: pb.hessian(lambda y: (f_of(y) * w).sum())(Y))(WS)
    np.testing.assert_allclose(by_row, [np.diag(6 * Y * w) for w in WS], rtol=1e-12)


def f_of(y):
    return of_a_function(y, lambda v: v * v)


def test_a_backward_of_nested_transforms_is_right_after_vjp_has_returned():
    f = lambda y: of_a_jacobian(y, pb.sin)  # noqa: E731
    _, vjp_fn = pb.vjp(f, Y)
    expected = V * (np.cos(Y) - Y * np.sin(Y))
    np.testing.assert_allclose(vjp_fn(V)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(pb.vmap(lambda y: pb.vjp(f, y)[1](V)[0])(Y[None]), [expected])


# -- in place --------------------------------------------------------------------------------------
def test_a_constant_that_is_closed_over_goes_into_a_tensor_of_the_function_itself():
    def f(w):
        c, order = pb.ones(3, dtype=pb.float64), pb.tensor([2, 0, 1])

        def equation(z, w):
            part = pb.zeros(3, dtype=pb.float64)
            part[1:] = c[1:]
            part.add_(c)
            return z[order] + part - w

        return pb.implicit.root(equation, ZERO, w)

    np.testing.assert_allclose(pb.vmap(f)(WS), (WS - [1, 2, 2])[:, [1, 2, 0]], rtol=1e-12)


def test_a_tensor_that_is_closed_over_is_not_written_to_for_each_sample():
    def f(w):
        total = pb.zeros(3, dtype=pb.float64)
        return of_a_function(w, lambda v: total.add_(v))

    with pytest.raises(GraphError, match="one that it closes over, while it is called for each"):
        pb.vmap(f)(WS)


# -- what outlives its transform -------------------------------------------------------------------
def test_a_batch_that_is_kept_beyond_vmap_is_refused_beside_other_tensors():
    kept = []
    pb.vmap(lambda w: kept.append(w) or w)(WS)
    for other in (2, pb.asarray(Y)):
        with pytest.raises(GraphError, match=r"(?s)is running.*one of a call that has"):
            kept[0] * other


def test_a_backward_that_closes_over_a_batch_is_refused_after_vmap_has_returned():
    def scaled(w):
        op = pb.autograd_function(lambda ctx, y: y * 1, lambda ctx, g: g * w, name="scaled")
        return op(w)

    with pytest.raises(GraphError, match="one of a call that has returned"):
        pb.grad(lambda ws: pb.vmap(scaled)(ws).sum())(WS)
