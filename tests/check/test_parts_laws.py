"""The parts that compare backward with itself: writes, state, linearity, outputs, threads."""

import functools
import gc
import sys
import threading

import numpy as np
import pytest

import pullback as pb
from pullback.check.comparing import noise
from pullback.check.exceptions import ForwardError, InapplicableError
from pullback.check.laws import aliases, linear, outputs, repeatable
from pullback.check.lifetime import lifetime
from pullback.check.modes import modes
from pullback.check.mutation import mutation
from pullback.check.report import Report
from pullback.check.saved import saved_arrays
from pullback.check.session import Options, Session
from pullback.check.subject import Subject

PARTS = (mutation, repeatable, linear, outputs, aliases, lifetime, modes)
X = np.array([[0.5, -1.5, 2.0], [1.0, 0.75, -0.25]])
Y = np.array([[1.5, 0.5, -1.0], [2.0, -0.5, 1.25]])


def check(part, fn, *inputs, **options):
    """Run one part and return the report."""
    report = Report("test", 0)
    part(Session(Subject(fn, inputs), Options(**options), report))
    return report


def only_failure(part, fn, *inputs):
    """Run one part that must find one thing; return the name of its cause and the text."""
    (failure,) = check(part, fn, *inputs).failures
    assert str(failure)
    return failure.cause.name, failure.cause.text


def op(forward, backward, name="op"):
    return pb.autograd_function(forward, backward, name=name)


def saving(fn):
    def forward(ctx, *args):
        ctx.save_for_backward(*args)
        return fn(*args)

    return forward


def memory(tensor):
    """Return a tensor's memory, writeable even where it is lent."""
    array = tensor.detach().numpy()
    return np.lib.stride_tricks.as_strided(_Owner(array).view, array.shape, array.strides)


class _Owner:
    def __init__(self, array):
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        self.keep = array

    @property
    def view(self):
        return np.asarray(self)


# -- right operations pass ------------------------------------------------------------------------


@functools.cache
def two_results():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        ctx.rows = [x.numpy() * 2]
        return x * y, x + y

    def backward(ctx, g, h):
        s = ctx.saved_variables
        return {"x": g * s.y + h, "y": g * s.x + h}

    return op(forward, backward)


def double_in_place():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    return op(forward, lambda ctx, g: g.mul_(2.0), "double_")


