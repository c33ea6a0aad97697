"""What ufuncs have beside a call, on tensors: ``reduce``, ``accumulate``, ``at``, ``where=``.

Each takes the counterpart of the ufunc, and calls it as NumPy calls the ufunc's inner loop.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.numpy_protocol.arguments import as_tensor, beside, operand, position, values_of, xp
from pullback.ops.axes import normalize_axes, normalize_axis

# Running results that have an operation of their own, which is one node for the whole array.
_RUNNING: dict[str, Callable[..., Any]] = {
    "maximum": lambda x, axis: xp.cummax(x, axis).values,
    "minimum": lambda x, axis: xp.cummin(x, axis).values,
    "logaddexp": lambda x, axis: xp.logcumsumexp(x, axis),
}


def chosen(call: Any, inputs: list[Any], where: Any, target: Any) -> Any:
    """Call on the elements where a mask holds, written to `target`; 0 elsewhere if there is none.

    No other element is computed with, so that none can spoil a gradient.
    """
    arrays = [as_tensor(x) for x in inputs]
    mask = np.asarray(values_of(where), bool)
    shape = np.broadcast_shapes(mask.shape, *(x.shape for x in arrays))
    mask = np.broadcast_to(mask, shape if target is None else target.shape)
    result = call(*(xp.broadcast_to(x, mask.shape)[mask] for x in arrays))
    if target is None:
        target = xp.astype(beside(np.zeros(mask.shape), result), result.dtype)
    target[mask] = result
    return target


def reduced(
    ufunc: np.ufunc,
    call: Any,
    array: Any,
    axis: Any = 0,
    keepdims: bool = False,
    initial: Any = None,
) -> Any:
    """Return what ``ufunc.reduce`` does: the call on a result so far and the next element."""
    x = as_tensor(array)
    axes = normalize_axes(f"np.{ufunc.__name__}.reduce", axis, x.ndim)
    rows = xp.moveaxis(x, axes, tuple(range(len(axes))))
    rest = rows.shape[len(axes) :]
    parts = list(xp.unstack(xp.reshape(rows, (-1, *rest)))) if 0 not in x.shape else []
    if not parts:
        initial = ufunc.identity if initial is None else initial
        if initial is None:
            required = "elements, or initial=, required, since it has no identity"
            raise ArgumentError(compose(f"np.{ufunc.__name__}.reduce", required, "none", ("x", x)))
        result = xp.astype(beside(np.full(rest, initial), x), x.dtype)
    else:
        parts = parts if initial is None else [operand(initial), *parts]
        result = functools.reduce(call, parts)
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return xp.reshape(result, shape) if keepdims else result


def accumulated(ufunc: np.ufunc, call: Any, array: Any, axis: int = 0) -> Any:
    """Return what ``ufunc.accumulate`` does: all results on the way of ``reduce``."""
    x = as_tensor(array)
    along = normalize_axis(f"np.{ufunc.__name__}.accumulate", axis, x.ndim)
    if ufunc.__name__ in _RUNNING:
        return _RUNNING[ufunc.__name__](x, along)
    return xp.stack(list(itertools.accumulate(xp.unstack(x, axis=along), call)), axis=along)


def reduced_at(reduce: Any, array: Any, indices: Any, axis: int = 0) -> Any:
    """Return what ``ufunc.reduceat`` does: ``reduce`` between each index and the next."""
    x = as_tensor(array)
    along = normalize_axis("np.ufunc.reduceat", axis, x.ndim)
    starts = np.asarray(values_of(indices)).tolist()
    ends = [*starts[1:], x.shape[along]]
    parts = (slice(i, max(j, i + 1)) for i, j in zip(starts, ends, strict=True))
    return xp.stack([reduce(x[position(along, part)], axis=along) for part in parts], axis=along)


def written_at(ufunc: np.ufunc, call: Any, target: Tensor, indices: Any, *values: Any) -> None:
    """Do what ``ufunc.at`` does, recorded: call on each element, as often as its index is there."""
    index = values_of(indices)
    places = np.arange(target.numel()).reshape(target.shape)[index]
    operands = [xp.broadcast_to(as_tensor(v, target), places.shape) for v in values]
    operands = [xp.reshape(v, (-1,)) for v in operands]
    places = places.ravel()
    if ufunc is np.add or ufunc is np.subtract:
        added = operands[0] if ufunc is np.add else -operands[0]
        target.index_put_(np.unravel_index(places, target.shape), added, accumulate=True)
        return
    order = np.argsort(places, kind="stable")
    new = np.flatnonzero(np.diff(places[order], prepend=-1))
    turn = np.empty_like(order)  # how often the index of each was there before
    turn[order] = np.arange(len(order)) - np.repeat(new, np.diff(new, append=len(order)))
    for i in range(turn.max(initial=-1) + 1):
        now = np.flatnonzero(turn == i)
        at = np.unravel_index(places[now], target.shape)
        target[at] = call(target[at], *(v[now] for v in operands))


STEPWISE: dict[str, Callable[..., Any]] = {
    "reduce": reduced,
    "accumulate": accumulated,
    "at": written_at,
}
