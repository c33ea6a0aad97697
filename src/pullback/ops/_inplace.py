"""The methods of Tensor that write into it and return it: ``add_``, ``+=``, ``copy_``."""

from __future__ import annotations

from numbers import Number
from typing import Any

from pullback.core.inplace import apply_inplace
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentTypeError, DTypeError, ShapeError, compose
from pullback.ops import activations, conversion, elementary, elementwise, indexing, trigonometric
from pullback.ops._declare import inplace

_fill_masked = inplace(indexing.masked_fill_)


class InplaceMethods:
    """The in-place half of `TensorMethods`."""

    __slots__ = ()

    add_, sub_, mul_, div_, pow_ = (
        inplace(elementwise.add),
        inplace(elementwise.subtract),
        inplace(elementwise.multiply),
        inplace(elementwise.divide),
        inplace(elementwise.power),
    )
    neg_, exp_, log_, sqrt_, abs_, square_, reciprocal_ = (
        inplace(elementwise.negative),
        inplace(elementary.exp),
        inplace(elementary.log),
        inplace(elementary.sqrt),
        inplace(elementary.absolute),
        inplace(elementary.square),
        inplace(elementary.reciprocal),
    )
    sin_, cos_, tanh_, sigmoid_, relu_ = (
        inplace(trigonometric.sin),
        inplace(trigonometric.cos),
        inplace(trigonometric.tanh),
        inplace(activations.sigmoid),
        inplace(activations.relu),
    )
    floor_, ceil_, round_ = (
        inplace(elementary.floor),
        inplace(elementary.ceil),
        inplace(elementary.round),
    )
    __iadd__, __isub__, __imul__, __itruediv__, __ipow__ = add_, sub_, mul_, div_, pow_

    def masked_fill_(self: Any, mask: Any, value: Any) -> Tensor:
        """Write `value` where `mask` holds, in place, and return this tensor."""
        elementwise.needs_mask("masked_fill_", "mask", mask)
        return _fill_masked(self, mask, value)

    def clamp_(self: Any, min: Any = None, max: Any = None) -> Tensor:
        """Limit this tensor to [min, max] in place and return it."""
        if not elementwise.clamps_by_numbers(self, min, max) or (min is None and max is None):
            return _clamp_by_tensors(self, min, max)
        settings = {"min": min, "max": max}
        return apply_inplace(elementwise.clamp_numbers.primitive, self, (), settings)

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
            return _copy(self, value)
        if not isinstance(value, Number):
            came = type(value).__name__
            raise ArgumentTypeError(compose("fill_", "a number required", came))
        return _fill(self, value)

    def zero_(self: Any) -> Tensor:
        """Write zeros everywhere in this tensor and return it."""
        return _fill(self, 0)


def _clamp_by_tensors(x: Tensor, min: Any, max: Any) -> Tensor:
    """Limit `x` in place by bounds of which one is a tensor, or a float for integers."""
    result = elementwise.clamp(x, min, max)
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


def _copy(x: Tensor, src: Any) -> Tensor:
    source = conversion.asarray_like(src, x)
    return apply_inplace(conversion.copy_into.primitive, x, (source,), {})


def _fill(x: Tensor, value: Any) -> Tensor:
    return apply_inplace(conversion.fill_with.primitive, x, (), {"value": value})
