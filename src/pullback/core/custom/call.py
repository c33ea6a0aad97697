"""One call of a user's operation in general: any arguments, any mode, any results.

Owns the entering of arguments (bound to names, containers traversed, tracked tensors replaced by
untracked twins) and the giving of history to results: which output is an input changed in place,
which is an input or a view of one, which is not differentiable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from pullback.arrays import dtype_of, is_array, library_of
from pullback.core.custom import pytree as tree
from pullback.core.custom.context import Context, forward_context, seal
from pullback.core.custom.signature import Arguments
from pullback.core.debug.anomaly import check_results, remember_call, warn_user
from pullback.core.function.dispatch import new_node
from pullback.core.function.inplace import check_allowed, rebase, write
from pullback.core.graph.modes import STATE, with_grad
from pullback.core.graph.node import CustomNode, meta_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.views import CUSTOM, NO_GRAD_VIEW, UNKNOWN, View, sync
from pullback.errors import InplaceError, UntrackedTensorWarning


def general(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `op`: bind, enter, run forward unrecorded, and finish."""
    arguments, values = op.signature.bind(args, kwargs)
    mode = STATE.get()
    given = values
    if op.traverse:
        given = list(tree.leaves(values))
        arguments = Arguments(
            arguments.names, arguments.groups, tree.map_leaves(lambda _: None, values)
        )
    elif mode.grad:
        _warn_of_untracked(op, arguments, values)
    inner = [_twin(v) for v in given]  # brings views up to date
    targets = [v._node if isinstance(v, Tensor) else None for v in given]
    ctx = forward_context(op, arguments, targets if mode.grad else [None] * len(targets))
    versions = [v._counter[0] if isinstance(v, Tensor) else None for v in given]
    entering: list[Any] = inner
    if op.traverse:
        pieces = iter(inner)
        entering = tree.map_leaves(lambda _: next(pieces), values)
    STATE.set(with_grad(mode, False))
    try:
        result = _run_forward(op, ctx, arguments, entering)
    finally:
        STATE.set(mode)
    if mode.anomaly:
        before = [
            (arguments.owner(i), outer)
            for i, (outer, entered) in enumerate(zip(given, inner, strict=True))
            if not any(entered is changed for changed in ctx._dirty)  # its old values are gone
        ]
        check_results(op.name, before, tree.leaves(result), mode)
    return finish(op, ctx, given, targets, inner, versions, result)


def _run_forward(op: Any, ctx: Context, arguments: Arguments, values: Sequence[Any]) -> Any:
    positional, keywords = op.signature.spread(arguments, values)
    if op.setup_context is None:
        return op.forward(ctx, *positional, **keywords)
    result = op.forward(*positional, **keywords)
    op.setup_context(ctx, tuple(values), result)
    return result


def _twin(value: Any) -> Any:
    """Return a tracked tensor's untracked twin on the same memory; anything else as it is."""
    if isinstance(value, Tensor):
        if value._view is not None:
            sync(value)
        if value._node is not None:
            return box(value._data, None, value._counter)
    return value


