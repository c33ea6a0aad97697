"""Views whose base was changed in place, or had its data replaced, since they were made."""

import copy

import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.errors import InplaceError


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


LOST = {
    "made under no_grad": (lambda b: pb.no_grad(lambda: b[0:1])(), False),
    "returned by forward": (
        lambda b: pb.autograd_function(lambda ctx, x: x[0:1], lambda ctx, g: None)(b),
        True,
    ),
}


@pytest.mark.parametrize(("take", "tracked"), LOST.values(), ids=LOST.keys())
def test_a_view_whose_graph_is_lost_can_still_be_read(take, tracked):
    base = leaf([1.0, 2.0]) * 1
    v = take(base)
    base.mul_(3)
    assert repr(v) == "tensor([3.], dtype=float64, grad_fn=<Invalid>)"
    assert v.shape == (1,)
    assert v.dtype is pb.float64
    assert v.requires_grad is tracked
    assert v.item() == 3.0
    assert v.tolist() == [3.0]
    assert float(v.detach()) == 3.0
    assert v.detach().numpy().tolist() == [3.0]
    assert v.data.tolist() == [3.0]
    if not tracked:
        assert v.numpy().tolist() == [3.0]
        assert copy.copy(v).tolist() == copy.deepcopy(v).tolist() == [3.0]
    for use in (lambda: v * 2, lambda: v.requires_grad_(), lambda: pb.cat([v, v])):
        with pytest.raises(InplaceError, match="inplace"):
            use()


def test_a_view_made_under_no_grad_is_no_part_of_the_graph_after_it_was_used_under_no_grad():
    base = leaf([1.0, 2.0]) * 1
    with pb.no_grad():
        v = base[0:1]
    base.mul_(3)
    with pb.no_grad():
        assert (v + 1).tolist() == [4.0]
    assert not v.requires_grad
    with pytest.raises(InplaceError, match="no_grad"):
        v * 2


def test_a_view_of_a_base_that_became_a_constant_is_one_too():
    x = leaf([1.0, 2.0])
    base = x * 1
    v = base[0:1]
    base.gt_(1.0)
    assert not base.requires_grad
    assert not v.requires_grad


def test_a_view_of_a_base_that_was_detached_after_a_change_has_no_part_in_the_graph_before_it():
    x = leaf([1.0, 2.0])
    base = x * 1
    v = base[0:1]
    base.mul_(3)
    base.detach_()
    assert v.tolist() == [3.0]
    assert not v.requires_grad


def test_a_view_of_a_base_that_was_changed_after_it_was_detached_has_no_part_in_the_graph():
    x = leaf([1.0, 2.0])
    base = x * 1
    v = base[0:1]
    with pb.no_grad():
        constant = base[1:]
    base.detach_()
    base.fill_(5.0)
    assert v.tolist() == [5.0]
    assert not v.requires_grad
    assert (constant * 2).tolist() == [10.0]


def test_a_view_keeps_its_graph_when_its_base_is_detached_and_made_a_leaf():
    x = leaf([1.0, 2.0])
    base = x * 2
    v = base[0:1]
    base.detach_()
    part = v[0]
    base.requires_grad_()
    for out in (v.sum(), part):
        gradients = pb.autograd.grad(out, [x, base], allow_unused=True, retain_graph=True)
        assert gradients[0].tolist() == [2.0, 0.0]
        assert gradients[1] is None


@pytest.mark.parametrize(
    "part", [lambda t: t[:1], lambda t: t.unbind()[0], lambda t: t.chunk(2)[1]]
)
def test_a_view_of_what_an_own_operation_returned_unchanged_refuses_to_be_changed(part):
    same = pb.autograd_function(lambda ctx, t: t, lambda ctx, g: {"t": g * 2.0})
    base = leaf([1.0, 2.0]) * 1.0
    view = part(same(base))
    with pytest.raises(InplaceError, match="view was created inside a custom Function"):
        view.mul_(3.0)
    with pb.no_grad():
        view.mul_(3.0)
    assert base.sum().item() in (5.0, 7.0)


def test_views_made_under_no_grad_of_an_own_operations_view_are_read_after_a_change():
    same = pb.autograd_function(lambda ctx, t: t.view(2), lambda ctx, g: {"t": g * 2.0})
    base = leaf([1.0, 2.0]) * 1.0
    with pb.no_grad():
        view = same(base).unbind()[0]
    base.mul_(3.0)
    with pb.no_grad():
        assert (view * 1.0).item() == 3.0


def test_a_result_that_shows_an_argument_keeps_its_graph_when_that_is_switched_on():
    shown = pb.autograd_function(
        lambda ctx, x, y: (x * 2.0, y), lambda ctx, g, h: {"x": g * 2.0 + h.sum(), "y": None}
    )
    x, y = leaf([1.0]), pb.tensor([3.0, 4.0])
    part = shown(x, y)[1][0]
    y.requires_grad_()
    part.backward()
    assert x.grad.tolist() == [1.0]


