"""One call of a user's operation, from the end of forward to what the caller gets.

Owns the giving of history to results: which output is an input changed in place, which is an
input or a view of one, which is not differentiable; and the `Record` that the node keeps.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any

from pullback.arrays import library_of
from pullback.core import tree
from pullback.core.binding import Arguments
from pullback.core.context import Context
from pullback.core.function import record_custom
from pullback.core.hooks import lend
from pullback.core.inplace import check_allowed, rebase
from pullback.core.node import Meta, MultiNode, Node
from pullback.core.tensor import Tensor, box
from pullback.core.views import CUSTOM, View
from pullback.errors import ArgumentError, InplaceError


class Record:
    """What a node of a user's operation holds: its context, and what went in and came out."""

    __slots__ = ("arguments", "ctx", "inputs", "outputs", "structure")

    def __init__(
        self,
        ctx: Context,
        arguments: Arguments,
        inputs: list[Meta | None],
        outputs: list[Meta | None],
        structure: Any,
    ) -> None:
        self.ctx = ctx
        self.arguments = arguments  # with tensors replaced by True, so none is kept alive
        self.inputs = inputs  # one an input of the node; None where it is not tracked
        self.outputs = outputs  # one an output leaf; None where it is no tensor
        self.structure = structure  # of the outputs, where containers are nested

    @property
    def saved_variables(self) -> Any:
        """What was saved, by name."""
        return self.ctx.saved_variables

    def output_grads(self, node: Node, g: Any) -> list[Any]:
        """Return one gradient an output, as backward is given them."""
        raw = g if isinstance(node, MultiNode) else [g]
        if raw is None:
            raw = [None] * len(self.outputs)
        materialize = self.ctx._materialize
        grads = [
            box(meta.zeros()) if x is None and meta is not None and materialize else lend(x)
            for x, meta in zip(raw, self.outputs, strict=True)
        ]
        if self.structure is None:
            return grads
        pieces = iter(grads)
        return [tree.map_leaves(lambda _: next(pieces), item) for item in self.structure]


