"""The grad mode is restored after nested engine calls and errors (case G04)."""

import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


@pytest.mark.parametrize("create_graph", [False, True])
def test_G04_restored_after_a_nested_engine_call(create_graph):
    modes = []

    class Nested(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            before = pb.is_grad_enabled()
            with pb.enable_grad():
                inner = leaf([1.0, 2.0, 3.0])
                (grad,) = pb.autograd.grad(inner**3, inner, grad_outputs=grad_output)
                during = pb.is_grad_enabled()
            modes.append((before, during, pb.is_grad_enabled()))
            return grad

    x = leaf([5.0, 5.0, 5.0])
    (grad,) = pb.autograd.grad(Nested.apply(x).sum(), x, create_graph=create_graph)
    assert grad.tolist() == [3.0, 12.0, 27.0]
    assert modes == [(create_graph, True, create_graph)]
    assert pb.is_grad_enabled() is True


def test_G04_backward_under_no_grad_leaves_the_mode_off():
    x = leaf([2.0])
    y = x * x
    with pb.no_grad():
        y.backward()
        assert pb.is_grad_enabled() is False
    assert x.grad.tolist() == [4.0]


def test_G04_create_graph_records_even_under_no_grad():
    x = leaf([2.0])
    y = x**3
    with pb.no_grad():
        (first,) = pb.autograd.grad(y, x, create_graph=True)
        assert first.requires_grad is True
        assert pb.is_grad_enabled() is False
    (second,) = pb.autograd.grad(first, x)
    assert second.tolist() == [12.0]


MODES = {
    "no_grad": pb.no_grad,
    "enable_grad": pb.enable_grad,
    "inference_mode": pb.inference_mode,
    "set_grad_enabled": lambda: pb.set_grad_enabled(False),
}


@pytest.mark.parametrize("enter", MODES.values(), ids=MODES.keys())
@pytest.mark.parametrize("outer", [True, False])
def test_G04_restored_when_the_block_is_left_by_an_error(enter, outer):
    with pb.set_grad_enabled(outer):
        with pytest.raises(KeyError, match="left"), enter():
            raise KeyError("left")
        assert pb.is_grad_enabled() is outer

        @enter()
        def fail():
            raise KeyError("left")

        with pytest.raises(KeyError, match="left"):
            fail()
        assert pb.is_grad_enabled() is outer
    assert pb.is_grad_enabled() is True


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("create_graph", [False, True])
def test_G04_restored_when_backward_fails(create_graph, outer):
    class Fail(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            pb.set_grad_enabled(not create_graph)
            raise KeyError("in backward")

    x = leaf([1.0])
    y = Fail.apply(x)
    with pb.set_grad_enabled(outer):
        with pytest.raises(KeyError, match="in backward"):
            pb.autograd.grad(y, x, create_graph=create_graph)
        assert pb.is_grad_enabled() is outer
    assert pb.is_grad_enabled() is True
