"""Anomaly mode, backward: gradients that hooks or sums made infinite or NaN."""

import functools

import pytest
from tests.core.debug.detecting import NAN, error_of, hook_on_a_result, leaf, tensor, to_nan

import pullback as pb


def hook_on_a_leaf(x):
    with x.register_hook(to_nan):
        (x * 2.0).sum().backward()


def hook_on_what_grad_asks_for(x):
    with x.register_hook(to_nan):
        pb.autograd.grad((x * 2.0).sum(), x)


def hook_before_a_node(x):
    y = x * 2.0
    y.grad_fn.register_prehook(lambda grads: (to_nan(grads[0]),))
    y.sum().backward()


def hook_after_a_node(x):
    y = x * 2.0
    y.grad_fn.register_hook(lambda grads, _: (to_nan(grads[0]), None))
    y.sum().backward()


def hook_on_one_of_several(x):
    y, z = (x * 2.0).unbind()
    y.register_hook(to_nan)
    (y + z).backward()


HOOKED = [
    *(hook_on_a_result, hook_on_a_leaf, hook_on_what_grad_asks_for, hook_before_a_node),
    *(hook_after_a_node, hook_on_one_of_several),
]


@pytest.mark.parametrize("program", HOOKED)
def test_a_hook_that_gives_nan_is_named(program):
    x = leaf([1.0, 2.0])
    message = str(error_of(program, x))
    assert "a finite gradient of " in message
    assert "to_nan" in message or "<lambda>" in message
    file = to_nan.__code__.co_filename if "to_nan" in message else __file__
    assert f"{file}:" in message
    assert "returned nan values" not in message
    assert x.grad is None


def test_a_hook_that_is_no_function_is_named_by_its_repr():
    def program():
        x = leaf([1.0])
        x.register_hook(functools.partial(pb.mul, NAN))
        (x * 2.0).sum().backward()

    assert "from functools.partial(" in str(error_of(program))


def test_finite_gradients_whose_sum_is_infinite_are_reported():
    x, big = leaf([0.0, 0.0]), tensor([1e308, 1.0])
    message = str(error_of(lambda: (x * big + x * big).sum().backward()))
    assert message.startswith(
        "backward: a finite gradient of the leaf of shape (2,) was required, got inf in 1 of 2 "
        "elements, the first at index (0,), in the sum of what came from its uses."
    )
    y = leaf([0.0, 0.0])

    def on_the_way():
        z = y * 1.0
        (z * big + z * big).sum().backward()

    message = str(error_of(on_the_way))
    assert "a finite gradient of the result of MulBackward was required" in message
    assert "z = y * 1.0" in message
