"""The properties of calls with the same numbers in other arrays: layouts, dtypes, libraries."""

import sys

import numpy as np
import pytest
from tests.check._parts import (
    NORMAL,
    check,
    doubled,
    linear,
    linear_inputs,
    of_saved,
    only_failure,
    op,
    ran,
)

import pullback as pb
from pullback.check.properties.arrays import layouts_of
from pullback.check.report import Status

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.75, -0.25], [3.0, -1.0, 0.125], [0.25, 1.5, -2.0]])
Y = X[::-1] * 1.5 + 1
SHAPES = [(), (1,), (5,), (2, 3), (3, 1), (2, 3, 4), (2, 1, 3), (2, 2, 2, 2), (0,), (2, 0)]


def as_contiguous(array):
    """Read an array's memory as if it were C-contiguous, as a kernel does that ignores strides."""
    strides = np.empty(array.shape, array.dtype).strides
    return np.lib.stride_tricks.as_strided(array, array.shape, strides).copy()


def read(tensor):
    return pb.asarray(as_contiguous(tensor.numpy()))


# -- the layouts -----------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "complex128", "int64", "bool"])
def test_a_layout_keeps_the_values(shape, dtype):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    for name, laid in layouts_of(array).items():
        assert (laid.dtype, laid.shape) == (array.dtype, array.shape)
        assert name.startswith("expanded") or np.array_equal(laid, array), name
        assert name == "misaligned" or laid.flags.aligned
        assert name in ("misaligned", "read-only") or laid.flags.writeable


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reading_an_array_as_if_it_were_contiguous_stays_inside_its_memory(shape):
    for name, laid in layouts_of(np.full(shape, 3.0)).items():
        if name != "misaligned":
            assert np.isin(as_contiguous(laid), (3.0, 7.0)).all(), name


# -- the property ----------------------------------------------------------------------------------


def times_in_place(ctx, x, y):
    ctx.mark_dirty(x)
    ctx.save_for_backward(y=y)
    return x.mul_(y)


def by_order(g, x):
    order = 1 if x.numpy().flags.c_contiguous else -1
    # One number in two orders of its factors: all that is left of it is rounding.
    return g * ((0.3 * x) * 3.7 - (0.3 * 3.7) * x) * order


def distinct(ctx, x):
    if len(np.unique(x.numpy())) < x.numel():
        raise ValueError("distinct values are required")
    return x * 2


def rate(ctx, times):
    number = np.arange(6) - 2.5
    line = number / (number @ number)
    slope = line @ times.numpy()  # of equal values 0, but for rounding
    ctx.slope = -line / slope**2
    return pb.asarray(np.array(1 / slope))


@pytest.mark.parametrize(
    "call",
    [
        (of_saved(lambda x: x * 1e-9, by_order), 1e9 * (1 + X)),
        (op(distinct, lambda ctx, g: 2 * g), np.linspace(-1, 2, 12).reshape(4, 3)),
        (op(rate, lambda ctx, g: g * pb.asarray(ctx.slope), once=True), np.arange(6) * 125 + 3.7),
        (
            lambda x: op(times_in_place, lambda ctx, g: (g * ctx.saved_variables.y, None))(
                x, pb.asarray(Y)
            ),
            X,
        ),
    ],
    ids=["rounding", "distinct", "pole", "in place"],
)
def test_what_differs_by_rounding_alone_or_is_not_defined_passes(call):
    report = check("layouts", *call)
    assert (report.failures, report.notes) == ([], [])


def both(ctx, x, y):
    odd = not x.numpy().flags.c_contiguous and not y.numpy().flags.c_contiguous
    return x + y + (1.0 if odd else 0.0)


def masked(ctx, x, mask):
    ctx.save_for_backward(mask=pb.asarray(as_contiguous(mask.numpy()).astype(float)))
    return x * ctx.saved_variables.mask


masking = op(masked, lambda ctx, g: {"x": g * ctx.saved_variables.mask})


@pytest.mark.parametrize(
    ("fn", "inputs", "words"),
    [
        (doubled(lambda g: 2 * read(g)), [X], "the gradient of `x` is wrong with grad_output tr"),
        (
            of_saved(lambda x, w: x * w, lambda g, x, w: (g * w, g * read(x))),
            [X, Y],
            "the gradient of `w` is wrong with `x` transposed in memory",
        ),
        (
            op(lambda ctx, x: 2 * read(x), lambda ctx, g: 2 * g),
            [X],
            "output 0 is wrong with `x` tr",
        ),
        (lambda x, mask: masking(x, mask), [X, np.eye(4, 3, dtype=bool)], "with `mask` transposed"),
        (op(both, lambda ctx, g: (g, g)), [X, Y], "output 0 is wrong with all arrays transposed"),
    ],
    ids=["grad_output", "argument", "forward", "mask", "inputs"],
)
def test_what_is_right_for_contiguous_memory_alone_is_found(fn, inputs, words):
    name, text = only_failure("layouts", fn, *inputs)
    assert name == "layout"
    assert words in text
    assert "call contiguous(), or" in text


def test_the_layout_that_fails_is_named():
    def stride_0(g):
        return 2 * (read(g) if 0 in g.numpy().strides else g)

    _, text = only_failure("layouts", doubled(stride_0), X[0])
    assert "with grad_output expanded along axis 0 in memory\n" in text


@pytest.mark.parametrize(("flag", "name"), [("aligned", "misaligned"), ("writeable", "read-only")])
def test_a_rule_that_raises_for_one_kind_of_memory_is_reported_so(flag, name):
    def rule(g, x):
        if not getattr(x.numpy().flags, flag):
            raise BufferError("memory")
        return 2 * g

    _, text = only_failure("layouts", of_saved(lambda x: 2 * x, rule), X)
    assert text.startswith(f"backward raises with `x` {name} in memory: BufferError: memory\n")