@pytest.mark.parametrize("part", [p for p in PARTS if p is not outputs], ids=lambda p: p.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_right_operations_of_a_user_pass(part, dtype):
    for fn, arrays in (
        (two_results(), (X.astype(dtype), Y.astype(dtype))),
        (double_in_place(), (X.astype(dtype),)),
        (lambda x: x.clone().mul_(2.0), (X.astype(dtype),)),
        (lambda x: x, (X.astype(dtype),)),
    ):
        try:
            report = check(part, fn, *arrays)
        except InapplicableError:
            assert part is aliases
            continue
        assert report.ok, str(report)


# -- mutation -------------------------------------------------------------------------------------
def test_forward_that_changes_an_input_is_found():
    def marked_too_late(ctx, x):
        return x.mul_(2.0) * 1

    text = "forward changes the input `x` in place without mark_dirty"
    undeclared = op(marked_too_late, lambda ctx, g: 2 * g)
    assert only_failure(mutation, undeclared, X) == ("mutation", text)

    def through_memory(ctx, x, mask):
        mask.numpy()[...] = False
        return x * 1

    behind = op(through_memory, lambda ctx, g: (g, None))
    mask = np.ones(3, bool)
    name, found = only_failure(mutation, behind, X, mask)
    assert (name, found) == ("mutation", text.replace("`x`", "`mask`"))
    assert mask.all()  # a copy was given to it


def test_other_errors_of_forward_are_no_matter_of_mutation():
    def forward(ctx, x):
        raise ValueError("no")

    with pytest.raises(ForwardError, match="ValueError: no"):
        check(mutation, op(forward, lambda ctx, g: g), X)


def test_backward_that_changes_grad_output_is_found():
    def backward(ctx, g):
        memory(g)[...] *= 2
        return g

    name, text = only_failure(mutation, op(lambda ctx, x: 2 * x, backward), X)
    assert (name, text) == ("mutation", "backward changes grad_output in place")

    def lent(ctx, g):
        g.numpy()[...] *= 2
        return g

    name, text = only_failure(mutation, op(lambda ctx, x: 2 * x, lent), X)
    assert name == "mutation"
    assert text.startswith("backward changes grad_output in place: its memory is read-only (Value")


def test_read_only_saved_values_are_named_beside_grad_output():
    def forward(ctx, x):
        ctx.save_for_backward(table=np.broadcast_to(3.0, x.shape))
        return 3 * x

    def backward(ctx, g):
        table = ctx.saved_variables.table
        table *= 2
        return g * table

    name, text = only_failure(mutation, op(forward, backward), X)
    assert name == "mutation"
    assert "grad_output or the saved value `table` in place" in text


def test_other_errors_of_backward_are_no_matter_of_these_parts():
    def backward(ctx, g):
        raise KeyError("no")

    for part in (mutation, repeatable):
        with pytest.raises(InapplicableError, match="backward raises"):
            check(part, op(lambda ctx, x: 2 * x, backward), X)


def test_a_backward_that_works_once_is_found():
    def forward(ctx, x):
        ctx.parts = [3.0]
        return x * 3.0

    def backward(ctx, g):
        return g * ctx.parts.pop()

    name, text = only_failure(repeatable, op(forward, backward), X)
    assert name == "state"
    assert text == (
        "a second backward pass with the same saved values raises, though the first did not: "
        "IndexError: pop from empty list"
    )


@pytest.mark.parametrize(
    "how", ["input", "named", "output", "own", "attribute", "list", "array", "table", "recorded"]
)
def test_backward_that_changes_what_was_saved_is_found(how):
    def forward(ctx, x):
        y = x.exp()
        saved = {"input": [x], "output": [y], "own": [y * 1], "array": [y.numpy().copy()]}
        if how in saved:
            ctx.save_for_backward(*saved[how])
        elif how == "named":
            ctx.save_for_backward(weights=y * 1)
        elif how == "attribute":
            ctx.factor = y * 1
        elif how == "table":
            ctx.tables = {"table": y.numpy().copy()}
        elif how == "recorded":
            with pb.enable_grad():
                ctx.save_for_backward(inside=y.clone().requires_grad_() * 1)
        else:
            ctx.save_for_backward(parts=[y * 1])
        return y

    def backward(ctx, g):
        if how == "attribute":
            value = ctx.factor
        elif how == "table":
            value = ctx.tables["table"]
        else:
            (value,) = ctx.saved_variables
        value = value[0] if how == "list" else value
        array = value if isinstance(value, np.ndarray) else value.detach().numpy()
        result = g * pb.asarray(np.exp(array) if how == "input" else array.copy())
        array *= 2
        return result

    names = {
        "input": "x",
        "named": "weights",
        "output": "output 0",
        "own": "saved_tensors[0]",
        "attribute": "factor",
        "list": "parts",
        "table": "tables",
        "recorded": "inside",
        "array": "saved_tensors[0]",
    }
    name, text = only_failure(mutation, op(forward, backward), X)
    assert (name, text) == ("mutation", f"backward changes the saved value `{names[how]}` in place")


def test_backward_that_changes_an_input_behind_ctx_is_found():
    seen = []

    def forward(ctx, x, y):
        seen[:] = [x]
        ctx.save_for_backward(y)
        return x * 2 + y

    def backward(ctx, g):
        seen[0].numpy()[...] = 0
        return 2 * g, g

    name, text = only_failure(mutation, op(forward, backward), X, Y)
    assert (name, text) == ("mutation", "backward changes the input `x` in place")


def test_what_built_in_operations_saved_is_watched_too():
    run = Subject(lambda x: x.exp() * x, (X,)).run()
    labels = {label for label, _ in saved_arrays(run)}
    assert labels == {"the value `ExpBackward.saved`", "the value `MulBackward.saved`"}


def test_what_hooks_packed_is_left_alone():
    with pb.autograd.saved_tensors_hooks(lambda t: t.numpy().tolist(), pb.asarray):
        assert check(mutation, lambda x: x.exp() * x, X).ok
        assert check(lifetime, two_results(), X, Y).ok


@pytest.mark.parametrize("part", PARTS, ids=lambda p: p.__name__)
def test_arrays_of_another_library_are_checked(part):
    strict = pytest.importorskip("array_api_strict")
    x, y = strict.asarray(X), strict.asarray(Y)

    def backward(ctx, g, h):
        y = ctx.saved_variables.y
        y.data_array()[...] = 0
        return {"x": g * y + h, "y": None}

    assert check(part, two_results(), x, y).ok
    if part is mutation:
        fn = op(two_results().forward, backward)
        name, text = only_failure(part, fn, x, y)
        assert (name, text) == ("mutation", "backward changes the saved value `y` in place")


# -- state ----------------------------------------------------------------------------------------
def test_a_backward_that_counts_its_calls_is_found():
    count = [0]

    def backward(ctx, g):
        count[0] += 1
        return g * count[0]

    name, text = only_failure(repeatable, op(lambda ctx, x: x * 1, backward), X)
    assert name == "state"
    assert text == (
        "two backward passes with the same saved values differ: `x` depends on another call, or on "
        "chance"
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
    name, text = only_failure(repeatable, fn, X)
    assert name == "state"
    assert text.startswith("two calls with the same inputs differ: `x` depends on")


def test_random_numbers_in_forward_are_found():
    rng = np.random.default_rng(0)
    (failure,) = check(repeatable, lambda x: x * pb.asarray(rng.random(x.shape)), X).failures
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
    name, text = only_failure(repeatable, fn, X)
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

    name, text = only_failure(repeatable, op(forward, backward), X)
    assert name == "state"
    assert "change with the backward of an earlier one: `x` depends on another call" in text


def test_functions_that_are_defined_in_few_places_are_not_called_unstable():
    def forward(ctx, x):
        if not np.array_equal(x.numpy(), X):
            raise ValueError("undefined")
        return x * 2

    assert check(repeatable, op(forward, lambda ctx, g: 2 * g), X).ok


# -- linearity ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda g: g * g, "it is multiplied by it twice"),
        (lambda g: g.sign(), "its size does not count"),
        (lambda g: g.abs(), "only its absolute value counts"),
        (lambda g: g.clamp(-2.0, 2.0), "2 times that does not give 2 times the gradient"),
        (lambda g: g.clamp(-100.0, 100.0), "(a bound, an eps?)"),
        (lambda g: g * (g.abs() > 0.01), "(a bound, an eps?)"),
        (lambda g: g + 1e-9, "a term is not multiplied by grad_output"),
        (lambda g: g.abs().max() * g.sign(), "that of a sum is not the sum"),
    ],
)
def test_a_backward_that_is_not_linear_is_found(rule, words):
    name, text = only_failure(linear, op(lambda ctx, x: x * 1, lambda ctx, g: rule(g)), X)
    assert name == "nonlinear"
    assert "`x` is not linear in grad_output" in text
    assert words in text


