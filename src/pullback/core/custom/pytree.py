"""Pytrees: flattening structures of tuples, lists, dicts and dataclasses, and rebuilding them.

Owns the containers that forward may take (with traverse=True) and return. Must not know Tensor.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any


@functools.lru_cache(maxsize=1024)
def _reader(kind: type) -> Callable[[Any], list[tuple[Any, Any]]] | None:
    """Return what reads a container of a class, None where its objects are none."""
    if issubclass(kind, dict):
        return lambda value: list(value.items())
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return lambda value: list(zip(value._fields, value, strict=True))
    if issubclass(kind, (tuple, list)):
        return lambda value: list(enumerate(value))
    if dataclasses.is_dataclass(kind):
        return lambda value: [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    return None


def children(value: Any) -> list[tuple[Any, Any]] | None:
    """Return (key, item) pairs of a container in its order, None for anything else."""
    read = _reader(value.__class__)
    return None if read is None else read(value)


def rebuild(like: Any, items: list[Any]) -> Any:
    """Return a container of the kind of `like` that holds `items` in its order."""
    if isinstance(like, tuple):
        return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)
    if isinstance(like, list):
        return type(like)(items)
    # A copy, not a new object: a factory or an __init__ must not run a second time.
    result = copy.copy(like)
    if isinstance(like, dict):
        for key, item in zip(like, items, strict=True):
            result[key] = item
    else:
        for field, item in zip(dataclasses.fields(like), items, strict=True):
            object.__setattr__(result, field.name, item)
    return result


def leaves(value: Any) -> Iterator[Any]:
    """Return what is no container, in order."""
    return iter(flatten(value)[0])


def map_leaves(fn: Callable[[Any], Any], value: Any) -> Any:
    """Return the same structure with `fn` applied to what is no container."""
    items = children(value)
    if items is None:
        return fn(value)
    return rebuild(value, [map_leaves(fn, item) for _, item in items])


def refilled(likes: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return the same structures with other values for what is no container, in order."""
    left = iter(values)
    return [map_leaves(lambda _: next(left), like) for like in likes]


@dataclasses.dataclass(slots=True, eq=False)
class Structure:
    """The containers that leaves stood in, as `flatten` found them; None stands for none."""

    like: Any  # the container
    keys: list[Any]  # what each item is reached by
    items: list[Structure | None]  # what it holds: None for a leaf

    @property
    def size(self) -> int:
        """The number of leaves."""
        return sum([1 if item is None else item.size for item in self.items])


def flatten(value: Any) -> tuple[list[Any], Structure | None]:
    """Return what is no container, in order, and the containers around it.

    Examples
    --------
    >>> found, structure = flatten({"a": 1, "b": (2, 3)})
    >>> found, unflatten(structure, ["x", "y", "z"])
    ([1, 2, 3], {'a': 'x', 'b': ('y', 'z')})
    """
    read = _reader(value.__class__)
    if read is None:
        return [value], None
    result: list[Any] = []
    return result, _flattened(value, read, result)


def _flattened(value: Any, read: Callable[[Any], Any], collected: list[Any]) -> Structure:
    keys: list[Any] = []
    items: list[Structure | None] = []
    for key, item in read(value):
        inner = _reader(item.__class__)
        if inner is None:
            collected.append(item)
        keys.append(key)
        items.append(None if inner is None else _flattened(item, inner, collected))
    return Structure(value, keys, items)


def unflatten(structure: Structure | None, values: Sequence[Any]) -> Any:
    """Return values, one for each leaf, in the containers that these stood in."""
    return values[0] if structure is None else _unflattened(structure, iter(values))


def _unflattened(structure: Structure, values: Iterator[Any]) -> Any:
    items = [next(values) if s is None else _unflattened(s, values) for s in structure.items]
    return rebuild(structure.like, items)


def paths_of(name: str, structure: Structure | None) -> Iterator[str]:
    """Yield where each leaf is, as Python would reach it."""
    if structure is None:
        yield name
        return
    for key, item in zip(structure.keys, structure.items, strict=True):
        yield from paths_of(path_of(name, structure.like, key), item)


def named_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield everything that is not a container, each with its path."""
    found, structure = flatten(value)
    return zip(paths_of(name, structure), found, strict=True)


def path_of(name: str, container: Any, key: Any) -> str:
    """Name an item of a container as Python would reach it."""
    by_key = isinstance(container, (dict, list)) or (
        isinstance(container, tuple) and not hasattr(container, "_fields")
    )
    return f"{name}[{key!r}]" if by_key else f"{name}.{key}"
