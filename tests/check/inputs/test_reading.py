"""What the source of an operation says of its arguments."""

from __future__ import annotations

import numpy as np

import pullback as pb
from pullback.check.inputs.reading import axes, undifferentiated, uses


def operation(forward, backward):
    return pb.autograd_function(forward, backward, name="operation")


def test_a_local_name_stands_for_the_argument_it_holds():
    def forward(ctx, x, at, rate):
        values, where, r = x.numpy(), at, rate.numpy()
        ctx.save_for_backward(rate=float(np.exp(-r)))
        return pb.asarray(values[where])

    found = uses(operation(forward, lambda ctx, g: None))
    assert found["at"] == {"index"}
    assert found["rate"] == {"tensor", "number"}


def test_a_name_that_is_assigned_twice_stands_for_nothing():
    def forward(ctx, x, at):
        where = at
        where = where + 1
        return pb.asarray(x.numpy()[where])

    assert "at" not in uses(operation(forward, lambda ctx, g: None))


def test_what_backward_returns_a_gradient_for_is_differentiated():
    def forward(ctx, x, window, taper):
        return x * window * taper

    def by_name(ctx, g):
        return {"x": g, "window": g, "taper": None}

    def by_position(ctx, g):
        return g, None, g if ctx.needs_input_grad[2] else None

    found = uses(operation(forward, by_name))
    assert {name for name, kinds in found.items() if "gradient" in kinds} == {"x", "window"}
    assert uses(operation(forward, by_position)) == {"x": {"gradient"}}


def test_methods_that_tensors_lack_and_changes_in_place_are_of_arrays():
    def forward(ctx, x, shadow, mean):
        mean += 0.1
        return x * pb.asarray(shadow.astype(float)) * pb.asarray(mean)

    found = uses(operation(forward, lambda ctx, g: g))
    assert found == {"shadow": {"foreign"}, "mean": {"foreign"}}


def test_indices_are_found_where_backward_uses_what_forward_saved():
    def forward(ctx, x, ids):
        ctx.save_for_backward(places=ids)
        return pb.asarray(np.bincount(ids.numpy(), x.numpy()))

    def backward(ctx, g):
        return {"x": pb.asarray(g.numpy()[ctx.saved_variables.places.numpy()])}

    assert "index" in uses(operation(forward, backward))["ids"]


def test_the_axes_of_arguments_are_read_from_shapes_reductions_and_brackets():
    def forward(ctx, x, w, b, u, free):
        rows, _ = x.shape
        ctx.save_for_backward(b, u)
        return pb.asarray(w.numpy().sum(axis=1) + x.shape[1] + rows + free)

    def backward(ctx, g):
        first, second = ctx.saved_tensors
        return g, g, first[:, None, 0], g * len(second), g

    found = axes(operation(forward, backward))
    assert found == {"x": (2, 2), "w": (2, 9), "b": (2, 9), "u": (1, 9)}


def test_a_factor_in_brackets_of_a_shape_is_no_index():
    def forward(ctx, x, axis):
        return x * x.shape[axis]

    assert uses(operation(forward, lambda ctx, g: g)) == {}


def test_what_is_compared_with_a_whole_number_is_one():
    def forward(ctx, x, kind, level):
        here = (kind[:, None] == 1) & (np.arange(3) == 2)
        return pb.asarray(np.where(here, x.numpy(), 0.0) * (level.numpy() == 0))

    op = pb.autograd_function(forward, lambda ctx, g: {"x": g}, name="picked")
    assert uses(op) == {"x": {"gradient", "tensor"}, "kind": {"index"}, "level": {"tensor"}}


def test_what_is_searched_or_interpolated_in_has_to_be_sorted():
    def forward(ctx, x, limits, stops, nodes, table):
        tier = np.searchsorted(limits, x.numpy()) + np.digitize(x.numpy(), bins=stops)
        return pb.asarray(np.interp(x.numpy(), nodes, table)[tier])

    found = uses(operation(forward, lambda ctx, g: None))
    assert [name for name, kinds in found.items() if "sorted" in kinds] == [
        "limits",
        "stops",
        "nodes",
    ]


def test_what_is_asked_for_all_or_inverted_is_a_mask():
    def forward(ctx, x, members, kept):
        if members.all():
            raise ValueError("all are members")
        return x * pb.asarray(~kept)

    found = uses(operation(forward, lambda ctx, g: None))
    assert "mask" in found["members"]
    assert "mask" in found["kept"]


def test_a_loop_over_several_arguments_uses_each_of_them():
    def forward(ctx, x, rate, start):
        r, s = (v.item() for v in (rate, start))
        return x * r + s

    found = uses(operation(forward, lambda ctx, g: None))
    assert found["rate"] == found["start"] == {"number"}


def test_a_mapping_that_is_not_written_out_leaves_nothing_out():
    def forward(ctx, x, scale):
        return x * scale

    def spelt(ctx, g):
        return {"x": g}

    def made(ctx, g):
        return dict.fromkeys(("x", "scale"), g)

    assert undifferentiated(operation(forward, spelt)) == {"scale"}
    assert undifferentiated(operation(forward, made)) == set()