class Call:
    """One call: the operation, its context, what the caller passed and what forward saw."""

    __slots__ = ("arguments", "ctx", "inner", "inputs", "op")

    def __init__(
        self,
        op: Any,
        ctx: Context,
        arguments: Arguments,
        inputs: list[Tensor | None],
        inner: Sequence[Any],
    ) -> None:
        self.op = op
        self.ctx = ctx
        self.arguments = arguments
        self.inputs = inputs
        self.inner = list(tree.leaves(inner)) if op.traverse else inner

    # -- changes in place ---------------------------------------------------------------------
    def check_inputs(self, versions: list[int | None]) -> None:
        """Raise where forward changed an input in place and did not say so."""
        dirty = self.ctx._dirty
        for i, (outer, before) in enumerate(zip(self.inputs, versions, strict=True)):
            if outer is None:
                continue
            marked = any(d is self.inner[i] for d in dirty)
            if not marked and outer._counter[0] != before:
                raise InplaceError(
                    f"{self.op.name}: forward changed its argument '{self._name(i)}' by an inplace "
                    "operation without saying so.\nhint: call "
                    f"ctx.mark_dirty({self._name(i)}) and return it, or work on a clone()."
                )
            if marked and outer._counter[0] == before:
                outer._counter[0] += 1  # written through the array itself
        for d in dirty:
            if not any(d is value for value in self.inner):
                warnings.warn(
                    f"{self.op.name}: ctx.mark_dirty was given a tensor that is not an input",
                    stacklevel=5,
                )

    def _name(self, i: int) -> str:
        if not self.op.traverse:
            return str(self.arguments.names[i])
        for name, value in zip(self.arguments.names, self.arguments.values, strict=True):
            i -= sum(1 for _ in tree.leaves(value))
            if i < 0:
                return str(name)
        return "?"

    def _changed_input(self, out: Any) -> int | None:
        """Return which input `out` is, if it is one that forward marked dirty."""
        if any(out is d for d in self.ctx._dirty):
            for i, value in enumerate(self.inner):
                if out is value:
                    return i
        return None

    # -- results ------------------------------------------------------------------------------
    def untracked(self, result: Any) -> Any:
        """Return the results of a call that is not recorded."""
        if not self.ctx._dirty:
            return result

        def outer(out: Any) -> Any:
            i = self._changed_input(out)
            if i is None:
                return out
            tensor = self.inputs[i]
            assert tensor is not None
            tensor._data = out._data
            return tensor

        return tree.map_leaves(outer, result)

    def tracked(self, result: Any) -> Any:
        """Return the results with their history."""
        outs = [result] if result.__class__ is Tensor else list(tree.leaves(result))
        unmarked = self.ctx._non_differentiable
        places: dict[int, Any] = {
            id(t): ("input", i) for i, t in enumerate(self.inner) if isinstance(t, Tensor)
        }
        live = False
        metas: list[Meta | None] = []
        for i, out in enumerate(outs):
            if isinstance(out, Tensor):
                metas.append(Meta(library_of(out._data), out._data))
                places.setdefault(id(out), ("output", i))
                if self._changed_input(out) is not None:
                    places[id(out)] = ("output", i)
                live = live or self._differentiable(out, unmarked)
            else:
                metas.append(None)
        self._check_dirty_returned(outs)
        if not live:
            return self.untracked(result)
        node = self._node(metas, result, places)
        made: dict[int, Tensor] = {}
        for i, out in enumerate(outs):
            if isinstance(out, Tensor) and id(out) not in made:
                made[id(out)] = self._outer(out, i, node, unmarked, len(outs))
        self.ctx._forget_marks()
        if result.__class__ is Tensor:
            return made[id(result)]
        return tree.map_leaves(lambda out: made.get(id(out), out), result)

    @staticmethod
    def _differentiable(out: Tensor, unmarked: Sequence[Tensor]) -> bool:
        return out.dtype.is_inexact and not any(out is t for t in unmarked)

    def _node(self, metas: list[Meta | None], result: Any, places: dict[int, Any]) -> Node:
        """Return the node of this call, its saved values sealed."""
        targets = tuple([None if t is None else t._node for t in self.inputs])
        inputs = [
            None if t is None or t._node is None else Meta(library_of(t._data), t._data)
            for t in self.inputs
        ]
        items = tree.children(result) or []
        nested = any(tree.children(item) is not None for _, item in items)
        structure = [tree.map_leaves(lambda _: None, item) for _, item in items] if nested else None
        given = self.arguments
        marks = [tree.map_leaves(_mark, v) if self.op.traverse else _mark(v) for v in given.values]
        arguments = Arguments(given.names, marks, given.groups)
        record = Record(self.ctx, arguments, inputs, metas, structure)
        node = record_custom(self.op, targets, record, metas)
        owners: Sequence[int] = range(len(targets))
        if self.op.traverse:
            owners = [k for k, v in enumerate(given.values) for _ in tree.leaves(v)]
        self.ctx._seal(weakref.ref(node), places, owners)
        return node

    def _check_dirty_returned(self, outs: list[Any]) -> None:
        for i, value in enumerate(self.inner):
            if any(value is d for d in self.ctx._dirty) and not any(value is o for o in outs):
                raise ArgumentError(
                    f"{self.op.name}: some elements marked as dirty during the forward method were "
                    f"not returned as output: '{self._name(i)}'.\nhint: return it from forward."
                )

    def _outer(
        self, out: Tensor, i: int, node: Node, unmarked: Sequence[Tensor], count: int
    ) -> Tensor:
        """Return the caller's tensor for one output of forward."""
        target = node.output(i) if self._differentiable(out, unmarked) else None
        k = self._changed_input(out)
        if k is not None:
            return self._changed(out, k, target, count)
        result = box(out._data, target, out._counter)
        source = self._source(out)
        if source is not None:
            base = source if source._view is None else source._view.base
            result._view = View(base, None, CUSTOM)
        return result

    def _source(self, out: Tensor) -> Tensor | None:
        """Return the caller's input that `out` is, or is a view of."""
        base = out if out._view is None else out._view.base
        for inner, outer in zip(self.inner, self.inputs, strict=True):
            if outer is not None and (inner is out or inner is base):
                return outer
        return None

    def _changed(self, out: Tensor, k: int, target: Any, count: int) -> Tensor:
        """Give an input that forward changed in place its new history, and return it."""
        outer = self.inputs[k]
        assert outer is not None
        if outer._view is not None and count > 1:
            raise InplaceError(
                f"{self.op.name}: forward modifies inplace an input that is a view of another "
                "Tensor, and has several outputs; its history could not follow.\n"
                "hint: return only that tensor, or clone() the argument before the call."
            )
        check_allowed(self.op.name, outer, [t for t in self.inputs if t is not None])
        if outer._data is not out._data:
            outer._data = out._data
        rebase(outer, target)
        return outer


def _mark(value: Any) -> Any:
    return True if isinstance(value, Tensor) else None
