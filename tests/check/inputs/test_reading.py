"""What the source of an operation says of its arguments."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.check.inputs.reading import Reading


def read(forward, backward=lambda ctx, g: None):
    return Reading(pb.autograd_function(forward, backward, name="operation"))


def indexed(ctx, x, at):
    values, where = x.numpy(), at
    return pb.asarray(values[where])


def counted(ctx, x, at):
    return pb.asarray(np.bincount(at, x.numpy()))


def selected(ctx, x, at):
    return x.index_select(0, at)


def written(ctx, x, at):
    out = x.numpy().copy()
    out[at] = 0.0
    return pb.asarray(out)


def compared(ctx, x, at):
    return x * pb.asarray(at[:, None] == 1)


def inverted(ctx, x, at):
    return x * pb.asarray(~at)


def called(ctx, x, at):
    return at(x)


def repeated(ctx, x, at):
    for _ in range(at):
        x = x * x
    return x


def exponential(ctx, x, at):
    return x * float(np.exp(-at))


def along(ctx, x, at):
    return x.sum(axis=at)


def sliced(ctx, x, at):
    return x[:at]


def changed(ctx, x, at):
    at += 0.1
    return x * pb.asarray(at)


def conjugated(ctx, x, at):
    return x * at.conj()


def searched(ctx, x, at):
    return x * pb.asarray(np.searchsorted(at, x.numpy()))


def interpolated(ctx, x, at):
    return pb.asarray(np.interp(at, np.arange(3.0), np.arange(3.0)))


def rows(ctx, x, at):
    return pb.asarray(np.array([x.numpy()[at[i] : at[i + 1]].sum() for i in range(3)]))


def lengths_of_rows(ctx, x, at):
    return x * pb.asarray(np.repeat(np.arange(3.0), np.diff(at)))


@pytest.mark.parametrize(
    ("forward", "use"),
    [
        (indexed, "index"),
        (counted, "index"),
        (selected, "index"),
        (written, "overwritten"),
        (compared, "index"),
        (inverted, "mask"),
        (called, "called"),
        (repeated, "number"),
        (exponential, "number"),
        (along, "axis"),
        (sliced, "window"),
        (changed, "foreign"),
        (conjugated, "conjugated"),
        (searched, "sorted"),
        (interpolated, "looked up"),
        (rows, "pointers"),
        (lengths_of_rows, "pointers"),
    ],
)
def test_uses_of_arguments_are_read_from_forward(forward, use):
    assert use in read(forward).uses["at"]


def test_uses_of_the_parts_of_a_sparse_matrix_are_read_from_its_constructor():
    def forward(ctx, values, at, starts, x):
        return sparse.csr_matrix((values.numpy(), at, starts)) @ x  # noqa: F821

    found = read(forward).uses
    assert "entries" in found["values"]
    assert "columns" in found["at"]
    assert "pointers" in found["starts"]


def test_uses_are_read_from_backward_by_what_forward_saved():
    def forward(ctx, x, ids):
        ctx.save_for_backward(places=ids)
        return pb.asarray(x.numpy())

    def backward(ctx, g):
        return {"x": pb.asarray(g.numpy()[ctx.saved_variables.places.numpy()])}

    assert "index" in read(forward, backward).uses["ids"]


def test_uses_skip_names_that_are_assigned_twice_and_shapes():
    def forward(ctx, x, at, axis):
        where = at
        where = where + 1
        return pb.asarray(x.numpy()[where]) * x.shape[axis]

    assert read(forward).of("index") == set()


def test_uses_tell_for_what_backward_has_a_gradient():
    def forward(ctx, x, window, taper):
        return x * window * taper

    def by_name(ctx, g):
        return {"x": g, "window": g, "taper": None}

    def by_position(ctx, g):
        return g, None, g if ctx.needs_input_grad[2] else None

    found = read(forward, by_name)
    assert (found.of("gradient"), found.of("ungiven")) == ({"x", "window"}, {"taper"})
    found = read(forward, by_position)
    assert (found.of("gradient"), found.of("ungiven")) == ({"x"}, {"window"})


def test_left_out_is_what_a_written_mapping_does_not_name():
    def forward(ctx, x, scale):
        return x * scale

    assert read(forward, lambda ctx, g: {"x": g}).left_out == {"scale"}
    assert read(forward, lambda ctx, g: dict.fromkeys(("x", "scale"), g)).left_out == set()


def test_axes_are_read_from_shapes_reductions_and_brackets():
    def forward(ctx, x, w, b, free):
        rows, _ = x.shape
        ctx.save_for_backward(b)
        return pb.asarray(w.numpy().sum(axis=1) + x.shape[1] + rows + free)

    def backward(ctx, g):
        (first,) = ctx.saved_tensors
        return g, g, first[:, None, 0], g

    found = read(forward, backward).axes
    assert (found["x"], found["w"], found["b"]) == ((2, 2), (2, 9), (2, 9))
    assert "free" not in found


def test_lengths_and_columns_are_read_from_what_is_taken_apart():
    def forward(ctx, rates, x, pairs, bonds):
        up, down = rates.numpy()
        first, second = pairs.T
        return x[first] * x[second] * up - x[bonds[:, 0]] * down + x[bonds[:, 1]]

    found = read(forward)
    assert found.lengths["rates"] == 2
    assert found.columns == {"pairs": 2, "bonds": 2}
