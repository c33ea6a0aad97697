"""The grad mode that rules and hooks see while the engine runs."""

import pytest
from tests.tensors import leaf

import pullback as pb

on = pb.is_grad_enabled


def test_a_mode_that_a_rule_leaves_switched_does_not_outlive_backward():
    @pb.autograd_function
    def f(ctx, x):
        return x * 2.0

    @f.backward
    def _(ctx, grad_output):
        pb.set_grad_enabled(True)
        return {"x": grad_output}

    with pb.no_grad():
        with pb.enable_grad():
            y = f(leaf())
        y.backward()
        assert not on()


def test_register_hook_runs_unrecorded_unless_the_pass_is_recorded():
    x = leaf()
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(on()))
    pb.autograd.grad(y, x, retain_graph=True)
    pb.autograd.grad(y, x, create_graph=True)
    assert seen == [False, True]


@pytest.mark.case("F18")
@pytest.mark.parametrize("create_graph", [False, True])
def test_is_grad_enabled_is_off_in_forward_and_create_graph_in_backward(create_graph):
    modes = {}

    @pb.autograd_function
    def square(ctx, x):
        modes["forward"] = pb.is_grad_enabled()
        modes["input of forward"] = (x.requires_grad, x.is_leaf, x.grad_fn)
        out = x * x
        modes["recorded in forward"] = out.requires_grad
        ctx.save_for_backward(x=x)
        return out

    @square.backward
    def _(ctx, grad_output):
        modes["backward"] = pb.is_grad_enabled()
        dx = 2 * ctx.saved_variables.x * grad_output
        modes["recorded in backward"] = dx.requires_grad
        return {"x": dx}

    x = leaf(3.0)
    y = x * 1.0
    (dx,) = pb.autograd.grad(square(y), x, create_graph=create_graph)
    assert dx.item() == 6.0
    assert modes == {
        "forward": False,
        "input of forward": (False, True, None),
        "recorded in forward": False,
        "backward": create_graph,
        "recorded in backward": create_graph,
    }
    assert x.requires_grad
    assert y.grad_fn.name() == "MulBackward"
    assert pb.is_grad_enabled()


@pytest.mark.case("G04")
@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_mode_is_restored_after_a_pass_within_a_pass(create_graph):
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


@pytest.mark.case("G04")
def test_create_graph_records_even_under_no_grad():
    x = leaf([2.0])
    y = x**3
    with pb.no_grad():
        (first,) = pb.autograd.grad(y, x, create_graph=True)
        assert first.requires_grad is True
        assert pb.is_grad_enabled() is False
    (second,) = pb.autograd.grad(first, x)
    assert second.tolist() == [12.0]


@pytest.mark.case("G04")
@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_mode_is_restored_when_backward_fails(create_graph, outer):
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
