"""What forward closes over: a tracked tensor there gets no gradient, and a warning says so."""

import contextlib
import linecache
import warnings

import pytest
from tests.tensors import leaf

import pullback as pb

W = leaf([2.0, 3.0])
inner = pb.autograd_function(lambda ctx, a, b: a * b, lambda ctx, g: {"a": g, "b": g})


def of(function):
    """Return an operation that computes a function, with some gradient."""
    return pb.autograd_function(lambda ctx, x: function(x), lambda ctx, g: {"x": g})


def written(x):
    y = x.clone()
    y[:] = W
    return y


def without_recording(x):
    with pb.no_grad():
        return x * W


def recorded(x):
    with pb.enable_grad():
        return (x * W).detach()


USED = {
    "mul": lambda x: x * W,
    "rsub": lambda x: W - x,
    "matmul": lambda x: x @ W,
    "cat": lambda x: pb.cat([x, W]),
    "where": lambda x: pb.where(x > 0, x, W),
    "exp": lambda x: x + W.exp(),
    "a view": lambda x: x + W[0],
    "views": lambda x: x + W.split(1)[0],
    "max": lambda x: x + pb.max(W, axis=0),
    "add_": lambda x: x.clone().add_(W),
    "setitem": written,
    "an operation": lambda x: inner(x, W),
}
LEFT_ALONE = {
    "detach": lambda x: x * W.detach(),
    "no_grad": without_recording,
    "enable_grad": recorded,
    "compared": lambda x: x * (W > 2.5),
    "shape": lambda x: x * W.shape[0],
    "argument": lambda x: x * x,
    "constant": lambda x: x * pb.tensor([1.0, 2.0], dtype="float64"),
}


@pytest.mark.parametrize("around", [contextlib.nullcontext, pb.detect_anomaly])
@pytest.mark.parametrize("way", USED)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_tracked_tensor_that_forward_closes_over_warns_at_its_line(way, around):
    op = of(USED[way])
    with around(), pytest.warns(pb.UntrackedTensorWarning, match="none of its arg") as caught:
        op(leaf([1.0, 2.0]))
    [warning] = [w for w in caught if w.category is pb.UntrackedTensorWarning]
    assert "detach()" in str(warning.message)
    assert warning.filename == __file__
    assert "W" in linecache.getline(__file__, warning.lineno)


@pytest.mark.parametrize("way", LEFT_ALONE)
def test_what_loses_no_gradient_does_not_warn(way):
    x = leaf([1.0, 2.0])
    of(LEFT_ALONE[way])(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_where_nothing_is_recorded_there_is_nothing_to_lose():
    with pb.no_grad():
        of(USED["mul"])(leaf([1.0, 2.0]))


def test_a_tensor_of_an_outer_transform_counts():
    x = pb.tensor([1.0, 2.0], dtype="float64")

    def loss(w):
        return (of(lambda x: x * w)(x) + w).sum()

    with pytest.warns(pb.UntrackedTensorWarning, match="^mul: "):
        assert pb.grad(loss)(leaf([2.0, 3.0])).tolist() == [1.0, 1.0]


def test_backward_may_use_what_forward_closes_over():
    x = leaf([1.0, 2.0])
    op = pb.autograd_function(lambda ctx, x: x * W.detach(), lambda ctx, g: {"x": g * W})
    op(x).sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_as_an_error_it_leaves_the_mode_as_it_was():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pb.UntrackedTensorWarning):
            of(USED["mul"])(leaf([1.0, 2.0]))
    assert pb.is_grad_enabled()
    assert (leaf([1.0]) * 2.0).requires_grad
