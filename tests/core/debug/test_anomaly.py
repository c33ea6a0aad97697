"""Anomaly mode: the earliest operation that made a NaN or an infinity is named, and its line."""

import asyncio
import functools
import gc
import io
import pdb
import sys
import threading
import traceback
import warnings
import weakref

import array_api_strict
import numpy as np
import pytest

import pullback as pb
from pullback.core.backward import api, engine
from pullback.core.custom import call
from pullback.core.function import dispatch as function
from pullback.core.function import fastpath, inplace
from pullback.core.graph.modes import RECORD, STATE
from pullback.errors import GradientError, InplaceError, ReleasedError

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def quiet():
    """Let NumPy say nothing: what it computes is what the tests are about."""
    with np.errstate(all="ignore"):
        yield
    assert STATE.get() is RECORD
    assert quick_ways_are_open()


def quick_ways_are_open():
    return {module._quick for module in (fastpath, inplace, api)} == {np.ndarray}


def tensor(data, dtype="float64"):
    return pb.tensor(data, dtype=dtype)


def leaf(data, dtype="float64"):
    return pb.tensor(data, dtype=dtype, requires_grad=True)


def detecting(**options):
    """Return the mode without the warning of entering it."""
    with warnings.catch_warnings(action="ignore"):
        return pb.detect_anomaly(**options)


def error_of(program, *args, **options):
    """Return the error that a program raises under the mode."""
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(GradientError) as caught,
        detecting(**options),
    ):
        program(*args)
    return caught.value


def passes(program, *args, **options):
    """Return what a program gives under the mode: every warning would be an error."""
    with detecting(**options):
        return program(*args)


def elsewhere(program):
    """Return what a program gives in a thread of its own, which has the default mode."""
    found = []

    def run():
        with np.errstate(all="ignore"):
            found.append(program())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


# -- operations ------------------------------------------------------------------------------------
MADE = {
    "log of zero": (lambda: pb.log(leaf([1.0, 0.0])), "log", "inf in 1 of 2 elements"),
    "zero times infinity": (lambda: leaf([0.0, 1.0]) * tensor([INF, 1.0]), "mul", "nan in 1 of 2"),
    "zero by zero": (lambda: leaf([0.0, 1.0]) / tensor([0.0, 1.0]), "div", "nan in 1 of 2"),
    "by the number zero": (lambda: leaf([1.0, 1.0]) / 0, "div", "inf in 2 of 2 elements"),
    "root of minus one": (lambda: leaf([4.0, -1.0]).sqrt(), "sqrt", "nan in 1 of 2 elements"),
    "overflow of float32": (lambda: leaf([1.0, 100.0], "float32").exp(), "exp", "inf in 1 of 2"),
    "overflow of a sum": (lambda: leaf([1e308, 1e308]).sum(), "sum", "inf, from"),
    "overflow of a product": (lambda: leaf([[1e200]]) @ tensor([[1e200]]), "m", "inf, from"),
    "overflow of a cast": (lambda: leaf([1.0, 1e300]).to(pb.float32), "to", "inf in 1 of 2"),
    "overflow of a power": (lambda: leaf([10.0, 1.0]) ** 400, "pow", "inf in 1 of 2 elements"),
    "infinities that cancel": (lambda: leaf([INF, 1.0]) - tensor([INF, 1.0]), "sub", "nan in 1"),
    "complex": (lambda: pb.log(leaf([0j, 1 + 1j], "complex128")), "log", "inf in 1 of 2"),
    "a composition": (lambda: pb.logit(leaf([0.5, 1.0])), "logit", "inf in 1 of 2 elements"),
    "several results": (lambda: pb.linalg.slogdet(leaf([[0.0]])), "slogdet", "inf, from"),
    "arguments by number": (lambda: pb.pow(0.0, leaf([-1.0, 1.0])), "pow", "inf in 1 of 2"),
    "NumPy's function": (lambda: np.log(tensor([0.0, 1.0])), "log", "inf in 1 of 2"),
}


@pytest.mark.parametrize(("program", "name", "found"), MADE.values(), ids=MADE)
def test_the_operation_that_made_it_is_named(program, name, found):
    message = str(error_of(program))
    assert message.startswith(name)
    assert f"a finite result was required, got {found}" in message
    program()  # outside of the mode it is as it was


