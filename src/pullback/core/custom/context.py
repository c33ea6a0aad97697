"""ctx: what forward and backward of a user's operation have to say to each other.

Owns saving by name, reading back with the checks, needs_input_grad and the marks. When forward has
returned, what it left in its context moves to the node; a context that somebody keeps knows the
node weakly from then on, so it reads as freed once the graph is gone. Invariant: a node keeps
arrays and version counters, never a tensor of the caller or a result, so there is no reference
cycle.

What a node of a user's operation saves is a tuple of four items a value: the array or other object,
its version counter (None where it is no tensor), the version, and its position in the graph (an
input's number, -1 - i for output i, None for neither); then, last, the dictionary of what forward
set on ctx, or None.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import ref

from pullback.arrays import NUMPY, dtype_of, is_array
from pullback.core.custom import pytree as tree
from pullback.core.graph.node import CustomNode
from pullback.core.tensor.saved import Packed, stale
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import counter_of, new_counter
from pullback.errors import (
    ArgumentTypeError,
    GraphError,
    NameNotFoundError,
    ReleasedError,
    TensorIndexError,
)


class Named(Mapping[str, Any]):
    """Values read by attribute, by key or by position; iterating gives the values.

    Examples
    --------
    >>> flags = Named(("x", "w"), (True, False))
    >>> flags.x, flags["w"], flags[0], list(flags)
    (True, False, True, [True, False])
    """

    __slots__ = ("_names", "_op_name", "_values")
    _what = "arguments of forward"

    def __init__(self, names: Sequence[Any], values: Sequence[Any], op_name: str = "ctx") -> None:
        self._names = names
        self._values = values
        self._op_name = op_name

    def _at(self, place: int) -> Any:
        return self._values[place]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return tuple(self)[key]
        if isinstance(key, int):
            if -len(self) <= key < len(self):
                return self._at(key % len(self))
            raise TensorIndexError(
                f"{self._op_name}: there are {len(self)} {self._what}, got position {key}"
            )
        if key in self._names:
            return self._at(self._names.index(key))
        raise self._unknown(key)

    def __getattribute__(self, name: str) -> Any:
        # Names come before methods: an argument may well be called `values`.
        if name[0] != "_" and name in self._names:
            return self._at(list(self._names).index(name))
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        raise self._unknown(name)

    def _unknown(self, key: Any) -> NameNotFoundError:
        names = [str(n) for n in self._names if n is not None]
        near = difflib.get_close_matches(str(key), names, n=1)
        hint = f"\nhint: did you mean '{near[0]}'?" if near else ""
        return NameNotFoundError(
            f"{self._op_name}: no '{key}' among the {self._what}; the names are: "
            f"{', '.join(names) or '(none)'}{hint}"
        )

    def __iter__(self) -> Iterator[Any]:
        return (self._at(i) for i in range(len(self)))

    def __len__(self) -> int:
        return len(self._names)

    def keys(self) -> Any:
        """Return the names, in order."""
        return [name for name in self._names if name is not None]

    def values(self) -> Any:
        """Return the values, in order."""
        return list(self)

    def items(self) -> Any:
        """Return the pairs of name and value, in order."""
        return [(n, self._at(i)) for i, n in enumerate(self._names) if n is not None]

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return dict(self.items()) == dict(other.items())
        if isinstance(other, (tuple, list)):
            return tuple(self) == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"({', '.join(f'{n}={v!r}' for n, v in zip(self._names, self, strict=True))})"


class InputFlags(Named):
    """needs_input_grad: also by the name of a ``*args`` or ``**kwargs`` parameter, as a tuple."""

    __slots__ = ("_groups",)

    def __init__(self, arguments: Any, flags: Sequence[bool], op_name: str) -> None:
        super().__init__(arguments.names, arguments.fold(flags), op_name)
        self._groups = arguments.groups

    def __getitem__(self, key: Any) -> Any:
        return self._group(key) if key in self._groups else super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        return self._group(name) if name in self._groups else super().__getattr__(name)

    def _group(self, name: str) -> tuple[bool, ...]:
        return tuple([self._values[place] for place in self._groups[name]])


class SavedItem:
    """A saved tensor inside a saved container: its four items."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items


class SavedContainer(NamedTuple):
    """A saved container with a `SavedItem` where it had a tensor."""

    structure: Any


