"""Backward: from the gradients of some results to the gradients of what they came from.

Owns one pass through the history. The nodes that the roots lead to are collected, put in
descending order of creation, and each is run once with the sum of the gradients that reached it.
Gradients are bare arrays, or tensors when the pass itself is recorded (create_graph).
Invariants: no recursion; all state of a pass is local to it, so passes nest and run in threads;
nothing runs before the whole graph was found to be usable; a buffer is added to in place only if
this pass made it by adding.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable
from typing import Any

from pullback.arrays import library_of
from pullback.core.hooks import CURRENT, run_grad_hooks, run_posthooks, run_prehooks
from pullback.core.modes import STATE, with_grad
from pullback.core.node import RELEASED, AccumulateGrad, Node
from pullback.core.tensor import Tensor, as_array, box
from pullback.errors import GradientError, GraphError

_seq = operator.attrgetter("seq")


def run(
    roots: Iterable[Node],
    grads: Iterable[Any],
    *,
    targets: Iterable[Node] | None = None,
    retain: bool = False,
    recorded: bool = False,
    accumulate: bool = True,
) -> dict[Node, Any]:
    """Run backward from `roots` with the gradients `grads`.

    Parameters
    ----------
    roots, grads : iterables
        Edge targets and their gradients: arrays, or tensors where `recorded`.
    targets : iterable of nodes, optional
        Only what these need runs; their gradients are returned. By default every leaf's.
    retain, recorded, accumulate : bool
        Keep saved values; record the pass; add to ``.grad`` at leaves (else only return).

    Returns
    -------
    dict
        The gradient of each of `targets` that was reached.
    """
    roots = tuple(roots)
    order = collect(roots)
    captured: dict[Node, Any] = {}
    wanted = None
    if targets is not None:
        captured = dict.fromkeys(targets)
        wanted = _needed(order, captured)
    _check_usable(order, wanted)
    current = Pass(order, wanted, captured, recorded, accumulate)
    for root, g in zip(roots, grads, strict=True):
        current.add(root, g)
    mode = STATE.get()
    STATE.set(with_grad(mode, recorded))
    token = CURRENT.set(current)
    try:
        current.run(retain, mode.anomaly)
        for callback in current.at_end:
            callback(current)
    finally:
        CURRENT.reset(token)
        STATE.set(mode)
    return captured


def collect(roots: Iterable[Node]) -> list[Node]:
    """Return every node that `roots` lead to, the youngest first."""
    seen = set(roots)
    order = list(seen)
    for node in order:  # grows while it is walked
        for target in node.inputs:
            if target is not None and target not in seen:
                seen.add(target)
                order.append(target)
    order.sort(key=_seq, reverse=True)
    return order


def _needed(order: list[Node], targets: Iterable[Node]) -> set[Node]:
    """Return the targets and the nodes that lead to them."""
    needed = set(targets)
    for node in reversed(order):
        for target in node.inputs:
            if target in needed:
                needed.add(node)
                break
    return needed


def _check_usable(order: list[Node], wanted: set[Node] | None) -> None:
    """Raise before anything ran where values were released or a saved tensor was detached."""
    detached = set()
    for node in order:
        if node.saved is RELEASED and (wanted is None or _leads_to(node, wanted)):
            RELEASED.unpack(node)
        if node.extra is not None and node.extra.detached and node.inputs:
            detached.add(node)
    for node in order if detached else ():
        for i, target in enumerate(node.inputs):
            slots = node.saved if node.saved.__class__ is tuple else ()
            if target in detached and i < len(slots) and slots[i] is not None:
                raise GraphError(
                    f"{node.name()}: input {i} is a saved tensor that has been detached in place "
                    "since.\nhint: use detach() instead of detach_()."
                )


def _leads_to(node: Node, wanted: set[Node]) -> bool:
    return any(target in wanted for target in node.inputs)


class Pass:
    """One backward pass: what is common to its nodes, and the gradients on their way."""

    def __init__(
        self,
        order: list[Node],
        wanted: set[Node] | None,
        captured: dict[Node, Any],
        recorded: bool,
        accumulate: bool,
    ) -> None:
        self.order = order
        self.wanted = wanted  # the targets whose gradient is needed; None: all
        self.captured = captured
        self.recorded = recorded  # create_graph: gradients are tensors with history
        self.accumulate = accumulate
        self.buffers: dict[Node, Any] = {}
        self.owned: set[Node] = set()
        self.notes: dict[Any, Any] = {}  # of hooks that look at several gradients
        self.at_end: list[Any] = []

    def reaches(self, target: Node) -> bool:
        """Return whether `target` is part of this pass."""
        return target in self.order and (self.wanted is None or target in self.wanted)

    def run(self, retain: bool, anomaly: bool) -> None:
        """Run the nodes in order."""
        buffers = self.buffers
        wanted = self.wanted
        recorded = self.recorded
        for node in self.order:
            g = buffers.pop(node, None)
            if g is None and not node.op.takes_none:
                continue
            extra = node.extra
            if extra is not None and g is not None and (extra.tensor_hooks or extra.retained):
                g = run_grad_hooks(extra, g)
            if wanted is not None and not self._goes_on(node, g):
                continue
            if not node.runs:
                self._arrive(node, g)
                continue
            if extra is not None and extra.prehooks:
                g = run_prehooks(extra, g)
            try:
                grads = node.op.differentiate(node, g, wanted, recorded)
            except Exception:
                if anomaly:
                    warn_of_origin(node)
                raise
            if extra is not None and extra.posthooks:
                grads = run_posthooks(extra, grads, g)
            if anomaly:
                check_nan(node, grads)
            if not retain:
                node.saved = RELEASED
                node.guard = None
            for target, r in zip(node.inputs, grads, strict=True):
                if r is not None:
                    if target in buffers:
                        self.add(target, r)
                    else:
                        buffers[target] = r

    def add(self, target: Node, g: Any) -> None:
        """Add a contribution to a target's buffer, in place where this pass made the buffer."""
        before = self.buffers.get(target)
        if before is None:
            self.buffers[target] = g
        elif target in self.owned:
            self.buffers[target] = operator.iadd(before, g)
        else:
            self.buffers[target] = before + g
            if not self.recorded:
                self.owned.add(target)

    def _goes_on(self, node: Node, g: Any) -> bool:
        """Keep the gradient of a requested target; return whether the node is to run."""
        if node in self.captured:
            self.captured[node] = g
            if node.__class__ is AccumulateGrad:
                return self.accumulate
        return _leads_to(node, self.wanted or set())

    def _arrive(self, node: Node, g: Any) -> None:
        """Handle a gradient at an output of several, or at a leaf."""
        if isinstance(node, AccumulateGrad):
            accumulate(node, g, node in self.owned, self.recorded)
        elif g is not None:
            parent = node.inputs[0]
            places = self.buffers.get(parent)
            if places is None:
                places = self.buffers[parent] = [None] * len(parent.metas)
            places[node.index] = g


