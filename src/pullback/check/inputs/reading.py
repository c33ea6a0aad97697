"""What the source of an operation says of its arguments: how forward and backward use them.

Nobody who writes `offsets[index]` and `np.bincount(index)` needs to say what an index is. Must not
know which inputs are made of it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pullback.check.inputs.origins import Origins, ends, function_of, names_of, own_nodes
from pullback.check.sources import text_of
from pullback.core.tensor.tensor import Tensor

# Uses of an argument. FOREIGN: as arrays are used and tensors are not; GRADIENT: backward returns
# one for it; CONJUGATED: as a complex number.
CALLED, NUMBER, INDEX, ARRAY, TENSOR = "called", "number", "index", "array", "tensor"
FOREIGN, GRADIENT, CONJUGATED = "foreign", "gradient", "conjugated"
# Passed as what a search or an interpolation needs sorted; read as true or false.
SORTED, MASK = "sorted", "mask"
_EQUAL = "equal"  # compared with a whole number: one itself, if it is no tensor

# Functions whose argument at a position, or of a name, is an array of whole numbers.
_OF_INDICES = {"bincount": 0, "take": 1, "take_along_axis": 1, "put_along_axis": 1, "at": 1}
# Functions of a sorted array, at a position or of a name.
_OF_SORTED: dict[str, tuple[int, str]] = {
    "searchsorted": (0, "a"),
    "digitize": (1, "bins"),
    "interp": (1, "xp"),
    "histogram": (1, "bins"),
    "bucketize": (1, "boundaries"),
}
_OF_NUMBERS = {"range", "float", "int", "eye", "arange"}
_OF_TENSORS = {"numpy", "detach", "item", "clone", "data_array"}
_ONLY_ARRAYS = {n for n in dir(np.ndarray) if not n.startswith("_") and not hasattr(Tensor, n)}
_REDUCTIONS = {"sum", "mean", "max", "min", "prod", "var", "std", "argmax", "argmin", "cumsum"}


def uses(fn: Any) -> dict[str, set[str]]:
    """Return how an operation uses its arguments, by name; without those of which nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def forward(ctx, x, ids, f, rate):
    ...     return pb.asarray(np.bincount(ids, f(x.numpy()) * rate.item()))
    >>> uses(pb.autograd_function(forward, lambda ctx, g: None, name="binned"))
    {'x': {'tensor'}, 'ids': {'index'}, 'f': {'called'}, 'rate': {'number'}}
    """
    forward, backward = _passes(fn)
    if forward is None:
        return {}
    found: dict[str, set[str]] = {name: set() for name in names_of(forward)[1:]}
    origins = Origins(forward)
    several = _of_comprehensions(forward)
    for used, use in _found(forward, origins):
        for name in several.get(used, (used,)):
            if name in found:
                found[name].add(use)
    if backward is not None:
        for name, use in _found(backward, Origins(backward, origins)):
            if use in (INDEX, CONJUGATED) and name in found:
                found[name].add(use)
        for name in _differentiated(backward, names_of(forward)[1:]) & found.keys():
            found[name].add(GRADIENT)
        if any(ends(node, "saved_tensors") for node in own_nodes(backward)):
            for name in found.keys() & set(origins.order):  # an array would not be among them
                found[name].add(TENSOR)
    for kinds in found.values():
        if _EQUAL in kinds and not kinds & {TENSOR, GRADIENT}:
            kinds.add(INDEX)
        kinds.discard(_EQUAL)
    return {name: kinds for name, kinds in found.items() if kinds}


def axes(fn: Any) -> dict[str, tuple[int, int]]:
    """Return the least and the most axes that arguments have, as far as the source tells.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, w):
    ...     rows, columns = x.shape
    ...     return x * w.numpy().sum(axis=1)
    >>> axes(pb.autograd_function(forward, lambda ctx, g: None, name="scaled"))
    {'x': (2, 2), 'w': (2, 9)}
    """
    forward, backward = _passes(fn)
    if forward is None:
        return {}
    origins = Origins(forward)
    functions = [(forward, origins)]
    if backward is not None:
        functions.append((backward, Origins(backward, origins)))
    found: dict[str, tuple[int, int]] = {}
    for function, known in functions:
        for name, least, most in _axes(function, known):
            low, high = found.get(name, (0, 9))
            found[name] = (max(low, least), min(high, most))
    return {name: (low, high) for name, (low, high) in found.items() if low <= high}


def lengths(fn: Any) -> dict[str, int]:
    """Return how many elements the arguments have that forward takes apart one by one.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, rates, x):
    ...     up, down = rates.numpy()
    ...     return x[0] * up - x[2] * down
    >>> lengths(pb.autograd_function(forward, lambda ctx, g: None, name="flow"))
    {'rates': 2, 'x': 3}
    """
    forward, _ = _passes(fn)
    if forward is None:
        return {}
    origins = Origins(forward)
    found: dict[str, int] = {}
    other: set[str] = set()  # what is indexed in another way, too
    for node in own_nodes(forward):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            name, targets = origins.name(node.value), node.targets[0].elts
            if name and not any(isinstance(target, ast.Starred) for target in targets):
                found[name] = len(targets)
        elif isinstance(node, ast.Subscript):
            name, place = origins.name(node.value), _whole(node.slice)
            if place is None or place < 0:
                other.add(name)
            elif name:
                found[name] = max(found.get(name, 0), place + 1)
    return {name: count for name, count in found.items() if count > 1 and name not in other}


def undifferentiated(fn: Any) -> set[str]:
    """Return the arguments that each mapping which backward returns leaves out, by its source.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, masses, limit):
    ...     return x * pb.asarray(masses)
    >>> def backward(ctx, g):
    ...     return {"x": g, "limit": None}
    >>> undifferentiated(pb.autograd_function(forward, backward, name="scaled"))
    {'masses'}
    """
    forward, backward = _passes(fn)
    if forward is None or backward is None:
        return set()
    returned = [
        backward.body if isinstance(node, ast.Lambda) else node.value
        for node in own_nodes(backward)
        if isinstance(node, ast.Return) or (node is backward and isinstance(node, ast.Lambda))
    ]
    mappings = [given for given in returned if isinstance(given, ast.Dict)]
    keys = [key for given in mappings for key in given.keys]
    if not keys or len(mappings) < len(returned) or not all(_is_text(key) for key in keys):
        return set()
    return set(names_of(forward)[1:]) - {ast.literal_eval(key) for key in keys if key}


def _is_text(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def index_columns(fn: Any) -> dict[str, int]:
    """Return the arguments whose columns are indices, with how many columns there are.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, pairs, bonds):
    ...     first, second = pairs.T
    ...     return x[first] * x[second] + x[bonds[:, 0]] - x[bonds[:, 1]]
    >>> index_columns(pb.autograd_function(forward, lambda ctx, g: None, name="gaps"))
    {'bonds': 2, 'pairs': 2}
    """
    forward, _ = _passes(fn)
    if forward is None:
        return {}
    origins, found = Origins(forward), dict[str, int]()
    rows = _turned_rows(forward, origins)
    for node in own_nodes(forward):
        if isinstance(node, ast.Subscript) and not _is_no_array(node.value):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in parts:
                name, count = _column(part, rows, origins)
                if name:
                    found[name] = max(found.get(name, 0), count)
    return dict(sorted(found.items()))


def _turned_rows(function: Any, origins: Origins) -> dict[str, tuple[str, int]]:
    """Return the names of the columns in ``first, second = pairs.T``, as `_column` has them."""
    rows: dict[str, tuple[str, int]] = {}
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            turned, names = node.value, node.targets[0].elts
            if isinstance(turned, ast.Attribute) and turned.attr == "T":
                known = (origins.name(turned.value), len(names))
                rows |= {name.id: known for name in names if isinstance(name, ast.Name)}
    return rows


def _column(
    node: ast.AST, rows: Mapping[str, tuple[str, int]], origins: Origins
) -> tuple[str, int]:
    """Return the argument of which an expression is a column, and how many it has at least."""
    if isinstance(node, ast.Name):
        return rows.get(node.id, ("", 0))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        parts = node.slice.elts
        place = _whole(parts[1]) if len(parts) == 2 and isinstance(parts[0], ast.Slice) else None
        return (origins.name(node.value), place + 1) if place is not None else ("", 0)
    return "", 0


def is_of_complex(fn: Any) -> bool:
    """Return whether an operation's source or docstring has a word of complex numbers in it."""
    words = r"complex|conj|imag|\.real\b|fft|angle\(|\dj\b|wirtinger|unitary|hermitian|\.H\b|\.mH\b"
    said = inspect.getdoc(getattr(fn, "forward", fn)) or ""
    return re.search(words, f"{text_of(fn)} {said}", re.IGNORECASE) is not None


