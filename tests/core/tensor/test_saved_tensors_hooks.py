"""saved_tensors_hooks: what packs and unpacks the tensors that operations save."""

import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback import autograd
from pullback.errors import ArgumentTypeError, InplaceError


@pytest.mark.case("S06")
def test_saved_tensors_hooks_pack_once_and_unpack_at_each_use():
    calls = []

    def pack(t):
        calls.append("pack")
        return t

    def unpack(t):
        calls.append("unpack")
        return t

    x, y = leaf(5.0), constant(7.0)
    with pb.saved_tensors_hooks(pack, unpack):
        out = x * y
    assert calls == ["pack"]
    out.backward()
    assert calls == ["pack", "unpack"]
    assert x.grad.item() == 7.0


@pytest.mark.case("S06")
@pytest.mark.parametrize(
    ("unpack", "expected"), [(lambda t: t, 12.0), (lambda t: t / 2, 6.0)], ids=["same", "half"]
)
def test_saved_tensors_hooks_give_backward_what_unpack_returns(unpack, expected):
    a = leaf(3.0)
    with pb.saved_tensors_hooks(lambda t: 2 * t, unpack):
        out = a * a
    out.backward()
    assert a.grad.item() == expected


@pytest.mark.case("S06")
def test_saved_tensors_hooks_pack_what_a_users_operation_saves():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    square = pb.autograd_function(forward, lambda ctx, g: {"x": 2 * ctx.saved_variables.x * g})
    a = leaf(3.0)
    with pb.saved_tensors_hooks(lambda t: (t.tolist(), "elsewhere"), lambda p: constant(p[0])):
        out = square(a)
    out.backward()
    assert a.grad.item() == 6.0


@pytest.mark.case("S07")
def test_saved_tensors_hooks_nest_and_the_innermost_alone_apply():
    a, b = leaf(3.0), leaf(4.0)
    with pb.saved_tensors_hooks(lambda t: 3 * t, lambda t: 3 * t):
        before = b * b
        with pb.saved_tensors_hooks(lambda t: 5 * t, lambda t: 5 * t):
            inside = a * a
        after = b * b
    outside = b * b
    inside.backward()
    assert a.grad.item() == 2 * 25 * 3.0
    for out, factor in ((before, 9.0), (after, 9.0), (outside, 1.0)):
        assert autograd.grad(out, b)[0].item() == 2 * factor * 4.0


class UserError(Exception):
    """The user's own."""


def fail(t):
    raise UserError("no room")


@pytest.mark.case("S08")
def test_saved_tensors_hooks_keep_the_type_of_their_errors():
    a = leaf(3.0)
    with pb.saved_tensors_hooks(fail, lambda t: t), pytest.raises(UserError, match="no room"):
        _ = a * a
    with pb.saved_tensors_hooks(lambda t: t, fail):
        out = a * a
    with pytest.raises(UserError, match="no room"):
        out.backward()
    (a * a).backward()
    assert a.grad.item() == 6.0


def test_saved_tensors_hooks_must_be_callable_and_give_tensors():
    x = leaf([3.0])
    with pytest.raises(ArgumentTypeError, match="unpack_hook must be callable, got int"):
        pb.saved_tensors_hooks(lambda t: t, 3)
    with pb.saved_tensors_hooks(lambda t: t, lambda t: t.numpy()):
        y = x * x
    with pytest.raises(ArgumentTypeError, match="must return a Tensor, got ndarray"):
        y.sum().backward()


def test_saved_tensors_hooks_that_keep_the_memory_do_not_hide_its_change():
    x = leaf([3.0]) * 1.0
    with pb.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    x.mul_(2.0)
    with pytest.raises(InplaceError, match="is at version 1; expected version 0"):
        y.sum().backward()
