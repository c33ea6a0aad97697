"""Tensor.retain_grad: the gradient of a result."""

import weakref

import pytest
from tests.tensors import constant, leaf


def times(factor):
    """Return a hook that scales the gradient."""
    return lambda grad: grad * factor


@pytest.mark.case("RG1")
def test_retain_grad_keeps_the_gradient_of_a_result_and_retains_grad_says_so():
    x = leaf([1.0, 2.0, 3.0])
    h = x * 3
    out = (h * h).sum()
    assert not h.retains_grad
    h.retain_grad()
    h.retain_grad()
    assert h.retains_grad
    out.backward(retain_graph=True)
    assert h.grad.tolist() == [6.0, 12.0, 18.0]  # 2h
    assert x.grad.tolist() == [18.0, 36.0, 54.0]  # 18x
    out.backward(retain_graph=True)
    assert h.grad.tolist() == [12.0, 24.0, 36.0]  # 4h
    assert x.grad.tolist() == [36.0, 72.0, 108.0]


@pytest.mark.case("RG1")
def test_retain_grad_on_a_leaf_does_nothing():
    x = leaf([1.0, 2.0, 3.0])
    x.retain_grad()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.case("RG2")
def test_retain_grad_and_leaves_read_grad_without_a_warning():
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    assert (x.grad, y.grad, constant([1.0]).grad) == (None, None, None)
    y.backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2.0], [1.0])


@pytest.mark.case("RG3")
def test_retain_grad_follows_in_place_changes():
    x = leaf([1.0, 2.0])
    a = x.clone()
    a.retain_grad()
    a *= 2
    a *= 2
    a.sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.case("RG4")
def test_retain_grad_keeps_what_hooks_registered_before_and_after_it_return():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.register_hook(times(2))
    y.retain_grad()
    y.register_hook(times(2))
    y.sum().backward()
    assert y.grad.tolist() == [4.0, 4.0]
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.case("RG5")
@pytest.mark.usefixtures("no_collector")
def test_retain_grad_does_not_keep_the_tensor_alive():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    z = y / 2
    alive = weakref.ref(y)
    del y
    assert alive() is None
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_retain_grad_of_one_tensor_does_not_follow_another():
    x = leaf([3.0])
    kept = []
    x.register_hook(kept.append)
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x * x).sum().backward(create_graph=True)
    kept[0].retain_grad()
    g = x.grad  # at the same place of the history
    g.mul_(2.0)
    assert (g.tolist(), kept[0].tolist()) == ([12.0], [6.0])
    g.sum().backward()
    assert kept[0].grad.tolist() == [2.0]
