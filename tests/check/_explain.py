"""Operations with wrong rules, and the evidence on them that the diagnosis reads."""

import inspect

import numpy as np
import pytest

import pullback as pb
from pullback.check.explain.evidence import Evidence
from pullback.check.report import Options, Report
from pullback.check.session import Session
from pullback.check.subject import Subject

SEEDS = pytest.mark.parametrize("seed", range(2))


def evidence(op, *args, seed=0, fast=False):
    subject = Subject(op, args)
    return Evidence(Session(subject, Options(seed, fast), Report(subject.name, seed)))


def op_of(forward, rule, name="op"):
    """Return an operation by functions of arrays; ``rule(g, *args)`` gives the first's gradient."""

    def value(ctx, *args):
        ctx.args = [a.numpy().copy() if isinstance(a, pb.Tensor) else a for a in args]
        out = forward(*ctx.args)
        return tuple(map(pb.asarray, out)) if isinstance(out, tuple) else pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, *grads):
        g = grads[0].numpy() if len(grads) == 1 else [g.numpy() for g in grads]
        with np.errstate(all="ignore"):
            found = np.asarray(rule(g, *ctx.args))
        return pb.asarray(found), *[None] * (len(ctx.args) - 1)

    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(forward).parameters.values()
    value.__signature__ = inspect.Signature([ctx, *parameters])
    return pb.autograd_function(value, backward, name=name)


def poly(x):
    return x * x + 3 * x


def poly_rule(g, x):
    return g * (2 * x + 3)
