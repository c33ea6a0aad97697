"""What the source of an operation says of its arguments: how forward uses them.

Nobody who writes `offsets[index]` and `np.bincount(index)` needs to say what an index is. Must not
know which inputs are made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pullback.check.iterating import tree_of

# Uses of an argument.
CALLED, NUMBER, INDEX, ARRAY, TENSOR = "called", "number", "index", "array", "tensor"

# Functions whose argument at a position, or of a name, is an array of whole numbers.
_OF_INDICES = {"bincount": 0, "take": 1, "take_along_axis": 1, "put_along_axis": 1, "at": 1}
_OF_NUMBERS = {"range", "float", "int", "eye", "arange"}
_OF_TENSORS = {"numpy", "detach", "item", "clone", "data_array"}


def uses(fn: Any) -> dict[str, set[str]]:
    """Return how forward uses its arguments, by name; those of which nothing is known are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def forward(ctx, x, ids, f, rate):
    ...     return pb.asarray(np.bincount(ids, f(x.numpy()) * rate.item()))
    >>> uses(pb.autograd_function(forward, lambda ctx, g: None, name="binned"))
    {'x': {'tensor'}, 'ids': {'index'}, 'f': {'called'}, 'rate': {'number'}}
    """
    forward = getattr(fn, "forward", None)
    tree = tree_of(forward) if forward is not None else None
    function = next((n for n in ast.walk(tree) if _is_function(n)), None) if tree else None
    if function is None:
        return {}
    names = [a.arg for a in _arguments(function)]
    found: dict[str, set[str]] = {name: set() for name in names}
    for name, use in _found(function):
        if name in found:
            found[name].add(use)
    return {name: kinds for name, kinds in found.items() if kinds}


def mentions_complex(fn: Any) -> bool:
    """Return whether the source of an operation has anything to do with complex numbers."""
    trees = [tree_of(part) for part in (getattr(fn, "forward", None), getattr(fn, "rule", None))]
    names = [ast.unparse(tree) for tree in trees if tree is not None]
    return any(re.search("complex|conj|imag|real|fft", text) for text in names)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.Lambda))


def _arguments(function: Any) -> list[ast.arg]:
    a = function.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs]


def _found(function: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names and how they are used."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Subscript):
            for item in ast.walk(node.slice):
                if isinstance(item, ast.Name) and not _is_slice_bound(node.slice, item):
                    yield item.id, INDEX


def _is_slice_bound(index: ast.AST, item: ast.Name) -> bool:
    """Return whether a name stands in a slice, or in an expression within an index."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return not any(part is item for part in parts)


def _of_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    if isinstance(node.func, ast.Name):
        yield node.func.id, CALLED
        if node.func.id in _OF_NUMBERS:
            yield from ((a.id, NUMBER) for a in node.args if isinstance(a, ast.Name))
        return
    if not isinstance(node.func, ast.Attribute):
        return
    owner, name = node.func.value, node.func.attr
    if isinstance(owner, ast.Name):
        if name == "item":
            yield owner.id, NUMBER
        elif name in _OF_TENSORS:
            yield owner.id, TENSOR
    position = _OF_INDICES.get(name)
    for k, argument in enumerate(node.args):
        if isinstance(argument, ast.Name) and _is_numpy(owner):
            yield argument.id, INDEX if k == position else ARRAY


def _is_numpy(owner: ast.AST) -> bool:
    """Return whether a function is one of NumPy or SciPy, as far as its name tells."""
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "scipy", "special", "sp")
