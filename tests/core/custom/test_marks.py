"""mark_dirty, mark_non_differentiable and set_materialize_grads of ctx."""

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentTypeError, InplaceError


@pytest.mark.parametrize("materialize", [None, True, False])
def test_MG1_an_output_without_gradient_arrives_as_zeros_or_none(materialize):
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


def test_marks_take_tensors():
    for mark in ("mark_dirty", "mark_non_differentiable"):
        f = pb.autograd_function(lambda ctx, x, mark=mark: getattr(ctx, mark)([x]))
        with pytest.raises(ArgumentTypeError, match=rf"ctx\.{mark} takes tensors, got list"):
            f(leaf(1.0) * 1.0)


def test_a_marked_argument_that_was_written_through_its_array_counts_as_changed():
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


def test_a_tensor_marked_dirty_may_be_passed_twice():
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


def test_a_saved_result_that_was_changed_in_place_afterwards_is_an_error():
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


def test_a_marked_view_made_under_no_grad_of_what_requires_grad_is_refused():
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
