"""The methods of Tensor that gather, scatter, sort and search, with PyTorch's parameters."""

from __future__ import annotations

from typing import Any

from pullback.arrays import as_dtype, level_of, promote_scalar
from pullback.core.function.inplace import apply_inplace
from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, ShapeError, compose
from pullback.ops.arguments import needs_rank
from pullback.ops.declare import Primitive
from pullback.ops.functions import gathering, joining, sorting
from pullback.ops.functions.gathering import one_number, scattered, slice_index, slices_for
from pullback.ops.functions.indexing import value_like
from pullback.ops.functions.scattering import added_at
from pullback.ops.functions.sorting import ValuesAndIndices
from pullback.ops.methods.inplace import composed
from pullback.ops.primitives.gathering import (
    index_add_p,
    index_copy_p,
    index_fill_p,
    scatter_add_p,
    scatter_p,
)
from pullback.ops.torch_words import torch_words


class GatheringMethods:
    """The part of `TensorMethods` that moves elements by index or by order."""

    __slots__ = ()

    def take(self: Any, index: Any) -> Tensor:
        """Return the elements at `index` of the flattened tensor."""
        return gathering.take(self, index)

    # -- in place -----------------------------------------------------------------------------
    def scatter_(self: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Tensor:
        """Write `src` where `index` says, in place, and return this tensor; see `scatter`."""
        what = src if value is None else value
        axis, index, what = scattered("scatter_", self, dim, index, what)
        return _write("scatter_", scatter_p, self, axis, index, what)

    def scatter_add_(self: Any, dim: int, index: Any, src: Any) -> Tensor:
        """Add `src` where `index` says, in place, and return this tensor."""
        axis, index, src = scattered("scatter_add_", self, dim, index, src)
        return _write("scatter_add_", scatter_add_p, self, axis, index, src)

    def index_add_(self: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
        """Add ``alpha * source`` to the slices that `index` names, and return this tensor."""
        axis, index = slice_index("index_add_", self, dim, index)
        source = slices_for("index_add_", self, axis, index, source)
        source = source if alpha == 1 else source * alpha
        return _write("index_add_", index_add_p, self, axis, index, source)

    def index_copy_(self: Any, dim: int, index: Any, source: Any) -> Tensor:
        """Write `source` to the slices that `index` names, and return this tensor."""
        axis, index = slice_index("index_copy_", self, dim, index)
        source = slices_for("index_copy_", self, axis, index, source)
        return _write("index_copy_", index_copy_p, self, axis, index, source)

    def index_fill_(self: Any, dim: int, index: Any, value: Any) -> Tensor:
        """Write one number to the slices that `index` names, and return this tensor."""
        axis, index = slice_index("index_fill_", self, dim, index)
        value = one_number("index_fill_", value)
        return _write("index_fill_", index_fill_p, self, axis, index, value)

    def index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        """Write `values` at ``self[indices]``, or add them up there, and return this tensor."""
        if accumulate:
            return composed(added_at)(self, indices, values)
        self[tuple(indices)] = values
        return self  # type: ignore[no-any-return]

    def index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        """Return this tensor with `values` at ``self[indices]``, or added to what is there."""
        if accumulate:
            return added_at(self, indices, values)
        result: Tensor = self.clone()
        result[tuple(indices)] = values
        return result

    def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Tensor:
        """Write a number on the diagonal where all indices are equal, and return this tensor.

        With `wrap` the diagonal of a long matrix begins again below a row that it leaves out.
        """
        needs_rank("fill_diagonal_", self, 2)
        lengths = self.shape
        if self.ndim > 2 and len({*lengths}) > 1:
            required = "axes of one length required"
            raise ShapeError(compose("fill_diagonal_", required, str(lengths), ("input", self)))
        step = lengths[1] + 1
        end = lengths[0] * lengths[1] if wrap else lengths[1] ** 2
        flat = range(0, min(end, lengths[0] * lengths[1]), step)
        rows, columns = [i // lengths[1] for i in flat], [i % lengths[1] for i in flat]
        self[(rows, *[columns] * (self.ndim - 1))] = fill_value
        return self  # type: ignore[no-any-return]

    # -- order --------------------------------------------------------------------------------
    @torch_words()
    def sort(
        self: Any, axis: int = -1, descending: bool = False, stable: bool = False
    ) -> ValuesAndIndices:
        """Return the elements sorted along `dim`, the last by default, and where they were."""
        return sorting.sorted_with_indices("sort", self, axis, descending, stable)

    @torch_words()
    def argsort(
        self: Any, axis: int = -1, descending: bool = False, stable: bool = False
    ) -> Tensor:
        """Return the indices that sort along `dim`, the last by default."""
        return sorting.argsort(self, axis=axis, descending=descending, stable=stable)

    def nonzero(self: Any, *, as_tuple: bool = False) -> Any:
        """Return the indices of what is not 0, a row each; as a tuple, a tensor for each axis."""
        positions = sorting.nonzero(self)
        return positions if as_tuple else joining.stack(positions, axis=1)


def _write(op: str, into: Primitive, x: Any, axis: int, index: Any, src: Any) -> Tensor:
    """Change `x` in place by `src`, a tensor or a number, at the index."""
    wanted = as_dtype(src.dtype) if hasattr(src, "dtype") else promote_scalar(x.dtype, src)
    if level_of(wanted) > level_of(x.dtype):
        required = f"what dtype {x.dtype.name} can hold required"
        hint = f"use {op[:-1]}, which is not in place"
        raise DTypeError(compose(op, required, wanted.name, ("input", x), ("src", src), hint=hint))
    src = value_like(into, x, src, index)
    return apply_inplace(into, x, (index, src), {"axis": axis})
