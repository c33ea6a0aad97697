"""The numbers of a container, in order, as one vector of float64, and back.

Owns the dtypes: SciPy computes in float64, and results go back in those of the container.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pullback.arrays import DTYPES, is_array, library_of
from pullback.core.custom.pytree import children, leaves, map_leaves, named_leaves, path_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    compose,
    nearest,
    warn_user,
)
from pullback.transforms.api.arguments import Arguments
from pullback.transforms.wrapped import numpy_scalar

__all__ = ["Array", "Vector", "flat"]

Array = np.ndarray[Any, np.dtype[np.float64]]
_FLOAT64 = DTYPES["float64"]
_OF_EACH_NUMBER = ("x", "jac", "grad", "lagrangian_grad")


class Vector:
    """The form of a container: how its numbers lie in a vector.

    Parameters
    ----------
    api : str
        What the user called, which errors name.
    name : str
        Of the argument that the container is.
    container : any
        Tensors, arrays and numbers in containers; integers and None keep their place and are not
        part of the vector.

    Attributes
    ----------
    size : int
        How many numbers it has.
    start : array
        The numbers of the container.
    """

    def __init__(self, api: str, name: str, container: Any) -> None:
        self._api, self._given, self.name = api, container, name
        self._sources = Arguments(api, _no_function, name, (), {name: container}).sources()
        self._leaves = list(leaves(container))
        for (path, leaf), source in zip(self.named(), self._sources, strict=True):
            if source is not None and source.is_complex():
                required = f"real numbers required in {path}"
                hint = "take the real and the imaginary part as two arguments"
                raise DTypeError(compose(api, required, source.dtype.name, (path, leaf), hint=hint))
        self.start = flat(s for s in self._sources if s is not None)
        self.size = self.start.size
        if not self.size:
            raise ArgumentTypeError(compose(api, f"numbers required in {name}", "none"))
        _warn_of_integers(api, name, container)

    def named(self) -> Iterator[tuple[str, Any]]:
        """Yield each leaf of the container with its path."""
        return named_leaves(self.name, self._given)

    def shapes(self) -> list[tuple[int, ...] | None]:
        """Return the shape of each leaf; None for one that has no place in the vector."""
        return [None if s is None else tuple(s.shape) for s in self._sources]

    def container(self, vector: Array) -> Any:
        """Return the container with other numbers, in float64."""
        return self._filled(vector, exact=True)

    def as_given(self, vector: Array) -> Any:
        """Return the container with other numbers, in its dtypes."""
        return self._filled(vector, exact=False)

    def matched(self, what: str, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Yield for each leaf its path in `value`, which has the container's form, and its item.

        None stands for itself in each place, and for items that a dict leaves out.
        """
        return _matched(self._api, what, name, value, self._given)

    def result(self, solution: Any) -> Any:
        """Return SciPy's result with what it has for each number in the form of the container."""
        solution = type(solution)(solution)  # SciPy may go on with its own
        for key in _OF_EACH_NUMBER:
            value = solution.get(key)
            if isinstance(value, np.ndarray) and value.shape == (self.size,):
                solution[key] = self.as_given(value)
        return solution

    def _filled(self, vector: Array, exact: bool) -> Any:
        pieces = iter(np.split(vector, self._ends()))
        sources = iter(self._sources)

        def filled(leaf: Any) -> Any:
            source = next(sources)
            return leaf if source is None else _as(leaf, source, next(pieces), exact)

        return map_leaves(filled, self._given)

    def _ends(self) -> list[int]:
        sizes = [s.numel() for s in self._sources if s is not None]
        return list(itertools.accumulate(sizes))[:-1]


def flat(tensors: Iterable[Tensor]) -> Array:
    """Return the values of tensors, one after the other."""
    arrays = [t.data_array() for t in tensors]
    hosts = [np.ravel(library_of(a).to_numpy(a)).astype(np.float64) for a in arrays]
    return np.concatenate(hosts) if hosts else np.zeros(0)


def _as(leaf: Any, source: Tensor, piece: Array, exact: bool) -> Any:
    """Return numbers as what a leaf is, in float64 if `exact`."""
    numbers = piece.reshape(tuple(source.shape))
    if isinstance(leaf, Tensor) or is_array(leaf):
        like = source.data_array()
        dtype = _FLOAT64 if exact else source.dtype
        array = library_of(like).asarray(numbers, dtype, like.device, True)
        return box(array, None, None, leaf.__class__) if isinstance(leaf, Tensor) else array
    if isinstance(leaf, numpy_scalar):
        return numbers[()] if exact else type(leaf)(numbers)
    return float(numbers)


def _matched(api: str, what: str, name: str, value: Any, like: Any) -> Iterator[tuple[str, Any]]:
    wanted = children(like)
    if wanted is None:
        yield name, value
        return
    if value is None:
        yield from ((path, None) for path, _ in named_leaves(name, like))
        return
    keys, came = [key for key, _ in wanted], children(value)
    listed = ", ".join(map(str, keys)) or "nothing"
    if came is None or not (isinstance(value, dict) or [key for key, _ in came] == keys):
        required = f"{what} in a {type(like).__name__} of {listed} required as {name}"
        got = type(value).__name__ if came is None else f"a {type(value).__name__} of {len(came)}"
        raise ArgumentError(compose(api, required, got))
    for key, _ in came:
        if key not in keys:
            near = nearest(key, keys)
            hint = f"did you mean {near!r}?" if near else None
            required = f"{what} for {listed} required in {name}"
            raise ArgumentError(compose(api, required, repr(key), hint=hint))
    items = dict(came)
    for key, item in wanted:
        yield from _matched(api, what, path_of(name, like, key), items.get(key), item)


def _warn_of_integers(api: str, name: str, value: Any) -> None:
    """Warn of integers beside floats in a list, which would stay as they are: rarely meant."""
    items = children(value) or []
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        fixed = [key for key, item in items if _is_integer(item)]
        if fixed and any(isinstance(item, (float, np.floating)) for _, item in items):
            warn_user(
                f"{api}: {name}[{fixed[0]}] is the integer {value[fixed[0]]}, which stays as it "
                f"is.\nhint: write {float(value[fixed[0]])} to let it change, or give it in args."
            )
    for key, item in items:
        _warn_of_integers(api, f"{name}[{key!r}]", item)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _no_function(**_: Any) -> None:
    """Stand for a function where arguments alone are read."""