def test_a_backward_that_divides_by_grad_output_is_found():
    def backward(ctx, g):
        return g * (g / g)

    name, text = only_failure(linear, op(lambda ctx, x: x * 1, backward), X)
    assert name == "zero-grad"
    assert "where that is zero, it is NaN" in text


def test_a_backward_that_raises_for_zero_is_found():
    def backward(ctx, g):
        if not g.any():
            raise ValueError("no gradient")
        return g

    name, text = only_failure(linear, op(lambda ctx, x: x * 1, backward), X)
    assert name == "zero-grad"
    assert text == "backward raises when grad_output is zero: ValueError: no gradient"


def test_infinite_derivatives_and_tiny_and_huge_values_are_linear_enough():
    for array in (np.array([0.0, 1.0]), np.array([1e-200, 1e200]), np.zeros((0, 2)), np.array(2.0)):
        assert check(linear, pb.sqrt, array).ok
    assert check(linear, lambda x: x.softmax(0), np.array([1e3, 0.0, 1e3 + 1], np.float32)).ok
    assert check(linear, pb.exp, np.array([1.0, -3.0], np.float16)).ok


def test_noise_is_that_of_the_last_bits():
    quiet, _ = noise(lambda xs, gs: [xs[0] * gs[0], gs[0]], [X], [Y])
    (loud,) = noise(lambda xs, gs: [(xs[0] + 1e9) - 1e9 + 0 * gs[0]], [1e9 * X], [Y])
    assert 0 < quiet < 1e-12 < 1e-7 < loud

    def picky(xs, gs):
        if xs[0] is not X:
            raise ForwardError("not here")
        return [xs[0] * gs[0]]

    (found,) = noise(picky, [X], [Y])
    assert 0 < found < 1e-12


