"""Functions that are called for each sample of a batch: users' operations, what looks at values.

Owns the call of an operation on batches: by its own vmap, which gets all samples at once, or once
for each sample. One node is recorded; its backward pulls gradients through what was recorded of
each sample, and is such a call itself, and so on for every order. Nothing is computed twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from pullback.arrays import is_array, ndarray, varies
from pullback.core.backward import api as engine
from pullback.core.custom.pytree import flatten
from pullback.core.custom.vmap_rule import VmapInfo
from pullback.core.function.dispatch import unwrap_escaped
from pullback.core.function.namespace import TENSOR_XP
from pullback.core.graph.modes import STATE, run_in_mode
from pullback.core.tensor.tensor import Tensor, box, new_leaf
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.functions.creation import asarray, zeros_like
from pullback.ops.functions.random import Drawn, replayed, watched
from pullback.ops.primitives.conversion import clone
from pullback.transforms.batch.rules import stacked
from pullback.transforms.levels import (
    WRAPPING,
    depends_on_outer_level,
    has_graph,
    new_level,
    run_recorded,
)
from pullback.transforms.user_calls import (
    NODE,
    UserCall,
    call_function,
    name_of_function,
    record_call,
)
from pullback.transforms.wrapped import is_part, numpy_scalar, part_of, run_within, to_tensor


def step_of(called: UserCall) -> _Step:
    """Return the call of a user's operation on batches, by its own vmap where it has one."""
    return _BySample(called) if called.function.vmap_rule is None else _ByRule(called)


