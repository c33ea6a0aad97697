"""Tangents: an array library whose arrays carry a derivative along a direction.

Owns forward mode: `Tangent`, an array and how fast it changes, and for each depth of nesting the
library of such arrays. A function of tensors that is run on them gives its directional derivative.

The rules are those of reverse mode. Of an element-wise operation a rule multiplies with the
derivative, so it is applied to the tangent. Where a rule does not ask for its own input or the
result, the operation is linear in that input, and is applied to the tangent itself. The derivative
of any other operation is the transpose of what its backward does: see `pushed`.

Invariants: a tangent is None where it is structurally zero. A part of an array is a tensor exactly
where it requires grad: computing with it is then recorded. There is one class of arrays for each
depth, made once.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from pullback.arrays import library_of, register
from pullback.core.function.handed import TENSORS
from pullback.core.function.primitive import Primitive, parameters
from pullback.core.function.record import asked_for
from pullback.core.function.tensor_library import library_of_part, on_parts
from pullback.core.tensor.tensor import Tensor
from pullback.errors import GraphError, compose
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.carrying import carry
from pullback.transforms.pushing import pushed
from pullback.transforms.wrapped import (
    Wrapped,
    WrappedLibrary,
    boxed,
    is_part,
    on_part,
    part_of,
    plain,
    results_of,
)

__all__ = ["Tangent", "TangentLibrary", "tangents"]


class Tangent(Wrapped):
    """An array and its derivative along a direction; a subclass of it for each depth.

    Attributes
    ----------
    value : array or Tensor
        What is computed.
    tangent : array, Tensor or None
        Its derivative, of the same shape and dtype.
    """

    __slots__ = ("tangent",)

    def __init__(self, value: Any, tangent: Any = None) -> None:
        self.value, self.tangent = value, tangent

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)


# -- the library -----------------------------------------------------------------------------------
class TangentLibrary(WrappedLibrary):
    """The library of arrays with tangents of one depth of nesting."""

    def __init__(self, rank: int) -> None:
        super().__init__("tangents", rank, Tangent)

    def lift(self, a: Any) -> Any:
        """Wrap an array or a tensor that does not change."""
        return a if self.has(a) else self.made(part_of(a) if isinstance(a, Tensor) else a)

    def call(self, op: Any, arguments: Any, values: Sequence[Any]) -> Any:
        """Return the result of a user's operation; its tangents are those of its backward."""
        return carry(self, op, arguments, values)

    def run(self, op: Primitive, arrays: Sequence[Any], settings: dict[str, Any]) -> Any:
        """Return the results of an operation, with their tangents."""
        values = [a.value if self.has(a) else a for a in arrays]
        along = [a.tangent if self.has(a) else None for a in arrays]
        if not op.differentiable:
            along = [None] * len(arrays)
        given = {name: plain(value) for name, value in settings.items()}
        found = on_parts(_derived, op, values, along, {**op.settings, **given})
        results = [self.wrapped(out, tangent) for out, tangent in found]
        return results if op.multi else results[0]

    def wrapped(self, out: Tensor, tangent: Tensor | None) -> Any:
        """Return an array of a value and its tangent."""
        return self.made(part_of(out), None if tangent is None else part_of(tangent))

    # -- what is linear and no operation is done to values and tangents alike ----------------------
    def _each(self, name: str, arrays: Sequence[Any], *settings: Any, **named: Any) -> Any:
        """Call a method of the parts' library on values, and on tangents if there are any."""
        values = [self._value(a) for a in arrays]
        value = on_parts(on_part, name, values, settings, named)
        if all(self._tangent(a) is None for a in arrays):
            return self.made(value)
        tangents = [self._tangent(a) for a in arrays]
        return self.made(value, on_parts(_on_tangents, name, values, tangents, settings, named))

    def _value(self, a: Any) -> Any:
        return a.value if self.has(a) else a

    def _tangent(self, a: Any) -> Any:
        return a.tangent if self.has(a) else None

    def copy(self, a: Any) -> Any:
        """Return a copy."""
        return self._each("copy", [a])

    def getitem(self, a: Any, index: Any) -> Any:
        """Return ``a[index]``."""
        return self._each("getitem", [a], plain(index))

    def assign(self, a: Any, index: Any, value: Any) -> Any:
        """Return a copy of `a` with `value` at `index`."""
        return self._each("assign", [self.copy(a), value], plain(index))

    def add_at(self, a: Any, index: Any, value: Any) -> Any:
        """Return a copy of `a` with `value` added at `index`."""
        return self._each("add_at", [self.copy(a), value], plain(index))

    def fold(self, a: Any, *settings: Any) -> Any:
        """Add windows up at the places they come from."""
        return self._each("fold", [a], *settings)

    def windows(self, a: Any, *settings: Any) -> Any:
        """Return the windows along the last axes."""
        return self._each("windows", [a], *settings)

    def broadcast_to(self, a: Any, shape: tuple[int, ...]) -> Any:
        """Return `a` repeated to a larger shape."""
        return self._each("broadcast_to", [a], shape)

    def diagonal(self, a: Any, offset: int = 0) -> Any:
        """Return the diagonals of matrices."""
        return self._each("diagonal", [a], offset)

    def reshape(self, a: Any, shape: tuple[int, ...]) -> tuple[Any, bool]:
        """Return `a` in another shape; nothing is written in place, so that is a view."""
        return self._each("reshape", [a], shape), True

    def moved(self, a: Any, name: str, target: Any, device: Any = None) -> Any:
        """Return a copy on another device."""
        return self._each("moved", [a], name, target, device)

    def constant(self, a: Any) -> Any:
        """Return the values alone."""
        if isinstance(a.value, Tensor):
            return a.value.detach().data_array()
        return library_of(a.value).constant(a.value)

    def to_numpy(self, a: Any) -> Any:
        """Return the values where they do not change, or of one number."""
        if a.tangent is not None:
            required = "numbers that do not change required"
            hint = "compute with functions of pullback or NumPy up to the end, or call detach()"
            raise GraphError(compose("numpy", required, "a tensor in forward mode", hint=hint))
        return library_of_part(a.value).to_numpy(a.value)


