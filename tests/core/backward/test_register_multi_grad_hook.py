"""register_multi_grad_hook: one hook on the gradients of several tensors."""

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentTypeError, GraphError


def four_leaves():
    """Return four one-element leaves."""
    return tuple(leaf([float(value)]) for value in (2, 3, 5, 7))


def values(grads):
    """Return numbers for gradients and None for None."""
    return [None if grad is None else grad.item() for grad in grads]


@pytest.mark.case("H10")
def test_register_multi_grad_hook_all_fires_once_every_reachable_gradient_is_in():
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


@pytest.mark.case("H10")
def test_register_multi_grad_hook_is_under_autograd_and_a_context_manager():
    t1, t2, _, _ = four_leaves()
    seen = []
    register = pb.autograd.register_multi_grad_hook
    with register((t1, t2), lambda gs: seen.append(values(gs)), mode="all"):
        (t1 * t2).backward()
        (t1 * t2).backward()
    (t1 * t2).backward()
    assert seen == [[3.0, 2.0], [3.0, 2.0]]


@pytest.mark.case("H10")
def test_register_multi_grad_hook_takes_results():
    t1, t2, t3, _ = four_leaves()
    product = t1 * t2
    seen = []
    pb.register_multi_grad_hook((product, t3), lambda gs: seen.append(values(gs)))
    (product * t3).backward()
    assert seen == [[5.0, 6.0]]


@pytest.mark.case("H10")
def test_register_multi_grad_hook_any_fires_on_the_first_gradient():
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


@pytest.mark.case("H10")
def test_register_multi_grad_hook_does_not_fire_when_backward_fails():
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


def test_register_multi_grad_hook_needs_a_function_and_tensors_that_require_grad():
    x = leaf([1.0])
    with pytest.raises(ArgumentTypeError, match="fn must be callable, got int"):
        pb.register_multi_grad_hook([x], 3)
    with pytest.raises(GraphError, match=r"tensors\[1\] must be a Tensor that requires grad"):
        pb.register_multi_grad_hook([x, pb.ones(1)], print)
