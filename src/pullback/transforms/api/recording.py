"""One call of a function, recorded: what reverse-mode transforms pull gradients through.

Owns the tensors that stood for the arguments, the checks of results, the types in which values and
gradients go back to the caller, and the decision whether a result stays part of the graph.
Invariants: no global state; no ``.grad`` is changed; a result that can be differentiated again (by
an enclosing transform, or with respect to a tensor in the function's closure) stays part of the
graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.arrays import NUMPY, is_array, library_of, ndarray
from pullback.core.backward import api as engine
from pullback.core.custom.pytree import Structure, flatten, leaves, unflatten
from pullback.core.graph.modes import STATE, run_with
from pullback.core.tensor.endings import run_in_call
from pullback.core.tensor.tensor import Tensor, in_class
from pullback.core.tensor.writes import WRITES, Writes
from pullback.errors import ArgumentTypeError, DTypeError, GraphError, InplaceError, compose
from pullback.ops.functions.creation import zeros_like
from pullback.transforms.api.arguments import Arguments, Function, class_for, name_of
from pullback.transforms.directions import directions
from pullback.transforms.levels import (
    depends_on_outer_level,
    has_graph,
    new_level,
    run_at_level,
    run_recorded,
)
from pullback.transforms.wrapped import numpy_scalar


class Recording:
    """A call that was recorded: what it returned with its graph, and what gradients are of."""

    def __init__(self, arguments: Arguments, has_aux: bool = False) -> None:
        self.arguments, self.level = arguments, new_level()
        # The leaves of the arguments; those that have a derivative, and what stands for them.
        self._slots = arguments.inputs(self.level)
        self.inputs, self.leaves, tensors = [], [], []
        for slot in self._slots:
            tensors.append(None if slot is None else slot.tensor)
            if slot is not None:
                self.inputs.append(slot)
                self.leaves.append(slot.leaf)
        recorded = STATE.get().grad
        result = self._called(tensors)
        self.out, self.aux = parts(arguments, result, has_aux)
        self.outs, self.structure = flatten(self.out)
        self._auxiliary, self._aux_structure = flatten(self.aux) if has_aux else ([], None)
        results = (*self.outs, *self._auxiliary)
        # Whether the result stays part of the graph.
        self.keeps = recorded and depends_on_outer_level(self.level, results)

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

    def vectors(self, api: str, name: str, given: Any) -> tuple[list[Tensor | None], bool]:
        """Return a vector, or None for zero, for each input, and whether their graph is kept."""
        like = [None if i is None else i.leaf for i in self._slots]
        vectors = directions(api, name, given, like, self.arguments.structure)
        chosen = [v for v, leaf in zip(vectors, like, strict=True) if leaf is not None]
        return chosen, self.keeps_with(chosen)

    def pull(
        self,
        roots: Sequence[Tensor],
        seeds: Sequence[Tensor] | None,
        *,
        retain: bool = False,
        rows: int | None = None,
    ) -> list[Tensor]:
        """Return the gradient of each input, in the graph where the result or a seed is.

        Of parts of the result and their gradients; without seeds, of scalars. Where `rows` is
        given, the seeds have a leading axis of that length, and so have the results. There may be
        another call if the graph is retained.
        """
        recorded = self.keeps_with(seeds or ())
        pairs = [pair for pair in zip(roots, seeds or roots, strict=True) if pair[0].requires_grad]
        chosen = [root for root, _ in pairs]
        cotangents = None if seeds is None else [seed for _, seed in pairs]
        places, kept = self.leaves, retain or recorded
        result: Sequence[Tensor | None] = [None] * len(places)
        if places and chosen and rows is None:
            pull = engine.pulled_back
            result = run_at_level(self.level, pull, chosen, places, cotangents, kept, recorded)
        elif places and chosen and rows:
            settings = kept, recorded, True, True
            result = run_at_level(self.level, engine.grad, chosen, places, cotangents, *settings)
        return [_zeros(p, rows) if g is None else g for p, g in zip(places, result, strict=True)]

    def keeps_with(self, seeds: Sequence[Tensor | None]) -> bool:
        """Return whether gradients of these seeds stay part of the graph."""
        return STATE.get().grad and (self.keeps or has_graph(seeds))

    def structured(self, derivatives: Sequence[Tensor], kept: bool) -> Any:
        """Return a derivative for each input in the containers and types of the arguments."""
        return structured(self.arguments, self._slots, derivatives, kept)

    def _called(self, tensors: Sequence[Tensor | None]) -> Any:
        """Call the function; raise if it wrote what depends on its arguments to the outside."""
        level, call = self.level, self.arguments.call
        result, left = run_noting_writes(1 << level, run_recorded, level, call, tensors)
        for tensor in left:
            if tensor._node.levels >> level & 1:
                raise written_outside(self.arguments.api, self.arguments.fun, tensor)
        return result


def run_noting_writes(
    levels: int, fn: Function, /, *args: Any, **kw: Any
) -> tuple[Any, list[Tensor]]:
    """Call the function of a transform that differentiates by these levels.

    Returns its result, and what it wrote to of what is outside and no part of the result.
    """
    writes = Writes(WRITES.get())
    result = run_with(WRITES, writes, run_in_call, levels, fn, *args, **kw)
    left = list(writes.left())
    if left:
        returned = {id(leaf) for leaf in leaves(result)}
        left = [tensor for tensor in left if id(tensor) not in returned]
    return result, left


def written_outside(api: str, fun: Any, tensor: Tensor) -> InplaceError:
    """Return the error of a write to a tensor from outside, which leaves the graph."""
    tensor._node = None
    required = f"values that depend on no argument of {name_of(fun)} required in a tensor from"
    hint = "make the tensor inside of the function and return it, or write a detached value"
    return InplaceError(
        compose(api, f"{required} outside", "others", ("tensor", tensor), hint=hint)
    )


def _zeros(like: Tensor, rows: int | None) -> Tensor:
    zero = zeros_like(like.detach())
    return zero if rows is None else zero.broadcast_to((rows, *like.shape)).clone()


# -- results ---------------------------------------------------------------------------------------


def parts(arguments: Arguments, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the result to differentiate, and the second object where there is one."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        fun = name_of(arguments.fun)
        required = f"a pair (result, rest) from {fun} required with has_aux=True"
        raise ArgumentTypeError(compose(arguments.api, required, type(result).__name__))
    return result[0], result[1]


def check_tensor(
    arguments: Arguments, out: Any, way_out: str = "return the scalar alone or set has_aux"
) -> None:
    """Raise if the result is no tensor."""
    if not isinstance(out, Tensor):
        raise _independent(arguments, out, way_out)


def check_differentiable(
    arguments: Arguments, outs: Sequence[Any], structure: Structure | None
) -> None:
    """Raise if none of the leaves of a result is a tensor that can have a derivative."""
    result = None
    for x in outs:
        if isinstance(x, Tensor):
            result = x
            if x.dtype.is_inexact:
                return
    if result is None:
        out = unflatten(structure, outs)
        raise _independent(arguments, out, "return the result, or a container of results")
    required = f"a floating-point or complex result of {name_of(arguments.fun)} required"
    raise DTypeError(compose(arguments.api, required, result.dtype.name, ("result", result)))


def _independent(arguments: Arguments, out: Any, way_out: str) -> ArgumentTypeError:
    fun, names = name_of(arguments.fun), " and ".join(arguments.names)
    if out is None:
        required, hint = f"a result of {fun} required", "end it with return"
        return ArgumentTypeError(compose(arguments.api, required, "None", hint=hint))
    if isinstance(getattr(out, "data", None), Tensor):
        required, came = f"a Tensor required as the result of {fun}", type(out).__name__
        hint = "return the tensor that it holds: result.data"
        return ArgumentTypeError(compose(arguments.api, required, came, hint=hint))
    return ArgumentTypeError(
        f"{arguments.api}: the result of {fun} does not depend on {names}: it must be a Tensor, "
        f"got {type(out).__name__}.\n"
        "hint: float(), item() and numpy() leave the graph; compute with functions of pullback "
        f"or NumPy, and {way_out}."
    )


def check_real(arguments: Arguments, out: Tensor) -> None:
    """Raise if the result is complex, or holds integers."""
    dtype = out.dtype
    if dtype.is_complex or not dtype.is_inexact:
        required = f"a real floating-point result of {name_of(arguments.fun)} required"
        hint = "take real(), imag() or abs() of it" if dtype.is_complex else None
        message = compose(arguments.api, required, dtype.name, ("result", out), hint=hint)
        raise DTypeError(message)


def check_scalar(arguments: Arguments, out: Tensor, instead: str) -> None:
    """Raise if the result has more than one element."""
    if math.prod(out.shape) != 1:
        required = f"a scalar result of {name_of(arguments.fun)} required"
        hint = f"reduce it, for instance with sum(), or use {instead}"
        came = f"shape {out.shape}"
        error = GraphError(compose(arguments.api, required, came, ("result", out), hint=hint))
        error.needs_scalar = True
        raise error


# -- values as the caller gets them ----------------------------------------------------------------
def structured(
    arguments: Arguments, inputs: Sequence[Any], derivatives: Sequence[Tensor], kept: bool
) -> Any:
    """Return derivatives in the containers and types of the arguments, tensors where `kept`.

    One for each leaf of the arguments that `inputs` does not have None for.
    """
    result = iter(derivatives)
    values: list[Any] = []
    for x, leaf in zip(inputs, arguments.leaves, strict=True):
        d = None if x is None else next(result)
        if d is not None:
            d = in_class(d, class_for(leaf)) if kept else as_given(d, leaf)
        values.append(d)
    return unflatten(arguments.structure, values)


def as_given(derivative: Tensor, given: Any) -> Any:
    """Return a derivative in the type of the argument that it belongs to."""
    if isinstance(given, Tensor) or _goes_on(derivative):
        return in_class(derivative, class_for(given))
    array = derivative.data_array()
    if is_array(given) or array.shape:
        return array
    return derivative.numpy()[()] if isinstance(given, numpy_scalar) else derivative.item()


def value_as_given(out: Any, given: Sequence[Any]) -> Any:
    """Return the tensors of a result as tensors if an argument is one, else as arrays."""
    result, structure = flatten(out)
    return unflatten(structure, leaves_as_given(result, given))


def leaves_as_given(outs: Sequence[Any], given: Sequence[Any]) -> Sequence[Any]:
    """Do the same to the leaves of a result."""
    numbers = bool(given)
    for g in given:
        if isinstance(g, Tensor):
            return outs
        if isinstance(g, numpy_scalar) or not isinstance(g, (float, complex)):
            numbers = False
    if not given:
        return outs
    return [_bare(x, numbers) if isinstance(x, Tensor) else x for x in outs]


def _bare(out: Tensor, numbers: bool) -> Any:
    array = out._data
    if array.__class__ is not ndarray or out._node is not None or out._base is not None:
        array = out.data_array()
        if _goes_on(out):
            return out
        if library_of(array) is not NUMPY:
            return array
    return array.item() if numbers and not array.shape else array[()]


def _goes_on(tensor: Tensor) -> bool:
    """Return whether something outside may still be derived from a tensor: it stays one."""
    return tensor.requires_grad or library_of(tensor.data_array()).level > 0


def detached(outs: Sequence[Any]) -> list[Any]:
    """Return the leaves of a result outside of the graph."""
    return [x._alias() if isinstance(x, Tensor) else x for x in outs]
