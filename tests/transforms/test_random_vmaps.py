"""vmap on programs drawn at random equals the loop, with transforms inside and outside of it."""

import random

import numpy as np
import pytest
from tests.transforms.test_random_programs import STEPS

import pullback as pb

SIZE, SAMPLES = 4, 3


def put(x):
    out = pb.zeros(SIZE, dtype="float64")
    out[1:] = x[1:] * 2
    out[0] += x.sum()
    return out


def doubled(x):
    y = x * 1
    y[1] *= x[2]
    y[[0, 2]] += 0.5
    return y


MORE = {
    "put": put,
    "in place": doubled,
    "sorted": lambda x: np.sort(x),
    "own order": lambda x: x[x.argsort()] + x,
    "gathered": lambda x: x.gather(0, (x > 0).long()),
    "cumulative": lambda x: x.cumsum(0) / 2,
    "outer": lambda x: (pb.outer(x, x) @ x) / (1 + x @ x),
    "solved": lambda x: pb.linalg.solve(pb.eye(4, dtype="float64") * 9 + pb.outer(x, x), x) * 9,
    "looked at": lambda x: pb.matrix_exp(pb.outer(x, x) / 9)[0] / 2,
    "inner vmap": lambda x: pb.vmap(lambda a: pb.sin(a) * x.mean())(x),
    "inner vmap of grad": lambda x: pb.vmap(pb.grad(lambda a: pb.sin(a * x[0])))(x),
    "own rule": lambda x: ruled(x, x.tanh()),
}
EVERY = {**STEPS, **MORE}


@pb.autograd_function
def ruled(ctx, x, y):
    ctx.save_for_backward(x=x, y=y)
    return x * y.cos()


@ruled.backward
def _(ctx, grad_output):
    x, y = ctx.saved_variables.x, ctx.saved_variables.y
    return {"x": grad_output * y.cos(), "y": -grad_output * x * y.sin()}


@ruled.vmap
def _(info, in_dims, x, y):
    x, y = (
        t.expand((info.batch_size, *t.shape)) if d is None else t.movedim(d, 0)
        for t, d in zip((x, y), in_dims, strict=True)
    )
    return ruled(x, y), 0


def program(seed):
    """Return a function of `SIZE` numbers and weights, and the names of its steps."""
    chosen = random.Random(seed)
    names = chosen.choices(sorted(EVERY), k=4)
    names.insert(chosen.randrange(5), chosen.choice(sorted(MORE)))

    def run(x, w):
        values = [pb.asarray(x)]
        for k, name in enumerate(names):
            values.append(EVERY[name](values[-1]) * w + values[k // 2] * 0.5)
        return (values[-1] * values[2]).sum()

    return run, names


def agree(ours, theirs, names):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            np.asarray(a), np.asarray(b), rtol=1e-8, atol=1e-9, err_msg=str(names)
        )


@pytest.mark.parametrize("seed", range(60))
def test_vmap_of_a_program_is_the_loop(seed):
    f, names = program(seed)
    rng = np.random.default_rng(seed)
    xs, w = rng.normal(size=(SAMPLES, SIZE)) / 2, rng.normal(size=SIZE)
    inside = {
        "value": f,
        "gradient": pb.grad(f),
        "gradient by what is shared": pb.grad(f, 1),
        "tangent": lambda x, w: pb.jvp(lambda x: f(x, w), (x,), (x,))[1],
        "Hessian times vector": lambda x, w: pb.hvp(f)(x, w, x),
    }
    if seed % 3 == 0:
        inside["Hessian"] = pb.hessian(f)
    for transform in inside.values():
        found = pb.vmap(transform, in_axes=(0, None))(xs, w)
        agree(found, [transform(x, w) for x in xs], names)

    def whole(w):
        return pb.vmap(f, in_axes=(0, None))(pb.asarray(xs), w).sum()

    def looped(w):
        return sum(f(pb.asarray(x), w) for x in xs)

    agree(pb.grad(whole)(w), pb.grad(looped)(w), names)
    agree(pb.hvp(whole)(w, w), pb.hvp(looped)(w, w), names)
    chunked = pb.vmap(pb.grad(f), in_axes=(0, None), chunk_size=2)(xs, w)
    agree(chunked, [pb.grad(f)(x, w) for x in xs], names)
