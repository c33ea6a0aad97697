"""Operations with wrong rules, and the evidence on them that the diagnosis reads."""

import numpy as np
import pytest

import pullback as pb
from pullback.check.explain.evidence import Evidence
from pullback.check.report import Report
from pullback.check.session import Options, Session
from pullback.check.subject import Subject

SEEDS = pytest.mark.parametrize("seed", range(2))


def evidence(op, *args, seed=0, fast=False):
    subject = Subject(op, args)
    return Evidence(Session(subject, Options(seed, fast), Report(subject.name, seed)))


def with_rule(forward, rule):
    """Return an operation; ``rule(grad, *arguments)``, on arrays, gives the first's gradient."""

    def value(ctx, x, *others):
        ctx.args = [x.numpy(), *[o.numpy() if isinstance(o, pb.Tensor) else o for o in others]]
        return forward(x)

    @pb.once_differentiable
    def backward(ctx, grad):
        with np.errstate(all="ignore"):
            found = rule(grad.numpy(), *ctx.args)
        return pb.asarray(np.asarray(found)), *[None] * (len(ctx.args) - 1)

    return value, backward


def poly(x):
    return x * x + 3 * x


def poly_rule(g, x):
    return g * (2 * x + 3)