# -- outputs --------------------------------------------------------------------------------------
def sincos(backward, materialize):
    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    return op(forward, backward)


def test_one_output_has_no_others():
    with pytest.raises(InapplicableError, match="one differentiable output"):
        check(outputs, pb.sin, X)


def test_a_backward_that_cannot_take_none_is_found():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * x.cos() - h * x.sin()

    assert check(outputs, sincos(backward, True), X).ok
    name, text = only_failure(outputs, sincos(backward, False), X)
    assert name == "zero-grad"
    assert text.startswith("backward raises when only output 0 of 2 has a gradient, the others")


def test_a_backward_that_takes_none_for_something_else_is_found():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        h = 1.0 if h is None else h
        g = 1.0 if g is None else g
        return g * x.cos() - h * x.sin()

    name, text = only_failure(outputs, sincos(backward, False), X)
    assert name == "zero-grad"
    assert "`x` is another when only output 0 of 2 has a gradient" in text


def test_a_backward_that_looks_at_one_output_when_both_have_gradients_is_found():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        if g.any() and h.any():
            return g * x.cos()
        return g * x.cos() - h * x.sin()

    name, text = only_failure(outputs, sincos(backward, True), X)
    assert name == "output-ignored"
    assert "`x` is not the sum of those that come of each output alone" in text


def test_one_array_for_two_output_gradients_is_tried():
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        first = g * x.cos()
        if np.shares_memory(memory(g), memory(h)):
            return first
        return first - h * x.sin()

    name, text = only_failure(outputs, sincos(backward, True), X)
    assert name == "mutation"
    assert "`x` is wrong when outputs 0 and 1 have the same tensor as their gradient" in text


# -- aliases --------------------------------------------------------------------------------------
def test_one_tensor_for_two_arguments_is_tried():
    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        ctx.same = np.shares_memory(x.numpy(), y.numpy())
        return x * y

    def backward(ctx, g):
        s = ctx.saved_variables
        return {"x": g * s.y, "y": None if ctx.same else g * s.x}

    name, text = only_failure(aliases, op(forward, backward), X, Y)
    assert name == "same-tensor"
    assert text == "the gradient is wrong when one tensor is passed for both `x` and `y`"

    def refusing(ctx, x, y):
        assert not np.shares_memory(x.numpy(), y.numpy()), "one tensor"
        return x + y

    name, text = only_failure(aliases, op(refusing, lambda ctx, g: (g, g)), X, Y)
    assert name == "same-tensor"
    assert "is an error, equal ones are not: AssertionError: one tensor" in text


def test_aliases_need_two_like_arguments_that_may_be_equal():
    with pytest.raises(InapplicableError, match="no two arguments have one shape"):
        check(aliases, lambda x, y: x * y.sum(), X, X[0])
    with pytest.raises(InapplicableError, match="works in place on an argument"):
        check(aliases, lambda x, y: x.add_(y), X, Y)

    def distinct(ctx, x, y):
        if np.array_equal(x.numpy(), y.numpy()):
            raise ValueError("equal")
        return x - y

    assert check(aliases, op(distinct, lambda ctx, g: (g, -g)), X, Y).ok


