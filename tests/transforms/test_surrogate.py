"""Gradients that are no derivative on purpose."""

import numpy as np
import pytest

import pullback as pb
from pullback.transforms.api import surrogate as module

X = np.array([0.2, -1.7, 2.5])


def test_a_straight_through_estimate_has_the_gradient_of_the_identity():
    rounded = pb.surrogate.straight_through(pb.round)
    value, gradient = pb.value_and_grad(lambda x: (rounded(x) * X).sum())(X)
    assert value == np.sum(np.round(X) * X)
    assert gradient.tolist() == X.tolist()


def test_a_reversed_gradient_has_the_other_sign_and_a_scale():
    assert pb.surrogate.reverse_gradient(pb.tensor(X)).tolist() == X.tolist()
    assert (
        pb.grad(lambda x: (pb.surrogate.reverse_gradient(x, 2.0) * X).sum())(X).tolist()
        == (-2 * X).tolist()
    )


def test_a_clipped_gradient_stays_within_its_limit():
    found = pb.grad(lambda x: (pb.surrogate.clip_gradient(x, 1.0) * X).sum())(X)
    assert found.tolist() == [0.2, -1.0, 1.0]


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [(module._through, (X, X)), (module._reversed, (X, 2.0)), (module._clipped, (X, 100.0))],
    ids=["straight_through", "reverse_gradient", "clip_gradient"],
)
def test_each_passes_the_checker_and_says_why(operation, arguments):
    report = pb.check.gradcheck(operation, arguments, skip=["linear"], raise_exception=False)
    assert report.ok
    assert operation.surrogate_reason


def test_wrong_arguments_are_refused():
    with pytest.raises(pb.errors.ArgumentTypeError, match="straight_through: a function required"):
        pb.surrogate.straight_through(3)
    with pytest.raises(pb.errors.ShapeError, match="straight_through: a result of the shape"):
        pb.surrogate.straight_through(pb.sum)(pb.ones(2))
    with pytest.raises(pb.errors.ArgumentError, match="clip_gradient: a limit above 0 required"):
        pb.surrogate.clip_gradient(pb.ones(2), 0.0)
