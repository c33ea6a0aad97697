"""What the source of an operation says of its arguments: how forward and backward use them.

Nobody who writes `offsets[index]` and `np.bincount(index)` needs to say what an index is. A local
name stands for the argument it holds, if it is assigned once. Must not know which inputs are made
of it.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.iterating import tree_of
from pullback.core.tensor.tensor import Tensor

# Uses of an argument: called; as a number, an axis, the length of a slice; as whole numbers, of
# which none may come twice where the elements there are overwritten; as a mask.
CALLED, NUMBER, AXIS, WINDOW = "called", "number", "axis", "window"
INDEX, OVERWRITTEN, MASK = "index", "overwritten", "mask"
# As the entries of a sparse matrix, their columns, and where its rows start.
ENTRIES, COLUMNS, POINTERS = "entries", "columns", "pointers"
# As a table that has to be sorted, and as what is looked up in one.
SORTED, LOOKED_UP = "sorted", "looked up"
# As a tensor; as an array, perhaps in a way that tensors do not have; as complex numbers; backward
# has a gradient for it, or None.
TENSOR, ARRAY, FOREIGN = "tensor", "array", "foreign"
CONJUGATED, GRADIENT, UNGIVEN = "conjugated", "gradient", "ungiven"
_EQUAL = "equal"  # compared with a whole number: one itself, if it is no tensor


class Takes(NamedTuple):
    """A function or method, and how it uses one operand.

    Attributes
    ----------
    function : str
    position : int
        Of the operand; that of a method's owner is 0.
    keyword : str
    use : str
        One of the uses above; empty for one that tells nothing.
    same : bool
        Whether the result has the elements of the operand, at the same places.
    """

    function: str
    position: int
    keyword: str = ""
    use: str = ""
    same: bool = False


_TAKES = (
    Takes("numpy", 0, use=TENSOR, same=True),
    Takes("detach", 0, use=TENSOR, same=True),
    Takes("clone", 0, use=TENSOR, same=True),
    Takes("data_array", 0, use=TENSOR, same=True),
    Takes("item", 0, use=TENSOR),
    Takes("item", 0, use=NUMBER),
    Takes("copy", 0, same=True),
    Takes("astype", 0, same=True),
    Takes("asarray", 0, same=True),
    Takes("array", 0, same=True),
    Takes("ascontiguousarray", 0, same=True),
    Takes("float", 0, use=NUMBER),
    Takes("int", 0, use=NUMBER),
    Takes("eye", 0, use=NUMBER),
    *(Takes(name, k, use=NUMBER) for name in ("range", "arange") for k in range(3)),
    Takes("bincount", 0, use=INDEX),
    Takes("take", 1, "indices", INDEX),
    Takes("take_along_axis", 1, "indices", INDEX),
    Takes("at", 1, "indices", INDEX),
    Takes("index_select", 2, "index", INDEX),
    Takes("index_add", 2, "index", INDEX),
    Takes("gather", 2, "index", INDEX),
    Takes("scatter_add", 2, "index", INDEX),
    Takes("scatter", 2, "index", OVERWRITTEN),
    Takes("index_copy", 2, "index", OVERWRITTEN),
    Takes("index_fill", 2, "index", OVERWRITTEN),
    Takes("put_along_axis", 1, "indices", OVERWRITTEN),
    Takes("masked_fill", 1, "mask", MASK),
    Takes("all", 0, use=MASK),
    Takes("any", 0, use=MASK),
    Takes("conj", 0, use=CONJUGATED),
    Takes("conjugate", 0, use=CONJUGATED),
    Takes("searchsorted", 0, "a", SORTED),
    Takes("searchsorted", 1, "v", LOOKED_UP),
    Takes("digitize", 0, "x", LOOKED_UP),
    Takes("digitize", 1, "bins", SORTED),
    Takes("bucketize", 0, "input", LOOKED_UP),
    Takes("bucketize", 1, "boundaries", SORTED),
    Takes("histogram", 1, "bins", SORTED),
    Takes("interp", 0, "x", LOOKED_UP),
    Takes("interp", 1, "xp", SORTED),
)
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
    >>> found.uses["ids"], found.uses["f"], found.axes["x"], found.lengths
    ({'index'}, {'called'}, (2, 9), {'rates': 2})
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
        self.tells = forward is not None and _function_of(forward) is not None
        if self.tells:
            self._read(_Source(forward), backward)

    def _read(self, forward: _Source, rule: Any) -> None:
        names = forward.parameters[1:]
        sources = [forward]
        if rule is not None and _function_of(rule) is not None:
            sources.append(_Source(rule, forward))
        for source in sources:
            for name, use in source.uses():
                if source is forward or use in (INDEX, CONJUGATED, LOOKED_UP, SORTED):
                    self.uses.setdefault(name, set()).add(use)
            for name, least, most in source.axes():
                low, high = self.axes.get(name, (0, _MOST_AXES))
                self.axes[name] = (max(low, least), min(high, most))
        if len(sources) == 2:
            given, none, self.left_out = sources[1].gradients(names)
            for name in given | none:
                self.uses.setdefault(name, set()).add(GRADIENT if name in given else UNGIVEN)
            if any(_ends(node, "saved_tensors") for node in sources[1].nodes):
                for name in forward.order:  # an array would not be among them
                    self.uses.setdefault(name, set()).add(TENSOR)
        self.lengths, self.columns = forward.lengths(), forward.columns()
        for kinds in self.uses.values():
            if _EQUAL in kinds and not kinds & {TENSOR, GRADIENT}:
                kinds.add(INDEX)
            kinds.discard(_EQUAL)
        self.uses = {name: self.uses[name] for name in names if self.uses.get(name)}
        self.axes = {n: ends for n, ends in self.axes.items() if ends[0] <= ends[1]}

    def of(self, *kinds: str) -> set[str]:
        """Return the arguments that are used in one of these ways."""
        return {name for name, found in self.uses.items() if found.intersection(kinds)}


def _function_of(fn: Any) -> Any:
    """Return the tree of a function's definition, None if it has no source."""
    tree = tree_of(fn)
    nodes = ast.walk(tree) if tree is not None else ()
    return next((n for n in nodes if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)


class _Source:
    """The source of forward, or of backward with what is known of forward."""

    def __init__(self, fn: Any, forward: _Source | None = None) -> None:
        function = _function_of(fn)
        body = function.body if isinstance(function.body, list) else [function.body]
        self.nodes = [node for statement in body for node in ast.walk(statement)]
        self.results = [n.value for n in self.nodes if isinstance(n, ast.Return) and n.value]
        if isinstance(function, ast.Lambda):
            self.results = [function.body]
        self.globals = getattr(fn, "__globals__", {})
        a = function.args
        self.parameters = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        self.forward = forward
        self.saved: dict[str, str] = {}  # from the name that forward saves to the argument
        self.order: list[str] = []  # what forward saves by position
        self.names: dict[str, str] = {} if forward else {n: n for n in self.parameters}
        self.assigned = [pair for node in self.nodes for pair in _assigned(node)]
        self._learn_names([name for name, _ in self.assigned])
        for node in self.nodes:
            self._note_saved(node) if forward is None else self._unpack(node, forward.order)

    def _learn_names(self, targets: list[str]) -> None:
        for name, node in self.assigned:
            found = self.name(node)
            if found and found != name and targets.count(name) == 1:
                self.names[name] = found
        for name in targets:
            if self.names.get(name) == name:  # it is assigned something else
                del self.names[name]

    def _note_saved(self, node: ast.AST) -> None:
        """Note what forward saves for backward, by `save_for_backward` or on the context."""
        if isinstance(node, ast.Call) and _ends(node.func, "save_for_backward"):
            self.order = [self.name(value) for value in node.args]
            self.order += [self.name(k.value) for k in node.keywords]
            self.saved |= {k.arg: self.name(k.value) for k in node.keywords if k.arg}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            self.saved[node.targets[0].attr] = self.name(node.value)

    def _unpack(self, node: ast.AST, order: list[str]) -> None:
        """Note the names that backward gives to the saved tensors."""
        if isinstance(node, ast.Assign) and _ends(node.value, "saved_tensors"):
            for part, name in zip(_elements(node.targets[0]), order, strict=False):
                if isinstance(part, ast.Name) and name:
                    self.names[part.id] = name

    def name(self, node: ast.AST | None) -> str:
        """Return the argument whose elements an expression holds; empty if it holds none's."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute) and self.forward is not None:
            return str(self.forward.saved.get(node.attr, ""))
        if isinstance(node, ast.Call):
            same = [t for t in _TAKES if t.same and _ends(node.func, t.function)]
            return self.name(self.operand(node, same[0])) if same else ""
        return ""

    def number(self, node: ast.AST | None) -> str:
        """Return the argument that a number is made of, as in ``-np.exp(rate)``."""
        if isinstance(node, ast.UnaryOp):
            return self.number(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of_elements = isinstance(getattr(np, node.func.attr, None), np.ufunc)
            return self.number(node.args[0]) if of_elements else self.name(node)
        return self.name(node)

    def operand(self, node: ast.Call, takes: Takes) -> ast.AST | None:
        """Return the operand of a call of a function or method; None if it has none there."""
        given: list[ast.AST] = list(node.args)
        if isinstance(node.func, ast.Attribute) and self.module(node.func.value) is None:
            given.insert(0, node.func.value)
        if takes.position < len(given):
            return given[takes.position]
        return next((k.value for k in node.keywords if k.arg == takes.keyword), None)

    def module(self, node: ast.AST) -> str | None:
        """Return the name of the module that an expression is, or is of; None for others."""
        while isinstance(node, ast.Attribute):
            node = node.value
        known = self.globals.get(node.id) if isinstance(node, ast.Name) else None
        local = isinstance(node, ast.Name) and node.id in self.names
        return known.__name__ if isinstance(known, types.ModuleType) and not local else None

    # -- uses ----------------------------------------------------------------------------------
    def uses(self) -> Iterator[tuple[str, str]]:
        """Yield the arguments and how they are used."""
        several = dict(self._of_comprehensions())
        for node in self.nodes:
            for name, use in self._of_node(node):
                yield from ((one, use) for one in several.get(name, [name]) if one)

    def _of_node(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Call):
            yield from self._of_call(node)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                yield node.target.id, FOREIGN
        elif isinstance(node, ast.Assign):
            if isinstance(node.targets[0], ast.Subscript):
                for part in _parts(node.targets[0]):
                    yield self.name(part), OVERWRITTEN
        elif isinstance(node, ast.Attribute) and node.attr in _ONLY_ARRAYS:
            if isinstance(node.value, ast.Name):
                yield self.name(node.value), FOREIGN
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield self.name(node.operand), MASK
        elif isinstance(node, ast.Compare):
            yield from ((name, _EQUAL) for name in self._labels(node))
        elif isinstance(node, ast.Slice):
            yield from ((self.name(end), WINDOW) for end in (node.lower, node.upper))
            ends = [e.value for e in (node.lower, node.upper) if isinstance(e, ast.Subscript)]
            if len(ends) == 2 and self.name(ends[0]) == self.name(ends[1]):
                yield self.name(ends[0]), POINTERS
        elif isinstance(node, ast.Subscript) and not _is_shape(node.value):
            yield from ((self.name(part), INDEX) for part in _parts(node))

    def _of_call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        if isinstance(node.func, ast.Name):
            yield node.func.id, CALLED
        for takes in _TAKES:
            if takes.use and _ends(node.func, takes.function) and not _is_cast(node, takes):
                operand = self.operand(node, takes)
                yield (self.number if takes.use == NUMBER else self.name)(operand), takes.use
        for keyword in node.keywords:
            if keyword.arg in ("axis", "dim"):
                yield self.name(keyword.value), AXIS
        if _ends(node.func, "repeat") and len(node.args) > 1:
            counts = node.args[1]
            if isinstance(counts, ast.Call) and _ends(counts.func, "diff") and counts.args:
                yield self.name(counts.args[0]), POINTERS
        kinds = (ENTRIES, COLUMNS, POINTERS)
        if node.args and len(_elements(node.args[0])) == 3 and _is_sparse(node.func):
            yield from zip(map(self.name, _elements(node.args[0])), kinds, strict=True)
        module = isinstance(node.func, ast.Attribute) and self.module(node.func.value)
        if module and not module.startswith("pullback"):
            yield from ((self.name(a), ARRAY) for a in node.args if isinstance(a, ast.Name))

    def _labels(self, node: ast.Compare) -> Iterator[str]:
        """Yield the arguments that are compared with a whole number, or with places."""
        if all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
            sides = [node.left, *node.comparators]
            inner = [s.value if isinstance(s, ast.Subscript) else s for s in sides]
            places = [isinstance(s, ast.Call) and _ends(s.func, "arange") for s in inner]
            if any(places) or any(_whole(side) is not None for side in sides):
                yield from map(self.name, inner)

    def _of_comprehensions(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the names that stand for several: `v` in ``(v.item() for v in (rate, start))``."""
        for node in self.nodes:
            if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
                items = [self.name(item) for item in _elements(node.iter)]
                if items and all(items):
                    self.names[node.target.id] = node.target.id
                    yield node.target.id, items

    # -- shapes --------------------------------------------------------------------------------
    def axes(self) -> Iterator[tuple[str, int, int]]:
        """Yield names with the least and the most axes that one place of the source allows."""
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                targets = _elements(node.targets[0])
                starred = any(isinstance(target, ast.Starred) for target in targets)
                if targets and _is_shape(node.value):
                    most = _MOST_AXES if starred else len(targets)
                    yield self.name(node.value.value), len(targets) - starred, most  # type: ignore[attr-defined]
            elif isinstance(node, ast.Subscript):
                least = self._least_axes(node)
                owner = node.value.value if _is_shape(node.value) else node.value  # type: ignore[attr-defined]
                yield self.name(owner), least, _MOST_AXES
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                for keyword in node.keywords:
                    axis = _whole(keyword.value) if keyword.arg in ("axis", "dim") else None
                    if axis is not None:
                        yield self.name(node.func.value), _at_least(axis), _MOST_AXES

    def _least_axes(self, node: ast.Subscript) -> int:
        if _is_shape(node.value):
            axis = _whole(node.slice)
            return 0 if axis is None else _at_least(axis)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        plain = all(isinstance(part, (ast.Slice, ast.Name, ast.Constant)) for part in parts)
        made = [p for p in parts if isinstance(p, ast.Constant) and p.value in (None, ...)]
        return len(parts) - len(made) if plain else 0

    def lengths(self) -> dict[str, int]:
        """Return how many elements the arguments have that are taken apart one by one."""
        found: dict[str, int] = {}
        other = {""}  # what is indexed in another way, too
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                targets = _elements(node.targets[0])
                if targets and not any(isinstance(target, ast.Starred) for target in targets):
                    found[self.name(node.value)] = len(targets)
            elif isinstance(node, ast.Subscript):
                name, place = self.name(node.value), _whole(node.slice)
                if place is None or place < 0:
                    other.add(name)
                else:
                    found[name] = max(found.get(name, 0), place + 1)
        return {name: count for name, count in found.items() if count > 1 and name not in other}

    def columns(self) -> dict[str, int]:
        """Return the arguments whose columns are indices, with how many there are."""
        rows: dict[str, tuple[str, int]] = {}  # as in ``first, second = pairs.T``
        for node in self.nodes:
            if isinstance(node, ast.Assign) and _ends(node.value, "T"):
                targets = _elements(node.targets[0])
                known = (self.name(node.value.value), len(targets))  # type: ignore[attr-defined]
                rows |= {t.id: known for t in targets if isinstance(t, ast.Name)}
        found: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, ast.Subscript) and not _is_shape(node.value):
                for part in _parts(node):
                    name, count = rows.get(getattr(part, "id", ""), ("", 0))
                    if isinstance(part, ast.Subscript) and len(_parts(part)) == 2:
                        place = _whole(_parts(part)[1])
                        if isinstance(_parts(part)[0], ast.Slice) and place is not None:
                            name, count = self.name(part.value), place + 1
                    found[name] = max(found.get(name, 0), count)
        return {name: count for name, count in found.items() if name and count}

    # -- results -------------------------------------------------------------------------------
    def gradients(self, names: list[str]) -> tuple[set[str], set[str], set[str]]:
        """Return for which arguments each result has a gradient, None, and nothing at all."""
        given: list[set[str]] = []
        none: list[set[str]] = []
        keys: set[str] = set()
        mappings = 0
        for value in self.results:
            pairs: Any = ()
            if isinstance(value, ast.Dict) and all(map(_is_text, value.keys)):
                pairs = [(k.value, v) for k, v in zip(value.keys, value.values, strict=True)]  # type: ignore[union-attr]
                keys |= {key for key, _ in pairs}
                mappings += 1
            elif isinstance(value, ast.Tuple):
                pairs = list(zip(names, value.elts, strict=False))
                if any(isinstance(one, ast.Starred) for one in value.elts):
                    continue
            if pairs:
                given.append({name for name, node in pairs if not _may_be_none(node)})
                none.append({name for name, node in pairs if _is_none(node)})
        if not given:
            return set(), set(), set()
        left_out = set(names) - keys if mappings == len(self.results) else set()
        return set.intersection(*given), set.intersection(*none), left_out


