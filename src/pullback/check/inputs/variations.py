"""Calls that differ from the user's in what often changes what an operation does.

Other settings in place of defaults, whole numbers and larger values in place of the values, masks
that hide something, indices that repeat. A variation counts only if forward takes it, and changes
its result. Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Inputs, try_forward
from pullback.check.inputs.domains import recognised
from pullback.check.inputs.drawing import LARGE
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import Tensor, box

Variation = tuple[str, Inputs]

# Settings of an iteration, or of its accuracy: another value makes the result less exact.
_OF_ACCURACY = re.compile(r".*(tol|eps|iter|steps?|max|min|num|seed|damp|lr|rate|order)\w*|n_\w+|n")
_AXIS = re.compile(r"(axis|axes|dim|dims)\w*")
_CHOICES = {"reduction": ("mean", "sum", "none"), "norm": ("backward", "ortho", "forward")}


def variations(
    fn: Callable[..., Any], parameters: Sequence[inspect.Parameter] | None, inputs: Inputs
) -> Iterator[Variation]:
    """Yield the variations of a call that forward takes, each with what is different.

    Parameters
    ----------
    fn : callable
    parameters : sequence of inspect.Parameter, optional
        Those of `fn`, if it has a signature.
    inputs : Inputs
        The call.
    """
    base = try_forward(fn, inputs)
    if isinstance(base, str):
        return
    for what, other in (*_settings(parameters or (), inputs), *_values(inputs)):
        found = try_forward(fn, other)
        if not isinstance(found, str) and not _equal(found, base):
            yield what, other


def _equal(a: Sequence[Array], b: Sequence[Array]) -> bool:
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in pairs)


# -- settings --------------------------------------------------------------------------------------
def _settings(parameters: Sequence[inspect.Parameter], inputs: Inputs) -> Iterator[Variation]:
    """Yield calls with another value for each argument that keeps its default."""
    for i, p in enumerate(parameters):
        passed = p.name in inputs.kwargs or i < len(inputs.args)
        if passed or p.kind is p.POSITIONAL_ONLY or p.default is p.empty:
            continue
        for value in _others(p.name, p.default):
            what = f"`{p.name}` = {value!r} in place of {p.default!r}"
            yield what, inputs._replace(kwargs={**inputs.kwargs, p.name: value})


def _others(name: str, default: Any) -> tuple[Any, ...]:
    """Return other values of a setting."""
    if isinstance(default, bool):
        return (not default,)
    if isinstance(default, str):
        return tuple(v for v in _CHOICES.get(name, ()) if v != default)
    if isinstance(default, int) and _AXIS.fullmatch(name):
        return tuple(axis for axis in (0, 1, -1, -2) if axis != default)
    if isinstance(default, (int, float)) and _OF_ACCURACY.fullmatch(name):
        return ()
    if isinstance(default, int):
        return (default + 1, -1) if re.search("shift|offset|diagonal|lag", name) else (default + 1,)
    if isinstance(default, float) and np.isfinite(default):
        if 0 <= default <= 1:
            return (0.35 if abs(default - 0.35) > 0.1 else 0.6,)
        return (1.5 * default,)
    return ()


# -- values ----------------------------------------------------------------------------------------
def _values(inputs: Inputs) -> Iterator[Variation]:
    """Yield calls with other values of the arrays."""
    zeros = itertools.chain([True], itertools.repeat(False))  # 0 / 0 is not the operation's mistake
    for what, change in (
        ("whole numbers in place of the values", lambda a: _whole(a, zeros)),
        ("larger values", _larger),
        ("masks that are not all true", _hiding),
        ("indices that repeat", _repeating),
    ):
        changed = functools.partial(_changed, change)
        args, kwargs = tree.map_leaves(changed, (inputs.args, inputs.kwargs))
        profile = LARGE if change is _larger else inputs.profile
        yield what, inputs._replace(args=args, kwargs=kwargs, profile=profile)


def _changed(change: Callable[[Array], Array], value: Any) -> Any:
    """Return an array or tensor with other values, anything else as it is."""
    if not holds_numbers(value) or not host(value).size:
        return value
    array = host(value)
    other = np.asarray(change(array)).astype(array.dtype)
    if np.array_equal(other, array):
        return value
    tensor = box(other)
    asked = isinstance(value, Tensor) and value.requires_grad
    return tensor.requires_grad_() if asked else tensor if isinstance(value, Tensor) else other


def _is_free(array: Array) -> bool:
    """Return whether real values can be changed one by one: they have no structure."""
    return array.dtype.kind == "f" and bool(np.isfinite(array).all()) and not recognised(array)


def _whole(array: Array, zeros: Iterator[bool]) -> Array:
    """Round an array; only the first may become 0 somewhere, if it has both signs."""
    if not _is_free(array):
        return array
    rounded = np.round(1.5 * array)
    away = np.where(array < 0, np.minimum(rounded, -1.0), np.maximum(rounded, 1.0))
    both = bool((array > 0).any() and (array < 0).any())
    return rounded if next(zeros) and both else away


def _larger(array: Array) -> Array:
    # Values between 0 and 1 may be probabilities or weights.
    inside = bool(((array >= 0) & (array <= 1)).all()) if array.dtype.kind == "f" else True
    return array if inside or not _is_free(array) else 4.0 * array


def _hiding(array: Array) -> Array:
    if array.dtype.kind != "b" or not array.all():
        return array
    other = array.copy()
    other.flat[1::3] = False
    return other


def _repeating(array: Array) -> Array:
    if array.dtype.kind not in "iu" or array.size < 2 or array.ndim != 1:
        return array
    if np.array_equal(np.sort(array), np.arange(array.size)):  # a permutation
        return array
    other = array.copy()
    other[1] = other[0]
    return other