# -- changes of a base, a view and its siblings ----------------------------------------------------
@pytest.mark.case("VW1")
def test_change_of_a_view_by_a_tracked_factor():
    root, factor = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(5.0)
    x = root.clone()
    x[0:1].mul_(factor)
    assert x.tolist() == [[5.0, 10.0], [3.0, 4.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[5.0, 5.0], [1.0, 1.0]]
    assert factor.grad.item() == 3.0


@pytest.mark.case("VW2")
def test_change_of_a_view_reaches_its_sibling():
    root = ones_leaf()
    x = root.clone()
    v1, v2 = x[0:1], x[0:1]
    v1 *= 2
    assert v2.tolist() == [[2.0, 2.0]]
    v2.sum().backward()
    assert root.grad.tolist() == [[2.0, 2.0], [0.0, 0.0]]


@pytest.mark.case("VW3")
def test_change_of_a_view_of_a_view():
    root = ones_leaf()
    x = root.clone()
    v1 = x[0:1]
    v2 = v1[:, 1:2]
    v2 *= 2
    assert v1.tolist() == [[1.0, 2.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[1.0, 2.0], [1.0, 1.0]]


@pytest.mark.case("VW3")
def test_change_through_a_transposed_view():
    root = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = root.clone()
    x.t()[0:1] *= 10  # x's first column
    assert x.tolist() == [[10.0, 2.0], [30.0, 4.0], [50.0, 6.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[10.0, 1.0], [10.0, 1.0], [10.0, 1.0]]


@pytest.mark.case("VW4")
def test_a_tracked_change_of_a_view_makes_the_base_require_grad():
    a, b = constant([2.0, 5.0]), leaf([3.0])
    v = a[1:2].mul_(b)
    assert a.requires_grad
    assert a.tolist() == [2.0, 15.0]
    assert grad(v.sum() + (a * constant([7.0, 11.0])).sum(), b) == [60.0]


@pytest.mark.case("VW5")
def test_change_of_the_base_reaches_an_earlier_view():
    x = constant([[1.0, 2.0], [3.0, 4.0]])
    v = x[1]
    assert not v.requires_grad
    r = leaf([[1.0, 1.0], [1.0, 1.0]])
    x.add_(r)
    assert v.requires_grad
    assert v.tolist() == [4.0, 5.0]
    assert grad(v.sum(), r) == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.case("VW7")
@pytest.mark.parametrize(
    "parts",
    [lambda x: x.unbind(0), lambda x: x.split(1), lambda x: x.chunk(2)],
    ids=["unbind", "split", "chunk"],
)
def test_one_of_several_views_of_one_op_refuses_change(
    parts,
):
    root = leaf([[1.0, 2.0], [3.0, 4.0]])
    x = root.clone()
    first, second = parts(x)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        first.mul_(2)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (first * 3 + second).sum().backward()
    assert root.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.case("VW8")
@pytest.mark.parametrize("tracked", [True, False])
def test_a_view_made_under_no_grad_may_be_changed_where_nothing_is_recorded(tracked):
    x = pb.tensor([1.0, 2.0], requires_grad=tracked).clone()
    with pb.no_grad():
        view = x[:]
    with pb.set_grad_enabled(not tracked):
        view.add_(1)
    assert x.tolist() == [2.0, 3.0]


@pytest.mark.case("VW9")
@pytest.mark.parametrize(
    ("forward", "rule", "gradient"),
    [
        (lambda ctx, x: x[:], lambda ctx, g: g * 3, [6.0, 6.0]),
        (lambda ctx, x: x[1:], lambda ctx, g: pb.cat([g * 0, g * 3]), [0.0, 6.0]),
    ],
    ids=["whole", "slice"],
)
def test_a_view_that_forward_returned_may_be_used(forward, rule, gradient):
    x = leaf([1.0, 2.0])
    out = pb.autograd_function(forward, rule, name="part")(x.clone())
    assert out.grad_fn.name() == "partBackward"
    (out * 2).sum().backward()
    assert x.grad.tolist() == gradient


@pytest.mark.case("VW9")
def test_clone_made_inside_a_custom_function_may_be_changed():
    calls = []

    @pb.autograd_function
    def copied(ctx, x):
        return x[:].clone()

    @copied.backward
    def _(ctx, grad_output):
        calls.append(1)
        return {"x": grad_output * 3}

    x = leaf([1.0, 2.0])
    out = copied(x.clone())
    out.mul_(5)
    assert out.tolist() == [5.0, 10.0]
    out.sum().backward()
    assert calls == [1]
    assert x.grad.tolist() == [15.0, 15.0]


@pytest.mark.case("VW10")
def test_assignment_into_a_view_of_a_view():
    a = leaf([[1.0], [1.0], [1.0]])
    b = 2 * a
    c = b.view(3, 1)
    c[0][0] = 3
    assert b.tolist() == [[3.0], [2.0], [2.0]]
    c.sum().backward()
    assert a.grad.tolist() == [[0.0], [2.0], [2.0]]


def ones_leaf():
    return leaf([[1.0, 1.0], [1.0, 1.0]])


@pytest.mark.case("VW10")
def test_change_under_no_grad_leaves_the_graph_alone():
    root = ones_leaf()
    x = root.clone()
    v = x[0:1]
    v *= 3
    with pb.no_grad():
        x.mul_(100)
    x.sum().backward()
    assert root.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.case("VW11")
def test_detach_of_the_base_in_place_spares_an_earlier_view():
    x = leaf([1.0, 2.0, 3.0])
    base = x * 2
    view = base[1:]
    base.detach_()
    assert not base.requires_grad
    assert base.grad_fn is None
    assert view.requires_grad
    assert view.grad_fn is not None
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0]
