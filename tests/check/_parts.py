"""One part of the check, run alone on one call; and operations to run it on."""

import functools

import numpy as np

import pullback as pb
from pullback.check.exceptions import InapplicableError
from pullback.check.report import FAILED, INAPPLICABLE, PASSED, PartResult, Report
from pullback.check.session import Options, Session
from pullback.check.subject import Subject

NORMAL = np.random.default_rng(0).normal


def ran(part, fn, *args, **kwargs):
    """Run one part on one call; return its result and the report."""
    subject = Subject(fn, args, kwargs)
    report = Report(subject.name, 0)
    status, reason = PASSED, ""
    try:
        part(Session(subject, Options(), report))
    except InapplicableError as error:
        status, reason = INAPPLICABLE, str(error)
    if report.failures:
        status = FAILED
    return PartResult(part.__name__, "", status, reason), report


def failures(part, fn, *args, **kwargs):
    return ran(part, fn, *args, **kwargs)[1].failures


def with_backward(backward, once=False):
    """Return a decorator that makes a forward an operation with this backward."""
    rule = pb.once_differentiable(backward) if once else backward
    return lambda forward: pb.autograd_function(forward, rule, name=forward.__name__)


def product_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return (grad * y).sum_to_size(x.shape), (grad * x).sum_to_size(y.shape)


@with_backward(product_backward)
def product(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y


def linear_backward(ctx, grad):
    x, w, _ = ctx.saved_tensors
    return grad @ w, grad.mT @ x, grad.sum(0)


@with_backward(linear_backward)
def linear(ctx, x, w, b):
    ctx.save_for_backward(x, w, b)
    return x @ w.mT + b


def linear_inputs(n=4):
    return NORMAL(size=(n, 3)), NORMAL(size=(2, 3)), NORMAL(size=2)


X = np.array([[0.5, -1.5, 2.0], [1.0, 0.75, -0.25]])
Y = np.array([[1.5, 0.5, -1.0], [2.0, -0.5, 1.25]])


def check(part, fn, *inputs, **options):
    """Run one part and return the report."""
    report = Report("test", 0)
    part(Session(Subject(fn, inputs), Options(**options), report))
    return report


def only_failure(part, fn, *inputs):
    """Run one part that must find one thing; return the name of its cause and the text."""
    (failure,) = check(part, fn, *inputs).failures
    assert str(failure)
    return failure.cause.name, failure.cause.text


def op(forward, backward, name="op"):
    """Return an operation."""
    return pb.autograd_function(forward, backward, name=name)


def saving(fn):
    """Return a forward that computes `fn` and saves its arguments."""

    def forward(ctx, *args):
        ctx.save_for_backward(*args)
        return fn(*args)

    return forward


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


def writeable_memory(tensor):
    """Return a tensor's memory as a writeable array, even where its owner is read-only."""
    array = tensor.detach().numpy()
    return np.lib.stride_tricks.as_strided(_WriteableOwner(array).view, array.shape, array.strides)


class _WriteableOwner:
    def __init__(self, array):
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        self.keep = array

    @property
    def view(self):
        return np.asarray(self)
