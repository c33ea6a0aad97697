"""The part that compares float32 and float16 with float64, and tries complex arguments."""

import warnings

import numpy as np
import pytest
from tests.check._parts import NORMAL, failures, product, ran, with_backward

import pullback as pb
from pullback.check.properties.dtypes import check_dtypes
from pullback.check.report import INAPPLICABLE, PASSED


def test_dtypes_find_cancellation_in_float32():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x + 1e6) - 1e6) * 2

    @with_backward(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    (found,) = failures(check_dtypes, square, NORMAL(size=(3, 4)))
    assert (found.cause.name, found.argument) == ("cancellation", "x")
    assert found.cause.text.startswith(
        "float32 cancellation in `x`, not a formula error: float64 is right; the worst relative"
    )
    assert found.situation == "with float32 arguments"


def test_dtypes_find_an_intermediate_that_overflows_in_float32():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (-x).exp() / (1 + (-x).exp()) ** 2

    @with_backward(backward)
    def sigmoid(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    (found,) = failures(check_dtypes, sigmoid, np.array([-100.0, -1.0, 0.5]))
    assert found.cause.name == "dtype"
    assert found.cause.text == (
        "the gradient of `x` is not finite in float32 at 1 of 3 elements, where it is in float64: "
        "an intermediate overflows"
    )


def test_dtypes_find_a_rule_that_raises_in_float32():
    def backward(ctx, grad):
        if grad.dtype != pb.float64:
            raise TypeError("float64 only")
        return 2 * grad

    @with_backward(backward)
    def double(ctx, x):
        return 2 * x

    found = failures(check_dtypes, double, NORMAL(size=3))
    assert {f.cause.name for f in found} == {"dtype"}
    assert found[0].cause.text == "backward raises in float32 alone: TypeError: float64 only"


def test_dtypes_find_cancellation_in_half_precision_alone():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x + 2e3) - 2e3) * 2

    @with_backward(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    (found,) = failures(check_dtypes, square, np.array([0.3, -1.2, 2.2, 0.7]))
    assert (found.cause.name, found.situation) == ("cancellation", "with float16 arguments")


@pytest.mark.parametrize(
    "call",
    [
        (lambda x: x.log_softmax(-1), 50 * NORMAL(size=(3, 4))),
        (lambda x: x.tanh(), np.array([-20.0, 9.0, 0.1])),
        (lambda x: x.floor() * x, np.array([2.9999999999, 0.5])),
        (lambda x: x.max(-1).values, np.array([[1.0, 1.0 + 1e-12], [2.0, 1.0]])),
        (lambda x: 1 / (x - 1.0), np.array([1.00001, 0.99999])),
        (lambda x: pb.linalg.inv(x), 1 / np.add.outer(np.arange(1.0, 7), np.arange(6))),
        (lambda x: (x - x.mean()) ** 2, 1e4 + NORMAL(size=8)),
        (lambda x: 1e30 * x, np.array([1e-20, 1e20])),
        (lambda x: x / x.abs(), np.array([0.3, 1e-6])),
    ],
)
def test_dtypes_pass_for_what_is_conditioned_badly_itself(call):
    assert failures(check_dtypes, *call) == []


def test_dtypes_excuse_a_tie_that_is_broken_in_another_way():
    def forward(ctx, x):
        order = np.argsort(x.numpy(), kind="stable")
        first, last = order[0], order[np.sum(x.numpy() == x.numpy().min()) - 1]
        ctx.index, ctx.shape = (first if x.dtype == pb.float64 else last), x.shape
        return x.min()

    def backward(ctx, grad):
        found = pb.zeros(ctx.shape, dtype=grad.dtype)
        found[int(ctx.index)] = grad
        return found

    least = pb.autograd_function(forward, pb.once_differentiable(backward), name="least")
    result, report = ran(check_dtypes, least, np.array([1.0, 0.0, 2.0, 0.0]))
    assert (result.status, report.failures) == (PASSED, [])


def test_dtypes_do_not_apply_to_single_precision():
    result, _ = ran(check_dtypes, lambda x: x.exp(), np.ones(3, np.float32))
    assert (result.status, result.reason) == (
        INAPPLICABLE,
        "the arguments are not in double precision",
    )


def test_dtypes_say_nothing_of_a_missing_conjugate_in_a_rule_for_real_numbers():
    result, report = ran(check_dtypes, product, NORMAL(size=3), NORMAL(size=3))
    assert (result.status, report.notes) == (PASSED, [])


def test_probing_complex_numbers_shows_no_warning_of_the_users():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.asarray(x.numpy().astype(np.float64) ** 2)  # discards imaginary parts

    def backward(ctx, g):
        return {"x": g * 2.0 * ctx.saved_variables.x}

    square = pb.autograd_function(forward, backward)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pb.check.check_op(square, NORMAL(size=3)).ok


def test_dtypes_note_a_rule_that_raises_for_complex_arguments():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.clamp(min=-1e9) * grad

    @with_backward(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    result, report = ran(check_dtypes, square, NORMAL(size=3))
    assert (result.status, report.failures) == (PASSED, [])
    (note,) = report.notes
    assert note.startswith("square also takes complex inputs, for which backward raises: ")


def test_dtypes_note_nothing_where_complex_arguments_are_right_or_refused():
    @with_backward(lambda ctx, grad: 2 * grad)
    def double(ctx, x):
        return 2 * x

    def real_square(ctx, x):
        if x.is_complex():
            raise TypeError("real numbers only")
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

    square = pb.autograd_function(real_square, backward, name="square")
    for fn in (double, square):
        result, report = ran(check_dtypes, fn, NORMAL(size=3))
        assert (result.status, report.notes) == (PASSED, [])


def test_an_operation_that_takes_float32_alone_is_checked():
    def forward(ctx, x):
        if x.dtype != pb.float32:
            raise TypeError("x must be float32")
        ctx.save_for_backward(x=x)
        return x * x * x

    cube = pb.autograd_function(
        forward, lambda ctx, g: {"x": 3.0 * ctx.saved_variables.x**2 * g}, name="cube"
    )
    x = NORMAL(size=(3, 5)).astype(np.float32)
    assert pb.check.check_op(cube, x).outcome == "right"
    wrong = pb.autograd_function(forward, lambda ctx, g: {"x": 2.0 * ctx.saved_variables.x**2 * g})
    assert pb.check.check_op(wrong, x, raise_exception=False).failures[0].cause.name == "factor"


def test_another_formula_in_float32_is_no_cancellation():
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x.sin()

    def backward(ctx, g):
        x = ctx.saved_variables.x
        return {"x": g * x.cos() if x.dtype == pb.float64 else g * (1 - x * x / 2)}

    report = pb.check.check_op(
        pb.autograd_function(forward, backward, name="sine"),
        np.array([0.4, -1.3, 2.1, 0.7]),
        raise_exception=False,
    )
    (failure,) = report.failures
    assert failure.cause.name == "dtype"
    assert "is wrong in float32 alone" in failure.cause.text
