"""Guesses mended by what the refusals of forward ask for."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.check.inputs.guessing import guess
from pullback.check.inputs.mending import mended
from pullback.check.inputs.shape_text import ArgumentSpec


def candidate(**shapes):
    return {name: [ArgumentSpec(name, shape)] for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("problem", "asked"),
    [
        ("ValueError: op: q must have shape (n, 4), got (4, 3)", "q: (n, 4)"),
        ("ValueError: got (4, 3) for q", None),
        ("ValueError: q must be 3-D", "q: (2, n, d)"),
        ("ValueError: q is a two-dimensional array", None),
        ("ValueError: q needs 4 components", "q: (n, 4)"),
        ("ValueError: q must be square", "q: (d, d)"),
        ("TypeError: q must be an integer array", "q: (n, d) int"),
        ("ValueError: the knots have to be increasing", "q: (n, d) sorted"),
        ("ValueError: values between 0 and 1 are required", "q: (n, d) unit"),
        ("ValueError: no row may be negative", "q: (n, d) positive"),
        ("LinAlgError: Matrix is not positive definite", None),
        ("KeyError: 'q'", None),
    ],
)
def test_a_message_says_what_to_change(problem, asked):
    found = mended(candidate(q=("n", "d")), problem, "op")
    assert (found and str(found["q"][0])) == asked


def test_a_square_matrix_becomes_positive_definite():
    found = mended(candidate(a=("d", "d")), "LinAlgError: Matrix is not positive definite")
    assert found["a"][0].domain == "spd"


def test_only_the_argument_that_is_named_changes():
    found = mended(candidate(t=("n",), x=("n",)), "ValueError: t must be sorted")
    assert (found["t"][0].domain, found["x"][0].domain) == ("sorted", "")


def test_inputs_are_guessed_by_what_forward_refuses():
    @pb.autograd_function
    def turn(ctx, quaternion, points):
        if quaternion.shape != (4,):
            raise ValueError(f"quaternion must have shape (4,), got {quaternion.shape}")
        if not np.isclose(np.linalg.norm(quaternion.numpy()), 1.0):
            raise ValueError("quaternion must have unit length")
        if points.ndim != 2 or points.shape[1] != 5:
            raise ValueError("points needs 5 columns")
        return quaternion.sum() * points

    turn.backward(lambda ctx, g: (g.sum() * pb.ones(4), g))
    quaternion, points = guess(turn)[0].args
    assert tuple(quaternion.shape) == (4,)
    assert np.isclose(np.linalg.norm(quaternion.detach().numpy()), 1.0)
    assert points.shape[1] == 5
