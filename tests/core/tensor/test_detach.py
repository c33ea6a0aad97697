"""detach, detach_ and requires_grad_: what is tracked."""

import math

import pytest
from tests.tensors import constant, leaf

import pullback as pb


@pytest.mark.case("L01")
def test_requires_grad_and_is_leaf_of_a_result():
    x, y = leaf([1.0, 2.0]), constant([3.0, 4.0])
    assert not (y + y).requires_grad
    assert not (y * 2).requires_grad
    assert (x + y).requires_grad
    assert (y * x).requires_grad
    assert (y + 1 + x * 2).requires_grad
    assert [t.is_leaf for t in (x, y, y + y, x + y)] == [True, True, True, False]


@pytest.mark.case("L01")
def test_requires_grad_in_place_returns_the_same_object():
    x = constant([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad
    x.requires_grad = True
    assert x.requires_grad


@pytest.mark.case("L01")
def test_requires_grad_in_place_of_what_requires_grad_changes_nothing():
    x = leaf([1.0])
    y = x * 2
    node = y.grad_fn
    assert y.requires_grad_() is y
    assert y.grad_fn is node
    assert x.requires_grad_().requires_grad
    assert x.is_leaf


@pytest.mark.case("L02")
def test_detach_cuts_the_gradient():
    x = leaf([1.0, 2.0])
    y = (2 * x).detach()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert not (y * 4 + 2).requires_grad
    z = x + y
    assert z.tolist() == [3.0, 6.0]
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.case("L02")
def test_detach_in_place_cuts_later_uses_only():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    a = x * 2
    (y + a).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2.0, 2.0]
    assert a.detach_() is a
    assert not a.requires_grad
    (y + a).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert y.grad.tolist() == [2.0, 2.0]


@pytest.mark.case("L02")
def test_detach_in_place_keeps_the_graph_of_earlier_uses():
    x = leaf([1.0, 2.0])
    a = x * 2
    before = a + 1
    a.detach_()
    before.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.case("S10")
def test_detach_in_place_of_the_input_of_an_operation_that_saves_its_result():
    x = leaf(1.0)
    a = x.clone()
    b = a.exp()
    a.detach_()
    b.backward()
    assert x.grad.item() == pytest.approx(math.e, rel=1e-15)


@pytest.mark.case("S10")
@pytest.mark.parametrize("join", [pb.cat, pb.stack])
@pytest.mark.parametrize("place", [0, 1])
def test_detach_in_place_of_an_input_of_an_operation_that_saves_none(join, place):
    x = leaf([2.0])
    y = x * x
    z = join([x, y] if place else [y, x])
    y.detach_()
    z.sum().backward()
    assert x.grad.tolist() == [5.0]


@pytest.mark.case("S11")
def test_indexing_does_not_save_its_tensor():
    mask = constant([1.0, 0.0, 0.0]) != 0
    b = leaf([4.0, 5.0, 6.0])
    t = b + 0
    t[mask] = t[mask]
    t.backward(constant([1.0, 2.0, 3.0]))
    assert b.grad.tolist() == [1.0, 2.0, 3.0]
