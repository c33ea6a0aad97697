"""What backward of a user's operation returns: forms that are refused, and what the error says."""

import pytest
from tests.tensors import leaf

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