def test_the_error_tells_the_inputs_and_the_line():
    def loss(p):
        kept = p * 1.0
        return -pb.log(kept).mean()  # a mark to find

    message = str(error_of(loss, leaf([[0.5, 0.0, 2.0], [0.0, 1.0, 0.25]])))
    assert message.splitlines()[:3] == [
        "log: a finite result was required, got inf in 2 of 6 elements, the first at index (0, 1), "
        "from finite inputs.",
        "  x: shape (2, 3), dtype float64, values from 0 to 2, 2 zeros",
        "  result: shape (2, 3), dtype float64, values from -1.386 to 0.6931, 1 zero, 2 inf",
    ]
    line = loss.__code__.co_firstlineno + 2
    assert f'File "{__file__}", line {line}, in loss' in message
    assert "return -pb.log(kept).mean()  # a mark to find" in message
    assert "allow_inf=True" in message


def test_infinite_inputs_are_not_called_finite():
    message = str(error_of(lambda: leaf([0.0, 1.0]) * tensor([INF, 1.0])))
    assert "from inputs without nan" in message
    assert "  y: shape (2,), dtype float64, values 1, 1 inf" in message
    assert "allow_inf" not in message


def test_complex_inputs_are_told_by_their_absolute_values():
    message = str(error_of(lambda: pb.log(leaf([0j, 3 + 4j], "complex128"))))
    assert "x: shape (2,), dtype complex128, absolute values from 0 to 5, 1 zero" in message


def test_the_function_that_the_user_called_is_named_beside_the_operation_in_it():
    message = str(error_of(lambda: pb.std(leaf([[1e200, -1e200]]), axis=1)))
    assert message.startswith("std (in its ")
    assert "pb.std(leaf" in message


UNRECORDED = {"no_grad": pb.no_grad, "inference_mode": pb.inference_mode}


@pytest.mark.parametrize("mode", UNRECORDED.values(), ids=UNRECORDED)
def test_what_is_not_recorded_is_looked_at_too(mode):
    def program():
        with mode():
            return leaf([0.0, 1.0]).log()

    assert str(error_of(program)).startswith("log: a finite result")


CONSTANTS = {
    "unary": lambda x: x.log(),
    "binary": lambda x: x / x,
    "with a number": lambda x: 1.0 / x,
    "with an array": lambda x: x / np.array([0.0, 1.0]),
    "reduction": lambda x: pb.prod(x * 1e300) + pb.sum(x * 1.7e308 + 1.7e308),
    "one array and settings": lambda x: pb.logit(x, eps=None),
    "several arrays": lambda x: pb.xlogy(x + 1.0, x),
    "in place": lambda x: x.div_(0.0),
}


@pytest.mark.parametrize("program", CONSTANTS.values(), ids=CONSTANTS)
def test_tensors_that_require_no_grad_are_looked_at_on_every_road(program):
    assert "a finite result was required" in str(error_of(lambda: program(tensor([0.0, 1.0]))))


def test_inputs_without_numbers_to_range_over_are_described():
    def program():
        choice = pb.where(tensor([True, False], "bool"), leaf([1.0, 2.0]), leaf(3.0))
        return choice / tensor([0.0, 1.0])

    assert str(error_of(program)).startswith("div: ")
    message = str(error_of(lambda: pb.concat([leaf([], "float32"), leaf([1.0, 1e200])]).square()))
    assert message.startswith("square: a finite")
    message = str(error_of(lambda: pb.mean(leaf([]))))
    assert "  x: shape (0,), dtype float64\n" in message


def test_finite_programs_give_the_same_numbers():
    def program():
        x = leaf([[0.5, 2.0], [1.0, 3.0]])
        y = pb.concat([x.exp(), (x @ x).log()]).reshape(-1)
        y[0] = 3.0
        y /= 2.0
        (g,) = pb.autograd.grad(y.softmax(0).sum() + (y * y).sum(), x, create_graph=True)
        g.sum().backward()
        return y.tolist(), g.tolist(), x.grad.tolist()

    assert passes(program) == program()