class SavedResult(NamedTuple):
    """A saved tensor that was recorded inside forward on purpose: it has a graph of its own."""

    array: Any  # or what a pack hook made of it
    own: Tensor


# Four items a saved value, see above.
_STRIDE = 4
_ndarray = NUMPY.array_types[0]


class SavedVariables(Named):
    """The values of `save_for_backward`, each checked when it is read."""

    __slots__ = ("_context",)
    _what = "saved values"
    _context: Context
    _readers: Sequence[Callable[[SavedVariables], Any]]  # of the class for these names

    @property
    def _op_name(self) -> str:  # type: ignore[override]
        return self._context._op.name  # type: ignore[no-any-return]

    def _at(self, place: int) -> Any:
        return self._readers[place](self)


def _reader(place: int) -> Callable[[SavedVariables], Any]:
    """Return what reads the saved value at `place`: a tensor with its node in the graph."""
    at_array, at_counter, at_version, at_position = range(place * _STRIDE, (place + 1) * _STRIDE)

    def read(self: SavedVariables) -> Any:
        node = self._context._node
        if node.__class__ is CustomNode and (saved := node.saved):
            array, position = saved[at_array], saved[at_position]
            if position is not None and position >= 0 and array.__class__ is _ndarray:
                counter = saved[at_counter]
                if counter.version == saved[at_version]:
                    t = Tensor()
                    t._data, t._counter, t._node = array, counter, node.record[position]
                    t._base = t._grad = None
                    return t
        node, name = self._context._alive(), self._names[place]
        items = node.saved[at_array : at_position + 1]
        return self._context._read(items, place if name is None else name)

    return read


class _SavedClasses(dict[tuple[str | None, ...], type[SavedVariables]]):
    """From the names of saved values to the class that has them as properties.

    A property is found before the methods of `Mapping` and without a look through the names.
    """

    def __missing__(self, names: tuple[str | None, ...]) -> type[SavedVariables]:
        readers = [_reader(place) for place in range(len(names))]
        members: dict[str, Any] = {
            name: property(read)
            for name, read in zip(names, readers, strict=True)
            if name is not None and not name.startswith("_")
        }
        members.update(
            __slots__=(),
            __getattribute__=object.__getattribute__,
            __init__=object.__init__,
            __doc__=SavedVariables.__doc__,
            _names=names,
            _readers=readers,
        )
        self[names] = found = type("SavedVariables", (SavedVariables,), members)
        return found


saved_names = _SavedClasses()
_new_saved = object.__new__  # the values have no state but their context


