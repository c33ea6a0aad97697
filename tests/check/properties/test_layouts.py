"""The part that lays arrays out in every way, and what it says of those that fail."""

import dataclasses

import numpy as np
import pytest

import pullback as pb
from pullback.check.exceptions import InapplicableError
from pullback.check.memory_layouts import layouts_of
from pullback.check.properties.layouts import check_layouts
from pullback.check.report import Report
from pullback.check.session import Options, Session
from pullback.check.subject import Subject

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.75, -0.25], [3.0, -1.0, 0.125], [0.25, 1.5, -2.0]])
Y = X[::-1] * 1.5 + 1


def check(fn, *inputs, **options):
    """Run the part and return the report."""
    report = Report("test", 0)
    check_layouts(Session(Subject(fn, inputs), Options(**options), report))
    return report


def only_failure(fn, *inputs, **options):
    (failure,) = check(fn, *inputs, **options).failures
    assert failure.cause.name == "layout"
    assert str(failure)
    return failure


def op(forward, backward):
    return pb.autograd_function(forward, backward, name="op")


def as_contiguous(array):
    """Read an array's memory as if it were C-contiguous, as a kernel does that ignores strides."""
    strides = np.empty(array.shape, array.dtype).strides
    return np.lib.stride_tricks.as_strided(array, array.shape, strides).copy()


# -- the layouts ----------------------------------------------------------------------------------
SHAPES = [(), (1,), (5,), (2, 3), (3, 1), (2, 3, 4), (2, 1, 3), (2, 2, 2, 2), (0,), (2, 0)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128", "int64", "bool"])
def test_a_layout_keeps_the_values(shape, dtype):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    found = layouts_of(array)
    assert len({layout.name for layout in found}) == len(found)
    for layout in found:
        laid, values = layout.apply(array), layout.values(array)
        assert laid.dtype == array.dtype
        assert laid.shape == array.shape
        assert np.array_equal(laid, values), layout.name
        assert values.flags.c_contiguous
        assert layout.axes or np.array_equal(values, array)
        if layout.name not in ("misaligned", "read-only"):
            assert laid.flags.writeable
            assert laid.flags.aligned


def test_the_layouts_are_what_they_say():
    array = np.arange(24.0).reshape(2, 3, 4)
    strides = {layout.name: layout.apply(array).strides for layout in layouts_of(array)}
    assert strides == {
        "Fortran order": (8, 16, 48),
        "axes 0 and 1 transposed": (32, 64, 8),
        "axes 1 and 2 transposed": (96, 8, 24),
        "expanded along axis 0": (0, 32, 8),
        "expanded along axis 1": (32, 0, 8),
        "expanded along axis 2": (24, 8, 0),
        "expanded along every axis": (0, 0, 0),
        "sliced with steps": (1008, 144, 16),
        "rows of a wider array": (144, 48, 8),
        "reversed": (-96, -32, -8),
        "inside a larger storage": (96, 32, 8),
        "misaligned": (96, 32, 8),
        "read-only": (96, 32, 8),
    }
    by_name = {layout.name: layout.apply(array) for layout in layouts_of(array)}
    assert not by_name["misaligned"].flags.aligned
    assert not by_name["read-only"].flags.writeable
    assert not by_name["inside a larger storage"].flags.owndata


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reading_an_array_as_if_it_were_contiguous_stays_inside_its_memory(shape):
    array = np.full(shape, 3.0)
    for layout in layouts_of(array):
        if layout.name != "misaligned":
            assert np.isin(as_contiguous(layout.apply(array)), (3.0, 7.0)).all(), layout.name


# -- right operations pass ------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_ill_conditioned_operations_do_not_fail(dtype):
    x = X[:3].astype(dtype)
    for fn in (
        lambda x: x.softmax(1),
        lambda x: (x * 1e3).logsumexp(0) if x.dtype.is_floating_point else x.sum(0),
        lambda x: (x - x.mean()).sum(),
        lambda x: x.cumsum(1).cumsum(0),
        lambda x: x.reshape(-1)[::2] * 2,
    ):
        assert check(fn, x).ok
    if dtype == "float64":
        assert check(lambda x: x.T @ x @ x, x).ok
        assert check(lambda x: (x @ x.T).det(), x).ok
        assert check(lambda x: pb.linalg.eigh(x @ x.T)[0], x).ok


def test_rounding_that_differs_with_the_layout_is_not_called_wrong():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1e-9

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        order = 1 if x.numpy().flags.c_contiguous else -1
        # One number in two orders of its factors: all that is left of it is rounding.
        return g * ((0.3 * x) * 3.7 - (0.3 * 3.7) * x) * order

    assert check(op(forward, backward), 1e9 * (1 + X)).ok


def test_operations_in_place_pass():
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        ctx.save_for_backward(y=y)
        return x.mul_(y)

    def backward(ctx, g):
        y = ctx.saved_variables.y
        return {"x": g * y, "y": None}

    fn = op(forward, backward)
    assert check(lambda x: fn(x, pb.asarray(Y)), X).ok


# -- wrong ones -----------------------------------------------------------------------------------
def test_a_backward_that_takes_grad_output_for_contiguous_is_found():
    def backward(ctx, g):
        return 2 * pb.asarray(as_contiguous(g.numpy()))

    fn = op(lambda ctx, x: 2 * x, backward)
    failure = only_failure(fn, X)
    assert failure.argument == "x"
    assert failure.wrong.any()
    text = failure.cause.text
    assert text.startswith("the gradient of `x` is right only for contiguous grad_output; the")
    assert "the failing layouts are transposed (strides (8, 32)), " in text
    for name in ("expanded along axis 0", "sliced with steps", "reversed", "rows of a wider array"):
        assert name in text
    for name in ("misaligned", "read-only", "inside"):
        assert name not in text
    assert failure.cause.hint.startswith("call grad_output.contiguous(), or numpy.ascontiguous")
    quick = only_failure(fn, X, fast=True).cause.text
    assert quick.count("strides") == 3


def test_a_layout_that_a_torch_style_kernel_misses_is_the_only_one_named():
    def backward(ctx, g):
        array = g.numpy()
        return pb.asarray(as_contiguous(array) if 0 in array.strides else array) * 2

    text = only_failure(op(lambda ctx, x: 2 * x.sum(1), backward_of_sum(backward)), X).cause.text
    assert text == (
        "the gradient of `x` is right only for contiguous grad_output; the failing layout is "
        "expanded along axis 0 (strides (0,))"
    )


def backward_of_sum(backward):
    return lambda ctx, g: backward(ctx, g).unsqueeze(1).expand(4, 3)


def test_the_argument_whose_layout_matters_and_the_one_whose_gradient_is_wrong_are_named():
    def forward(ctx, x, weight):
        ctx.save_for_backward(x=x, weight=weight)
        return x * weight

    def backward(ctx, g):
        s = ctx.saved_variables
        return {"x": g * s.weight, "weight": g * pb.asarray(as_contiguous(s.x.numpy()))}

    failure = only_failure(op(forward, backward), X, Y)
    assert failure.argument == "weight"
    assert failure.cause.text.startswith(
        "the gradient of `weight` is right only for contiguous `x`; the failing layouts are"
    )
    assert failure.cause.hint.startswith("call x.contiguous()")


def test_a_forward_that_takes_an_input_for_contiguous_is_found():
    def forward(ctx, x):
        return pb.asarray(2 * as_contiguous(x.numpy()))

    failure = only_failure(op(forward, lambda ctx, g: 2 * g), X)
    assert failure.argument == ""
    assert failure.cause.text.startswith("forward is right only for contiguous `x`; the failing")


def test_arrays_that_are_not_differentiated_are_laid_out_too():
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask=pb.asarray(as_contiguous(mask.numpy()).astype(float)))
        return x * ctx.saved_variables.mask

    fn = op(forward, lambda ctx, g: {"x": g * ctx.saved_variables.mask})
    mask = np.eye(4, 3, dtype=bool)
    failure = only_failure(lambda x, mask: fn(x, mask), X, mask)
    assert "contiguous `mask`" in failure.cause.text


