"""Batches: an array library whose arrays have a hidden leading axis, one item for each sample.

Owns `Batch`, and for each depth of nesting the library of such arrays. A function of the tensors of
one sample that is run on them computes all samples at once. Their shape is that of one sample.

An operation follows its batching rule (rules.py); one without a rule is called for each sample
(`each_sample`), and so are users' operations (user_ops.py).

Invariants: the axis of the samples comes first in what is wrapped, or `batched` is False and all
samples have the same. A part is a tensor exactly where it requires grad. There is one class of
arrays for each depth, made once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import hints
from pullback.arrays import NUMPY, constant, ndarray
from pullback.core.custom.pytree import leaves
from pullback.core.debug.anomaly import call_site
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.function.primitive import Primitive
from pullback.core.function.tensor_library import library_of_part, on_parts
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, BatchedValueError, compose
from pullback.ops.primitives.indexing import is_basic
from pullback.transforms.batch.batched_call import closed_over, elementwise_of, refused
from pullback.transforms.batch.rules import batched_results
from pullback.transforms.batch.user_ops import call_by_sample, each, step_of
from pullback.transforms.levels import WRAPPING, Running, run_recorded
from pullback.transforms.user_calls import UserCall
from pullback.transforms.wrapped import (
    TransformLibrary,
    Wrapped,
    escaped,
    is_part,
    on_part,
    part_of,
    part_with_graph_of,
    to_tensor,
)

_PLAIN = frozenset((ndarray, int, float, bool, complex))


class Batch(Wrapped):
    """An array for each sample; a subclass of it for each depth.

    Attributes
    ----------
    value : array or Tensor
        What is wrapped.
    batched : bool
        Whether its first axis is that of the samples; else it is the array of every sample.
    """

    __slots__ = ("batched",)
    library: BatchLibrary

    def __init__(self, value: Any, batched: bool, running: Running | None = None) -> None:
        self.value, self.batched, self.running = value, batched, running

    @property
    def shape(self) -> tuple[int, ...]:
        shape = tuple(self.value.shape)
        return shape[1:] if self.batched else shape

    @property
    def mT(self) -> Any:  # noqa: N802  (the standard's name)
        if self.value.__class__ is ndarray and self.value.ndim - self.batched > 1:
            return self.__class__(self.value.mT, self.batched, self.library.one_run((self,)))
        return super().mT

    def _one(self) -> Any:
        """Return the value of every sample, raise if they have values of their own."""
        return self.library.to_numpy(self)


class BatchLibrary(TransformLibrary):
    """The library of batches of one depth of nesting."""

    kind, api, base = "batches", "vmap", Batch

    def wrap(self, a: Any) -> Any:
        return a if a.__class__ is self.array_class else self.array_class(a, False)

    def step(self, called: UserCall) -> Any:
        return step_of(called)

    def call_function(self, function: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
        return call_by_sample(self, function, tensors)

    def run(self, op: Primitive, arrays: Sequence[Any], settings: dict[str, Any]) -> Any:
        array_class = self.array_class
        if self.is_beside_parts():
            self.check_closures([*arrays, *leaves(settings.get("index"))])
        if op.elementwise and len(arrays) < 3:
            result = elementwise_of(array_class, op, arrays, settings)
            if result is not None:
                return result
        values, batched, is_plain = [], [], "index" not in settings or is_basic(settings["index"])
        running = None if is_plain else self.one_run(leaves(settings["index"]))
        for a in arrays:
            own = a.__class__ is array_class
            value = a.value if own else a
            is_plain = is_plain and value.__class__ in _PLAIN
            values.append(value)
            batched.append(has_axis := own and a.batched)
            if has_axis and a.running is not running:
                if running is not None or a.running.ended:
                    raise escaped(a)
                running = a.running
        if is_plain:  # nothing to record, and nothing wrapped further in
            outs, has_axis = batched_results(self, NUMPY.xp, op, values, batched, settings)
        else:
            tensors = [to_tensor(v) if is_part(v) else v for v in values]
            outs, has_axis = on_parts(
                batched_results, self, TENSOR_XP, op, tensors, batched, settings
            )
        results = [
            array_class(part_of(o) if isinstance(o, Tensor) else o, has_axis, running) for o in outs
        ]
        return results if op.multi else results[0]

    def with_graph_of(self, before: Any, after: Any) -> Any:
        old = before.value
        if after.batched and not before.batched:  # from now on each sample has its own
            shape = (after.value.shape[0], *old.shape)
            old = run_recorded(self.level, to_tensor(old).broadcast_to, shape)
        new = after.value
        if before.batched and not after.batched:
            new = to_tensor(new).broadcast_to(tuple(old.shape))
        batched, running = before.batched or after.batched, self.one_run((before, after))
        return self.array_class(part_with_graph_of(old, new), batched, running)

    def each_part(self, name: str, a: Any, *settings: Any) -> Any:
        return self.array_class(on_part(name, a.value, *settings), a.batched, self.one_run((a,)))

    def constant(self, a: Any) -> Any:
        part = a.value.data_array() if isinstance(a.value, Tensor) else a.value
        return self.array_class(constant(part), a.batched, a.running)

    # -- values of the samples ---------------------------------------------------------------------
    def is_constant(self, a: Any) -> bool:
        return not a.batched

    def closed_over(self) -> BatchedValueError:
        return closed_over()

    def to_numpy(self, a: Any) -> Any:
        """Return the values that all samples share; raise where each has its own."""
        if not a.batched:
            return library_of_part(a.value).to_numpy(a.value)
        if self.is_beside_parts():
            raise closed_over()
        required = "one value, the same for all samples, required by `if`, float(), item() or NumPy"
        came = f"a batch of {f'tensors of shape {a.shape}' if a.shape else 'numbers'}"
        hint = (
            "use pb.where for `if`, and b = pb.tensor(b) before `b[i] = x` of an array b; "
            f"{hints.here() or hints.JOINED}; or give vmap what does not differ by in_axes=None"
        )
        raise refused(self, required, came, hint)

    def each(self, function: Callable[..., Any], args: Any, keywords: dict[str, Any]) -> Any:
        return each(self, function, args, keywords)

    def mixed_hint(self) -> str:
        return (
            "in vmap, what differs between samples cannot be written to a tensor from outside: "
            "give it an axis in in_axes, or make it inside of the function, as zeros() does."
            f"\n{call_site()}"
        )

    def draw(self, draw: Callable[[tuple[int, ...]], Any]) -> Any:
        running = next(r for r in reversed(WRAPPING.get()) if r.library is self)
        if running.randomness == "error":
            required = 'randomness="different" (a draw for each sample) or "same" required'
            raise ArgumentError(compose("vmap", required, 'random numbers under "error"'))
        if running.randomness == "same":
            return self.wrap(self._drawn_outside(draw))
        drawn = self._drawn_outside(lambda lead: draw((*lead, running.size)))
        return self.array_class(drawn, True, running)
