"""The methods of Tensor: importing this attaches them."""

from pullback.ops.methods.attach import TensorMethods

__all__ = ["TensorMethods"]
