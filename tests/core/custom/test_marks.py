"""mark_dirty, mark_non_differentiable and set_materialize_grads of ctx."""

import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.errors import ArgumentTypeError, InplaceError


@pytest.mark.case("MG1")
@pytest.mark.parametrize("materialize", [None, True, False])
def test_set_materialize_grads_says_whether_an_output_without_gradient_arrives_as_zeros(
    materialize,
):
    seen = []

    @pb.autograd_function
    def f(ctx, x):
        if materialize is not None:
            ctx.set_materialize_grads(materialize)
        return x * 2.0, x.reshape(1, 2), x.argmax()

    @f.backward
    def _(ctx, a, b, index):
        seen.extend([a, b, index])
        return {"x": a * 2.0}

    x = leaf([1.0, 2.0])
    f(x)[0].sum().backward()
    assert seen[0].tolist() == [1.0, 1.0]
    if materialize is False:
        assert seen[1:] == [None, None]
    else:
        assert (seen[1].tolist(), seen[1].dtype) == ([[0.0, 0.0]], pb.float64)
        assert seen[2].item() == 0
    assert x.grad.tolist() == [2.0, 2.0]


def test_mark_dirty_and_mark_non_differentiable_take_tensors():
    for mark in ("mark_dirty", "mark_non_differentiable"):
        f = pb.autograd_function(lambda ctx, x, mark=mark: getattr(ctx, mark)([x]))
        with pytest.raises(ArgumentTypeError, match=rf"ctx\.{mark} takes tensors, got list"):
            f(leaf(1.0) * 1.0)


@pytest.mark.case("MD3")
def test_mark_dirty_of_an_argument_that_was_written_through_its_array():
    def forward(ctx, t):
        t.numpy()[0] = 7.0
        ctx.mark_dirty(t)
        return t

    set_first = pb.autograd_function(forward, lambda ctx, g: {"t": g * 1.0})
    y = leaf([1.0, 2.0]) * 1.0
    square = y * y
    assert set_first(y).tolist() == [7.0, 2.0]
    assert y._version == 1
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        square.sum().backward()


def test_mark_dirty_of_a_tensor_that_is_passed_twice():
    class Double(pb.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad_output):
            return {"x": grad_output * 2, "y": None}

    x = leaf([1.0, 2.0])
    b = x * 1
    assert Double.apply(b, b) is b
    assert pb.autograd.grad(b.sum(), x)[0].tolist() == [2.0, 2.0]


def test_mark_dirty_of_a_saved_result_that_was_changed_afterwards():
    def forward(ctx, t):
        t.mul_(3.0)
        ctx.mark_dirty(t)
        ctx.save_for_backward(t=t)
        return t

    triple = pb.autograd_function(forward, lambda ctx, g: {"t": g * 3.0 * ctx.saved_variables.t})
    y = leaf([1.0, 2.0]) * 1.0
    z = triple(y)
    z.mul_(10.0)
    assert y._version == 2
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        z.sum().backward()


def test_mark_dirty_of_a_view_made_under_no_grad_is_refused():
    def forward(ctx, t):
        t.mul_(3.0)
        ctx.mark_dirty(t)
        return t

    triple = pb.autograd_function(forward, lambda ctx, g: {"t": g * 3.0})
    x = leaf([1.0, 2.0])
    with pb.no_grad():
        view = x[:1]
    with pytest.raises(InplaceError, match="A view was created in no_grad mode"):
        triple(view)


# -- mark_non_differentiable -----------------------------------------------------------------------
@pytest.mark.case("ND1")
def test_mark_non_differentiable_of_a_mask():
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


@pytest.mark.case("ND2")
def test_mark_non_differentiable_of_one_of_two_results():
    received = []

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


@pytest.mark.case("ND3")
def test_mark_non_differentiable_of_the_only_result():
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


@pytest.mark.case("ND4")
def test_integer_and_bool_outputs_never_require_grad():
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