def _passes(fn: Any) -> tuple[Any, Any]:
    """Return the trees of forward and backward, None for those that have no source."""
    return function_of(getattr(fn, "forward", None)), function_of(getattr(fn, "rule", None))


# -- uses ------------------------------------------------------------------------------------------
def _found(function: Any, origins: Origins) -> Iterator[tuple[str, str]]:
    """Yield the names and how they are used."""
    for node in own_nodes(function):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, FOREIGN
        elif isinstance(node, ast.Call):
            yield from _of_call(node, origins)
        elif isinstance(node, ast.Attribute) and node.attr in _ONLY_ARRAYS:
            if isinstance(node.value, ast.Name) and node.value.id in origins.arguments:
                yield node.value.id, FOREIGN
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield origins.name(node.operand), MASK
        elif isinstance(node, ast.Compare):
            yield from ((name, _EQUAL) for name in _labels(node, origins))
        elif isinstance(node, ast.Subscript) and not _is_no_array(node.value):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in parts:
                name = origins.name(part)
                if name:
                    yield name, INDEX


def _of_comprehensions(function: Any) -> dict[str, list[str]]:
    """Return the names that stand for several, as `v` in ``(v.item() for v in (rate, start))``."""
    found = {}
    for node in own_nodes(function):
        if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
            items = node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else []
            if items and all(isinstance(item, ast.Name) for item in items):
                found[node.target.id] = [item.id for item in items if isinstance(item, ast.Name)]
    return found


