"""The axes that `vmap` maps over: read for arguments and results, in containers of any form.

Owns ``in_axes`` and ``out_axes``: one axis for a whole container, or a container of axes of its
form, down to any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pullback.arrays import is_array
from pullback.core.custom.pytree import children
from pullback.core.tensor.tensor import Tensor
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    ShapeError,
    TensorIndexError,
    compose,
)
from pullback.transforms.arguments import named_leaves, path_of

__all__ = ["Leaf", "argument_leaves", "axis_within", "is_numeric", "matched", "size_of_batch"]


class Leaf(NamedTuple):
    """What is no container, its path, and the axis of the samples; None for none."""

    path: str
    value: Any
    axis: int | None


def is_numeric(value: Any) -> bool:
    """Return whether a value is a tensor or an array."""
    return isinstance(value, Tensor) or is_array(value)


def argument_leaves(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Leaf]:
    """Return the leaves of all arguments, positional ones first.

    Raises
    ------
    ArgumentError, ArgumentTypeError, TensorIndexError
        If `in_axes` does not fit the arguments.
    """
    axes = in_axes
    if in_axes is None or _is_axis(in_axes):
        axes = (in_axes,) * len(args)
    elif not isinstance(in_axes, (tuple, list)):
        required = "an axis, or a tuple with one item for each positional argument, as in_axes"
        came = type(in_axes).__name__
        raise ArgumentTypeError(compose("vmap", f"{required} required", came))
    elif len(in_axes) != len(args):
        required = f"an item of in_axes for each of {len(args)} positional arguments required"
        raise ArgumentError(compose("vmap", required, f"{len(in_axes)}: {in_axes!r}"))
    found = [
        leaf
        for i, (axis, value) in enumerate(zip(axes, args, strict=True))
        for leaf in matched("in_axes", f"argument {i}", axis, value)
    ]
    for name, value in kwargs.items():
        for path, leaf in named_leaves(f"argument {name!r}", value):
            found.append(Leaf(path, leaf, 0 if is_numeric(leaf) else None))
    return [leaf if leaf.axis is None else _checked(leaf) for leaf in found]


def matched(setting: str, path: str, axes: Any, value: Any) -> Iterator[Leaf]:
    """Yield the leaves of a value, each with its axis.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If `axes` is no axis and no container of the value's form.
    """
    if axes is None or _is_axis(axes):
        axis = None if axes is None else int(axes)
        if children(value) is None:
            yield Leaf(path, value, axis)
            return
        yield from (Leaf(name, leaf, axis) for name, leaf in named_leaves(path, value))
        return
    given, wanted = children(axes), children(value)
    if given is None:
        required = f"an integer, None or a container of those required as {setting} of {path}"
        raise ArgumentTypeError(compose("vmap", required, repr(axes)))
    if wanted is None or {k for k, _ in given} != {k for k, _ in wanted}:
        required = f"{setting} of the structure of {path} required, {_structure(value)}"
        raise ArgumentError(compose("vmap", required, _structure(axes)))
    by_key = dict(given)
    for key, item in wanted:
        yield from matched(setting, path_of(path, value, key), by_key[key], item)


def _is_axis(value: Any) -> bool:
    if value.__class__ is int:
        return True
    return hasattr(value, "__index__") and not isinstance(value, (bool, Tensor))


def _structure(value: Any) -> str:
    items = children(value)
    if items is None:
        return type(value).__name__
    return f"{type(value).__name__} of {', '.join(str(k) for k, _ in items) or 'nothing'}"


def _checked(leaf: Leaf) -> Leaf:
    """Return a mapped leaf with its axis counted from the front."""
    if not is_numeric(leaf.value):
        required = f"a tensor or an array required in {leaf.path} to map over axis {leaf.axis}"
        hint = "give None in in_axes for what all samples share"
        came = type(leaf.value).__name__
        raise ArgumentTypeError(compose("vmap", required, came, hint=hint))
    axis = axis_within(leaf.axis, len(leaf.value.shape), leaf)
    return leaf if axis == leaf.axis else leaf._replace(axis=axis)


def axis_within(axis: Any, ndim: int, leaf: Leaf) -> int:
    """Return an axis counted from the front, or raise naming where it was given for."""
    if not -ndim <= axis < ndim:
        required = f"an axis of {leaf.path} required, from {-ndim} to {ndim - 1}"
        if not ndim:
            required = f"a tensor with an axis to map over required in {leaf.path}"
            hint = "give None in in_axes for what all samples share"
            raise TensorIndexError(compose("vmap", required, "0 dimensions", hint=hint))
        raise TensorIndexError(compose("vmap", required, str(axis), (leaf.path, leaf.value)))
    return int(axis) % ndim


def size_of_batch(leaves: list[Leaf]) -> int:
    """Return the length that the mapped axes of all arguments have.

    Raises
    ------
    ArgumentError, ShapeError
        If nothing is mapped; if lengths differ or are 0.
    """
    sizes = {leaf.path: leaf.value.shape[leaf.axis] for leaf in leaves if leaf.axis is not None}
    if not sizes:
        required = "at least one argument to map over required"
        hint = "call the function itself, or give an axis in in_axes"
        raise ArgumentError(compose("vmap", required, "none", hint=hint))
    size = next(iter(sizes.values()))
    if any(n != size for n in sizes.values()):
        came = ", ".join(f"{n} in {path}" for path, n in sizes.items())
        raise ShapeError(compose("vmap", "one length of all mapped axes required", came))
    if size == 0:
        required = "at least one sample required"
        raise ShapeError(compose("vmap", required, f"an axis of length 0 in {next(iter(sizes))}"))
    return int(size)
