"""Several ways to a Hessian agree on programs drawn at random, with operations of one's own."""

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
    "inner gradient": pb.grad(lambda y: np.sum(np.sin(y) * y)),
    "inner tangent": lambda x: pb.jvp(lambda y: np.sin(y) * x, (x,), (MATRIX[0],))[1],
}
OWN = {"bump", "narrow bump", "swing", "swing of both"}


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


def hessians(f, x):
    """Return the Hessian in every way there is."""
    units = np.eye(SIZE)
    _, vjp_fn = pb.vjp(pb.grad(f), x)
    _, jvp_fn = pb.linearize(pb.grad(f), x)
    return {
        "hessian": pb.hessian(f)(x),
        "jacobian of grad": pb.jacobian(pb.grad(f))(x),
        "jacobian of jacobian": pb.jacobian(pb.jacobian(f))(x),
        "forward over reverse": pb.jacfwd(pb.grad(f))(x),
        "reverse over forward": pb.jacrev(pb.jacfwd(f))(x),
        "forward over forward": pb.jacfwd(pb.jacfwd(f))(x),
        "linearized gradient": np.stack([jvp_fn(unit) for unit in units], axis=1),
        "columns": np.stack([pb.hvp(f)(x, unit) for unit in units], axis=1),
        "rows": np.stack([pb.vhp(f)(x, unit) for unit in units]),
        "vjp of grad": np.stack([vjp_fn(unit)[0] for unit in units]),
        "grad of vjp": np.stack(
            [pb.grad(lambda x, u=unit: np.sum(pb.vjp(f, x)[1](1.0)[0] * u))(x) for unit in units]
        ),
        "grad of jvp": np.stack(
            [pb.grad(lambda x, u=unit: pb.jvp(f, (x,), (u,))[1])(x) for unit in units]
        ),
        "grad of grad": np.stack(
            [pb.grad(lambda x, i=i: pb.grad(f)(x)[i])(x) for i in range(SIZE)]
        ),
    }


@pytest.mark.parametrize("seed", range(40))
def test_every_way_to_a_hessian_gives_the_same(seed):
    f, names = program(seed)
    x = np.random.default_rng(seed).normal(size=SIZE)
    first = numerical.jacobian(lambda x: f(pb.asarray(x)).numpy(), x)
    np.testing.assert_allclose(pb.grad(f)(x), first, rtol=1e-5, atol=1e-7, err_msg=str(names))
    wanted = numerical.jacobian(pb.grad(f), x)
    for way, found in hessians(f, x).items():
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{way} of {names}")