def _labels(node: ast.Compare, origins: Origins) -> Iterator[str]:
    """Yield the arguments that are compared with a whole number, or with places in an array."""
    if not all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
        return
    sides = [node.left, *node.comparators]
    if any(_whole(side) is not None or _is_range(side, origins) for side in sides):
        for side in sides:
            inner = side.value if isinstance(side, ast.Subscript) else side
            name = origins.name(inner)
            if name:
                yield name


def _is_range(node: ast.AST, origins: Origins) -> bool:
    """Return whether an expression is ``np.arange(...)``, perhaps with more axes."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(node, ast.Call) and ends(node.func, "arange")


def _is_no_array(node: ast.AST) -> bool:
    """Return whether an expression in front of brackets is a shape, or ``np.r_``."""
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "r_", "c_")


def _of_call(node: ast.Call, origins: Origins) -> Iterator[tuple[str, str]]:
    if isinstance(node.func, ast.Name):
        yield node.func.id, CALLED
        if node.func.id in _OF_NUMBERS:
            yield from ((name, NUMBER) for name in map(origins.value, node.args) if name)
        return
    if not isinstance(node.func, ast.Attribute):
        return
    owner, name = node.func.value, node.func.attr
    if isinstance(owner, ast.Name):
        if name == "item":
            yield owner.id, NUMBER
        elif name in _OF_TENSORS:
            yield owner.id, TENSOR
    if name in ("all", "any") and not node.args:
        yield origins.name(owner), MASK
    if name in _OF_SORTED:
        yield from ((given, SORTED) for given in _sorted_ones(node, origins))
    if name.startswith("conj"):
        known = [origins.name(operand) for operand in (owner, *node.args)]
        yield from ((operand, CONJUGATED) for operand in known if operand)
    position = _OF_INDICES.get(name)
    for k, argument in enumerate(node.args):
        if not _is_numpy(owner):
            continue
        found = origins.name(argument)
        if found and k == position:
            yield found, INDEX
        elif isinstance(argument, ast.Name):
            yield argument.id, ARRAY


def _sorted_ones(node: ast.Call, origins: Origins) -> Iterator[str]:
    """Yield the argument that a call needs sorted: by position, by name, or as the owner."""
    assert isinstance(node.func, ast.Attribute)
    position, keyword = _OF_SORTED[node.func.attr]
    given = node.args[position : position + 1]
    given += [k.value for k in node.keywords if k.arg == keyword]
    if node.func.attr == "searchsorted":
        given.append(node.func.value)
    for expression in given:
        name = origins.name(expression)
        if name:
            yield name


def _is_numpy(owner: ast.AST) -> bool:
    """Return whether a function is one of NumPy or SciPy, as far as its name tells."""
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "scipy", "special", "sp")


def _differentiated(backward: Any, names: list[str]) -> set[str]:
    """Return the arguments for which each of backward's results has a gradient, by its source."""
    results: list[set[str]] = []
    for node in own_nodes(backward):
        value = node.value if isinstance(node, ast.Return) else None
        if isinstance(backward, ast.Lambda) and node is backward:
            value = backward.body
        if isinstance(value, ast.Dict):
            pairs: Mapping[Any, Any] = {
                key.value: given
                for key, given in zip(value.keys, value.values, strict=True)
                if isinstance(key, ast.Constant)
            }
        elif isinstance(value, ast.Tuple) and not any(
            isinstance(item, ast.Starred) for item in value.elts
        ):
            pairs = dict(zip(names, value.elts, strict=False))
        else:
            continue
        results.append({name for name, given in pairs.items() if not _is_none(given)})
    return set.intersection(*results) if results else set()


