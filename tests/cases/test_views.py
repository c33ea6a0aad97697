"""Views and changes in place: base, view and siblings share values and graph (VW1 to VW11)."""

from collections.abc import Callable, Sequence

import pytest

import pullback as pb
from pullback import Tensor, autograd


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


def ones_leaf() -> Tensor:
    return leaf([[1.0, 1.0], [1.0, 1.0]])


def test_VW1_change_of_a_view_reaches_the_base() -> None:
    root = ones_leaf()
    x = root.clone()
    v = x[0:1]
    v *= 2
    assert x.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_VW1_change_of_a_view_by_a_tracked_factor() -> None:
    root, factor = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(5.0)
    x = root.clone()
    x[0:1].mul_(factor)
    assert x.tolist() == [[5.0, 10.0], [3.0, 4.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[5.0, 5.0], [1.0, 1.0]]
    assert factor.grad.item() == 3.0


def test_VW2_change_of_a_view_reaches_its_sibling() -> None:
    root = ones_leaf()
    x = root.clone()
    v1, v2 = x[0:1], x[0:1]
    v1 *= 2
    assert v2.tolist() == [[2.0, 2.0]]
    v2.sum().backward()
    assert root.grad.tolist() == [[2.0, 2.0], [0.0, 0.0]]


def test_VW3_change_of_a_view_of_a_view() -> None:
    root = ones_leaf()
    x = root.clone()
    v1 = x[0:1]
    v2 = v1[:, 1:2]
    v2 *= 2
    assert v1.tolist() == [[1.0, 2.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[1.0, 2.0], [1.0, 1.0]]


def test_VW3_change_of_a_view_of_a_view_of_a_transposed_root() -> None:
    root = pb.ones(2, 3, dtype=pb.float64).t()
    root.requires_grad_()
    x = root.clone()
    v2 = x[0:1][:, 1:2]
    v2 *= 2
    x.sum().backward()
    assert root.grad.tolist() == [[1.0, 2.0], [1.0, 1.0], [1.0, 1.0]]


def test_VW3_change_through_a_transposed_view() -> None:
    root = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = root.clone()
    x.t()[0:1] *= 10  # x's first column
    assert x.tolist() == [[10.0, 2.0], [30.0, 4.0], [50.0, 6.0]]
    x.sum().backward()
    assert root.grad.tolist() == [[10.0, 1.0], [10.0, 1.0], [10.0, 1.0]]


def test_VW4_tracked_change_of_a_view_makes_the_base_require_grad() -> None:
    a, b = const([2.0, 5.0]), leaf([3.0])
    v = a[1:2].mul_(b)
    assert a.requires_grad
    assert a.tolist() == [2.0, 15.0]
    v.sum().backward()
    assert b.grad.tolist() == [5.0]
    with pytest.warns(UserWarning, match="not a leaf"):
        assert a.grad is None


def test_VW4_gradient_through_the_base_of_a_tracked_change() -> None:
    a, b = const([2.0, 5.0]), leaf([3.0])
    a[1:2].mul_(b)
    (a * const([7.0, 11.0])).sum().backward()
    assert b.grad.tolist() == [55.0]


def test_VW5_change_of_the_base_reaches_an_earlier_view() -> None:
    x = const([[1.0, 2.0], [3.0, 4.0]])
    v = x[1]
    assert not v.requires_grad
    r = leaf([[1.0, 1.0], [1.0, 1.0]])
    x.add_(r)
    assert v.requires_grad
    assert v.tolist() == [4.0, 5.0]
    (dr,) = autograd.grad(v.sum(), r)
    assert dr.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_VW6_view_of_a_leaf_that_requires_grad_refuses_change() -> None:
    x = leaf([1.0, 2.0])
    phrase = "a view of a leaf Variable that requires grad is being used in an in-place operation"
    for change in (lambda: x[:1].mul_(2), lambda: x.view(2, 1).add_(1), lambda: x[:][0:1].exp_()):
        with pytest.raises(RuntimeError, match=phrase):
            change()
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "parts",
    [lambda x: x.unbind(0), lambda x: x.split(1), lambda x: x.chunk(2)],
    ids=["unbind", "split", "chunk"],
)
def test_VW7_one_of_several_views_of_one_op_refuses_change(
    parts: Callable[[Tensor], Sequence[Tensor]],
) -> None:
    root = leaf([[1.0, 2.0], [3.0, 4.0]])
    x = root.clone()
    first, second = parts(x)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        first.mul_(2)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    (first * 3 + second).sum().backward()
    assert root.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]