def test_rounding_that_differs_for_one_tensor_is_not_called_wrong():
    huge = 1e9 * (1 + X)

    def forward(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        ctx.order = 1 if np.shares_memory(x.numpy(), y.numpy()) else -1
        return (x - 1) * (y + 1) * 1e-9

    def backward(ctx, g):
        s = ctx.saved_variables
        # One number in two orders of its factors: all that is left of it is rounding.
        zero = g * ((0.3 * s.x) * 3.7 - (0.3 * 3.7) * s.x) * ctx.order
        return {"x": zero, "y": zero}

    assert check(aliases, op(forward, backward), huge, huge + 1).ok


# -- lifetime -------------------------------------------------------------------------------------
KEPT = {}


def test_a_global_that_keeps_tensors_is_found():
    def forward(ctx, x):
        KEPT["x"] = x
        return x * 2

    name, text = only_failure(lifetime, op(forward, lambda ctx, g: 2 * g), X)
    KEPT.clear()
    assert name == "leak"
    assert text.startswith("after a call was dropped, memory of it is still alive (kept by the ")
    assert f"global `KEPT` of the module {__name__}): the input `x`" in text


def test_lists_closures_and_classes_that_keep_tensors_are_found():
    class Store:
        last = None

    kept = []

    def append(x):
        kept.append(x)
        return x * 2

    def store(x):
        Store.last = x
        return x * 2

    assert "kept by " in only_failure(lifetime, op(lambda ctx, x: append(x), pb_double), X)[1]
    assert (
        "kept by the class `Store`"
        in only_failure(lifetime, op(lambda ctx, x: store(x), pb_double), X)[1]
    )


def test_what_is_kept_far_away_is_found_without_a_name():
    def forward(ctx, x):
        deep.append([[[[x]]]])
        return x * 2

    deep = []
    name, text = only_failure(lifetime, op(forward, pb_double), X)
    assert name == "leak"
    assert "memory of it is still alive (something keeps it): the input `x`" in text


def pb_double(ctx, g):
    return 2 * g


def test_a_reference_cycle_is_found_and_the_collector_left_as_it_was():
    def forward(ctx, x):
        y = x * 2
        y_holder = [y]
        y_holder.append(y_holder)
        return y

    name, text = only_failure(lifetime, op(forward, pb_double), X)
    assert name == "leak"
    assert "kept by a reference cycle until the garbage collector runs): output 0" in text
    assert gc.isenabled()
    gc.disable()
    try:
        assert check(lifetime, pb.sin, X).ok
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_function_that_keeps_its_last_result_is_noted():
    kept = {}

    def model(x):
        kept["last"] = x * 2
        return kept["last"]

    report = check(lifetime, model, X)
    assert report.ok
    (note,) = report.notes
    assert note.endswith("closure): output 0, the node MulBackward; only the last call's")


def test_tables_that_are_made_once_are_no_leak():
    @functools.cache
    def table(n):
        return pb.asarray(np.arange(1.0, n + 1))

    def forward(ctx, x):
        ctx.save_for_backward(table=table(x.shape[1]))
        return x * table(x.shape[1])

    assert check(lifetime, op(forward, lambda ctx, g: g * ctx.saved_variables.table), X).ok


# -- modes ----------------------------------------------------------------------------------------
def test_values_that_change_under_no_grad_are_found():
    name, text = only_failure(modes, lambda x: x * (2.0 if pb.is_grad_enabled() else 3.0), X)
    assert (name, text) == ("state", "under no_grad the value of output 0 is another")


def test_recording_under_no_grad_is_noted():
    def stubborn(x):
        with pb.enable_grad():
            return x * 2

    report = check(modes, stubborn, X)
    assert report.ok
    assert report.notes == ["stubborn records under no_grad"]


def test_state_of_a_thread_is_found():
    def forward(ctx, x):
        ctx.thread = threading.get_ident()
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0] * (threading.get_ident() == ctx.thread)

    interval = sys.getswitchinterval()
    name, text = only_failure(modes, op(forward, backward), X)
    assert sys.getswitchinterval() == interval
    assert name == "state"
    assert text == "the gradient of `x` depends on other threads that run at the same time"
    assert check(modes, op(forward, backward), X, fast=True).ok


def test_errors_in_threads_alone_are_found():
    def backward(ctx, g):
        assert threading.current_thread() is threading.main_thread(), "not here"
        return 2 * g

    name, text = only_failure(modes, op(lambda ctx, x: 2 * x, backward), X)
    assert name == "state"
    assert text.startswith("it depends on other threads: in 4 at once there is an error, Assertion")

    def forward(ctx, x):
        assert threading.current_thread() is threading.main_thread(), "not here"
        return x * 2

    name, text = only_failure(modes, op(forward, lambda ctx, g: 2 * g), X)
    assert name == "state"
    assert text.endswith("there is an error, AssertionError: not here")
