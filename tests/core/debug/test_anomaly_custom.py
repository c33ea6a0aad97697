"""Anomaly mode and users' operations: their results, and their rules."""

import traceback

import numpy as np
import pytest
from tests.core.debug.detecting import NAN, Divides, detecting, error_of, leaf, passes, tensor

import pullback as pb
from pullback.errors import GradientError


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


def test_a_user_operation_on_constants_is_checked():
    assert str(error_of(lambda: array_log(tensor([0.0]), tensor([1.0])))).startswith("array_log:")


def test_nan_that_came_into_a_user_operation_is_not_blamed_on_it():
    message = str(error_of(lambda: array_log(leaf([1.0, 2.0]), tensor([NAN, 1.0]))))
    assert "array_log did not make it: 'y' is a constant" in message


def test_within_a_forward_made_of_operations_the_inner_line_is_shown():
    message = str(error_of(lambda: tensor_log(leaf([1.0, 2.0]))))
    assert message.startswith("log: a finite result")
    assert '"log": [shifted.log()' in message


def test_every_result_of_a_user_operation_is_checked():
    assert str(error_of(lambda: two(leaf([0.0, 1.0])))).startswith("two: a finite result")


def test_a_user_operation_that_works_in_place_is_blamed_though_its_input_is_overwritten():
    assert str(error_of(lambda: log_in_place(leaf([-1.0]) * 1.0))).startswith("log_in_place: a fin")


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


def test_the_gradients_of_several_results_are_all_described():
    def program():
        sine, cosine = sine_cosine(leaf([0.0, 1.0]))
        (sine + 2.0 * cosine).sum().backward()

    message = str(error_of(program))
    assert message.splitlines()[2:6] == [
        "  grad_output[0]: shape (2,), dtype float64, values 1",
        "  grad_output[1]: shape (2,), dtype float64, values 2",
        "  saved x: shape (2,), dtype float64, values from 0 to 1, 1 zero",
        "within it, div: a finite result was required, got inf in 2 of 2 elements, the first at "
        "index (0,), from finite inputs.",
    ]


def test_nan_that_a_user_rule_masks_is_no_anomaly():
    def program():
        x = leaf([1.0, 2.0])
        Divides.apply(x, True).sum().backward()
        return x.grad.tolist()

    assert passes(program) == [1.0, 1.0]


class MyFunc(pb.Function):
    """x + y, whose backward returns a NaN for one of them."""

    @staticmethod
    def forward(ctx, x, y, fail_first):
        ctx.fail_first = fail_first
        return x + y

    @staticmethod
    def backward(ctx, grad_output):
        bad = grad_output.clone()
        bad[0] = float("nan")
        if ctx.fail_first:
            return bad, None, None
        return None, bad, None


@pytest.mark.case("AN1")
@pytest.mark.parametrize("inside", [True, False], ids=["forward inside", "forward outside"])
@pytest.mark.parametrize(("fail_first", "position"), [(True, "0th"), (False, "1th")])
def test_detect_anomaly_names_the_output_and_the_line_of_a_forward_inside_it(
    fail_first, position, inside
):
    x = leaf([1.0, 2.0])
    with pb.set_detect_anomaly(False) if not inside else detecting():
        out = MyFunc.apply(x, x, fail_first).sum()
    message = f"Function 'MyFuncBackward' returned nan values in its {position} output."
    expected = "(?s)MyFunc.apply.*Error detected in|Error detected in MyFuncBackward.*MyFunc.apply"
    with (
        pytest.warns(UserWarning, match=expected if inside else "No forward pass information"),
        pytest.raises(GradientError, match=message),
        detecting(),
    ):
        out.backward()
    assert x.grad is None