def test_integers_and_booleans_and_empty_arrays_are_finite():
    def program():
        x = tensor([], "float64")
        return (x / x).shape, (pb.tensor([1, 2]) // 1).tolist(), (pb.tensor([1]) > 0).tolist()

    assert passes(program) == ((0,), [1, 2], [True])


# -- in place --------------------------------------------------------------------------------------
def halves():
    return leaf([1.0, 2.0]) * 1.0


CHANGES = {
    "div_": (halves, lambda x: x.div_(tensor([1.0, 0.0])), "div_"),
    "operator": (halves, lambda x: x.__itruediv__(0), "div_"),
    "untracked": (lambda: tensor([1.0, 2.0]), lambda x: x.div_(0.0), "div_"),
    "without an array function": (halves, lambda x: x.xlogy_(tensor([0.0, 1.0])), "xlogy"),
    "adding by index": (
        lambda: tensor([1e308, 2.0]),
        lambda x: x.index_add_(0, pb.tensor([0]), tensor([1e308])),
        "index_add",
    ),
}


@pytest.mark.parametrize(("make", "change", "name"), CHANGES.values(), ids=CHANGES)
def test_a_change_in_place_that_is_not_finite_is_not_made(make, change, name):
    x = make()
    before, version = x.tolist(), x._version
    assert str(error_of(change, x)).startswith(f"{name}")
    assert (x.tolist(), x._version) == (before, version)


def test_a_change_of_a_view_in_place_is_not_made_and_its_base_stays():
    base = leaf([[1.0, 2.0], [3.0, 4.0]]) * 1.0
    row = base[0]
    message = str(error_of(lambda: row.sub_(3.0).log_()))
    assert message.startswith("log_: a finite result was required, got nan in 2 of 2 elements")
    assert base.tolist() == [[-2.0, -1.0], [3.0, 4.0]]


def test_nan_that_is_written_on_purpose_is_no_anomaly():
    def program():
        x = tensor([1.0, 2.0])
        x[0] = NAN
        x.masked_fill_(x > 1.0, -INF)
        return x.fill_(INF).tolist()

    assert passes(program) == [INF, INF]


# -- what comes in ---------------------------------------------------------------------------------
def test_nan_in_a_leaf_is_told_from_nan_that_was_made():
    message = str(error_of(lambda: pb.log(leaf([[1.0, NAN], [NAN, 2.0]]))))
    assert message.startswith(
        "log: inputs without nan were required, got nan in 2 of 4 elements, the first at index "
        "(0, 1) of 'x'; log did not make it: 'x' is a leaf: look at the data it was made of.\n"
        "  x: shape (2, 2), dtype float64, values from 1 to 2, 2 nan\n"
    )
    assert "called at" in message


@pytest.mark.parametrize("constant", [tensor([NAN, 1.0]), np.array([NAN, 1.0]), NAN])
def test_nan_in_a_constant_is_told_where_it_meets_the_history(constant):
    message = str(error_of(lambda: leaf([1.0, 2.0]) * constant))
    assert "mul did not make it: 'y' is a constant" in message


def test_nan_of_a_leaf_is_followed_through_what_hands_numbers_on():
    def program():
        x = leaf([[1.0, NAN], [2.0, 3.0]])
        return x.t()[1].exp()

    message = str(error_of(program))
    assert "exp did not make it: 'x' is what GetitemBackward takes of what PermuteBackward" in (
        message
    )
    assert "takes of a leaf" in message


def test_nan_that_several_may_have_handed_on_is_told_so():
    def program():
        x = leaf([1.0, 2.0])
        return pb.where(x > 1.0, x, NAN).exp()

    assert "'x' is the result of WhereBackward, which hands it on" in str(error_of(program))


def test_nan_of_a_forward_outside_of_the_mode_is_told_so():
    y = leaf([-1.0, 2.0]).log()
    assert "'x' is the result of LogBackward, which ran outside of detect_anomaly" in str(
        error_of(lambda: y * 2.0)
    )


def test_nan_that_was_written_behind_the_history_is_told_so():
    def program():
        y = leaf([1.0, 2.0]) * 2.0
        y.detach()[0] = NAN
        return y.exp()

    message = str(error_of(program))
    assert "'x' is the result of MulBackward, and was changed since" in message
    assert "recorded at" in message


def test_nan_that_was_written_into_a_view_is_told_so():
    def program():
        base = leaf([[1.0, 2.0], [3.0, 4.0]]) * 2.0
        base[0].fill_(NAN)
        return base.exp()

    message = str(error_of(program))
    assert "'x' is the result of AssignViewBackward, which hands it on" in message
    assert "base[0].fill_(NAN)" in message


def test_nan_of_a_gradient_that_must_not_be_used_again_is_told_so():
    @pb.once_differentiable
    def backward(ctx, grad_output):
        return grad_output * 2.0

    once = pb.autograd_function(lambda ctx, x: x * 1.0, backward, name="once")

    def program():
        x = leaf([1.0, 2.0])
        (first,) = pb.autograd.grad(once(x).sum(), x, create_graph=True)
        first.detach()[0] = NAN
        return first.exp()

    assert "'x' is the result of onceOnceDifferentiable" in str(error_of(program))


def test_missing_data_may_be_left_out():
    def program():
        x = leaf([1.0, NAN, 3.0])
        there = ~x.isnan()
        kept = [pb.where(there, x, 0.0).sum(), x[there].sum(), x[2:].sum(), pb.nan_to_num(x).sum()]
        data = tensor([1.0, NAN]) * 2.0  # nothing that requires grad: nobody's history yet
        assert data.isnan().tolist() == [False, True]
        return [k.item() for k in kept]

    assert passes(program) == [4.0, 4.0, 3.0, 4.0]


def test_infinities_that_came_in_are_no_anomaly():
    def program():
        x = leaf([1.0, 2.0, 3.0])
        y = (x + tensor([0.0, -INF, 0.0])).softmax(0)
        z = pb.where(tensor([True, False, True], "bool"), x, -INF).max()
        (y * tensor([1.0, 2.0, 3.0])).sum().backward()
        return y[1].item(), z.item(), bool(x.grad.isfinite().all())

    assert passes(program) == (0.0, 3.0, True)


# -- user operations -------------------------------------------------------------------------------
def on_arrays(x, y):
    return np.log(x.numpy()) * y.numpy()


@pb.autograd_function
def array_log(ctx, x, y):
    return pb.asarray(on_arrays(x, y))


@array_log.backward
def _(ctx, grad_output):
    return grad_output, grad_output


@pb.autograd_function
def tensor_log(ctx, x):
    shifted = x - 1.0
    return {"log": [shifted.log(), x * 1.0]}


@tensor_log.backward
def _(ctx, grad_output):
    return grad_output["log"][0]


@pb.autograd_function
def two(ctx, x):
    return x * 1.0, pb.asarray(np.log(x.numpy()))


@two.backward
def _(ctx, first, second):
    return first


@pb.autograd_function
def log_in_place(ctx, x):
    ctx.mark_dirty(x)
    np.log(x.numpy(), out=x.numpy())
    return x


@log_in_place.backward
def _(ctx, grad_output):
    return grad_output


def test_a_user_operation_is_named_with_its_arguments():
    message = str(error_of(lambda: array_log(leaf([0.0, 1.0]), y=tensor([1.0, 1.0]))))
    assert message.startswith("array_log: a finite result was required, got inf in 1 of 2")
    assert "  x: shape (2,), dtype float64, values from 0 to 1, 1 zero\n  y: shape (2,)" in message
    assert "array_log(leaf([0.0, 1.0])" in message


def test_a_user_operation_on_constants_is_looked_at():
    assert str(error_of(lambda: array_log(tensor([0.0]), tensor([1.0])))).startswith("array_log:")


def test_nan_that_came_into_a_user_operation_is_not_blamed_on_it():
    message = str(error_of(lambda: array_log(leaf([1.0, 2.0]), tensor([NAN, 1.0]))))
    assert "array_log did not make it: 'y' is a constant" in message


def test_within_a_forward_made_of_operations_the_inner_line_is_told():
    message = str(error_of(lambda: tensor_log(leaf([1.0, 2.0]))))
    assert message.startswith("log: a finite result")
    assert '"log": [shifted.log()' in message


def test_every_result_of_a_user_operation_is_looked_at():
    assert str(error_of(lambda: two(leaf([0.0, 1.0])))).startswith("two: a finite result")


def test_a_user_operation_that_works_in_place_is_blamed_though_its_input_is_gone():
    assert str(error_of(lambda: log_in_place(leaf([-1.0]) * 1.0))).startswith("log_in_place: a fin")


# -- backward --------------------------------------------------------------------------------------
def test_a_rule_that_gives_infinity_is_named_with_what_it_computed_from():
    x = leaf([0.0, 4.0])

    def program():
        y = x.sqrt()
        y.sum().backward()

    message = str(error_of(program))
    assert message.splitlines()[:4] == [
        "Function 'SqrtBackward' returned inf values in its 0th output.",
        "It is the gradient of 'x', with inf in 1 of 2 elements, the first at index (0,); the "
        "values below are finite.",
        "  grad_output: shape (2,), dtype float64, values 1",
        "  saved out: shape (2,), dtype float64, values from 0 to 2, 1 zero",
    ]
    assert f"line {program.__code__.co_firstlineno + 1}, in program\n    y = x.sqrt()" in message
    assert x.grad is None


def test_the_rule_of_the_second_input_is_named_by_it():
    x, y = tensor([1.0, 1.0]), leaf([1e-200, 1.0])
    message = str(error_of(lambda: (x / y).sum().backward()))
    assert message.splitlines()[:2] == [
        "Function 'DivBackward' returned inf values in its 1th output.",
        "It is the gradient of 'y', with inf in 1 of 2 elements, the first at index (0,); the "
        "values below are finite.",
    ]


def test_a_forward_outside_of_the_mode_leaves_the_line_unknown():
    y = leaf([0.0, 4.0]).sqrt().sum()
    message = str(error_of(y.backward))
    assert "Function 'SqrtBackward' returned inf" in message
    assert "Run the forward inside detect_anomaly too" in message
    assert "recorded at" not in message


def test_a_saved_value_that_was_not_finite_before_is_told():
    x, y = leaf([1.0, 2.0]), tensor([INF, 1.0])
    out = pb.where(y < INF, x * y, 0.0).sum()
    message = str(error_of(lambda: out.backward(retain_graph=True)))
    assert "Function 'MulBackward' returned nan values in its 0th output." in message
    assert "saved y: not finite before" in message


def test_the_gradients_of_other_leaves_stay_as_they_are():
    w, x = leaf([1.0, 2.0]), leaf([0.0, 1.0])
    w.grad = tensor([5.0, 5.0])
    error_of(lambda: (w * x.sqrt()).sum().backward())
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0]