def _on_tangents(
    name: str, values: Sequence[Any], tangents: Sequence[Any], settings: Any, named: Any
) -> Any:
    """Do the same to the tangents; zeros stand for one that is None, 0 for that of a number."""
    parts = [
        t if t is not None else zeros_of(v) if is_part(v) else 0
        for v, t in zip(values, tangents, strict=True)
    ]
    return on_part(name, parts, settings, named)


def zeros_of(part: Any) -> Any:
    """Return zeros like a part of an array."""
    return zeros_like(boxed(part).detach()).data_array()


@functools.cache
def tangents(rank: int) -> TangentLibrary:
    """Return the library of a depth of nesting, from 1, made and registered once."""
    library = TangentLibrary(rank)
    register(library)
    return library


# -- the tangents of operations --------------------------------------------------------------------
def _derived(
    op: Primitive, values: Sequence[Any], along: Sequence[Any], settings: dict[str, Any]
) -> list[tuple[Tensor, Tensor | None]]:
    """Return the results of an operation on parts, each with its tangent."""
    tensors = [boxed(v) if is_part(v) else v for v in values]
    vectors = {i: boxed(v) for i, v in enumerate(along) if v is not None and not _is_mask(op, i)}
    if not vectors:
        return [(out, None) for out in results_of(op, tensors, settings)]
    if _multiplies(op, vectors, tensors):
        (out,) = results_of(op, tensors, settings)
        if out.is_complex() == any(v.is_complex() for v in vectors.values()):
            if op.symmetric and values[0] is values[1] and along[0] is along[1]:
                term = _multiplied(op, 0, vectors[0], tensors, out, settings)
                terms = [term, term]
            else:
                terms = [_multiplied(op, i, v, tensors, out, settings) for i, v in vectors.items()]
            tangent = functools.reduce(operator.add, terms)
            same = tangent.shape == out.shape
            return [(out, tangent if same else TENSORS.broadcast_to(tangent, out.shape))]
    if all(_is_linear(op, i) for i in vectors):
        rows = [_applied(op, i, v, tensors, settings) for i, v in vectors.items()]
        outs = results_of(op, tensors, settings)
        return [
            (out, functools.reduce(operator.add, terms) if out.dtype.is_inexact else None)
            for out, terms in zip(outs, zip(*rows, strict=True), strict=True)
        ]
    every = [vectors.get(i) for i in range(len(tensors))]
    return pushed(lambda *given: results_of(op, given, settings), tensors, every)


def _is_mask(op: Primitive, i: int) -> bool:
    """Return whether an input has a gradient that is structurally zero."""
    return not op.variadic and i in op.masks


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) or (isinstance(value, Tensor) and value.is_complex())


def _multiplies(op: Primitive, vectors: dict[int, Tensor], tensors: Sequence[Any]) -> bool:
    """Return whether the rules of an operation multiply with its derivative, element by element."""
    if not op.elementwise or any(op.rules[i] is None for i in vectors):
        return False
    return op.holomorphic or not any(map(_is_complex, tensors))


def _multiplied(
    op: Primitive,
    i: int,
    vector: Tensor,
    tensors: Sequence[Any],
    out: Tensor,
    settings: dict[str, Any],
) -> Tensor:
    """Return the part of input `i` in the tangent: its rule, with the vector for the gradient.

    Its shape may be smaller than that of the result: what is repeated is computed once.
    """
    rule: Any = op.rules[i]
    special = {"g": vector, "xp": TENSORS}
    arguments = [
        special[name] if name in special else asked_for(op, name, tensors, [out], settings)
        for name in parameters(rule)
    ]
    product: Tensor = rule(*arguments)
    return product if product.dtype is out.dtype else product.to(out.dtype)


def _is_linear(op: Primitive, i: int) -> bool:
    """Return whether an operation is linear in an input, when those its rule needs are fixed.

    A setting `value` is put where nothing of the input is: then it is linear but for a constant.
    """
    if op.variadic:
        return not op.tensor_slots
    if op.joint is not None or op.rules[i] is None or "value" in op.settings or op.elementwise:
        return False
    return not {op.inputs[i], *op.results} & {*parameters(op.rules[i])}


def _applied(
    op: Primitive, i: int, vector: Tensor, tensors: Sequence[Any], settings: dict[str, Any]
) -> list[Tensor]:
    """Return the part of input `i` in each tangent: the operation on the vector."""
    fixed = () if op.variadic else parameters(op.rules[i])
    arguments = [
        vector if j == i else t if not op.variadic and _stays(op, j, fixed) else _zero(t)
        for j, t in enumerate(tensors)
    ]
    return results_of(op, arguments, settings)


def _stays(op: Primitive, j: int, fixed: Sequence[str]) -> bool:
    """Return whether an input stays as it is while the operation is applied to another's vector."""
    return op.inputs[j] in fixed or j in op.masks


def _zero(value: Any) -> Any:
    return zeros_like(value.detach()) if isinstance(value, Tensor) else 0
