"""The part that tries other sizes, and arguments that broadcast."""

import numpy as np
from tests.check._parts import NORMAL, failures, linear, linear_inputs, product, ran, with_backward

import pullback as pb
from pullback.check.properties.shapes import check_shapes
from pullback.check.report import INAPPLICABLE, PASSED, Report
from pullback.check.resizing import Symbol, named, symbols
from pullback.check.session import Options, Session
from pullback.check.subject import Subject


def test_shapes_pass_for_what_holds_at_any_size():
    for call in ((linear, *linear_inputs()), (product, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))):
        result, report = ran(check_shapes, *call)
        assert (result.status, report.failures, report.notes) == (PASSED, [], [])


def test_shapes_do_not_apply_where_forward_takes_one_shape():
    @with_backward(lambda ctx, grad: 2 * grad)
    def double(ctx, x):
        if x.shape != (3,):
            raise ValueError("three numbers")
        return 2 * x

    result, _ = ran(check_shapes, double, np.ones(3))
    assert (result.status, result.reason) == (INAPPLICABLE, "forward takes these shapes only")


def test_shapes_find_a_constant_that_stands_for_the_batch_size():
    @with_backward(lambda ctx, grad: grad.expand(ctx.shape) / 12)
    def mean(ctx, x):
        ctx.shape = x.shape
        return x.mean()

    (found,) = failures(check_shapes, mean, NORMAL(size=(4, 3)))
    assert (found.cause.name, found.argument) == ("size", "x")
    assert found.cause.text == (
        "right for axis 0 of length 4 but wrong for length 5: the gradient of `x` depends on the "
        "batch size; there it is off by the factor 1.250 everywhere"
    )


