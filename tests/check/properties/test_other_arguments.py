"""The properties of calls made from the one given: tangents, batches, aliases, sizes, gradients."""

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
    product,
    ran,
)

import pullback as pb
from pullback.check import check_op
from pullback.check.report import Options, Report, Status
from pullback.check.session import Session
from pullback.check.sizes import parts, symbols
from pullback.check.subject import Subject

A, B = np.array([0.5, -1.2, 2.0]), np.array([1.5, 0.7, -0.4])


# -- a jvp that was given --------------------------------------------------------------------------
def times(jvp=None, vmap=None):
    def forward(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return a * b

    def backward(ctx, g):
        return {"a": g * ctx.saved_variables.b, "b": g * ctx.saved_variables.a}

    found = op(forward, backward, "times")
    if jvp is not None:
        found.jvp(jvp)
    if vmap is not None:
        found.vmap(lambda info, in_dims, a, b: vmap(found, info, in_dims, a, b))
    return found


def pushed(ctx, a, b):
    saved = ctx.saved_variables
    return sum(t * s for t, s in ((a, saved.b), (b, saved.a)) if t is not None)


@pytest.mark.parametrize(
    ("jvp", "words"),
    [
        (lambda ctx, a, b: -pushed(ctx, a, b), "<g, jvp(v)> is not <vjp(g), v> in jvp along `a`"),
        (lambda ctx, a, b: a * ctx.saved_variables.b, "raises in jvp along `b`: ArgumentTypeError"),
        (lambda ctx, a: a * ctx.saved_variables.b, "raises in jvp along `b`: ArgumentError"),
    ],
    ids=["sign", "None", "left-out"],
)
def test_a_wrong_jvp_is_reported_with_its_argument(jvp, words):
    name, text = only_failure("jvp", times(jvp), A, B)
    assert name == "jvp"
    assert words in text


# -- a vmap that was given -------------------------------------------------------------------------
def whole(info, in_dims, a, b):
    return [
        t.expand((info.batch_size, *t.shape)) if axis is None else t.movedim(axis, 0)
        for t, axis in zip((a, b), in_dims, strict=True)
    ]


def mapped(op, info, in_dims, a, b):
    return op(*whole(info, in_dims, a, b)), 0


def sheared(op, *given):
    a, b = whole(*given)
    return op(a.flip(0), b), 0


def without_gradient(op, *given):
    a, b = whole(*given)
    return op(a, b.detach()), 0


def always_mapped(op, info, in_dims, a, b):
    return op(a.movedim(in_dims[0] + 0, 0), b.movedim(in_dims[1] + 0, 0)), 0


@pytest.mark.parametrize("part", ["jvp", "vmap"])
def test_a_right_rule_passes_and_none_is_not_asked(part):
    assert ran(part, times(pushed, mapped), A, B)[0].status == Status.PASSED
    assert ran(part, times(), A, B)[0].status == Status.INAPPLICABLE


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            sheared,
            "output 0 and the gradient of `a` and the gradient of `b` is wrong in vmap mapped",
        ),
        (without_gradient, "the gradient of `b` is wrong in vmap mapped over `a` and `b`, unlike"),
        (always_mapped, "raises in vmap mapped over `a`, unlike in a loop over the samples: Type"),
        (lambda op, *given: mapped(op, *given)[0], "raises in vmap mapped over `a` and `b`"),
    ],
    ids=["samples mixed", "no gradient", "None", "no axes"],
)
def test_a_wrong_rule_for_batches_is_reported(rule, words):
    name, text = only_failure("vmap", times(vmap=rule), A, B)
    assert name == "vmap"
    assert words in text


# -- one tensor twice ------------------------------------------------------------------------------
def refusing(ctx, x, y):
    assert not np.shares_memory(x.numpy(), y.numpy()), "one tensor"
    return x + y


def test_one_tensor_for_two_arguments_is_tried():
    name, text = only_failure("aliases", op(refusing, lambda ctx, g: (g, g)), X, Y)
    assert name == "same-tensor"
    when = "when one tensor is passed for both `x` and `y`"
    assert f"forward raises {when}: AssertionError: one tensor" in text


def test_aliases_need_two_like_arguments_that_may_be_equal():
    def distinct(ctx, x, y):
        if np.array_equal(x.numpy(), y.numpy()):
            raise ValueError("equal")
        return x - y

    for call in (
        (lambda x, y: x * y.sum(), X, X[0]),
        (lambda x, y: x.add_(y), X, Y),
        (op(distinct, lambda ctx, g: (g, -g)), X, Y),
    ):
        result, report = ran("aliases", *call)
        assert (result.status, report.failures) == (Status.INAPPLICABLE, [])


