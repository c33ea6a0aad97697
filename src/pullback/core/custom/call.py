"""One call of a user's operation: any arguments, any mode, any results.

Owns what the function that users call (call_codegen.py), which has looked at the arguments, leaves
to it: forward runs unrecorded in any mode, and its results get their node: which output is
an input changed in place, which is an input or a view of one, which is not differentiable.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from numbers import Number
from sys import getrefcount
from time import perf_counter
from typing import Any, NamedTuple

from pullback.arrays import INTERCEPTING, NUMPY, dtype_of, is_array, join, library_of, ndarray
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import Context, forward_context, saved_by
from pullback.core.custom.memory import count_together, position_of
from pullback.core.custom.signature import Arguments
from pullback.core.function.inplace import check_allowed, rebase, write
from pullback.core.function.record import warn_of_lost
from pullback.core.graph.modes import STATE, Mode, in_forward
from pullback.core.graph.node import (
    NO_TENSOR,
    UNTRACKED,
    CustomNode,
    Meta,
    fill,
    levels_of,
    meta_of,
)
from pullback.core.graph.observer import Observer
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import Tensor, box, class_for_arrays
from pullback.core.tensor.versions import BORROWED, EPOCH, bump, count_with, counter_of, version_of
from pullback.core.tensor.views import CUSTOM, NO_GRAD_VIEW, make_view
from pullback.errors import InplaceError, UntrackedTensorWarning, warn_user

_scalar = NUMPY.xp.generic
_INEXACT = frozenset(
    NUMPY.xp.dtype(name) for name in ("float16", "float32", "float64", "complex64", "complex128")
)
BARE = frozenset((ndarray, *(dtype.type for dtype in _INEXACT)))  # what becomes a tensor
_NUMBERS = frozenset((int, bool, str, type(None)))


class Call(NamedTuple):
    """One call of a user's operation whose arguments were looked at; `run` does what is left."""

    op: Any
    arguments: Arguments  # the names of the values
    values: Sequence[Any]  # those of forward's parameters, in order
    args: Sequence[Any]  # these, or the leaves of the containers among them if they are traversed
    # One for each of `args`: what forward is called with, the edge target where it is tracked, the
    # version of a tensor's memory, and what a gradient must fit, if it is as in the last call.
    detached: Sequence[Any]
    edges: tuple[Any, ...]
    versions: Sequence[int | None]
    metas: tuple[Meta, ...] | None
    cls: type[Tensor]  # of the results
    mode: Mode  # the caller's
    seconds: float | None = None  # how long forward took, where an observer looks at the call

    def run(self) -> Any:
        """Run forward unrecorded, in any mode, and record it."""
        if INTERCEPTING and (result := self._intercepted()) is not NotImplemented:
            return result
        if self.cls is Tensor and (cls := class_for_arrays(self.args)) is not Tensor:
            self = self._replace(cls=cls)
        edges, detached = self.edges, self.detached
        if not self.mode.grad or edges.count(None) == len(edges):
            if self.mode.forward:
                warn_of_lost(self.op.name, edges)
            edges = ()  # nothing is recorded
        ctx = forward_context(self.op, self.arguments, edges or (None,) * len(detached))
        epoch = EPOCH[0]
        begun = perf_counter()
        try:
            STATE.set(in_forward(self.mode))
            result = self._run_forward(ctx)
        finally:
            STATE.set(self.mode)
        if (observer := self.mode.observer) is not None:
            self = self._replace(seconds=perf_counter() - begun)
            self._show(observer, ctx, result)
        if result.__class__ in BARE and self.has_tensors:
            result = as_result(result)
        is_ordinary = EPOCH[0] == epoch and not ctx._marks and _is_new(result, detached)
        if not is_ordinary or ordinary(self.op, result._data) is None:
            return (self if edges else self._replace(edges=())).results(ctx, result, epoch)
        (result,) = count_together(self.args, detached, (result,), ctx)
        node = None
        if edges:
            node = self.node(ctx, (result,))
            if getrefcount(ctx) != SOLE:
                ctx._outlive(node)
        if self.cls is not Tensor or getrefcount(result) != SOLE:  # forward may have kept its own
            return box(result._data, node, counter_of(result), self.cls)
        result._node = node
        return result

    @property
    def has_tensors(self) -> bool:
        """Whether forward was called with a tensor, so that its floating results are tensors."""
        return any(isinstance(value, Tensor) for value in self.detached)

    def results(self, ctx: Context, result: Any, epoch: int) -> Any:
        """Return what the caller gets for what forward returned; `EPOCH` was `epoch` before it."""
        return Results(self, ctx).of(result, epoch)

    def _intercepted(self) -> Any:
        """Return what a library that wraps the arguments makes of the call, if it takes it."""
        libraries = set()
        for a in self.args:
            if isinstance(a, Tensor) and (array := a.data_array()).__class__ in INTERCEPTING:
                libraries.add(library_of(array))
        library = join(libraries) if libraries else None
        if library is None or library.call is None:
            return NotImplemented
        return library.call(self.op, self.arguments, self.values)

    def _run_forward(self, ctx: Context) -> Any:
        op, detached = self.op, self.arguments.in_containers(self.detached)
        positional, keywords = op.signature.spread(self.arguments, detached)
        try:
            if op.setup_context is None:
                return op.forward(ctx, *positional, **keywords)
            result = op.forward(*positional, **keywords)
            op.setup_context(ctx, tuple(detached), result)
            return result
        except AttributeError as error:
            hint_at_tensors(op, self.arguments, detached, error)
            raise

    def _show(self, observer: Observer, ctx: Context, result: Any) -> None:
        """Show an observer what forward made of its arguments."""
        before = [
            (self.arguments.owner(i), outer)
            for i, (outer, detached) in enumerate(zip(self.args, self.detached, strict=True))
            if position_of(detached, ctx._dirty) is None  # else its old values are gone
        ]
        observer.result(self.op.name, before, list(tree.leaves(result)))

    def node(self, ctx: Context, outs: Sequence[Any]) -> CustomNode:
        """Return the node of the call; what forward left in its context moves there."""
        node = fill(CustomNode(), self.op, len(self.edges), levels_of(self.edges))
        node.record = self.edges
        node.saved, node.names = saved_by(ctx, self.detached, outs, self.mode.hooks)
        node.arguments = self.arguments
        metas = self.metas
        node.input_metas = describe(self.op, self.args, self.edges) if metas is None else metas
        node.metas = tuple([meta_of(o._data) if isinstance(o, Tensor) else None for o in outs])
        if self.mode.observer is not None:
            self.mode.observer.recorded(node, outs, self.seconds)
        return node