def accumulate(node: AccumulateGrad, g: Any, owned: bool, recorded: bool) -> None:
    """Add `g` to the leaf's gradient, and run the hooks around that."""
    extra = node.extra
    if extra is not None and extra.prehooks:
        g = run_prehooks(extra, g)
    leaf = node.leaf()
    if leaf is None:  # nobody can see the gradient any more
        return
    with node.lock:
        grad = leaf._grad
        if recorded:
            leaf._grad = g if grad is None else grad + g
        elif grad is None:
            library = library_of(leaf._data)
            array = as_array(g)
            # Post-hooks see the gradient as it was accumulated.
            leaf._grad = g = box(array if owned else library.copy(array))
        else:
            grad._data = operator.iadd(grad._data, g)
            grad._counter[0] += 1
    for hook in list(node.post_hooks.values()):
        if hook(leaf) is not None:
            raise GradientError("register_post_accumulate_grad_hook: hooks should return None")
    if extra is not None and extra.posthooks:
        run_posthooks(extra, (), g)


# -- anomaly mode ----------------------------------------------------------------------------------
def check_nan(node: Node, grads: Any) -> None:
    """Raise at the first gradient with a NaN in it."""
    if not STATE.get().check_nan:
        return
    for i, g in enumerate(grads):
        array = g.data_array() if isinstance(g, Tensor) else g
        if array is not None and bool(library_of(array).xp.any(array != array)):
            warn_of_origin(node)
            raise GradientError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def warn_of_origin(node: Node) -> None:
    """Say by a warning where the failing operation was called."""
    origin = node.extra.metadata.get("traceback") if node.extra is not None else None
    if origin is None:
        text = (
            "No forward pass information available: run the forward inside detect_anomaly too."
        )
    else:
        text = f"Traceback of the forward call that caused the error:\n{origin}"
    warnings.warn(f"Error detected in {node.name()}. {text}", stacklevel=2)
