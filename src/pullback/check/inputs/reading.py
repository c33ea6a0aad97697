"""What the source of an operation says of its arguments: how forward uses them.

Nobody who writes `offsets[index]` and `np.bincount(index)` needs to say what an index is. A local
name stands for the argument it holds, if it is assigned once. Must not know which inputs are made
of it.
"""

from __future__ import annotations

import ast
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from pullback.check.inputs.source import (
    TAKES,
    Use,
    assigned,
    at_least,
    brackets,
    ends,
    function_of,
    is_none,
    may_be_none,
    nodes_of,
    transposed,
    whole,
)
from pullback.check.naming import parameters_of
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
    shapes : dict of tuple of str
        The shapes of those that forward takes apart element by element, or column by column.
    left_out : set of str
        Those that backward does not name, if it names others and returns mappings.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, ids, f, rates):
    ...     up, down = rates.numpy()
    ...     return pb.asarray(np.bincount(ids, f(x.numpy()[:, 0]) * up / down))
    >>> found = Reading(pb.autograd_function(forward, lambda ctx, g: {"x": g}, name="binned"))
    >>> sorted(use.value for use in found.uses["ids"]), found.axes["x"], found.shapes
    (['array', 'index'], (2, 9), {'rates': ('2',)})
    >>> sorted(found.left_out)
    ['f', 'ids', 'rates']
    """

    def __init__(self, fn: Any) -> None:
        self.uses: dict[str, set[str]] = defaultdict(set)
        self.axes: dict[str, tuple[int, int]] = {}
        self.shapes: dict[str, tuple[str, ...]] = {}
        self.left_out: set[str] = set()
        forward = getattr(fn, "forward", None)
        names = [p.name for p in parameters_of(forward) or ()] if forward is not None else []
        function = function_of(forward)
        if function is not None:  # perhaps of another signature than what wraps it
            a = function.args
            names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
            self._globals = getattr(forward, "__globals__", {})
            self._nodes = nodes_of(function)
            self._names = {name: name for name in names}
            self._parts: dict[str, str] = {}  # from a name to the argument of which it is a part
            self._learn_names()
            self._read_forward()
        self._read_results(getattr(fn, "rule", None), names[1:])
        self.uses = {name: self.uses[name] for name in names[1:] if name in self.uses}
        self.axes = {n: (low, high) for n, (low, high) in self.axes.items() if n and low <= high}

    def _read_forward(self) -> None:
        for node in self._nodes:
            for name, use in self._uses_in(node):
                self.uses[name].add(use)
            for name, least, most in self._axes_in(node):
                low, high = self.axes.get(name, (0, _MOST_AXES))
                self.axes[name] = (max(low, least), min(high, most))
        self.shapes = self._taken_apart()

    def of(self, *kinds: str) -> set[str]:
        """Return the arguments that are used in one of these ways."""
        return {name for name, found in self.uses.items() if found.intersection(kinds)}

    # -- names ---------------------------------------------------------------------------------
    def _learn_names(self) -> None:
        """Learn which local names hold an argument, or a part of one."""
        stores = [
            n.id for n in self._nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        known = set()
        for name, value in (pair for node in self._nodes for pair in assigned(node)):
            if stores.count(name) == 1 and self._name(value):
                self._names[name] = self._name(value)
                known.add(name)
        for name in {*stores} - known:
            self._names.pop(name, None)
        for node in self._nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    owner = transposed(value) or value
                    names = [t.id for t in targets if isinstance(t, ast.Name)]
                    self._parts |= dict.fromkeys(names, self._name(owner))

    def _name(self, node: ast.AST | None) -> str:
        """Return the argument whose elements an expression holds; empty if it holds none's."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, "")
        if isinstance(node, ast.Call):
            same = any(takes.same and ends(node.func, takes.function) for takes in TAKES)
            return self._name(self._operand(node, 0)) if same else ""
        return ""

    def _part(self, node: ast.AST) -> str:
        """Return the argument of which an expression holds elements, perhaps not all of them."""
        if isinstance(node, ast.Subscript):
            return self._name(node.value)
        return self._name(node) or self._parts.get(getattr(node, "id", ""), "")

    def _operand(self, node: ast.Call, position: int) -> ast.AST | None:
        """Return the operand of a call of a function or method; None if it has none there."""
        given: list[ast.AST] = list(node.args)
        if isinstance(node.func, ast.Attribute) and not self._module(node.func.value):
            given.insert(0, node.func.value)
        return given[position] if position < len(given) else None

    def _module(self, node: ast.AST) -> str:
        """Return the name of the module that an expression is, or is of; empty for others."""
        while isinstance(node, ast.Attribute):
            node = node.value
        name = getattr(node, "id", "")
        known = None if name in self._names else self._globals.get(name)
        return known.__name__ if isinstance(known, types.ModuleType) else ""

    # -- uses ----------------------------------------------------------------------------------
    def _uses_in(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """Yield the arguments that a node uses, and how."""
        match node:
            case ast.Call():
                yield from self._uses_in_call(node)
            case ast.Assign(targets=[ast.Subscript() as written]):
                yield from ((self._part(part), Use.OVERWRITTEN) for part in brackets(written))
            case ast.Subscript():
                yield from ((self._part(part), Use.INDEX) for part in brackets(node))
            case ast.Attribute(value=ast.Name() as owner, attr=attr) if attr in _ONLY_ARRAYS:
                yield self._name(owner), Use.ARRAY
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                yield self._name(operand), Use.MASK
            case ast.Compare(ops=[ast.Eq() | ast.NotEq()], left=left, comparators=[right]):
                inner = [s.value if isinstance(s, ast.Subscript) else s for s in (left, right)]
                calls = [s.func for s in inner if isinstance(s, ast.Call)]
                numbers = any(whole(side) is not None for side in inner)
                if numbers or any(ends(called, "arange") for called in calls):
                    yield from ((self._name(side), Use.EQUAL) for side in inner)

    def _uses_in_call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        if isinstance(node.func, ast.Name):
            yield self._names.get(node.func.id, ""), Use.CALLED
        for takes in TAKES:
            if takes.use and ends(node.func, takes.function):
                yield self._name(self._operand(node, takes.position)), takes.use
        for keyword in node.keywords:
            if keyword.arg in ("axis", "dim"):
                yield self._name(keyword.value), Use.AXIS
        module = self._module(node.func)
        if module and not module.startswith("pullback"):
            yield from ((self._name(a), Use.ARRAY) for a in node.args if isinstance(a, ast.Name))

    # -- shapes --------------------------------------------------------------------------------
    def _axes_in(self, node: ast.AST) -> Iterator[tuple[str, int, int]]:
        """Yield names with the least and the most axes that a node allows."""
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=parts), *_], value=ast.Attribute(attr="shape", value=owner)
            ):
                starred = any(isinstance(part, ast.Starred) for part in parts)
                most = _MOST_AXES if starred else len(parts)
                yield self._name(owner), len(parts) - starred, most
            case ast.Subscript(value=ast.Attribute(attr="shape", value=owner), slice=axis):
                yield self._name(owner), at_least(axis), _MOST_AXES
            case ast.Subscript(value=value, slice=ast.Tuple(elts=parts)):
                plain = all(isinstance(p, (ast.Slice, ast.Name, ast.Constant)) for p in parts)
                made = [p for p in parts if isinstance(p, ast.Constant) and p.value in (None, ...)]
                yield self._name(value), (len(parts) - len(made)) * plain, _MOST_AXES
            case ast.Call(keywords=keywords):
                for keyword in keywords:
                    if keyword.arg in ("axis", "dim"):
                        operand = self._operand(node, 0)
                        yield self._name(operand), at_least(keyword.value), _MOST_AXES

    def _taken_apart(self) -> dict[str, tuple[str, ...]]:
        """Return the shapes of those of which each element or column is taken by its number."""
        found: dict[str, set[tuple[int, int]]] = defaultdict(set)  # axes, and how many are taken
        for node in self._nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value):
                    columns = transposed(value)
                    name = self._name(columns or value)
                    starred = any(isinstance(part, ast.Starred) for part in parts)
                    found[name].add((2 if columns else 1, 0 if starred else len(parts)))
                case ast.Subscript(value=value):
                    places = brackets(node)
                    last = whole(places[-1]) if places else None
                    last = -1 if last is None else last
                    found[self._name(value)].add((len(places), max(0, last + 1)))
        return {
            name: ("n", str(most))[2 - axes :]
            for name, counts in found.items()
            if name and len({axes for axes, _ in counts}) == 1 and all(k for _, k in counts)
            for axes, most in [max(counts)]
            if axes <= 2 and most > 1
        }

    # -- results -------------------------------------------------------------------------------
    def _read_results(self, rule: Any, names: list[str]) -> None:
        """Read for which arguments each result of backward has a gradient, None, or nothing."""
        function = function_of(rule)
        if function is None:
            return
        nodes = nodes_of(function)
        results = [n.value for n in nodes if isinstance(n, ast.Return) and n.value is not None]
        results = [function.body] if isinstance(function, ast.Lambda) else results
        rows: list[dict[str, ast.AST]] = []
        for value in results:
            match value:
                case ast.Dict(keys=keys, values=values):
                    written = [str(key.value) for key in keys if isinstance(key, ast.Constant)]
                    if len(written) == len(keys):
                        rows.append(dict(zip(written, values, strict=True)))
                case ast.Tuple(elts=parts) if not any(isinstance(p, ast.Starred) for p in parts):
                    rows.append(dict(zip(names, parts, strict=False)))
        for name in names if rows else ():
            found = [row[name] for row in rows if name in row]
            if len(found) == len(rows) and not any(map(may_be_none, found)):
                self.uses[name].add(Use.GRADIENT)
            elif len(found) == len(rows) and all(map(is_none, found)):
                self.uses[name].add(Use.UNGIVEN)
        said = {node.value for node in nodes if isinstance(node, ast.Constant)}.intersection(names)
        if said and not any(isinstance(value, ast.Tuple) for value in results):
            self.left_out = {*names} - said
            for name in self.left_out:
                self.uses[name].add(Use.UNGIVEN)
