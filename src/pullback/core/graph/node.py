"""The nodes and edges of a recorded graph.

Owns what a node is: an operation that ran, the edges to the nodes its inputs came from (strong),
what it saved, and the rare extras (hooks, retained gradient, metadata). A node knows no tensor:
arrays and version counters only, so dropping the results frees the whole graph by reference
counting.

An edge is a reference to its *target*: a `Node` with one output, an `Output` of a node with
several, or the `AccumulateGrad` of a leaf; None where no gradient flows. ``seq`` grows with
creation and every edge points to a smaller one, so descending ``seq`` is an order to run backward
in.
"""

from __future__ import annotations

import itertools
import operator
import textwrap
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pullback.arrays import NUMPY, Library, dtype_of, library_of, ndarray
from pullback.errors import ArgumentTypeError, ReleasedError

next_seq = itertools.count(1).__next__


NO_HOOKS: Mapping[int, Callable[..., Any]] = MappingProxyType({})


class Extra:
    """What few nodes have: hooks, a retained gradient, metadata, where they were recorded."""

    __slots__ = (
        *("detached", "metadata", "posthooks", "prehooks", "retained"),
        *("tensor_hooks", "tracks_base"),
    )

    def __init__(self) -> None:
        # A dictionary once there is a hook: see `hooks`.
        self.tensor_hooks = self.prehooks = self.posthooks = NO_HOOKS
        self.retained: Callable[[], Any] | None = None  # weak reference to the tensor
        self.metadata: dict[str, Any] = {}
        self.detached: int | None = None  # at which version its tensor was detached in place
        self.tracks_base = False  # a view has it only since its base was switched on

    def hooks(self, kind: str) -> dict[int, Callable[..., Any]]:
        """Return the dictionary of a kind of hooks, to add one."""
        if getattr(self, kind) is NO_HOOKS:
            setattr(self, kind, {})
        found: dict[int, Callable[..., Any]] = getattr(self, kind)
        return found


class RemovableHandle:
    """Takes a hook away again: by `remove`, or at the end of a ``with`` block."""

    __slots__ = ("_hooks", "_key")
    _keys = itertools.count().__next__

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._key = RemovableHandle._keys()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Remove the hook; doing it twice is harmless."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def add_hook(owner: str, hooks: dict[int, Callable[..., Any]], hook: Any) -> RemovableHandle:
    """Register `hook` in `hooks`, or say which argument of `owner` was not callable."""
    if not callable(hook):
        raise ArgumentTypeError(f"{owner}: hook must be callable, got {type(hook).__name__}")
    return RemovableHandle(hooks, hook)


