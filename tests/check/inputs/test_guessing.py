"""Inputs guessed from a signature and a source, by trial."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest
from tests.check import _right, _right_arrays
from tests.check._entries import as_pullback

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import format_inputs, results_of
from pullback.check.inputs.guessing import guesses
from pullback.errors import ArgumentError, ArgumentTypeError


def guess(op):
    """Return the likeliest inputs."""
    return next(guesses(op))


def inputs_of(op):
    """Return the guessed arguments as a report describes them, without their names."""
    return format_inputs(guess(op), []).replace("input ", "")


def linear(input, weight, bias):
    return input @ weight.T + bias


def total(x, *, dim):
    return x.sum(dim)


def vectors(u, v):
    if u.ndim != 1:
        raise ValueError("vectors are required")
    return u * v


def hinted(x: pb.Tensor, power: int, mode: Literal["sum", "mean"], flag: bool):
    if not isinstance(power, int) or mode not in ("sum", "mean") or not isinstance(flag, bool):
        raise TypeError("as hinted")
    return x**power


def told(first, second):
    """Multiply.

    Parameters
    ----------
    first : Tensor (5, 7)
    second : Tensor, shape (7,)
    """
    return first @ second


@pb.autograd_function
def damped(ctx, x, damping):
    ctx.factor = float(damping.numpy())
    return x * ctx.factor


@damped.backward
def _(ctx, g):
    return {"x": g * ctx.factor, "damping": g.sum()}


def summed_over_the_third_axis(ctx, x):
    return x * x.numpy().sum(axis=2).sum()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (linear, "0 (4, 3), 1 (2, 3), 2 (2,)"),
        (pb.matmul, "0 (4, 3), 1 (3, 2)"),
        (lambda table, index: table[index], "0 (4, 3), 1 (4, 3) int64"),
        (lambda p, label: p[np.arange(len(label)), label], "0 (4, 3), 1 (4,) int64"),
        (lambda x, mask: pb.where(mask, x, 0.0), "0 (4, 3), 1 (4, 3) bool"),
        (lambda x, dim: pb.softmax(x, dim), "0 (4, 3), 1 -1"),
        (total, "0 (4, 3), dim -1"),
        (vectors, "0 (4,), 1 (4,)"),
        (pb.linalg.det, "0 (3, 3)"),
        (lambda image, kernel: pb.conv2d(image, kernel), "0 (2, 3, 4, 4), 1 (2, 3, 2, 2)"),
        (lambda x, A: pb.einsum("i,ij,j->", x, A, x), "0 (3,), 1 (3, 3)"),
        (lambda *tensors: pb.cat(tensors), "0 (4, 3), 1 (4, 3)"),
        (lambda x, factor=3.0: x * factor, "0 (4, 3)"),
        (hinted, "0 (4, 3), 1 2, 2 'sum', 3 True"),
        (told, "0 (5, 7), 1 (7,)"),
        (damped, "0 (4, 3), 1 ()"),
        (pb.autograd_function(summed_over_the_third_axis, lambda ctx, g: g), "0 (2, 4, 3)"),
    ],
)
def test_shapes_and_values_are_guessed(op, expected):
    assert inputs_of(op) == expected


@pytest.mark.parametrize(
    ("op", "holds"),
    [
        (pb.log, lambda x: x > 0),
        (pb.asin, lambda x: np.abs(x) < 1),
        (pb.acosh, lambda x: x > 1),
        (pb.linalg.cholesky, lambda x: np.linalg.eigvalsh(x) > 0),
        (pb.view_as_real, np.iscomplexobj),
    ],
)
def test_the_domain_is_found_by_trying(op, holds):
    (x,) = guess(op).args
    assert np.all(holds(x.detach().numpy()))


@pytest.mark.parametrize("none", [{}, {"factor": None, "knots": None}])
def test_what_has_no_gradient_is_a_number_or_a_constant(none):
    def forward(ctx, x, factor, knots):
        assert knots.shape == x.shape
        ctx.slope = factor * pb.asarray(knots)
        return x * ctx.slope

    op = pb.autograd_function(forward, lambda ctx, g: {"x": g * ctx.slope, **none})
    inputs = guess(op)
    assert not any(getattr(a, "requires_grad", False) for a in inputs.args[1:])
    assert inputs.notes[-1].startswith("`knots` was not differentiated, since backward")
    assert check_op(op).ok


def test_inputs_that_cannot_be_guessed_are_refused_with_a_text_to_write():
    def odd(x, table):
        raise KeyError("no such row")

    with pytest.raises(ArgumentError) as error:
        guess(odd)
    told, hint = str(error.value).split("\n")
    assert told.startswith(
        "check_op: inputs of `odd` could not be guessed, got KeyError: 'no such row' for "
        "x: (n, d), table: (m, d). Tried "
    )
    assert hint.startswith("hint: describe those that forward takes, in this form: ")
    assert hint.endswith('pb.check.check_op(odd, "x: (n, d), table: (n, d)")')
    with pytest.raises(ArgumentError, match="no floating or complex result"):
        guess(pb.argmax)
    with pytest.raises(ArgumentTypeError, match=r"check_op: an operation or a function .* got int"):
        guess(3)


@pytest.mark.parametrize("entries", [_right, _right_arrays], ids=["right", "arrays"])
def test_inputs_of_every_right_entry_are_guessed(entries):
    lists = [found for found in vars(entries).values() if isinstance(found, list)]
    for op in (as_pullback(entry) for entry in itertools.chain.from_iterable(lists)):
        assert results_of(op, guess(op))


def test_indices_of_which_none_is_repeated_stay_so_at_other_lengths():
    def forward(ctx, base, index, values):
        if index.shape != values.shape:
            raise ValueError("an index for each value is required")
        ctx.save_for_backward(index)
        return base.scatter(0, index, values)

    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.scatter(0, index, 0.0), None, g.gather(0, index)

    op = pb.autograd_function(forward, backward, name="scatter_values")
    assert check_op(op, raise_exception=False).outcome == "right"


def test_columns_of_indices_are_pairs_of_different_ones():
    @pb.autograd_function
    def gaps(ctx, positions, bonds):
        first, second = bonds.T
        if (first == second).any():
            raise ValueError("an atom has no distance from itself")
        ctx.ends, ctx.shape = (first, second), positions.shape
        return positions[second] - positions[first]

    @gaps.backward
    def _(ctx, grad_output):
        grad = np.zeros(ctx.shape)
        np.add.at(grad, ctx.ends[1], grad_output.numpy())
        np.subtract.at(grad, ctx.ends[0], grad_output.numpy())
        return {"positions": pb.asarray(grad)}

    bonds = guess(gaps).args[1]
    assert bonds.shape[1:] == (2,)
    assert bonds.dtype.kind == "i"
    assert check_op(gaps, fast=True).ok


def test_what_is_looked_up_in_a_table_stays_inside():
    def forward(ctx, x, at, level):
        return pb.asarray(np.interp(x.numpy(), at, level))

    op = pb.autograd_function(forward, lambda ctx, g: {"x": g})
    inputs = guess(op)
    x, at, _ = inputs.args
    assert at.min() <= x.detach().numpy().min()
    assert x.detach().numpy().max() <= at.max()
    assert "x" in inputs.bounded


# -- guesses that are not meant --------------------------------------------------------------------
def test_random_numbers_are_for_the_caller_to_seed():
    def forward(ctx, x, rng=None):
        rng = np.random.default_rng() if rng is None else rng
        noise = pb.asarray(rng.normal(size=x.shape))
        ctx.save_for_backward(noise=noise)
        return x * noise

    op = pb.autograd_function(forward, lambda ctx, g: {"x": g * ctx.saved_variables.noise})
    report = check_op(op, raise_exception=False)
    assert report.outcome == "not checked"
    assert "draws random numbers" in report.unchecked[0].why


def test_a_gradient_that_does_not_fit_guessed_inputs_is_not_checked_and_says_why():
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input @ weight.T + bias

    def backward(ctx, g):
        input, weight = ctx.saved_tensors
        return g @ weight, g.T @ input, g

    op = pb.autograd_function(forward, backward)
    text = "input: (n, d), weight: (m, d), bias: (m,)"
    (unchecked,) = check_op(op, raise_exception=False).unchecked
    assert "the gradient of 'bias' has the wrong shape: expected shape (2,)" in unchecked.why
    assert text in unchecked.hint
    said = check_op(op, text, raise_exception=False)
    assert [failure.cause.name for failure in said.failures] == ["missing-sum"]


@pytest.mark.parametrize(
    ("forward", "backward", "got"),
    [
        (lambda ctx, x: x.sum(-1), lambda ctx, g: g, "(4,)"),
        (lambda ctx, x: 2 * x, lambda ctx, g: 2 * g.sum(), "()"),
        (lambda ctx, x: x.sum(-1), lambda ctx, g: g.unsqueeze(-1), "(4, 1)"),
    ],
)
def test_a_gradient_of_another_shape_is_wrong_though_it_would_fit_a_smaller_guess(
    forward, backward, got
):
    report = check_op(pb.autograd_function(forward, backward), raise_exception=False)
    (failure,) = report.failures
    assert failure.text.endswith(f"wrong shape: expected shape (4, 3), got {got}.")


def _with(function, gradient):
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return function(x, y)

    return pb.autograd_function(forward, lambda ctx, g: gradient(g, *ctx.saved_tensors))


def test_a_rule_for_shapes_that_the_guess_had_to_find_is_not_checked_until_they_are_described():
    product = _with(lambda x, y: x * y, lambda g, x, y: (g * y, g * x))
    dot = _with(lambda x, y: x @ y, lambda g, x, y: (g * y, g * x))
    why = {}
    for op, text in ((product, "x: (n, d), y: (n, d)"), (dot, "x: (n,), y: (n,)")):
        (why[op],) = check_op(op, raise_exception=False).unchecked
        assert check_op(op, text).ok
    assert "`y`: sum over axis 0 is missing" in why[product].why
    assert "forward takes x: (n, d), y: (d, m) too, for which backward raises" in why[dot].why
    assert '"x: (n,), y: (n,)"' in why[dot].hint


def _of_answered(ctx, x, answered):
    ctx.answered = answered
    return pb.asarray(np.where(answered, x.numpy(), x.numpy()[answered].mean()))


def _by_counting(ctx, g):
    if ctx.answered.dtype == bool:
        free = np.where(ctx.answered, 0.0, g.numpy()).sum() / ctx.answered.sum()
        return {"x": np.where(ctx.answered, g.numpy() + free, 0.0), "answered": None}
    return {"x": np.where(ctx.answered, g.numpy(), 0.0), "answered": None}


def test_what_is_wrong_at_indices_and_right_at_masks_is_not_checked_until_it_is_described():
    op = pb.autograd_function(_of_answered, _by_counting, name="imputed")
    (unchecked,) = check_op(op, raise_exception=False).unchecked
    assert unchecked.why.startswith("at x: (n, d), answered: (n, d) int, `x` is right ex")
    assert unchecked.why.endswith("; all is right at x: (n, d), answered: (n, d) bool")
    assert unchecked.hint.endswith('pb.check.check_op(imputed, "x: (n, d), answered: (n, d) int")')
    assert check_op(op, "x: (n,), answered: (n,) mask").ok


def test_what_is_right_at_0d_arrays_alone_stays_wrong():
    op = pb.autograd_function(lambda ctx, x: 2 * x.mean(), lambda ctx, g: {"x": 2 * g})
    wrong = pb.autograd_function(lambda ctx, x: (x**2).mean(), lambda ctx, g: 2 * g)
    assert check_op(wrong, raise_exception=False).failures
    assert check_op(op, raise_exception=False).failures


def test_of_an_argument_that_the_rule_sums_up_a_number_is_guessed():
    shifted = _with(lambda x, y: x - y, lambda g, x, y: (g, -g.sum()))
    assert check_op(shifted).notes[0] == "inputs: x (4, 3), y ()"


def _nan_at_zero(x):
    return pb.where(x == 0, np.nan, 0.0)


def _of_one_length(x):
    return np.zeros((len(x), 4))


@pytest.mark.parametrize(("off", "cause"), [(_nan_at_zero, "nan"), (_of_one_length, "missing-sum")])
def test_nan_and_sizes_that_backward_does_not_take_count_where_inputs_were_given(off, cause):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g @ x.T + x.T @ g + off(x)

    op = pb.autograd_function(forward, backward)
    given = check_op(op, np.cos(np.arange(16.0)).reshape(4, 4), raise_exception=False)
    assert [failure.cause.name for failure in given.failures] == [cause]
    assert not check_op(op, raise_exception=False).failures


@pytest.mark.parametrize(
    "backward",
    [lambda ctx, g: g * undefined, lambda ctx, g: g * ctx.saved_variables.other],  # noqa: F821
)
def test_a_name_that_backward_does_not_know_is_wrong_for_any_guess(backward):
    op = pb.autograd_function(lambda ctx, x: x.exp(), backward)
    report = check_op(op, raise_exception=False)
    assert [failure.cause.name for failure in report.failures] == ["raised"]


def _misspelt(ctx, x):
    ctx.save_for_backwards(x)
    return 2 * x


@pytest.mark.parametrize(
    ("forward", "told"),
    [
        (lambda ctx, x: undefined(x), "NameError: name 'undefined' is not defined (line "),  # noqa: F821
        (_misspelt, "ctx.save_for_backward (line "),
        (lambda ctx, x, y: x.add_(y), "InplaceError: "),
    ],
)
def test_what_forward_raises_for_any_guess_is_told_as_itself(forward, told):
    op = pb.autograd_function(forward, lambda ctx, g: g)
    (failure,) = check_op(op, raise_exception=False).failures
    assert told in failure.text


def test_an_attribute_that_no_guess_has_is_told_with_the_line():
    op = pb.autograd_function(lambda ctx, x: x.sqroot(), lambda ctx, g: g)
    (unchecked,) = check_op(op, raise_exception=False).unchecked
    assert unchecked.why.startswith("forward raises AttributeError: 'Tensor' object has no attr")
    assert unchecked.why.endswith("of test_guessing.py)")
