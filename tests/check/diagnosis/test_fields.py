"""Gradients of another function, and of none."""

import numpy as np
from tests.check._diagnosis import evidence

import pullback as pb
from pullback.check.diagnosis import cause_of

X = np.array([0.4, -1.3, 2.1, 0.7])
A = np.random.default_rng(0).normal(size=(4, 4))


def found(op, *args):
    return cause_of(evidence(op, *args), 0)


def loss(rule):
    """Return sin(x' A x) + |x|^4 with another gradient."""

    def forward(ctx, x):
        v = x.numpy()
        ctx.save_for_backward(x=x)
        return pb.asarray(np.sin(v @ A @ v) + (v @ v) ** 2)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": g * pb.asarray(rule(ctx.saved_variables.x.numpy()))}

    return pb.autograd_function(forward, backward, name="loss")


def first_term(v):
    return np.cos(v @ A @ v) * (A + A.T) @ v


def test_the_gradient_of_another_function_lacks_a_term():
    # Its derivative is symmetric; no array of the call explains what is missing.
    cause = found(loss(lambda v: first_term(v) + np.exp(v) * np.exp(v).sum()), X)
    assert "is the gradient of a function, but of another one" in cause.text


def test_the_gradient_of_no_function_is_told_from_it():
    cause = found(loss(lambda v: first_term(v) + np.exp(v) * (A @ v)), X)
    assert "no function has the gradient that backward returns" in cause.text


def test_one_of_two_terms_of_a_product_rule_is_an_outer_product():
    def forward(ctx, d, y):
        h = d.numpy().T @ d.numpy() + 0.5 * np.eye(3)
        x = np.linalg.solve(h, d.numpy().T @ y.numpy())
        ctx.save_for_backward(d=d, x=pb.asarray(x), h=pb.asarray(h))
        return pb.asarray(x)

    @pb.once_differentiable
    def backward(ctx, g):
        d, x, h = (v.numpy() for v in ctx.saved_tensors)
        u = np.linalg.solve(h, g.numpy())
        return {"d": pb.asarray(-np.outer(d @ u, x)), "y": pb.asarray(d @ u)}

    rng = np.random.default_rng(1)
    ridge = pb.autograd_function(forward, backward, name="ridge")
    cause = found(ridge, rng.normal(size=(6, 3)), rng.normal(size=6))
    assert cause.name == "missing-term"
    assert "one outer product, where the right gradient is a sum of 2" in cause.text
