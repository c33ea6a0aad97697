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
