"""Operations whose mistake shows in another situation than the call, and what is said of it."""

import numpy as np

import pullback as pb
from pullback.check import check_op


def checked(forward, backward, *args, **kwargs):
    """Return the report on an operation called with these arguments; floats require grad."""
    op = pb.autograd_function(forward, pb.once_differentiable(backward))
    tensors = [pb.tensor(a, requires_grad=True) if is_float(a) else a for a in args]
    return check_op(op, *tensors, kwargs=kwargs or None, raise_exception=False)


def is_float(value):
    """Return whether a value is an array of real or complex numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def situation(report):
    """Return what is said of the first mistake; there has to be one."""
    assert report.outcome == "wrong"
    return str(report.failures[0])
