"""The memory that a graph holds: which arrays, how large, and which would go with the graph.

Owns the walk through what nodes hold. Whether something outlives the graph is decided as Python's
garbage collector decides what is garbage: a reference that does not come from within the graph
keeps what it leads to. Must not know what an operation saves, nor change or keep any of it.
"""

from __future__ import annotations

import gc
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import getrefcount
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import ref

from pullback.arrays import NUMPY, Library, innermost, is_array, ndarray
from pullback.core.custom.operation import CustomOp
from pullback.core.function.primitive import Primitive
from pullback.core.graph.modes import Mode
from pullback.core.graph.node import Node, Output
from pullback.core.tensor.ownership import SOLE
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose
from pullback.inspect.observing import Facts

_NUMBERS = frozenset((type(None), bool, int, float, complex, str, bytes, type(...), NUMPY.xp.dtype))
_MANY = 1_000  # references that may hold a root
# What is shared by all graphs, or leads to the whole program.
_NOT_ENTERED: tuple[type, ...]
_NOT_ENTERED = (type, ModuleType, Primitive, CustomOp, Library, Mode, Facts)
_NOT_ENTERED += (BuiltinFunctionType, CodeType, ref, NUMPY.xp.generic, NUMPY.xp.ufunc)


class Memory(NamedTuple):
    """What a graph holds: arrays by number, each once, a view as the array that it shows.

    Attributes
    ----------
    saved : dict of tuple of int
        The arrays that each node saved, by the node's number.
    sizes : list of int
        The bytes of each array.
    alone : list of bool
        Whether it would be freed with the graph; else it is also reachable otherwise.
    """

    saved: dict[int, tuple[int, ...]]
    sizes: list[int]
    alone: list[bool]

    def bytes_of(self, nodes: Iterable[int]) -> int:
        """Return the bytes that some nodes saved, each array once."""
        return sum(self.sizes[k] for k in {k for node in nodes for k in self.saved[node]})


def size_of(array: Any) -> int:
    """Return the bytes that an array keeps: of a view, those of the array it shows."""
    array = innermost(owner_of(array))
    size = getattr(array, "nbytes", None)
    if size is None and hasattr(array, "size") and hasattr(array.dtype, "itemsize"):
        size = array.size * array.dtype.itemsize
    return int(size or 0)


def owner_of(array: Any) -> Any:
    """Return the array whose memory a view shows, or the array itself."""
    while array.__class__ is ndarray and isinstance(array.base, ndarray):
        array = array.base
    return array


def arrays_in(value: Any) -> list[Any]:
    """Return the arrays that a value holds, each once, a view as the array that it shows."""
    walk = _Walk()
    return [walk.things[key] for key in walk.saved_by(value)]


def memory_of(order: list[Node], roots: Sequence[Node], tensors: Sequence[Tensor]) -> Memory:
    """Measure what the nodes of a graph hold.

    Parameters
    ----------
    order : list of Node
        Those that `reached` gives, which nobody else holds on behalf of the caller.
    roots : sequence of Node
        Those that others of the graph are reached from.
    tensors : sequence of Tensor
        Those that the graph goes with: they hold it, and may hold saved arrays. Without them,
        whatever holds the roots is taken to go with it.
    """
    walk = _Walk()
    tensors = list({id(tensor): tensor for tensor in tensors}.values())
    # One of several outputs holds its node; a view holds its base, which others may hold as well.
    walk.enter([root for root in roots if not root.runs])
    walk.enter([tensor._data for tensor in tensors])
    walk.enter([tensor._base for tensor in tensors if tensor._base is not None])
    saved = {node.seq: walk.saved_by(node) for node in order if node.runs}
    # The two lists, and the slots of the tensors.
    held = [*map(id, order), *map(id, roots), *itertools.chain(*map(_ids_held, tensors))]
    kept = walk.kept_by_others(Counter(held if tensors else _MANY * held))
    keys = dict.fromkeys(itertools.chain.from_iterable(saved.values()))
    number = {key: k for k, key in enumerate(keys)}
    sizes = [size_of(walk.things[key]) for key in keys]
    numbers = {seq: tuple([number[key] for key in found]) for seq, found in saved.items()}
    return Memory(numbers, sizes, [key not in kept for key in keys])


