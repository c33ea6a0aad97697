"""One call of a function, recorded: what reverse-mode transforms pull gradients through.

Owns the tensors that stood for the arguments, and the decision whether a result stays part of the
graph. Invariants: no global state; no ``.grad`` is changed; a result that can be differentiated
again (by an enclosing transform, or with respect to a tensor in the function's closure) stays part
of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pullback.core.backward import api as engine
from pullback.core.backward.collect import collect
from pullback.core.custom.pytree import flatten, leaves, unflatten
from pullback.core.graph.modes import STATE, run_in_mode
from pullback.core.tensor.endings import run_in_call
from pullback.core.tensor.tensor import Tensor
from pullback.core.tensor.writes import WRITES, Writes
from pullback.errors import InplaceError, compose
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.arguments import RECORDING, Arguments, class_for, in_class
from pullback.transforms.levels import Level, depends_on_outer_level
from pullback.transforms.results import as_given, detached, leaves_as_given, parts
from pullback.transforms.transformed import Function, name_of

__all__ = ["Recording", "written_outside"]


class Recording:
    """A call that was recorded.

    Attributes
    ----------
    out, aux : any
        What the function returned, tensors with their graph.
    outs, structure : list, Structure or None
        The leaves of `out`, and the containers that they stand in.
    inputs : list of Input
        The leaves of the arguments that have a derivative.
    level : Level
        That of the call, closed once a result of it that stays part of the graph goes out.
    keeps : bool
        Whether the result stays part of the graph.
    """

    def __init__(self, arguments: Arguments, has_aux: bool = False) -> None:
        self.arguments, self.level = arguments, Level()
        self._slots = arguments.inputs(self.level)
        self.inputs = [i for i in self._slots if i is not None]
        recorded = STATE.get().grad
        tensors = [None if i is None else i.tensor for i in self._slots]
        result = self._called(tensors)
        self.out, self.aux = parts(arguments, result, has_aux)
        self.outs, self.structure = flatten(self.out)
        self._auxiliary, self._aux_structure = flatten(self.aux) if has_aux else ([], None)
        self.keeps = recorded and True in [
            depends_on_outer_level(t, self.level)
            for t in (*self.outs, *self._auxiliary)
            if _tracked(t)
        ]
        if self.keeps:
            self.level.close()

    def value(self) -> Any:
        """Return the result as the caller gets it."""
        if self.keeps:
            return self.out
        given = [i.given for i in self.inputs]
        return unflatten(self.structure, leaves_as_given(detached(self.outs), given))

    def auxiliary(self) -> Any:
        """Return the second object as the caller gets it."""
        if self.keeps or not self._auxiliary:
            return self.aux
        return unflatten(self._aux_structure, detached(self._auxiliary))

    def sources(self) -> list[Tensor | None]:
        """Return what stands for each leaf of the arguments; None for an integer."""
        return [None if i is None else i.place for i in self._slots]

    def pull(
        self,
        roots: Sequence[Tensor],
        seeds: Sequence[Tensor] | None,
        *,
        retain: bool = False,
        rows: int | None = None,
    ) -> list[Tensor]:
        """Return the gradient of each input, in the graph where the result or a seed is.

        Parameters
        ----------
        roots, seeds : sequence of Tensor
            Parts of the result and their gradients, which have a leading axis of length `rows`
            where that is given; so have the results then. Without seeds the gradients of scalars.
        retain : bool
            Whether there will be another call.
        """
        recorded = self.keeps_with(seeds or ())
        tracked = [k for k, root in enumerate(roots) if root.requires_grad]
        chosen = [roots[k] for k in tracked]
        cotangents = None if seeds is None else [seeds[k] for k in tracked]
        places, kept = [i.place for i in self.inputs], retain or recorded
        found: Sequence[Tensor | None] = [None] * len(places)
        if places and chosen and rows is None:
            found = engine.pulled_back(chosen, places, cotangents, kept, recorded)
        elif places and chosen and rows:
            found = engine.grad(chosen, places, cotangents, kept, recorded, True, True)
        if recorded:
            self.level.close()
        return [_zeros(p, rows) if g is None else g for p, g in zip(places, found, strict=True)]

    def keeps_with(self, seeds: Sequence[Tensor]) -> bool:
        """Return whether gradients of these seeds stay part of the graph."""
        return STATE.get().grad and (self.keeps or any(s.requires_grad for s in seeds))

    def structured(self, derivatives: Sequence[Tensor], kept: bool) -> Any:
        """Return a derivative for each input in the containers and types of the arguments."""
        found = iter(derivatives)
        return self.arguments.structured(
            [None if i is None else _returned(next(found), i.given, kept) for i in self._slots]
        )

    def _called(self, tensors: Sequence[Tensor | None]) -> Any:
        """Call the function; raise if it wrote what depends on its arguments to the outside."""
        places = {i.place._node for i in self.inputs}
        result, left = run_noting_writes(places, RECORDING, self.arguments.call, tensors)
        for tensor in left:
            if not places.isdisjoint(collect([tensor._node])[0]):
                raise written_outside(self.arguments.api, self.arguments.fun, tensor)
        return result


def run_noting_writes(
    places: Collection[Any], changes: dict[str, Any], fn: Function, /, *args: Any, **kw: Any
) -> tuple[Any, list[Tensor]]:
    """Call the function of a transform that differentiates by these nodes, in a mode of its own.

    Returns its result, and what it wrote to of what is outside and no part of the result.
    """
    outer = WRITES.get()
    writes = Writes(outer)
    try:
        WRITES.set(writes)
        result = run_in_call(places, run_in_mode, changes, fn, *args, **kw)
    finally:
        WRITES.set(outer)
    returned = {id(leaf) for leaf in leaves(result)}
    return result, [tensor for tensor in writes.left() if id(tensor) not in returned]


def written_outside(api: str, fun: Any, tensor: Tensor) -> InplaceError:
    """Return the error of a write to a tensor from outside, which leaves the graph."""
    tensor._node = None
    required = f"values that depend on no argument of {name_of(fun)} required in a tensor from"
    hint = "make the tensor inside of the function and return it, or write a detached value"
    return InplaceError(
        compose(api, f"{required} outside", "others", ("tensor", tensor), hint=hint)
    )


def _returned(derivative: Tensor, given: Any, kept: bool) -> Any:
    """Return a derivative as the caller gets it: a tensor where it is `kept` in the graph."""
    return in_class(derivative, class_for(given)) if kept else as_given(derivative, given)


def _tracked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _zeros(like: Tensor, rows: int | None) -> Tensor:
    zero = zeros_like(like.detach())
    return zero if rows is None else zero.broadcast_to((rows, *like.shape)).clone()
