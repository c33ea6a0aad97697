"""Looking at arguments: the small helpers that functions and rules share."""

from __future__ import annotations

import math
from typing import Any

from pullback.arrays import DTYPES, NUMPY, innermost, library_of
from pullback.core.tensor.tensor import Tensor, as_array, box
from pullback.errors import ShapeError, compose
from pullback.ops.declare import needs_tensor


def whole(index: Any) -> Any:
    """Return an index as int64: itself, or a copy where it has another dtype."""
    return library_of(index).astype(index, DTYPES["int64"])


def array_of(x: Any) -> Any:
    """Return the array of a tensor, brought up to date; an array itself."""
    return x.data_array() if isinstance(x, Tensor) else x


def all_values(x: Any) -> Any:
    """Return an array of all values that a tensor or array stands for, for checks alone."""
    return innermost(as_array(array_of(x)))


def holds_somewhere(condition: Any) -> bool:
    """Return whether a condition holds of any of the values that it was computed of."""
    values = all_values(condition)
    return bool(library_of(values).xp.any(values))


def tensor_of(op: str, x: Any, name: str = "x") -> Tensor:
    """Return a tensor, or an array as one, or raise naming the operation."""
    needs_tensor(op, x, name)
    return x if isinstance(x, Tensor) else array_to_tensor(x)


def array_to_tensor(array: Any) -> Tensor:
    """Return a tensor around an array, without copying where that can be."""
    library = library_of(array)
    library.dtype(array)  # raises for text, objects, dates
    return box(library.asarray(array))


def needs_rank(op: str, x: Any, least: int) -> None:
    """Raise where a tensor has fewer dimensions than an operation works on."""
    needs_tensor(op, x)
    if len(x.shape) < least:
        required = f"at least {least} dimension{'s' * (least > 1)} required"
        raise ShapeError(compose(op, required, str(len(x.shape)), ("x", x)))


def needs_shape(op: str, input: Any, src: Any, wanted: tuple[int, ...]) -> None:
    """Raise where what is written to a part has not its shape."""
    if tuple(src.shape) != tuple(wanted):
        required = f"a src of shape {tuple(wanted)}, that of the part, required"
        raise ShapeError(
            compose(op, required, str(tuple(src.shape)), ("input", input), ("src", src))
        )


def unless_overwritten(values: Any, g: Any, write: Any, read: Any, xp: Any) -> Any:
    """Return `values`, which were read of `g`, with zeros for elements that others overwrote.

    The same is done to the numbers of the elements: who is read back was written last.
    """
    count = math.prod(values.shape)
    numbers = xp.reshape(xp.arange(count, device=g.device), values.shape)
    kept = read(write(xp.zeros_like(g, dtype=numbers.dtype), numbers)) == numbers
    if kept.__class__ in NUMPY.array_types and kept.all():
        return values
    return xp.where(kept, values, 0)
