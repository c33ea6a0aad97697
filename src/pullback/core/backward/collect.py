"""What a backward pass reaches: the nodes, their order, and whether they can still be used.

Nothing here changes a node, so an error leaves the graph as it was.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pullback.core.graph.modes import STATE
from pullback.core.graph.node import CustomNode, Node, Output, edges_of
from pullback.errors import GraphError

_seq = operator.attrgetter("seq")


class Plan(NamedTuple):
    """What a pass runs."""

    order: list[Node]  # the youngest first
    wanted: set[Node] | None  # the targets whose gradient is needed; None: all


def planned(
    roots: Sequence[Node], targets: Sequence[Node] | None, begun: int, ends: Collection[Node] = ()
) -> Plan:
    """Return what a pass from `roots` runs: what `targets` need, not through `ends`, and no more.

    Raises
    ------
    GraphError
        If what was saved there cannot be used any more.
    """
    oldest = begun if begun or targets is None else min(map(_seq, targets))
    order, suspects = collect(roots, oldest, ends)
    wanted = None
    if targets is not None:
        known = set(targets)
        # If every node where the walk ended is a target, all nodes are needed.
        for node in order:
            if not ((node.count and node.seq >= oldest and node not in ends) or node in known):
                wanted = needed(order, targets, oldest, ends)
                order = [node for node in order if node in wanted]
                break
    if suspects:
        check_usable(order, suspects, wanted, oldest)
    return Plan(order, wanted)


def collect(
    roots: Sequence[Node], oldest: int = 0, ends: Collection[Node] = ()
) -> tuple[list[Node], list[Node]]:
    """Return every node that `roots` lead to, the youngest first.

    Where only nodes from the number `oldest` on are of interest, nothing is followed behind an
    older one: nodes lead to older ones alone. Nor is it behind `ends`. Also returns those among the
    nodes to be looked at before anything runs.
    """
    order = list(roots) if len(roots) == 1 else list(dict.fromkeys(roots))
    seen: set[Node | None] = {None, *order}
    suspects = []
    meet, follow = seen.add, order.append
    for node in order:  # grows while it is walked
        if node.extra is not None or node.released:
            suspects.append(node)
        if not node.count or node.seq < oldest or (ends and node in ends):
            continue
        edges = node.record if node.__class__ is CustomNode else edges_of(node)
        for target in edges:
            if target not in seen:
                meet(target)
                follow(target)
    order.sort(key=_seq, reverse=True)
    return order, suspects


def since(
    roots: Sequence[Node], begun: int, ends: Collection[Node] = ()
) -> tuple[list[Node], list[Node]]:
    """Return the nodes made since a moment that `roots` lead to, these among them.

    Also returns the older targets that they lead to. Nothing is followed behind `ends`.
    """
    new = list(roots)
    older: list[Node] = []
    seen: set[Node | None] = {None, *new}
    for node in new:  # grows while it is walked
        if ends and node in ends:
            continue
        for target in edges_of(node):
            if target not in seen:
                seen.add(target)
                source = target.node if target.__class__ is Output else target
                (older if source.seq < begun else new).append(target)
    return new, older


def needed(
    order: list[Node], targets: Iterable[Node], oldest: int = 0, ends: Collection[Node] = ()
) -> set[Node]:
    """Return the targets and the nodes from the number `oldest` on, not `ends`, that lead there."""
    needed = set(targets)
    for node in reversed(order):
        if node.seq < oldest or (ends and node in ends):
            continue
        for target in edges_of(node):
            if target in needed:
                needed.add(node)
                break
    return needed


def check_usable(
    order: list[Node], suspects: list[Node], wanted: set[Node] | None, oldest: int
) -> None:
    """Raise before anything ran where values were released or a saved tensor was detached.

    Nodes before the number `oldest` do not run.
    """
    detached = set()
    for node in suspects:
        runs = node.seq >= oldest and (wanted is None or leads_to(node, wanted))
        if node.released and runs:
            raise _released(node)
        if node.extra is not None and node.extra.detached is not None and node.count:
            detached.add(node)
    for node in order if detached else ():
        for i, target in enumerate(node.edges):
            if target in detached and node.op.saves_input(i, node.record):
                raise GraphError(
                    f"{node.name()}: input {i} is a saved tensor that has been detached in place "
                    "since.\nhint: use detach() instead of detach_()."
                )


def _released(node: Node) -> Exception:
    """Return the error of a second backward; the frame that raises it must not hold it."""
    error = node.released_error()
    observer = STATE.get().observer
    if observer is not None:
        observer.failed(node, error)
    return error


def leads_to(node: Node, wanted: set[Node]) -> bool:
    """Return whether an input of a node is among the wanted targets."""
    return not wanted.isdisjoint(edges_of(node))
