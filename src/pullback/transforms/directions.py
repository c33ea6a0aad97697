"""The vectors that derivatives are multiplied with: matched to what they belong to, and checked.

Owns the rules for cotangents and for the vectors of Hessian products, which are those for the
gradients that a backward returns: a shape must be equal, another floating dtype is cast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

from pullback.arrays import NUMPY, is_array, join, library_of, ndarray
from pullback.core.custom.pytree import Structure, children, path_of, paths_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    ShapeError,
    compose,
)
from pullback.ops.functions.creation import asarray, zeros_like


def directions(
    api: str, name: str, given: Any, like: Sequence[Any], structure: Structure | None
) -> list[Tensor | None]:
    """Return the vector that `given` holds for each leaf of `like`, None where it is zero.

    It is zero where `given` has None, for a leaf or for a container in `structure`, as it must have
    for integers. Errors call the transform `api`, and what is given `name`.
    """
    result: list[Any] = []
    _match(api, name, given, like, structure, result)
    for i, (vector, leaf) in enumerate(zip(result, like, strict=True)):
        if vector is None:
            continue
        if _fits(vector, leaf):
            result[i] = vector if isinstance(vector, Tensor) else box(vector)
            continue
        path = [*paths_of(name, structure)][i]
        if leaf is None or not is_differentiable(leaf):
            required = f"None required in {path}, which belongs to what has no derivative"
            raise ArgumentTypeError(compose(api, required, type(vector).__name__))
        result[i] = _checked(api, path, vector, as_tensor(leaf))
    return result


def _fits(vector: Any, leaf: Any) -> bool:
    """Return whether a vector is an array, or a tensor around one, just like a leaf's."""
    if not isinstance(leaf, Tensor):
        return False
    like = leaf._data
    if isinstance(vector, Tensor) and vector._base is None:
        vector = vector._data
    return (
        vector.__class__ is ndarray
        and like.__class__ is ndarray
        and vector.dtype is like.dtype
        and vector.shape == like.shape
        and like.dtype in NUMPY.quick_dtypes
    )


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


def or_zeros(derivatives: Iterable[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Return derivatives; for one that is None zeros like what it belongs to."""
    pairs = zip(derivatives, like, strict=True)
    return [zeros_like(t.detach()) if d is None else d for d, t in pairs]


def _match(
    api: str,
    name: str,
    given: Any,
    like: Sequence[Any],
    structure: Structure | None,
    found: list[Any],
    within: tuple[tuple[Any, Any], ...] = (),
) -> None:
    """Add to `found` the item of `given` for each leaf; the items of a None are None.

    `within` are the containers around `given`, each with the key of the next.
    """
    if given is None:
        found += [None] * (1 if structure is None else structure.size)
        return
    came = children(given)
    if structure is None and came is None:
        found.append(given)
        return
    items = dict(came or ())
    if structure is None or came is None or items.keys() != {*structure.keys}:
        wanted = like[len(found)] if structure is None else structure.like
        for container, key in within:
            name = path_of(name, container, key)
        required = f"the structure {described(wanted)} required in {name}"
        raise ArgumentError(compose(api, required, described(given)))
    for key, inner in zip(structure.keys, structure.items, strict=True):
        _match(api, name, items[key], like, inner, found, (*within, (structure.like, key)))


def described(value: Any) -> str:
    """Return what errors call a value, with the keys of a container."""
    items = children(value)
    kind = "Tensor" if isinstance(value, Tensor) else type(value).__name__
    return (
        kind if items is None else f"{kind} of {', '.join(str(k) for k, _ in items) or 'nothing'}"
    )


def _checked(api: str, name: str, given: Any, like: Tensor) -> Tensor:
    """Return a vector as a tensor that fits `like`, or raise."""
    vector = _to_tensor(api, name, given, like)
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


def _to_tensor(api: str, name: str, given: Any, like: Tensor) -> Tensor:
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
