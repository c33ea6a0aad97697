"""The end of a backward pass at a leaf: its ``.grad`` grows, and the hooks around that run.

Invariants: two leaves never share a gradient's memory; without create_graph an existing gradient
is added to in place; a leaf's lock is held while its gradient changes, never while a hook runs.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import is_array, library_of, ndarray
from pullback.core.backward.hooks import run_posthooks, run_prehooks
from pullback.core.graph.locks import LAST_LEAF, LEAVES
from pullback.core.tensor.ownership import is_unshared
from pullback.core.tensor.tensor import as_array, box, iadd, unaliased
from pullback.core.tensor.versions import BORROWED, bump
from pullback.errors import GradientError


def accumulate(node: Any, g: Any, owned: bool, recorded: bool) -> None:
    """Add `g` to the leaf's gradient, and run the hooks around that."""
    extra = node.extra
    if extra is not None and extra.prehooks:
        g = run_prehooks(extra, g)
    leaf = node.leaf()
    if leaf is None or leaf._node is not node:  # nobody can see it any more, or it is frozen
        return
    with LEAVES[node.seq & LAST_LEAF]:
        grad = leaf._grad
        if recorded:
            leaf._grad = unaliased(g) if grad is None else grad + g
        elif grad is None:
            array = g if g.__class__ is ndarray else as_array(g)
            # A hook may have kept what it saw; a buffer of one reference may still be a view.
            if not owned or extra is not None or not is_unshared(array):
                array = array.copy() if g.__class__ is ndarray else library_of(array).copy(array)
            leaf._grad = g = box(array)  # post-hooks see the gradient as it was accumulated
        elif grad._counter is BORROWED:  # from a hook: its memory is not the leaf's to write to
            leaf._grad = box(as_array(grad.data_array() + g))
        else:
            grad._data = _added(grad._data, g)
            bump(grad)
    if node.post_hooks:
        for hook in list(node.post_hooks.values()):
            if hook(leaf) is not None:
                raise GradientError("register_post_accumulate_grad_hook: hooks should return None")
    if extra is not None and extra.posthooks:
        run_posthooks(extra, (), g)


def _added(array: Any, g: Any) -> Any:
    """Add to a gradient: in place, unless what is added wraps arrays of the gradient's library."""
    if g.__class__ is not array.__class__ and is_array(g):
        return array + g
    return iadd(array, g)
