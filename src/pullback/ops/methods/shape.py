"""The methods of Tensor that move, repeat and split, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from pullback.core.function.inplace import apply_inplace
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops.arguments import needs_rank
from pullback.ops.functions import (
    diagonals,
    joining,
    manipulation,
    repeating,
)
from pullback.ops.primitives.arranging import tril_p, triu_p
from pullback.ops.torch_words import torch_words


class ShapeMethods:
    """What `TensorMethods` has beside the usual changes of shape."""

    __slots__ = ()

    def split_with_sizes(self: Any, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """Return views of consecutive parts of these lengths along `dim`."""
        return joining.split(self, split_sizes, dim)

    def repeat(self: Any, *sizes: Any) -> Tensor:
        """Return copies of this tensor side by side, as many along each dimension.

        This is PyTorch's method; `pullback.repeat` is the Array API's function, which repeats
        each element in its place, as `repeat_interleave` does.
        """
        counts = _flat(sizes)
        if len(counts) < self.ndim:
            required = "one number a dimension required"
            came = str(len(counts))
            raise ArgumentError(compose("repeat", required, came, ("x", self), hint="use tile"))
        return repeating.tile(self, counts)

    def tile(self: Any, *sizes: Any) -> Tensor:
        """Return copies of this tensor side by side, as many along each dimension."""
        return repeating.tile(self, _flat(sizes))

    @torch_words(word="dims")
    def roll(self: Any, shifts: Any, axis: Any = None) -> Tensor:
        """Return this tensor with the elements moved on by `shifts` along `dims`."""
        return manipulation.roll(self, shifts, axis=axis)

    def tril(self: Any, diagonal: int = 0, *, k: int = 0) -> Tensor:
        """Return the elements on and below a diagonal, with zeros above."""
        return diagonals.tril(self, k=diagonal or k)

    def triu(self: Any, diagonal: int = 0, *, k: int = 0) -> Tensor:
        """Return the elements on and above a diagonal, with zeros below."""
        return diagonals.triu(self, k=diagonal or k)

    def tril_(self: Any, diagonal: int = 0, *, k: int = 0) -> Tensor:
        """Write zeros above a diagonal of this tensor and return it."""
        needs_rank("tril_", self, 2)
        return apply_inplace(tril_p, self, (), {"k": diagonal or k})

    def triu_(self: Any, diagonal: int = 0, *, k: int = 0) -> Tensor:
        """Write zeros below a diagonal of this tensor and return it."""
        needs_rank("triu_", self, 2)
        return apply_inplace(triu_p, self, (), {"k": diagonal or k})


def _flat(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
