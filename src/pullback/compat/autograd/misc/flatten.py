"""Containers of arrays as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compat.autograd.vspaces import VSpace

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers in nested lists, tuples and dicts as a vector, and the way back.

    The vector has the items of a dict sorted by key; what comes back has them in their order.

    Examples
    --------
    >>> vector, unflatten = flatten({"b": np.ones(2), "a": 3.0})
    >>> vector, unflatten(vector * 2)
    (array([3., 1., 1.]), {'b': array([2., 2.]), 'a': np.float64(6.0)})
    """
    space = VSpace(value)
    shapes = [(np.shape(leaf), np.size(leaf), np.iscomplexobj(leaf)) for leaf in space.leaves]
    is_complex = space.iscomplex

    def unflatten(vector: Any) -> Any:
        parts, start = [], 0
        for shape, size, keeps_imaginary in shapes:
            part = vector[start] if shape == () else vector[start : start + size].reshape(shape)
            parts.append(np.real(part) if is_complex and not keeps_imaginary else part)
            start += size
        return space.with_leaves(parts)

    rows = [np.ravel(leaf) for leaf in space.leaves_of(value)]
    return np.concatenate(rows) if rows else np.array([]), unflatten


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Any, Any, Any]:
    """Return `func` of vectors for containers, the way back, and `example` as a vector.

    Examples
    --------
    >>> of_vector, unflatten, vector = flatten_func(lambda pair: [2 * pair[0]], (1.0, 2.0))
    >>> vector, of_vector(vector)
    (array([1., 2.]), array([2.]))
    """
    vector, unflatten = flatten(example)
    return (lambda x, *args: flatten(func(unflatten(x), *args))[0]), unflatten, vector
