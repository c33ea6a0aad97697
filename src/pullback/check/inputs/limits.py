"""Calls whose values lie close to where forward begins to refuse them.

A rule for the first and last cells of a grid, or for a point outside of it, shows nowhere else.
Must not know how a call is checked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Inputs, keeps_bounds, try_forward
from pullback.check.inputs.changes import is_free
from pullback.check.inputs.crossing import with_array
from pullback.check.naming import labels_of
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree

_MOST = 3  # arrays
_FAR = 4.0  # times the spread of the values
_HALVINGS = 6


def limits(fn: Callable[..., Any], inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield what is different, and the call.

    Parameters
    ----------
    fn : callable
    inputs : Inputs
        A call that forward takes.
    """
    labels = labels_of(fn, inputs.args, inputs.kwargs)
    leaves = tree.leaves((inputs.args, inputs.kwargs))
    arrays = [(i, host(v)) for i, v in enumerate(leaves) if holds_numbers(v) and host(v).size]
    for i, array in [(i, array) for i, array in arrays if is_free(array)][:_MOST]:
        spread = float(np.ptp(array)) or float(np.abs(array).max()) or 1.0
        for sign, word in ((1.0, "up"), (-1.0, "down")):
            far = _farthest(functools.partial(_takes, fn, inputs, i, array, sign * spread))
            other = array + far * sign * spread
            if far and keeps_bounds(inputs, labels[i], array, other):
                what = f"values of `{labels[i]}` as far {word} as forward takes them"
                yield what, with_array(inputs, i, other)


def _farthest(takes: Callable[[float], bool]) -> float:
    """Return the largest step that is taken; 0 if there is no limit nearby."""
    if takes(_FAR):
        return 0.0
    low, high = 0.0, _FAR
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if takes(middle) else (low, middle)
    return low


def _takes(
    fn: Callable[..., Any], inputs: Inputs, i: int, array: Array, step: float, by: float
) -> bool:
    call = with_array(inputs, i, array + by * step)
    return not isinstance(try_forward(fn, call), str)
