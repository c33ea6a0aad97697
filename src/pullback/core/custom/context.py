"""ctx: what forward and backward of a user's operation have to say to each other.

Owns saving by name, reading back with the checks, needs_input_grad and the marks. Forward's
context hands everything over to the node when forward has returned, and knows the node weakly
from then on, so it reads as freed once the graph is gone. Invariant: a node keeps arrays and
version counters, never a tensor of the caller or a result, so there is no reference cycle.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import ref

from pullback.arrays import NUMPY, dtype_of, is_array
from pullback.core.custom import pytree as tree
from pullback.core.function.primitive import pack, stale, unpack
from pullback.core.graph.modes import STATE
from pullback.core.graph.node import RELEASED, CustomNode
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentTypeError,
    GraphError,
    NameNotFoundError,
    ReleasedError,
    TensorIndexError,
)

_array = NUMPY.array_types[0]
_mode = STATE.get
_new = object.__new__


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


class Kept:
    """A saved tensor inside a saved container: its four items, see below."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items


class SavedContainer(NamedTuple):
    """A saved container with `Kept` entries where it had tensors."""

    structure: Any


class SavedTensor(NamedTuple):
    """A saved tensor with something unusual about it: a history of its own, or packed."""

    array: Any
    own: Tensor | None  # the tensor itself, where it was recorded inside forward on purpose
    unpack: Any  # the hook that turns `array` back, where one packed it


# What a node keeps of a user's saved values is one flat tuple, four items a value: the array or
# other object, its version counter (None where it is no tensor), the version, and its place in
# the history (an input's number, -1 - i for output i, None for neither); then, last, the dict of
# what forward set on ctx, or None.
_STRIDE = 4


