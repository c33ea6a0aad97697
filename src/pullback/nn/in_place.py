"""The argument `inplace` of activations, as PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.ops.arguments import tensor_of
from pullback.ops.primitives.conversion import clone


def write_back(function: Callable[..., Tensor], x: Any, /, *args: Any, **settings: Any) -> Tensor:
    """Write the result of a function into its input, and return that.

    The function gets a copy: what its rules save is not written to.
    """
    x = tensor_of(function.__name__, x)
    result: Tensor = x.copy_(function(clone(x), *args, **settings))
    return result