def hint_at_tensors(
    op: Any, arguments: Arguments, detached: Sequence[Any], error: AttributeError
) -> None:
    """Say how to call an operation whose forward asked arrays or numbers for what tensors have."""
    asked, name = error.obj, str(error.name)
    if not (is_array(asked) or isinstance(asked, (Number, list))) or not hasattr(Tensor, name):
        return
    i = position_of(asked, detached)
    owner = None if i is None else arguments.owner(i)
    if owner is None and any(isinstance(v, Tensor) for v in tree.leaves(list(detached))):
        return
    came = f"got {type(asked).__name__} as '{owner}'"
    came = "was called with no tensor" if owner is None else came
    way = f"; np.asarray({owner or 'x'}) in forward takes both" if name == "numpy" else ""
    error.add_note(
        f"hint: {op.name} {came}, and tensors have `{name}`: "
        f"pb.asarray({owner or 'x'}) makes a tensor of an array or a number{way}."
    )


def describe(op: Any, args: Sequence[Any], edges: Sequence[Any]) -> tuple[Meta, ...]:
    """Return what a gradient of each argument must fit, see `CustomNode.input_metas`."""
    result = tuple(map(_description, args, edges))
    # The written call compares shapes and dtypes, which arrays of another library may share.
    if all(meta[2] in _OF_NUMPY for meta in result):
        op.described = result
    return result


_OF_NUMPY = ("cpu", UNTRACKED[2], NO_TENSOR[2])


def _description(value: Any, edge: Any) -> Meta:
    if not isinstance(value, Tensor):
        return NO_TENSOR
    return UNTRACKED if edge is None else meta_of(value._data)


# -- results ---------------------------------------------------------------------------------------
def _is_new(result: Any, detached: Sequence[Any]) -> bool:
    """Return whether forward made a tensor, which is no view of another."""
    if result.__class__ is not Tensor or result._base is not None or result._node is not None:
        return False
    for value in detached:  # noqa: SIM110  (a generator would cost more than the rest)
        if value is result:
            return False
    return True


def ordinary(op: Any, array: Any) -> tuple[Meta, ...] | None:
    """Return the description of a result that needs no more than a node, None for any other."""
    if array.__class__ is not ndarray or array.dtype not in _INEXACT:
        return None
    op.result_described = result = (meta_of(array),)
    return result