def _input_meta(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return None
    return True if value._node is None else meta_of(value._data)


def _warn_of_untracked(op: Any, arguments: Arguments, values: Sequence[Any]) -> None:
    for name, value in zip(arguments.names, values, strict=True):
        if not isinstance(value, (list, tuple, dict)):
            continue
        if any(isinstance(v, Tensor) and v.requires_grad for v in tree.leaves(value)):
            warn_user(
                f"{op.name}: the argument '{name}' is a {type(value).__name__} holding a tensor "
                "that requires grad; containers are not searched, so no gradient flows to it. "
                "Pass the tensor itself, or define the operation with traverse=True.",
                UntrackedTensorWarning,
            )


def finish(
    op: Any,
    ctx: Context,
    given: Sequence[Any],
    targets: Sequence[Any],
    inner: Sequence[Any],
    versions: Sequence[int | None],
    result: Any,
) -> Any:
    """Return what the caller gets for what forward returned."""
    if result.__class__ is not Tensor and any(isinstance(value, Tensor) for value in inner):
        result = tree.map_leaves(_boxed, result)
    done = _Call(op, ctx, given, targets, inner)
    done.check_inputs(versions)
    if STATE.get().grad and any(t is not None for t in targets):
        return done.tracked(result)
    return done.untracked(result)


class _Call:
    """One call: the operation, its context, what the caller passed and what forward saw."""

    def __init__(
        self,
        op: Any,
        ctx: Context,
        given: Sequence[Any],
        targets: Sequence[Any],
        inner: Sequence[Any],
    ) -> None:
        self.op = op
        self.ctx = ctx
        self.given = given
        self.targets = targets
        self.inner = inner
        self.dirty = ctx._dirty
        self.unmarked = ctx._non_differentiable

    # -- changes in place ---------------------------------------------------------------------
    def check_inputs(self, versions: Sequence[int | None]) -> None:
        """Raise where forward changed an input in place and did not say so."""
        for i, (outer, before) in enumerate(zip(self.given, versions, strict=True)):
            if before is None:
                continue
            # The same tensor, or one that shares its memory, may be passed as another argument.
            marked = any(d._counter is outer._counter for d in self.dirty)
            if not marked and outer._counter[0] != before:
                name = self.ctx._arguments.owner(i)
                raise InplaceError(
                    f"{self.op.name}: forward changed its argument '{name}' by an inplace "
                    f"operation without saying so.\nhint: call ctx.mark_dirty({name}) and return "
                    "it, or work on a clone()."
                )
            if marked and outer._counter[0] == before:
                outer._counter[0] += 1  # written through the array itself
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
    def untracked(self, result: Any) -> Any:
        """Return the results of a call that is not recorded."""

        def outer(out: Any) -> Any:
            if not isinstance(out, Tensor):
                return out
            i = self._changed_input(out)
            if i is not None:
                return self._written(self.given[i], out)
            source = self._source(out)
            if source is None or source._node is None:
                return out
            twin = box(out._data, None, out._counter)
            twin._view = View(_base(source), UNKNOWN, NO_GRAD_VIEW)
            return twin

        return outer(result) if result.__class__ is Tensor else tree.map_leaves(outer, result)

    def tracked(self, result: Any) -> Any:
        """Return the results with their history."""
        outs = [result] if result.__class__ is Tensor else list(tree.leaves(result))
        self._check_dirty_returned(outs)
        if not any(isinstance(out, Tensor) and self._differentiable(out) for out in outs):
            return self.untracked(result)
        node = self._node(outs, result)
        made: dict[int, Tensor] = {}
        for i, out in enumerate(outs):
            if isinstance(out, Tensor) and id(out) not in made:
                made[id(out)] = self._outer(out, i, node, len(outs))
        if result.__class__ is Tensor:
            return made[id(result)]
        return tree.map_leaves(lambda out: made.get(id(out), out), result)

    def _differentiable(self, out: Tensor) -> bool:
        return out.dtype.is_inexact and not any(out is t for t in self.unmarked)

    def _node(self, outs: list[Any], result: Any) -> CustomNode:
        """Return the node of this call, its saved values sealed."""
        items = tree.children(result) or []
        if any(tree.children(item) is not None for _, item in items):
            structure = [tree.map_leaves(lambda _: None, item) for _, item in items]
            self.ctx._structure = structure
        node = new_node(CustomNode, self.op, tuple(self.targets))
        node.metas = tuple([meta_of(o._data) if isinstance(o, Tensor) else None for o in outs])
        node.given = tuple([_input_meta(v) for v in self.given])
        mode = STATE.get()
        seal(self.ctx, node, self.inner, outs, mode.hooks)
        if mode.anomaly:
            remember_call(node)
        return node

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
        result = box(out._data, target, out._counter)
        source = self._source(out)
        if source is not None:
            result._view = View(_base(source), UNKNOWN, CUSTOM)
        return result

    def _source(self, out: Tensor) -> Tensor | None:
        """Return the caller's input that `out` is, or is a view of."""
        found = self._outer_of.get(id(out), None)
        return self._outer_of.get(id(_base(out))) if found is None else found

    @cached_property
    def _outer_of(self) -> dict[int, Tensor]:
        pairs = zip(self.inner, self.given, strict=True)
        return {id(inner): outer for inner, outer in pairs if isinstance(inner, Tensor)}

    def _changed(self, out: Tensor, outer: Tensor, target: Any, count: int) -> Tensor:
        """Give an input that forward changed in place its new history, and return it."""
        if outer._view is not None and count > 1:
            raise InplaceError(
                f"{self.op.name}: forward modifies inplace an input that is a view of another "
                "Tensor, and has several outputs; its history could not follow.\n"
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
        return box(library_of(value).tidy(value), None, [0, True])
    return value


def _base(tensor: Tensor) -> Tensor:
    return tensor if tensor._view is None else tensor._view.base
