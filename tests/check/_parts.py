"""One part of the check, run alone on one call; and operations to run it on."""

import functools
import inspect

import numpy as np

import pullback as pb
from pullback.check.properties import PARTS
from pullback.check.report import (
    Options,
    PartResult,
    Report,
)
from pullback.check.session import Session
from pullback.check.subject import Subject

NORMAL = np.random.default_rng(0).normal
RUN = {part.name: part.run for part in PARTS}
X = np.array([[0.5, -1.5, 2.0], [1.0, 0.75, -0.25]])
Y = np.array([[1.5, 0.5, -1.0], [2.0, -0.5, 1.25]])


def check(part, fn, *inputs, **options):
    """Run one part and return the report."""
    report = Report("test", 0)
    RUN[part](Session(Subject(fn, inputs), Options(**options), report))
    return report


def ran(part, fn, *inputs, **options):
    """Run one part on one call; return its result and the report."""
    report = Report("test", 0)
    found = RUN[part](Session(Subject(fn, inputs), Options(**options), report))
    return PartResult(part, "", *found), report


def only_failure(part, fn, *inputs, **options):
    """Run one part that must find one thing; return the name of its cause, and all that it says."""
    (failure,) = check(part, fn, *inputs, **options).failures
    return failure.cause.name, str(failure)


def op(forward, backward, name="op", once=False):
    """Return an operation."""
    rule = pb.once_differentiable(backward) if once else backward
    return pb.autograd_function(forward, rule, name=name)


def saving(fn):
    """Return a forward that computes `fn` and saves its arguments."""

    def forward(ctx, *args):
        ctx.save_for_backward(*args)
        return fn(*args)

    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = inspect.signature(fn).parameters.values()
    forward.__signature__ = inspect.Signature([ctx, *own])
    return forward


def of_saved(forward, rule, **options):
    """Return an operation whose rule gets the gradients of its outputs and its arguments."""
    return op(saving(forward), lambda ctx, *g: rule(*g, *ctx.saved_tensors), **options)


def doubled(rule):
    """Return an operation that doubles, with this rule of grad_output."""
    return op(lambda ctx, x: 2 * x, lambda ctx, g: rule(g))


product = of_saved(
    lambda x, y: x * y,
    lambda g, x, y: ((g * y).sum_to_size(x.shape), (g * x).sum_to_size(y.shape)),
    name="product",
)


def linear_forward(ctx, x, w, b):
    ctx.save_for_backward(x, w, b)
    return x @ w.mT + b


def linear_backward(ctx, grad):
    x, w, _ = ctx.saved_tensors
    return grad @ w, grad.mT @ x, grad.sum(0)


linear = op(linear_forward, linear_backward, "linear")


def linear_inputs(n=4):
    return NORMAL(size=(n, 3)), NORMAL(size=(2, 3)), NORMAL(size=2)


@functools.cache
def two_results():
    """Return a right operation of two results."""

    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        ctx.rows = [x.numpy() * 2]
        return x * y, x + y

    def backward(ctx, g, h):
        s = ctx.saved_variables
        return {"x": g * s.y + h, "y": g * s.x + h}

    return op(forward, backward)


def double_in_place():
    """Return a right operation that works in place."""

    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    return op(forward, lambda ctx, g: g.mul_(2.0), "double_")
