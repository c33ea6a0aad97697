"""Fewer arguments, other sizes, second derivatives, other dtypes and libraries: each part alone."""

import sys
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.check.dtypes import dtypes
from pullback.check.exceptions import InapplicableError
from pullback.check.libraries import libraries
from pullback.check.masks import masks, subsets
from pullback.check.report import FAILED, INAPPLICABLE, PASSED, PartResult, Report
from pullback.check.second import second_order
from pullback.check.session import Options, Session
from pullback.check.shapes import shapes
from pullback.check.subject import Subject

PARTS = [masks, shapes, second_order, dtypes, libraries]
NORMAL = np.random.default_rng(0).normal


def ran(part, fn, *args, **kwargs):
    """Run one part on one call; return its result and the report."""
    subject = Subject(fn, args, kwargs)
    report = Report(subject.name, 0)
    status, reason = PASSED, ""
    try:
        part(Session(subject, Options(), report))
    except InapplicableError as error:
        status, reason = INAPPLICABLE, str(error)
    if report.failures:
        status = FAILED
    return PartResult(part.__name__, "", status, reason), report


def failures(part, fn, *args, **kwargs):
    return ran(part, fn, *args, **kwargs)[1].failures


def op(backward, once=False):
    """Return a decorator that makes a forward an operation with this backward."""
    rule = pb.once_differentiable(backward) if once else backward
    return lambda forward: pb.autograd_function(forward, rule, name=forward.__name__)


def product_backward(ctx, grad):
    x, y = ctx.saved_tensors
    return (grad * y).sum_to_size(x.shape), (grad * x).sum_to_size(y.shape)