class Context:
    """The first argument of forward and backward of a user's operation.

    Each backward gets a context of its own on what forward's left in the node. Attributes that
    start with an underscore are the library's; any other may be set, and a tensor among them is
    kept like a saved one.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_arguments",
        "_edges",
        "_names",
        "_node",
        "_op",
        "_pass",
        "_values",
    )
    # Set on the instance where forward says otherwise.
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _marks = False  # whether any of these two was set
    _materialize = True
    _structure: Any = None  # of the outputs, where containers are nested
    _attributes: Mapping[str, Any] = {}  # tensors that were set as attributes in forward

    _op: Any
    _arguments: Any  # names, groups and skeleton of the call
    _edges: Sequence[Any]  # one an input, None where untracked; not in backward, if nobody keeps it
    _node: Any  # None in forward, in backward the node; a weak reference to it in what is kept
    _pass: Any  # (wanted, recorded) of the backward that this context is for
    _names: Collection[str | None]
    _values: Collection[Any]

    # -- forward's side -----------------------------------------------------------------------
    def save_for_backward(self, /, *values: Any, **named: Any) -> None:
        """Keep values for backward: by position, by name, or both; again replaces the first.

        Tensors are checked for changes in place when they are read; other objects are kept as
        they are.
        """
        if values:
            self._names = (*((None,) * len(values)), *named)
            self._values = (*values, *named.values())
        else:
            self._names, self._values = named, named.values()

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward changed these inputs in place; forward must return them."""
        self._check_tensors("mark_dirty", tensors)
        self._dirty = tensors
        self._marks = True

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient; backward receives zeros for them."""
        self._check_tensors("mark_non_differentiable", tensors)
        self._non_differentiable = tensors
        self._marks = True

    def _check_tensors(self, api: str, tensors: tuple[Any, ...]) -> None:
        for t in tensors:
            if not isinstance(t, Tensor):
                raise ArgumentTypeError(
                    f"{self._op.name}: ctx.{api} takes tensors, got {type(t).__name__}"
                )

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what stands for the gradient of an unused output: zeros (True) or None."""
        self._materialize = bool(value)

    # -- both sides ---------------------------------------------------------------------------
    @property
    def needs_input_grad(self) -> InputFlags:
        """One boolean an argument of forward, by attribute, key or position.

        In backward, narrowed to what the call in progress needs.
        """
        return InputFlags(self._arguments, self._needed(), self._op.name)

    def _needed(self) -> list[bool]:
        """Return one boolean an input."""
        node, wanted = self._node, self._pass[0]
        edges = node.record if node.__class__ is CustomNode else self._edges
        if wanted is None:
            return [edge is not None for edge in edges]
        return [edge in wanted for edge in edges]

    def _outlive(self, node: Any) -> None:
        """Let go of the graph: somebody keeps this context."""
        self._edges = [flag or None for flag in self._needed()]
        self._pass = (None, self._pass[1])
        self._node = ref(node)

    # -- backward's side ----------------------------------------------------------------------
    @property
    def saved_variables(self) -> Named:
        """The saved values, by attribute, key or position."""
        if self._node is None:
            return Named(tuple(self._names), tuple(self._values), self._op.name)
        node = self._node
        if node.__class__ is not CustomNode or node.released:
            node = self._alive()
        saved: SavedVariables = _new_saved(node.names)
        saved._context = self
        return saved

    saved_variable = saved_variables

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values that are tensors, None included, as a tuple."""
        return tuple([v for v in self.saved_variables if v is None or isinstance(v, Tensor)])

    def _alive(self) -> Any:
        """Return the node, or raise where its saved values are gone."""
        node = self._node
        if node.__class__ is ref:
            node = node()
        if node is None or node.released:
            raise ReleasedError(
                f"{self._op.name}: Trying to access saved tensors after they have already been "
                "freed: backward through the graph a second time, or the graph is gone.\n"
                "hint: call backward with retain_graph=True the first time."
            )
        return node

    def _read(self, items: Sequence[Any], name: str | int) -> Any:
        """Return a saved value, a tensor with its node in the graph, after the checks."""
        array, counter, version, position = items
        if array.__class__ is SavedContainer:
            return tree.map_leaves(
                lambda leaf: self._read(leaf.items, name) if leaf.__class__ is SavedItem else leaf,
                array.structure,
            )
        if counter is None:
            if is_array(array):
                self._check_origin(array, name)
            return array
        node = self._alive()
        own = None
        if array.__class__ is SavedResult:
            array, own = array
        if array.__class__ is Packed:
            array, counter, version = array.unpack(node), new_counter(), 0
        if counter.version != version:
            what = f"the saved tensor '{name}'" if isinstance(name, str) else "a saved tensor"
            raise stale(node, counter.version, version, what)
        if position is None:
            self._check_origin(array, name)
            return box(array, None, counter) if own is None else own
        target = node.record[position] if position >= 0 else node.output(-1 - position)
        return box(array, target, counter)

    def _check_origin(self, array: Any, name: str | int) -> None:
        """Refuse a floating value of unknown origin where backward itself is recorded."""
        if not self._pass[1] or not dtype_of(array.dtype).is_inexact:
            return
        raise GraphError(
            f"{self._op.name}: the saved value {name!r} is neither an input nor an output of "
            "forward, so a second derivative through it would be silently wrong.\n"
            "hint: return it from forward as a further output, or recompute it in backward from "
            "saved inputs; if it does not depend on the inputs, pass it to forward as an argument; "
            "or mark backward with once_differentiable."
        )

    def __getattr__(self, name: str) -> Any:
        # Only reached for what is not in __dict__: a tensor stored as an attribute in forward.
        stored = self._attributes
        if name in stored:
            self._alive()
            return self._read(stored[name], name)
        raise NameNotFoundError(
            f"{self._op.name}: ctx has no attribute '{name}'; set it in forward, or save it by "
            "name with ctx.save_for_backward"
        )


def forward_context(op: Any, arguments: Any, edges: Sequence[Any]) -> Context:
    """Return the context that one call's forward gets; a written call has the same lines."""
    ctx = Context()
    ctx._op, ctx._arguments, ctx._edges, ctx._node, ctx._pass = op, arguments, edges, None, NO_PASS
    ctx._names = ctx._values = ()
    return ctx