# -- parts of a tree -------------------------------------------------------------------------------
def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a statement assigns, each with what it is assigned."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, (ast.AugAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        names = (item for item in ast.walk(node.target) if isinstance(item, ast.Name))
        yield from ((item.id, node.target) for item in names)


def _pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    parts, values = _elements(target), _elements(value)
    if len(values) != len(parts):
        values = [target] * len(parts)
    for part, one in zip(parts, values, strict=True):
        yield from _pairs(part, one)


def _elements(node: ast.AST) -> list[Any]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else []


def _parts(node: ast.Subscript) -> list[ast.expr]:
    """Return what stands in the brackets, apart."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _ends(node: ast.AST, name: str) -> bool:
    """Return whether an expression is a name, or ends with an attribute; perhaps in place."""
    found: str = getattr(node, "attr" if isinstance(node, ast.Attribute) else "id", "")
    return found == name or found == f"{name}_"


def _is_cast(node: ast.Call, takes: Takes) -> bool:
    """Return whether a method of the name of one of Python's functions is called."""
    return takes.use == NUMBER and hasattr(builtins, takes.function) != isinstance(
        node.func, ast.Name
    )


def _is_sparse(node: ast.AST) -> bool:
    """Return whether a function makes a matrix of compressed rows, or columns."""
    return any(_ends(node, f"cs{k}_{kind}") for k in "rc" for kind in ("matrix", "array"))


def _is_shape(node: ast.AST) -> bool:
    """Return whether an expression is a shape, or ``np.r_``, of which brackets take no element."""
    return any(_ends(node, name) for name in ("shape", "r_", "c_"))


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _may_be_none(node: ast.AST) -> bool:
    if isinstance(node, ast.IfExp):
        return _may_be_none(node.body) or _may_be_none(node.orelse)
    return _is_none(node)


def _whole(node: ast.AST) -> int | None:
    """Return the whole number that is written, None if none is."""
    try:
        found = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return found if type(found) is int else None


def _at_least(axis: int) -> int:
    """Return the least number of axes of an array that has this axis."""
    return axis + 1 if axis >= 0 else -axis
