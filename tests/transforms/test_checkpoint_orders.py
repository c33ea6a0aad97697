"""`checkpoint` in any order with the other transforms: the numbers are those without it.

A program has its stages wrapped by `wrap`, which is `checkpoint` or nothing, and is a function of
two vectors. A composition is of up to three transforms of it; each may close over what those around
it differentiate by.
"""

import itertools
import random
import zlib
from dataclasses import dataclass

import numpy as np
import pytest

import pullback as pb

SIZE = 2
X, W = np.array([0.4, 0.7]), np.array([0.9, -0.5])
V = np.array([0.3, -0.8])


@dataclass
class Pair:
    x: object
    w: object


@pb.autograd_function
def cube(ctx, x, w):
    ctx.save_for_backward(x=x, w=w)
    return x * x * x * w


@cube.backward
def _(ctx, grad_output):
    x, w = ctx.saved_tensors
    return {"x": 3 * x * x * w * grad_output, "w": x * x * x * grad_output}


@pb.autograd_function
def wave(ctx, x):
    ctx.save_for_backward(x=x)
    return x.sin()


@wave.jvp
def _(ctx, x):
    return ctx.saved_variables.x.cos() * x


@wave.vmap
def _(info, in_dims, x):
    return wave(x), in_dims[0]


# -- programs --------------------------------------------------------------------------------------
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def growth(x, w):
    return (x.sin() * w).exp()


def swing(x, w):
    return (x * x * w).cos() + x


def noisy(x):
    return x * pb.rand(SIZE, dtype="float64") + (x * pb.rand(SIZE, dtype="float64")).sin()


@program
def stages(wrap, x, w):
    return wrap(swing)(wrap(growth)(x, w), w)


@program
def nested(wrap, x, w):
    return wrap(lambda x: wrap(lambda y: wrap(growth)(y * w, w) * x.cos())(x * x).sin())(x)


@program
def closing_over_all(wrap, x, w):
    h = (x * w).exp()
    return wrap(lambda: (x * w).sin() * h)()


@program
def containers(wrap, x, w):
    def function(items, pair, *, k):
        return {"a": items["x"] * items["w"][0], "b": (pair.x.sin() * k, 3), "name": "none"}

    found = wrap(function)({"x": x, "w": [w, None]}, Pair(x * w, w), k=2.0)
    return found["a"] * found["b"][0] * found["b"][1]


@program
def integers(wrap, x, w):
    return wrap(lambda x, i, k: x[i] * w * (i + k) * x)(x, pb.tensor([1, 0]), 2)


@program
def several_results(wrap, x, w):
    same, product, _ = wrap(lambda x, w, k: (x, x * w, w * k))(x, w, x.exp())
    return same * product


@program
def draws(wrap, x, w):
    pb.manual_seed(3)
    found = wrap(lambda x: wrap(noisy)(x) * noisy(x))(x) * w
    return found + x * pb.rand(SIZE, dtype="float64")


@program
def in_place(wrap, x, w):
    def function(x):
        y = x.clone()
        y[0] = y[0] * 2 * w[1]
        y += x * w
        return y.sin() * x

    return wrap(function)(x)


@program
def complex_numbers(wrap, x, w):
    return wrap(lambda x, w: (x * (1 + 2j) * w).exp().abs() + (x * 1j * w).sin().imag)(x, w)


@program
def unrecorded(wrap, x, w):
    def function(x):
        with pb.no_grad():
            factor = (x * w).exp()
        return x * x * factor * w.detach()

    return wrap(function)(x)


@program
def hooks(wrap, x, w):
    def function(x):
        y = x.sin() * w
        for tensor, factor in ((x, 2), (y, 3)):
            if tensor.requires_grad:
                tensor.register_hook(lambda g, factor=factor: g * factor)
        return y * x

    return wrap(function)(x * 1)


@program
def saved_elsewhere(wrap, x, w):
    with pb.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return wrap(lambda x: wrap(growth)(x, w) * x)(x)


