"""What backward of a user's operation returns: forms that are refused, and what the error says."""

from collections import namedtuple

import pytest
from tests.tensors import constant, leaf

import pullback as pb
from pullback.errors import GradientError


def test_gradients_in_the_wrong_form_say_what_is_wrong():
    def grads(rule, *args, traverse=False):
        op = pb.autograd_function(lambda ctx, *ts: pb.ones((2, 3)) * 1.0, rule, traverse=traverse)
        op(*args).sum().backward()

    x = pb.ones((3, 2), requires_grad=True)
    with pytest.raises(GradientError, match="sequence or mapping of gradients for 'ts', got int"):
        grads(lambda ctx, g: {"ts": 3}, x)
    with pytest.raises(GradientError, match="transpose it"):
        grads(lambda ctx, g: {"ts": (g,)}, x)


def test_a_complex_number_is_no_gradient_of_a_real_argument():
    f = pb.autograd_function(lambda ctx, x: x * 1, lambda ctx, g: {"x": 3 + 1j}, name="f")
    with pytest.raises(pb.AutogradError, match="'x' must be real"):
        f(leaf(1.0)).backward()


def test_names_that_several_arguments_share_are_ambiguous():
    f = pb.autograd_function(
        lambda ctx, *args, **kwargs: args[0] * kwargs["args[0]"],
        lambda ctx, g: {"args": (g,), "args[0]": g},
        name="f",
    )
    with pytest.raises(pb.AutogradError, match="ambiguous"):
        f(leaf(2.0), **{"args[0]": leaf(3.0)}).backward()


@pytest.mark.case("F03")
@pytest.mark.parametrize("nothing", [None, {"x": None}, (None,)], ids=["bare", "named", "tuple"])
def test_backward_returning_none_leaves_grad_none(nothing):
    f = pb.autograd_function(lambda ctx, x: x * 1, lambda ctx, g: nothing)
    x = leaf([2.0, 3.0])
    f(x).backward(constant([1.0, 1.0]))
    assert x.grad is None
    f(x**2).backward(constant([1.0, 1.0]))
    assert x.grad is None
    f(x).sum().backward()
    assert x.grad is None
    assert pb.autograd.grad(f(x).sum(), x, allow_unused=True) == (None,)


def test_a_named_tuple_of_gradients_is_read_by_its_names():
    named = namedtuple("named", "bias weight")
    f = pb.autograd_function(
        lambda ctx, weight, bias: 2 * weight + 5 * bias,
        lambda ctx, g: named(weight=2 * g, bias=5 * g),
    )
    assert pb.grad(f, argnum=("weight", "bias"))(1.0, 1.0) == (2.0, 5.0)


@pytest.mark.case("F07")
def test_a_gradient_of_another_floating_dtype_is_cast():
    op = pb.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: {"x": constant([1.0, 3.0])})
    x = pb.tensor([1.0, 2.0], dtype=pb.float32, requires_grad=True)
    op(x).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (pb.float32, [1.0, 3.0])


@pytest.mark.case("F08", "F10")
@pytest.mark.parametrize(
    "returned",
    [
        lambda g: (g * 6, None, g * 2),
        lambda g: (g * 6, None, None),
        lambda g: (g * 6, None, None, None, None),
        lambda g: {"c": g * 2, "x": g * 6},
    ],
    ids=["dropped", "none", "trailing nones", "by name"],
)
def test_the_gradient_of_a_tensor_that_needs_none_is_dropped(returned):
    scaled = pb.autograd_function(lambda ctx, x, k, c: x * k * c, lambda ctx, g: returned(g))
    x, c = leaf(1.0), constant(3.0)
    scaled(x, 2, c).backward()
    assert (x.grad.item(), c.grad) == (6.0, None)


@pytest.mark.case("F20")
def test_engine_does_no_multiplication_of_its_own():
    class Careless(pb.Function):
        """A square whose rule ignores the incoming gradient."""

        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v=v)
            return v * v

        @staticmethod
        def backward(ctx, grad_output):
            return {"v": 2 * ctx.saved_variables.v}

    x = leaf(3.0)
    out = Careless.apply(x) * Careless.apply(x)
    assert out.item() == 81.0
    out.backward()
    assert x.grad.item() == 12.0
