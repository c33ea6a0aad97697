"""Tensor.register_post_accumulate_grad_hook, and the order of all hooks of a leaf."""

import pytest
from tests.tensors import constant, leaf

import pullback as pb


def accumulator(x):
    """Return the node that accumulates into the leaf `x`."""
    return x.view_as(x).grad_fn.next_functions[0][0]


@pytest.mark.case("H04")
def test_register_post_accumulate_grad_hook_receives_the_leaf_after_grad_was_updated():
    x = leaf([1.0, 2.0])
    seen = []

    def hook(param):
        seen.append((param is x, param.grad.tolist()))

    handle = x.register_post_accumulate_grad_hook(hook)
    (x + x * 2).sum().backward()  # two uses, one call
    (x * 3).sum().backward()
    assert seen == [(True, [3.0, 3.0]), (True, [6.0, 6.0])]
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == 2
    assert x.grad.tolist() == [9.0, 9.0]


@pytest.mark.case("H04")
def test_register_post_accumulate_grad_hook_may_consume_the_gradient():
    x = leaf([1.0, 2.0])

    def step(param):
        with pb.no_grad():
            param.sub_(param.grad * 0.5)
        param.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.tolist() == [0.0, 1.0]
    assert x.grad is None


@pytest.mark.case("H04")
def test_register_post_accumulate_grad_hook_runs_several_in_order():
    x = leaf([1.0])
    log = []

    def add_one(param):
        log.append("add")
        param.grad.add_(1)

    def double(param):
        log.append("double")
        param.grad.mul_(2)

    x.register_post_accumulate_grad_hook(add_one)
    x.register_post_accumulate_grad_hook(double)
    (x * 3).backward()
    assert log == ["add", "double"]
    assert x.grad.tolist() == [8.0]


def test_register_post_accumulate_grad_hook_needs_a_leaf_that_requires_grad():
    with pytest.raises(RuntimeError, match="require"):
        constant([1.0]).register_post_accumulate_grad_hook(lambda param: None)


@pytest.mark.case("H05")
def test_hooks_of_a_leaf_run_in_order():
    x = leaf(1.0)
    log = []

    def tensor_hook(grad):
        log.append(("tensor", grad.item()))
        return grad - 2

    def node_prehook(grad_outputs):
        log.append(("prehook", grad_outputs[0].item()))
        return (grad_outputs[0] / 5,)

    def post_accumulate(param):
        log.append(("post accumulate", param.grad.item()))
        param.grad.add_(0.5)

    def node_hook(grad_inputs, grad_outputs):
        log.append(("posthook", x.grad.item()))
        x.grad = x.grad * 10

    node = accumulator(x)
    node.register_hook(node_hook)
    node.register_prehook(node_prehook)
    x.register_post_accumulate_grad_hook(post_accumulate)
    x.register_hook(tensor_hook)
    x.backward()
    assert [name for name, _ in log] == ["tensor", "prehook", "post accumulate", "posthook"]
    assert [value for _, value in log] == pytest.approx([1.0, -1.0, -0.2, 0.3])
    assert x.grad.item() == pytest.approx(3.0)  # ((1 - 2) / 5 + 0.5) * 10


@pytest.mark.case("H05")
def test_node_register_hook_sees_the_gradient_as_accumulated():
    x = leaf(1.0)

    def node_hook(grad_inputs, grad_outputs):
        x.grad = grad_outputs[0] * 10

    def post_accumulate(param):
        param.grad.add_(0.5)

    node = accumulator(x)
    x.register_hook(lambda grad: grad - 2)
    node.register_prehook(lambda grad_outputs: (grad_outputs[0] / 5,))
    x.register_post_accumulate_grad_hook(post_accumulate)
    node.register_hook(node_hook)
    x.backward()
    assert x.grad.item() == pytest.approx(3.0)
