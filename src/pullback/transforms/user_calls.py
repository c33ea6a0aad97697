"""Functions that are called on what wrapped arrays hold, and the one node of such a call.

Owns a call whose arguments may hold tensors anywhere, to be made again with other tensors; the way
to the library that makes it; and its node, whose backward is such a call itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pullback.arrays import NUMPY, library_of
from pullback.core.custom.pytree import Structure, flatten, unflatten
from pullback.core.function.dispatch import unwrap_escaped, wrap_in
from pullback.core.function.record import NodeOperation, new_node, warn_of_lost
from pullback.core.graph.modes import STATE
from pullback.core.graph.node import MultiNode, meta_of
from pullback.core.tensor.saved import Packed, stale
from pullback.core.tensor.tensor import Tensor, box, tensor_class
from pullback.core.tensor.versions import EPOCH, counter_of, version_of
from pullback.errors import InplaceError, compose

NODE = operator.attrgetter("_node")

OfTensors = Callable[..., Sequence[Tensor]]
GradientsOf = Callable[[list[bool], list[bool]], OfTensors]


class UserCall:
    """One call of a function: what of its arguments are tensors, and what it returned.

    It must change no argument in place in the transform `where`. Tensors in containers count where
    it traverses those.
    """

    def __init__(
        self,
        function: Any,
        args: Sequence[Any],
        keywords: dict[str, Any],
        where: str,
        traverse: bool = True,
    ) -> None:
        self.function, self._where, self._traverse = function, where, traverse
        self.name = name_of_function(function)
        self._count, self._names = len(args), tuple(keywords)
        # What the arguments hold, of containers where they are traversed; the tensors among that.
        self.leaves, self._containers = [*args, *keywords.values()], None
        if traverse:
            self.leaves, self._containers = flatten(self.leaves)
        self._at: list[int] = []
        self.tensors: list[Tensor] = []
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, Tensor):
                self._at.append(i)
                self.tensors.append(leaf)
        # The leaves of what the last call returned, and their containers.
        self.results: list[Any] = []
        self.structure: Structure | None = None

    def with_leaves(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the arguments with other leaves, positional ones and keywords."""
        values = unflatten(self._containers, leaves) if self._traverse else leaves
        count = self._count
        return values[:count], dict(zip(self._names, values[count:], strict=True))

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Call the function with these tensors; return the tensors in its result."""
        leaves = list(self.leaves)
        for i, tensor in zip(self._at, tensors, strict=False):
            leaves[i] = tensor
        args, keywords = self.with_leaves(leaves)
        versions, epoch, error = list(map(version_of, tensors)), EPOCH[0], None
        try:
            self.results, self.structure = flatten(self.function(*args, **keywords))
        except InplaceError as raised:
            error = raised
        if error or (EPOCH[0] != epoch and versions != list(map(version_of, tensors))):
            required = f"an operation that changes no argument in place required in {self._where}"
            raise InplaceError(compose(self.name, required, "one that does")) from error
        return [x for x in self.results if isinstance(x, Tensor)]

    def on_parts(self) -> Any:
        """Call the function in a function of parts; return its result."""
        args, keywords = self.with_leaves(list(map(unwrap_escaped, self.leaves)))
        return self.function(*args, **keywords)

    def result(self, tensors: Sequence[Tensor]) -> Any:
        """Return the last result, with others for its tensors."""
        left = iter(tensors)
        found = [next(left) if isinstance(x, Tensor) else x for x in self.results]
        return unflatten(self.structure, found)


def name_of_function(function: Any) -> str:
    """Return what errors call a function, or the operation that a call is of."""
    return str(getattr(function, "name", None) or getattr(function, "__name__", function))


# -- by the library of the tensors -----------------------------------------------------------------
def call_function(
    function: Callable[..., Any], tensors: Sequence[Tensor], library: Any = NUMPY
) -> list[Tensor]:
    """Call a function of tensors on what their arrays hold, as the library of all of them does.

    As `library` at least. Where none is wrapped, the function itself is called.
    """
    for tensor in tensors:
        array = tensor._data if tensor._base is None else tensor.data_array()
        own = library_of(array)
        library = own if own.level >= library.level else library
    if not library.level:
        return list(function(*tensors))
    cls = library.array_class
    result: list[Tensor] = library.call_function(
        function, [t if t._data.__class__ is cls else wrap_in(t, library) for t in tensors]
    )
    return result


# -- the node of such a call -----------------------------------------------------------------------
class WrappedCall(NodeOperation):
    """The operation of the node of a function that was called on what wrapped arrays hold."""

    def __init__(self, name: str) -> None:
        self.name, self.node_name = name, f"{name}Backward"

    def differentiate(
        self, node: MultiNode, g: Sequence[Any], wanted: Any, recorded: bool
    ) -> Sequence[Any]:
        """Return the gradient of each argument that is wanted."""
        gradients_of, saved = self.kept(node)
        tensors, chosen = [], []
        for edge, items in zip(node.edges, saved, strict=True):
            tensors.append(_read(node, edge, *items))
            chosen.append(edge is not None and (wanted is None or edge in wanted))
        given = [x is not None for x in g]
        tensors += [x if isinstance(x, Tensor) else box(x) for x in g if x is not None]
        result = iter(call_function(gradients_of(chosen, given), tensors))
        gradients: list[Any] = []
        for is_chosen in chosen:
            gradient: Any = next(result) if is_chosen else None
            gradients.append(gradient if recorded or not is_chosen else gradient.data_array())
        return gradients


def record_call(
    name: str, tensors: Sequence[Tensor], arrays: Sequence[Any], gradients_of: GradientsOf
) -> Any:
    """Return the results of a call as tensors, with a node if an argument is tracked.

    ``gradients_of(chosen, given)`` returns the function of the arguments, and then of the
    cotangents of those results that have one, to the gradients of the chosen arguments.
    """
    mode, cls = STATE.get(), tensor_class(tensors)
    outs = [box(a, cls=cls) for a in arrays]
    edges = tuple(map(NODE, tensors))
    if edges.count(None) == len(edges):
        return outs
    if not mode.grad:
        if mode.forward:
            warn_of_lost(name, edges)
        return outs
    saved = [_saved(t, mode.hooks) for t in tensors]
    node = new_node(MultiNode, WrappedCall(name), edges, ((gradients_of, saved),))
    node.metas = metas = list(map(meta_of, arrays))
    for i, (out, (_, dtype, _)) in enumerate(zip(outs, metas, strict=True)):
        if dtype.is_inexact:  # that of a wrapping library
            out._node = node.output(i)
    if mode.observer is not None:
        mode.observer.recorded(node, outs)
    return outs


def _saved(tensor: Tensor, hooks: Any) -> tuple[Any, Any, int]:
    """Return what is kept of an argument: its array, the counter of its memory, the version."""
    counter = counter_of(tensor)
    array = tensor._data if hooks is None else Packed(hooks, tensor._data, counter)
    return array, counter, counter.version


def _read(node: MultiNode, edge: Any, array: Any, counter: Any, version: int) -> Tensor:
    if array.__class__ is Packed:
        return box(array.unpack(node), edge)
    if counter.version != version:
        raise stale(node, counter.version, version)
    return box(array, edge, counter)
