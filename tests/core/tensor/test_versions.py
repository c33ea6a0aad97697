"""_version and increment_version: changes in place are counted, and noticed by backward."""

import math

import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.autograd import increment_version

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace"


@pytest.mark.case("V01")
def test_version_counts_every_change_in_place_of_a_tensor_and_its_views():
    x = constant([1.0, 2.0])
    assert x._version == 0
    x.add_(1).add_(1)
    assert x._version == 2
    view = x[:]
    for n, t in enumerate((x[:], view, x), start=3):
        t.add_(1)
        assert (x._version, view._version) == (n, n)
    assert x.tolist() == [6.0, 7.0]


@pytest.mark.case("V02")
def test_version_of_a_changed_saved_tensor_is_in_the_error():
    x, y = leaf([1.0, 1.0]), leaf([4.0, 4.0])
    z = x * y
    q = z + y
    w = z * y
    z.add_(2)
    q.backward(constant([1.0, 1.0]), retain_graph=True)
    assert x.grad.tolist() == [4.0, 4.0]
    assert y.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=MODIFIED) as caught:
        w.backward(constant([1.0, 1.0]))
    assert "is at version 1; expected version 0" in str(caught.value)
    assert "Mul" in str(caught.value)


@pytest.mark.case("V02")
def test_the_result_of_a_change_in_place_is_differentiable():
    x, y = leaf(1.0), leaf(4.0)
    z = x * y
    q = z * y
    r = z + y
    w = z.add_(y)
    assert w is z
    w.backward(retain_graph=True)
    assert (x.grad.item(), y.grad.item()) == (4.0, 2.0)
    r.backward(retain_graph=True)
    assert (x.grad.item(), y.grad.item()) == (8.0, 4.0)
    with pytest.raises(RuntimeError, match=MODIFIED):
        q.backward()


@pytest.mark.case("V03")
def test_exp_in_place_after_an_addition():
    x, y = leaf(1.0), leaf(4.0)
    z = x / 2 + y / 8
    assert z.item() == 1.0
    r = z + y
    before = z._version
    w = z.exp_()
    assert z._version != before
    r.backward(retain_graph=True)
    assert x.grad.item() == 0.5
    w.backward()
    assert x.grad.item() == pytest.approx((1 + math.e) / 2, rel=1e-15)


@pytest.mark.case("V04")
def test_a_clone_that_was_changed_can_be_used():
    x = leaf([1.0, 1.0])
    y = x.clone()
    y.add_(10)
    (y + 2).sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([11.0, 11.0], [1.0, 1.0])


@pytest.mark.case("V06")
@pytest.mark.parametrize("computed", [False, True])
def test_adding_a_tracked_tensor_in_place_starts_tracking(computed):
    a = constant([5.0, 5.0]) * 2 if computed else constant([10.0, 10.0])
    b = leaf([1.0, 2.0])
    same = a
    a += b
    assert same is a
    assert a.requires_grad
    assert a.tolist() == [11.0, 12.0]
    (a * 3).sum().backward()
    assert b.grad.tolist() == [3.0, 3.0]


@pytest.mark.case("V06")
def test_a_view_of_a_leaf_refuses_a_change_also_if_made_before_requires_grad():
    a = constant([1.0, 2.0])
    view = a[:]
    a.add_(5)
    view.add_(1)
    a.requires_grad = True
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        view.add_(5)
    assert (a.tolist(), a._version) == ([7.0, 8.0], 2)
    a.sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]


@pytest.mark.case("V07")
def test_increment_version_adds_exactly_one_for_a_write_through_numpy():
    a = leaf([2.0]).clone()
    b = a * a
    a.detach().numpy()[...] = 9.0
    assert a._version == 0
    increment_version(a)
    assert a._version == 1
    with pytest.raises(RuntimeError, match=MODIFIED):
        b.backward()
    increment_version(a)
    assert a._version == 2


@pytest.mark.case("V08")
def test_assigning_tracked_tensors_into_a_plain_one():
    y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    x = pb.zeros(2, 2, dtype=pb.float64)
    x[0] = y
    x[1] = 2 * z
    assert x.requires_grad
    assert x.grad_fn is not None
    assert x.tolist() == [[1.0, 2.0], [6.0, 8.0]]
    x.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert z.grad.tolist() == [2.0, 2.0]


@pytest.mark.case("V08")
def test_assigning_into_a_leaf_under_no_grad_keeps_it_a_leaf():
    x, y = leaf([[0.0, 0.0], [0.0, 0.0]]), leaf([1.0, 2.0])
    with pb.no_grad():
        x[0] = y
    assert x.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert x.requires_grad
    assert x.grad_fn is None
    assert x._version == 1


@pytest.mark.case("V09")
def test_replacing_data_keeps_the_version():
    x = constant([1.0, 2.0])
    x.add_(1)
    view = x[:]
    x.data = constant([5.0, 6.0])
    assert x.tolist() == [5.0, 6.0]
    assert x._version == 1
    x.add_(1)
    assert x.tolist() == [6.0, 7.0]
    assert (x._version, view._version) == (2, 2)


@pytest.mark.case("V09")
def test_integer_data_for_a_tensor_that_requires_grad_raises():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="floating point"):
        x.data = pb.tensor([1, 2])
    assert x.tolist() == [1.0, 2.0]
    assert x.dtype == pb.float64
    x.data = constant([5.0, 6.0])
    assert x.tolist() == [5.0, 6.0]
    assert x.requires_grad
    assert x.is_leaf
