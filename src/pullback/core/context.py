"""ctx: what forward and backward of a user's operation have to say to each other.

Owns saving by name, reading back with the checks, needs_input_grad and the marks. A context
belongs to one call. Invariants: it holds arrays and version counters, never a tensor of the
caller or a result, so it makes no reference cycle; it knows its node weakly, so it reads as freed
once the graph is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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

    __slots__ = ("_names", "_values", "_what")

    def __init__(
        self, names: Sequence[Any], values: Sequence[Any], what: str = "arguments of forward"
    ) -> None:
        self._names = names
        self._values = values
        self._what = what

    def _at(self, place: int) -> Any:
        return self._values[place]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return tuple(self)[key]
        if isinstance(key, int):
            if -len(self._values) <= key < len(self._values):
                return self._at(key % len(self._values))
            raise TensorIndexError(
                f"ctx: there are {len(self._values)} {self._what}, got position {key}"
            )
        if key in self._names:
            return self._at(self._names.index(key))
        raise KeyError(self._unknown(key))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._names:
            return self._at(self._names.index(name))
        raise AttributeError(self._unknown(name))

    def _unknown(self, key: Any) -> str:
        names = ", ".join(str(n) for n in self._names if n is not None) or "none"
        return f"ctx: no '{key}' among the {self._what}; the names are: {names}"

    def __iter__(self) -> Iterator[Any]:
        return (self._at(i) for i in range(len(self._values)))

    def __len__(self) -> int:
        return len(self._values)

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


class SavedTensor:
    """An array that forward saved: where it belongs in the history, and its version then."""

    __slots__ = ("array", "counter", "name", "own", "packed", "place", "version")

    def __init__(self, tensor: Tensor, name: str | None, place: Any) -> None:
        hooks = STATE.get().hooks
        array = tensor.data_array()
        self.packed = hooks.unpack if hooks is not None else None
        self.array = array if hooks is None else pack(hooks, array)
        self.counter = tensor._counter
        self.version = tensor._counter[0]
        self.name = name
        self.place = place  # ("input", i), ("output", i), or None for neither
        # A tensor with a history of its own (recorded inside forward on purpose) is kept itself.
        self.own = tensor if place is None and tensor._node is not None else None

    def read(self, node: Any, op_name: str) -> Tensor:
        """Return the tensor at its place in the history, after the checks."""
        if self.packed is not None:
            return box(unpack(self.packed, self.array, node.name()), self._target(node))
        if self.counter[0] != self.version:
            what = f"the saved tensor '{self.name}'" if self.name else "a saved tensor"
            raise stale(node, self.counter[0], self.version, what)
        if self.place is None:
            check_intermediate(op_name, self.name, self.array)
        return self.own or box(self.array, self._target(node), self.counter)

    def _target(self, node: Any) -> Any:
        if self.place is None:
            return None
        role, i = self.place
        if role == "input":
            return node.inputs[i]
        return node.output(i)


def check_intermediate(op_name: str, name: str | None, array: Any) -> None:
    """Refuse a saved floating value of unknown origin where backward itself is recorded."""
    current = CURRENT.get()
    if current is None or not current.recorded or not dtype_of(array.dtype).is_inexact:
        return
    raise GraphError(
        f"{op_name}: the saved value {name or ''!r} is neither an input nor an output of forward, "
        "so a second derivative through it would be silently wrong.\n"
        "hint: return it from forward as a further output, or recompute it in backward from saved "
        "inputs; if it does not depend on the inputs, pass it to forward as an argument; or mark "
        "backward with once_differentiable."
    )


class SavedVariables(Named):
    """The values of `save_for_backward`, each checked when it is read."""

    __slots__ = ("_context",)

    def __init__(self, context: Context, names: Sequence[Any], values: Sequence[Any]) -> None:
        super().__init__(names, values, "saved values")
        self._context = context

    def _at(self, place: int) -> Any:
        return self._context._read(self._values[place], self._names[place])


class Context:
    """The first argument of forward and backward of a user's operation."""

    def __init__(self, op: Any, names: Sequence[str], flags: tuple[bool, ...]) -> None:
        d = self.__dict__
        d["_op"] = op
        d["_names"] = names
        d["_flags"] = flags
        d["_saved_names"] = d["_saved_values"] = ()
        d["_node"] = None
        d["_dirty"] = d["_non_differentiable"] = ()
        d["_materialize"] = True

    # -- forward's side -----------------------------------------------------------------------
    def save_for_backward(self, *values: Any, **named: Any) -> None:
        """Keep values for backward: by position, by name, or both; again replaces the first.

        Tensors are checked for changes in place when they are read; other objects are kept as
        they are.
        """
        self.__dict__["_saved_names"] = (None,) * len(values) + tuple(named)
        self.__dict__["_saved_values"] = (*values, *named.values())

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward changed these inputs in place; forward must return them."""
        self._check_tensors("mark_dirty", tensors)
        self.__dict__["_dirty"] = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient; backward receives zeros for them."""
        self._check_tensors("mark_non_differentiable", tensors)
        self.__dict__["_non_differentiable"] = tensors

    def _check_tensors(self, api: str, tensors: tuple[Any, ...]) -> None:
        for t in tensors:
            if not isinstance(t, Tensor):
                raise ArgumentTypeError(
                    f"{self._op.name}: ctx.{api} takes tensors, got {type(t).__name__}"
                )

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what stands for the gradient of an unused output: zeros (True) or None."""
        self.__dict__["_materialize"] = bool(value)

    # -- both sides ---------------------------------------------------------------------------
    @property
    def needs_input_grad(self) -> Named:
        """One boolean an argument of forward, by attribute, key or position."""
        flags = self._flags
        current = CURRENT.get()
        node = self._node() if self._node is not None else None
        if node is not None and current is not None and current.wanted is not None:
            wanted = {i for i, t in zip(self._op_places, node.inputs, strict=True) if t in current.wanted}
            flags = tuple(f and i in wanted for i, f in enumerate(flags))
        return Named(self._names, flags)

    # -- backward's side ----------------------------------------------------------------------
    @property
    def saved_variables(self) -> SavedVariables:
        """The saved values, by attribute, key or position."""
        self._alive()
        return SavedVariables(self, self._saved_names, self._saved_values)

    saved_variable = saved_variables

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values that are tensors, None included, as a tuple."""
        self._alive()
        kept = (Tensor, SavedTensor, type(None))
        return tuple(
            self._read(v, n)
            for n, v in zip(self._saved_names, self._saved_values, strict=True)
            if isinstance(v, kept)
        )

    def _alive(self) -> Any:
        """Return the node; before forward ended there is none."""
        if self._node is None:
            return None
        node = self._node()
        if node is None or node.saved is RELEASED:
            raise ReleasedError(
                f"{self._op.name}: Trying to access saved tensors after they have already been "
                "freed: backward through the graph a second time, or the graph is gone.\n"
                "hint: call backward with retain_graph=True the first time."
            )
        return node

    def _read(self, value: Any, name: str | None) -> Any:
        if value.__class__ is SavedTensor:
            return value.read(self._alive(), self._op.name)
        if self._node is not None and is_array(value):
            check_intermediate(self._op.name, name, value)
        return value

    def __getattr__(self, name: str) -> Any:
        # Only reached for what is not in __dict__: a tensor stored as an attribute in forward.
        stored = self.__dict__.get("_attributes", {})
        if name in stored:
            return self._read(stored[name], name)
        raise AttributeError(
            f"{self._op.name if '_op' in self.__dict__ else 'ctx'}: ctx has no attribute '{name}'; "
            "set it in forward, or save it by name with ctx.save_for_backward"
        )

    # -- after forward ------------------------------------------------------------------------
    def _forget_marks(self) -> None:
        """Let go of the tensors that forward marked."""
        self.__dict__["_dirty"] = self.__dict__["_non_differentiable"] = ()

    def _seal(self, node: Any, places: dict[int, Any], op_places: Sequence[int]) -> None:
        """Turn saved tensors into `SavedTensor` entries; `places` maps a tensor's id to its place."""
        d = self.__dict__
        d["_op_places"] = op_places
        if self._saved_values:
            d["_saved_values"] = tuple(
                [
                    SavedTensor(v, n, places.get(id(v))) if isinstance(v, Tensor) else v
                    for n, v in zip(self._saved_names, self._saved_values, strict=True)
                ]
            )
        if len(d) > _OWN + 1:
            stored = {
                k: v for k, v in d.items() if isinstance(v, Tensor) and not k.startswith("_")
            }
            for name in stored:
                del d[name]
            d["_attributes"] = {k: SavedTensor(v, k, places.get(id(v))) for k, v in stored.items()}
        d["_node"] = node


_OWN = len(Context(None, (), ()).__dict__)
