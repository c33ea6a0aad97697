"""The class of traced arrays."""

from pullback.numpy_protocol.tensor import NumPyTensor as ArrayBox

__all__ = ["ArrayBox"]
