"""Views whose base was changed in place, or had its data replaced, since they were made."""

import pytest

import pullback as pb
from pullback.errors import InplaceError


def leaf(value):
    return pb.tensor(value, dtype=pb.float64, requires_grad=True)


def grad(out, x):
    return pb.autograd.grad(out, x)[0].tolist()


@pytest.mark.parametrize("change", ["add_", "copy_", "setitem"])
def test_a_view_whose_base_changed_is_right_as_the_other_operand_of_an_inplace_change(change):
    x = leaf([1.0, 2.0])
    b = x * 1
    v = b[0:1]
    b.mul_(3)
    z = pb.tensor([5.0], dtype=pb.float64)
    if change == "setitem":
        z[0:1] = v
    else:
        getattr(z, change)(v)
    assert grad(z.sum(), x) == [3.0, 0.0]


def test_a_view_keeps_its_values_when_its_bases_data_is_replaced():
    w = leaf([1.0, 2.0])
    view = w.view(2, 1)
    w.data = w.data * 10
    assert view.tolist() == [[1.0], [2.0]]
    assert w.tolist() == [10.0, 20.0]
    assert grad((view * 3).sum(), w) == [3.0, 3.0]


def test_a_view_whose_base_changed_cannot_be_used_once_the_data_of_the_base_is_replaced():
    b = leaf([1.0, 2.0]) * 1
    view = b[0:1]
    b.mul_(2)
    b.data = pb.tensor([5.0, 6.0], dtype=pb.float64)
    with pytest.raises(pb.AutogradError, match="graph of the view is lost"):
        view * 1


class First(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x[0:1]

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": pb.concat([grad_output * 10, grad_output * 0])}


@pytest.mark.parametrize("take", [First.apply, lambda b: b[0:1]], ids=["custom", "built-in"])
def test_a_view_made_under_no_grad_refuses_to_be_used_after_its_base_changed(take):
    b = leaf([1.0, 2.0]) * 1
    with pb.no_grad():
        view = take(b)
    b.mul_(2)
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view * 3
    with pb.no_grad():
        assert view.tolist() == [2.0]


def test_replacing_the_data_under_a_custom_view_leaves_its_rule_in_place():
    w = leaf([1.0, 2.0])
    y = First.apply(w)
    w.data = pb.tensor([10.0, 20.0], dtype=pb.float64)
    assert y.tolist() == [1.0]
    assert grad(y.sum(), w) == [10.0, 0.0]


def test_a_view_that_forward_returned_does_not_outlive_a_change_of_its_base():
    first = pb.autograd_function(lambda ctx, t: t[0], lambda ctx, g: {"t": pb.stack([g, g * 0.0])})
    base = leaf([1.0, 2.0]) * 1.0
    part = first(base)
    base.mul_(2.0)
    with pytest.raises(InplaceError, match="view that was created inside a custom Function"):
        part * 1.0