def test_a_forward_that_refuses_a_layout_is_noted():
    def forward(ctx, x):
        if not x.numpy().flags.writeable:
            raise TypeError("read-only")
        return x * 2

    report = check("layouts", op(forward, lambda ctx, g: 2 * g), X)
    assert report.ok
    assert report.notes == ["forward raises with `x` read-only in memory: TypeError: read-only"]


# -- dtypes ----------------------------------------------------------------------------------------
def by_float(g, x):
    return g * x.cos() if x.dtype == pb.float64 else g * (1 - x * x / 2)


def shifted(by):
    return of_saved(lambda x: x * x, lambda g, x: g * ((x + by) - by) * 2)


def overflowing(g, x):
    return g * (-x).exp() / (1 + (-x).exp()) ** 2


def test_a_forward_in_float32_for_every_dtype_has_no_other_dtypes():
    fn = of_saved(lambda x: (x.float() * 1.7).to(x.dtype), lambda g, x: 1.7 * g)
    result, _ = ran("dtypes", fn, np.array([0.3, 1.2]))
    assert result.text == (
        "not applicable: forward has no more than float32's precision, whatever it is given"
    )


@pytest.mark.parametrize(
    ("fn", "x", "cause", "words"),
    [
        (shifted(1e6), NORMAL(size=(3, 4)), "cancellation", "is wrong in float32 alone"),
        (shifted(2e3), np.array([0.3, -1.2, 2.2, 0.7]), "cancellation", "wrong in float16 alone"),
        (
            of_saved(lambda x: x.sigmoid(), overflowing),
            np.array([-100.0, -1.0, 0.5]),
            "dtype",
            "is not finite in float32 alone",
        ),
        (
            of_saved(lambda x: x.sin(), by_float),
            np.array([0.4, -1.3, 2.1, 0.7]),
            "cancellation",
            "or another formula than for float64?",
        ),
    ],
    ids=["float32", "float16", "overflow", "formula"],
)
def test_what_is_wrong_in_a_narrower_dtype_alone_is_found(fn, x, cause, words):
    found = check("dtypes", fn, x).failures
    assert found[0].cause.name == cause
    assert words in str(found[0])


def least(ctx, x):
    order = np.argsort(x.numpy(), kind="stable")
    first, last = order[0], order[np.sum(x.numpy() == x.numpy().min()) - 1]
    ctx.index, ctx.shape = (first if x.dtype == pb.float64 else last), x.shape
    return x.min()


def of_least(ctx, g):
    found = pb.zeros(ctx.shape, dtype=g.dtype)
    found[int(ctx.index)] = g
    return found


@pytest.mark.parametrize(
    "call",
    [
        (lambda x: x.log_softmax(-1), 50 * NORMAL(size=(3, 4))),
        (lambda x: x.floor() * x, np.array([2.9999999999, 0.5])),
        (lambda x: x.max(-1).values, np.array([[1.0, 1.0 + 1e-12], [2.0, 1.0]])),
        (lambda x: pb.linalg.inv(x), 1 / np.add.outer(np.arange(1.0, 7), np.arange(6))),
        (lambda x: 1e30 * x, np.array([1e-20, 1e20])),
        (lambda x: x / x.abs(), np.array([0.3, 1e-6])),
        (op(least, of_least, once=True), np.array([1.0, 0.0, 2.0, 0.0])),
    ],
)
def test_dtypes_pass_for_what_is_conditioned_badly_itself(call):
    assert ran("dtypes", *call)[1].failures == []


def test_an_operation_that_takes_float32_alone_is_checked():
    def forward(ctx, x):
        if x.dtype != pb.float32:
            raise TypeError("x must be float32")
        ctx.save_for_backward(x=x)
        return x * x * x

    x = NORMAL(size=(3, 5)).astype(np.float32)
    for factor, outcome in ((3.0, "right"), (2.0, "wrong")):
        cube = op(forward, lambda ctx, g, c=factor: {"x": c * ctx.saved_variables.x**2 * g})
        assert pb.check.check_op(cube, x, raise_exception=False).outcome == outcome


# -- libraries -------------------------------------------------------------------------------------
def foreign(tensor):
    return not isinstance(tensor.data_array(), np.ndarray)


elsewhere = doubled(lambda g: 3 * g if foreign(g) else 2 * g)


def by_numpy(tensor):
    return pb.asarray(2 * np.asarray(tensor.detach().numpy()))


def test_libraries_find_numbers_that_are_wrong_elsewhere():
    name, text = only_failure("libraries", elsewhere, X)
    assert name == "dtype"
    assert text.startswith("the gradient of `x` is wrong on arrays of array_api_strict alone")


def test_libraries_note_a_rule_written_for_numpy_and_pass_for_the_standard():
    result, report = ran("libraries", linear, *linear_inputs())
    assert (result.status, report.failures, report.notes) == (Status.PASSED, [], [])
    report = check("libraries", doubled(by_numpy), X)
    assert report.ok
    assert report.notes[0].startswith("backward raises on arrays of array_api_strict alone: ")
    result, _ = ran("libraries", op(lambda ctx, x: by_numpy(x), lambda ctx, g: 2 * g), X)
    assert result.text == "not applicable: forward takes NumPy arrays only"


def test_libraries_in_use_are_tried(monkeypatch):
    import array_api_strict

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("jax.numpy", "dask.array"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert ran("libraries", elsewhere, X)[0].reason == "no other array library is installed"
    monkeypatch.setitem(sys.modules, "jax.numpy", array_api_strict)
    assert only_failure("libraries", elsewhere, X)[0] == "dtype"
