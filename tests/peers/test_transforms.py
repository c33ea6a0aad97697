"""Jacobians, Hessians and products beside JAX's, on the same functions."""

import numpy as np
import pytest

import pullback as pb

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.peers

MATRIX = np.random.default_rng(0).normal(size=(4, 4))
X, V, U = np.random.default_rng(1).normal(size=(3, 4))
CLOSE = {"rtol": 1e-9, "atol": 1e-10}

SCALARS = {
    "quartic": lambda np, x: np.sum((MATRIX @ x) ** 4) + np.prod(x),
    "log of sums": lambda np, x: np.log(np.sum(np.exp(MATRIX @ x))) * x[0],
    "norms": lambda np, x: np.linalg.norm(x) * np.sum(np.sin(x) / (1 + x**2)),
    "matrices": lambda np, x: np.linalg.det(MATRIX + np.outer(x, x)),
    "solved": lambda np, x: x @ np.linalg.solve(MATRIX + np.diag(x**2), x),
    "branches": lambda np, x: np.sum(np.where(x > 0, x**3, np.cos(x)) * np.maximum(x, x[::-1])),
}
VECTORS = {
    "elementwise": lambda np, x: np.tanh(x) * np.exp(-x),
    "mixed": lambda np, x: np.cumsum(MATRIX @ x) * np.mean(x**2),
    "tall": lambda np, x: np.outer(np.sin(x), np.arange(12.0)),
}


@pytest.fixture(autouse=True)
def doubles():
    jax.config.update("jax_enable_x64", True)


def beside(functions):
    def pair(f):
        return (lambda x: f(np, x)), (lambda x: f(jax.numpy, x))

    return pytest.mark.parametrize(
        ("ours", "theirs"), [pair(f) for f in functions.values()], ids=functions.keys()
    )


def close(ours, theirs):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, np.asarray(b), **CLOSE)


@beside(SCALARS)
def test_second_derivatives_are_those_of_jax(ours, theirs):
    wanted = jax.hessian(theirs)(X)
    close(pb.grad(ours)(X), jax.grad(theirs)(X))
    for found in (pb.hessian(ours), pb.jacfwd(pb.grad(ours)), pb.jacrev(pb.jacfwd(ours))):
        close(found(X), wanted)
    close(pb.hvp(ours)(X, V), wanted @ V)
    close(pb.vhp(ours)(X, V), V @ wanted)
    third = jax.jvp(jax.grad(lambda x: jax.jvp(theirs, (x,), (V,))[1]), (X,), (U,))
    close(pb.jvp(pb.grad(lambda x: pb.jvp(ours, (x,), (V,))[1]), (X,), (U,)), third)


@beside(VECTORS)
def test_first_derivatives_are_those_of_jax(ours, theirs):
    wanted = jax.jacrev(theirs)(X)
    for jacobian in (pb.jacobian, pb.jacrev, pb.jacfwd):
        close(jacobian(ours)(X), wanted)
    close(pb.jvp(ours, (X,), (V,)), jax.jvp(theirs, (X,), (V,)))
    close(pb.linearize(ours, X)[1](V), jax.linearize(theirs, X)[1](V))
    out, vjp_fn = pb.vjp(ours, X)
    expected, their_fn = jax.vjp(theirs, X)
    close(out, expected)
    close(vjp_fn(np.cos(out)), their_fn(jax.numpy.cos(expected)))


def test_containers_have_the_structure_of_jax():
    def f(np, p, k):
        return {"a": p["w"] * k, "b": [np.sum(p["w"]) * p["b"]]}

    given = ({"w": X, "b": 2.0}, 3.0)
    ours, theirs = (lambda *args: f(np, *args)), (lambda *args: f(jax.numpy, *args))
    close(pb.jacobian(ours, (0, 1))(*given), jax.jacobian(theirs, (0, 1))(*given))
    close(pb.hessian(ours, (0, 1))(*given), jax.hessian(theirs, (0, 1))(*given))


# -- many samples beside torch.func ----------------------------------------------------------------
XS = np.random.default_rng(2).normal(size=(5, 4))
BATCHES = {
    "products": (lambda np, x, m: m @ x + x, (0, None), 0),
    "of both": (lambda np, x, y: np.sum(np.tanh(x) * y), (0, 1), 0),
    "axes moved": (lambda np, x, m: np.exp(x) * m[0], (1, None), 1),
    "sorted": (lambda np, x, m: np.sort(x) if np.__name__ == "numpy" else x.sort().values, 0, 0),
    "where": (lambda np, x, m: np.where(x > 0, x, -m[0]), (0, None), -1),
    "solved": (lambda np, x, m: np.linalg.solve(m, x), (0, None), 0),
}


@pytest.mark.parametrize("name", BATCHES)
def test_vmap_is_that_of_torch_func(name):
    torch = pytest.importorskip("torch")
    f, in_axes, out_axes = BATCHES[name]
    other = MATRIX if in_axes not in (0, (0, 1)) else XS if in_axes == 0 else XS.T.copy()
    xs = XS if in_axes in (0, (0, None), (0, 1)) else XS.T.copy()
    ours = pb.vmap(lambda x, m: f(np, x, m), in_axes, out_axes)(xs, other)
    theirs = torch.func.vmap(lambda x, m: f(torch, x, m), in_axes, out_axes)(
        torch.tensor(xs), torch.tensor(other)
    )
    np.testing.assert_allclose(ours, theirs.numpy(), **CLOSE)

    def of_sum(namespace):
        return lambda x, m: namespace.sum(f(namespace, x, m) ** 2)

    for k in (0, 1):
        gradient = pb.vmap(pb.grad(of_sum(np), k), in_axes)(xs, other)
        wanted = torch.func.vmap(torch.func.grad(of_sum(torch), k), in_axes)(
            torch.tensor(xs), torch.tensor(other)
        )
        np.testing.assert_allclose(gradient, wanted.numpy(), **CLOSE)


def test_vmap_runs_a_rule_that_is_not_linear_once_as_jax_and_torch_do():
    torch = pytest.importorskip("torch")
    x = np.array([0.5, 3.0])

    @jax.custom_vjp
    def clip(w):
        return w

    clip.defvjp(lambda w: (w, None), lambda _, g: (jax.numpy.clip(g, -1.0, 1.0),))
    theirs = jax.grad(lambda w: jax.vmap(lambda w, x: clip(w) * x, (None, 0))(w, x).sum())

    class Clip(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(w):
            return w.clone()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g.clamp(-1.0, 1.0)

    samples = torch.func.vmap(lambda w, x: Clip.apply(w) * x, (None, 0))
    torchs = torch.func.grad(lambda w: samples(w, torch.from_numpy(x)).sum())
    ours = pb.grad(
        lambda w: pb.vmap(lambda w, x: pb.surrogate.clip_gradient(w, 1.0) * x, (None, 0))(
            w, x
        ).sum()
    )
    assert ours(2.0) == float(theirs(2.0)) == torchs(torch.tensor(2.0, dtype=torch.float64)) == 1.0
