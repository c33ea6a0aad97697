"""The vectors that derivatives are multiplied with: matched to what they belong to, and checked.

Owns the rules for cotangents and for the vectors of Hessian products, which are those for the
gradients that a backward returns: a shape must be equal, another floating dtype is cast.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from typing import Any

from pullback.arrays import is_array, join, library_of
from pullback.core.custom.pytree import children
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    ShapeError,
    compose,
)
from pullback.ops.functions.creation import asarray
from pullback.transforms.arguments import named_leaves, path_of

__all__ = ["as_tensor", "directions", "is_differentiable"]


def directions(api: str, name: str, given: Any, like: Any) -> list[Tensor | None]:
    """Return the vector that `given` holds for each leaf of `like`, None where it is zero.

    It is zero where `given` is None, which it is for integers.
    """
    vectors: list[Tensor | None] = []
    for path, vector, leaf in _matched(api, name, given, like):
        if vector is not None and not is_differentiable(leaf):
            required = f"None required in {path}, which belongs to what has no derivative"
            raise ArgumentTypeError(compose(api, required, type(vector).__name__))
        vectors.append(None if vector is None else _checked(api, path, vector, as_tensor(leaf)))
    return vectors


def is_differentiable(leaf: Any) -> bool:
    """Return whether a leaf of a result is, or holds, floating-point or complex numbers."""
    if isinstance(leaf, Tensor):
        return leaf.dtype.is_inexact
    if not is_array(leaf):
        return isinstance(leaf, (float, complex))
    return asarray(leaf).dtype.is_inexact


def as_tensor(leaf: Any) -> Tensor:
    """Return a leaf of a result as a tensor; what is none depends on nothing."""
    return leaf if isinstance(leaf, Tensor) else asarray(leaf)


def _matched(api: str, name: str, given: Any, like: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, item of `given`, leaf of `like`); the items of a None are None."""
    wanted = children(like)
    if given is None:
        yield from ((path, None, leaf) for path, leaf in named_leaves(name, like))
        return
    came = children(given)
    if wanted is None and came is None:
        yield name, given, like
        return
    if wanted is None or came is None or {k for k, _ in came} != {k for k, _ in wanted}:
        required = f"the structure {_structure(like)} required in {name}"
        raise ArgumentError(compose(api, required, _structure(given)))
    items = dict(came)
    for key, item in wanted:
        yield from _matched(api, path_of(name, like, key), items[key], item)


def _structure(value: Any) -> str:
    items = children(value)
    kind = "Tensor" if isinstance(value, Tensor) else type(value).__name__
    return (
        kind if items is None else f"{kind} of {', '.join(str(k) for k, _ in items) or 'nothing'}"
    )


def _checked(api: str, name: str, given: Any, like: Tensor) -> Tensor:
    """Return a vector as a tensor that fits `like`, or raise."""
    vector = _boxed(api, name, given, like)
    if vector.shape != like.shape:
        required = f"the shape {like.shape} required in {name}"
        raise ShapeError(compose(api, required, str(vector.shape), (name, given)))
    libraries = library_of(vector.data_array()), library_of(like.data_array())
    if join(libraries) is None or vector.device != like.device:
        required = f"an array on {like.device} ({libraries[1].name}) required in {name}"
        came = f"one on {vector.device} ({libraries[0].name})"
        raise DeviceError(compose(api, required, came, hint="move it with .to(device)"))
    if vector.dtype is like.dtype:
        return vector
    if not vector.dtype.is_inexact or (vector.is_complex() and not like.is_complex()):
        kind = "floating-point or complex" if like.is_complex() else "real floating-point"
        required, hint = f"{kind} numbers required in {name}", "convert it with .to(dtype)"
        raise DTypeError(compose(api, required, vector.dtype.name, (name, given), hint=hint))
    cast: Tensor = vector.to(like.dtype)
    return cast


def _boxed(api: str, name: str, given: Any, like: Tensor) -> Tensor:
    if isinstance(given, Tensor):
        return given
    if is_array(given):
        return box(library_of(given).tidy(given))
    if isinstance(given, bool) or not isinstance(given, Number):
        required = f"a Tensor, an array or a number required in {name}"
        raise ArgumentTypeError(compose(api, required, type(given).__name__))
    if isinstance(given, complex) and not like.is_complex():
        required = f"real floating-point numbers required in {name}"
        raise DTypeError(compose(api, required, f"the complex number {given}"))
    array = like.data_array()
    return box(library_of(array).asarray(given, dtype=like.dtype))
