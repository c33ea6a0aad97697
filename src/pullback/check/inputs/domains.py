"""Sets of arrays with a structure: symmetric matrices, rotations, probabilities, sorted values.

Owns, for each word that a description may have, how such arrays are drawn and recognised, and the
map onto them. Differences move an array in every direction; the map brings it back, so that forward
sees members of the set alone, and the gradient is compared along the set.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pullback.check.numerical import double
from pullback.check.subject import ForwardError, Subject, name_of, parameters_of
from pullback.check.values import Array
from pullback.ops.functions.creation import eye

_CLOSE = 1e-6
_NOT_SYMMETRIC = 1e-2  # by how much a matrix is made so


class Domain(NamedTuple):
    """One set of arrays."""

    word: str  # in a description
    draw: Callable[[Array], Array]  # makes a member of normal numbers
    holds: Callable[[Array], bool]  # whether one in double precision is a member, hardly by chance
    # The map of a tensor near the set onto it; None where arrays nearby are members too.
    project: Callable[[Any], Any] | None = None
    square: bool = False  # whether the last two axes have one length


# -- drawing ---------------------------------------------------------------------------------------
def _symmetric(normal: Array) -> Array:
    return np.asarray(normal + np.conj(np.swapaxes(normal, -1, -2))) / 2


def _definite(normal: Array) -> Array:
    size = normal.shape[-1]
    product = normal @ np.conj(np.swapaxes(normal, -1, -2))
    return np.asarray(product / size + 0.5 * np.eye(size))


def _rotation(normal: Array) -> Array:
    q = np.linalg.qr(normal)[0]
    return np.asarray(q * np.sign(np.linalg.det(q))[..., None, None] ** np.eye(q.shape[-1])[0])


def _sorted(normal: Array) -> Array:
    steps = 0.3 + np.abs(normal) / 2  # apart: differences keep the order
    return np.asarray(np.cumsum(steps, axis=-1) - steps.sum(-1, keepdims=True) / 2)


def from_end_to_end(array: Array, low: Any, high: Any) -> Array:
    """Return a sorted array from end to end of an interval."""
    first, last = array[..., :1], array[..., -1:]
    length = np.where(last > first, last - first, 1.0)
    return np.asarray(np.clip(low + (array - first) / length * (high - low), low, high))


# -- recognising -----------------------------------------------------------------------------------
def _is_close(a: Array, b: Any) -> bool:
    # Asked for every array of every call: allclose takes ten times as long for few elements.
    return bool((np.abs(a - b) <= _CLOSE + _CLOSE * np.abs(b)).all())


def _is_square(a: Array) -> bool:
    return a.ndim >= 2 and a.shape[-1] == a.shape[-2] > 1


def _is_symmetric(a: Array) -> bool:
    return _is_square(a) and _is_close(a, np.conj(np.swapaxes(a, -1, -2)))


def _is_orthogonal(a: Array) -> bool:
    return _is_square(a) and _is_close(a @ np.swapaxes(a, -1, -2), np.eye(a.shape[-1]))


def _sums_to_one(a: Array) -> bool:
    return a.ndim >= 1 and a.shape[-1] > 1 and _is_close(a.sum(-1), 1.0)


# -- onto the sets ---------------------------------------------------------------------------------
def _symmetric_part(matrix: Any) -> Any:
    # An operation may read any triangle, and return the gradient in any.
    return (matrix + matrix.mH) / 2


def _nearest_orthogonal(matrix: Any) -> Any:
    """Return the orthogonal factor of a matrix near one, by Newton's iteration.

    That of a singular value decomposition has no derivative where these values are equal.
    """
    for _ in range(6):
        matrix = matrix @ (3.0 * eye(matrix.shape[-1], dtype=matrix.dtype) - matrix.mH @ matrix) / 2
    return matrix


# The narrower before the wider ones, for recognising.
_ROWS = (
    Domain(
        "spd",
        _definite,
        lambda a: _is_symmetric(a) and bool((np.linalg.eigvalsh(a) > 0).all()),
        _symmetric_part,
        square=True,
    ),
    Domain(
        "rotation",
        _rotation,
        lambda a: _is_orthogonal(a) and bool((np.linalg.det(a) > 0).all()),
        _nearest_orthogonal,
        square=True,
    ),
    Domain(
        "orthogonal",
        lambda normal: np.linalg.qr(normal)[0],
        _is_orthogonal,
        _nearest_orthogonal,
        square=True,
    ),
    Domain("symmetric", _symmetric, _is_symmetric, _symmetric_part, square=True),
    Domain(
        "simplex",
        lambda normal: np.exp(normal / 2) / np.exp(normal / 2).sum(-1, keepdims=True),
        lambda a: _sums_to_one(a) and bool((a >= 0).all()),
        lambda weights: weights / weights.sum(-1, keepdim=True),
    ),
    Domain(
        "normalized",
        lambda normal: normal / np.linalg.norm(normal, axis=-1, keepdims=True),
        lambda a: _sums_to_one(a * a),
        lambda values: values / (values * values).sum(-1, keepdim=True).sqrt(),
    ),
    Domain(
        "sorted",
        _sorted,
        lambda a: a.ndim >= 1 and a.shape[-1] > 3 and bool((a[..., 1:] > a[..., :-1]).all()),
    ),
)
DOMAINS = {domain.word: domain for domain in _ROWS}


def recognised(array: Array) -> str:
    """Return the word for the structure that an array has; empty if it has none."""
    if array.dtype.kind not in "fc" or not array.size or not np.isfinite(array).all():
        return ""
    wide = array.astype(double(array.dtype))
    known = ("spd", "symmetric") if array.dtype.kind == "c" else DOMAINS  # these are Hermitian
    return next((word for word in known if DOMAINS[word].holds(wide)), "")


# -- calls -----------------------------------------------------------------------------------------
def on_domains(fn: Callable[..., Any], domains: Mapping[str, str]) -> Callable[..., Any]:
    """Return a function of any arrays that calls `fn` with members of their domains.

    The derivative of `fn` along a domain, and that of `fn` after the map onto the domain, are the
    same.
    """
    maps = {name: DOMAINS[word].project for name, word in domains.items()}
    if not any(maps.values()) or parameters_of(fn) is None:
        return fn
    signature = inspect.signature(fn)

    @functools.wraps(fn, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        for name, value in call.arguments.items():
            project = maps.get(name)
            call.arguments[name] = value if project is None else project(value)
        return fn(*call.args, **call.kwargs)

    called.__name__ = name_of(fn)
    return called


def read_by_half(subject: Subject) -> dict[str, str]:
    """Return the words for the symmetric matrices that forward reads as such, by name.

    Of these it reads one triangle alone, or refuses others. The gradient is right if it is along
    symmetric matrices: over which elements it is spread is a convention.
    """
    words = {}
    for i, (name, array) in enumerate(zip(subject.names, subject.arrays, strict=True)):
        word = recognised(array)
        for half in (np.tril, np.triu) if word in ("spd", "symmetric") else ():
            by = _NOT_SYMMETRIC * np.abs(array).max() * half(1.0 - np.eye(array.shape[-1]))
            moved = [a + by.astype(a.dtype) if k == i else a for k, a in enumerate(subject.arrays)]
            try:
                same = map(np.array_equal, subject.values(moved), subject.values(subject.arrays))
                alone = all(same)
            except ForwardError:
                alone = True
            if alone:
                words[name] = word
    return words
