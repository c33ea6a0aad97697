"""Values that a rule reads by name: what forward saved, and which arguments need a gradient.

What a node of a user's operation saves is a list of four items a value: the array or other object,
its version counter (None where nothing can write to it), the version, and its position in the graph
(an input's number, -1 - i for output i, None for neither); then, last, the dictionary of what
forward set on ctx, or None.
"""

from __future__ import annotations

import itertools
import keyword
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pullback.core.function.codegen import Written, expand, register, tupled
from pullback.core.graph.node import CustomNode
from pullback.core.tensor.tensor import Tensor
from pullback.errors import NameNotFoundError, TensorIndexError, nearest

# Four items a saved value, the last of them its position, see above.
STRIDE, COUNTER, POSITION = 4, 1, 3
MANY = 16  # more saved values than these have no lines written for them


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

    def _at(self, slot: int) -> Any:
        return self._values[slot]

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
        near = nearest(key, names)
        hint = f"\nhint: did you mean '{near}'?" if near else ""
        return NameNotFoundError(
            f"{self._op_name}: no '{key}' among the {self._what}; the names are: "
            f"{', '.join(names) or '(none)'}{hint}"
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

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
        return tuple([self._values[slot] for slot in self._groups[name]])


class SavedItem:
    """A saved tensor or array inside a saved container, itself none: its four items."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items


class SavedArray(NamedTuple):
    """A saved array, of no tensor, whose memory an argument or a result shows: it has a version."""

    array: Any


class SavedContainer(NamedTuple):
    """A saved container with a `SavedItem` where it had a tensor or an array."""

    structure: Any


class SavedResult(NamedTuple):
    """A saved tensor that was recorded inside forward on purpose: it has a graph of its own."""

    array: Any  # or what a pack hook made of it
    own: Tensor


class SavedVariables(Named):
    """The values of `save_for_backward`, checked when ctx.saved_variables is asked for.

    There is a class for each sequence of names, with a slot for each value. What cannot be given
    at once (changed in place since, packed by a hook, in a container) is left out of its slot, and
    read, or refused, when it is asked for.
    """

    __slots__ = ("_context",)
    _what = "saved values"
    _context: Any  # the `Context` they were asked of
    _slots: Sequence[str]  # one a value: its name, or its position where that is no name
    _filled: Callable[[Any, CustomNode], SavedVariables]  # reads those of a node

    @property
    def _op_name(self) -> str:  # type: ignore[override]
        return self._context._op.name  # type: ignore[no-any-return]

    def _at(self, slot: int) -> Any:
        return getattr(self, self._slots[slot])

    def __iter__(self) -> Iterator[Any]:
        return map(getattr, itertools.repeat(self), self._slots)

    def __getattr__(self, name: str) -> Any:
        if name not in self._slots:
            return self[name]
        slot, context = self._slots.index(name), self._context
        items = context._alive().saved[slot * STRIDE : (slot + 1) * STRIDE]
        return context._read(items, name if name in self._names else slot)


class _SavedClasses(dict[tuple[str | None, ...], type[SavedVariables]]):
    """From the names of saved values to the class that has a slot for each of them.

    A slot is found before the methods of `Mapping` and without a look through the names.
    """

    def __missing__(self, names: tuple[str | None, ...]) -> type[SavedVariables]:
        slots = [
            name if name and _can_be_attribute(name) else f"_{slot}"
            for slot, name in enumerate(names)
        ]
        members: dict[str, Any] = {
            "__slots__": slots,
            "__getattribute__": object.__getattribute__,
            "__init__": object.__init__,
            "__doc__": SavedVariables.__doc__,
            "_names": names,
            "_slots": slots,
        }
        result: Any = type("SavedVariables", (SavedVariables,), members)
        lines = _filling(slots if len(slots) <= MANY else ())
        written = Written("saved variables", lines, ("context", "node"), kind=result)
        result._filled = staticmethod(written.function())
        self[names] = result
        return result  # type: ignore[no-any-return]


def _can_be_attribute(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name)


_FILLED = """
def filled(context, node):
    $saved = $new($kind)
    $saved._context = context
    $edges, $recorded = node.record, context._pass[1]
    {items}
    {values}
    return $saved
"""

# One value, from its four items.
_VALUE = """
if $c{i} is None:
    if not $recorded and $a{i}.__class__ is not $SavedContainer:
        $saved.{slot} = $a{i}
elif $a{i}.__class__ is $ndarray and $c{i}.version == $v{i}:
    if $p{i} is not None or not $recorded:
        $saved.{slot} = $t = $Tensor()
        $t._data, $t._counter = $a{i}, $c{i}
        $t._base = $t._grad = $t._node = None
        if $p{i} is not None:
            $t._node = $edges[$p{i}] if $p{i} >= 0 else node.output(-1 - $p{i})
elif $a{i}.__class__ is $SavedArray and $c{i}.version == $v{i} and not $recorded:
    $saved.{slot} = $a{i}.array
"""


def _filling(slots: Sequence[str]) -> list[str]:
    """Return the lines of what reads the saved values of a node, each from its four items."""
    names = [f"${letter}{i}" for i in range(len(slots)) for letter in "acvp"]
    numbered = [expand(_VALUE, i=str(i), slot=slot) for i, slot in enumerate(slots)]
    return expand(
        _FILLED,
        items=[f"{tupled([*names, '$attributes'])} = node.saved"] if slots else [],
        values=[line for lines in numbered for line in lines],
    )


register(sys.modules[__name__], new=object.__new__)
saved_names = _SavedClasses()
