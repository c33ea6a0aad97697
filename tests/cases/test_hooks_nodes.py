"""Hooks on nodes, on accumulation and on groups of tensors (cases H04 to H07, H10, H12)."""

import pytest

import pullback as pb


def leaf(data):
    """Return a float64 leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def accumulator(x):
    """Return the node that accumulates into the leaf `x`."""
    return x.view_as(x).grad_fn.next_functions[0][0]


# --- after accumulation ----------------------------------------------------------------------


def test_H04_runs_after_grad_was_updated_and_receives_the_leaf_itself():
    x = leaf([1.0, 2.0])
    seen = []

    def hook(param):
        seen.append((param is x, param.grad.tolist()))

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert seen == [(True, [3.0, 3.0]), (True, [6.0, 6.0])]
    handle.remove()
    (x * 3).sum().backward()
    assert len(seen) == 2
    assert x.grad.tolist() == [9.0, 9.0]


def test_H04_may_consume_the_gradient():
    x = leaf([1.0, 2.0])

    def step(param):
        with pb.no_grad():
            param.sub_(param.grad * 0.5)
        param.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.tolist() == [0.0, 1.0]
    assert x.grad is None


def test_H04_several_run_in_registration_order():
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


def test_H04_runs_once_per_backward_when_the_leaf_is_used_twice():
    x = leaf([2.0])
    seen = []
    x.register_post_accumulate_grad_hook(lambda param: seen.append(param.grad.item()))
    (x * x + x).backward()
    assert seen == [5.0]


@pytest.mark.parametrize("result", [5, "tensor"], ids=["number", "tensor"])
def test_H04_a_result_raises(result):
    x = leaf([1.0])
    value = pb.tensor([1.0], dtype=pb.float64) if result == "tensor" else result
    x.register_post_accumulate_grad_hook(lambda param: value)
    with pytest.raises(pb.AutogradError, match="hooks should return None"):
        (x * 1).sum().backward()


def test_H04_registration_on_a_nonleaf_raises():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf"):
        (x * 1).register_post_accumulate_grad_hook(lambda param: None)


def test_H04_registration_without_requires_grad_raises():
    with pytest.raises(RuntimeError, match="require"):
        pb.tensor([1.0]).register_post_accumulate_grad_hook(lambda param: None)


def test_H05_order_of_the_hooks_of_a_leaf():
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


def test_H05_the_post_hook_sees_the_incoming_gradient_as_accumulated():
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


# --- nodes -----------------------------------------------------------------------------------


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


def test_H06_tensor_hooks_run_before_node_prehooks():
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


def test_H06_on_a_leaf_too():
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


def test_H07_prehooks_run_in_order_and_node_hooks_see_both_sides():
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


def test_H07_a_node_hook_may_replace_the_gradients_of_the_inputs():
    x, z = leaf(2.0), leaf(5.0)
    y = x * z
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1] * 100))
    y.backward()
    assert x.grad.item() == 50.0
    assert z.grad.item() == 200.0


def test_H07_a_node_hook_returning_none_changes_nothing():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_hook(lambda gi, go: None)
    y.backward()
    assert x.grad.item() == 3.0


def test_H07_a_handle_may_be_removed_twice():
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


@pytest.mark.parametrize("kind", ["prehook", "hook"])
def test_H07_a_hook_removed_by_an_earlier_one_does_not_run(kind):
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


def test_H07_a_hook_removed_by_a_hook_of_a_later_node_does_not_run():
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


def test_H07_a_tensor_hook_may_remove_itself():
    x = leaf(1.0)
    y = 2 * x
    log = []

    def once(grad):
        log.append(grad.item())
        handle.remove()
        return grad * 10

    handle = y.register_hook(once)
    y.backward(retain_graph=True)
    y.backward()
    assert log == [1.0]
    assert x.grad.item() == 22.0


# --- groups of tensors -----------------------------------------------------------------------


def four_leaves():
    """Return four one-element leaves."""
    return tuple(leaf([float(value)]) for value in (2, 3, 5, 7))


def values(grads):
    """Return numbers for gradients and None for None."""
    return [None if grad is None else grad.item() for grad in grads]


def test_H10_mode_all_fires_once_when_every_reachable_gradient_is_in():
    t1, t2, t3, t4 = four_leaves()
    seen = []
    handle = pb.register_multi_grad_hook((t1, t2, t3, t4), lambda gs: seen.append(values(gs)))
    (t2 * t3).sum().backward()
    assert seen == [[None, 5.0, 3.0, None]]
    seen.clear()
    (t2 * t3 + t2 * 4).sum().backward()
    assert seen == [[None, 9.0, 3.0, None]]
    seen.clear()
    (t1 * t2 * t3 * t4).sum().backward(inputs=[t1, t4])
    assert seen == [[105.0, None, None, 30.0]]
    seen.clear()
    handle.remove()
    (t2 * t3).sum().backward()
    assert seen == []


def test_H10_is_also_found_under_autograd_and_works_as_a_context_manager():
    t1, t2, _, _ = four_leaves()
    seen = []
    register = pb.autograd.register_multi_grad_hook
    with register((t1, t2), lambda gs: seen.append(values(gs)), mode="all"):
        (t1 * t2).backward()
        (t1 * t2).backward()
    (t1 * t2).backward()
    assert seen == [[3.0, 2.0], [3.0, 2.0]]


def test_H10_accepts_intermediate_results():
    t1, t2, t3, _ = four_leaves()
    product = t1 * t2
    seen = []
    pb.register_multi_grad_hook((product, t3), lambda gs: seen.append(values(gs)))
    (product * t3).backward()
    assert seen == [[5.0, 6.0]]


def test_H10_mode_any_fires_on_the_first_gradient_only():
    t1, t2, t3, t4 = four_leaves()
    seen = []
    handle = pb.register_multi_grad_hook(
        (t1, t2, t3, t4), lambda grad: seen.append(grad.item()), mode="any"
    )
    (t2 * t3).sum().backward()
    assert len(seen) == 1
    assert seen[0] in (5.0, 3.0)
    (t1 * 11).sum().backward()
    assert seen[1:] == [11.0]
    handle.remove()
    (t1 * 11).sum().backward()
    assert len(seen) == 2


def test_H10_does_not_fire_when_backward_fails():
    class Fail(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            raise RuntimeError("simulated failure")

    t1, t2, t3, t4 = four_leaves()
    seen = []
    pb.register_multi_grad_hook((t1, t2, t3, t4), lambda gs: seen.append(values(gs)))
    with pytest.raises(RuntimeError, match="simulated failure"):
        (Fail.apply(t2) * t3).sum().backward()
    assert seen == []
    (t2 * t3).sum().backward()
    assert seen == [[None, 5.0, 3.0, None]]


def test_H10_unknown_mode_raises():
    with pytest.raises(ValueError, match="foo"):
        pb.register_multi_grad_hook(four_leaves(), lambda gs: None, mode="foo")


def test_H12_grad_runs_tensor_hooks_of_its_inputs_but_not_their_node_hooks():
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