NO_PASS = (None, False)


def backward_context(op: Any, node: CustomNode, wanted: Any, recorded: bool) -> Context:
    """Return the context that one backward through `node` gets; a written rule has these lines."""
    ctx = Context()
    ctx._op, ctx._arguments, ctx._node, ctx._pass = op, node.arguments, node, (wanted, recorded)
    if (attributes := node.saved[-1]) is not None:
        ctx.__dict__ = attributes
    return ctx


# -- what forward saved moves to the node ----------------------------------------------------------
def saved_by(
    ctx: Context, inner: Sequence[Any], outs: Sequence[Any], hooks: Any
) -> tuple[Any, ...]:
    """Take what forward left in its context out of it: what a node saves."""
    saved: list[Any] = []
    for value in ctx._values:
        saved += items_of(value, inner, outs, hooks)
    saved.append(kept_attributes(ctx.__dict__, inner, outs, hooks))
    return tuple(saved)


def kept_attributes(
    attributes: dict[str, Any], inner: Sequence[Any], outs: Sequence[Any], hooks: Any
) -> dict[str, Any] | None:
    """Return what forward set on ctx, with what is kept of tensors in their place, or None."""
    for mark in ("_dirty", "_non_differentiable", "_marks"):
        attributes.pop(mark, None)
    tensors = {}
    for name, value in list(attributes.items()):
        items = items_of(value, inner, outs, hooks)
        if items[0] is not value or is_array(value):
            del attributes[name]
            tensors[name] = items
    if tensors:
        attributes["_attributes"] = tensors
    return attributes or None


def items_of(value: Any, inner: Sequence[Any], outs: Sequence[Any], hooks: Any) -> tuple[Any, ...]:
    """Return the four items that are kept of a value that forward saved."""
    if not isinstance(value, Tensor):
        return (_without_tensors(value, inner, outs, hooks), None, 0, None)
    array: Any = value._data if value._base is None else value.data_array()
    counter = counter_of(value)
    position: int | None = None
    for i, tensor in enumerate(inner):
        if tensor is value:
            position = i
            break
    for i, out in enumerate(outs):
        if out is value:
            position = -1 - i
            break
    if hooks is not None:
        array = Packed(hooks, array, counter)
    if position is None and value._node is not None:
        array = SavedResult(array, value)
    return (array, counter, counter.version, position)


def _without_tensors(value: Any, inner: Sequence[Any], outs: Sequence[Any], hooks: Any) -> Any:
    """Return a saved object that is no tensor; of a container, one with items for its tensors."""
    if not tree.children(value) or not any(isinstance(v, Tensor) for v in tree.leaves(value)):
        return value

    def kept(leaf: Any) -> Any:
        is_tensor = isinstance(leaf, Tensor)
        return SavedItem(items_of(leaf, inner, outs, hooks)) if is_tensor else leaf

    return SavedContainer(tree.map_leaves(kept, value))


def saved_values(node: CustomNode) -> Iterator[tuple[str, Any]]:
    """Yield the arrays that a node saved, each with what to call it; not those that are packed."""
    if not node.saved:
        return
    for place, name in enumerate(node.names._names):
        array, _, _, position = node.saved[place * _STRIDE : (place + 1) * _STRIDE]
        label = name or _unnamed(node, place, position)
        yield from ((label, array) for array in _arrays_of(array))
    for key, value in (node.saved[-1] or {}).items():
        if key == "_attributes":
            for name, items in value.items():
                yield from ((name, array) for array in _arrays_of(items[0]))
        else:
            yield from ((key, array) for array in _arrays_of(value))


def _unnamed(node: CustomNode, place: int, position: int | None) -> str:
    """Return how to call a saved value that was given no name."""
    if position is None:
        return f"saved_tensors[{place}]"
    owner: str = node.arguments.owner(position) if position >= 0 else f"output {-1 - position}"
    return owner


def _arrays_of(value: Any) -> Iterator[Any]:
    """Yield the arrays of a saved value."""
    if isinstance(value, SavedResult):
        value = value.array
    elif isinstance(value, SavedContainer):
        value = value.structure
    for leaf in tree.leaves(value):
        if isinstance(leaf, SavedItem):
            yield from _arrays_of(leaf.items[0])
        elif is_array(leaf):
            yield leaf