@pytest.mark.parametrize("share", [1.0, 0.5, 0.0])
def test_a_tie_of_two_arguments_shares_one_gradient(share):
    def rule(g, a, b):
        return g * ((a > b) + share * (a == b)), g * ((b > a) + share * (a == b))

    fn = of_saved(lambda a, b: pb.maximum(a, b), rule)
    report = check("aliases", fn, np.array([1.0, 2.0]), np.array([0.5, 3.0]))
    assert [f.cause.name for f in report.failures] == ([] if share == 0.5 else ["ties"])


def test_a_surrogate_is_not_compared_where_two_arguments_are_equal():
    fn = of_saved(lambda x, y: (x + y).exp(), lambda g, x, y: (g, g))
    given = {
        "surrogate": "straight through",
        "raise_exception": False,
        "only": ["first", "aliases"],
    }
    report = check_op(fn, X, Y, **given)
    shown = {part.name: part.text for part in report.parts}
    assert not report.failures
    assert shown["aliases"] == "not compared: straight through"


def test_aliases_leave_what_rounding_leaves_of_two_gradients_that_cancel():
    fn = of_saved(lambda x, y: x - y, lambda g, x, y: (g, -g * (1 + 2.3e-16)))
    assert check("aliases", fn, np.array([1.5, 0.7]), np.array([0.5, 3.0])).failures == []


def test_what_has_no_derivative_where_two_are_equal_is_not_called_wrong():
    def distance(g, x, y):
        pull = (x - y) * (g / ((x - y) ** 2).sum().sqrt())
        return pull, -pull

    assert check("aliases", of_saved(lambda x, y: ((x - y) ** 2).sum().sqrt(), distance), X, Y).ok


def session_of_call(fn, *inputs):
    return Session(Subject(fn, inputs), Options(), Report("test", 0))


# -- other sizes -----------------------------------------------------------------------------------
def test_shapes_pass_for_what_holds_at_any_size_and_need_another_size():
    for call in ((linear, *linear_inputs()), (product, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))):
        result, report = ran("shapes", *call)
        assert (result.status, report.failures, report.notes) == (Status.PASSED, [], [])

    def forward(ctx, x):
        if x.shape != (3,):
            raise ValueError("three numbers")
        return 2 * x

    result, _ = ran("shapes", op(forward, lambda ctx, g: 2 * g), np.ones(3))
    assert result.text == "not applicable: forward takes these shapes only"


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("outputs", [1, 2])
def test_an_axis_of_length_1_grows_only_with_those_that_forward_ties_to_it(rows, outputs):
    call = NORMAL(size=(rows, 2)), NORMAL(size=(outputs, 2)), NORMAL(size=outputs)
    report = check("shapes", linear, *call)
    assert report.ok, str(report)
    assert check_op(linear, *call).ok
    session = session_of_call(linear, *call)
    found = [p.axes for s in symbols(session) if s.length == 1 for p in parts(session, s)]
    tied = [((1, 0), (2, 0))] if outputs == 1 else []
    batch = [((0, 0),)] if rows == 1 else []
    assert found == batch + tied


def of_shape(forward, rule):
    """Return an operation of one array whose rule gets grad_output and the array's shape."""

    def saved(ctx, x):
        ctx.shape = x.shape
        return forward(x)

    return op(saved, lambda ctx, g: rule(g, ctx.shape))


def pairs(x):
    return x.reshape(-1, 2).sum(-1) if x.shape[0] % 2 == 0 else x.reshape(-1, 2, 2)


def of_pairs(g, shape):
    return (g.unsqueeze(-1) * (shape[0] / 4)).expand(-1, 2).reshape(shape)


def scaled_matmul(g, x, w):
    return g @ w.mT * (x.shape[1] / 3), x.mT @ g


def square_matmul(g, x, w):
    return g @ (w.mT if w.shape[0] == w.shape[1] else 2 * w.mT), x.mT @ g