def new_results(
    args: Sequence[Any], detached: Sequence[Any], results: Sequence[Any], ctx: Context
) -> tuple[list[Any] | None, tuple[Meta | None, ...]]:
    """Return several results with their descriptions.

    None for the results unless they are new floating tensors of NumPy's, or numbers.
    """
    outs: list[Any] = []
    metas: list[Meta | None] = []
    tensors = set[int]()
    for out in results:
        t = as_result(out) if out.__class__ in BARE else out
        meta = None
        if t.__class__ is Tensor:
            known = ordinary(ctx._op, t._data) if _is_new(t, detached) else None
            if known is None or id(t) in tensors:
                return None, ()
            tensors.add(id(t))
            meta = known[0]
        elif t.__class__ not in _NUMBERS:
            return None, ()
        outs.append(t)
        metas.append(meta)
    if not tensors:
        return None, ()
    out = t = None  # would be references
    bare = [1 if out.__class__ in BARE else 0 for out in results]
    return count_together(args, detached, outs, ctx, bare), tuple(metas)


def own_results(outs: Sequence[Any], node: CustomNode | None, cls: type[Tensor]) -> list[Any]:
    """Return the caller's tensors for several results of forward, which may have kept its own."""
    results = []
    for i, t in enumerate(outs):
        if t.__class__ is Tensor:
            t = box(t._data, None if node is None else node.output(i), counter_of(t), cls)
        results.append(t)
    return results


