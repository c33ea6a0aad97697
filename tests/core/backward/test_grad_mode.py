"""The grad mode that rules and hooks see while the engine runs."""

import pytest
from tests.tensors import leaf

import pullback as pb

on = pb.is_grad_enabled


@pytest.mark.parametrize("create_graph", [False, True])
def test_backward_rules_see_create_graph_as_their_mode_whatever_the_caller_does(create_graph):
    seen = []

    @pb.autograd_function
    def f(ctx, x):
        return x * 2.0

    @f.backward
    def _(ctx, grad_output):
        seen.append(on())
        return {"x": grad_output * 2.0}

    x = leaf()
    y = f(x)
    pb.autograd.grad(y, x, retain_graph=True, create_graph=create_graph)
    with pb.no_grad():
        pb.autograd.grad(y, x, create_graph=create_graph)
        assert not on()
    assert seen == [create_graph] * 2


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


def test_hooks_run_unrecorded_unless_the_pass_is_recorded():
    x = leaf()
    y = x * 2.0
    seen = []
    y.register_hook(lambda g: seen.append(on()))
    pb.autograd.grad(y, x, retain_graph=True)
    pb.autograd.grad(y, x, create_graph=True)
    assert seen == [False, True]
