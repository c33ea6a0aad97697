"""register_prehook and register_hook of a node (`grad_fn`)."""

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentTypeError, GradientError


def logging_hooks():
    """Return a log, a tensor hook that triples and a node pre-hook that doubles."""
    log = []

    def tensor_hook(grad):
        log.append(1)
        return grad * 3

    def node_prehook(grad_outputs):
        log.append(2)
        return tuple(grad * 2 for grad in grad_outputs)

    return log, tensor_hook, node_prehook


@pytest.mark.case("H06")
def test_register_prehook_runs_after_the_hooks_of_the_tensor():
    log, tensor_hook, node_prehook = logging_hooks()
    a = leaf(1.0)
    b = a.clone()
    b.grad_fn.register_prehook(node_prehook)
    b.register_hook(tensor_hook)
    b.grad_fn.register_prehook(node_prehook)
    b.retain_grad()
    b.backward()
    assert log == [1, 2, 2]
    assert b.grad.item() == 3.0
    assert a.grad.item() == 12.0


@pytest.mark.case("H06")
def test_register_prehook_of_a_leaf_runs_after_the_hooks_of_the_leaf():
    log, tensor_hook, node_prehook = logging_hooks()
    a = leaf(1.0)
    b = a.clone()
    node = b.grad_fn.next_functions[0][0]
    a.register_hook(tensor_hook)
    node.register_prehook(node_prehook)
    a.register_hook(tensor_hook)
    b.backward()
    assert log == [1, 1, 2]
    assert a.grad.item() == 18.0


@pytest.mark.case("H07")
def test_register_prehook_runs_in_order_and_register_hook_sees_both_sides():
    x = leaf(1.0)
    y = 2 * x
    log = []

    def doubling(name):
        def prehook(grad_outputs):
            log.append((name, grad_outputs[0].item()))
            return (grad_outputs[0] * 2,)

        return prehook

    def unchanged(grad_outputs):
        log.append(("none", grad_outputs[0].item()))

    def node_hook(grad_inputs, grad_outputs):
        inputs = [grad.item() for grad in grad_inputs if grad is not None]
        log.append(("post", inputs, [grad.item() for grad in grad_outputs]))

    y.grad_fn.register_prehook(doubling("a"))
    y.grad_fn.register_prehook(unchanged)
    y.grad_fn.register_prehook(doubling("b"))
    y.grad_fn.register_prehook(doubling("c"))
    y.grad_fn.register_hook(node_hook)
    y.backward()
    assert log == [("a", 1.0), ("none", 2.0), ("b", 2.0), ("c", 4.0), ("post", [16.0], [8.0])]
    assert x.grad.item() == 16.0


@pytest.mark.case("H07")
def test_node_register_hook_may_replace_the_gradients_of_the_inputs():
    x, z = leaf(2.0), leaf(5.0)
    y = x * z
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1] * 100))
    y.backward()
    assert x.grad.item() == 50.0
    assert z.grad.item() == 200.0


def test_node_register_hook_may_replace_a_gradient_by_none():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    y.grad_fn.register_hook(lambda grads, _: (None, None))
    y.sum().backward()
    assert x.grad is None


def test_node_register_hook_may_return_a_gradient_of_an_untracked_input():
    x = leaf([1.0, 2.0])
    y = x * 2.0
    extra = pb.tensor([7.0], dtype=pb.float64)
    y.grad_fn.register_hook(lambda grads, _: (grads[0], extra))
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (lambda: pb.tensor([5.0], dtype=pb.float64), RuntimeError),
        (lambda: pb.tensor([5, 6]), RuntimeError),
        (lambda: 3.0, TypeError),
    ],
    ids=["shape", "dtype", "kind"],
)
@pytest.mark.parametrize("kind", ["pre", "post"])
def test_node_hooks_may_only_return_what_fits(kind, value, error):
    x = leaf([1.0, 2.0])
    y = x * 2
    if kind == "pre":
        y.grad_fn.register_prehook(lambda grads: (value(),))
    else:
        y.grad_fn.register_hook(lambda grads, _: (value(),) + (None,) * (len(grads) - 1))
    with pytest.raises(error, match="hook must return"):
        y.sum().backward()
    assert x.grad is None


