"""Values in forward mode that are computed when somebody asks, and never if nobody does.

Of a product of a Hessian and a vector the tangent of the gradient is wanted, not the gradient. Its
last operations would compute values that nothing reads: so `hvp` lets the library of its tangents
put values off while the gradient is pulled back. Which of them the tangents need shows by itself.

Invariants: values wait for operations of plain arrays alone, and while built-in operations alone
run, which change no array that one may wait for. What waits for others is `_MOST` operations deep
at most: asking for a value recurses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from pullback.arrays import NUMPY
from pullback.core.function.primitive import Primitive
from pullback.ops.primitives.arithmetic import add_p, mul_p, neg_p, sub_p
from pullback.ops.primitives.products import matmul_p
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.primitives.shape import broadcast_to_p, permute_p, reshape_p
from pullback.transforms.calls import results_in

__all__ = ["DEFERRING", "Deferred", "can_wait", "pays"]

# The library whose values may wait, None for none.
DEFERRING: ContextVar[Any] = ContextVar("pullback_deferring", default=None)

_MOST = 16
_PLAIN = frozenset((*NUMPY.array_types, int, float))
_WORTHWHILE = 2**15  # elements from which on a value costs more than to put it off
# What rules of gradients do most. The result has the dtype of its operands, where those have one.
_CAN_WAIT = frozenset(
    (add_p, broadcast_to_p, matmul_p, mul_p, neg_p, permute_p, reshape_p, sub_p, sum_p)
)


def pays(value: Any, tangent: Any) -> bool:
    """Return whether to put off what is done to an array: its value waits, or it is large."""
    return value is not None or (tangent is not None and tangent.size >= _WORTHWHILE)


def can_wait(op: Primitive, values: Sequence[Any]) -> bool:
    """Return whether the result of an operation on values, of which some wait, may wait as well."""
    if op not in _CAN_WAIT:
        return False
    for value in values:
        if value.__class__ is Deferred:
            if value.depth >= _MOST:
                return False
        elif value.__class__ not in _PLAIN:
            return False
    return True


class Deferred:
    """The result of an operation on plain arrays, of which shape and dtype are known.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
        The default library's.
    depth : int
        How many operations are to be computed for it, one on the other.
    """

    __slots__ = ("_found", "_op", "_settings", "_values", "depth", "dtype", "shape")
    depth: int

    def __init__(
        self, op: Primitive, values: Sequence[Any], settings: dict[str, Any], like: Any
    ) -> None:
        self._op, self._values, self._settings = op, values, settings
        self._found = None
        self.shape, self.dtype = like.shape, like.dtype
        self.depth = 1 + max([v.depth if v.__class__ is Deferred else 0 for v in values])

    def computed(self) -> Any:
        """Return the array."""
        if self._found is None:
            values = [v.computed() if v.__class__ is Deferred else v for v in self._values]
            (self._found,) = results_in(NUMPY.xp, self._op, values, self._settings)
            self._values = ()
        return self._found
