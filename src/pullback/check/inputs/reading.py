"""What the source of an operation says of its arguments: how forward and backward use them.

Nobody who writes `offsets[index]` and `np.bincount(index)` needs to say what an index is. A local
name stands for the argument it holds, if it is assigned once. Must not know which inputs are made
of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.check.inputs.source import (
    TAKES,
    Source,
    Use,
    at_least,
    brackets,
    elements,
    ends,
    function_of,
    is_cast,
    is_none,
    is_shape,
    is_sparse,
    may_be_none,
    whole,
)
from pullback.core.tensor.tensor import Tensor

_ONLY_ARRAYS = {n for n in dir(np.ndarray) if not n.startswith("_") and not hasattr(Tensor, n)}
_MOST_AXES = 9


class Reading:
    """What forward and backward say of the arguments, by name.

    Attributes
    ----------
    uses : dict of set of str
        How each is used; of those that are missing nothing is known.
    axes : dict of (int, int)
        The least and the most axes of those of which the source tells.
    lengths : dict of int
        How many elements those have that forward takes apart one by one.
    columns : dict of int
        How many columns those have whose columns are indices.
    left_out : set of str
        Those that each mapping which backward returns leaves out.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, ids, f, rates):
    ...     up, down = rates.numpy()
    ...     return pb.asarray(np.bincount(ids, f(x.numpy()[:, 0]) * up / down))
    >>> found = Reading(pb.autograd_function(forward, lambda ctx, g: {"x": g}, name="binned"))
    >>> sorted(use.value for use in found.uses["ids"]), found.axes["x"], found.lengths
    (['array', 'index'], (2, 9), {'rates': 2})
    >>> sorted(found.left_out)
    ['f', 'ids', 'rates']
    """

    def __init__(self, fn: Any) -> None:
        forward, backward = getattr(fn, "forward", None), getattr(fn, "rule", None)
        self.uses: dict[str, set[str]] = {}
        self.axes: dict[str, tuple[int, int]] = {}
        self.lengths: dict[str, int] = {}
        self.columns: dict[str, int] = {}
        self.left_out: set[str] = set()
        self.tells = forward is not None and function_of(forward) is not None
        if self.tells:
            self._read(_Uses(forward), backward)

    def _read(self, forward: _Uses, rule: Any) -> None:
        names = forward.parameters[1:]
        sources = [forward]
        if rule is not None and function_of(rule) is not None:
            sources.append(_Uses(rule, forward))
        for source in sources:
            for name, use in source.uses():
                if source is forward or use in (
                    Use.INDEX,
                    Use.CONJUGATED,
                    Use.LOOKED_UP,
                    Use.SORTED,
                ):
                    self.uses.setdefault(name, set()).add(use)
            for name, least, most in source.axes():
                low, high = self.axes.get(name, (0, _MOST_AXES))
                self.axes[name] = (max(low, least), min(high, most))
        if len(sources) == 2:
            given, none, self.left_out = sources[1].gradients(names)
            for name in given | none:
                self.uses.setdefault(name, set()).add(
                    Use.GRADIENT if name in given else Use.UNGIVEN
                )
            if any(ends(node, "saved_tensors") for node in sources[1].nodes):
                for name in forward.order:  # an array would not be among them
                    self.uses.setdefault(name, set()).add(Use.TENSOR)
        self.lengths, self.columns = forward.lengths(), forward.columns()
        for kinds in self.uses.values():
            if Use.EQUAL in kinds and not kinds & {Use.TENSOR, Use.GRADIENT}:
                kinds.add(Use.INDEX)
            kinds.discard(Use.EQUAL)
        self.uses = {name: self.uses[name] for name in names if self.uses.get(name)}
        self.axes = {n: ends for n, ends in self.axes.items() if ends[0] <= ends[1]}

    def of(self, *kinds: str) -> set[str]:
        """Return the arguments that are used in one of these ways."""
        return {name for name, found in self.uses.items() if found.intersection(kinds)}


class _Uses(Source):
    """What a source says of the arguments."""

    # -- uses ----------------------------------------------------------------------------------
    def uses(self) -> Iterator[tuple[str, str]]:
        """Yield the arguments and how they are used."""
        for node in self.nodes:
            yield from ((name, use) for name, use in self._of_node(node) if name)

    def _of_node(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Call):
            yield from self._of_call(node)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                yield node.target.id, Use.FOREIGN
        elif isinstance(node, ast.Assign):
            yield from ((self.name(part), Use.OVERWRITTEN) for part in brackets(node.targets[0]))
        elif isinstance(node, ast.Attribute) and node.attr in _ONLY_ARRAYS:
            if isinstance(node.value, ast.Name):
                yield self.name(node.value), Use.FOREIGN
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield self.name(node.operand), Use.MASK
        elif isinstance(node, ast.Compare):
            yield from ((name, Use.EQUAL) for name in self._labels(node))
        elif isinstance(node, ast.Slice):
            yield from ((self.name(end), Use.WINDOW) for end in (node.lower, node.upper))
            ends = [e.value for e in (node.lower, node.upper) if isinstance(e, ast.Subscript)]
            if len(ends) == 2 and self.name(ends[0]) == self.name(ends[1]):
                yield self.name(ends[0]), Use.POINTERS
        else:
            yield from ((self.name(part), Use.INDEX) for part in brackets(node))

    def _of_call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        if isinstance(node.func, ast.Name):
            yield node.func.id, Use.CALLED
        for takes in TAKES:
            if takes.use and ends(node.func, takes.function) and not is_cast(node, takes):
                operand = self.operand(node, takes)
                yield (self.number if takes.use == Use.NUMBER else self.name)(operand), takes.use
        for keyword in node.keywords:
            if keyword.arg in ("axis", "dim"):
                yield self.name(keyword.value), Use.AXIS
        if ends(node.func, "repeat") and len(node.args) > 1:
            counts = node.args[1]
            if isinstance(counts, ast.Call) and ends(counts.func, "diff") and counts.args:
                yield self.name(counts.args[0]), Use.POINTERS
        kinds = (Use.ENTRIES, Use.COLUMNS, Use.POINTERS)
        if node.args and len(elements(node.args[0])) == 3 and is_sparse(node.func):
            yield from zip(map(self.name, elements(node.args[0])), kinds, strict=True)
        module = isinstance(node.func, ast.Attribute) and self.module(node.func.value)
        if module and not module.startswith("pullback"):
            yield from ((self.name(a), Use.ARRAY) for a in node.args if isinstance(a, ast.Name))

    def _labels(self, node: ast.Compare) -> Iterator[str]:
        """Yield the arguments that are compared with a whole number, or with places."""
        if all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
            sides = [node.left, *node.comparators]
            inner = [s.value if isinstance(s, ast.Subscript) else s for s in sides]
            places = [isinstance(s, ast.Call) and ends(s.func, "arange") for s in inner]
            if any(places) or any(whole(side) is not None for side in sides):
                yield from map(self.name, inner)

    # -- shapes --------------------------------------------------------------------------------
    def axes(self) -> Iterator[tuple[str, int, int]]:
        """Yield names with the least and the most axes that one place of the source allows."""
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                targets = elements(node.targets[0])
                starred = any(isinstance(target, ast.Starred) for target in targets)
                if targets and is_shape(node.value):
                    most = _MOST_AXES if starred else len(targets)
                    yield self.name(_owner(node.value)), len(targets) - starred, most
            elif isinstance(node, ast.Subscript):
                least = self._least_axes(node)
                yield self.name(_owner(node.value)), least, _MOST_AXES
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                for keyword in node.keywords:
                    axis = whole(keyword.value) if keyword.arg in ("axis", "dim") else None
                    if axis is not None:
                        yield self.name(node.func.value), at_least(axis), _MOST_AXES

    def _least_axes(self, node: ast.Subscript) -> int:
        if is_shape(node.value):
            axis = whole(node.slice)
            return 0 if axis is None else at_least(axis)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        plain = all(isinstance(part, (ast.Slice, ast.Name, ast.Constant)) for part in parts)
        made = [p for p in parts if isinstance(p, ast.Constant) and p.value in (None, ...)]
        return len(parts) - len(made) if plain else 0

    def lengths(self) -> dict[str, int]:
        """Return how many elements the arguments have that are taken apart one by one."""
        found: dict[str, int] = {}
        other = {""}  # what is indexed in another way, too
        for node in self.nodes:
            if isinstance(node, ast.Assign) and elements(node.targets[0]):
                if not any(isinstance(one, ast.Starred) for one in elements(node.targets[0])):
                    found[self.name(node.value)] = len(elements(node.targets[0]))
            elif isinstance(node, ast.Subscript):
                name, place = self.name(node.value), whole(node.slice)
                if place is None or place < 0:
                    other.add(name)
                else:
                    found[name] = max(found.get(name, 0), place + 1)
        return {name: count for name, count in found.items() if count > 1 and name not in other}

    def columns(self) -> dict[str, int]:
        """Return the arguments whose columns are indices, with how many there are."""
        rows: dict[str, tuple[str, int]] = {}  # as in ``first, second = pairs.T``
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
                targets = elements(node.targets[0]) if node.value.attr == "T" else []
                known = (self.name(node.value.value), len(targets))
                rows |= {t.id: known for t in targets if isinstance(t, ast.Name)}
        found: dict[str, int] = {}
        for part in (part for node in self.nodes for part in brackets(node)):
            name, count = rows.get(getattr(part, "id", ""), ("", 0))
            inner = brackets(part)
            if len(inner) == 2 and isinstance(inner[0], ast.Slice) and whole(inner[1]) is not None:
                name, count = self.name(part.value), (whole(inner[1]) or 0) + 1
            found[name] = max(found.get(name, 0), count)
        return {name: count for name, count in found.items() if name and count}

    # -- results -------------------------------------------------------------------------------
    def gradients(self, names: list[str]) -> tuple[set[str], set[str], set[str]]:
        """Return for which arguments each result has a gradient, None, and nothing at all."""
        pairs: list[list[tuple[str, ast.AST]]] = []
        mappings = 0
        for value in self.results:
            if isinstance(value, ast.Dict) and all(isinstance(k, ast.Constant) for k in value.keys):
                keys = [k.value for k in value.keys if isinstance(k, ast.Constant)]
                pairs.append(list(zip(map(str, keys), value.values, strict=True)))
                mappings += 1
            elif not any(isinstance(one, ast.Starred) for one in elements(value)):
                pairs.append(list(zip(names, elements(value), strict=False)))
        if not any(pairs):
            return set(), set(), set()
        given = [{name for name, node in some if not may_be_none(node)} for some in pairs if some]
        none = [{name for name, node in some if is_none(node)} for some in pairs if some]
        spelt = mappings == len(self.results)
        left_out = set(names) - {name for some in pairs for name, _ in some} if spelt else set()
        return set.intersection(*given), set.intersection(*none), left_out


def _owner(node: ast.AST) -> ast.AST:
    """Return what an expression is the shape of, if it is a shape; else itself."""
    return node.value if is_shape(node) and isinstance(node, ast.Attribute) else node
