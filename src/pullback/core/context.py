"""ctx: what forward and backward of a user's operation have to say to each other.

Owns saving by name, reading back with the checks, needs_input_grad and the marks. A context
belongs to one call and is what its node saves. Invariants: it holds arrays and version counters,
never a tensor of the caller or a result, so it makes no reference cycle; it knows its node weakly,
so it reads as freed once the graph is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pullback.arrays import dtype_of, is_array
from pullback.core.hooks import CURRENT
from pullback.core.modes import STATE
from pullback.core.node import RELEASED
from pullback.core.primitive import pack, stale, unpack
from pullback.core.tensor import Tensor, box
from pullback.errors import ArgumentTypeError, GraphError, ReleasedError, TensorIndexError


class Named(Mapping[str, Any]):
    """Values read by attribute, by key or by position; iterating gives the values.

    Examples
    --------
    >>> flags = Named(("x", "w"), (True, False))
    >>> flags.x, flags["w"], flags[0], list(flags)
    (True, False, True, [True, False])
    """

    __slots__ = ("_names", "_values")
    _what = "arguments of forward"

    def __init__(self, names: Sequence[Any], values: Sequence[Any]) -> None:
        self._names = names
        self._values = values

    def _at(self, place: int) -> Any:
        return self._values[place]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return tuple(self)[key]
        if isinstance(key, int):
            if -len(self) <= key < len(self):
                return self._at(key % len(self))
            raise TensorIndexError(f"ctx: there are {len(self)} {self._what}, got position {key}")
        if key in self._names:
            return self._at(self._names.index(key))
        raise KeyError(self._unknown(key))

    def __getattr__(self, name: str) -> Any:
        names = self._names
        if name in names:
            return self._at(names.index(name))
        raise AttributeError(self._unknown(name))

    def _unknown(self, key: Any) -> str:
        names = ", ".join(str(n) for n in self._names if n is not None) or "none"
        return f"ctx: no '{key}' among the {self._what}; the names are: {names}"

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

    def __init__(self, arguments: Any, flags: Sequence[bool]) -> None:
        super().__init__(arguments.names, arguments.fold(flags))
        self._groups = arguments.groups

    def __getitem__(self, key: Any) -> Any:
        return self._group(key) if key in self._groups else super().__getitem__(key)

    def __getattr__(self, name: str) -> Any:
        return self._group(name) if name in self._groups else super().__getattr__(name)

    def _group(self, name: str) -> tuple[bool, ...]:
        return tuple([self._values[place] for place in self._groups[name]])


class SavedTensor(NamedTuple):
    """A tensor that forward saved: its array, version then, and place in the history."""

    array: Any
    counter: list[Any]
    version: int
    place: int | None  # of an input; -1 - i for output i; None for neither
    own: Tensor | None  # the tensor itself, where it has a history of its own
    unpack: Any  # the hook that turns `array` back, where one packed it


class SavedVariables(Named):
    """The values of `save_for_backward`, each checked when it is read."""

    __slots__ = ("_context",)
    _what = "saved values"

    def __init__(self, context: Context) -> None:
        self._names = context._saved_names
        self._values = context._saved_values
        self._context = context

    def _at(self, place: int) -> Any:
        return self._context._read(self._values[place], self._names[place])


class Context:
    """The first argument of forward and backward of a user's operation.

    Attributes that start with an underscore are the library's; any other may be set, and a tensor
    among them is kept like a saved one.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_arguments",
        "_inputs",
        "_node",
        "_op",
        "_outputs",
        "_saved_names",
        "_saved_values",
    )
    # Set on the instance where forward says otherwise.
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize = True
    _structure: Any = None  # of the outputs, where containers are nested

    _op: Any
    _arguments: Any  # names, groups and skeleton of the call
    _inputs: Sequence[Any]  # an input's meta where it is tracked, True for a tensor, None for none
    _outputs: Sequence[Any]  # an output's meta, None where it is no tensor
    _node: Any
    _saved_names: tuple[Any, ...]
    _saved_values: tuple[Any, ...]

    # -- forward's side -----------------------------------------------------------------------
    def save_for_backward(self, *values: Any, **named: Any) -> None:
        """Keep values for backward: by position, by name, or both; again replaces the first.

        Tensors are checked for changes in place when they are read; other objects are kept as
        they are.
        """
        if values:
            self._saved_names = (None,) * len(values) + tuple(named)
            self._saved_values = (*values, *named.values())
        else:
            self._saved_names = tuple(named)
            self._saved_values = tuple(named.values())

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
        flags = [meta.__class__ is tuple for meta in self._inputs]
        current = CURRENT.get()
        node = self._node() if self._node is not None else None
        if node is not None and current is not None and current.wanted is not None:
            flags = [f and t in current.wanted for f, t in zip(flags, node.inputs, strict=True)]
        return InputFlags(self._arguments, flags)

    # -- backward's side ----------------------------------------------------------------------
    @property
    def saved_variables(self) -> SavedVariables:
        """The saved values, by attribute, key or position."""
        if self._node is not None:
            self._alive()
        return SavedVariables(self)

    saved_variable = saved_variables

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values that are tensors, None included, as a tuple."""
        kept = (Tensor, SavedTensor, type(None))
        if self._node is not None:
            self._alive()
        return tuple(
            [
                self._read(v, n)
                for n, v in zip(self._saved_names, self._saved_values, strict=True)
                if isinstance(v, kept)
            ]
        )

    def _alive(self) -> Any:
        """Return the node, or raise where its saved values are gone."""
        node = self._node()
        if node is None or node.saved is RELEASED:
            raise ReleasedError(
                f"{self._op.name}: Trying to access saved tensors after they have already been "
                "freed: backward through the graph a second time, or the graph is gone.\n"
                "hint: call backward with retain_graph=True the first time."
            )
        return node

    def _read(self, value: Any, name: str | None) -> Any:
        """Return a saved value, a tensor at its place in the history, after the checks."""
        if value.__class__ is not SavedTensor:
            if self._node is not None and is_array(value):
                self._check_origin(value, name)
            return value
        array, counter, version, place, own, unpack_hook = value
        node = self._alive()
        if unpack_hook is not None:
            array, counter = unpack(unpack_hook, array, node.name()), [0]
        elif counter[0] != version:
            what = f"the saved tensor '{name}'" if name else "a saved tensor"
            raise stale(node, counter[0], version, what)
        if place is None:
            self._check_origin(array, name)
            return box(array, None, counter) if own is None else own
        return box(array, node.inputs[place] if place >= 0 else node.output(-1 - place), counter)

    def _check_origin(self, array: Any, name: str | None) -> None:
        """Refuse a floating value of unknown origin where backward itself is recorded."""
        current = CURRENT.get()
        if current is None or not current.recorded or not dtype_of(array.dtype).is_inexact:
            return
        raise GraphError(
            f"{self._op.name}: the saved value {name or ''!r} is neither an input nor an output of "
            "forward, so a second derivative through it would be silently wrong.\n"
            "hint: return it from forward as a further output, or recompute it in backward from "
            "saved inputs; if it does not depend on the inputs, pass it to forward as an argument; "
            "or mark backward with once_differentiable."
        )

    def __getattr__(self, name: str) -> Any:
        # Only reached for what is not in __dict__: a tensor stored as an attribute in forward.
        stored = self.__dict__.get("_attributes", {})
        if name in stored:
            return self._read(stored[name], name)
        raise AttributeError(
            f"{self._op.name}: ctx has no attribute '{name}'; set it in forward, or save it by "
            "name with ctx.save_for_backward"
        )

    # -- after forward ------------------------------------------------------------------------
    def _seal(self, node: Any, inner: Sequence[Any], outs: Sequence[Any]) -> None:
        """Let go of tensors: keep their arrays, versions and places instead."""
        values = self._saved_values
        if values:
            self._saved_values = tuple(
                [keep(v, inner, outs) if isinstance(v, Tensor) else v for v in values]
            )
        stored = self.__dict__
        if stored:
            for mark in ("_dirty", "_non_differentiable"):
                stored.pop(mark, None)
            tensors = {k: v for k, v in stored.items() if isinstance(v, Tensor)}
            for name in tensors:
                del stored[name]
            if tensors:
                kept = {k: keep(v, inner, outs) for k, v in tensors.items()}
                stored["_attributes"] = kept
        self._node = node


def keep(tensor: Tensor, inner: Sequence[Any], outs: Sequence[Any]) -> SavedTensor:
    """Return what is kept of a tensor that forward saved."""
    place: int | None = None
    for i, out in enumerate(outs):
        if out is tensor:
            place = -1 - i
            break
    else:
        for i, value in enumerate(inner):
            if value is tensor:
                place = i
                break
    counter = tensor._counter
    own = tensor if place is None and tensor._node is not None else None
    hooks = STATE.get().hooks
    array = tensor._data if tensor._view is None else tensor.data_array()
    if hooks is not None:
        return SavedTensor(pack(hooks, array), counter, counter[0], place, own, hooks.unpack)
    return SavedTensor(array, counter, counter[0], place, own, None)
