"""Gradients of another function, and of none."""

import numpy as np
from tests.check._explain import evidence

import pullback as pb
from pullback.check.explain import cause_of

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


# -- other arguments -------------------------------------------------------------------------------
def mixture(rule):
    """Return gate * a + (1 - gate) * b with another gradient of the gate."""

    def forward(ctx, gate, a, b):
        ctx.save_for_backward(gate=gate, a=a, b=b)
        return gate * a.cumsum(0) + (1 - gate) * b.cumsum(0)

    def backward(ctx, g):
        s = ctx.saved_variables
        back = [(g * w).flip(0).cumsum(0).flip(0) for w in (s.gate, 1 - s.gate)]
        return {"gate": rule(g, s), "a": back[0], "b": back[1]}

    return pb.autograd_function(forward, backward, name="mixture")


def test_what_a_gradient_lacks_is_found_in_the_gradient_of_another_argument():
    gate, a, b = (np.random.default_rng(k).uniform(0.2, 0.8, 4) for k in range(3))
    cause = found(mixture(lambda g, s: g * s.a.cumsum(0)), gate, a, b)
    assert cause.name == "missing-term"
    assert cause.text == (
        "a term is missing from `gate`: it does not change with `b`, though the gradient of `b`, "
        "which is right, changes with `gate`"
    )


def test_a_number_of_whose_gradient_a_part_is_missing():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x.exp() + (x**3).sin()

    cause = found(
        pb.autograd_function(
            forward, lambda ctx, g: {"x": g * ctx.saved_variables.x.exp()}, name="op"
        ),
        np.array(0.7),
    )
    assert cause.name == "missing-term"
    assert "a part of the gradient of `x` is missing" in cause.text


def test_a_term_that_is_a_multiple_of_the_output_over_a_number_is_named():
    def forward(ctx, x, width):
        ctx.save_for_backward(x=x, width=width)
        return (-((x / width) ** 2)).exp() / width**2

    def backward(ctx, g):
        x, width = ctx.saved_tensors
        out = (-((x / width) ** 2)).exp() / width**2
        slope = 2 * x / width**2
        return {"x": -g * out * slope, "width": (g * out * (slope * x / width - 1 / width)).sum()}

    op = pb.autograd_function(forward, backward, name="density")
    cause = cause_of(evidence(op, X, np.array(1.3)), 1)
    assert cause.text == (
        "the term -grad_output * the output / `width` is missing from `width` (or its opposite is "
        "too many)"
    )
