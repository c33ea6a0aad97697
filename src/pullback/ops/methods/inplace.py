"""The methods of Tensor that write into it and return it: ``add_``, ``+=``, ``copy_``.

Owns the in-place form of an operation; those with the operation's own parameters are listed by its
declaration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Number
from typing import Any

from pullback.arrays import level_of
from pullback.core.function.inplace import apply_inplace, write_unrecorded
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops.declare import Primitive, inplace
from pullback.ops.functions import data_types, pointwise
from pullback.ops.primitives.arithmetic import add_p, clamp_p, div_p, mul_p, pow_p, sub_p
from pullback.ops.primitives.conversion import copy_p, fill_p
from pullback.ops.primitives.indexing import masked_fill_p
from pullback.ops.primitives.rounding import round_p

_fill_masked = inplace(masked_fill_p)
_add, _subtract = inplace(add_p), inplace(sub_p)
_divide, _round = inplace(div_p), inplace(round_p)


class InplaceMethods:
    """The in-place half of `TensorMethods`."""

    __slots__ = ()

    __iadd__, __isub__, __imul__ = _add, _subtract, inplace(mul_p)
    __itruediv__, __ipow__ = _divide, inplace(pow_p)

    def add_(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
        """Add ``alpha * other`` to this tensor and return it."""
        return _add(self, other if alpha == 1 else pointwise.times(other, alpha))

    def sub_(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
        """Subtract ``alpha * other`` from this tensor and return it."""
        return _subtract(self, other if alpha == 1 else pointwise.times(other, alpha))

    def div_(self: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide this tensor by `other`, rounded if so wished (see `div`), and return it."""
        if rounding_mode is None:
            return _divide(self, other)
        return written("div_", self, pointwise.div(self, other, rounding_mode=rounding_mode))

    def round_(self: Any, *, decimals: int = 0) -> Tensor:
        """Round to the nearest integer, or to so many decimals, in place; see `round`."""
        if decimals == 0:
            return _round(self)
        return written("round_", self, pointwise.round(self, decimals=decimals))

    def masked_fill_(self: Any, mask: Any, value: Any) -> Tensor:
        """Write `value` where `mask` holds, in place, and return this tensor."""
        pointwise.needs_mask("masked_fill_", "mask", mask)
        return _fill_masked(self, mask, value)

    def clamp_(self: Any, min: Any = None, max: Any = None) -> Tensor:
        """Limit this tensor to [min, max] in place and return it."""
        if not pointwise.clamps_by_numbers(self, min, max) or (min is None and max is None):
            return _clamp_by_tensors(self, min, max)
        settings = {"min": min, "max": max}
        return apply_inplace(clamp_p, self, (), settings)

    def copy_(self: Any, src: Any) -> Tensor:
        """Write `src`, broadcast, into this tensor and return it."""
        return _copy(self, src)

    def fill_(self: Any, value: Any) -> Tensor:
        """Write one number everywhere in this tensor and return it."""
        if isinstance(value, Tensor):
            if value.ndim:
                raise ShapeError(
                    compose("fill_", "a number or a 0-d tensor required", "more", ("value", value))
                )
            return _copy(self, value, "fill_")
        if not isinstance(value, Number):
            came = type(value).__name__
            raise ArgumentTypeError(compose("fill_", "a number required", came))
        return _fill(self, value)

    def zero_(self: Any) -> Tensor:
        """Write zeros everywhere in this tensor and return it."""
        return _fill(self, 0)


@functools.cache
def inplace_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the in-place form of a declared function, a method."""
    op = function.primitive  # type: ignore[attr-defined]
    return inplace(op) if isinstance(op, Primitive) else composed(function)


def composed(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the in-place form of a function that is made of operations, a method."""
    name = f"{function.__name__}_"

    def call(self: Any, *others: Any, **settings: Any) -> Tensor:
        # What is computed may need the values that will be gone.
        source = self.clone() if self.requires_grad else self
        return written(name, self, function(source, *others, **settings))

    call.__code__ = call.__code__.replace(co_name=name, co_qualname=name)  # which errors name
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Do `{function.__name__}` in place and return this tensor."
    return call


def written(name: str, x: Any, result: Tensor) -> Tensor:
    """Write a result into `x`, where it fits, and return `x`."""
    if result.shape != x.shape or level_of(result.dtype) > level_of(x.dtype):
        required = f"a result of shape {x.shape} that dtype {x.dtype.name} can hold required"
        came = f"shape {result.shape}, dtype {result.dtype.name}"
        hint = f"use {name[:-1]}, which is not in place"
        raise DTypeError(compose(name, required, came, hint=hint))
    return _copy(x, result)


def _clamp_by_tensors(x: Tensor, min: Any, max: Any) -> Tensor:
    """Limit `x` in place by bounds of which one is a tensor, or a float for integers."""
    result = pointwise.clamp(x, min, max)
    if result.dtype is not x.dtype:
        raise DTypeError(
            compose(
                "clamp_",
                f"bounds that fit dtype {x.dtype.name} required",
                f"a result of dtype {result.dtype.name}",
                hint="use clamp, which is not in place",
            )
        )
    return _copy(x, result)


def _copy(x: Tensor, src: Any, name: str = "copy_") -> Tensor:
    source = data_types.asarray_like(src, x, name)
    return apply_inplace(copy_p, x, (source,), {})


def _fill(x: Tensor, value: Any) -> Tensor:
    if write_unrecorded(_filled, x, value):
        return x
    return apply_inplace(fill_p, x, (), {"value": value})


def _filled(array: Any, value: Any, *, out: Any) -> None:
    out.fill(value)
