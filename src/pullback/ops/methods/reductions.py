"""The methods of Tensor that take elements together.

Each takes its dimensions under PyTorch's names, ``dim`` and ``keepdim``, or the standard's.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import as_dtype
from pullback.core.function.inplace import apply_inplace
from pullback.core.tensor.tensor import Tensor
from pullback.errors import DTypeError, compose
from pullback.ops.axes import merge_axis_args, to_builtin
from pullback.ops.functions import reductions, statistics
from pullback.ops.functions.sorting import values_and_indices
from pullback.ops.primitives import arithmetic, reductions as reductions_primitives
from pullback.ops.primitives.reductions import prod_p, sum_p
from pullback.ops.primitives.scans import cumprod_p, cumsum_p
from pullback.ops.torch_words import torch_words

_var = reductions_primitives.var


class ReducingMethods:
    """The reductions among `TensorMethods`."""

    __slots__ = ()

    @torch_words(sum_p)
    def sum(self, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
        """Return the sum over `dim`, all dimensions by default."""
        return reductions.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    @torch_words(prod_p)
    def prod(self, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
        """Return the product over `dim`, all dimensions by default."""
        return reductions.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def var(
        self,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Tensor:
        """Return the variance over `dim`, with Bessel's correction by default.

        As in PyTorch, a bool in second place, or in first, is `unbiased`.
        """
        if unbiased is None and axis is None and dim.__class__ is not bool:
            less = 1 if correction is None else correction
        else:
            dim, less = statistics.axis_and_correction("var", dim, axis, unbiased, correction)
        return _var(self, axis=dim, correction=less, keepdims=keepdim or keepdims)

    def std(
        self,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        axis: Any = None,
        keepdims: bool = False,
    ) -> Tensor:
        """Return the standard deviation over `dim`, with Bessel's correction by default.

        As in PyTorch, a bool in second place, or in first, is `unbiased`.
        """
        over, less = statistics.axis_and_correction("std", dim, axis, unbiased, correction)
        return reductions_primitives.std(
            self, axis=over, correction=less, keepdims=keepdim or keepdims
        )

    def max(
        self, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
    ) -> Any:
        """Return the largest element; with an int `dim`, a pair of values and indices along it."""
        if dim is None and axis is None:
            return reductions_primitives.max(self, axis=None, keepdims=keepdim or keepdims)
        return _extreme(self, "max", dim, axis, keepdim or keepdims)

    def min(
        self, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
    ) -> Any:
        """Return the smallest element; with an int `dim`, a pair of values and indices along it."""
        if dim is None and axis is None:
            return reductions_primitives.min(self, axis=None, keepdims=keepdim or keepdims)
        return _extreme(self, "min", dim, axis, keepdim or keepdims)

    @torch_words()
    def cumsum_(self: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
        """Replace this tensor by its running sum along `dim` and return it."""
        return _scanned(self, "cumsum", axis, dtype)

    @torch_words()
    def cumprod_(self: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
        """Replace this tensor by its running product along `dim` and return it."""
        return _scanned(self, "cumprod", axis, dtype)


def _scanned(x: Tensor, name: str, axis: int | None, dtype: Any) -> Tensor:
    if dtype is not None and as_dtype(dtype) is not x.dtype:
        required, came = f"the tensor's dtype, {x.dtype.name}, required", as_dtype(dtype).name
        raise DTypeError(compose(f"{name}_", required, came, hint=f"use {name}"))
    scan = cumsum_p if name == "cumsum" else cumprod_p
    return apply_inplace(scan, x, (), {"axis": axis})


def _extreme(x: Any, name: str, dim: Any, axis: Any, keepdims: Any) -> Any:
    over = merge_axis_args(name, dim, axis)
    if isinstance(over, Tensor):
        other = arithmetic.maximum if name == "max" else arithmetic.minimum
        return other(x, over)
    if isinstance(over := to_builtin(over), int):
        return values_and_indices(x, name, over, keepdims)
    extreme = reductions_primitives.max if name == "max" else reductions_primitives.min
    return extreme(x, axis=over, keepdims=keepdims)
