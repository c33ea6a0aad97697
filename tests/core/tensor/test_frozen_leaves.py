"""Leaves whose requires_grad is switched off and on while a graph uses them."""

import weakref

import pullback as pb


def leaf(value):
    return pb.tensor(value, dtype=pb.float64, requires_grad=True)


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