def test_only_all_arrays_at_once_are_found_together():
    def forward(ctx, x, y):
        odd = not x.numpy().flags.c_contiguous and not y.numpy().flags.c_contiguous
        return x + y + (1.0 if odd else 0.0)

    text = only_failure(op(forward, lambda ctx, g: (g, g)), X, Y).cause.text
    assert text.startswith("forward is right only for contiguous inputs (all of them); the failing")


def test_only_an_input_and_grad_output_together_are_found():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        odd = not x.numpy().flags.c_contiguous and not g.numpy().flags.c_contiguous
        return g * (3 if odd else 2)

    text = only_failure(op(forward, backward), X).cause.text
    assert text.startswith("the gradient of `x` is right only for contiguous inputs and grad_out")


@pytest.mark.parametrize(
    ("flag", "name", "needed"),
    [("aligned", "misaligned", "aligned"), ("writeable", "read-only", "writeable")],
)
def test_a_rule_that_raises_for_one_kind_of_memory_is_reported_so(flag, name, needed):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if not getattr(x.numpy().flags, flag):
            raise BufferError(f"{flag} memory is required")
        return 2 * g

    failure = only_failure(op(forward, backward), X)
    assert failure.cause.text == (
        f"backward raises (BufferError: {flag} memory is required): it is right only for {needed} "
        f"`x`; the failing layout is {name} (strides (24, 8))"
    )


def test_a_forward_that_refuses_a_layout_is_noted():
    def forward(ctx, x):
        if not x.numpy().flags.writeable:
            raise TypeError("buffer source array is read-only")
        return x * 2

    report = check(op(forward, lambda ctx, g: 2 * g), X)
    assert report.ok
    (note,) = report.notes
    assert note == (
        "forward refuses `x` that is read-only (strides (24, 8)): TypeError: buffer source array "
        "is read-only"
    )


def test_functions_that_are_undefined_for_equal_values_pass():
    def forward(ctx, x):
        if len(np.unique(x.numpy())) < x.numel():
            raise ValueError("distinct values are required")
        return x * 2

    report = check(op(forward, lambda ctx, g: 2 * g), np.linspace(-1, 2, 12).reshape(4, 3))
    assert report.ok
    assert not report.notes


def test_other_libraries_have_no_layouts():
    session = Session(Subject(pb.sin, (X,)), Options(), Report("test", 0))
    session.subject.backend = dataclasses.make_dataclass("Backend", ["library"])(None)
    with pytest.raises(InapplicableError, match="only arrays of NumPy have layouts"):
        check_layouts(session)


def test_where_equal_values_are_a_pole_rounding_alone_differs():
    def forward(ctx, times):
        number = np.arange(6) - 2.5
        line = number / (number @ number)
        slope = line @ times.numpy()  # of equal values 0, but for rounding
        ctx.slope = -line / slope**2
        return pb.asarray(np.array(1 / slope))

    def backward(ctx, grad_output):
        return {"times": grad_output * pb.asarray(ctx.slope)}

    rate = pb.autograd_function(forward, pb.once_differentiable(backward), name="rate")
    report = check(rate, np.arange(6) * 125 + 3.7)
    assert report.ok
