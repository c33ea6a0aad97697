"""NumPy speaks Tensor: NumPy's own functions and arrays take tensors, with their history."""

from pullback.ops._numpy.protocol import NumPyMethods

__all__ = ["NumPyMethods"]