def node_behind(node: Node) -> Node:
    """Return the node that an edge leads to: of one of several outputs, what computed them."""
    return node.node if isinstance(node, Output) else node


def roots_of(api: str, tensors: Sequence[Any]) -> list[Node]:
    """Return the nodes of tensors, once these are up to date; raise if one is no tensor."""
    for tensor in tensors or (None,):
        if not isinstance(tensor, Tensor):
            came = "none" if tensor is None else type(tensor).__name__
            hint = "pass what you computed, such as the loss"
            raise ArgumentTypeError(compose(api, "tensors required", came, hint=hint))
    for tensor in tensors:
        if tensor._base is not None:
            tensor.data_array()
    return [tensor._node for tensor in tensors if tensor._node is not None]


def reached(roots: Iterable[Node]) -> list[Node]:
    """Return every node and the end of every leaf that roots lead to, in the order of creation."""
    order = list(dict.fromkeys(map(node_behind, roots)))
    seen = set(order)
    for node in order:  # which grows
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                order.append(source)
    return sorted(order, key=lambda node: node.seq)


def _ids_held(tensor: Tensor) -> tuple[int, ...]:
    held = [tensor._node, tensor._data, tensor._counter]
    if tensor._base is not None:
        held += [tensor._base, tensor._base_node, tensor._base_data]
    return tuple(map(id, held))


class _Walk:
    """Everything that nodes hold, each thing once, with how often things within it are held."""

    def __init__(self) -> None:
        self.things: dict[int, Any] = {}  # by id: held here, so that none is used anew
        self._references: dict[int, int] = {}  # from within
        self._kinds = _Entered()

    def enter(self, holders: Sequence[Any]) -> None:
        """Enter what holds nodes or arrays."""
        for holder in holders:
            self.saved_by(holder)

    def saved_by(self, holder: Any) -> list[int]:
        """Enter a node, or what holds one; return the ids of the arrays that it saved."""
        found, left, here, references = list[int](), [holder], set[int](), self._references
        while left:
            thing = left.pop()
            key = id(thing)
            if key in here:
                continue
            here.add(key)
            known = key in self.things
            self.things[key] = thing
            for part in _parts(thing, self._kinds):
                if not known:
                    references[id(part)] = references.get(id(part), 0) + 1
                if not isinstance(part, Node) or not part.runs:  # else entered on its own
                    left.append(part)
            if is_array(thing) and owner_of(thing) is thing:
                found.append(key)
        return found

    def kept_by_others(self, known: Mapping[int, int]) -> set[int]:
        """Return the ids of what others reach; `known` are references of the graph's own."""
        if SOLE < 0:  # the interpreter does not count exactly
            return set(self.things)
        inside, own = self._references, _count_in_one_dict()
        left = [
            key
            for key, thing in self.things.items()
            if getrefcount(thing) - own > inside.get(key, 0) + known.get(key, 0)
        ]
        kept = set(left)
        while left:
            for part in _parts(self.things[left.pop()], self._kinds):
                if id(part) not in kept:
                    kept.add(id(part))
                    if id(part) in self.things:
                        left.append(id(part))
        return kept


def _count_in_one_dict() -> int:
    """Return what `getrefcount` says in a loop over a dictionary that alone holds a thing."""
    probe = {0: NUMPY.xp.zeros(1)}
    (count,) = [getrefcount(thing) for _, thing in probe.items()]
    return count


def _parts(thing: Any, entered: _Entered) -> list[Any]:
    """Return what a thing holds, as often as it does; nothing of what leads out of a graph."""
    if isinstance(thing, ndarray):
        return [thing.base] if isinstance(thing.base, ndarray) else []
    if isinstance(thing, FunctionType):
        held: Iterator[Any] = iter((thing.__closure__, thing.__defaults__, thing.__kwdefaults__))
        return [part for part in held if part]
    return [part for part in gc.get_referents(thing) if entered[part.__class__]]


class _Entered(dict[type, bool]):
    """Whether what things of a class hold belongs to the graph."""

    def __missing__(self, cls: type) -> bool:
        self[cls] = cls not in _NUMBERS and not issubclass(cls, _NOT_ENTERED)
        return self[cls]
