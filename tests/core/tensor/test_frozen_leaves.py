"""Leaves whose requires_grad is switched off and on while a graph uses them."""

import pullback as pb


def leaf(value):
    return pb.tensor(value, dtype=pb.float64, requires_grad=True)


def test_a_leaf_that_was_frozen_for_a_while_keeps_its_hooks_and_place():
    w = leaf([1.0, 1.0])
    w.register_hook(lambda g: g * 10)
    y = (w * w).sum()
    w.requires_grad_(False)
    w.requires_grad_(True)
    y.backward()
    assert w.grad.tolist() == [20.0, 20.0]


def test_a_frozen_leaf_gets_no_gradient():
    w = leaf([1.0, 2.0])
    y = (w * w).sum()
    w.requires_grad_(False)
    y.backward()
    assert w.grad is None


def test_a_leaf_that_died_frozen_is_forgotten():
    from pullback.core.graph import node

    gone, other = leaf([1.0]), leaf([2.0])
    gone.requires_grad_(False)
    key = id(gone)
    assert key in node._frozen
    del gone
    other.requires_grad_(False)
    assert all(kept.leaf() is not None for kept in node._frozen.values())
    other.requires_grad_(True)
    assert id(other) not in node._frozen
