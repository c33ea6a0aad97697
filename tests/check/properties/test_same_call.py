"""The properties of one call made in another way: each finds what is wrong in its way alone."""

import functools
import gc
import itertools
import threading

import numpy as np
import pytest
from tests.check._parts import (
    NORMAL,
    X,
    Y,
    check,
    linear,
    linear_inputs,
    of_saved,
    only_failure,
    op,
    ran,
)

import pullback as pb
from pullback.check.properties.calls import masks
from pullback.check.report import Options, Report, Status
from pullback.check.session import Session
from pullback.check.subject import Subject


# -- what is written to ----------------------------------------------------------------------------
def test_forward_that_changes_an_input_is_found():
    undeclared = op(lambda ctx, x: x.mul_(2.0) * 1, lambda ctx, g: 2 * g)
    name, text = only_failure("mutation", undeclared, X)
    assert name == "mutation"
    assert "forward changed its argument 'x' by an inplace operation" in text

    def through_memory(ctx, x, mask):
        mask.numpy()[...] = False
        return x * 1

    mask = np.ones(3, bool)
    name, text = only_failure("mutation", op(through_memory, lambda ctx, g: (g, None)), X, mask)
    assert "forward changes `mask` in place" in text
    assert mask.all()  # it got a copy


def test_other_errors_are_left_to_later_parts():
    def raises(ctx, x):
        raise KeyError("no")

    assert only_failure("mutation", op(raises, lambda ctx, g: g), X)[0] == "raised"
    for part in ("mutation", "repeatable"):
        result, _ = ran(part, op(lambda ctx, x: 2 * x, raises), X)
        assert (result.status, result.reason) == (Status.INAPPLICABLE, "backward raises")


@pytest.mark.parametrize(
    ("save", "read", "label"),
    [
        (lambda ctx, y: ctx.save_for_backward(y), lambda ctx: ctx.saved_tensors[0], "output 0"),
        (
            lambda ctx, y: ctx.save_for_backward(y * 1),
            lambda ctx: ctx.saved_tensors[0],
            "saved_tensors[0]",
        ),
        (lambda ctx, y: setattr(ctx, "factor", y * 1), lambda ctx: ctx.factor, "factor"),
        (
            lambda ctx, y: ctx.save_for_backward(parts=[y * 1]),
            lambda ctx: ctx.saved_variables.parts[0],
            "parts",
        ),
    ],
)
def test_backward_that_changes_what_was_saved_is_found(save, read, label):
    def forward(ctx, x):
        y = x.exp()
        save(ctx, y)
        return y

    def backward(ctx, g):
        array = read(ctx).detach().numpy()
        result = g * pb.asarray(array.copy())
        array *= 2
        return result

    name, text = only_failure("mutation", op(forward, backward), X)
    assert name == "mutation"
    assert text.startswith(f"the saved value `{label}` is changed in place by backward")


def test_backward_that_changes_an_input_behind_ctx_is_found():
    seen = []

    def forward(ctx, x, y):
        seen[:] = [x]
        return x * 2 + y

    def backward(ctx, g):
        seen[0].numpy()[...] = 0
        return 2 * g, g

    _, text = only_failure("mutation", op(forward, backward), X, Y)
    assert text.startswith("the input `x` is changed in place by backward")


