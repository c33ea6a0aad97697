"""Vector spaces: the values of one structure, shapes and field, real or complex."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.compat.autograd.boxes import conjugate, getval
from pullback.core.custom.pytree import flatten, leaves, unflatten

__all__ = ["VSpace", "vspace"]


def _sorted(value: Any) -> Any:
    """Return a value with its dicts in the order of their keys."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return type(value)(map(_sorted, value)) if type(value) in (list, tuple) else value


class VSpace:
    """The space that `value` is a vector of; equal to that of other such values.

    Examples
    --------
    >>> space = VSpace([1.0, np.ones(2)])
    >>> space.zeros(), space.size
    ([np.float64(0.0), array([0., 0.])], 3)
    """

    def __init__(self, value: Any) -> None:
        found, self._structure = flatten(value)
        # A vector has the leaves sorted by key; a container keeps its own order.
        self._order = self.leaves_of(unflatten(self._structure, range(len(found))))
        self.leaves = [getval(found[i]) for i in self._order]

    @property
    def size(self) -> int:
        """The number of real dimensions."""
        return sum(np.size(x) * (2 if np.iscomplexobj(x) else 1) for x in self.leaves)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array."""
        return np.shape(self.leaves[0])

    @property
    def dtype(self) -> Any:
        """The dtype of an array."""
        return np.asarray(self.leaves[0]).dtype

    @property
    def iscomplex(self) -> bool:
        """Whether there are complex numbers."""
        return any(map(np.iscomplexobj, self.leaves))

    def add(self, x: Any, y: Any) -> Any:
        """Return the sum of two vectors."""
        return self._map(lambda a, b: a + b, x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """Return a vector times a number."""
        return self._map(lambda leaf: leaf * a, x)

    def covector(self, x: Any) -> Any:
        """Return the complex conjugate of a vector."""
        return self._map(conjugate, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Return the real part of the inner product of two vectors."""
        pairs = zip(self.leaves_of(x), self.leaves_of(y), strict=True)
        return sum(np.sum(np.real(np.conj(a) * b)) for a, b in pairs)

    def zeros(self) -> Any:
        """Return the zero vector."""
        return self._filled(np.zeros)

    def ones(self) -> Any:
        """Return the vector of ones, of 1 + 1j where complex."""
        return self._filled(np.ones)

    def randn(self) -> Any:
        """Return a vector of normal random numbers."""
        return self._filled(lambda shape: np.array(np.random.standard_normal(shape)))

    def standard_basis(self) -> Iterator[Any]:
        """Yield the vectors with a single 1, or 1j where complex."""
        for k, leaf in enumerate(self.leaves):
            for index in np.ndindex(np.shape(leaf)):
                for one in (1.0, 1j) if np.iscomplexobj(leaf) else (1.0,):
                    arrays = [np.zeros_like(np.asarray(part)) for part in self.leaves]
                    arrays[k][index] = one
                    yield self.with_leaves(arrays)

    @staticmethod
    def leaves_of(value: Any) -> list[Any]:
        """Return the numbers and arrays in a vector, dicts in the order of their keys."""
        return [*leaves(_sorted(value))]

    def with_leaves(self, values: Sequence[Any]) -> Any:
        """Return the vector of these numbers and arrays, dicts in the order of the space's."""
        items = dict(zip(self._order, values, strict=True))
        return unflatten(self._structure, [items[i] for i in range(len(items))])

    def _map(self, f: Callable[..., Any], *values: Any) -> Any:
        columns = zip(*map(self.leaves_of, values), strict=True)
        return self.with_leaves([f(*column) for column in columns])

    def _filled(self, fill: Callable[[tuple[int, ...]], Any]) -> Any:
        def filled(leaf: Any) -> Any:
            array = fill(np.shape(leaf)).astype(np.real(leaf).dtype, copy=False)
            return (array + 1j * fill(np.shape(leaf)) if np.iscomplexobj(leaf) else array)[()]

        return self.with_leaves([filled(np.asarray(leaf)) for leaf in self.leaves])

    def _described(self) -> Any:
        fields = [(np.shape(leaf), np.iscomplexobj(leaf)) for leaf in self.leaves]
        return self.with_leaves(fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VSpace) and self._described() == other._described()

    def __hash__(self) -> int:
        return hash(f"{_sorted(self._described())}")

    def __repr__(self) -> str:
        return f"VSpace({self._described()})"


def vspace(value: Any) -> VSpace:
    """Return the vector space of a value: numbers, arrays, containers of them.

    Examples
    --------
    >>> vspace(np.ones((2, 3))).shape
    (2, 3)
    """
    space = VSpace(value)
    if any(np.asarray(leaf).dtype.kind not in "biufc" for leaf in space.leaves):
        raise TypeError(f"Can't find vector space for value {value} of type {type(value)}")
    return space
