"""Finding tensors and modules in objects: by dotted name, in order, each once.

Owns the one walk behind `named_parameters`, `Module.state_dict` and all that asks for the parts of
a module. It goes through modules, dataclasses, dicts, lists, tuples and the attributes of objects
of a user's own classes; cycles are survived. Must not know what a module does.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from pullback.core.tensor.printing import html_table, mimebundle
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, compose

# Classes of these packages hold no parameters of a user's.
_NOT_ENTERED = sys.stdlib_module_names | {"cupy", "jax", "numpy", "pullback", "scipy", "torch"}


class Part(NamedTuple):
    """A tensor or a module that was found.

    Attributes
    ----------
    name : str
        Its dotted name, "" for the object that the walk began at.
    value : Tensor or object
    owner : object
        What holds it.
    key : any
        What it is called there.
    """

    name: str
    value: Any
    owner: Any
    key: Any


class Walked:
    """The base of objects that say themselves what the walk finds in them: modules."""

    def _children(self) -> Iterator[tuple[str, Any]]:
        """Yield the names of attributes and their values, in order."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows: the text, and the parameters as a table."""
        rows = [(n, str(tuple(p.shape)), f"{p.size:,}") for n, p in named_parameters(self)]
        return mimebundle(repr(self), html_table(rows, ("parameter", "shape", "numbers")))


def children(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what an object holds, each with its key; nothing for what is not entered."""
    if isinstance(value, Walked):
        return value._children()
    if isinstance(value, (Tensor, type, ModuleType, str, bytes)):
        return iter(())
    if isinstance(value, Mapping):
        return iter(value.items())
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", range(len(value)))
        return zip(fields, value, strict=True)
    if type(value).__module__.partition(".")[0] in _NOT_ENTERED:
        return iter(())
    if dataclasses.is_dataclass(value):
        return ((f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value))
    return iter(_attributes(value))


def _attributes(value: Any) -> list[tuple[str, Any]]:
    slots = [
        name
        for cls in type(value).__mro__
        for name in _listed(cls.__dict__.get("__slots__", ()))
        if hasattr(value, name) and name[:2] != "__"
    ]
    return [*getattr(value, "__dict__", {}).items(), *((n, getattr(value, n)) for n in slots)]


def _listed(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def walk(root: Any, prefix: str = "", *, repeats: bool = False) -> Iterator[Part]:
    """Yield the tensors and modules in an object, itself included, before what they hold.

    Parameters
    ----------
    root : object
    prefix : str
        What names begin with.
    repeats : bool
        Yield what is held twice, a tied weight, under each of its names.
    """
    seen: set[int] = set()
    alive: list[Any] = []  # so that no id stands for two objects
    open_items = [(prefix, None, iter([("", root)]), 0)]
    while open_items:
        name, owner, items, _ = open_items[-1]
        for key, value in items:
            if id(value) in seen:
                continue
            path = f"{name}.{key}" if name and key != "" else f"{name}{key}"
            if isinstance(value, (Tensor, Walked)):
                yield Part(path, value, owner, key)
            seen.add(id(value))
            alive.append(value)
            open_items.append((path, value, children(value), id(value)))
            break
        else:
            _, _, _, number = open_items.pop()
            if repeats:
                seen.discard(number)


def named_parameters(obj: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the dotted name and the tensor of every leaf that requires grad in an object.

    Parameters
    ----------
    obj : object
        A `Module`, a dataclass, dict, list, tuple, or any object with attributes.
    prefix : str
        What names begin with.

    Yields
    ------
    tuple of (str, Tensor)
        Such as ``("layers.0.weight", w)``; each tensor once, under its first name.

    Raises
    ------
    ArgumentTypeError
        If `obj` can hold nothing: a number, a text, a function.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.ones((2, 2), requires_grad=True)
    >>> net = {"layers": [{"weight": w, "bias": pb.zeros(2, requires_grad=True)}], "head": w}
    >>> [name for name, _ in pb.nn.named_parameters(net)]
    ['layers.0.weight', 'layers.0.bias']
    """
    if isinstance(obj, (str, bytes, int, float, complex, type(None), type)):
        required = "a Module, a container or an object with attributes required"
        hint = "give the object that holds the tensors, not its class" * isinstance(obj, type)
        raise ArgumentTypeError(
            compose("named_parameters", required, type(obj).__name__, hint=hint or None)
        )
    return (
        (part.name, part.value)
        for part in walk(obj, prefix)
        if isinstance(part.value, Tensor) and is_parameter(part.value)
    )


def parameters(obj: Any) -> Iterator[Tensor]:
    """Yield every leaf that requires grad in an object, each once; see `named_parameters`.

    Examples
    --------
    >>> import pullback as pb
    >>> w = pb.ones(2, requires_grad=True)
    >>> optimizer = pb.optim.SGD(pb.nn.parameters({"w": w, "lr": 0.1}), lr=0.1)
    >>> optimizer.param_groups[0]["params"][0] is w
    True
    """
    return (tensor for _, tensor in named_parameters(obj))


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a leaf that requires grad."""
    return tensor.requires_grad and tensor.is_leaf
