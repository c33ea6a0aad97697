"""Tensors of float64 that tests are written with."""

import pullback as pb


def leaf(data=1.0):
    """Return a leaf that requires grad."""
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def constant(data):
    """Return a tensor that does not require grad."""
    return pb.tensor(data, dtype=pb.float64)