def test_register_prehook_may_return_one_tensor():
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.grad_fn.register_prehook(lambda grads: grads[0] * 2.0)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (3, ArgumentTypeError, "a tuple of gradients or None, got int"),
        ((), GradientError, "as many gradients as it was given, got 0 for 1"),
    ],
)
def test_register_prehook_refuses_what_is_no_gradient(returned, error, text):
    y = leaf([1.0]) * 3.0
    y.grad_fn.register_prehook(lambda grads: returned)
    with pytest.raises(error, match=f"register_prehook: a hook must return {text}"):
        y.sum().backward()


@pytest.mark.case("H12")
def test_grad_runs_register_hook_of_its_inputs_but_no_hooks_of_their_nodes():
    a = leaf(1.0)
    b = a * 2
    c = b * 2
    count = {"tensor": 0, "pre": 0, "post": 0}

    def counting(kind):
        def hook(*gradients):
            count[kind] += 1

        return hook

    a.register_hook(counting("tensor"))
    b.register_hook(counting("tensor"))
    b.grad_fn.register_prehook(counting("pre"))
    b.grad_fn.register_hook(counting("post"))
    (grad_b,) = pb.autograd.grad(c, [b], retain_graph=True)
    assert grad_b.item() == 2.0
    assert count == {"tensor": 1, "pre": 0, "post": 0}
    count.update(tensor=0, pre=0, post=0)
    grads = pb.autograd.grad(c, [a, b], retain_graph=True)
    assert [grad.item() for grad in grads] == [4.0, 2.0]
    assert count == {"tensor": 2, "pre": 1, "post": 1}
    count.update(tensor=0, pre=0, post=0)
    (grad_a,) = pb.autograd.grad(c, [a])
    assert grad_a.item() == 4.0
    assert count == {"tensor": 2, "pre": 1, "post": 1}


# -- removal ---------------------------------------------------------------------------------------
@pytest.mark.case("H07")
def test_remove_of_a_handle_may_be_called_twice():
    x = leaf(1.0)
    y = 2 * x
    ran = []
    handles = [
        y.grad_fn.register_prehook(lambda grad_outputs: ran.append("prehook")),
        y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: ran.append("hook")),
        y.register_hook(lambda grad: ran.append("tensor")),
        x.register_post_accumulate_grad_hook(lambda param: ran.append("post accumulate")),
    ]
    for handle in handles + handles:
        handle.remove()
    y.backward()
    assert ran == []
    assert x.grad.item() == 2.0


@pytest.mark.case("H07")
@pytest.mark.parametrize("kind", ["prehook", "hook"])
def test_remove_by_an_earlier_hook_of_the_node_takes_effect(kind):
    x = leaf(1.0)
    y = 2 * x
    log = []
    handles = []
    register = y.grad_fn.register_prehook if kind == "prehook" else y.grad_fn.register_hook

    def first(*gradients):
        log.append("first")
        handles[1].remove()

    handles.append(register(first))
    handles.append(register(lambda *gradients: log.append("second")))
    handles.append(register(lambda *gradients: log.append("third")))
    y.backward(retain_graph=True)
    assert log == ["first", "third"]
    y.backward()
    assert log == ["first", "third"] * 2
    assert x.grad.item() == 4.0


@pytest.mark.case("H07")
def test_remove_by_a_hook_of_a_later_node_takes_effect():
    x = leaf(1.0)
    y = 2 * x
    z = 3 * y
    log = []
    handles = [
        y.grad_fn.register_prehook(lambda grad_outputs: log.append("prehook")),
        y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: log.append("hook")),
        y.register_hook(lambda grad: log.append("tensor")),
        x.register_hook(lambda grad: log.append("leaf")),
    ]

    def remove_all(grad_outputs):
        log.append("remove")
        for handle in handles:
            handle.remove()

    z.grad_fn.register_prehook(remove_all)
    z.backward()
    assert log == ["remove"]
    assert x.grad.item() == 6.0