class Divides(pb.Function):
    """x, with a backward that divides by zero; `masked` takes the result away again."""

    @staticmethod
    def forward(ctx, x, masked):
        ctx.masked = masked
        ctx.save_for_backward(x=x)
        return x * 1.0

    @staticmethod
    def backward(ctx, grad_output):
        nothing = grad_output - grad_output
        scaled = nothing / nothing
        if ctx.masked:
            scaled = pb.where(scaled.isnan(), grad_output, scaled)
        return scaled, None


def test_a_user_rule_is_named_and_what_went_wrong_within_it_is_the_cause():
    error = error_of(lambda: Divides.apply(leaf([1.0, 2.0]), False).sum().backward())
    message = str(error)
    assert "Function 'DividesBackward' returned nan values in its 0th output." in message
    assert "within it, div: a finite result was required, got nan in 2 of 2" in message
    assert "  saved x: shape (2,), dtype float64, values from 1 to 2" in message
    assert "Divides.apply(leaf([1.0, 2.0]), False)" in message
    cause = error.__cause__
    assert "scaled = nothing / nothing" in str(cause)
    (frame,) = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
    assert frame.f_code is Divides.backward.__code__
    assert frame.f_locals["nothing"].tolist() == [0.0, 0.0]


@pb.autograd_function
def sine_cosine(ctx, x):
    ctx.save_for_backward(x, flag=True)
    return x.sin(), x.cos()