def _is_none(node: ast.AST) -> bool:
    """Return whether an expression is None, or may be."""
    if isinstance(node, ast.IfExp):
        return _is_none(node.body) or _is_none(node.orelse)
    return isinstance(node, ast.Constant) and node.value is None


# -- axes ------------------------------------------------------------------------------------------
def _axes(function: Any, origins: Origins) -> Iterator[tuple[str, int, int]]:
    """Yield names with the least and the most axes that one place of the source allows."""
    for node in own_nodes(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
            name, targets = _shape_of(node.value, origins), node.targets[0].elts
            starred = any(isinstance(target, ast.Starred) for target in targets)
            if name:
                yield name, len(targets) - starred, 9 if starred else len(targets)
        elif isinstance(node, ast.Subscript):
            yield from _of_subscript(node, origins)
        elif isinstance(node, ast.Call):
            yield from _of_axis(node, origins)


def _shape_of(node: ast.AST, origins: Origins) -> str:
    """Return the argument whose shape an expression is; empty if it is none."""
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return origins.name(node.value)
    return ""


def _of_subscript(node: ast.Subscript, origins: Origins) -> Iterator[tuple[str, int, int]]:
    shaped = _shape_of(node.value, origins)
    if shaped:
        axis = _whole(node.slice)
        if axis is not None:
            yield shaped, _least(axis), 9
        return
    name, index = origins.name(node.value), node.slice
    parts = index.elts if isinstance(index, ast.Tuple) else []
    if name and all(isinstance(part, (ast.Slice, ast.Name, ast.Constant)) for part in parts):
        yield name, len([p for p in parts if not _is_none(p) and not _is_dots(p)]), 9


def _is_dots(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _of_axis(node: ast.Call, origins: Origins) -> Iterator[tuple[str, int, int]]:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCTIONS:
        name = origins.name(node.func.value)
        for keyword in node.keywords:
            axis = _whole(keyword.value) if keyword.arg in ("axis", "dim") else None
            if name and axis is not None:
                yield name, _least(axis), 9
    elif isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        name = origins.name(node.args[0])
        if name:
            yield name, 1, 9


def _whole(node: ast.AST) -> int | None:
    """Return the whole number that is written, None if none is."""
    try:
        found = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return found if type(found) is int else None


def _least(axis: int) -> int:
    """Return the least number of axes of an array that has this axis."""
    return axis + 1 if axis >= 0 else -axis
