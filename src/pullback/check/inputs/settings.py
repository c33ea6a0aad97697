"""Other values of the settings of a call: what is passed to an operation beside its arrays.

A rule is often written for the default, and wrong for another axis, mode, order or number. Which
other values a setting may have follows from its type, the hint, and the words that forward has in
its code; which of them are usable, by trial. Must not know how a call is checked.
"""

from __future__ import annotations

import ast
import enum
import inspect
import itertools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from pullback.check.inputs.arguments import (
    NO_RESULT,
    NOT_FINITE,
    Change,
    Inputs,
    results_of,
    taken,
)
from pullback.check.repair.source import definition_of
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import box

_SMALL = 1e-2
_ORDERS = 6  # of the axes


def other_settings(fn: Callable[..., Any], inputs: Inputs) -> Iterator[Change]:
    """Yield the changes of one setting of a call that forward takes."""
    try:
        call = inspect.signature(fn).bind(*inputs.args, **inputs.kwargs)
    except (TypeError, ValueError):  # it has no signature
        return
    try:
        hints = typing.get_type_hints(getattr(fn, "forward", fn))
    except Exception:  # a name that is not defined where the hint is read
        hints = {}
    for name, p in call.signature.parameters.items():
        value = call.arguments.get(name, p.default)
        several = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if several or value is p.empty or name in inputs.bounded:
            continue
        words = _literals(hints.get(name)) or _words(fn)
        others: Iterable[Any] = [None] if p.default is None else []
        if value is None:
            others = _in_place_of_none(fn, name, inputs, words) if others else ()
        elif not holds_numbers(value):
            others = [*others, *_others(fn, name, value, inputs, words)]
        seen = [value]
        for other in others:
            new = not any(type(v) is type(other) and v == other for v in seen)
            change = partial(_put, fn, name, other)
            seen.append(other)
            found = taken(fn, change(inputs)) if new else NO_RESULT
            if isinstance(found, str) and found != NOT_FINITE:  # it may be at other values
                continue
            gone = "given" if value is None else "left out" if holds_numbers(value) else ""
            what = f"`{name}` " + (gone or f"= {other!r} in place of {value!r}")
            yield Change(what, name, change)
            if found != NOT_FINITE and (value is None or type(value) is float):
                break  # one of them is enough


def _put(fn: Callable[..., Any], name: str, value: Any, inputs: Inputs) -> Inputs:
    """Return a call with another value of an argument."""
    call = inspect.signature(fn).bind(*inputs.args, **inputs.kwargs)
    call.arguments[name] = value
    return inputs._replace(args=call.args, kwargs=call.kwargs)


# -- by type ---------------------------------------------------------------------------------------
def _same(found: Sequence[Array], other: Sequence[Array]) -> bool:
    return len(found) == len(other) and all(map(np.array_equal, found, other))


def _others(
    fn: Callable[..., Any], name: str, value: Any, inputs: Inputs, words: Sequence[Any]
) -> Iterable[Any]:
    """Return other values of a setting."""
    rank = max((a.ndim for a in _arrays(inputs)), default=1)
    if isinstance(value, enum.Enum):
        return type(value)
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        letters = [value[::-1], value[:-1]] if len(set(value)) > 1 else []  # one by one
        other = [w for w in words if w != value] or ["other"]  # all others mean the other way
        return [*other, *letters]
    if isinstance(value, int):
        other_end = value - rank if value >= 0 else value + rank
        if -rank <= value < rank and _same(
            results_of(fn, inputs), results_of(fn, _put(fn, name, other_end, inputs))
        ):  # it is an axis
            return [other_end, *range(rank), *range(-rank, 0)]
        runs = [results_of(fn, _put(fn, name, n, inputs)) for n in (value, 0, -value)]
        shapes = {tuple(a.shape for a in run) for run in runs}
        signed = (-value,) * (len(shapes) == 1 and not _same(*runs[1:]))  # no length, step or count
        fewer = (3, -1) if value == 0 else (value - 1,) * (value > 1) + signed
        return [n for n in (value + 1, *fewer) if not _stands_apart(value, n, inputs)]
    if isinstance(value, float) and np.isfinite(value):
        return _floats(value)
    if isinstance(value, (tuple, list)):
        return map(type(value), _sequences(list(value), rank))
    return ()


def _arrays(inputs: Inputs) -> list[Array]:
    return [host(v) for v in (*inputs.args, *inputs.kwargs.values()) if holds_numbers(v)]