@program
def own_operation(wrap, x, w):
    return wrap(lambda x, w: cube(x, w).sin() * x)(x, w) + wrap(cube)(x, w)


@program
def own_rules(wrap, x, w):
    return wrap(lambda x: wave(x * w) * x)(x)


@program
def gradient_inside(wrap, x, w):
    return wrap(lambda x: pb.grad(lambda u: (u * u * u * w * x).sum())(x) * x)(x)


@program
def gradient_around(wrap, x, w):
    return pb.grad(lambda u: wrap(lambda u: (u**3 * w).sin() * x)(u).sum())(x) * x


@program
def gradient_between(wrap, x, w):
    def function(x):
        return pb.grad(lambda u: wrap(lambda u: (u**3 * w).sin() * x)(u).sum())(x) * x

    return wrap(function)(x)


@program
def second_object(wrap, x, w):
    gradient, other = pb.grad(wrap(lambda u: ((u**3 * w).sum(), u * w)), has_aux=True)(x)
    out, vjp_fn, more = pb.vjp(wrap(lambda u: (u * w, u.sin() * x)), x, has_aux=True)
    return gradient * other + vjp_fn(more)[0] * out


@program
def tape(wrap, x, w):
    """Differentiate by what the argument came from."""
    if not x.requires_grad:
        return pb.grad(lambda u: (u**4 * w).sum())(x)
    h = x * x
    return wrap(lambda h: pb.autograd.grad((h * h * w).sum(), x, create_graph=True)[0])(h)


@program
def tangent_inside(wrap, x, w):
    return wrap(lambda x, w: pb.jvp(lambda u: (u * w).sin() * u, (x,), (w,))[1])(x, w)


@program
def tangent_around(wrap, x, w):
    return pb.jvp(lambda u: wrap(lambda u: (u * w).sin() * u * x)(u), (x,), (w,))[1]


@program
def products(wrap, x, w):
    _, vjp_fn = pb.vjp(wrap(lambda u: (u * w * x).sin() * u), x)
    _, jvp_fn = pb.linearize(wrap(lambda u: (u * w).sin() * u * x), x)
    return wrap(lambda c: vjp_fn(c * x)[0] * jvp_fn(c))(w)


@program
def batch_inside(wrap, x, w):
    return wrap(lambda x, w: pb.vmap(lambda a: (a * w).sin().sum() * a)(x))(x, w)


@program
def batch_around(wrap, x, w):
    return pb.vmap(pb.grad(lambda a: wrap(lambda a: (a * w).sin().sum() * a)(a)))(x)


@program
def hessian_inside(wrap, x, w):
    return wrap(lambda x, w: pb.hessian(lambda u: (u * u * u * w).sum())(x) @ w)(x, w)


@program
def hessian_around(wrap, x, w):
    return pb.hessian(lambda u: wrap(lambda u: (u * u * u * w).sum() * u.sum())(u))(x) @ w


@program
def jacobians(wrap, x, w):
    forward = pb.jacobian(wrap(lambda u: (u * w).sin() * u.sum()), mode="forward")(x)
    return wrap(lambda x: pb.jacrev(lambda u: (u * w).sin() * u.sum())(x) @ x)(x) + forward @ w


@program
def equation(wrap, x, w):
    residual = wrap(lambda y, a, b: y - (a * y.cos() * 0.3 + b))
    return wrap(lambda a, b: pb.implicit.root(residual, 0.0, a, b))(x[0], w[1]) * x


# -- transforms of a function, at a point ----------------------------------------------------------
def passes(f, x):
    """Return the gradient as in PyTorch, by `backward` where nothing is differentiated around it.

    A graph does not show what a transform around this one changes: then by `grad`.
    """
    if not (isinstance(x, pb.Tensor) and x.requires_grad):
        array = x.data_array() if isinstance(x, pb.Tensor) else x
        if not isinstance(array, np.ndarray):
            return pb.grad(lambda u: f(u).sum())(x)
        leaf = pb.tensor(array, requires_grad=True)
        f(leaf).sum().backward(create_graph=pb.is_grad_enabled(), inputs=[leaf])
        found, leaf.grad = leaf.grad, None
        return pb.zeros_like(leaf.detach()) if found is None else found
    y = x * 1
    found = pb.autograd.grad(f(y).sum(), y, create_graph=True, materialize_grads=True)
    return found[0]


