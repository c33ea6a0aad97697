"""Inputs guessed from a signature."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from tests.check import _right, _right_arrays
from tests.check._entries import as_pullback

import pullback as pb
from pullback.check import check_op
from pullback.check.inputs.arguments import try_forward
from pullback.check.inputs.candidates import suggestion
from pullback.check.inputs.guessing import guess
from pullback.check.inputs.shape_text import documented as documented_in
from pullback.check.inputs.shape_text import parse
from pullback.errors import ArgumentError, ArgumentTypeError


def shapes(op, seed=0, trial=0):
    """Return the shapes, or the values, of guessed arguments."""
    args = guess(op, seed)[trial].args
    return [tuple(a.shape) if isinstance(a, pb.Tensor) else a for a in args]


def linear(input, weight, bias):
    return input @ weight.T + bias


def product(a, b):
    return a @ b


def rows(table, index):
    return table[index]


def nll(logits, labels):
    return -pb.log_softmax(logits, -1)[np.arange(len(labels)), labels]


def masked(x, mask):
    return pb.where(mask, x, 0.0)


def affine(x, gamma, beta):
    return x * gamma + beta


def along(x, dim):
    return pb.softmax(x, dim)


def vectors(u, v):
    if u.ndim != 1:
        raise ValueError("vectors are required")
    return u * v


def determinant(x):
    return pb.linalg.det(x)


def image_kernel(image, kernel):
    return pb.conv2d(image, kernel)


def form(x, A):
    return pb.einsum("i,ij,j->", x, A, x)


def joined(*tensors):
    return pb.cat(tensors)


def hinted(x: pb.Tensor, power: int, mode: Literal["sum", "mean"], flag: bool):
    if not isinstance(power, int) or mode not in ("sum", "mean") or not isinstance(flag, bool):
        raise TypeError("as hinted")
    return x**power


def documented(first, second):
    """Multiply.

    Parameters
    ----------
    first : Tensor (k, 7)
    second : Tensor, shape (7,)
    """
    if first.shape[1:] != (7,):
        raise ValueError("seven columns")
    return first @ second


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (linear, [(4, 3), (2, 3), (2,)]),
        (product, [(4, 3), (3, 2)]),
        (rows, [(4, 3), (4, 3)]),
        (nll, [(4, 3), (4,)]),
        (masked, [(4, 3), (4, 3)]),
        (affine, [(4, 3), (4, 3), (4, 3)]),
        (along, [(4, 3), -1]),
        (vectors, [(4,), (4,)]),
        (determinant, [(3, 3)]),
        (image_kernel, [(2, 3, 4, 4), (2, 3, 2, 2)]),
        (form, [(3,), (3, 3)]),
        (joined, [(4, 3), (4, 3)]),
        (hinted, [(4, 3), 2, "sum", True]),
    ],
)
def test_inputs_are_guessed_from_names_and_hints(op, expected):
    assert shapes(op) == expected


def test_shapes_that_the_docstring_says_are_tried_first():
    first, second = shapes(documented)
    assert first[1:] == second == (7,)


def test_indices_masks_and_labels_have_their_dtypes():
    assert [a.dtype for a in guess(rows)[0].args] == [pb.float64, pb.int64]
    assert [a.dtype for a in guess(nll)[0].args] == [pb.float64, pb.int64]
    assert [a.dtype for a in guess(masked)[0].args] == [pb.float64, pb.bool]


@pytest.mark.parametrize(
    ("op", "holds"),
    [
        (pb.log, lambda x: np.all(x > 0)),
        (pb.asin, lambda x: np.all(np.abs(x) < 1)),
        (pb.acosh, lambda x: np.all(x > 1)),
        (pb.linalg.cholesky, lambda x: np.all(np.linalg.eigvalsh(x) > 0)),
    ],
)
def test_the_domain_is_found_by_trying(op, holds):
    (x,) = guess(op)[0].args
    assert holds(x.detach().numpy())


def test_a_parameter_with_a_default_keeps_it():
    def scaled(x, factor=3.0, *, dim=None):
        assert factor == 3.0
        assert dim is None
        return x * factor

    inputs = guess(scaled)[0]
    assert len(inputs.args) == 1
    assert inputs.kwargs == {}


def test_a_keyword_only_parameter_is_passed_by_keyword():
    def scaled(x, *, dim):
        return x.sum(dim)

    assert guess(scaled)[0].kwargs == {"dim": -1}


def test_a_weight_that_is_none_by_default_is_passed_in_one_more_trial():
    def scaled(x, weight=None):
        return x * x if weight is None else x * weight

    trials = guess(scaled)
    assert [len(t.args) for t in trials] == [1, 1, 1, 2]


def test_further_trials_have_other_sizes_zeros_and_larger_values():
    trials = guess(linear)
    assert len({t.args[0].shape for t in trials}) > 1
    general, special, large = (t.args[0].detach().numpy() for t in trials)
    assert not np.any(general == 0)
    assert np.any(special == 0)
    assert np.abs(large).mean() > 3 * np.abs(general).mean()


def test_a_guess_repeats_with_its_seed():
    first, again, other = (guess(linear, seed)[0].args[0].detach().numpy() for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_an_argument_without_a_gradient_is_passed_as_a_number():
    @pb.autograd_function
    def scale(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @scale.backward
    def _(ctx, grad_output):
        return {"x": grad_output * ctx.factor, "factor": None}

    assert guess(scale)[0].args[1] == 0.5


def test_what_has_to_be_a_tensor_without_gradient_is_not_differentiated():
    @pb.autograd_function
    def blend(ctx, x, knots):
        assert knots.shape == x.shape
        ctx.save_for_backward(knots=knots)
        return x * knots

    @blend.backward
    def _(ctx, grad_output):
        return {"x": grad_output * ctx.saved_variables.knots, "knots": None}

    inputs = guess(blend)[0]
    assert [a.requires_grad for a in inputs.args] == [True, False]
    assert inputs.notes == (
        "`knots` was not differentiated, since backward gives no gradient for it",
    )


def test_inputs_that_cannot_be_guessed_are_refused_with_a_text_to_write():
    def odd(x, table):
        raise KeyError("no such row")

    with pytest.raises(ArgumentError) as error:
        guess(odd)
    message = str(error.value)
    assert message.startswith("check_op: inputs of `odd` could not be guessed")
    assert "got KeyError: 'no such row' for x: (n, d), table: (m, d)" in message
    assert 'hint: describe them: pb.check.check_op(odd, "x: (n, d), table: (n, d)")' in message


def test_without_a_floating_result_there_is_no_guess():
    with pytest.raises(ArgumentError, match="no floating or complex result"):
        guess(pb.argmax)


def test_only_what_can_be_called_has_inputs():
    with pytest.raises(ArgumentTypeError, match=r"check_op: an operation or a function .* got int"):
        guess(3)


def test_the_suggestion_is_a_text_that_can_be_read():
    for op in (linear, rows, nll, masked, along, form):
        text = suggestion(op)
        names = [d.name for d in parse("here", text)]
        assert names == list(op.__code__.co_varnames[: op.__code__.co_argcount])
    assert suggestion(hinted) == "x: (n, d), power: 2, mode: 'sum', flag: True"


ENTRIES = [
    e
    for module in (_right, _right_arrays)
    for found in vars(module).values()
    if isinstance(found, list)
    for e in found
]


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_inputs_of_every_right_entry_are_guessed(entry):
    op = as_pullback(entry)
    for inputs in guess(op):
        assert not isinstance(try_forward(op, inputs), str)


def test_the_parts_of_a_sparse_matrix_fit_together():
    def forward(ctx, entries, columns, indptr, dense):
        if len(indptr) < 2 or indptr[0] != 0 or indptr[-1] != len(entries):
            raise ValueError("the rows have to end where the entries do")
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        out = np.zeros((len(indptr) - 1, dense.shape[1]))
        np.add.at(out, rows, entries.numpy()[:, None] * dense.numpy()[columns])
        ctx.save_for_backward(values=entries, dense=dense, columns=columns, rows=rows)
        return pb.asarray(out)

    @pb.once_differentiable
    def backward(ctx, g):
        s, flow = ctx.saved_variables, g.numpy()[ctx.saved_variables.rows]
        by_dense = np.zeros(s.dense.shape)
        np.add.at(by_dense, s.columns, s.values.numpy()[:, None] * flow)
        by_entries = (flow * s.dense.numpy()[s.columns]).sum(axis=1)
        return {"entries": pb.asarray(by_entries), "dense": pb.asarray(by_dense)}

    op = pb.autograd_function(forward, backward, name="sparse_product")
    columns = guess(op)[0].args[1]
    assert len(set(columns.tolist())) == len(columns)
    assert pb.check.check_op(op, raise_exception=False).outcome == "right"


def test_what_is_used_as_a_number_and_differentiated_is_a_tensor_of_no_axes():
    def forward(ctx, x, damping):
        factor = float(damping.numpy())
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {"x": g * ctx.factor, "damping": (g * x).sum()}

    assert shapes(pb.autograd_function(forward, backward, name="damped")) == [(4, 3), ()]


def test_axes_that_the_source_uses_are_tried_first():
    def forward(ctx, x):
        return x * x.numpy().sum(axis=2).sum()

    op = pb.autograd_function(forward, lambda ctx, g: g, name="summed")
    assert all(len(shape) == 3 for shape in shapes(op))


def test_complex_numbers_are_tried_too_where_the_source_conjugates():
    def forward(ctx, first, second):
        ctx.save_for_backward(first, second)
        return first * pb.conj(second)

    def backward(ctx, g):
        first, second = ctx.saved_tensors
        return g * second, pb.conj(g) * first

    op = pb.autograd_function(forward, backward, name="cross")
    assert [t.args[0].dtype for t in guess(op)][-1] == pb.complex128
    assert pb.check.check_op(op, raise_exception=False).outcome == "right"


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
    assert pb.check.check_op(op, raise_exception=False).outcome == "right"


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


def documented_shapes(text, *names):
    def forward(ctx):
        """To be replaced."""

    forward.__doc__ = text
    return {name: str(d) for name, d in documented_in(forward, names).items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q : Tensor of shape (n, 3)", {"q": "q: (n, 3)"}),
        ("q : int array of shape (n,), in metres", {"q": "q: (n,) int"}),
        ("q: (n,) int sorted in [0, 3), further", {"q": "q: (n,) int sorted in [0, 3)"}),
        ("price, size: (levels,), best first", {"price": "(levels,)", "size": "(levels,)"}),
        ("low and high: (n,) sorted", {"low": "(n,) sorted", "high": "(n,) sorted"}),
        ("The value of q (see below), and q(n,); here: q * (2 * n)", {}),
    ],
)
def test_documented_reads_shapes_and_words_of_descriptions(text, expected):
    found = documented_shapes(text, "q", "price", "size", "low", "high")
    assert found == {n: s if s.startswith(n) else f"{n}: {s}" for n, s in expected.items()}


def test_what_a_written_mapping_leaves_out_is_a_constant_array():
    @pb.autograd_function
    def weighted(ctx, seen, masses):
        ctx.masses = masses.astype(float)  # as arrays have it, and tensors have not
        return seen * pb.asarray(ctx.masses)

    @weighted.backward
    def _(ctx, grad_output):
        return {"seen": grad_output * pb.asarray(ctx.masses)}

    inputs = guess(weighted)[0]
    assert isinstance(inputs.args[1], np.ndarray)
    assert inputs.notes == ("`masses` was not differentiated, since backward leaves it out",)
    assert check_op(weighted).ok


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

    bonds = guess(gaps)[0].args[1]
    assert bonds.shape[1:] == (2,)
    assert bonds.dtype.kind == "i"
    assert check_op(gaps, fast=True).ok


def test_squares_are_symmetric_if_forward_reads_one_triangle():
    (x,) = guess(pb.linalg.eigvalsh)[0].args
    assert np.array_equal(x.detach().numpy(), x.detach().numpy().T)


def test_a_gradient_that_does_not_fit_guessed_inputs_is_not_checked_and_says_why():
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input @ weight.T + bias

    def backward(ctx, g):
        input, weight = ctx.saved_tensors
        return g @ weight, g.T @ input, g

    op = pb.autograd_function(forward, backward)
    (unchecked,) = check_op(op, raise_exception=False).unchecked
    assert "input (4, 3), weight (2, 3), bias (2,), which nobody gave" in unchecked.why
    assert "`bias`: sum over axis 0 is missing" in unchecked.why
    said = check_op(op, "input: (n, d), weight: (m, d), bias: (m,)", raise_exception=False)
    assert [failure.cause.name for failure in said.failures] == ["missing-sum"]


def _nan_far_out(x):
    return pb.where(abs(x) > 5, np.nan, 0.0)


def _of_one_length(x):
    return np.zeros((len(x), 4))


@pytest.mark.parametrize(("off", "cause"), [(_nan_far_out, "nan"), (_of_one_length, "missing-sum")])
def test_nan_and_sizes_that_backward_does_not_take_count_where_inputs_were_given(off, cause):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g @ x.T + x.T @ g + off(x)

    op = pb.autograd_function(forward, backward)
    given = check_op(op, np.linspace(1, 2, 16).reshape(4, 4), raise_exception=False)
    assert [failure.cause.name for failure in given.failures] == [cause]
    assert not check_op(op, raise_exception=False).failures


def test_what_is_looked_up_in_a_table_stays_inside():
    def forward(ctx, x, at, level):
        return pb.asarray(np.interp(x.numpy(), at, level))

    op = pb.autograd_function(forward, lambda ctx, g: {"x": g})
    x, at, _ = guess(op)[0].args
    assert at.min() <= x.detach().numpy().min()
    assert x.detach().numpy().max() <= at.max()
    assert "x" in guess(op)[0].bounded


def test_a_variable_named_shape_and_a_number_among_symmetric_matrices_are_read():
    def forward(ctx, a, scale):
        rows, columns = shape = a.shape
        lower = np.tril(a.numpy())[: shape[0], : shape[1]]
        return pb.asarray((lower + lower.T) * scale.numpy() * rows / columns)

    def backward(ctx, g):
        return {"a": g, "scale": g.sum()}

    report = check_op(pb.autograd_function(forward, backward), raise_exception=False)
    assert report.outcome in ("wrong", "not checked")
