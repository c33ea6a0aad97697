"""Leaves whose requires_grad is switched off and on while a graph uses them."""

import weakref

import pytest
from tests.tensors import leaf

import pullback as pb


def test_a_leaf_that_was_switched_off_and_on_keeps_its_hooks_and_its_part_in_the_graph():
    w = leaf([1.0, 1.0])
    w.register_hook(lambda g: g * 10)
    y = (w * w).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    y.backward()
    assert w.grad.tolist() == [20.0, 20.0]


def test_a_leaf_that_is_switched_off_gets_no_gradient():
    w = leaf([1.0, 2.0])
    y = (w * w).sum()
    w.requires_grad_(False)
    y.backward()
    assert w.grad is None


def test_the_hooks_of_a_leaf_that_died_while_it_was_switched_off_are_freed():
    class Hook:
        def __call__(self, grad):
            return None

    gone, other, hook = leaf([1.0]), leaf([2.0]), Hook()
    alive = weakref.ref(hook)
    gone.register_hook(hook)
    gone.requires_grad_(False)
    del gone, hook
    other.requires_grad_(False)  # at the latest now
    assert alive() is None


def test_a_new_leaf_has_no_hooks_of_one_that_died_while_it_was_switched_off():
    for _ in range(20):  # the memory, and with it the id, is reused
        gone = leaf([1.0])
        gone.register_hook(lambda g: g * 10)
        gone.requires_grad_(False)
        del gone
        x = pb.tensor([1.0], dtype=pb.float64).requires_grad_()
        (x * 2.0).sum().backward()
        assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize("look", [True, False])
@pytest.mark.parametrize("part", [lambda x: x[:1], lambda x: x.unbind()[0]], ids=["one", "many"])
def test_a_view_from_before_its_base_was_switched_on_is_untracked_again_with_it(part, look):
    x = pb.tensor([1.0, 2.0], dtype=pb.float64)
    view = part(x)
    x.requires_grad_()
    if look:
        assert view.requires_grad
        later = view.view(-1)  # which was tracked from the first
    x.requires_grad_(False)
    assert not view.requires_grad
    assert not look or later.requires_grad
    x.requires_grad_()
    (view * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 0.0]


def test_a_view_that_followed_its_base_stays_on_the_old_memory_when_that_is_frozen_and_replaced():
    x = pb.tensor([1.0, 2.0], dtype=pb.float64)
    view = x[:1]
    x.requires_grad_()
    assert view.requires_grad
    x.requires_grad_(False)
    x.data = pb.tensor([5.0, 6.0], dtype=pb.float64)
    assert (view.tolist(), view.requires_grad) == ([1.0], False)


RETURNED = {
    "its input": lambda ctx, x: x,
    "a view of its input": lambda ctx, x: x[:],
    "a part of its input": lambda ctx, x: x.reshape(2, 1).reshape(2),
}
FREEZE = {
    "requires_grad_": lambda x: x.requires_grad_(False),
    "requires_grad": lambda x: setattr(x, "requires_grad", False),
    "detach_": lambda x: x.detach_(),
}


@pytest.mark.parametrize("freeze", FREEZE.values(), ids=FREEZE.keys())
@pytest.mark.parametrize("forward", RETURNED.values(), ids=RETURNED.keys())
def test_what_an_operation_returned_of_a_leaf_works_on_when_the_leaf_is_frozen(forward, freeze):
    same = pb.autograd_function(forward, lambda ctx, g: g * 5)
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = same(x)
    freeze(x)
    assert y.requires_grad
    z = y * w
    part = y[1:] * 2
    x.requires_grad_()
    outs = [(z, w, [1.0, 2.0]), (z, x, [15.0, 20.0]), (part, x, [0.0, 10.0])]
    for out, to, expected in [*outs, (y[1:] * 3, x, [0.0, 15.0])]:
        assert pb.autograd.grad(out.sum(), to, retain_graph=True)[0].tolist() == expected


def test_what_an_operation_returned_of_a_result_works_on_when_the_result_is_detached():
    same = pb.autograd_function(lambda ctx, x: x, lambda ctx, g: g * 5)
    x = leaf([1.0, 2.0])
    base = x * 1
    y = same(base)
    base.detach_()
    assert pb.autograd.grad((y * 2).sum(), x)[0].tolist() == [10.0, 10.0]


def test_a_view_made_under_no_grad_of_a_leaf_that_is_frozen_is_a_constant():
    x, w = leaf([1.0, 2.0]), leaf([3.0])
    with pb.no_grad():
        v = x[0:1]
    x.requires_grad_(False)
    assert pb.autograd.grad((v * w).sum(), w)[0].tolist() == [1.0]


def test_a_leaf_detached_in_place_and_switched_on_again_keeps_its_part_in_the_graph():
    w = leaf([1.0, 1.0])
    w.register_hook(lambda g: g * 10)
    y = (w * 2).sum()
    w.detach_()
    w.requires_grad_()
    y.backward()
    assert w.grad.tolist() == [20.0, 20.0]