def samples(f, x):
    rows = pb.stack([x, x * 0.6]) if isinstance(x, pb.Tensor) else np.stack([x, x * 0.6])
    return pb.vmap(f, randomness="different")(rows)


def scales(f, x):
    factors = pb.tensor([1.0, 0.6, -0.4], dtype="float64")
    return pb.vmap(lambda s: f(x * s), chunk_size=2, randomness="same")(factors)


TRANSFORMS = {
    "grad": lambda f, x: pb.grad(lambda u: f(u).sum())(x),
    "vjp": lambda f, x: (lambda out, pull: pull(out.detach() * 0.7 + 1)[0])(
        *pb.vjp(f, pb.asarray(x))
    ),
    "jvp": lambda f, x: pb.jvp(f, (x,), (V,))[1],
    "linearize": lambda f, x: pb.linearize(f, x)[1](V),
    "vmap": samples,
    "vmap of scales": scales,
    "jacfwd": lambda f, x: pb.jacfwd(f)(x),
    "jacrev": lambda f, x: pb.jacrev(f)(x),
    "hessian": lambda f, x: pb.hessian(lambda u: f(u).sum())(x),
    "hvp": lambda f, x: pb.hvp(lambda u: f(u).sum())(x, V),
    "passes": passes,
}
# At which point an inner transform is taken, and what the program closes over, of the points of
# the transforms around it.
PLACES = {
    "composed": lambda x, w: (x, w),
    "closing": lambda x, w: (pb.tensor(X), w * x),
    "both": lambda x, w: (x, w * x),
}


def composed(names, function, place):
    """Return what a composition of transforms gives, the outermost first."""

    def at(k, w):
        if k == len(names):
            return lambda x: function(x, w)
        return lambda x: TRANSFORMS[names[k]](at(k + 1, inner(k, x, w)[1]), inner(k, x, w)[0])

    def inner(k, x, w):
        return (x, w) if k == 0 else PLACES[place](x, w)

    return at(0, pb.tensor(W))(X)


def outcome(call):
    """Return the numbers that a call gives, or the class of its error."""
    try:
        found = call()
    except pb.AutogradError as error:
        return type(error)
    return found.detach().numpy() if isinstance(found, pb.Tensor) else np.asarray(found)


def check(names, name, place):
    def numbers(wrap):
        return outcome(lambda: composed(names, lambda x, w: PROGRAMS[name](wrap, x, w), place))

    wanted, found = numbers(lambda f: f), numbers(pb.checkpoint)
    message = f"{' of '.join(names)} of {name}, {place}"
    if isinstance(wanted, type) or isinstance(found, type):
        assert wanted is found, message
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12, err_msg=message)


def compositions(name, depth, count):
    """Return some compositions of a depth, drawn for each program by itself."""
    cases = itertools.product(itertools.product(TRANSFORMS, repeat=depth), PLACES)
    return random.Random(zlib.crc32(name.encode()) + depth).sample(list(cases), count)


every = pytest.mark.parametrize("name", PROGRAMS)
quiet = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")


@quiet
@every
def test_each_transform_gives_what_it_gives_without(name):
    for transform in TRANSFORMS:
        check((transform,), name, "composed")


@quiet
@every
@pytest.mark.parametrize(("depth", "count"), [(2, 12), (3, 4)])
def test_compositions_give_what_they_give_without(name, depth, count):
    for names, place in compositions(name, depth, count):
        check(names, name, place)


@quiet
@every
@pytest.mark.stress
@pytest.mark.parametrize(("depth", "count"), [(2, 200), (3, 100)])
def test_many_compositions_give_what_they_give_without(name, depth, count):
    for names, place in compositions(name, depth, count):
        check(names, name, place)