class Node:
    """One recorded operation.

    Besides its slots a node has its *record*: the edges; then what the operation saved, as it lays
    it out (`Primitive.layout`); then, for each array that may be saved, its version counter and
    version, or None twice. A user's operation has what it saved apart, see `CustomNode`.
    `SmallNode` keeps the record in slots and `WideNode` in a tuple: every object that Python's
    garbage collector tracks costs as much as several instructions.
    """

    op: Any  # the operation; has ``node_name``, ``differentiate`` and ``takes_none``
    seq: int  # the order of creation
    count: int  # how many edges there are, one an input
    released: bool  # whether a backward pass that did not retain the graph has run through it
    version: int  # how often the result was changed in place, see core/tensor/versions.py
    shapes: tuple[Any, ...] | None  # the inputs' where broadcasting must be undone
    extra: Extra | None
    # The levels that the result depends on, one bit each: bit 0 for a user's leaves, bit n for
    # those of a transform at level n, see transforms/levels.py.
    levels: int
    __slots__ = (
        *("__weakref__", "count", "extra", "levels", "op"),
        *("released", "seq", "shapes", "version"),
    )
    runs = True  # whether backward calls ``op.differentiate``

    if TYPE_CHECKING:

        @property
        def record(self) -> tuple[Any, ...]:
            """The edges, the saved values, their versions."""

    @property
    def edges(self) -> tuple[Any, ...]:
        """One target an input, None where no gradient flows."""
        return self.record[: self.count]

    def released_error(self) -> ReleasedError:
        """Return the error of a second backward, with the line that recorded the node if known."""
        error = ReleasedError(
            f"{self.name()}: trying to backward through the graph a second time: its saved "
            "values have already been freed by the first backward.\n"
            "hint: call backward or autograd.grad with retain_graph=True the first time, or "
            "compute the result again."
        )
        site = None if self.extra is None else self.extra.metadata.get("traceback")
        if site is not None:
            error.add_note(f"{self.name()} was recorded at\n{site}")
        return error

    def name(self) -> str:
        """Return the node's name, such as ``MulBackward``."""
        return str(self.op.node_name)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One pair (node, index of its output) an input; (None, 0) where no gradient flows."""
        return tuple(
            (target.node, target.index) if target.__class__ is Output else (target, 0)
            for target in self.edges
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own notes on this node."""
        return self.extras().metadata

    def extras(self) -> Extra:
        """Return the node's extras, made when first asked for."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node ran.

        The hook may return a tuple of new gradients of the inputs, or None.
        """
        return add_hook("register_hook", self.extras().hooks("posthooks"), hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node runs.

        The hook may return a tuple of new gradients of the outputs, or None.
        """
        return add_hook("register_prehook", self.extras().hooks("prehooks"), hook)


N = TypeVar("N", bound=Node)


# What a new node has in its slots, but for its record. The calls that are generated for operations
# have these lines, too: ``$`` marks names of the library's own, see core/function/codegen.py.
FILL = """
{n}.op, {n}.seq, {n}.count = {op}, $next_seq(), {count}
{n}.released, {n}.version, {n}.extra = False, 0, None
{n}.shapes = {shapes}
{n}.levels = {levels}
"""
_parts = {part: part for part in ("op", "count", "levels")}
_source = FILL.format(n="node", shapes="None", **_parts).replace("$", "")
_variables: dict[str, Any] = {"next_seq": next_seq}
exec(f"def fill(node, op, count, levels):{textwrap.indent(_source, ' ')} return node", _variables)
# fill(node, op, count, levels) fills the slots of a new node, and returns it.
fill: Callable[[N, Any, int, int], N] = _variables["fill"]


def levels_of(edges: Sequence[Any]) -> int:
    """Return the levels that what edges lead to depends on."""
    levels = 0
    for target in edges:
        if target is not None:
            levels |= target.levels
    return levels


def belongs_to_transform(node: Any) -> bool:
    """Return whether a running transform differentiates by what a node depends on."""
    return bool(node.levels > 1)  # bit 0 is for a user's own leaves


# The slots of a small node's record.
ITEMS = ("i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7")
# What reads so many of them as a tuple.
_READERS: tuple[Callable[[Any], Any], ...] = (
    lambda node: (),
    lambda node: (node.i0,),
    *(operator.attrgetter(*ITEMS[:size]) for size in range(2, len(ITEMS) + 1)),
)


class SmallNode(Node):
    """A node of a primitive whose record has at most eight items, each in a slot of its own.

    The function that runs its rules knows the slots, and so does ``op.release``.
    """

    __slots__ = ITEMS
    i0: Any
    i1: Any

    @property
    def record(self) -> tuple[Any, ...]:
        """The edges, the saved values, their versions."""
        return _READERS[self.op.size](self)  # type: ignore[no-any-return]

    @record.setter
    def record(self, items: tuple[Any, ...]) -> None:
        for name, item in zip(ITEMS, items, strict=False):
            setattr(self, name, item)


class WideNode(Node):
    """A node that keeps its record in a tuple."""

    __slots__ = ("record",)
    record: tuple[Any, ...]


def release(node: Any) -> None:
    """Drop what a node saved; its edges stay."""
    node.released = True
    node.record = node.record[: node.count]


def edges_of(node: Any) -> tuple[Any, ...]:
    """Return a node's edges: what `Node.edges` does, for loops over many nodes."""
    kind = node.__class__
    if kind is SmallNode:
        count = node.count
        if count == 1:
            return (node.i0,)
        return (node.i0, node.i1) if count == 2 else node.record[:count]
    if kind is CustomNode:
        return node.record  # type: ignore[no-any-return]
    return (node.node,) if kind is Output else node.record[: node.count]


class MultiNode(WideNode):
    """A node with several outputs; its consumers point to its `Output` objects."""

    __slots__ = ("_outputs", "metas")
    _outputs: dict[int, weakref.ref[Node]]
    metas: Sequence[Any]  # one `Meta` an output, None for an output that is no tensor

    def output(self, index: int) -> Node:
        """Return the one `Output` of that index, made anew if nobody holds it."""
        try:
            result = self._outputs[index]()
        except AttributeError:
            self._outputs, result = {}, None
        except KeyError:
            result = None
        if result is None:
            output = fill(Output(), self.op, 1, self.levels)
            output.node, output.index = self, index
            self._outputs[index] = weakref.ref(output)
            return output
        return result


# The shape, dtype and place of an input or output: what a gradient must fit. The place is "cpu"
# for the default library, else "<library> <device>". Nothing here is tracked by the collector.
Meta = tuple[tuple[int, ...], Any, str]


# Stand for what has no gradient: a tensor that is not tracked, what is no tensor, and nothing yet.
UNTRACKED: Meta = ((), None, "untracked")
NO_TENSOR: Meta = ((), None, "no tensor")
UNKNOWN: Meta = ((), None, "unknown")


def meta_of(array: Any) -> Meta:
    """Return what a gradient of `array` must fit."""
    if array.__class__ is ndarray:
        return (array.shape, array.dtype, "cpu")
    return (array.shape, array.dtype, device_key(array))


def device_key(array: Any) -> str:
    """Return the library and device of an array in one word or two."""
    library = library_of(array)
    if library is NUMPY:
        return "cpu"
    _libraries[library.name] = library
    return f"{library.name} {library.device(array)}"


def library_at(device_key: str) -> tuple[Library, str]:
    """Return the library and the device that `device_key` named."""
    name, _, device = device_key.partition(" ")
    return (_libraries[name], device) if device else (NUMPY, "cpu")


_libraries: dict[str, Library] = {}


def zeros_for(meta: Meta) -> Any:
    """Return an array of zeros that fits."""
    shape, dtype, device_key = meta
    library, device = library_at(device_key)
    return library.zeros(shape, dtype_of(dtype), library.native_device(device))


class CustomNode(MultiNode):
    """A node of a user's operation; its record is its edges, ``metas`` has one item an output."""

    __slots__ = ("arguments", "input_metas", "names", "saved")
    saved: Sequence[Any]  # what forward saved, empty once released; see core/custom/context.py
    arguments: Any  # the names of the call's arguments
    input_metas: tuple[Meta, ...]  # where an input is not tracked, `UNTRACKED` or `NO_TENSOR`
    names: Any  # the class of its saved values, which has their names

    def output(self, index: int) -> Node:
        """Return what an edge to an output of this node points to."""
        return self if len(self.metas) == 1 else super().output(index)


class Output(Node):
    """One output of a `MultiNode`: passes its gradient on to its place there.

    Its one edge stands in a slot: parts of a tensor are many.
    """

    __slots__ = ("index", "node")
    runs = False
    index: int
    node: MultiNode

    @property
    def record(self) -> tuple[Any, ...]:
        """The edge."""
        return (self.node,)


_ACCUMULATE = SimpleNamespace(node_name="AccumulateGrad", takes_none=False)


class AccumulateGrad(WideNode):
    """The end of an edge at a leaf: adds the gradient to the leaf's ``.grad``.

    The leaf holds its accumulator; the accumulator knows the leaf weakly, so no leaf is kept
    alive by a graph and no reference cycle goes through ``.grad``.
    """

    __slots__ = ("leaf", "post_hooks")
    runs = False

    def __init__(self, leaf: Any, level: int) -> None:
        fill(self, _ACCUMULATE, 0, 1 << level).record = ()
        self.leaf = weakref.ref(leaf)
        self.post_hooks: dict[int, Callable[..., Any]] = {}

    @property
    def variable(self) -> Any:
        """The leaf tensor, or None once it is gone."""
        return self.leaf()
