"""Bounds, in SciPy's forms or in the form of the container, as SciPy's `Bounds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.arrays import is_array, library_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.optimize.vector import Vector

__all__ = ["bounds_of"]


def bounds_of(
    api: str, bounds: Any, vector: Vector, scipy: Any, *, low_and_high: bool = False
) -> Any:
    """Return bounds as SciPy's `Bounds`.

    Parameters
    ----------
    api : str
    given : any
        `Bounds`; or a pair (low, high) for each number of the vector; or the container with a pair
        in each place, for all the numbers there. None, or an item of a dict that is left out, is no
        bound. Where two forms fit, it is SciPy's.
    vector : Vector
        What is bounded.
    scipy : module
        ``scipy.optimize``.
    low_and_high : bool
        Whether SciPy's form is not that of pairs but (low, high) for the whole vector.
    """
    if isinstance(bounds, scipy.Bounds):
        _limits(api, "bounds", (bounds.lb, bounds.ub), (vector.size,))
        return bounds
    if low_and_high and _is_for_all(bounds, vector.size):
        return scipy.Bounds(*_limits(api, "bounds", bounds, (vector.size,)))
    if not low_and_high and _are_pairs(bounds):
        if len(bounds) == vector.size:
            low, high = zip(*(_limits(api, "bounds", pair, ()) for pair in bounds), strict=True)
            return scipy.Bounds(np.array(low), np.array(high))
        _check_number(api, bounds, vector)
    lows: list[Any] = []
    highs: list[Any] = []
    items = vector.matched("pairs (low, high)", "bounds", bounds)
    for (path, item), shape in zip(items, vector.shapes(), strict=True):
        if shape is None:
            if item is not None:
                raise ArgumentError(
                    compose(api, f"None required in {path}, which stays", str(item))
                )
            continue
        limits = _limits(api, path, _pair(api, path, item), shape)
        lows.append(limits[0].ravel())
        highs.append(limits[1].ravel())
    return scipy.Bounds(np.concatenate(lows), np.concatenate(highs))


def _is_for_all(bounds: Any, size: int) -> bool:
    return (
        isinstance(bounds, (list, tuple))
        and len(bounds) == 2
        and all(
            not isinstance(limit, dict) and np.shape(limit) in ((), (size,)) for limit in bounds
        )
    )


def _are_pairs(bounds: Any) -> bool:
    return isinstance(bounds, (list, tuple, np.ndarray)) and all(
        isinstance(pair, (list, tuple, np.ndarray))
        and len(pair) == 2
        and all(np.ndim(limit) == 0 for limit in pair)
        for pair in bounds
    )


def _check_number(api: str, bounds: Any, vector: Vector) -> None:
    """Raise if there is another number of pairs than of numbers in an array.

    Two pairs may be the limits of an array whose rows are of two numbers.
    """
    is_array_of_rows = len(bounds) == 2 and (vector.shapes()[0] or ())[-1:] == (2,)
    if next(vector.named())[0] == vector.name and not is_array_of_rows:
        required = f"{vector.size} pairs (low, high) required in bounds, one for each number of x0"
        raise ArgumentError(compose(api, required, str(len(bounds))))


def _pair(api: str, path: str, pair: Any) -> tuple[Any, Any]:
    if pair is None:
        return None, None
    if not isinstance(pair, (list, tuple, np.ndarray)) or len(pair) != 2:
        required = f"a pair (low, high) required in {path}"
        hint = "None is no bound, (0.0, None) is for positive numbers; a list has a pair for each"
        raise ArgumentError(compose(api, required, repr(pair), hint=hint))
    return pair[0], pair[1]


def _limits(api: str, path: str, pair: tuple[Any, Any], shape: tuple[int, ...]) -> Any:
    """Return both limits in a shape."""
    result = []
    for limit, none in zip(pair, (-np.inf, np.inf), strict=True):
        array = limit.data_array() if isinstance(limit, Tensor) else limit
        host = library_of(array).to_numpy(array) if is_array(array) else array
        try:
            numbers = np.asarray(none if host is None else host, dtype=np.float64)
            result.append(np.broadcast_to(numbers, shape))
        except (TypeError, ValueError):
            required = f"numbers of the shape {shape}, or that broadcast to it, required in {path}"
            raise ShapeError(compose(api, required, repr(limit))) from None
    return result