@sine_cosine.backward
def _(ctx, sine, cosine):
    x = ctx.saved_variables[0]
    return sine * x.cos() / 0.0 - cosine * x.sin() / 0.0


def test_the_gradients_of_several_results_are_all_told():
    def program():
        sine, cosine = sine_cosine(leaf([0.0, 1.0]))
        (sine + 2.0 * cosine).sum().backward()

    message = str(error_of(program))
    assert message.splitlines()[2:6] == [
        "  grad_output[0]: shape (2,), dtype float64, values 1",
        "  grad_output[1]: shape (2,), dtype float64, values 2",
        "  saved value 0: shape (2,), dtype float64, values from 0 to 1, 1 zero",
        "within it, div: a finite result was required, got inf in 2 of 2 elements, the first at "
        "index (0,), from finite inputs.",
    ]


def test_an_unused_result_has_no_gradient_to_tell():
    def program():
        first, _ = leaf([[0.0, 4.0], [1.0, 1.0]]).unbind()
        first.sqrt().sum().backward()

    message = str(error_of(program))
    assert "Function 'SqrtBackward' returned inf" in message
    assert passes(lambda: leaf([4.0, 1.0]).unbind()[0].sqrt().backward()) is None


def test_what_a_user_rule_takes_away_again_is_no_anomaly():
    def program():
        x = leaf([1.0, 2.0])
        Divides.apply(x, True).sum().backward()
        return x.grad.tolist()

    assert passes(program) == [1.0, 1.0]


