"""What callers give, as tensors."""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, is_array
from pullback.core.custom.pytree import leaves
from pullback.core.tensor.tensor import Tensor, in_class, tensor_class
from pullback.ops.functions.creation import asarray
from pullback.transforms.api.arguments import class_for

__all__ = ["state_of", "tensor_of"]


def tensor_of(value: Any) -> Tensor:
    """Return a tensor or an array as a tensor, numbers in double precision as NumPy has them."""
    return asarray(value if isinstance(value, Tensor) or is_array(value) else NUMPY.asarray(value))


def state_of(value: Any, parameters: Any) -> Tensor:
    """Return the tensor that a user's function is called with beside its parameters.

    It has the methods of the tensors among them all, and NumPy's where none is one.
    """
    tensors = [x for x in leaves((value, parameters)) if isinstance(x, Tensor)]
    return in_class(tensor_of(value), tensor_class(tensors) if tensors else class_for(value))
