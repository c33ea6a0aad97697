"""Backward: from the gradients of some results to the gradients of what they came from.

Owns one pass through the graph. The nodes that the roots lead to are collected and, in descending
order of creation, each is run once with the sum of the gradients that reached it. Gradients are
arrays, or tensors when the pass itself is recorded (create_graph).
Invariants: no recursion; the state of a pass is local to it, so passes nest and run in threads;
nothing runs before the graph was found to be usable; a buffer that others may hold is not added to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from sys import getrefcount
from time import perf_counter
from typing import Any

from pullback.arrays import ndarray
from pullback.core.backward.accumulate import accumulate
from pullback.core.backward.collect import Plan, leads_to, planned
from pullback.core.backward.hooks import RUNNING, run_grad_hooks, run_posthooks, run_prehooks
from pullback.core.backward.nesting import NESTING, in_thread
from pullback.core.graph.modes import RECORD, STATE, UNRECORDED, with_grad
from pullback.core.graph.node import AccumulateGrad, CustomNode, Node, edges_of
from pullback.core.graph.observer import Observer
from pullback.core.tensor.ownership import SOLE, is_unshared
from pullback.core.tensor.tensor import iadd


def run(
    roots: Sequence[Node],
    grads: Sequence[Any],
    targets: Sequence[Node] | None = None,
    retain: bool = False,
    recorded: bool = False,
    accumulate: bool = True,
    begun: int = 0,
    plan: Plan | None = None,
    ends: Collection[Node] = (),
) -> Mapping[Node, Any]:
    """Run backward from `roots` with the gradients `grads`.

    Parameters
    ----------
    roots, grads : sequences
        Edge targets and their gradients: arrays, or tensors where `recorded`.
    targets : sequence of nodes, optional
        Only what these need runs; their gradients are returned. By default every leaf's.
    retain, recorded, accumulate : bool
        Keep saved values; record the pass; add to ``.grad`` at leaves (else only return).
    begun : int
        With targets: differentiate what was recorded since; nodes of a smaller `seq` do not run,
        nor do their hooks.
    plan : Plan, optional
        That of an earlier pass from the same roots to the same targets, which kept saved values.
    ends : collection of nodes
        With targets: what is independent of one another, so that no gradient goes on from there.

    Returns
    -------
    dict
        The gradient of each of `targets` that was reached, None for the others.
    """
    current = Pass()
    current.order, current.wanted = plan or planned(roots, targets, begun, ends)
    current.captured = dict.fromkeys(targets or ())
    current.recorded, current.accumulate = recorded, accumulate
    current.begun, current.ends = begun, ends
    current.owned, current.buffers = set(), {roots[0]: grads[0]}
    if len(roots) > 1:
        for root, g in zip(roots[1:], grads[1:], strict=True):
            current.add(root, g)
    outer = RUNNING.current
    current.depth = 1 if outer is None else outer.depth + 1
    if outer is None or current.depth % NESTING:
        current.run(retain, outer)
    else:
        in_thread(lambda: current.run(retain, None))
    return current.captured


class Pass:
    """One backward pass: what is common to its nodes, and the gradients on their way."""

    order: list[Node]
    buffers: dict[Node, Any]  # the gradients on their way
    owned: set[Node]  # the targets whose buffer nobody else holds: this pass has added to it
    recorded: bool  # create_graph: gradients are tensors with nodes
    accumulate: bool
    wanted: set[Node] | None = None  # the targets whose gradient is needed; None: all
    captured: Mapping[Node, Any] = {}
    at_end: Sequence[Any] = ()  # what to call with the pass when all nodes have run
    depth, begun = 1, 0
    ends: Collection[Node] = ()

    @cached_property
    def notes(self) -> dict[Any, Any]:
        """What hooks that look at several gradients keep between them."""
        return {}

    def reaches(self, target: Node) -> bool:
        """Return whether `target` is part of this pass."""
        return target in self._members and (self.wanted is None or target in self.wanted)

    @cached_property
    def _members(self) -> frozenset[Node]:
        return frozenset(self.order)

    def run(self, retain: bool, outer: Pass | None) -> None:
        """Run the nodes in order, in the grad mode of the pass; `outer` is the thread's so far."""
        mode = STATE.get()
        try:  # an interrupt may come between any two lines
            if mode is RECORD and not self.recorded:
                STATE.set(UNRECORDED)
            else:
                STATE.set(with_grad(mode, self.recorded))
            RUNNING.current = self
            self._run(retain, mode.observer)
            for callback in self.at_end:
                callback(self)
        finally:
            RUNNING.current = outer
            STATE.set(mode)

    def _run(self, retain: bool, observer: Observer | None) -> None:
        buffers, wanted, recorded = self.buffers, self.wanted, self.recorded
        captured, owned, begun = self.captured, self.owned, self.begun
        for node in self.order:
            g = buffers.pop(node, None)
            op = node.op
            if g is None and not op.takes_none:
                continue
            watched = node.extra is not None or observer is not None
            if watched and node.seq >= begun:
                g = self._arrived(node, g, observer)
            if captured and node in captured and not self._goes_on(node, g):
                continue
            if not node.runs:
                if node.__class__ is AccumulateGrad:
                    sole = getrefcount(g) == SOLE or node in owned
                    accumulate(node, g, sole, recorded)
                elif g is not None:
                    self._hand_on(node, g)
                continue
            if watched:
                grads: Any = self._watched(node, g, observer)
            elif op.add_part is not None and self._add_part(node, g):
                grads = ()
            else:
                grads = op.differentiate(node, g, wanted, recorded)
            edges = node.record if node.__class__ is CustomNode else edges_of(node)
            for target, r in zip(edges, grads):  # noqa: B905  (no grads: done already)
                if r is not None:
                    if target not in buffers:
                        buffers[target] = r
                    elif target in owned and r.__class__ is ndarray:
                        buffers[target] = iadd(buffers[target], r)
                    else:
                        self.add(target, r)
            grads = r = None  # so that a gradient which only its buffer holds is recognised
            if not retain:
                op.release(node)

    def _add_part(self, node: Node, g: Any) -> bool:
        """Add the gradient of a part of an array into the buffer of what it was cut from.

        Returns False, with nothing changed, where that cannot be: the pass is recorded, or the
        arrays are not plain ones.
        """
        target = node.i0  # type: ignore[attr-defined]
        if self.recorded or node.released or g.__class__ is not ndarray:
            return False
        buffer = self.buffers.get(target)
        if buffer is not None:
            if buffer.__class__ is not ndarray or buffer.dtype is not g.dtype:
                return False
            if target not in self.owned:
                buffer = buffer.copy()
        self.buffers[target] = node.op.add_part(node, buffer, g)
        self.owned.add(target)
        return True

    @staticmethod
    def _arrived(node: Node, g: Any, observer: Observer | None) -> Any:
        """Run the hooks on a gradient that has arrived, and show it to the observer."""
        if node.extra is not None and g is not None:
            g = run_grad_hooks(node.extra, g)
        if observer is not None:
            observer.arrived(node, g)
        return g

    def _watched(self, node: Node, g: Any, observer: Observer | None) -> Sequence[Any]:
        """Run a node's rule between its hooks, and before the observer's eyes."""
        extra = node.extra
        if extra is not None and extra.prehooks:
            g = run_prehooks(extra, g)
        try:
            if observer is not None:
                observer.entering(node, g)
            begun = perf_counter()
            grads: Sequence[Any] = node.op.differentiate(node, g, self.wanted, self.recorded)
            if observer is not None:
                observer.computed(node, g, grads, perf_counter() - begun)
        except Exception as error:
            if observer is not None:
                observer.failed(node, error)
            raise
        if extra is None or not extra.posthooks:
            return grads
        replaced = run_posthooks(extra, grads, g)
        grads = [None if t is None else r for t, r in zip(node.edges, replaced, strict=True)]
        if observer is not None:
            observer.hooked(node, grads)
        return grads

    def add(self, target: Node, g: Any) -> None:
        """Add a contribution to a target's buffer, in place where this pass made the buffer."""
        before = self.buffers.get(target)
        if before is None:
            self.buffers[target] = g
        elif g.__class__ is before.__class__ and (  # the count: the buffer and the variable here
            target in self.owned
            or (getrefcount(before) == SOLE + 1 and is_unshared(before) and not self.recorded)
        ):
            self.buffers[target] = iadd(before, g)
            self.owned.add(target)
        else:
            self.buffers[target] = before + g
            if not self.recorded:
                self.owned.add(target)

    def _goes_on(self, node: Node, g: Any) -> bool:
        """Keep the gradient of a requested target; return whether the node is to run."""
        self.captured[node] = g  # type: ignore[index]
        if node in self.ends:
            return False
        if node.__class__ is AccumulateGrad or node.seq < self.begun:
            return self.accumulate
        return self.wanted is None or leads_to(node, self.wanted)

    def _hand_on(self, output: Any, g: Any) -> None:
        """Put the gradient of one output in its place among those of the node's outputs."""
        node = output.node
        places = self.buffers.get(node)
        if places is None:
            places = self.buffers[node] = [None] * len(node.metas)
        places[output.index] = g