def test_what_our_own_rules_take_away_again_is_no_anomaly_when_they_are_recorded():
    def program():
        x, y = leaf([0.0, 2.0]), leaf([2.0, 3.0])
        first = pb.autograd.grad((x**y).sum(), [x, y], create_graph=True)
        return [g.tolist() for g in first]

    assert passes(program) == program()


def test_a_recorded_backward_is_looked_at():
    x = leaf([0.0, 1.0])

    def program():
        (first,) = pb.autograd.grad((x**1.5).sum(), x, create_graph=True)
        first.sum().backward()

    assert "returned inf values in its 0th output" in str(error_of(program))
    assert x.grad is None


def test_packed_values_are_not_unpacked_again():
    unpacked = []

    def unpack(packed):
        unpacked.append(packed)
        return packed

    def program():
        with pb.saved_tensors_hooks(lambda t: t, unpack):
            leaf([0.0, 4.0]).sqrt().sum().backward()

    message = str(error_of(program))
    assert "Function 'SqrtBackward' returned inf" in message
    assert len(unpacked) == 1


# -- where backward starts -------------------------------------------------------------------------
STARTS = {
    "backward": lambda y: y.backward(),
    "autograd.backward": lambda y: pb.autograd.backward([y]),
    "recorded": lambda y: y.backward(create_graph=True),
}


@pytest.mark.parametrize("value", [NAN, 0.0])
@pytest.mark.parametrize("start", ["backward", "autograd.backward", "recorded"])
def test_a_loss_that_is_not_finite_is_no_start(start, value):
    x = leaf([value, 1.0])
    loss = x.log().mean()
    message = str(error_of(STARTS[start], loss))
    kind = "nan" if value else "inf"
    assert f"backward: a finite tensor to differentiate was required, got {kind}." in message
    assert "tensor 0, of MeanBackward: shape (), dtype float64" in message
    assert "hint: run the forward inside detect_anomaly too" in message
    assert x.grad is None
    loss.backward()  # nothing was released


def test_grad_looks_at_every_output():
    x = leaf([0.0, 1.0])
    outputs = [x.sum(), x.log().sum()]
    message = str(error_of(lambda: pb.autograd.grad(outputs, x)))
    assert message.startswith("grad: a finite tensor to differentiate was required, got inf.")
    assert "tensor 1, of SumBackward" in message


def test_a_gradient_to_start_from_must_be_finite():
    y = leaf([1.0, 2.0]) * 2.0
    message = str(error_of(lambda: y.backward(tensor([1.0, NAN]))))
    assert message.startswith(
        "backward: finite gradients to start from were required, got nan in 1 of 2 elements, the "
        "first at index (1,) of gradient[0]."
    )


# -- hooks and sums --------------------------------------------------------------------------------
def to_nan(grad):
    return grad * NAN


def hook_on_a_result(x):
    y = x * 2.0
    y.register_hook(to_nan)
    y.sum().backward()


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
    assert f"{__file__}:" in message
    assert "to_nan" in message or "<lambda>" in message
    assert "returned nan values" not in message
    assert x.grad is None


def test_a_hook_that_is_no_function_is_named_by_its_repr():
    def program():
        x = leaf([1.0])
        x.register_hook(functools.partial(pb.mul, NAN))
        (x * 2.0).sum().backward()

    assert "from functools.partial(" in str(error_of(program))


def test_finite_gradients_whose_sum_is_not_are_told():
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


# -- options ---------------------------------------------------------------------------------------
def test_infinities_can_be_allowed():
    def program():
        x = leaf([0.0, 1.0])
        y = x.log()
        y.sum().backward()
        return y.tolist(), x.grad.tolist()

    assert passes(program, allow_inf=True) == ([-INF, 0.0], [INF, 1.0])
    message = str(error_of(lambda: leaf([0.0, 1.0]).log() * 0.0, allow_inf=True))
    assert message.startswith("mul: a finite result was required, got nan in 1 of 2")


def test_the_numbers_may_be_left_unlooked_at():
    def program():
        x = leaf([0.0, -1.0])
        y = (x.log() + to_nan(x)).sum()
        x.register_hook(to_nan)
        y.backward(tensor(NAN))
        y = x * 2.0
        y.grad_fn.register_hook(lambda grads, _: (to_nan(grads[0]), None))
        y.div_(0.0).sum().backward()
        return x.grad.isnan().tolist()

    assert passes(program, check_nan=False) == [True, True]