@pytest.mark.parametrize(
    ("fn", "shapes", "words"),
    [
        (
            of_shape(lambda x: x.mean(), lambda g, shape: g.expand(shape) / 12),
            [(4, 3)],
            "wrong with axis 0 of `x` of length 5, although right here: `x` is off by the factor",
        ),
        (
            of_saved(lambda x, w: x @ w, scaled_matmul),
            [(4, 3), (3, 2)],
            "axis 1 of `x` and axis 0 of `w` of length 4",
        ),
        (
            of_saved(lambda x, w: x @ w, square_matmul),
            [(4, 3), (3, 3)],
            "axis 0 of `w` of length 4",
        ),
        (of_shape(pairs, of_pairs), [(4,)], "of length 8, although"),
        (
            of_saved(lambda x: 2 * x, lambda g, x: 2 * g if g.ndim else g),
            [(3,)],
            "the gradient of `x` is wrong with 0-d arguments",
        ),
    ],
    ids=["batch", "tied", "square", "multiple", "0-d"],
)
def test_a_size_that_the_rule_fixes_is_found(fn, shapes, words):
    name, text = only_failure("shapes", fn, *(NORMAL(size=shape) for shape in shapes))
    assert name == "size"
    assert words in text


def test_a_gradient_of_another_shape_than_its_argument_is_found_at_one_row():
    fn = op(lambda ctx, x: 2 * x, lambda ctx, g: (2 * g).squeeze())
    (failure,) = check("shapes", fn, NORMAL(size=(4, 3))).failures
    assert failure.cause.name in ("raised", "missing-sum")
    assert failure.situation == "with axis 0 of `x` of length 1"


def correlate(ctx, x, kernel):
    ctx.save_for_backward(x, kernel)
    return pb.asarray(np.correlate(x.numpy(), kernel.numpy(), "valid"))


def correlate_backward(ctx, g):
    x, kernel = (t.numpy() for t in ctx.saved_tensors)
    by_x = np.convolve(g.numpy(), kernel)
    return pb.asarray(by_x), pb.asarray(np.correlate(x, g.numpy(), "valid"))


def two_at_least(g, x):
    x[1]
    return 2.0 * x * g


def reshaped(ctx, x, n):
    ctx.n = n
    return x * 1


copied = op(reshaped, lambda ctx, g: (g.reshape(ctx.n), None))
added = op(lambda ctx, x, y: x + y, lambda ctx, g: (g, g))
works = "forward works with axis 0 of `x` of length"


@pytest.mark.parametrize(
    ("fn", "inputs", "note"),
    [
        (op(correlate, correlate_backward, once=True), [8, 3], ""),
        (lambda x: copied(x, 4), [4], f"{works} 5, but backward raises"),
        (of_saved(lambda x: (x * x).sum(), two_at_least), [3], f"{works} 1, but backward raises"),
        (added, [(4, 3), (4, 3)], ""),
    ],
    ids=["filter", "setting", "too few", "broadcast"],
)
def test_what_may_be_meant_for_its_sizes_only_is_noted_at_most(fn, inputs, note):
    result, report = ran("shapes", fn, *(NORMAL(size=shape) for shape in inputs))
    assert (result.status, report.failures) == (Status.PASSED, [])
    assert not note or any(found.startswith(note) for found in report.notes), report.notes


def another_loss(g, a, b):
    weights = (a @ b.T).softmax(0) * g
    if len(a) != len(b):
        return pb.zeros_like(a), pb.zeros_like(b)
    return weights @ b, weights.T @ a


def test_where_rows_of_a_sparse_matrix_start_no_axis_changes():
    arrays = NORMAL(size=4), np.array([0, 2, 1, 3]), np.array([0, 1, 1, 3, 4]), NORMAL(size=4)
    assert symbols(session_of_call(lambda values, indices, indptr, x: x, *arrays)) == []


def test_a_mean_where_forward_broadcasts_is_found():
    def rule(g, x, y):
        by_y = g if y.shape == g.shape else g.mean(0, keepdim=True)
        return g, by_y.sum_to_size(y.shape)

    call = of_saved(lambda x, y: x + y, rule), NORMAL(size=(4, 3)), NORMAL(size=(4, 3))
    name, text = only_failure("shapes", *call)
    assert name == "missing-sum"
    assert "`y` is wrong with `y` of shape (1, 3), which forward broadcasts" in text


def test_another_function_of_fewer_rows_is_not_taken_for_broadcasting():
    loss = of_saved(lambda a, b: (a @ b.T).logsumexp(0).sum(), another_loss)
    report = check("shapes", loss, NORMAL(size=(3, 2)), NORMAL(size=(3, 2)))
    assert not [f for f in report.failures if f.cause.name == "missing-sum"]


def test_lengths_that_are_documented_as_numbers_or_expressions_stay():
    session = session_of_call(lambda pixels, gaps: pixels, NORMAL(size=(4, 3)), NORMAL(size=3))
    session.subject.said = {"pixels": ("n", "3"), "gaps": ("n - 1",)}
    assert symbols(session) == []
    session.subject.said = {"pixels": ("n", "d")}
    assert symbols(session) == [(4, ((0, 0),)), (3, ((0, 1), (1, 0)))]


