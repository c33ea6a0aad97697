"""The part that repeats a call and expects the same gradients."""

import numpy as np
import pytest
from tests.check._parts import X, check, only_failure, op

import pullback as pb
from pullback.check.properties.repeatable import check_repeatable


def test_a_backward_that_counts_its_calls_is_found():
    count = [0]

    def backward(ctx, g):
        count[0] += 1
        return g * count[0]

    name, text = only_failure(check_repeatable, op(lambda ctx, x: x * 1, backward), X)
    assert name == "state"
    assert text == (
        "two backward passes with the same saved values differ: `x` depends on another call, or on "
        "chance (state, a cache, a buffer)"
    )


def test_a_forward_that_counts_its_calls_is_found():
    count = [0]

    def forward(ctx, x):
        count[0] += 1
        ctx.count = count[0]
        return x * 1

    def backward(ctx, g):
        return g * ctx.count

    fn = op(forward, backward)
    name, text = only_failure(check_repeatable, fn, X)
    assert name == "state"
    assert text.startswith("two calls with the same inputs differ: `x` depends on")


def test_random_numbers_in_forward_are_found():
    rng = np.random.default_rng(0)
    (failure,) = check(check_repeatable, lambda x: x * pb.asarray(rng.random(x.shape)), X).failures
    assert failure.cause.name == "state"
    assert "two forward passes with the same inputs differ" in failure.cause.text
    assert (
        failure.cause.hint
        == "make a generator with a fixed seed inside, or pass the noise as an argument"
    )


@pytest.mark.parametrize("stored", ["value", "buffer"])
def test_values_kept_from_the_last_call_are_found(stored):
    last = {"buffer": np.empty_like(X)}

    def forward(ctx, x):
        if stored == "value":
            last["buffer"] = x.numpy().copy()
        else:
            last["buffer"][...] = x.numpy()
        return x * x

    fn = op(forward, lambda ctx, g: 2 * g * pb.asarray(last["buffer"]))
    name, text = only_failure(check_repeatable, fn, X)
    assert name == "state"
    assert "another call comes between its forward and its backward: `x` depends" in text


def test_a_backward_that_another_backward_changes_is_found():
    last = []

    def forward(ctx, x):
        last.clear()
        ctx.me = object()
        return x * 1

    def backward(ctx, g):
        result = g if not last or last[0] is ctx.me else 2 * g
        last[:] = [ctx.me]
        return result

    name, text = only_failure(check_repeatable, op(forward, backward), X)
    assert name == "state"
    assert "change with the backward of an earlier one: `x` depends on another call" in text


def test_functions_that_are_defined_at_few_points_are_not_called_unstable():
    def forward(ctx, x):
        if not np.array_equal(x.numpy(), X):
            raise ValueError("undefined")
        return x * 2

    assert check(check_repeatable, op(forward, lambda ctx, g: 2 * g), X).ok


def test_repeatable_finds_a_rule_that_returns_a_buffer_of_its_own_in_two_uses():
    buffers = {}

    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    def backward(ctx, g):
        x = ctx.saved_variables.x.numpy()
        buffer = buffers.setdefault(x.shape, np.empty_like(x))
        np.multiply(2.0 * x, g.numpy(), out=buffer)
        return {"x": pb.asarray(buffer, copy=False)}

    name, text = only_failure(check_repeatable, op(forward, backward), X)
    assert name == "state"
    assert "two uses in one graph" in text or "depends on another call" in text