def test_modes_nest_and_the_inner_one_holds():
    x = leaf([0.0, 1.0])
    with detecting():
        with pb.set_detect_anomaly(False):
            assert STATE.get() is RECORD
            assert quick_ways_are_open()
            x.log()
        with detecting(allow_inf=True):
            x.log()
        with detecting(check_nan=False):
            x.log()
        with pytest.raises(GradientError, match="log: a finite result"):
            x.log()


def test_the_switch_works_at_once_and_as_a_decorator():
    x = leaf([0.0, 1.0])
    pb.set_detect_anomaly(True)
    with pytest.raises(GradientError, match="log: a finite result"):
        x.log()
    pb.set_detect_anomaly(False, check_nan=False)
    x.log()

    @pb.set_detect_anomaly(True)
    def program():
        return x.log()

    assert quick_ways_are_open()
    with pytest.raises(GradientError, match="log: a finite result"):
        program()


def test_generators_and_coroutines_are_looked_at_in_their_own_body_alone():
    constant = tensor([0.0, 1.0])

    @detecting()
    def steps():
        yield 1
        constant.log()

    @detecting()
    async def later():
        await asyncio.sleep(0)
        return constant.log()

    walk = steps()
    assert next(walk) == 1
    assert quick_ways_are_open()
    constant.log()
    with pytest.raises(GradientError, match="log: a finite result"):
        next(walk)
    with pytest.raises(GradientError, match="log: a finite result"):
        asyncio.run(later())


# -- the mode itself -------------------------------------------------------------------------------
def test_outside_of_the_mode_nothing_of_it_runs(monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("called outside of the mode")

    for module, name in (
        *((function, "check_results"), (function, "remember_call"), (call, "check_results")),
        *((inplace, "check_results"), (inplace, "_check_on_copy"), (engine, "check_arrived")),
        *((engine, "check_hooked"), (engine, "differentiate"), (call, "remember_call")),
    ):
        monkeypatch.setattr(module, name, never)
    x = leaf([[0.0, 1.0], [2.0, 3.0]])
    y = pb.concat([x.log(), x @ x]).clone()
    y /= 0.0
    y.register_hook(lambda grad: None)
    Divides.apply(y, False).sum().backward()
    with pb.no_grad():
        y.mul_(2.0)
    assert x.grad.isnan().any()


def test_other_threads_are_not_looked_at_and_give_what_they_gave():
    def program():
        x = leaf([0.0, 1.0])
        y = (x.log() + 1.0).mul_(2.0)
        y.sum().backward()
        return y.tolist(), x.grad.tolist(), (tensor([0.0]) / 0.0).isnan().item()

    alone = program()
    with detecting():
        assert not quick_ways_are_open()
        assert elsewhere(program) == alone


def test_the_mode_works_in_a_thread_and_leaves_the_others_alone():
    def program():
        with detecting():
            try:
                return leaf([0.0]).log()
            except GradientError as error:
                return str(error)

    assert elsewhere(program).startswith("log: a finite result")
    leaf([0.0]).log()


def test_blocks_of_several_threads_open_the_quick_ways_when_the_last_is_left():
    inside, go = threading.Barrier(2), threading.Event()

    def stay():
        with detecting():
            inside.wait(10)
            go.wait(10)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(10)
    with detecting():
        pass
    assert not quick_ways_are_open()
    go.set()
    thread.join()
    assert quick_ways_are_open()


def test_a_pass_within_a_pass_is_looked_at():
    def program():
        x = leaf([1.0])

        def hook(grad):
            with pb.enable_grad():
                leaf([0.0]).sqrt().sum().backward()

        x.register_hook(hook)
        (x * 2.0).sum().backward()

    assert "SqrtBackward' returned inf" in str(error_of(program))


def test_strict_arrays_are_looked_at():
    def strict(data):
        return pb.asarray(array_api_strict.asarray(data))

    message = str(error_of(lambda: strict([0.0, 2.0]).requires_grad_().log()))
    assert "  x: shape (2,), dtype float64, values from 0 to 2, 1 zero" in message
    message = str(error_of(lambda: strict([0.0, 2.0]).requires_grad_().sqrt().sum().backward()))
    assert "Function 'SqrtBackward' returned inf values in its 0th output." in message


# -- debuggers and lines ---------------------------------------------------------------------------
def train(p):
    scale = 3.0
    return pb.log(p * scale).sum()


def frames_of(error):
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def test_the_users_frame_is_in_the_traceback_with_its_variables():
    error = error_of(train, leaf([0.0, 1.0]))
    (frame,) = [frame for frame in frames_of(error) if frame.f_code is train.__code__]
    assert frame.f_locals["scale"] == 3.0
    assert frame.f_locals["p"].tolist() == [0.0, 1.0]
    ours = frames_of(error)[frames_of(error).index(frame) + 1 :]
    assert len(ours) <= 3  # so many times `up` in the debugger


def test_the_debugger_reaches_the_users_variables_after_the_error():
    error = error_of(train, leaf([0.0, 1.0]))
    codes = [frame.f_code for frame in frames_of(error)]
    ups = "up\n" * (len(codes) - 1 - codes.index(train.__code__))
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO(f"{ups}p scale, p.tolist()\nq\n"), stdout=out)
    debugger.use_rawinput = False
    tracing = sys.gettrace()  # coverage's, which the debugger ends
    debugger.reset()
    debugger.interaction(None, error.__traceback__)
    sys.settrace(tracing)
    assert "(3.0, [0.0, 1.0])" in out.getvalue()