class SavedVariables(Named):
    """The values of `save_for_backward`, each checked when it is read."""

    __slots__ = ("_context",)
    _what = "saved values"
    _context: Context

    @property
    def _names(self) -> tuple[str | None, ...]:  # type: ignore[override]
        return self._context._alive().names  # type: ignore[no-any-return]

    @property
    def _op_name(self) -> str:  # type: ignore[override]
        return self._context._op.name  # type: ignore[no-any-return]

    def _at(self, place: int) -> Any:
        return self._context._read(
            self._context._alive().saved, place * _STRIDE, self._names[place]
        )

    def __getattribute__(self, name: str) -> Any:
        # The common read, directly: a tensor of the default library that is an input, unchanged.
        # (A __getattr__ would come after a failed look-up, which costs more than the read.)
        if name[0] != "_":
            node = _context_of(self)._node
            if node.__class__ is CustomNode and name in node.names:
                values = node.saved
                i = node.names.index(name) * _STRIDE
                if values is not RELEASED and values[i].__class__ is _array:
                    counter = values[i + 1]
                    place = values[i + 3]
                    if place is not None and place >= 0 and counter[0] == values[i + 2]:
                        t = Tensor()
                        t._data = values[i]
                        t._counter = counter
                        t._node = node.inputs[place]
                        t._view = t._grad = None
                        return t
                return self._at(i // _STRIDE)
        return super().__getattribute__(name)


_context_of: Any = SavedVariables.__dict__["_context"].__get__


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
        "_names",
        "_node",
        "_op",
        "_pass",
        "_targets",
        "_values",
    )
    # Set on the instance where forward says otherwise.
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize = True
    _structure: Any = None  # of the outputs, where containers are nested
    _attributes: Mapping[str, Any] = {}  # tensors that were set as attributes in forward

    _op: Any
    _arguments: Any  # names, groups and skeleton of the call
    _targets: Sequence[Any]  # one an input: its place in the history, None where untracked
    _node: Any  # None in forward; then the node, or a weak reference to it in forward's context
    _pass: Any  # (wanted, recorded) of the backward that this context is for
    _names: tuple[Any, ...]
    _values: tuple[Any, ...]

    # -- forward's side -----------------------------------------------------------------------
    def save_for_backward(self, *values: Any, **named: Any) -> None:
        """Keep values for backward: by position, by name, or both; again replaces the first.

        Tensors are checked for changes in place when they are read; other objects are kept as
        they are.
        """
        self._names = (*((None,) * len(values)), *named) if values else tuple(named)
        self._values = (*values, *named.values())

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward changed these inputs in place; forward must return them."""
        self._check_tensors("mark_dirty", tensors)
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient; backward receives zeros for them."""
        self._check_tensors("mark_non_differentiable", tensors)
        self._non_differentiable = tensors

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
        wanted = self._pass[0]
        if wanted is None:
            flags = [target is not None for target in self._targets]
        else:
            flags = [target in wanted for target in self._targets]
        return InputFlags(self._arguments, flags, self._op.name)

    # -- backward's side ----------------------------------------------------------------------
    @property
    def saved_variables(self) -> Named:
        """The saved values, by attribute, key or position."""
        if self._node is None:
            return Named(self._names, self._values, self._op.name)
        if self._node.__class__ is not CustomNode or self._node.saved is RELEASED:
            self._alive()
        saved = _new(SavedVariables)
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
        if node is None or node.saved is RELEASED:
            raise ReleasedError(
                f"{self._op.name}: Trying to access saved tensors after they have already been "
                "freed: backward through the graph a second time, or the graph is gone.\n"
                "hint: call backward with retain_graph=True the first time."
            )
        return node

    def _read(self, values: Sequence[Any], at: int, name: str | None) -> Any:
        """Return a saved value, a tensor at its place in the history, after the checks."""
        array, counter, version, place = values[at : at + _STRIDE]
        if array.__class__ is SavedContainer:
            return tree.map_leaves(
                lambda leaf: self._read(leaf.items, 0, name) if leaf.__class__ is Kept else leaf,
                array.structure,
            )
        if counter is None:
            if is_array(array):
                self._check_origin(array, name or at // _STRIDE)
            return array
        node = self._alive()
        own = None
        if array.__class__ is SavedTensor:
            array, own, hook = array
            if hook is not None:
                array, counter, version = unpack(hook, array, node), [0], 0
        if counter[0] != version:
            what = f"the saved tensor '{name}'" if name else "a saved tensor"
            raise stale(node, counter[0], version, what)
        if place is None:
            self._check_origin(array, name or at // _STRIDE)
            return box(array, None, counter) if own is None else own
        return box(array, node.inputs[place] if place >= 0 else node.output(-1 - place), counter)

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
            return self._read(stored[name], 0, name)
        raise NameNotFoundError(
            f"{self._op.name}: ctx has no attribute '{name}'; set it in forward, or save it by "
            "name with ctx.save_for_backward"
        )


def forward_context(op: Any, arguments: Any, targets: Sequence[Any]) -> Context:
    """Return the context that one call's forward gets."""
    ctx = Context()
    ctx._op = op
    ctx._arguments = arguments
    ctx._targets = targets
    ctx._node = None
    ctx._pass = _NO_PASS
    ctx._names = ctx._values = ()
    return ctx


_NO_PASS = (None, False)


def backward_context(op: Any, node: CustomNode, wanted: Any, recorded: bool) -> Context:
    """Return the context that one backward through `node` gets."""
    ctx = Context()
    ctx._op = op
    ctx._arguments = node.arguments
    ctx._targets = node.inputs
    ctx._node = node
    ctx._pass = (wanted, recorded)
    if (attributes := node.saved[-1]) is not None:
        ctx.__dict__ = attributes
    return ctx


def seal(
    ctx: Context, node: CustomNode, inner: Sequence[Any], outs: Sequence[Any], hooks: Any = None
) -> None:
    """Move what forward left in its context to the node: arrays and versions, no tensors."""
    node.arguments = ctx._arguments
    node.names = ctx._names
    kept: list[Any] = []
    out = outs[0]
    quick = hooks is None and len(outs) == 1
    for value in ctx._values:
        if quick and value.__class__ is Tensor and value is not out and value._view is None:
            counter = value._counter
            for i, tensor in enumerate(inner):
                if tensor is value:
                    kept += (value._data, counter, counter[0], i)
                    break
            else:
                keep(kept, value, inner, outs, None)
        else:
            keep(kept, value, inner, outs, hooks)
    stored = ctx.__dict__
    kept.append(stored or None)
    node.saved = tuple(kept)
    ctx._values = ()
    ctx._node = ref(node)
    if stored:
        for mark in ("_dirty", "_non_differentiable"):
            stored.pop(mark, None)
        attributes = {}
        for name, value in list(stored.items()):
            items: list[Any] = []
            keep(items, value, inner, outs, hooks)
            if items[0] is not value or is_array(value):
                del stored[name]
                attributes[name] = tuple(items)
        if attributes:
            stored["_attributes"] = attributes


def keep(
    kept: list[Any], value: Any, inner: Sequence[Any], outs: Sequence[Any], hooks: Any
) -> None:
    """Append the four items that are kept of a value that forward saved."""
    if isinstance(value, Tensor):
        kept += keep_tensor(value, inner, outs, hooks)
        return
    if tree.children(value) and any(isinstance(leaf, Tensor) for leaf in tree.leaves(value)):
        value = SavedContainer(
            tree.map_leaves(
                lambda leaf: (
                    Kept(keep_tensor(leaf, inner, outs, hooks))
                    if isinstance(leaf, Tensor)
                    else leaf
                ),
                value,
            )
        )
    kept += (value, None, 0, None)


def keep_tensor(
    tensor: Tensor, inner: Sequence[Any], outs: Sequence[Any], hooks: Any
) -> tuple[Any, ...]:
    """Return the four items that are kept of a tensor that forward saved."""
    array = tensor._data if tensor._view is None else tensor.data_array()
    counter = tensor._counter
    place: int | None = None
    for i, value in enumerate(inner):
        if value is tensor:
            place = i
            break
    for i, out in enumerate(outs):
        if out is tensor:
            place = -1 - i
            break
    own = tensor if place is None and tensor._node is not None else None
    if hooks is not None:
        array = SavedTensor(pack(hooks, array, counter), own, hooks.unpack)
    elif own is not None:
        array = SavedTensor(array, own, None)
    return (array, counter, counter[0], place)