class Results:
    """What the caller gets for what forward returned, in every case."""

    def __init__(self, call: Call, ctx: Context) -> None:
        self.call, self.ctx = call, ctx
        self.op, self.args, self.detached = call.op, call.args, call.detached
        # The numbers of the tensors that forward marked, which ctx keeps.
        self.dirty = set(map(id, ctx._dirty))
        self.non_differentiable = set(map(id, ctx._non_differentiable))

    def of(self, result: Any, epoch: int) -> Any:
        """Return the results, recorded where a gradient is needed."""
        edges = self.call.edges
        tracked = edges.count(None) != len(edges)
        outs, structure = tree.flatten(result)
        bare = [0] * len(outs)  # how many variables hold an array that forward returned as such
        if self.call.has_tensors:
            for i, out in enumerate(outs):
                if out.__class__ is not Tensor:
                    outs[i] = as_result(out)
                    bare[i] = 2 if structure is None else 1
            out = None  # would be one more
        if self.dirty or EPOCH[0] != epoch:
            self.check_inputs()
        outs = count_together(self.args, self.detached, outs, self.ctx, bare)
        outs = self.recorded(outs, structure) if tracked else list(map(self.unrecorded, outs))
        return tree.unflatten(structure, outs)

    # -- changes in place ---------------------------------------------------------------------
    def check_inputs(self) -> None:
        """Raise where forward changed an input in place and did not say so."""
        pairs = list(zip(self.args, self.detached, strict=True))
        changed = [outer for outer, value in pairs if id(value) in self.dirty]
        for i, (outer, before) in enumerate(zip(self.args, self.call.versions, strict=True)):
            if before is None:
                continue
            # The same tensor, or one that shares its memory, may be passed as another argument.
            marked = any(counter_of(other) is counter_of(outer) for other in changed)
            if not marked and version_of(outer) != before:
                name = self.ctx._arguments.owner(i)
                raise InplaceError(
                    f"{self.op.name}: forward changed its argument '{name}' by an inplace "
                    f"operation without saying so.\nhint: call ctx.mark_dirty({name}) and return "
                    "it, or work on a clone()."
                )
            if marked and version_of(outer) == before:
                bump(outer)  # written through the array itself
        for outer, value in pairs:
            if outer is not value and id(value) in self.dirty:
                count_with(outer, value)
        if not self.dirty.issubset(map(id, self.detached)):
            warn_user(f"{self.op.name}: ctx.mark_dirty was given a tensor that is not an input")

    def _changed_input(self, out: Any) -> int | None:
        """Return which input `out` is, if it is one that forward marked dirty."""
        return position_of(out, self.detached) if id(out) in self.dirty else None

    # -- results ------------------------------------------------------------------------------
    def unrecorded(self, out: Any) -> Any:
        """Return a result of a call that is not recorded."""
        if not isinstance(out, Tensor):
            return out
        i = self._changed_input(out)
        if i is not None:
            check_allowed(self.op.name, self.args[i])
            return self._written(self.args[i], out)
        source = self._source(out)
        if source is None or source._node is None:
            return out if self.call.cls is Tensor else self._boxed_as(out, None)
        if position_of(out, self.detached) is not None:
            return source._alias()
        view = self._boxed_as(out, None)
        make_view(view, source, NO_GRAD_VIEW)
        return view

    def _boxed_as(self, out: Tensor, node: Any) -> Tensor:
        return box(
            out._data, node, out._counter if out._base is None else counter_of(out), self.call.cls
        )

    def recorded(self, outs: list[Any], structure: tree.Structure | None) -> list[Any]:
        """Return the results with their node."""
        if self.dirty:
            self._check_dirty_returned(outs)
        differentiable = [isinstance(out, Tensor) and self._differentiable(out) for out in outs]
        self._warn_of_objects(outs)
        if True not in differentiable:
            self._warn_of_numbers(outs)
            return list(map(self.unrecorded, outs))
        items = [] if structure is None else structure.items
        if items.count(None) != len(items):
            self.ctx._structure = [
                None if item is None else tree.unflatten(item, [None] * item.size) for item in items
            ]
        node = self.call.node(self.ctx, outs)
        self.ctx._outlive(node)
        results: dict[int, Tensor] = {}
        for i, out in enumerate(outs):
            if isinstance(out, Tensor) and id(out) not in results:
                target = node.output(i) if differentiable[i] else None
                results[id(out)] = self._outer(out, target, len(outs))
        return [results.get(id(out), out) for out in outs]

    def _warn_of_numbers(self, outs: Sequence[Any]) -> None:
        """Warn where Python's numbers are all that forward made of tracked tensors."""
        numbers = [out for out in outs if isinstance(out, (float, complex))]
        if numbers and not any(isinstance(out, Tensor) for out in outs):
            self._warn_of(numbers[0], "them. Return a tensor: pb.asarray(x)")

    def _warn_of_objects(self, outs: Sequence[Any]) -> None:
        """Warn of tensors in an object that is not looked into."""
        for out in outs:
            if (
                out.__class__ not in _NUMBERS
                and not isinstance(out, Tensor)
                and _hides_tensors(out)
            ):
                containers = "a tuple, list, dict, named tuple or dataclass"
                self._warn_of(out, f"what it holds. Return {containers}")

    def _warn_of(self, out: Any, cut: str) -> None:
        """Warn of a result that ends the graph; `cut` says to what no gradient flows."""
        warn_user(
            f"{self.op.name}: forward of tensors that require grad returned a "
            f"{type(out).__name__}, so no gradient flows to {cut}.",
            UntrackedTensorWarning,
        )

    def _differentiable(self, out: Tensor) -> bool:
        return out.dtype.is_inexact and id(out) not in self.non_differentiable

    def _check_dirty_returned(self, outs: list[Any]) -> None:
        for i, value in enumerate(self.detached):
            if id(value) in self.dirty and position_of(value, outs) is None:
                raise InplaceError(
                    f"{self.op.name}: some elements marked as dirty during the forward method were "
                    f"not returned as output: '{self.ctx._arguments.owner(i)}'.\n"
                    "hint: return it from forward."
                )

    def _outer(self, out: Tensor, target: Any, count: int) -> Tensor:
        """Return the caller's tensor for one of `count` outputs of forward, whose edge is given."""
        k = self._changed_input(out)
        if k is not None:
            return self._changed(out, self.args[k], target, count)
        result = self._boxed_as(out, target)
        source = self._source(out)
        if source is not None:
            make_view(result, source, CUSTOM)
        return result

    def _source(self, out: Tensor) -> Tensor | None:
        """Return the caller's input that `out` is, or is a view of."""
        for tensor in (out,) if out._base is None else (out, out._base):
            if (i := position_of(tensor, self.detached)) is not None:
                return self.args[i]  # type: ignore[no-any-return]
        return None

    def _changed(self, out: Tensor, outer: Tensor, target: Any, count: int) -> Tensor:
        """Give an input that forward changed in place its new node, and return it."""
        if outer._base is not None and count > 1:
            raise InplaceError(
                f"{self.op.name}: forward modifies inplace an input that is a view of another "
                "Tensor, and has several outputs; its graph could not follow.\n"
                "hint: return only that tensor, or clone() the argument before the call."
            )
        check_allowed(self.op.name, outer, [t for t in self.args if isinstance(t, Tensor)])
        rebase(self._written(outer, out), target)
        return outer

    @staticmethod
    def _written(outer: Tensor, out: Tensor) -> Tensor:
        """Return the caller's tensor with the array that forward left, where that is another."""
        if outer._data is not out._data:
            write(outer, out._data)
        return outer


def _hides_tensors(value: Any) -> bool:
    """Return whether an object, which is no container, has tensors: itself, or its attributes."""
    if is_array(value) or callable(value):
        return False
    inner = [v for v in gc.get_referents(value) if not isinstance(v, type)]
    return any(isinstance(leaf, Tensor) for v in inner for leaf in tree.leaves(v))


def as_result(value: Any) -> Any:
    """Return a bare floating array as a tensor: forward may compute with the library itself."""
    # The array may be the user's own: changing the result in place changes a copy.
    if value.__class__ is ndarray and value.dtype in _INEXACT:
        return box(value, None, BORROWED)
    if is_array(value) and dtype_of(value.dtype).is_inexact:
        return box(library_of(value).tidy(value), None, BORROWED)
    if isinstance(value, _scalar) and value.dtype.kind in "fc":  # NumPy's of 0 dimensions
        return box(NUMPY.asarray(value))
    return value
