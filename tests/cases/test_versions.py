"""Version counters and changes in place (cases V01 to V09)."""

import math

import pytest

import pullback as pb
from pullback import Tensor, autograd

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace"


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


def test_V01_every_change_in_place_raises_the_version() -> None:
    x = const([1.0, 2.0])
    assert x._version == 0
    x.add_(1).add_(1)
    assert x._version == 2
    assert x.tolist() == [3.0, 4.0]


def test_V01_a_view_shares_the_counter_in_both_directions() -> None:
    x = const([1.0, 2.0])
    x.add_(1).add_(1)
    view = x[:]
    assert view._version == 2
    x[:].add_(1)
    assert (x._version, view._version) == (3, 3)
    view.add_(1)
    assert (x._version, view._version) == (4, 4)
    x.add_(1)
    assert (x._version, view._version) == (5, 5)


def test_V02_change_of_a_saved_tensor_raises_with_both_versions() -> None:
    x, y = leaf([1.0, 1.0]), leaf([4.0, 4.0])
    z = x * y
    q = z + y
    w = z * y
    z.add_(2)
    q.backward(const([1.0, 1.0]), retain_graph=True)
    assert x.grad.tolist() == [4.0, 4.0]
    assert y.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match=MODIFIED) as caught:
        w.backward(const([1.0, 1.0]))
    assert "is at version 1; expected version 0" in str(caught.value)
    assert "Mul" in str(caught.value)


def test_V02_result_of_the_change_is_still_differentiable() -> None:
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


def test_V03_exp_in_place_after_an_addition() -> None:
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


def test_V04_changed_clone_is_still_usable() -> None:
    x_leaf = leaf([1.0, 1.0])
    x = x_leaf.clone()
    x.add_(10)
    assert x.tolist() == [11.0, 11.0]
    y = x + 2
    y.backward(const([1.0, 1.0]), retain_graph=True)
    assert x_leaf.grad.tolist() == [1.0, 1.0]
    z = x * y
    x.add_(2)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.backward(const([1.0, 1.0]))


def test_V05_change_under_no_grad_is_noticed() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = (x * y).sum()
    with pb.no_grad():
        x *= 2
    assert x.tolist() == [2.0, 4.0]
    assert x._version == 1
    assert x.requires_grad
    assert x.is_leaf
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.backward()


def test_V05_change_through_a_detached_alias_is_noticed() -> None:
    x = leaf(3.0)
    y = x**2
    alias = x.detach()
    alias.add_(1)
    assert (x.item(), x._version, alias._version) == (4.0, 1, 1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.backward()


@pytest.mark.parametrize("computed", [False, True])
def test_V06_adding_a_tracked_tensor_in_place_starts_tracking(computed: bool) -> None:
    a = const([5.0, 5.0]) * 2 if computed else const([10.0, 10.0])
    b = leaf([1.0, 2.0])
    same = a
    a += b
    assert same is a
    assert a.requires_grad
    assert a.tolist() == [11.0, 12.0]
    (a * 3).sum().backward()
    assert b.grad.tolist() == [3.0, 3.0]


def test_V06_leaf_that_requires_grad_and_its_views_refuse_change() -> None:
    a = const([1.0, 2.0])
    early_view = a[:]
    a.requires_grad = True
    for change in (
        lambda: a.add_(5),
        lambda: a.mul_(5),
        lambda: early_view.add_(5),
        lambda: a[:1].add_(5),
        lambda: a.__iadd__(5),
        lambda: a.__setitem__(0, 5.0),
    ):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            change()
    assert a.tolist() == [1.0, 2.0]
    assert a._version == 0


def test_V06_change_before_requires_grad_was_set_is_fine() -> None:
    a = const([1.0, 2.0])
    a.add_(5)
    a[:].add_(1)
    a.requires_grad = True
    a.sum().backward()
    assert a.tolist() == [7.0, 8.0]
    assert a.grad.tolist() == [1.0, 1.0]


def test_V07_increment_version_adds_exactly_one() -> None:
    t = const([1.0])
    autograd.increment_version(t)
    assert t._version == 1
    autograd.increment_version(t)
    assert t._version == 2


def test_V07_increment_version_declares_a_write_made_through_numpy() -> None:
    x = leaf([2.0])
    a = x.clone()
    b = a * a
    a.detach().numpy()[...] = 9.0
    assert a._version == 0
    autograd.increment_version(a)
    with pytest.raises(RuntimeError, match=MODIFIED):
        b.backward()


def test_V08_assigning_tracked_tensors_into_a_plain_one() -> None:
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


def test_V08_assigning_into_a_leaf_under_no_grad_keeps_it_a_leaf() -> None:
    x, y = leaf([[0.0, 0.0], [0.0, 0.0]]), leaf([1.0, 2.0])
    with pb.no_grad():
        x[0] = y
    assert x.tolist() == [[1.0, 2.0], [0.0, 0.0]]
    assert x.requires_grad
    assert x.grad_fn is None
    assert x._version == 1


def test_V09_replacing_the_data_keeps_the_counter() -> None:
    x = const([1.0, 2.0])
    x.add_(1)
    view = x[:]
    x.data = const([5.0, 6.0])
    assert x.tolist() == [5.0, 6.0]
    assert x._version == 1
    x.add_(1)
    assert x.tolist() == [6.0, 7.0]
    assert (x._version, view._version) == (2, 2)


def test_V09_integer_data_for_a_tensor_that_requires_grad_raises() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="floating point"):
        x.data = pb.tensor([1, 2])
    assert x.tolist() == [1.0, 2.0]
    assert x.dtype == pb.float64
    x.data = const([5.0, 6.0])
    assert x.tolist() == [5.0, 6.0]
    assert x.requires_grad
    assert x.is_leaf