def each(
    library: Any, function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    """Call any function of tensors of a library of batches for each sample by itself.

    NotImplemented if no argument differs between samples, but what the function closes over.
    """
    called = UserCall(function, args, keywords, "vmap")
    if not any(varies(t.data_array()) for t in called.tensors):
        return NotImplemented
    # Those of a transform inside of this one are of a library that wraps batches.
    return called.result(call_function(_BySample(called), called.tensors, library))


# -- what was recorded of the samples --------------------------------------------------------------
class _Parts(NamedTuple):
    """What a function computed of what batches hold."""

    # For each sample, or once for all of them: what stood for the arguments, and the results.
    places: list[list[Any]]
    outs: list[list[Tensor]]
    size: int  # the number of samples; 0 where all have the same
    kept: bool  # whether the results stay part of a graph of what batches hold
    level: int  # of what stood for the arguments
    together: bool = False  # whether all samples were computed at once

    def joined(self, library: Any, name: str) -> list[Tensor]:
        """Return the results of all samples."""
        if not self.size or self.together:
            return [o if self.kept else box(o.data_array()) for o in self.outs[0]]
        if self.kept:
            return stacked(library, name, self.outs)
        return run_in_mode({"grad": False}, stacked, library, name, self.outs)  # type: ignore[no-any-return]

    def of_samples(self, size: int) -> _Parts:
        """Return the same for samples that shared the arguments, but do not share a gradient."""
        if self.size or not size:
            return self
        return self._replace(places=self.places * size, outs=self.outs * size, size=size)

    def seeds(self, value: Tensor, batched: bool, level: int | None) -> list[Any]:
        """Return what stands for a cotangent in the pass through each of the results."""
        if batched and not self.together:
            return _rows(value, True, level, self.size)
        if self.together and not batched:
            value = _expanded(value, self.size)
        if level is None and not value.requires_grad:
            return [value] * len(self.outs)
        return [_seed(value, level) for _ in self.outs]


def _expanded(value: Tensor, size: int) -> Any:
    return TENSOR_XP.broadcast_to(value, (size, *value.shape))


def _rows(value: Tensor, batched: bool, level: int | None, count: int) -> list[Tensor]:
    """Return what stands for an argument in the call for each sample."""
    array = value.data_array()
    if batched and array.__class__ is ndarray and value._node is None:
        rows = [array[i, ...] for i in range(count)]
        return [box(row) if level is None else new_leaf(row, level) for row in rows]
    return [_place(value[i] if batched else value, level) for i in range(count)]


def _place(value: Tensor, level: int | None) -> Tensor:
    """Return what stands for an argument: a leaf of a level, if there is one, or a clone."""
    if level is None:
        return value
    return clone(value) if value.requires_grad else new_leaf(value.data_array(), level)


def _seed(value: Tensor, level: int | None) -> Tensor:
    """Return what stands for a cotangent, which is independent of the arguments to backward.

    What a batch holds of it may have been computed from what stood for them.
    """
    return clone(value) if value.requires_grad else _place(value, level)


class _Inputs(NamedTuple):
    """What a function is called with for all samples: what batches hold."""

    info: VmapInfo  # how many samples there are, 0 where all have the same, and how they draw
    values: list[Tensor]
    batched: list[bool]  # whether each has an axis of samples, the first
    tracked: list[bool]  # whether it has a derivative beside that of what is wrapped: recorded
    level: int  # of what stands for those

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function, recorded where a value is tracked."""
        return run_recorded(self.level, function, *args) if any(self.tracked) else function(*args)

    def parts(
        self, places: list[list[Any]], outs: list[list[Tensor]], together: bool = False
    ) -> _Parts:
        """Return what was computed; the results are kept where something further out needs them."""
        kept = not any(self.tracked) or has_graph(self.values)
        if not kept and STATE.get().grad:
            kept = depends_on_outer_level(self.level, itertools.chain(*outs))
        return _Parts(places, outs, self.info.batch_size, kept, self.level, together)


class _Step:
    """What is called of the samples: a function of tensors, which batches are handed to whole."""

    name: str
    on_parts: Callable[[_Inputs], _Parts]  # the results, and what was recorded of what is tracked

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Call it on tensors of any library."""
        return call_function(self, tensors)


class _BySample(_Step):
    """The first call: of the function, for each sample."""

    def __init__(self, called: UserCall) -> None:
        self.called, self.name = called, called.name

    def on_parts(self, inputs: _Inputs) -> _Parts:
        info, values, batched, tracked, level = inputs
        count = max(info.batch_size, 1)
        columns = [
            _rows(v, b, level if t else None, count)
            for v, b, t in zip(values, batched, tracked, strict=True)
        ]
        places = [list(row) for row in zip(*columns, strict=True)] or [[]] * count
        return inputs.parts(
            places, inputs.run(self._run, places, draws(info.randomness, self.name))
        )

    def _run(
        self, places: Sequence[list[Any]], draws: Iterator[AbstractContextManager[Any]]
    ) -> list[list[Tensor]]:
        rows: list[list[Tensor]] = []
        first: list[Any] | None = None
        for drawn, row in zip(draws, places, strict=False):  # so that the last is looked at, too
            with drawn:
                outs = self.called(*row)
            others: list[Any] = []
            if len(outs) < len(self.called.results):
                outs, others = _parted(self.called)
            rows.append(list(map(unwrap_escaped, outs)))
            first = others if first is None else first
            if first or others:
                self._check_same(first, others)
        return rows

    def _check_same(self, first: list[Any], others: list[Any]) -> None:
        """Raise where what is no tensor in a result differs between samples."""
        if len(others) != len(first) or not all(map(_is_same, others, first)):
            required = f"tensors in the result of {self.name}, or the same for all samples,"
            came = "numbers or other objects that differ"
            hint = "return tensors: what is no tensor has no axis of samples"
            raise ArgumentError(compose("vmap", f"{required} required", came, hint=hint))


def _is_same(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if x.__class__ is not y.__class__:
        return False
    return bool(x == y) if isinstance(x, _COMPARED) else True


_COMPARED = (int, float, complex, str, bytes, numpy_scalar)


def _parted(called: UserCall) -> tuple[list[Tensor], list[Any]]:
    """Return the tensors of a result, arrays as such, which have samples, and what is none."""
    called.results = results = [asarray(x) if is_array(x) else x for x in called.results]
    outs = [x for x in results if isinstance(x, Tensor)]
    return outs, [x for x in results if not isinstance(x, Tensor)]


def draws(randomness: str, name: str) -> Iterator[AbstractContextManager[Any]]:
    """Yield for each sample, or each chunk of samples, what its random draws happen in."""
    drawn: Drawn = {}
    if randomness == "different":
        while True:
            yield nullcontext()
    yield watched(drawn)
    if drawn and randomness == "error":
        required = f'randomness="different" or "same" required for {name}'
        raise ArgumentError(compose("vmap", required, 'random numbers under "error"'))
    while True:
        yield replayed(drawn) if drawn else nullcontext()


class _ByRule(_BySample):
    """The first call: of the vmap that was given with an operation, for all samples at once."""

    def on_parts(self, inputs: _Inputs) -> _Parts:
        info, values, batched, tracked, level = inputs
        if not info.batch_size:  # all samples have the same
            return super().on_parts(inputs)
        places, in_dims = [], []
        for value, is_batched, is_tracked in zip(values, batched, tracked, strict=True):
            if is_tracked and not is_batched:  # each sample has a gradient of its own
                value = _expanded(value, info.batch_size)
            places.append(_place(value, level if is_tracked else None))
            in_dims.append(0 if is_batched or is_tracked else None)
        return inputs.parts([places], [inputs.run(self._by_rule, info, places, in_dims)], True)

    def _by_rule(
        self, info: VmapInfo, places: Sequence[Any], in_dims: Sequence[int | None]
    ) -> list[Tensor]:
        called, op = self.called, self.called.function
        pairs = iter(zip(places, in_dims, strict=True))
        both = [next(pairs) if isinstance(x, Tensor) else (x, None) for x in called.leaves]
        leaves, all_dims = zip(*both, strict=True)
        positional, keywords = called.with_leaves(leaves)
        dims_of_args, dims_of_keywords = called.with_leaves(all_dims)
        dims_in_order = (*dims_of_args, *dims_of_keywords.values())
        result = op.vmap_rule(info, dims_in_order, positional, keywords)
        called.results, called.structure = flatten(result[0])
        axes = [a for a, x in zip(result[1], called.results, strict=True) if is_part(x)]
        outs, _ = _parted(called)
        return [
            self._first(unwrap_escaped(x), axis, info.batch_size)
            for x, axis in zip(outs, axes, strict=True)
        ]

    def _first(self, out: Tensor, axis: int | None, size: int) -> Any:
        """Return a result with the axis of the samples first."""
        if axis is None:
            return _expanded(out, size)
        if not -out.ndim <= axis < out.ndim or out.shape[axis] != size:
            required = f"an axis of {size} samples at each of out_dims required"
            came = f"axis {axis} of a result of shape {out.shape}"
            raise ShapeError(compose(f"{self.name}.vmap", required, came))
        return TENSOR_XP.moveaxis(out, axis, 0)


class _Pull(_Step):
    """The call that backward makes: of the gradients, through what was recorded.

    Its arguments are those of the call before, and then the cotangents that were given.
    """

    def __init__(
        self, step: Any, parts: _Parts, wanted: Sequence[bool], given: Sequence[bool]
    ) -> None:
        self._parts, self._wanted, self._given = parts, wanted, given
        self.name = step.name

    def on_parts(self, inputs: _Inputs) -> _Parts:
        info, values, batched, tracked, level = inputs
        first, level = len(self._wanted), max(level, self._parts.level)
        parts, recorded = self._parts.of_samples(info.batch_size), any(tracked)
        kept = STATE.get().grad and (self._parts.kept or has_graph(values[first:]))
        columns = [
            parts.seeds(v, b, level if t else None)
            for v, b, t in zip(values[first:], batched[first:], tracked[first:], strict=True)
        ]
        pairs = zip(parts.places, zip(*columns, strict=True), strict=True)
        places = [[*row, *seeds] for row, seeds in pairs]
        chosen = [[*itertools.compress(row, self._wanted)] for row in parts.places]
        calls = [*zip(parts.outs, places, chosen, strict=True)]
        # What stands for an argument of several samples has a gradient by each of them.
        ids = [id(p) for row in chosen for p in row]
        rows = []
        for part in [[call] for call in calls] if len({*ids}) < len(ids) else [calls]:
            rows += run_recorded(level, self._pull, part, kept or recorded)
        kept = kept or not recorded
        return _Parts(places, rows, parts.size, kept, level, parts.together)

    def _pull(self, calls: Sequence[tuple[Any, Any, Any]], recorded: bool) -> list[list[Tensor]]:
        """Return what is pulled back, together, through what was recorded of some calls."""
        roots, cotangents, chosen = [], [], []
        variables: list[Tensor] = []
        for outs, places, wanted in calls:
            seeds = places[len(self._wanted) :]
            for out, seed in zip(itertools.compress(outs, self._given), seeds, strict=True):
                if out.requires_grad:
                    roots.append(out)
                    cotangents.append(seed)
            chosen += wanted
            variables += filter(NODE, places)
        result: Sequence[Tensor | None] = [None] * len(chosen)
        if roots:
            result = engine.pulled_back(roots, chosen, cotangents, True, recorded, variables)
        gradients = [
            zeros_like(t.detach()) if g is None else unwrap_escaped(g)
            for t, g in zip(chosen, result, strict=True)
        ]
        each = len(chosen) // len(calls)
        return [gradients[k * each : (k + 1) * each] for k in range(len(calls))]


# -- on batches ------------------------------------------------------------------------------------
def call_by_sample(library: Any, function: Any, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of a function for all samples, and record its node."""
    step = function
    if not isinstance(function, _Step):
        step = _BySample(UserCall(_dispatched(function), tensors, {}, "vmap", False))
    recorded, size, randomness = STATE.get().grad, 0, "different"
    values, batched, tracked = [], [], []
    for t in tensors:
        array = t._data
        values.append(to_tensor(array.value))
        batched.append(array.batched)
        tracked.append(recorded and t._node is not None)
        size = array.value.shape[0] if array.batched else size
    own = library.one_run([t._data for t in tensors])
    for running in WRAPPING.get():
        if running.library is library:
            randomness = running.randomness
    inputs = _Inputs(VmapInfo(size, randomness), values, batched, tracked, new_level())
    parts, result = run_within(library, _joined, library, own, step, inputs)
    return record_call(step.name, tensors, result, partial(_Pull, step, parts))  # type: ignore[no-any-return]


def _dispatched(function: Any) -> Callable[..., list[Tensor]]:
    """Return a function of tensors of one sample, which may be wrapped further in."""

    def call(*tensors: Tensor) -> list[Tensor]:
        return call_function(function, tensors)

    call.__name__ = name_of_function(function)
    return call


def _joined(library: Any, own: Any, step: _Step, inputs: _Inputs) -> tuple[_Parts, list[Any]]:
    parts = step.on_parts(inputs)
    outs, has_axis = parts.joined(library, step.name), bool(parts.size)
    return parts, [library.array_class(part_of(out), has_axis, own) for out in outs]