def test_shapes_name_the_axes_that_change_together():
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.mT * (x.shape[1] / 3), x.mT @ grad

    @with_backward(backward)
    def matmul(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    (found,) = failures(check_shapes, matmul, NORMAL(size=(4, 3)), NORMAL(size=(3, 2)))
    assert found.argument == "x"
    assert found.cause.text.startswith(
        "right for axis 1 of `x` and axis 0 of `w` of length 3 but wrong for length 4: the "
        "gradient of `x` depends on that length"
    )


def test_shapes_find_a_rule_that_raises_for_one_row():
    @with_backward(lambda ctx, grad: (2 * grad).squeeze())
    def double(ctx, x):
        return 2 * x

    (found,) = failures(check_shapes, double, NORMAL(size=(4, 3)))
    assert found.cause.name in ("raised", "missing-sum")
    assert found.situation == "with axis 0 of `x` of length 1"


def test_a_rule_that_raises_for_nothing_is_only_noted():
    def backward(ctx, grad):
        return 2 * grad * (grad.max() > -1e9)

    @with_backward(backward)
    def double(ctx, x):
        return 2 * x

    result, report = ran(check_shapes, double, NORMAL(size=4))
    assert result.status == PASSED
    assert report.notes[0].startswith(
        "forward works with axis 0 of `x` of length 0, but backward raises: "
    )


def test_shapes_of_nothing_that_give_something_are_only_noted():
    @with_backward(lambda ctx, grad: grad.expand(ctx.shape) * (1 / ctx.shape[0]))
    def total(ctx, x):
        ctx.shape = x.shape
        return x.sum() * (1 / max(x.shape[0], 1))

    result, report = ran(check_shapes, total, NORMAL(size=4))
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
    (found,) = failures(check_shapes, pairs, NORMAL(size=4))
    assert "of length 4 but wrong for length 8" in found.cause.text
    assert "by the factor 2.000 everywhere" in found.cause.text


def test_shapes_that_a_plain_function_may_need_are_only_noted():
    @with_backward(lambda ctx, grad: grad * (1.0 if grad.shape[0] > 2 else 2.0))
    def copy(ctx, x):
        return x * 1

    assert [f.cause.name for f in failures(check_shapes, copy, NORMAL(size=4))] == ["size"]
    result, report = ran(check_shapes, lambda x: copy(x), NORMAL(size=4))
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
    result, report = ran(check_shapes, correlate, NORMAL(size=8), NORMAL(size=3))
    assert (result.status, report.failures) == (PASSED, [])
    assert any("forward works with axis 0 of `x` of length 1" in n for n in report.notes)


def test_shapes_excuse_a_kink_that_only_the_new_size_meets():
    """The median position is between two elements of four and on the third of five."""

    def quantile(x, q):
        return x.quantile(q, dim=0)

    result, report = ran(check_shapes, quantile, np.array([0.3, -1.0, 2.0, 0.7]), np.array(0.5))
    assert (result.status, report.failures) == (PASSED, [])


def test_shapes_that_a_setting_fixes_are_only_noted():
    def forward(ctx, x, n):
        ctx.n = n
        return x * 1

    def backward(ctx, grad):
        return grad.reshape(ctx.n), None

    copy = pb.autograd_function(forward, backward, name="copy")
    result, report = ran(check_shapes, copy, NORMAL(size=4), 4)
    assert (result.status, report.failures) == (PASSED, [])
    assert any("backward raises" in note for note in report.notes)
    # A plain function may have such a setting in its body.
    result, report = ran(check_shapes, lambda x: copy(x, 4), NORMAL(size=4))
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
    result, report = ran(check_shapes, put, NORMAL(size=5), np.array([3, 0, 4]), NORMAL(size=3))
    assert (result.status, report.failures) == (PASSED, [])


def test_shapes_find_a_mean_where_forward_broadcasts():
    def backward(ctx, grad):
        _, y = ctx.saved_tensors
        by_y = grad if y.shape == grad.shape else grad.mean(0, keepdim=True)
        return grad, by_y.sum_to_size(y.shape)

    @with_backward(backward)
    def add(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x + y

    found = failures(check_shapes, add, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))
    first = found[0]
    assert (first.cause.name, first.argument) == ("missing-sum", "y")
    assert first.cause.text == "the gradient of `y` is wrong when forward broadcasts `y`"
    assert first.situation == "with `y` of shape (1, 3), which forward broadcasts"


def test_shapes_only_note_a_rule_without_broadcasting():
    @with_backward(lambda ctx, grad: (grad, grad))
    def add(ctx, x, y):
        return x + y

    result, report = ran(check_shapes, add, NORMAL(size=(4, 3)), NORMAL(size=(4, 3)))
    assert result.status == PASSED
    assert [note.split(",")[0] for note in report.notes] == [
        "forward broadcasts `x`",
        "forward broadcasts `y`",
    ]


def test_shapes_find_what_is_wrong_for_0_d_arguments():
    def backward(ctx, grad):
        return 2 * grad if grad.ndim else grad

    @with_backward(backward)
    def double(ctx, x):
        return 2 * x

    (found,) = failures(check_shapes, double, NORMAL(size=3))
    assert (found.cause.name, found.cause.text) == (
        "size",
        "the gradient of `x` is wrong for 0-d arguments",
    )


def test_shapes_do_not_take_another_function_of_fewer_rows_for_broadcasting():
    def forward(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return (a @ b.T).logsumexp(0).sum()  # b of one row is another loss

    def backward(ctx, g):
        s = ctx.saved_variables
        weights = (s.a @ s.b.T).softmax(0) * g
        if len(s.a) != len(s.b):
            return {"a": pb.zeros_like(s.a), "b": pb.zeros_like(s.b)}
        return {"a": weights @ s.b, "b": weights.T @ s.a}

    loss = pb.autograd_function(forward, backward)
    _, report = ran(check_shapes, loss, NORMAL(size=(3, 2)), NORMAL(size=(3, 2)))
    assert not [f for f in report.failures if f.cause.name == "missing-sum"]


def test_shapes_note_what_raises_for_a_single_element_that_is_too_few():
    def forward(ctx, knots):
        ctx.save_for_backward(knots=knots)
        return (knots * knots).sum()

    def backward(ctx, g):
        knots = ctx.saved_variables.knots
        knots[1]  # needs two of them
        return {"knots": 2.0 * knots * g}

    total = pb.autograd_function(forward, backward)
    _, report = ran(check_shapes, total, NORMAL(size=3))
    assert not report.failures
    assert any("but backward raises" in note for note in report.notes)


def test_shapes_keep_lengths_that_the_docstring_says_as_numbers_or_expressions():
    @with_backward(lambda ctx, grad: (grad.sum() * pb.ones((ctx.n, 3), dtype=pb.float64), grad))
    def total(ctx, pixels, gaps):
        """Sum of pixels: (n, 3), beside gaps: (n - 1,)."""
        ctx.n = len(pixels)
        return pixels.sum() + 0 * gaps

    inputs = [np.ones((4, 3)), np.ones(3)]
    subject = Subject(total, tuple(pb.tensor(x, requires_grad=True) for x in inputs))
    subject.said = {"pixels": ("n", "3"), "gaps": ("n - 1",)}
    session = Session(subject, Options(), Report("total", 0))
    assert symbols(session) == []
    subject.said = {"pixels": ("n", "d")}
    assert [(s.length, s.axes) for s in symbols(session)] == [(4, ((0, 0),)), (3, ((0, 1), (1, 0)))]


def mean_projection_backward(ctx, grad):
    moments, points = ctx.saved_tensors
    return grad.mT @ points / len(points), grad @ moments / len(points)  # of the wrong length


@with_backward(mean_projection_backward)
def mean_projection(ctx, moments, points):
    """Projections of points: (n, 3) on moments: (m, 3)."""
    if min(len(moments), len(points)) < 2:
        raise ValueError("two at least")
    ctx.save_for_backward(moments, points)
    return points @ moments.mT / len(moments)


def test_sizes_with_two_names_that_are_equal_by_chance_are_changed_apart():
    x = pb.tensor(NORMAL(size=(2, 3)), requires_grad=True)
    subject = Subject(mean_projection, (x, 0.5 * x.detach()))
    subject.said = {"moments": ("m", "3"), "points": ("n", "3")}
    session = Session(subject, Options(), Report("mean_projection", 0))
    (symbol,) = symbols(session)
    assert symbol.axes == ((0, 0), (1, 0))
    assert [part.axes for part in named(session, symbol)] == [((0, 0),), ((1, 0),)]


def test_an_axis_without_a_name_may_go_with_either_of_two():
    inputs = tuple(pb.tensor(NORMAL(size=(2, 2)), requires_grad=True) for _ in range(3))
    subject = Subject(lambda x, y, z: x * y * z, inputs)
    subject.said = {"x": ("m", "3"), "y": ("n", "3")}
    session = Session(subject, Options(), Report("product", 0))
    parts = named(session, Symbol(2, ((0, 0), (1, 0), (2, 0))))
    assert [[k for k, _ in part.axes] for part in parts] == [[0], [0, 2], [1], [1, 2]]


def test_shapes_find_a_length_that_is_taken_for_one_of_another_name():
    calls = NORMAL(size=(2, 3)), NORMAL(size=(2, 3))
    subject = Subject(mean_projection, tuple(pb.tensor(a, requires_grad=True) for a in calls))
    subject.said = {"moments": ("m", "3"), "points": ("n", "3")}
    report = Report("mean_projection", 0)
    check_shapes(Session(subject, Options(), report))
    assert [failure.cause.name for failure in report.failures] == ["size", "size"]
    assert "right for axis 0 of length 2 but wrong for length 3" in report.failures[0].cause.text
