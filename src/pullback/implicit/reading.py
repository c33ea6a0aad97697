"""What callers give, as tensors."""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, is_array
from pullback.core.tensor.tensor import Tensor
from pullback.ops.functions.creation import asarray

__all__ = ["tensor_of"]


def tensor_of(given: Any) -> Tensor:
    """Return a tensor or an array as a tensor, numbers in double precision as NumPy has them."""
    return asarray(given if isinstance(given, Tensor) or is_array(given) else NUMPY.asarray(given))