# -- what is kept alive ----------------------------------------------------------------------------
@pytest.fixture
def unfrozen():
    """Show the search what the test run has frozen: it cannot see that."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_a_reference_cycle_is_found_and_the_collector_left_as_it_was(unfrozen):
    def forward(ctx, x):
        y = x * 2
        y_holder = [y]
        y_holder.append(y_holder)
        return y

    name, text = only_failure("lifetime", op(forward, lambda ctx, g: 2 * g), X)
    assert name == "leak"
    assert "kept alive by a reference cycle until it is collected: output 0" in text
    assert gc.isenabled()
    gc.disable()
    try:
        assert check("lifetime", pb.sin, X).ok
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_kept_of_the_last_call_or_made_once_is_no_leak(unfrozen):
    kept = {}

    def model(x):
        kept["last"] = x * 2
        return kept["last"]

    report = check("lifetime", model, X)
    assert report.ok
    assert report.notes[0].endswith("node MulBackward")

    @functools.cache
    def table(n):
        return pb.asarray(np.arange(1.0, n + 1))

    fn = op(lambda ctx, x: x * table(3), lambda ctx, g: g * table(3))
    assert check("lifetime", fn, X).ok


def test_a_result_that_is_kept_for_the_next_call_with_the_same_inputs_is_right():
    results = {}

    def square(x):
        return pb.asarray(results.setdefault(x.numpy().tobytes(), x.numpy() ** 2))

    assert check("repeatable", of_saved(square, lambda g, x: 2 * g * x), X).ok


# -- again -----------------------------------------------------------------------------------------


def counting():
    count = itertools.count(1)

    def forward(ctx, x):
        ctx.factor = next(count)
        return x * 1

    return op(forward, lambda ctx, g: g * ctx.factor)


def of_last_backward():
    last = []

    def forward(ctx, x):
        last.clear()
        ctx.me = object()
        return x * 1

    def backward(ctx, g):
        result = g if not last or last[0] is ctx.me else 2 * g
        last[:] = [ctx.me]
        return result

    return op(forward, backward)


def of_last_forward():
    last = []

    def forward(ctx, x):
        last[:] = [x]
        return x * x

    return op(forward, lambda ctx, g: 2.0 * last[0] * g)


@pytest.mark.parametrize("as_tensor", [True, False])
def test_a_buffer_that_backward_fills_in_every_call_is_right(as_tensor):
    buffers = {}

    def backward(g, x):
        buffer = buffers.setdefault(x.shape, pb.zeros_like(x))
        buffer.numpy()[...] = 2.0 * x.numpy() * g.numpy()
        return buffer if as_tensor else buffer.numpy()

    assert check("repeatable", of_saved(lambda x: x * x, backward), X).ok


def working_once():
    def forward(ctx, x):
        ctx.parts = [3.0]
        return x * 3.0

    return op(forward, lambda ctx, g: g * ctx.parts.pop())


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (counting(), "differs in a second call with the same inputs"),
        (of_last_backward(), "differs after the backward of an earlier call"),
        (of_last_forward(), "depends on another call"),
        (working_once(), "backward raises in a second backward pass: IndexError: pop from empty"),
    ],
    ids=["forward", "last", "gradient", "once"],
)
def test_what_depends_on_another_call_is_found(fn, words):
    name, text = only_failure("repeatable", fn, X)
    assert name == "state"
    assert words in text


def test_values_that_change_under_no_grad_are_found():
    found = only_failure("modes", lambda x: x * (2.0 if pb.is_grad_enabled() else 3.0), X)
    assert found[0] == "state"
    assert found[1].startswith("output 0 is wrong under no_grad")


def test_state_of_a_thread_is_found():
    def forward(ctx, x):
        ctx.thread = threading.get_ident()
        return x * 2

    fn = op(forward, lambda ctx, g: 2 * g * (threading.get_ident() == ctx.thread))
    name, text = only_failure("modes", fn, X)
    assert name == "state"
    assert text.startswith("the gradient of `x` is wrong with calls in 4 threads at once")


@pytest.mark.parametrize("side", ["forward", "backward"])
def test_errors_in_threads_alone_are_found(side):
    def here(value, what):
        assert what != side or threading.current_thread() is threading.main_thread(), "not here"
        return 2 * value

    fn = op(lambda ctx, x: here(x, "forward"), lambda ctx, g: here(g, "backward"))
    _, text = only_failure("modes", fn, X)
    assert f"{side} raises with calls in 4 threads at once: AssertionError: not here" in text


# -- in parts --------------------------------------------------------------------------------------
def test_every_subset_of_few_arguments_is_tried_and_single_ones_of_many():
    for count, sizes in ((2, {1}), (3, {1, 2}), (4, {1, 2, 3}), (6, {1, 5})):
        call = Subject(lambda *xs: sum(xs), (X,) * count)
        tried = {len(v.names) for v in masks(Session(call, Options(), Report("sum", 0)))}
        assert tried == sizes
    assert ran("masks", linear, *linear_inputs())[0].status == Status.PASSED
    assert ran("masks", pb.sin, X)[0].reason == "one argument is differentiated"


def masked(rule, forward=lambda ctx, x, y: x * y):
    def saved(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.both = all(ctx.needs_input_grad)
        return forward(ctx, x, y)

    return op(saved, lambda ctx, g: rule(ctx, g, *ctx.saved_tensors))


def narrowed(ctx, g, x, y):
    return g if ctx.both and not all(ctx.needs_input_grad) else g * y, g * x


def needing(ctx, x, y):
    if not ctx.needs_input_grad.y:
        raise ValueError("no y")
    return x * y


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (masked(narrowed), "when `y` needs no gradient, by autograd.grad(outputs, [x])"),
        (masked(lambda ctx, g, x, y: (g * y, g * x), needing), "forward raises when `y` needs no"),
    ],
    ids=["narrowed", "forward"],
)
def test_a_gradient_that_depends_on_which_are_needed_is_found(fn, words):
    name, text = only_failure("masks", fn, NORMAL(size=3), NORMAL(size=3))
    assert name == "needs-input-grad"
    assert words in text


def sincos(rule, materialize=False):
    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    return op(forward, lambda ctx, g, h: rule(g, h, ctx.saved_tensors[0]))


def right(g, h, x):
    return g * x.cos() - h * x.sin()


def first_of_two(g, h, x):
    return g * x.cos() if g.any() and h.any() else right(g, h, x)


@pytest.mark.parametrize(
    ("fn", "cause", "words"),
    [
        (sincos(right), "zero-grad", "backward raises when only output 0 of 2 has a gradient"),
        (sincos(first_of_two, True), "output-ignored", "is not the sum of those through each"),
    ],
    ids=["None", "first"],
)
def test_a_gradient_that_depends_on_how_outputs_are_combined_is_found(fn, cause, words):
    name, text = only_failure("outputs", fn, X)
    assert name == cause
    assert words in text


def test_outputs_pass_for_one_and_for_a_right_rule():
    assert ran("outputs", pb.sin, X)[0].reason == "one output is differentiable"
    assert check("outputs", sincos(right, True), X).ok


def raising_for_zero(g):
    if not g.any():
        raise ValueError("no gradient")
    return g


@pytest.mark.parametrize(
    ("rule", "cause", "words"),
    [
        (lambda g: g * g, "nonlinear", "multiplied by 2"),
        (lambda g: g.abs(), "nonlinear", "does only its size count?"),
        (lambda g: g.clamp(-100.0, 100.0), "nonlinear", "a bound, an eps?"),
        (lambda g: g * (g.abs() > 0.01), "nonlinear", "a bound, an eps?"),
        (lambda g: g + 1e-9, "nonlinear", "a term is not multiplied by grad_output"),
        (lambda g: g.abs().max() * g.sign(), "nonlinear", "when that is a sum of two"),
        (lambda g: g * (g / g), "zero-grad", "is NaN when grad_output is zero"),
        (raising_for_zero, "zero-grad", "backward raises when grad_output is zero: ValueError: no"),
    ],
)
def test_a_backward_that_is_not_linear_is_found(rule, cause, words):
    name, text = only_failure("linear", op(lambda ctx, x: x * 1, lambda ctx, g: rule(g)), X)
    assert name == cause
    assert words in text


def test_infinite_derivatives_and_tiny_and_huge_values_are_linear_enough():
    for array in (np.array([0.0, 1.0]), np.array([1e-200, 1e200]), np.zeros((0, 2)), np.array(2.0)):
        assert check("linear", pb.sqrt, array).ok
    assert check("linear", lambda x: x.softmax(0), np.array([1e3, 0.0, 1e3 + 1], np.float32)).ok
    assert check("linear", pb.exp, np.array([1.0, -3.0], np.float16)).ok
