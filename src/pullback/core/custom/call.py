"""One call of a user's operation: any arguments, any mode, any results.

Owns what the written function of an operation (entering.py), which has looked at the arguments,
leaves to it: forward runs unrecorded in any mode, and its results get their node: which output is
an input changed in place, which is an input or a view of one, which is not differentiable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Number
from sys import getrefcount
from typing import Any

from pullback.arrays import INTERCEPTING, NUMPY, dtype_of, is_array, join, library_of
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import Context, forward_context, saved_by
from pullback.core.custom.memory import count_together
from pullback.core.custom.signature import Arguments
from pullback.core.function.inplace import check_allowed, rebase, write
from pullback.core.function.record import warn_of_lost
from pullback.core.graph.modes import STATE, Mode, in_forward
from pullback.core.graph.node import NO_TENSOR, UNTRACKED, CustomNode, Meta, fill, meta_of
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import BORROWED, EPOCH, bump, count_with, counter_of, version_of
from pullback.core.tensor.views import CUSTOM, NO_GRAD_VIEW, make_view
from pullback.errors import InplaceError, warn_user

_ndarray = NUMPY.array_types[0]
_CONTAINERS = (list, tuple, dict)


def call(
    op: Any,
    arguments: Arguments,
    values: Sequence[Any],
    given: Sequence[Any],
    inner: Sequence[Any],
    edges: tuple[Any, ...],
    versions: Sequence[int | None],
    described: tuple[Any, ...] | None,
    cls: type[Tensor],
    mode: Mode,
) -> Any:
    """Run forward unrecorded, and record it: what a written function does not do itself.

    Parameters
    ----------
    op : CustomOp
    arguments : Arguments
        The names of the values.
    values, given : sequences
        The values of forward's parameters, in order; these, or the leaves of the containers among
        them where those are traversed. One of each that follows stands for each `given`:
    inner : sequence
        What forward is called with.
    edges : tuple
        Edge targets, None where nothing is tracked.
    versions : sequence
        The version of each tensor's memory, None for what is no tensor.
    described : tuple or None
        What a gradient of each must fit, None where the last call's does not hold for this one.
    cls : type
        The class of the results.
    mode : Mode
        The caller's mode.
    """
    if INTERCEPTING and (taken := _intercepted(op, arguments, given, values)) is not NotImplemented:
        return taken
    if not mode.grad or edges.count(None) == len(edges):
        if mode.forward:
            warn_of_lost(op.name, edges)
        edges = ()  # nothing is recorded
    ctx = forward_context(op, arguments, edges or (None,) * len(given))
    epoch = EPOCH[0]
    try:
        STATE.set(in_forward(mode))
        result = _run_forward(op, ctx, arguments, values, inner)
    finally:
        STATE.set(mode)
    if mode.observer is not None:
        _show(op, ctx, given, inner, result, mode)
    if not (EPOCH[0] == epoch and _is_ordinary(result, inner, ctx)):
        return Results(op, ctx, given, edges, described, inner, mode, cls).of(result, versions)
    count_together(given, inner, (result,))
    node = None
    if edges:
        node = _new_node(op, ctx, edges, described, given, inner, (result,), mode)
        if getrefcount(ctx) != SOLE:
            ctx._outlive(node)
    if cls is not Tensor or getrefcount(result) != SOLE:  # forward may have kept its own
        return box(result._data, node, counter_of(result), cls)
    result._node = node
    return result


def _intercepted(op: Any, arguments: Arguments, given: Sequence[Any], values: Sequence[Any]) -> Any:
    """Hand the call to a library that wraps its arguments, if it takes it; else NotImplemented."""
    arrays = [a.data_array() for a in given if isinstance(a, Tensor)]
    libraries = {library_of(a) for a in arrays if a.__class__ in INTERCEPTING}
    library = join(libraries) if libraries else None
    if library is None or library.call is None:
        return NotImplemented
    return library.call(op, arguments, values)


def _run_forward(
    op: Any, ctx: Context, arguments: Arguments, values: Sequence[Any], inner: Sequence[Any]
) -> Any:
    if op.traverse:
        pieces = iter(inner)
        inner = tree.map_leaves(lambda _: next(pieces), list(values))
    positional, keywords = op.signature.spread(arguments, inner)
    try:
        if op.setup_context is None:
            return op.forward(ctx, *positional, **keywords)
        result = op.forward(*positional, **keywords)
        op.setup_context(ctx, tuple(inner), result)
        return result
    except AttributeError as error:
        if not any(isinstance(value, Tensor) for value in tree.leaves(list(inner))):
            _hint_at_tensors(op, error)
        raise


def _hint_at_tensors(op: Any, error: AttributeError) -> None:
    """Say how to call an operation whose forward asked arrays or numbers for what tensors have."""
    asked, name = error.obj, str(error.name)
    if (is_array(asked) or isinstance(asked, (Number, list))) and hasattr(Tensor, name):
        error.add_note(
            f"hint: {op.name} was called with no tensor, and tensors have `{name}`: "
            "pb.asarray(x) makes a tensor of an array or a number."
        )


def describe(op: Any, given: Sequence[Any], edges: Sequence[Any]) -> tuple[Meta, ...]:
    """Return what a gradient of each argument must fit, see `CustomNode.given`."""
    found = tuple(map(_description, given, edges))
    # The written call compares shapes and dtypes, which arrays of another library may share.
    if all(meta[2] in _OF_NUMPY for meta in found):
        op.described = found
    return found


_OF_NUMPY = ("cpu", UNTRACKED[2], NO_TENSOR[2])


def _description(value: Any, edge: Any) -> Meta:
    if not isinstance(value, Tensor):
        return NO_TENSOR
    return UNTRACKED if edge is None else meta_of(value._data)


def _show(
    op: Any, ctx: Context, given: Sequence[Any], inner: Sequence[Any], result: Any, mode: Mode
) -> None:
    """Show the observer what forward made of its arguments."""
    before = [
        (ctx._arguments.owner(i), outer)
        for i, (outer, unwrapped) in enumerate(zip(given, inner, strict=True))
        if not any(unwrapped is changed for changed in ctx._dirty)  # its old values are gone
    ]
    if mode.observer is not None:
        mode.observer.result(op.name, before, list(tree.leaves(result)))


# -- results ---------------------------------------------------------------------------------------
def _is_ordinary(result: Any, inner: Sequence[Any], ctx: Context) -> bool:
    """Return whether forward returned one new floating tensor of the default library."""
    if result.__class__ is not Tensor or result._base is not None or result._node is not None:
        return False
    if ctx._marks or ordinary(ctx._op, result._data) is None:
        return False
    for value in inner:  # noqa: SIM110  (a generator would cost more than the rest)
        if value is result:
            return False
    return True


def _new_node(
    op: Any,
    ctx: Context,
    edges: tuple[Any, ...],
    described: Any,
    given: Sequence[Any],
    inner: Sequence[Any],
    outs: Sequence[Any],
    mode: Mode,
) -> CustomNode:
    """Return the node of a call; what forward left in its context moves there.

    A written call has the same lines for a call with one ordinary result.
    """
    node = fill(CustomNode(), op, len(edges))
    node.record = edges
    node.saved, node.names = saved_by(ctx, inner, outs, mode.hooks)
    node.arguments = ctx._arguments
    node.given = describe(op, given, edges) if described is None else described
    node.metas = tuple([meta_of(o._data) if isinstance(o, Tensor) else None for o in outs])
    if mode.observer is not None:
        mode.observer.recorded(node, given, outs)
    return node


def ordinary(op: Any, array: Any) -> tuple[Meta, ...] | None:
    """Return the description of a result that needs no more than a node, None for any other."""
    if array.__class__ is not _ndarray or array.dtype.kind != "f":
        return None
    op.result_described = found = (meta_of(array),)
    return found


class Results:
    """What the caller gets for what forward returned, in every case."""

    def __init__(
        self,
        op: Any,
        ctx: Context,
        given: Sequence[Any],
        edges: tuple[Any, ...],
        described: Any,
        inner: Sequence[Any],
        mode: Mode,
        cls: type[Tensor],
    ) -> None:
        self.op = op
        self.ctx = ctx
        self.given = given
        self.edges = edges
        self.described = described
        self.inner = inner
        self.mode = mode
        self.cls = cls
        self.dirty = ctx._dirty
        self.non_differentiable = ctx._non_differentiable

    def of(self, result: Any, versions: Sequence[int | None]) -> Any:
        """Return the results, recorded where a gradient is needed."""
        if result.__class__ is not Tensor and any(isinstance(v, Tensor) for v in self.inner):
            result = tree.map_leaves(_boxed, result)
        self.check_inputs(versions)
        count_together(self.given, self.inner, list(tree.leaves(result)))
        return self.recorded(result) if self.edges else self.unrecorded(result)

    # -- changes in place ---------------------------------------------------------------------
    def check_inputs(self, versions: Sequence[int | None]) -> None:
        """Raise where forward changed an input in place and did not say so."""
        pairs = list(zip(self.given, self.inner, strict=True))
        changed = [outer for outer, value in pairs if any(value is d for d in self.dirty)]
        for i, (outer, before) in enumerate(zip(self.given, versions, strict=True)):
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
            if outer is not value and any(value is d for d in self.dirty):
                count_with(outer, value)
        if not all(any(d is value for value in self.inner) for d in self.dirty):
            warn_user(f"{self.op.name}: ctx.mark_dirty was given a tensor that is not an input")

    def _changed_input(self, out: Any) -> int | None:
        """Return which input `out` is, if it is one that forward marked dirty."""
        if any(out is d for d in self.dirty):
            for i, value in enumerate(self.inner):
                if out is value:
                    return i
        return None

    # -- results ------------------------------------------------------------------------------
    def unrecorded(self, result: Any) -> Any:
        """Return the results of a call that is not recorded."""

        def outer(out: Any) -> Any:
            if not isinstance(out, Tensor):
                return out
            i = self._changed_input(out)
            if i is not None:
                check_allowed(self.op.name, self.given[i])
                return self._written(self.given[i], out)
            source = self._source(out)
            if source is None or source._node is None:
                return out if self.cls is Tensor else self._boxed_as(out, None)
            if id(out) in self._outer_of:
                return source._alias()
            view = self._boxed_as(out, None)
            make_view(view, source, NO_GRAD_VIEW)
            return view

        return outer(result) if result.__class__ is Tensor else tree.map_leaves(outer, result)

    def _boxed_as(self, out: Tensor, node: Any) -> Tensor:
        return box(
            out._data, node, out._counter if out._base is None else counter_of(out), self.cls
        )

    def recorded(self, result: Any) -> Any:
        """Return the results with their node."""
        outs = [result] if result.__class__ is Tensor else list(tree.leaves(result))
        self._check_dirty_returned(outs)
        if not any(isinstance(out, Tensor) and self._differentiable(out) for out in outs):
            return self.unrecorded(result)
        items = tree.children(result) or []
        if any(tree.children(item) is not None for _, item in items):
            structure = [tree.map_leaves(lambda _: None, item) for _, item in items]
            self.ctx._structure = structure
        node = _new_node(
            self.op, self.ctx, self.edges, self.described, self.given, self.inner, outs, self.mode
        )
        self.ctx._outlive(node)
        made: dict[int, Tensor] = {}
        for i, out in enumerate(outs):
            if isinstance(out, Tensor) and id(out) not in made:
                made[id(out)] = self._outer(out, i, node, len(outs))
        if result.__class__ is Tensor:
            return made[id(result)]
        return tree.map_leaves(lambda out: made.get(id(out), out), result)

    def _differentiable(self, out: Tensor) -> bool:
        return out.dtype.is_inexact and not any(out is t for t in self.non_differentiable)

    def _check_dirty_returned(self, outs: list[Any]) -> None:
        for i, value in enumerate(self.inner):
            if any(value is d for d in self.dirty) and not any(value is o for o in outs):
                raise InplaceError(
                    f"{self.op.name}: some elements marked as dirty during the forward method were "
                    f"not returned as output: '{self.ctx._arguments.owner(i)}'.\n"
                    "hint: return it from forward."
                )

    def _outer(self, out: Tensor, i: int, node: CustomNode, count: int) -> Tensor:
        """Return the caller's tensor for one output of forward."""
        target = node.output(i) if self._differentiable(out) else None
        k = self._changed_input(out)
        if k is not None:
            return self._changed(out, self.given[k], target, count)
        result = self._boxed_as(out, target)
        source = self._source(out)
        if source is not None:
            make_view(result, source, CUSTOM)
        return result

    def _source(self, out: Tensor) -> Tensor | None:
        """Return the caller's input that `out` is, or is a view of."""
        found = self._outer_of.get(id(out), None)
        base = out if out._base is None else out._base
        return self._outer_of.get(id(base)) if found is None else found

    @cached_property
    def _outer_of(self) -> dict[int, Tensor]:
        pairs = zip(self.inner, self.given, strict=True)
        return {id(inner): outer for inner, outer in pairs if isinstance(inner, Tensor)}

    def _changed(self, out: Tensor, outer: Tensor, target: Any, count: int) -> Tensor:
        """Give an input that forward changed in place its new node, and return it."""
        if outer._base is not None and count > 1:
            raise InplaceError(
                f"{self.op.name}: forward modifies inplace an input that is a view of another "
                "Tensor, and has several outputs; its graph could not follow.\n"
                "hint: return only that tensor, or clone() the argument before the call."
            )
        check_allowed(self.op.name, outer, [t for t in self.given if isinstance(t, Tensor)])
        rebase(self._written(outer, out), target)
        return outer

    @staticmethod
    def _written(outer: Tensor, out: Tensor) -> Tensor:
        """Return the caller's tensor with the array that forward left, where that is another."""
        if outer._data is not out._data:
            write(outer, out._data)
        return outer


def _boxed(value: Any) -> Any:
    """Return a bare floating array as a tensor: forward may compute with the library itself."""
    if is_array(value) and dtype_of(value.dtype).is_inexact:
        # The array may be the user's own: changing the result in place changes a copy.
        return box(library_of(value).tidy(value), None, BORROWED)
    return value
