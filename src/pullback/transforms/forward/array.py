"""Tangents: an array library whose arrays call_user_op a derivative along a direction.

Owns forward mode: `Tangent`, an array and how fast it changes, and for each depth of nesting the
library of such arrays. A function of tensors that is run on them gives its directional derivative.

How a tangent comes out of an operation is in rules.py.

Invariants: a tangent is None where it is structurally zero, and may be smaller than its value, see
`Tangent`. A part of an array is a tensor exactly where it requires grad: computing with it is then
recorded. There is one class of arrays for each depth, made once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import hints
from pullback.arrays import NUMPY, constant, ndarray
from pullback.core.function.primitive import Primitive
from pullback.core.function.tensor_library import library_of_part, on_parts
from pullback.core.tensor.ownership import can_add_in_place
from pullback.core.tensor.tensor import Tensor
from pullback.errors import GraphError, compose
from pullback.ops.primitives.indexing import is_basic
from pullback.transforms.forward.pushforward import jvp_of_function
from pullback.transforms.forward.rules import derived, derived_on_parts, is_quick, quickly
from pullback.transforms.levels import WRAPPING, Running
from pullback.transforms.user_calls import UserCall
from pullback.transforms.wrapped import (
    TransformLibrary,
    Wrapped,
    escaped,
    on_part,
    part_of,
    part_with_graph_of,
    plain,
)

tidy = NUMPY.tidy  # a sum of arrays without axes is a number of NumPy's
_PLAIN = frozenset((*NUMPY.array_types, type(None), int, float, bool, complex))


class Tangent(Wrapped):
    """An array and its derivative along a direction; a subclass of it for each depth.

    Attributes
    ----------
    value : array or Tensor
        What is computed.
    tangent : array, Tensor or None
        Its derivative, of the same dtype, and of a shape that is broadcast to that of the value:
        what is repeated is computed once. `whole_tangent` returns it in the value's shape.
    """

    __slots__ = ("tangent",)
    tangent: Any

    def __init__(self, value: Any, tangent: Any = None, running: Running | None = None) -> None:
        self.value, self.tangent, self.running = value, tangent, running

    @property
    def whole_tangent(self) -> Any:
        """The tangent in the shape of the value."""
        if self.tangent is None or self.tangent.shape == self.value.shape:
            return self.tangent
        return on_part("broadcast_to", self.tangent, self.shape)

    def __iadd__(self, other: Any) -> Any:
        """Add, in place where nobody else holds the parts; else as ``self + other``."""
        is_own = other.__class__ is self.__class__ and other.running is self.running
        if is_own and can_add_in_place(self.value, other.value):
            if other.tangent is None:
                self.value += other.value
                return self
            if can_add_in_place(self.tangent, other.tangent):
                self.value += other.value
                self.tangent += other.tangent
                return self
        return self + other


# -- the library -----------------------------------------------------------------------------------
class TangentLibrary(TransformLibrary):
    """The library of arrays with tangents of one depth of nesting."""

    kind, api, base = "tangents", "forward mode", Tangent
    array_class: type[Tangent]

    def wrap(self, a: Any) -> Any:
        return a if self.has(a) else self.array_class(part_of(a) if isinstance(a, Tensor) else a)

    def step(self, called: UserCall) -> Any:
        for running in WRAPPING.get():
            running.user_ops.append(called.function)
        return called

    def call_function(self, function: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
        return jvp_of_function(self, function, tensors)

    def run(self, op: Primitive, arrays: Sequence[Any], settings: dict[str, Any]) -> Any:
        array_class = self.array_class
        if self.is_beside_parts():
            self.check_closures(arrays)
        if op.settings:
            settings = {**op.settings, **{name: plain(value) for name, value in settings.items()}}
        if is_quick(op) and (result := quickly(array_class, op, arrays, settings)) is not None:
            return result
        values, along, running = [], [], None
        is_plain = "index" not in settings or _is_native(settings["index"])
        for a in arrays:
            value, tangent = (a.value, a.tangent) if a.__class__ is array_class else (a, None)
            if tangent is not None and (own := a.running) is not running:
                if running is not None or own.ended:
                    raise escaped(a)
                running = own
            is_plain = is_plain and value.__class__ in _PLAIN and tangent.__class__ in _PLAIN
            values.append(value)
            along.append(tangent)
        if is_plain:  # nothing to record, and nothing wrapped further in
            pairs = derived(NUMPY.xp, op, values, along, settings)
            if pairs is not None:
                results = [
                    array_class(out, None if t is None else tidy(t), running) for out, t in pairs
                ]
                return results if op.multi else results[0]
        result = on_parts(derived_on_parts, op, values, along, settings)
        results = [self.wrapped(out, tangent, running) for out, tangent in result]
        return results if op.multi else results[0]

    def with_graph_of(self, before: Any, after: Any) -> Any:
        tangent = after.tangent
        if tangent is not None and before.tangent is not None:
            tangent = part_with_graph_of(before.whole_tangent, after.whole_tangent)
        value, running = part_with_graph_of(before.value, after.value), after.running
        return self.array_class(value, tangent, running)

    def is_constant(self, a: Any) -> bool:
        return a.tangent is None

    def parts(self, a: Any) -> tuple[Any, ...]:
        return a.value, a.tangent

    def closed_over(self) -> GraphError:
        required = (
            "what changes required among the arguments of custom operations, and of what vmap "
            "calls for each sample"
        )
        came = "a function that closes over it"
        hint = "hand it over as an argument, or detach() what is meant to be constant"
        return GraphError(compose("forward mode", required, came, hint=hint))

    def wrapped(self, out: Tensor, tangent: Tensor | None, running: Running | None) -> Any:
        """Return an array of a value and its tangent."""
        vector = None if tangent is None else part_of(tangent)
        return self.array_class(part_of(out), vector, running)

    # -- what is linear and no operation is done to values and tangents alike ----------------------
    def each_part(self, name: str, a: Any, *settings: Any) -> Any:
        if self.is_beside_parts():
            self.check_closures([a])
        running, tangent = self.one_run([a]), a.whole_tangent
        return self.array_class(
            on_part(name, a.value, *settings),
            None if tangent is None else on_part(name, tangent, *settings),
            running,
        )

    def copy(self, a: Any) -> Any:
        """Return a copy, of the tangent too: the rule of `clone` hands on the vector itself."""
        return self.each_part("copy", a)

    def constant(self, a: Any) -> Any:
        return constant(a.value.data_array() if isinstance(a.value, Tensor) else a.value)

    def to_numpy(self, a: Any) -> Any:
        """Return the values where they do not change, or of one number."""
        if a.tangent is not None:
            required = "numbers that do not change required"
            hint = f"{hints.here() or hints.JOINED}; for the values alone: tensor.detach().numpy()"
            raise GraphError(compose("numpy", required, "a tensor in forward mode", hint=hint))
        return library_of_part(a.value).to_numpy(a.value)


def _is_native(index: Any) -> bool:
    """Return whether an index holds no arrays but those of the default library."""
    if is_basic(index):
        return True
    items = index if index.__class__ is tuple else (index,)
    return all(item.__class__ is ndarray or is_basic(item) for item in items)
