"""What the source of an operation says of its arguments."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.check.inputs.reading import Reading


def read(forward, backward=lambda ctx, g: None):
    return Reading(pb.autograd_function(forward, backward, name="operation"))


def parts(ctx, x, at):
    first, second = at
    return x[first] - x[second]


def written(ctx, x, at):
    out = x.numpy().copy()
    out[at] = 0.0
    return pb.asarray(out)


def repeated(ctx, x, at):
    for _ in range(at):
        x = x * x
    return x


def converted(ctx, x, at):
    at = at.astype(float)
    return x * pb.asarray(at)


@pytest.mark.parametrize(
    ("forward", "use"),
    [
        (lambda ctx, x, at: pb.asarray(x.numpy()[at]), "index"),
        (parts, "index"),
        (lambda ctx, x, at: pb.asarray(np.bincount(at, x.numpy())), "index"),
        (written, "overwritten"),
        (repeated, "number"),
        (converted, "array"),
        (lambda ctx, x, at: x * pb.asarray(np.searchsorted(at, x.numpy())), "sorted"),
        (lambda ctx, x, at: pb.asarray(np.interp(at, x, x)), "looked up"),
    ],
)
def test_uses_of_arguments_are_read_from_forward(forward, use):
    assert use in read(forward).uses["at"]


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

    assert read(forward, by_name).of("gradient") == {"x", "window"}
    assert read(forward, by_position).of("gradient") == {"x"}


def filled(ctx, g):
    grads = {}
    grads["x"] = g
    return grads


@pytest.mark.parametrize(
    ("backward", "left_out"),
    [
        (lambda ctx, g: {"x": g}, {"scale"}),
        (filled, {"scale"}),
        (lambda ctx, g: dict.fromkeys(("x", "scale"), g), set()),
        (lambda ctx, g: dict.fromkeys(ctx.names, g), set()),
        (lambda ctx, g: (g, g if ctx.word == "x" else None), set()),
    ],
)
def test_left_out_is_what_the_mappings_of_backward_do_not_name(backward, left_out):
    def forward(ctx, x, scale):
        return x * scale

    assert read(forward, backward).of("left out") == left_out


def test_shapes_are_read_from_what_is_taken_apart():
    def forward(ctx, rates, x, pairs, bonds, knots):
        up, down = rates.numpy()
        first, second = pairs.T
        ends = x[bonds[:, 0]] * down + x[bonds[:, 1]]
        return x[first] * x[second] * up - ends * knots[0] * knots[1] * knots[x]

    assert read(forward).shapes == {"rates": ("2",), "pairs": ("n", "2"), "bonds": ("n", "2")}
