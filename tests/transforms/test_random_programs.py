"""All ways to a second and a third derivative agree on programs drawn at random.

Among their steps are operations of one's own: in each form, with and without a jvp, or with that
alone.
"""

import random

import numpy as np
import pytest
from tests.transforms import _numerical as numerical

import pullback as pb

SIZE = 4
MATRIX = np.random.default_rng(0).normal(size=(SIZE, SIZE)) / 2


@pb.autograd_function
def bump(ctx, x, width=1.0):
    out = pb.exp(-(x**2) / width)
    ctx.save_for_backward(x=x, out=out)
    ctx.width = width
    return out


@bump.backward
def _(ctx, grad_output):
    saved = ctx.saved_variables
    return {"x": grad_output * saved.out * (-2 / ctx.width) * saved.x}


class Swing(pb.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.sin() * b, a + b

    @staticmethod
    def backward(ctx, first, second):
        a, b = ctx.saved_tensors
        return first * a.cos() * b + second, first * a.sin() + second


def _saturated(ctx, x, *, rate=1.5):
    ctx.save_for_backward(x=x)
    ctx.rate = rate
    return x / (1 + rate * x**2)


def _saturated_backward(ctx, grad_output):
    square = ctx.rate * ctx.saved_variables.x**2
    return grad_output * (1 - square) / (1 + square) ** 2


saturated = pb.autograd_function(_saturated, _saturated_backward)


class Wave(pb.Function):
    """The product of a sine and a number, with a backward and a jvp."""

    @staticmethod
    def forward(ctx, x, size):
        ctx.save_for_backward(x=x, size=size)
        return x.sin() * size

    @staticmethod
    def backward(ctx, grad_output):
        x, size = ctx.saved_tensors
        return {"x": grad_output * x.cos() * size, "size": grad_output * x.sin()}

    @staticmethod
    def jvp(ctx, x_dot, size_dot):
        x, size = ctx.saved_tensors
        terms = [(x_dot, x.cos() * size), (size_dot, x.sin())]
        return sum(dot * slope for dot, slope in terms if dot is not None)


@pb.autograd_function
def pushed(ctx, x):
    ctx.save_for_backward(x=x)
    return x**3 / 6 + x


@pushed.jvp
def _(ctx, x):
    return x * (ctx.saved_variables.x**2 / 2 + 1)


STEPS = {
    "sin": np.sin,
    "tanh": np.tanh,
    "square": lambda x: x**2 / 2,
    "reversed": lambda x: x[::-1] * 0.5 + x,
    "matrix": lambda x: MATRIX @ x,
    "log": lambda x: np.log1p(x**2),
    "sum": lambda x: x * np.sum(x) / 3,
    "max": lambda x: x - np.max(x),
    "joined": lambda x: np.concatenate([x[2:], x[:2] * 2]) / 2,
    "where": lambda x: np.where(x > 0, x**2, -x),
    "softmax": lambda x: pb.softmax(x, dim=0) * 2,
    "bump": bump,
    "narrow bump": lambda x: bump(x, width=0.5),
    "swing": lambda x: Swing.apply(x, x[::-1])[0],
    "swing of both": lambda x: sum(Swing.apply(x, np.tanh(x))),
    "saturated": saturated,
    "wave": lambda x: Wave.apply(x, x[::-1] + 1),
    "jvp alone": pushed,
    "inner gradient": pb.grad(lambda y: np.sum(np.sin(y) * y)),
    "inner tangent": lambda x: pb.jvp(lambda y: np.sin(y) * x, (x,), (MATRIX[0],))[1],
}
OWN = {
    *("bump", "narrow bump", "swing", "swing of both", "saturated", "wave", "jvp alone"),
}


def program(seed):
    """Return a function of `SIZE` numbers with branches that join, and the names of its steps."""
    chosen = random.Random(seed)
    names = chosen.choices(sorted(STEPS), k=4)
    names.insert(chosen.randrange(5), chosen.choice(sorted(OWN)))

    def run(x):
        values = [x]
        for k, name in enumerate(names):
            values.append(STEPS[name](values[-1]) + values[k // 2] * 0.5)
        return np.sum(values[-1] * values[2])

    return run, names


def rows_of_passes(f, x):
    """Return the Hessian by passes with create_graph, as in PyTorch."""
    leaf = pb.tensor(x, requires_grad=True)
    (gradient,) = pb.autograd.grad(f(leaf), leaf, create_graph=True)
    rows = [pb.autograd.grad(g, leaf, retain_graph=True, allow_unused=True)[0] for g in gradient]
    return np.stack([np.zeros(SIZE) if row is None else row.numpy() for row in rows])


def hessians(f, x):
    """Return the Hessian in every way there is."""
    units = np.eye(SIZE)
    _, vjp_fn = pb.vjp(pb.grad(f), x)
    _, jvp_fn = pb.linearize(pb.grad(f), x)
    return {
        "hessian": pb.hessian(f)(x),
        "jacobian of grad": pb.jacobian(pb.grad(f))(x),
        "jacobian of jacobian": pb.jacobian(pb.jacobian(f))(x),
        "forward over reverse": pb.jacfwd(pb.jacrev(f))(x),
        "reverse over forward": pb.jacrev(pb.jacfwd(f))(x),
        "forward over forward": pb.jacfwd(pb.jacfwd(f))(x),
        "reverse over reverse": pb.jacrev(pb.jacrev(f))(x),
        "linearized gradient": np.stack([jvp_fn(unit) for unit in units], axis=1),
        "columns": np.stack([pb.hvp(f)(x, unit) for unit in units], axis=1),
        "rows": np.stack([pb.vhp(f)(x, unit) for unit in units]),
        "vjp of grad": np.stack([vjp_fn(unit)[0] for unit in units]),
        "jvp of grad": np.stack([pb.jvp(pb.grad(f), (x,), (u,))[1] for u in units], axis=1),
        "grad of vjp": np.stack(
            [pb.grad(lambda x, u=unit: np.sum(pb.vjp(f, x)[1](1.0)[0] * u))(x) for unit in units]
        ),
        "grad of jvp": np.stack(
            [pb.grad(lambda x, u=unit: pb.jvp(f, (x,), (u,))[1])(x) for unit in units]
        ),
        "grad of grad": np.stack(
            [pb.grad(lambda x, i=i: pb.grad(f)(x)[i])(x) for i in range(SIZE)]
        ),
        "passes with create_graph": rows_of_passes(f, x),
    }


def check_agreement(ways, wanted, names):
    size = 1 + np.max(np.abs(wanted))
    for way, found in ways.items():
        message = f"{way} of {names}"
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * size, err_msg=message)
    exact = next(iter(ways.values()))
    for way, found in ways.items():
        message = f"{way} of {names}, beside the first way"
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-10 * size, err_msg=message)


def few_of(count):
    """Return the seeds of programs, of which most are for stress tests."""
    further = range(count // 4, count)
    return [*range(count // 4), *(pytest.param(k, marks=pytest.mark.stress) for k in further)]


@pytest.mark.parametrize("seed", few_of(40))
def test_every_way_to_a_hessian_gives_the_same(seed):
    f, names = program(seed)
    x = np.random.default_rng(seed).normal(size=SIZE)
    first = numerical.jacobian(lambda x: f(pb.asarray(x)).numpy(), x)
    np.testing.assert_allclose(pb.grad(f)(x), first, rtol=1e-5, atol=1e-7, err_msg=str(names))
    check_agreement(hessians(f, x), numerical.jacobian(pb.grad(f), x), names)


def contracted_pass(f, x, u, v, w):
    """Return the third derivative along u, v and w by passes with create_graph."""
    value = f(leaf := pb.tensor(x, requires_grad=True))
    for direction in (u, v, w):
        (gradient,) = pb.autograd.grad(value, leaf, create_graph=True)
        value = (gradient * pb.asarray(direction)).sum()
    return value.item()


def third_derivatives(f, x, u, v, w):
    """Return the third derivative along u, v and w in eight ways."""
    along = lambda f, d: lambda x: pb.jvp(f, (x,), (d,))[1]  # noqa: E731
    return {
        "forward three times": along(along(along(f, u), v), w)(x),
        "grad of hvp": pb.grad(lambda x: np.sum(pb.hvp(f)(x, u) * v))(x) @ w,
        "grad of vhp": pb.grad(lambda x: np.sum(pb.vhp(f)(x, u) * v))(x) @ w,
        "hvp of jvp": pb.hvp(along(f, u))(x, v) @ w,
        "jvp of hessian": v @ along(pb.hessian(f), u)(x) @ w,
        "linearized hvp": pb.linearize(lambda x: pb.hvp(f)(x, u), x)[1](v) @ w,
        "all of them": np.einsum("ijk,i,j,k", pb.jacrev(pb.jacfwd(pb.jacrev(f)))(x), u, v, w),
        "passes with create_graph": contracted_pass(f, x, u, v, w),
    }


@pytest.mark.parametrize("seed", few_of(20))
def test_every_way_to_a_third_derivative_gives_the_same(seed):
    f, names = program(seed)
    generator = np.random.default_rng(seed)
    x, u, v, w = generator.normal(size=(4, SIZE))
    wanted = numerical.along(lambda x: u @ pb.hvp(f)(x, v), x, w)
    check_agreement(third_derivatives(f, x, u, v, w), wanted, names)


def test_the_programs_hold_every_operation_of_ones_own():
    assert {name for seed in range(40) for name in program(seed)[1]} >= OWN
    assert {name for seed in range(20) for name in program(seed)[1]} >= OWN