@pytest.mark.case("F21")
def test_mark_non_differentiable_cuts_the_path():
    class PassWithNoise(pb.Function):
        @staticmethod
        def forward(ctx, input):
            noise = pb.full(input.shape, 0.25, dtype=pb.float64)
            ctx.mark_non_differentiable(noise)
            return input, noise

        @staticmethod
        def backward(ctx, grad_output, ignored):
            return grad_output

    class First(pb.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output, None

    x = leaf([1.0, 2.0, 3.0])
    a, noise = PassWithNoise.apply(x)
    shifted = noise + 1
    assert a.requires_grad
    assert not shifted.requires_grad
    First.apply(a, shifted).backward(constant([1.0, 1.0, 1.0]))
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


# -- mark_dirty ------------------------------------------------------------------------------------
add_into_calls = []


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


@pytest.mark.case("MD1")
def test_mark_dirty_makes_the_result_the_input_with_a_new_node():
    a, b = constant(2.0), leaf(3.0)
    out = AddInto.apply(a, b)
    assert out is a
    assert a._version == 1
    assert a.item() == 5.0
    assert a.requires_grad
    assert a.grad_fn.name() == "AddIntoBackward"
    out.backward()
    assert b.grad.item() == 1.0


@pytest.mark.case("MD2")
def test_mark_dirty_of_an_input_that_is_returned_twice():
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x

    x = leaf(3.0)
    y = x.clone()
    a, b = pb.autograd_function(forward, lambda ctx, g, h: {"x": 2 * g + 2 * h})(y)
    assert (a is y, b is y) == (True, True)
    (a * b).backward()  # 4 x^2
    assert x.grad.item() == 24.0


@pytest.mark.case("MD3")
def test_without_mark_dirty_a_change_through_numpy_goes_undetected():
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


@pytest.mark.case("MD5")
def test_mark_dirty_lets_the_result_be_changed_in_place_again():
    add_into_calls.clear()
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    c = AddInto.apply(a.clone(), b)
    c += 2
    assert c.tolist() == [6.0, 8.0]
    c.sum().backward()
    assert len(add_into_calls) == 1
    assert a.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [1.0, 1.0]


@pytest.mark.case("MD6")
def test_mark_dirty_of_one_of_several_results():
    def forward(ctx, a, b):
        a.add_(b)
        ctx.mark_dirty(a)
        return a, a + b

    op = pb.autograd_function(forward, lambda ctx, ga, gs: (ga + gs, ga + 2 * gs))
    a, b = leaf([1.0, 2.0]), leaf([10.0, 20.0])
    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another"):
        op(a.clone()[:], b)
    first, total = op(a.clone(), b)
    (first + total).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([2.0, 2.0], [3.0, 3.0])


@pytest.mark.case("MD6")
def test_mark_dirty_of_a_view_reaches_its_base():
    root, b = leaf([1.0, 2.0]), leaf([10.0])
    x = root.clone()
    view = x[:1]
    out = AddInto.apply(view, b)
    assert out is view
    assert x.tolist() == [11.0, 2.0]
    x.sum().backward()
    assert root.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [1.0]


@pytest.mark.case("MD7")
def test_mark_dirty_of_two_views_of_one_base():
    weights = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    root, b = leaf([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]), leaf([[0.5], [2.0]])

    def gradients(add):
        x = root.clone()
        x = add(x, b)
        firsts = pb.autograd.grad((weights * x**3).sum(), [root, b], create_graph=True)
        seconds = [pb.autograd.grad(g.sum(), [root, b], retain_graph=True) for g in firsts]
        return [g.tolist() for g in (x, *firsts, *seconds[0], *seconds[1])]

    def in_place(x, b):
        AddInto.apply(x[:, 0:1], b)
        AddInto.apply(x[:, 2:3], b)
        return x

    assert gradients(in_place) == gradients(lambda x, b: x + constant([1.0, 0.0, 1.0]) * b)


# -- set_materialize_grads -------------------------------------------------------------------------
@pytest.mark.case("MG2")
@pytest.mark.parametrize("materialize", [True, False])
def test_set_materialize_grads_of_a_node_whose_results_received_no_gradient(materialize):
    received = []

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
