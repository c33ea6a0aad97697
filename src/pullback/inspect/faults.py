"""Where NaN and infinities begin in a graph, where they pass, and where gradients alone have them.

Must not know how a graph is shown: text, JSON and the page say what is found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pullback.inspect.records import GraphNode

# Of each kind, the counts of it in a node's results and in the gradient that arrived.
KINDS = {"NaN": ("nan_count", "grad_nan_count"), "infinity": ("inf_count", "grad_inf_count")}
_BEGINS, _PASSES, _IN_GRADIENT = _STAGES = ("begins here", "passes", "in gradient")


def faults_of(nodes: Sequence[GraphNode]) -> dict[str, dict[int, str]]:
    """Return for each kind what it does at a node, by its id."""
    return {kind: _stages(nodes, *counts) for kind, counts in KINDS.items()}


def _stages(nodes: Sequence[GraphNode], count: str, grad_count: str) -> dict[int, str]:
    bad = {node.id for node in nodes if getattr(node, count)}
    sick = {node.id for node in nodes if getattr(node, grad_count)}
    given = {node.id for node in nodes if not bad.isdisjoint(node.inputs)}
    begins = bad - given
    for node in nodes:  # in backward it begins in the rule of what used the result
        if node.id in sick and sick.isdisjoint(node.consumers):
            begins.update(k for k in node.consumers if k not in bad | sick | given)
    stages = dict.fromkeys(sick, _IN_GRADIENT) | dict.fromkeys(bad, _PASSES)
    return dict(sorted((stages | dict.fromkeys(begins, _BEGINS)).items()))


def words_of(faults: Mapping[str, Mapping[int, str]], ids: Iterable[int]) -> str:
    """Return what is said of some nodes together; "" where nothing is wrong."""
    ids, words = list(ids), []
    for kind, stages in faults.items():
        found = {stages[k] for k in ids if k in stages}
        words += [f"✗ {kind} {stage}" for stage in _STAGES if stage in found][:1]
    return ", ".join(words)
