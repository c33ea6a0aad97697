"""Errors that were handled keep no graph alive; the garbage collector is off."""

import gc
import warnings
import weakref

import numpy as np
import pytest
from tests.core.graph.sample_graphs import alive, leaf, nodes_of

import pullback as pb

pytestmark = pytest.mark.usefixtures("no_collector")


class FailsInForward(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x, double=x * 2.0)
        raise ValueError("forward failed")

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class FailsInBackward(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        kept = ctx.saved_variables.x * grad_output
        raise ValueError(f"backward failed for {kept.shape}")


class ReturnsNonsense(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad_output):
        return {"y": grad_output}


class ForgetsMarkDirty(pb.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2.0)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


def second_backward(y):
    root = (y * y).sum()
    root.backward()
    root.backward()


def changed_in_place(y):
    root = y.exp().sin()
    z = y.exp()
    w = (z * 2.0).sum()
    z.add_(1.0)
    (w + root.sum()).backward()


def nan_found(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pb.detect_anomaly(), np.errstate(all="ignore"):
            ((y * 0.0).sqrt() * 0.0).sum().backward()


def raising_hook(y):
    z = y.exp()

    def hook(grad):
        raise ValueError("hook failed")

    z.register_hook(hook)
    z.sum().backward()


class FailsDeepInside(pb.Function):
    """Runs a backward of its own in backward, and fails in the innermost."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x=x)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        if ctx.depth == 0:
            raise ValueError("at the bottom")
        with pb.enable_grad():
            inner = leaf()
            FailsDeepInside.apply(inner, ctx.depth - 1).sum().backward()
        return {"x": grad_output}


def failing_pack(y):
    def pack(t):
        raise ValueError("pack failed")

    with pb.saved_tensors_hooks(pack, lambda t: t):
        y.exp()


def failing_unpack(y):
    def unpack(t):
        raise ValueError("unpack failed")

    with pb.saved_tensors_hooks(lambda t: t, unpack):
        z = y.exp()
    z.sum().backward()


def kernel_raises(y):
    with np.errstate(all="raise"):
        (y * 0.0).log()


def kernel_of_two_raises(y):
    with np.errstate(all="raise"):
        y / (y * 0.0)


MISTAKES = {
    "forward raises": (lambda y: FailsInForward.apply(y), ValueError),
    "backward raises": (lambda y: FailsInBackward.apply(y).sum().backward(), ValueError),
    "recorded backward raises": (
        lambda y: FailsInBackward.apply(y).sum().backward(inputs=[y], retain_graph=True),
        ValueError,
    ),
    "backward inside backward raises": (
        lambda y: FailsDeepInside.apply(y, 3).sum().backward(),
        ValueError,
    ),
    "backward deep inside backward raises": (
        lambda y: FailsDeepInside.apply(y, 200).sum().backward(),
        ValueError,
    ),
    "nonsense returned": (
        lambda y: ReturnsNonsense.apply(y).sum().backward(),
        pb.errors.GradientError,
    ),
    "mark_dirty forgotten": (lambda y: ForgetsMarkDirty.apply(y), pb.errors.InplaceError),
    "second backward": (second_backward, pb.errors.ReleasedError),
    "saved value changed": (changed_in_place, pb.errors.InplaceError),
    "shapes do not fit": (lambda y: y + pb.ones(7, dtype=pb.float64), pb.errors.ShapeError),
    "matrices do not fit": (
        lambda y: y.reshape(2, 2) @ pb.ones(3, 3, dtype=pb.float64),
        pb.errors.ShapeError,
    ),
    "index out of range": (lambda y: y[9], pb.errors.TensorIndexError),
    "wrong argument": (lambda y: y + "text", TypeError),
    "no scalar": (lambda y: y.backward(), pb.errors.GraphError),
    "unused input": (
        lambda y: pb.autograd.grad(y.sum(), leaf()),
        pb.errors.GraphError,
    ),
    "nan found": (nan_found, pb.errors.GradientError),
    "hook raises": (raising_hook, ValueError),
    "pack raises": (failing_pack, ValueError),
    "unpack raises": (failing_unpack, ValueError),
    "kernel raises": (kernel_raises, FloatingPointError),
    "kernel of two raises": (kernel_of_two_raises, FloatingPointError),
}


every_mistake = pytest.mark.parametrize(
    ("mistake", "expected"), MISTAKES.values(), ids=MISTAKES.keys()
)


def chain_of(error):
    """Return the error, what it was raised from, and so on, each once."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


@every_mistake
def test_an_error_that_was_handled_keeps_no_graph_alive(mistake, expected):
    x = leaf()
    y = x * 2.0
    tensor, nodes = weakref.ref(y), nodes_of(y)
    caught = None
    try:
        mistake(y)
    except expected as error:
        caught = type(error)
    assert caught is not None
    del y
    assert tensor() is None
    assert alive(nodes) == []
    assert gc.collect() == 0


@every_mistake
def test_an_error_that_is_kept_without_its_traceback_keeps_no_graph_alive(mistake, expected):
    x = leaf()
    y = x * 2.0
    tensor, nodes = weakref.ref(y), nodes_of(y)
    kept = None
    try:
        mistake(y)
    except expected as error:
        kept = error
    for error in chain_of(kept):
        error.__traceback__ = None
    del y
    assert isinstance(kept, expected)
    assert tensor() is None
    assert alive(nodes) == []
