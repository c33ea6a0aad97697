"""Whether a forward that repeats one step a number of times has come to rest at a call.

Where it has not, its result is that of the last step, and a rule that is the derivative of what it
would come to is not its derivative.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.iterating import iterates, repeats
from pullback.check.repair.quoting import place_of
from pullback.check.repair.sites import Rewritten
from pullback.check.repair.source import source_of
from pullback.check.repair.trials import with_forward
from pullback.check.subject import Subject
from pullback.core.custom.operation import CustomOp

_MORE = (1, 6)  # turns
_RTOL = 1e-8


def has_settled(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether more turns of forward's loops leave its results as they are.

    True also where that cannot be told: forward has no source, or no loop that repeats one step.

    Examples
    --------
    >>> import pullback as pb
    >>> def root(ctx, a):
    ...     x = a
    ...     for _ in range(6):
    ...         x = (x + a / x) / 2
    ...     return x
    >>> op = pb.autograd_function(root, lambda ctx, g: g)
    >>> has_settled(op, (np.array([2.0]),), {}), has_settled(op, (np.array([1e9]),), {})
    (True, False)
    """
    source = source_of(fn.forward) if isinstance(fn, CustomOp) and fn.given_rule else None
    if source is None or not iterates(fn):
        return True
    forward = Rewritten(source)
    counts = list(_counts(forward))
    if not counts:
        return True
    try:
        subject = Subject(with_forward(fn, forward), args, kwargs)
        before = subject.values(subject.arrays)
        forward.probe.most = forward.probe.turns
        for more in _MORE:
            forward.probe.turns = 0
            with forward.changed({k: _added(more) for k in counts}):
                after = subject.values(subject.arrays)
            pairs = zip(before, after, strict=True)
            if not all(np.allclose(a, b, _RTOL, 1e-12, equal_nan=True) for a, b in pairs):
                return False
    except (ForwardError, ValueError):
        return True
    return True


def _counts(forward: Rewritten) -> Iterator[int]:
    """Yield the expressions that say how often a loop repeats one step."""
    trees = {id(site.source): site.source.tree for site in forward.sites}.values()
    found = (_count(node) for tree in trees for node in ast.walk(tree))
    places = {place_of(count) for count in found if count is not None}
    for k, site in enumerate(forward.sites):
        if place_of(site.node) in places:
            yield k


def _count(node: Any) -> Any:
    """Return how often a loop repeats one step, as it is written; None for any other node."""
    calls = repeats(node) and isinstance(node.iter, ast.Call) and len(node.iter.args) == 1
    return node.iter.args[0] if calls and ast.unparse(node.iter.func) == "range" else None


def _added(more: int) -> Any:
    return lambda names, value: value + more