@op(product_backward)
def product(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y


def linear_backward(ctx, grad):
    x, w, _ = ctx.saved_tensors
    return grad @ w, grad.mT @ x, grad.sum(0)


@op(linear_backward)
def linear(ctx, x, w, b):
    ctx.save_for_backward(x, w, b)
    return x @ w.mT + b


def linear_inputs(n=4):
    return NORMAL(size=(n, 3)), NORMAL(size=(2, 3)), NORMAL(size=2)


# ---- masks ---------------------------------------------------------------------------------------


def test_masks_tries_every_subset_of_few_arguments_and_single_ones_of_many():
    assert subsets(2) == [(0,), (1,)]
    assert len(subsets(3)) == 6
    assert len(subsets(4)) == 14
    assert sorted(map(len, subsets(6))) == [1] * 6 + [5] * 6


def test_masks_pass_where_each_gradient_is_computed_by_itself():
    result, report = ran(masks, linear, *linear_inputs())
    assert (result.status, report.failures) == (PASSED, [])


def test_masks_say_that_one_argument_has_no_subsets():
    result, _ = ran(masks, lambda x: pb.sin(x), np.ones(3))
    assert (result.status, result.reason) == (INAPPLICABLE, "only one argument is differentiated")


def test_masks_find_a_gradient_that_is_wrong_alone():
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        by_x = grad * y if needs.x else None
        by_y = grad * x if needs.x and needs.y else grad if needs.y else None
        return by_x, by_y

    @op(backward)
    def times(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    (found,) = failures(masks, times, NORMAL(size=3), NORMAL(size=3))
    assert (found.cause.name, found.argument) == ("needs-input-grad", "y")
    assert found.cause.text == "`y` is wrong when only it needs a gradient"
    assert found.wrong.all()
    assert not found.situation


def test_masks_name_the_argument_that_is_left_out():
    def backward(ctx, grad):
        x, w, _ = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return grad @ w, grad.mT @ x, grad.sum(0) if needs.w else grad[0]

    @op(backward)
    def affine(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return x @ w.mT + b

    (found,) = failures(masks, affine, *linear_inputs())
    assert found.cause.text == "`b` is wrong when `w` needs no gradient"


def test_masks_report_an_exception_with_what_was_left_out():
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        if ctx.needs_input_grad.x:
            by_x = grad * y
        return by_x, grad * x

    @op(backward)
    def times(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    (found,) = failures(masks, times, NORMAL(size=3), NORMAL(size=3))
    assert found.cause.name == "needs-input-grad"
    assert found.cause.text.startswith("backward raises when `x` needs no gradient: Unbound")


def test_masks_find_what_is_wrong_for_the_gradients_asked_for_alone():
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        both = all(ctx.needs_input_grad) or not ctx.both
        return grad * y if both else grad, grad * x

    @op(backward)
    def times(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.both = all(ctx.needs_input_grad)
        return x * y

    (found,) = failures(masks, times, NORMAL(size=3), NORMAL(size=3))
    assert found.cause.text == "`x` is wrong when only it needs a gradient"
    assert found.situation == "pb.autograd.grad(outputs, [x])"


def test_masks_report_a_forward_that_needs_all_gradients():
    def forward(ctx, x, y):
        if not ctx.needs_input_grad.y:
            raise ValueError("no y")
        ctx.save_for_backward(x, y)
        return x * y

    times = pb.autograd_function(forward, product_backward, name="times")
    (found,) = failures(masks, times, NORMAL(size=3), NORMAL(size=3))
    assert found.cause.text == "forward raises when `y` needs no gradient: ValueError: no y"


# ---- shapes --------------------------------------------------------------------------------------


def test_shapes_pass_for_what_holds_at_any_size():
    for call in ((linear, *linear_inputs()), (product, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))):
        result, report = ran(shapes, *call)
        assert (result.status, report.failures, report.notes) == (PASSED, [], [])


def test_shapes_do_not_apply_where_forward_takes_one_shape():
    @op(lambda ctx, grad: 2 * grad)
    def double(ctx, x):
        if x.shape != (3,):
            raise ValueError("three numbers")
        return 2 * x

    result, _ = ran(shapes, double, np.ones(3))
    assert (result.status, result.reason) == (INAPPLICABLE, "forward takes these shapes only")


def test_shapes_find_a_constant_that_stands_for_the_batch_size():
    @op(lambda ctx, grad: grad.expand(ctx.shape) / 12)
    def mean(ctx, x):
        ctx.shape = x.shape
        return x.mean()

    (found,) = failures(shapes, mean, NORMAL(size=(4, 3)))
    assert (found.cause.name, found.argument) == ("size", "x")
    assert found.cause.text == (
        "right for axis 0 of length 4 but wrong for length 5: the gradient of `x` depends on the "
        "batch size; there it is off by the factor 1.250 everywhere"
    )


def test_shapes_name_the_axes_that_change_together():
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.mT * (x.shape[1] / 3), x.mT @ grad

    @op(backward)
    def matmul(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    (found,) = failures(shapes, matmul, NORMAL(size=(4, 3)), NORMAL(size=(3, 2)))
    assert found.argument == "x"
    assert found.cause.text.startswith(
        "right for axis 1 of `x` and axis 0 of `w` of length 3 but wrong for length 4: the "
        "gradient of `x` depends on that length"
    )


def test_shapes_find_a_rule_that_raises_for_one_row():
    @op(lambda ctx, grad: (2 * grad).squeeze())
    def double(ctx, x):
        return 2 * x

    (found,) = failures(shapes, double, NORMAL(size=(4, 3)))
    assert found.cause.name in ("raised", "missing-sum")
    assert found.situation == "with axis 0 of `x` of length 1"


def test_shapes_find_a_rule_that_raises_for_nothing():
    def backward(ctx, grad):
        return 2 * grad * (grad.max() > -1e9)

    @op(backward)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(shapes, double, NORMAL(size=4))
    assert found.cause.name == "raised"
    assert found.cause.text.startswith("backward raises: ")
    assert found.situation == "with axis 0 of `x` of length 0"


def test_shapes_of_nothing_that_give_something_are_only_noted():
    @op(lambda ctx, grad: grad.expand(ctx.shape) * (1 / ctx.shape[0]))
    def total(ctx, x):
        ctx.shape = x.shape
        return x.sum() * (1 / max(x.shape[0], 1))

    result, report = ran(shapes, total, NORMAL(size=4))
    assert (result.status, report.failures) == (PASSED, [])
    (note,) = report.notes
    assert note.startswith(
        "forward works with axis 0 of `x` of length 0, but backward raises: Zero"
    )


def test_shapes_try_multiples_where_forward_needs_them():
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.reshape(-1, 2).sum(-1) if x.shape[0] % 2 == 0 else x.reshape(-1, 2, 2)

    def backward(ctx, grad):
        return (grad.unsqueeze(-1) * (ctx.shape[0] / 4)).expand(-1, 2).reshape(ctx.shape)

    pairs = pb.autograd_function(forward, backward, name="pairs")
    (found,) = failures(shapes, pairs, NORMAL(size=4))
    assert "of length 4 but wrong for length 8" in found.cause.text
    assert "by the factor 2.000 everywhere" in found.cause.text


def test_shapes_that_a_plain_function_may_need_are_only_noted():
    @op(lambda ctx, grad: grad * (1.0 if grad.shape[0] > 2 else 2.0))
    def copy(ctx, x):
        return x * 1

    assert [f.cause.name for f in failures(shapes, copy, NORMAL(size=4))] == ["size"]
    result, report = ran(shapes, lambda x: copy(x), NORMAL(size=4))
    assert (result.status, report.failures) == (PASSED, [])
    assert "the gradients of `x` are wrong with axis 0 of `x` of length 1" in report.notes


def test_shapes_that_are_too_short_for_a_filter_are_only_noted():
    def forward(ctx, x, kernel):
        ctx.save_for_backward(x, kernel)
        return pb.asarray(np.correlate(x.numpy(), kernel.numpy(), "valid"))

    def backward(ctx, grad):
        x, kernel = (t.numpy() for t in ctx.saved_tensors)
        by_x = np.convolve(grad.numpy(), kernel)
        return pb.asarray(by_x), pb.asarray(np.correlate(x, grad.numpy(), "valid"))

    correlate = pb.autograd_function(forward, pb.once_differentiable(backward), name="correlate")
    result, report = ran(shapes, correlate, NORMAL(size=8), NORMAL(size=3))
    assert (result.status, report.failures) == (PASSED, [])
    assert any("forward works with axis 0 of `x` of length 1" in n for n in report.notes)


def test_shapes_excuse_a_kink_that_only_the_new_size_meets():
    """The median position is between two elements of four and on the third of five."""

    def quantile(x, q):
        return x.quantile(q, dim=0)

    result, report = ran(shapes, quantile, np.array([0.3, -1.0, 2.0, 0.7]), np.array(0.5))
    assert (result.status, report.failures) == (PASSED, [])


def test_shapes_that_a_setting_fixes_are_only_noted():
    def forward(ctx, x, n):
        ctx.n = n
        return x * 1

    def backward(ctx, grad):
        return grad.reshape(ctx.n), None

    copy = pb.autograd_function(forward, backward, name="copy")
    result, report = ran(shapes, copy, NORMAL(size=4), 4)
    assert (result.status, report.failures) == (PASSED, [])
    assert any("backward raises" in note for note in report.notes)
    # A plain function may have such a setting in its body.
    result, report = ran(shapes, lambda x: copy(x, 4), NORMAL(size=4))
    assert (result.status, report.failures) == (PASSED, [])
    assert any("with axis 0 of `x` of length 5, but backward" in note for note in report.notes)


def test_shapes_of_integers_that_are_distinct_are_not_repeated():
    """Of equal indices the last one wins: the rule holds for distinct ones."""

    def forward(ctx, base, index, values):
        ctx.save_for_backward(index)
        found = np.array(base.numpy())
        found[index.numpy()] = values.numpy()
        return pb.asarray(found)

    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        by_base = np.array(grad.numpy())
        by_base[index.numpy()] = 0
        return pb.asarray(by_base), None, grad[index]

    put = pb.autograd_function(forward, pb.once_differentiable(backward), name="put")
    result, report = ran(shapes, put, NORMAL(size=5), np.array([3, 0, 4]), NORMAL(size=3))
    assert (result.status, report.failures) == (PASSED, [])


def test_shapes_find_a_mean_where_forward_broadcasts():
    def backward(ctx, grad):
        _, y = ctx.saved_tensors
        by_y = grad if y.shape == grad.shape else grad.mean(0, keepdim=True)
        return grad, by_y.sum_to_size(y.shape)

    @op(backward)
    def add(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y

    found = failures(shapes, add, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))
    first = found[0]
    assert (first.cause.name, first.argument) == ("missing-sum", "y")
    assert first.cause.text == "the gradient of `y` is wrong when forward broadcasts `y`"
    assert first.situation == "with `y` of shape (1, 3), which forward broadcasts"


def test_shapes_only_note_a_rule_without_broadcasting():
    @op(lambda ctx, grad: (grad, grad))
    def add(ctx, x, y):
        return x + y

    result, report = ran(shapes, add, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))
    assert result.status == PASSED
    assert [note.split(",")[0] for note in report.notes] == [
        "forward broadcasts `x`",
        "forward broadcasts `y`",
    ]


def test_shapes_find_what_is_wrong_for_0_d_arguments():
    def backward(ctx, grad):
        return 2 * grad if grad.ndim else grad

    @op(backward)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(shapes, double, NORMAL(size=3))
    assert (found.cause.name, found.cause.text) == (
        "size",
        "the gradient of `x` is wrong for 0-d arguments",
    )


# ---- second order --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        (linear, *linear_inputs()),
        (product, NORMAL(size=3), NORMAL(size=(2, 3))),
        (lambda x: x.relu() * x.abs(), np.array([-1.0, 0.0, 2.0, 0.0])),
        (lambda x: x.max(), np.array([1.0, 3.0, 3.0, 2.0])),
        (lambda x: x.exp().sum(), NORMAL(size=4).astype(np.float32)),
        (lambda z: z * z.conj() * z, NORMAL(size=3) + 1j * NORMAL(size=3)),
        (lambda x: (x.sin(), x.cos()), NORMAL(size=3)),
    ],
)
def test_second_order_passes(call):
    result, report = ran(second_order, *call)
    assert (result.status, report.failures) == (PASSED, [])


def test_second_order_finds_a_detached_rule():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * grad * x.detach() ** 2

    @op(backward)
    def cube(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    (found,) = failures(second_order, cube, NORMAL(size=3))
    assert (found.cause.name, found.argument) == ("second-order", "x")
    assert found.cause.text == (
        "the second derivative in `x` is wrong although the first is right: backward leaves the "
        "recorded operations (detach, numpy, no_grad)"
    )
    assert "pb.once_differentiable" in found.cause.hint
    assert found.wrong.all()


def test_second_order_finds_a_grad_output_taken_out_of_the_history():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad.detach()

    @op(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    (found,) = failures(second_order, square, NORMAL(size=3))
    assert (found.cause.name, found.argument) == ("second-order", "grad_output")


def test_second_order_reports_the_trap_of_a_saved_intermediate():
    def forward(ctx, x):
        doubled = 2 * x
        ctx.save_for_backward(doubled=doubled)
        return doubled * doubled

    def backward(ctx, grad):
        return 4 * ctx.saved_variables.doubled * grad

    square = pb.autograd_function(forward, backward, name="square")
    (found,) = failures(second_order, square, NORMAL(size=3))
    assert found.cause.name == "second-order"
    assert found.cause.text.startswith("second derivative: backward raises when it is recorded")
    assert "'doubled' is neither an input nor an output" in found.cause.text
    assert "once_differentiable" in found.cause.hint


def test_second_order_reports_numpy_on_a_tracked_tensor():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * pb.asarray(np.cos(x.numpy()))

    @op(backward)
    def sine(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    (found,) = failures(second_order, sine, NORMAL(size=3))
    assert found.cause.name == "second-order"
    assert "NumPy array" in found.cause.text
    assert found.cause.hint == "write it with tensor operations or mark it pb.once_differentiable"


def test_second_order_finds_a_rule_that_changes_when_it_is_recorded():
    def backward(ctx, grad):
        return 3 * grad if pb.is_grad_enabled() else 2 * grad

    @op(backward)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(second_order, double, NORMAL(size=3))
    assert found.cause.name == "second-order"
    assert "another one when backward is recorded" in found.cause.text


def test_second_order_does_not_apply_to_what_is_once_differentiable():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * pb.asarray(np.cos(x.numpy()))

    @op(backward, once=True)
    def sine(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    for fn in (sine, lambda x: 2 * sine(x)):
        result, _ = ran(second_order, fn, NORMAL(size=3))
        assert (result.status, result.reason) == (INAPPLICABLE, "marked once_differentiable")


# ---- dtypes --------------------------------------------------------------------------------------


def test_dtypes_find_cancellation_in_float32():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x + 1e6) - 1e6) * 2

    @op(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    (found,) = failures(dtypes, square, NORMAL(size=(3, 4)))
    assert (found.cause.name, found.argument) == ("cancellation", "x")
    assert found.cause.text.startswith(
        "float32 cancellation in `x`, not a formula error: float64 is right; the worst relative"
    )
    assert found.situation == "with float32 arguments"


def test_dtypes_find_an_intermediate_that_overflows_in_float32():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (-x).exp() / (1 + (-x).exp()) ** 2

    @op(backward)
    def sigmoid(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    (found,) = failures(dtypes, sigmoid, np.array([-100.0, -1.0, 0.5]))
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

    @op(backward)
    def double(ctx, x):
        return 2 * x

    found = failures(dtypes, double, NORMAL(size=3))
    assert {f.cause.name for f in found} == {"dtype"}
    assert found[0].cause.text == "backward raises in float32 alone: TypeError: float64 only"


def test_dtypes_find_cancellation_in_half_precision_alone():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x + 2e3) - 2e3) * 2

    @op(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    (found,) = failures(dtypes, square, np.array([0.3, -1.2, 2.2, 0.7]))
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
    assert failures(dtypes, *call) == []


def test_dtypes_excuse_a_tie_that_is_broken_in_another_way():
    def forward(ctx, x):
        order = np.argsort(x.numpy(), kind="stable")
        first, last = order[0], order[np.sum(x.numpy() == x.numpy().min()) - 1]
        ctx.place, ctx.shape = (first if x.dtype == pb.float64 else last), x.shape
        return x.min()

    def backward(ctx, grad):
        found = pb.zeros(ctx.shape, dtype=grad.dtype)
        found[int(ctx.place)] = grad
        return found

    least = pb.autograd_function(forward, pb.once_differentiable(backward), name="least")
    result, report = ran(dtypes, least, np.array([1.0, 0.0, 2.0, 0.0]))
    assert (result.status, report.failures) == (PASSED, [])


def test_dtypes_do_not_apply_to_single_precision():
    result, _ = ran(dtypes, lambda x: x.exp(), np.ones(3, np.float32))
    assert (result.status, result.reason) == (
        INAPPLICABLE,
        "the arguments are not in double precision",
    )


def test_dtypes_note_a_rule_that_is_conjugated_for_complex_arguments():
    result, report = ran(dtypes, product, NORMAL(size=3), NORMAL(size=3))
    assert result.status == PASSED
    (note,) = report.notes
    assert note.startswith(
        "product also takes complex inputs, for which the gradient of `x`, `y` is conjugated: "
        "multiply by the conjugate"
    )


def test_dtypes_note_a_rule_that_raises_for_complex_arguments():
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.clamp(min=-1e9) * grad

    @op(backward)
    def square(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    result, report = ran(dtypes, square, NORMAL(size=3))
    assert (result.status, report.failures) == (PASSED, [])
    (note,) = report.notes
    assert note.startswith("square also takes complex inputs, for which backward raises: ")


def test_dtypes_note_nothing_where_complex_arguments_are_right_or_refused():
    @op(lambda ctx, grad: 2 * grad)
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
        result, report = ran(dtypes, fn, NORMAL(size=3))
        assert (result.status, report.notes) == (PASSED, [])


# ---- libraries -----------------------------------------------------------------------------------


def foreign(tensor):
    return not isinstance(tensor.data_array(), np.ndarray)


def test_libraries_pass_for_what_follows_the_standard():
    result, report = ran(libraries, linear, *linear_inputs())
    assert (result.status, report.failures, report.notes) == (PASSED, [], [])


def test_libraries_find_numbers_that_are_wrong_elsewhere():
    @op(lambda ctx, grad: 3 * grad if foreign(grad) else 2 * grad)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(libraries, double, NORMAL(size=3))
    assert (found.cause.name, found.situation) == ("dtype", "on array_api_strict")
    assert found.cause.text == "the gradient of `x` is wrong on arrays of array_api_strict alone"


def test_libraries_only_note_a_rule_written_for_numpy():
    @op(lambda ctx, grad: pb.asarray(2 * np.asarray(grad.detach().numpy())))
    def double(ctx, x):
        return 2 * x

    result, report = ran(libraries, double, NORMAL(size=3))
    assert result.status == PASSED
    (note,) = report.notes
    assert note.startswith("forward also takes arrays of array_api_strict, but backward raises")


def test_libraries_do_not_apply_to_a_forward_written_for_numpy():
    @op(lambda ctx, grad: 2 * grad)
    def double(ctx, x):
        return pb.asarray(2 * np.asarray(x.detach().numpy()))

    result, _ = ran(libraries, double, NORMAL(size=3))
    assert (result.status, result.reason) == (INAPPLICABLE, "forward takes NumPy arrays only")


def test_libraries_in_use_are_tried(monkeypatch):
    import array_api_strict

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("jax.numpy", "dask.array"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    double = op(lambda ctx, grad: 3 * grad if foreign(grad) else 2 * grad)(lambda ctx, x: 2 * x)
    result, _ = ran(libraries, double, NORMAL(size=3))
    assert result.reason == "no other array library is installed"
    monkeypatch.setitem(sys.modules, "jax.numpy", array_api_strict)
    assert len(failures(libraries, double, NORMAL(size=3))) == 1


# ---- operations that are right -------------------------------------------------------------------


def test_no_warning_escapes():
    """Means of nothing and the like are tried, and NumPy warns of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in (shapes, dtypes):
            assert failures(part, lambda x: x.mean() / x.var(), NORMAL(size=3)) == []
