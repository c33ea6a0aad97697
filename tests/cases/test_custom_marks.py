"""mark_non_differentiable, mark_dirty and materialised gradients (cases N, ND, MD, MG)."""

import numpy as np
import pytest

import pullback as pb
from pullback import Tensor, autograd
from pullback.errors import InplaceError


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


linear_needs: list[tuple[bool, bool, bool]] = []


def linear_forward(ctx, input, weight, bias=None):
    ctx.save_for_backward(input=input, weight=weight, bias=bias)
    output = input.mm(weight.t())
    if bias is not None:
        output = output + bias.unsqueeze(0).expand_as(output)
    return output


def linear_backward(ctx, grad_output):
    saved, needs = ctx.saved_variables, ctx.needs_input_grad
    linear_needs.append((needs.input, needs.weight, needs.bias))
    grads = {"input": None, "weight": None, "bias": None}
    if needs.input:
        grads["input"] = grad_output.mm(saved.weight)
    if needs.weight:
        grads["weight"] = grad_output.t().mm(saved.input)
    if saved.bias is not None and needs.bias:
        grads["bias"] = grad_output.sum(dim=0)
    return grads


linear = pb.autograd_function(linear_forward, linear_backward)


def test_N03_linear_without_bias() -> None:
    linear_needs.clear()
    x, w = const([[1.0, 1.0], [1.0, 1.0]]), leaf([[2.0, 3.0]])
    loss = (const([[2.0], [2.0]]) - linear(x, w)).pow(2).mean()
    assert loss.item() == 9.0
    loss.backward()
    assert w.grad.tolist() == [[6.0, 6.0]]
    assert x.grad is None
    assert linear_needs == [(False, True, False)]


def test_N03_linear_with_bias() -> None:
    linear_needs.clear()
    x, w, b = const([[1.0, 1.0], [1.0, 1.0]]), leaf([[2.0, 3.0]]), leaf([0.0])
    (const([[2.0], [2.0]]) - linear(x, w, bias=b)).pow(2).mean().backward()
    assert w.grad.tolist() == [[6.0, 6.0]]
    assert b.grad.tolist() == [6.0]
    assert linear_needs == [(False, True, True)]