def _stands_apart(value: int, other: int, inputs: Inputs) -> bool:
    """Return whether a number is none of the indices of a call, and another one would be."""
    lists = [np.array(v) for v in inputs.args if isinstance(v, list) and {*map(type, v)} == {int}]
    whole = [a.ravel() for a in (*_arrays(inputs), *lists) if a.dtype.kind in "iu"]
    indices = {int(n) for n in np.concatenate(whole)} if whole else set()
    return bool(indices) and value not in indices and (other in indices or other < 0)


def _floats(value: float) -> tuple[float, ...]:
    if 0 < abs(value) <= _SMALL:  # what keeps from dividing by 0 stays small
        return 3 * value, 0.3 * value
    if 0 <= value <= 1:
        return 0.35 if abs(value - 0.35) > 0.1 else 0.6, 0.85 * value, 1.2 * value
    return 1.5 * value, 0.85 * value


def _sequences(values: list[Any], rank: int) -> Iterator[list[Any]]:
    kinds = {*map(type, values)}
    if not kinds:
        yield from ([0], [1], [0, 1])
    elif kinds == {int}:
        if any(v >= k for k, v in enumerate(values)):  # else each comes after what it names
            yield from map(list, itertools.islice(itertools.permutations(values), 1, _ORDERS))
            yield [v + 1 for v in values]
        if all(-rank <= v < rank for v in values):  # axes
            yield [v - rank if v >= 0 else v + rank for v in values]
    elif kinds and kinds <= {int, float}:
        other = [v * (1.5, 0.8, 1.2)[k % 3] for k, v in enumerate(values)]
        yield sorted(other) if sorted(values) == values and len(values) > 2 else other


def _literals(hint: Any) -> list[Any]:
    """Return the values that a hint lists, alone or in a union."""
    listed = [h for h in (hint, *typing.get_args(hint)) if typing.get_origin(h) is Literal]
    return [value for each in listed for value in typing.get_args(each)]


def _words(fn: Callable[..., Any]) -> list[str]:
    """Return the words in forward's code, in the helpers of its file, and in tables it uses."""
    forward = getattr(fn, "forward", fn)
    if not isinstance(forward, types.FunctionType):
        return []
    used, found = inspect.getclosurevars(forward), dict[str, None]()
    for value in (forward, *used.nonlocals.values(), *used.globals.values()):
        texts = value if isinstance(value, (dict, set, frozenset, tuple, list)) else ()
        code = getattr(value, "__code__", None)
        if code and code.co_filename == forward.__code__.co_filename:
            nodes = ast.walk(definition_of(value) or ast.Pass())
            texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        words = [text for text in texts if isinstance(text, str) and len(text) > 1]
        found |= dict.fromkeys(w for w in words if w.replace("-", "_").isidentifier())
    return [*found]


# -- in place of None ------------------------------------------------------------------------------
def _in_place_of_none(
    fn: Callable[..., Any], name: str, inputs: Inputs, words: Sequence[Any]
) -> Iterator[Any]:
    """Yield values of an argument that is left out, the likeliest first.

    An array of which backward has a gradient, words, numbers, masks, then constant arrays; those
    that both passes take and that make a difference: no more shows that they are meant.
    """
    outputs, rng = results_of(fn, inputs), np.random.default_rng(0)
    shapes = [a.shape for a in (*outputs, *_arrays(inputs)) if a.ndim]
    shapes = list(dict.fromkeys(s for full in shapes for s in (full, full[-1:], full[:1])))
    arrays: list[Any] = [rng.uniform(0.5, 1.5, shape) for shape in shapes]
    sides = dict.fromkeys(length for shape in shapes for length in shape if length > 1)
    constants = [*arrays, *(0.4 ** np.abs(np.subtract.outer(range(n), range(n))) for n in sides)]
    if any(getattr(v, "requires_grad", False) for v in tree.leaves((inputs.args, inputs.kwargs))):
        arrays = [box(array).requires_grad_() for array in arrays]
    masks = [np.resize([True, False, True], shape) for shape in shapes]
    longer = sorted({length + 2 for shape in shapes for length in shape}, reverse=True)
    for k, value in enumerate((*arrays, *words, 0.4, 2, 1, 0, -1, *longer, *masks, *constants)):
        found = taken(fn, _put(fn, name, value, inputs))
        if isinstance(found, str) or _same(outputs, found[1].values()):
            continue
        try:
            with np.errstate(all="ignore"):
                grads = found[1].vjp([np.ones_like(out) for out in found[1].values()])
        except Exception:  # of any kind: backward does not take it
            continue
        if k >= len(arrays) or all(g is not None for g in grads):
            yield value