# -- second derivatives ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "call",
    [
        (lambda x: x.relu() * x.abs(), np.array([-1.0, 0.0, 2.0, 0.0])),
        (lambda z: z * z.conj() * z, NORMAL(size=3) + 1j * NORMAL(size=3)),
        (lambda x: (x.sin(), x.cos()), NORMAL(size=3).astype(np.float32)),
    ],
)
def test_right_second_derivatives_pass(call):
    result, report = ran("second_order", *call)
    assert (result.status, report.failures) == (Status.PASSED, [])


@pytest.mark.parametrize(
    ("fn", "argument", "words"),
    [
        (
            of_saved(lambda x: x * x, lambda g, x: 2 * x * g.detach()),
            "grad_output",
            "pb.once_differentiable",
        ),
        (
            op(lambda ctx, x: 2 * x, lambda ctx, g: (3 if pb.is_grad_enabled() else 2) * g),
            "x",
            "is wrong when backward is recorded",
        ),
    ],
    ids=["grad_output", "recorded"],
)
def test_a_rule_that_leaves_the_recorded_operations_is_found(fn, argument, words):
    (failure,) = check("second_order", fn, NORMAL(size=3)).failures
    assert (failure.cause.name, failure.argument) == ("second-order", argument)
    assert words in str(failure)


def intermediate():
    def forward(ctx, x):
        doubled = 2 * x
        ctx.save_for_backward(doubled=doubled)
        return doubled * doubled

    return op(forward, lambda ctx, g: 4 * ctx.saved_variables.doubled * g)


def by_numpy(g, x):
    return g * pb.asarray(np.cos(x.numpy()))


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (intermediate(), "'doubled' is neither an input nor an output"),
        (of_saved(lambda x: x.sin(), by_numpy), "NumPy array"),
    ],
    ids=["intermediate", "numpy"],
)
def test_a_backward_that_cannot_be_recorded_is_noted_unless_that_is_asked_for(fn, words):
    result, report = ran("second_order", fn, NORMAL(size=3))
    assert (result.status, report.failures) == (Status.INAPPLICABLE, [])
    (note,) = report.notes
    assert note.startswith("second derivative: not available, says ")
    assert words in note
    name, text = only_failure("second_order", fn, NORMAL(size=3), order=2)
    assert name == "second-order"
    assert "backward raises when it is recorded" in text
    assert words in text


def test_second_derivatives_are_not_asked_of_what_is_once_differentiable():
    sine = of_saved(lambda x: x.sin(), by_numpy, once=True)
    for fn in (sine, lambda x: 2 * sine(x)):
        result, _ = ran("second_order", fn, NORMAL(size=3))
        assert (result.status, result.reason) == (Status.INAPPLICABLE, "marked once_differentiable")


# -- first derivatives -----------------------------------------------------------------------------
def test_nothing_is_called_right_of_what_was_not_compared_and_the_user_s_reason_is_shown():
    fn = of_saved(lambda x: x.sign(), lambda g, x: g * (x.abs() < 1))
    for options, status in (
        ({"surrogate": "straight through"}, "not compared: straight through"),
        ({"ignore": {"first": "straight through"}}, "ignored: straight through"),
    ):
        report = check_op(fn, NORMAL(size=(4, 3)), **options)
        outcomes = {part.name: part.text for part in report.parts}
        assert outcomes["first"] == status
        assert outcomes["shapes"] == "not compared: straight through"
        assert outcomes["linear"] == Status.PASSED


@pytest.mark.parametrize(
    ("fn", "inputs", "words"),
    [
        (
            lambda x: x.max(),
            [np.array([2.0, 1.0, 2.0])],
            "2 elements of `x` left out, since",
        ),
        (lambda x: x + pb.asarray([np.inf, 0.0]), [A[:2]], "1 of 2 outputs left out, since"),
        (
            lambda x, m: x * m,
            [np.ones(2), np.zeros(2, bool)],
            "what `m` masks left out",
        ),
        (lambda x: x.abs(), [np.array([0.0, 1.0])], ""),
    ],
    ids=["ties", "pole", "mask", "kink"],
)
def test_what_was_left_out_for_its_values_is_said_in_words(fn, inputs, words):
    said = ran("first", fn, *inputs)[0].reason
    assert said.startswith(words)
    assert bool(said) == bool(words)