def test_ND1_boolean_mask_marked_non_differentiable() -> None:
    @pb.autograd_function
    def positive(ctx, x):
        mask = x > 0
        ctx.mark_non_differentiable(mask)
        return mask

    @positive.backward
    def _(ctx, grad_output):
        return {"x": grad_output * 0}

    x = leaf([1.0, -2.0, 3.0])
    mask = positive(x)
    assert mask.tolist() == [True, False, True]
    assert not mask.requires_grad
    x.masked_fill(mask, 0).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_ND2_marked_and_unmarked_outputs_together() -> None:
    received: list[list[list[float]]] = []

    class Pair(pb.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x + 1, x + 2
            ctx.mark_non_differentiable(a)
            return a, b

        @staticmethod
        def backward(ctx, ga, gb):
            received.append([ga.tolist(), gb.tolist()])
            return ga + gb

    x = leaf([1.0, 2.0])
    a, b = Pair.apply(x)
    assert not a.requires_grad
    assert b.requires_grad
    b.sum().backward()
    assert received == [[[0.0, 0.0], [1.0, 1.0]]]
    assert x.grad.tolist() == [1.0, 1.0]


def test_ND3_only_output_marked_non_differentiable() -> None:
    class Frozen(pb.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.clone()
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def backward(ctx, grad_output):
            return None

    x = leaf(3.0)
    r = Frozen.apply(x * x)
    assert not r.requires_grad
    (r * x).sum().backward()
    assert x.grad.item() == 9.0


def test_ND4_integer_and_bool_outputs_never_require_grad() -> None:
    @pb.autograd_function
    def parts(ctx, x):
        return x.to(pb.int64), x > 1, x * 2

    @parts.backward
    def _(ctx, g_whole, g_large, g_double):
        assert g_whole.tolist() == [0, 0]
        assert g_large.tolist() == [False, False]
        return {"x": 2 * g_double}

    x = leaf([3.5, 1.0])
    whole, large, double = parts(x)
    assert whole.dtype == pb.int64
    assert whole.tolist() == [3, 1]
    assert large.dtype == pb.bool
    assert [t.requires_grad for t in (whole, large, double)] == [False, False, True]
    double.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


FLOATS_ONLY = "only Tensors of floating point and complex dtype can require gradients"


def test_ND4_integer_tensor_cannot_be_made_to_require_grad() -> None:
    for dtype in (pb.int64, pb.uint8, pb.bool):
        with pytest.raises(RuntimeError, match=FLOATS_ONLY):
            pb.tensor([1, 0], dtype=dtype, requires_grad=True)
        t = pb.tensor([1, 0], dtype=dtype)
        with pytest.raises(RuntimeError, match=FLOATS_ONLY):
            t.requires_grad_()
        with pytest.raises(RuntimeError, match=FLOATS_ONLY):
            t.requires_grad = True
        assert t.requires_grad_(False) is t
        t.requires_grad = False
        assert not t.requires_grad
        assert not pb.tensor([1, 0], dtype=dtype, requires_grad=False).requires_grad


add_into_calls: list[int] = []


class AddInto(pb.Function):
    @staticmethod
    def forward(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a

    @staticmethod
    def backward(ctx, grad_output):
        add_into_calls.append(1)
        return grad_output, grad_output


def test_MD1_dirty_result_is_the_input_with_a_new_node() -> None:
    a, b = const(2.0), leaf(3.0)
    out = AddInto.apply(a, b)
    assert out is a
    assert a._version == 1
    assert a.item() == 5.0
    assert a.requires_grad
    assert a.grad_fn.name() == "AddIntoBackward"
    out.backward()
    assert b.grad.item() == 1.0


class DoubleTwice(pb.Function):
    """Doubles x in place and returns it twice."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x

    @staticmethod
    def backward(ctx, g1, g2):
        return {"x": 2 * g1 + 2 * g2}


def test_MD2_in_place_on_a_leaf_that_requires_grad_raises() -> None:
    x = leaf(2.0)
    for f in (lambda: AddInto.apply(x, leaf(3.0)), lambda: DoubleTwice.apply(x)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            f()
    with pb.no_grad():
        AddInto.apply(const(2.0), x)


def test_MD2_dirty_input_returned_twice_works_on_a_clone() -> None:
    x = leaf(3.0)
    y = x.clone()
    a, b = DoubleTwice.apply(y)
    assert a is y
    assert b is y
    (a * b).backward()  # 4 x^2
    assert x.grad.item() == 24.0


def test_MD3_marking_dirty_raises_the_version_seen_by_earlier_users() -> None:
    x = leaf(2.0)
    a = x.clone()
    b = a * a
    before = a._version
    AddInto.apply(a, leaf(3.0))
    assert a._version >= before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        b.backward()


def test_MD3_unmarked_change_through_numpy_goes_undetected() -> None:
    @pb.autograd_function
    def behind_the_back(ctx, a, amount):
        a.numpy()[...] += amount
        return a * 1

    @behind_the_back.backward
    def _(ctx, grad_output):
        return {"a": grad_output}

    x = leaf([2.0])
    a = x.clone()
    b = a * a
    before = a._version
    behind_the_back(a, 3.0)
    assert a.tolist() == [5.0]
    assert a._version == before
    b.sum().backward()
    assert x.grad.tolist() == [10.0]  # not 4: the saved value was overwritten


def test_MD3_unmarked_change_through_a_tensor_is_an_error() -> None:
    @pb.autograd_function
    def sneaky(ctx, a):
        a.add_(1)
        return a * 1

    @sneaky.backward
    def _(ctx, grad_output):
        return {"a": grad_output}

    message = r"(?s)sneaky.*'a' by an inplace operation.*\n.*ctx\.mark_dirty\(a\)"
    for a in (leaf(2.0), leaf(2.0).clone()):
        with pytest.raises(InplaceError, match=message):
            sneaky(a)


def test_MD4_marking_something_that_is_no_input_only_warns() -> None:
    @pb.autograd_function
    def add(ctx, a, b):
        out = a + b
        ctx.mark_dirty(out)
        return out

    @add.backward
    def _(ctx, grad_output):
        return {"a": grad_output, "b": grad_output}

    a, b = leaf(2.0), leaf(3.0)
    with pytest.warns(UserWarning, match="mark_dirty") as caught:
        out = add(a, b)
    assert len(caught) == 1
    out.backward()
    assert (out.item(), a.grad.item(), b.grad.item()) == (5.0, 1.0, 1.0)


def test_MD4_dirty_input_that_is_not_returned_raises() -> None:
    @pb.autograd_function
    def forgetful(ctx, a):
        a.add_(1)
        ctx.mark_dirty(a)
        return a * 1

    @forgetful.backward
    def _(ctx, grad_output):
        return {"a": grad_output}

    phrase = "marked as dirty during the forward method were not returned as output"
    with pytest.raises(RuntimeError, match=phrase):
        forgetful(leaf(2.0).clone())


def test_MD5_further_in_place_change_of_a_dirty_output() -> None:
    add_into_calls.clear()
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    c = AddInto.apply(a.clone(), b)
    c += 2
    assert c.tolist() == [6.0, 8.0]
    c.sum().backward()
    assert len(add_into_calls) == 1
    assert a.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [1.0, 1.0]


def test_MD6_several_outputs_with_a_dirty_view_raises() -> None:
    class AddIntoAndSum(pb.Function):
        @staticmethod
        def forward(ctx, a, b):
            a.add_(b)
            ctx.mark_dirty(a)
            return a, a + b

        @staticmethod
        def backward(ctx, ga, gs):
            return ga + gs, ga + 2 * gs

    a, b = leaf([1.0, 2.0]), leaf([10.0, 20.0])
    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another"):
        AddIntoAndSum.apply(a.clone()[:], b)
    first, total = AddIntoAndSum.apply(a.clone(), b)
    (first + total).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert b.grad.tolist() == [3.0, 3.0]


def test_MD6_single_output_may_modify_a_view() -> None:
    root, b = leaf([1.0, 2.0]), leaf([10.0])
    x = root.clone()
    view = x[:1]
    out = AddInto.apply(view, b)
    assert out is view
    assert x.tolist() == [11.0, 2.0]
    x.sum().backward()
    assert root.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [1.0]


def through_two_views(root: Tensor, b: Tensor) -> Tensor:
    x = root.clone()
    AddInto.apply(x[1:3, 2:4], b)
    AddInto.apply(x[1:3, 0:2], b)
    return x


def test_MD7_in_place_functions_on_two_views_of_one_base() -> None:
    weights = const(np.arange(1.0, 17.0).reshape(4, 4))
    root, b = leaf(np.arange(16.0).reshape(4, 4) / 8), leaf([[0.5, -1.0], [2.0, 0.25]])

    def loss(root: Tensor, b: Tensor) -> Tensor:
        return (weights * through_two_views(root, b) ** 3).sum()

    firsts = autograd.grad(loss(root, b), [root, b], create_graph=True)
    for which, (tensor, first) in enumerate(zip((root, b), firsts, strict=True)):
        start = tensor.detach().numpy().copy()
        expected_first, expected_second = np.zeros_like(start), np.zeros_like(start)
        for index in np.ndindex(*start.shape):
            losses, slopes = [], []
            for step in (1e-6, -1e-6):
                moved = start.copy()
                moved[index] += step
                inputs = [root.detach(), b.detach()]
                inputs[which] = leaf(moved)
                value = loss(*inputs)
                losses.append(value.item())
                slopes.append(autograd.grad(value, inputs[which])[0].sum().item())
            expected_first[index] = (losses[0] - losses[1]) / 2e-6
            expected_second[index] = (slopes[0] - slopes[1]) / 2e-6
        (second,) = autograd.grad(first.sum(), tensor, retain_graph=True)
        np.testing.assert_allclose(first.detach().numpy(), expected_first, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(second.numpy(), expected_second, rtol=1e-5, atol=1e-5)


def pair_receiving(received: list[object]):
    class Pair(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, pb.stack([x, x])

        @staticmethod
        def backward(ctx, g1, g2):
            received.extend(None if g is None else g.tolist() for g in (g1, g2))
            return g1

    return Pair.apply


@pytest.mark.parametrize("materialize", [True, False])
def test_MG2_node_is_called_even_if_no_output_received_a_gradient(materialize: bool) -> None:
    received: list[object] = []

    @pb.autograd_function
    def inner(ctx, x):
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    @inner.backward
    def _(ctx, g, h):
        received.extend(None if grad is None else grad.tolist() for grad in (g, h))
        return {"x": None if g is None else g * 2 + h * 3}

    nothing = pb.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: {"x": None})
    x = leaf([3.0, 4.0])
    first, _ = inner(x)
    nothing(first).sum().backward()
    if materialize:
        assert received == [[0.0, 0.0], [0.0, 0.0]]
        assert x.grad.tolist() == [0.0, 0.0]
    else:
        assert received == [None, None]
        assert x.grad is None


def test_MG2_node_off_the_path_is_not_called() -> None:
    received: list[object] = []
    x, y = leaf([1.0, 2.0]), leaf([5.0, 6.0])
    off_path, _ = pair_receiving(received)(y)
    (x + off_path.detach()).sum().backward()
    autograd.grad((x + off_path).sum(), [x])
    assert received == []
    assert y.grad is None