def test_the_line_is_a_note_of_every_other_error_in_backward():
    @pb.autograd_function
    def fails(ctx, x):
        return x * 1.0

    @fails.backward
    def _(ctx, grad_output):
        raise KeyError("mine")

    def program():
        y = fails(leaf([1.0]))  # the line to be told
        y.sum().backward()

    with (
        pytest.warns(UserWarning, match="Error detected in failsBackward"),
        pytest.raises(KeyError, match="mine") as caught,
        detecting(),
    ):
        program()
    (note,) = caught.value.__notes__
    assert note.startswith("failsBackward was recorded at\n")
    assert "y = fails(leaf([1.0]))  # the line to be told" in note
    with pytest.raises(KeyError, match="mine") as caught:
        program()
    assert not hasattr(caught.value, "__notes__")


def test_an_error_that_a_graph_is_used_up_tells_its_line():
    def program():
        y = (leaf([1.0]) * 2.0).sum()
        y.backward()
        y.backward()

    with (
        pytest.warns(UserWarning, match="Error detected in SumBackward"),
        pytest.raises(ReleasedError) as caught,
        detecting(),
    ):
        program()
    assert "y = (leaf([1.0]) * 2.0).sum()" in caught.value.__notes__[0]


def test_an_error_outside_of_the_mode_tells_the_line_that_was_recorded_in_it():
    y = passes(lambda: leaf([1.0]).exp())
    y.backward()
    with pytest.raises(ReleasedError) as caught:
        y.backward()
    assert "passes(lambda: leaf([1.0]).exp())" in caught.value.__notes__[0]


def test_an_error_of_a_stale_value_tells_its_line():
    def program():
        y = leaf([1.0]) * 1.0
        z = y.exp()
        z.add_(1.0)
        z.sum().backward()

    with (
        pytest.warns(UserWarning, match="Error detected in ExpBackward"),
        pytest.raises(InplaceError) as caught,
        detecting(),
    ):
        program()
    assert "z = y.exp()" in caught.value.__notes__[0]


def test_the_line_of_a_node_is_text_when_it_is_asked_for():
    y = passes(lambda: leaf([1.0]).exp())
    assert "passes(lambda: leaf([1.0]).exp())" in str(y.grad_fn.metadata["traceback"])


# -- what is kept ----------------------------------------------------------------------------------
class Witness:
    """Something whose end can be seen."""


@pytest.mark.usefixtures("no_collector")
def test_the_record_of_a_call_keeps_nothing_of_its_frame():
    def program():
        witness = Witness()
        seen.append(weakref.ref(witness))
        return leaf([1.0]).exp()

    seen = []
    y = passes(program)
    assert y.requires_grad
    assert seen[0]() is None


FAILING = {
    "forward": lambda x: train(x),
    "rule": lambda x: x.sqrt().sum().backward(),
    "user rule": lambda x: Divides.apply(x, False).sum().backward(),
    "hook": hook_on_a_result,
    "start": lambda x: train_outside(x).backward(),
}


def train_outside(x):
    with pb.set_detect_anomaly(False):
        return train(x)


@pytest.mark.parametrize("program", FAILING.values(), ids=FAILING)
@pytest.mark.usefixtures("no_collector")
def test_an_error_that_was_handled_keeps_no_graph_alive(program):
    def once():
        x = leaf([0.0, 1.0])
        y = x * 1.0
        y.grad_fn.metadata["witness"] = witness = Witness()
        try:
            with warnings.catch_warnings(action="ignore"), detecting():
                program(y)
        except GradientError:
            return weakref.ref(witness)

    assert once()() is None
    assert gc.isenabled() is False