NO_GRAD_VIEW = "A view was created in no_grad mode and is being modified inplace"


@pytest.mark.parametrize("is_leaf", [True, False])
def test_VW8_view_made_under_no_grad_refuses_tracked_change(is_leaf: bool) -> None:
    x = leaf([1.0, 2.0]) if is_leaf else leaf([1.0, 2.0]).clone()
    with pb.no_grad():
        view = x[:]
    with pytest.raises(RuntimeError, match=NO_GRAD_VIEW):
        view.add_(1)
    assert x.tolist() == [1.0, 2.0]


def test_VW8_view_made_and_changed_under_no_grad_is_fine() -> None:
    x = leaf([1.0, 2.0]).clone()
    with pb.no_grad():
        x[:].add_(1)
    assert x.tolist() == [2.0, 3.0]


def test_VW8_no_error_if_nothing_requires_grad() -> None:
    x = const([1.0, 2.0])
    with pb.no_grad():
        view = x[:]
    view.add_(1)
    assert x.tolist() == [2.0, 3.0]


class Alias(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:]

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": grad_output * 3}


def test_VW8_view_returned_by_a_custom_function_under_no_grad() -> None:
    x = leaf([1.0, 2.0])
    with pb.no_grad():
        out = Alias.apply(x)
    with pytest.raises(RuntimeError, match=NO_GRAD_VIEW):
        out.zero_()
    assert x.tolist() == [1.0, 2.0]


class Tail(pb.Function):
    @staticmethod
    def forward(ctx, x):
        return x[1:]

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": pb.concat([pb.zeros_like(grad_output), grad_output * 3])}


@pytest.mark.parametrize(
    ("function", "values", "gradient"),
    [(Alias, [1.0, 2.0], [6.0, 6.0]), (Tail, [2.0], [0.0, 6.0])],
    ids=["whole", "slice"],
)
def test_VW9_view_made_inside_a_custom_function_may_be_used(
    function: type[pb.Function], values: list[float], gradient: list[float]
) -> None:
    x = leaf([1.0, 2.0])
    out = function.apply(x.clone())
    assert out.grad_fn.name() == f"{function.__name__}Backward"
    assert out.tolist() == values
    (out * 2).sum().backward()
    assert x.grad.tolist() == gradient


def test_VW9_view_made_inside_a_custom_function_refuses_change() -> None:
    for x in (leaf([1.0, 2.0]), leaf([1.0, 2.0]).clone()):
        out = Alias.apply(x)
        with pytest.raises(RuntimeError, match="view was created inside a custom Function"):
            out.add_(1)
        assert x.tolist() == [1.0, 2.0]


def test_VW9_clone_made_inside_a_custom_function_may_be_changed() -> None:
    calls: list[int] = []

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


def test_VW10_assignment_into_a_view_of_a_view() -> None:
    a = leaf([[1.0], [1.0], [1.0]])
    b = 2 * a
    c = b.view(3, 1)
    c[0][0] = 3
    assert b.tolist() == [[3.0], [2.0], [2.0]]
    c.sum().backward()
    assert a.grad.tolist() == [[0.0], [2.0], [2.0]]


def test_VW10_change_under_no_grad_leaves_the_graph_alone() -> None:
    root = ones_leaf()
    x = root.clone()
    v = x[0:1]
    v *= 3
    with pb.no_grad():
        x.mul_(100)
    x.sum().backward()
    assert root.grad.tolist() == [[3.0, 3.0], [1.0, 1.0]]


def test_VW11_detaching_the_base_in_place_spares_an_earlier_view() -> None:
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


def test_VW11_detaching_a_view_in_place_raises() -> None:
    for x in (leaf([1.0, 2.0]).clone(), const([1.0, 2.0])):
        with pytest.raises(RuntimeError, match=r"(?i)can't detach.*view"):
            x[1:].detach_()
