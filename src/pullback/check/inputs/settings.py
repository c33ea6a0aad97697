"""Other values of the settings of a call: what is passed to an operation beside its arrays.

A rule is often written for the default, and wrong for another axis, mode, order or number. Which
other values a setting may have follows from its type, the hint, and the words that forward has in
its code; whether it is an axis, or one that says how exact forward is, by trial. Must not know how
a call is checked.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from pullback.check.comparison import max_abs
from pullback.check.deadline import deadline
from pullback.check.inputs.arguments import FirstRun, Inputs, first_run
from pullback.check.inputs.domains import recognised
from pullback.check.iterating import ends
from pullback.check.values import Array, holds_numbers, host, in_place_of
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import box

_SMALL = 1e-2
_PATIENCE, _SLOWER = 1.0, 20.0  # in seconds, and as calls take on average
ENDLESS = "it does not end"
_ACCURACY = 1e-2  # results that change less, and not smoothly, change in how exact they are
_EXACT = 30.0  # how many times less exact a derivative may be than its function
_ORDERS = 6  # of the axes
_LONGEST = 15  # a word


class Setting(NamedTuple):
    """A call with another value of one setting.

    Attributes
    ----------
    what : str
        What is different.
    inputs : Inputs
        The call.
    slack : float
        How far off gradients may be, relative to their terms, where the setting says how exact
        forward is.
    """

    what: str
    inputs: Inputs
    slack: float = 0.0


class _Slot(NamedTuple):
    """One argument of a call: its place, its parameter, and its value or default."""

    place: int
    parameter: inspect.Parameter
    value: Any
    hint: Any

    def put(self, inputs: Inputs, value: Any) -> Inputs:
        """Return the call with another value of the argument."""
        if self.place < len(inputs.args):
            args = inputs.args
            return inputs._replace(args=(*args[: self.place], value, *args[self.place + 1 :]))
        return inputs._replace(kwargs={**inputs.kwargs, self.parameter.name: value})


def taken(fn: Callable[..., Any], inputs: Inputs) -> FirstRun | str:
    """Run a call that nobody made; return it, or why it is not usable: it may never end."""
    found: list[FirstRun | str] = []
    seconds = _PATIENCE + _SLOWER * deadline().average()
    over = not ends(lambda: found.append(first_run(fn, inputs)), seconds)
    return ENDLESS if over or not found else found[0]


def _results(fn: Callable[..., Any], inputs: Inputs) -> list[Array] | str:
    found = taken(fn, inputs)
    return found if isinstance(found, str) else found.values


def other_settings(
    fn: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
    inputs: Inputs,
    outputs: Sequence[Array],
) -> Iterator[Setting]:
    """Yield the calls with one other setting that forward takes.

    Parameters
    ----------
    fn : callable
    parameters : sequence of inspect.Parameter
        Those of `fn`.
    inputs : Inputs
        The call.
    outputs : sequence of array
        Its results.
    """
    for slot in _slots(fn, parameters, inputs):
        name, value = slot.parameter.name, slot.value
        if value is None:
            if slot.parameter.default is None:
                yield from _first_taken(fn, f"`{name}` given", _given(fn, slot, inputs, outputs))
        elif holds_numbers(value):
            if slot.parameter.default is None:
                yield from _first_taken(fn, f"`{name}` left out", [slot.put(inputs, None)])
        else:
            yield from _in_place(fn, slot, inputs, outputs)


def _slots(
    fn: Callable[..., Any], parameters: Sequence[inspect.Parameter], inputs: Inputs
) -> Iterator[_Slot]:
    try:
        hints = typing.get_type_hints(getattr(fn, "forward", fn))
    except Exception:  # a name that is not defined where the hint is read
        hints = {}
    for i, p in enumerate(parameters):
        passed = i < len(inputs.args) or p.name in inputs.kwargs
        several = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        if several or p.name in inputs.bounded or not (passed or p.kind is not p.POSITIONAL_ONLY):
            continue
        value = inputs.args[i] if i < len(inputs.args) else inputs.kwargs.get(p.name, p.default)
        if value is not p.empty:
            yield _Slot(i, p, value, hints.get(p.name))


def _first_taken(fn: Callable[..., Any], what: str, calls: Iterator[Inputs] | list[Inputs]) -> Any:
    """Yield the first of several calls that forward takes."""
    taken = (call for call in calls if not isinstance(_results(fn, call), str))
    yield from (Setting(what, call) for call in itertools.islice(taken, 1))


def _in_place(
    fn: Callable[..., Any], slot: _Slot, inputs: Inputs, outputs: Sequence[Array]
) -> Iterator[Setting]:
    """Yield the calls with other values of a setting, of numbers the first that is taken."""
    value, taken = slot.value, False
    is_axis = type(value) is int and _is_axis(fn, slot, inputs, outputs)
    indices = set() if is_axis else _indices(inputs)
    for other in _unlike(value, _others(fn, slot, inputs, is_axis)):
        apart = type(value) is int and indices and value not in indices
        if apart and (other in indices or other < 0):
            continue
        call = slot.put(inputs, other)
        found = _results(fn, call)
        if isinstance(found, str):  # it may take a logarithm
            call = _positive(call)
            found = _results(fn, call)
        if isinstance(found, str):
            continue
        if type(value) is float and (taken or not _moved(outputs, found)):
            continue
        taken = True
        what = f"`{slot.parameter.name}` = {other!r} in place of {value!r}"
        number = type(value) in (int, float) and not is_axis
        yield Setting(what, call, _slack(fn, slot, inputs, outputs, found) if number else 0.0)


def _positive(inputs: Inputs) -> Inputs:
    """Return a call with positive values of its arrays, but of those with a structure."""

    def positive(value: Any) -> Any:
        array = host(value) if holds_numbers(value) else np.empty(0)
        free = array.dtype.kind == "f" and array.size and not recognised(array)
        return in_place_of(value, np.abs(array) + 0.1) if free else value

    args, kwargs = tree.map_leaves(positive, (inputs.args, inputs.kwargs))
    return inputs._replace(args=args, kwargs=kwargs)


def _indices(inputs: Inputs) -> set[int]:
    """Return the whole numbers that occur in the arrays and lists of a call."""
    given = (*inputs.args, *inputs.kwargs.values())
    arrays = [host(v) for v in given if holds_numbers(v)]
    arrays += [np.asarray(v) for v in given if isinstance(v, list) and {*map(type, v)} == {int}]
    return {int(n) for a in arrays if a.dtype.kind in "iu" for n in a.ravel()}


def _unlike(value: Any, others: Iterator[Any]) -> Iterator[Any]:
    """Yield other values, each once."""
    seen = [(type(value), value)]
    for other in others:
        if (type(other), other) not in seen:
            seen.append((type(other), other))
            yield other


# -- by trial --------------------------------------------------------------------------------------
def _rank(inputs: Inputs) -> int:
    arrays = (host(v) for v in (*inputs.args, *inputs.kwargs.values()) if holds_numbers(v))
    return max((array.ndim for array in arrays), default=1)


def _is_axis(fn: Callable[..., Any], slot: _Slot, inputs: Inputs, outputs: Sequence[Array]) -> bool:
    """Return whether a whole number may be counted from the other end as well."""
    rank = _rank(inputs)
    if not -rank <= slot.value < rank:
        return False
    other = slot.value - rank if slot.value >= 0 else slot.value + rank
    return _moved(outputs, _results(fn, slot.put(inputs, other))) == 0.0


def _slack(
    fn: Callable[..., Any],
    slot: _Slot,
    inputs: Inputs,
    outputs: Sequence[Array],
    found: Sequence[Array],
) -> float:
    """Return how far off gradients may be where a setting only says how exact forward is.

    Then results change little with it, and not smoothly, as with a part of the formula.
    """
    by = _moved(outputs, found)
    if not 0 < by < _ACCURACY:
        return 0.0
    if type(slot.value) is float:
        steps = (slot.put(inputs, slot.value * (1 + k / 64)) for k in (1, 2))
        one, two = (_moved(outputs, _results(fn, call)) for call in steps)
        if two > 0 and abs(two - 2 * one) < 0.1 * two:
            return 0.0
    return _EXACT * by


def _moved(outputs: Sequence[Array], found: Sequence[Array] | str) -> float:
    """Return how far results are from others, relative to these; infinite if not comparable."""
    if isinstance(found, str) or [a.shape for a in outputs] != [a.shape for a in found]:
        return float("inf")
    pairs = zip(outputs, found, strict=True)
    return max((max_abs(b - a) / (max_abs(a) or 1.0) for a, b in pairs), default=0.0)


# -- by type ---------------------------------------------------------------------------------------
def _others(fn: Callable[..., Any], slot: _Slot, inputs: Inputs, is_axis: bool) -> Iterator[Any]:
    """Yield other values of a setting."""
    value = slot.value
    if slot.parameter.default is None:
        yield None
    if isinstance(value, enum.Enum):
        yield from type(value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, str):
        words = [w for w in (*_literals(slot.hint), *_words(fn)) if w != value]
        yield from _literals(slot.hint) or words or ["other"]  # all others mean the other way
        yield from (value[::-1], value[:-1]) if len(set(value)) > 1 else ()  # letters, one by one
    elif isinstance(value, int):
        rank = _rank(inputs)
        axes = (value - rank if value >= 0 else value + rank, *range(rank), *range(-rank, 0))
        fewer = (3, -1) if value == 0 else (value - 1,) if value > 1 else (-value,) * (value < 0)
        yield from axes if is_axis else (value + 1, *fewer)  # a step of 0 may never end
    elif isinstance(value, float) and np.isfinite(value):
        yield from _floats(value)
    elif isinstance(value, (tuple, list)):
        yield from map(type(value), _sequences(list(value), _rank(inputs)))


def _floats(value: float) -> Iterator[float]:
    if 0 < abs(value) < _SMALL:  # what keeps from dividing by 0 stays small
        yield from (3 * value, 0.3 * value)
    elif 0 <= value <= 1:
        yield from (0.35 if abs(value - 0.35) > 0.1 else 0.6, 0.85 * value, 1.2 * value)
    else:
        yield from (1.5 * value, 0.85 * value)


def _sequences(values: list[Any], rank: int) -> Iterator[list[Any]]:
    whole = all(type(v) is int for v in values)
    if not values:
        yield from ([1], [0, 1])
    elif whole and sorted(values) == list(range(len(values))) and len(values) > 1:
        orders = itertools.islice(itertools.permutations(values), 1, _ORDERS)
        yield from map(list, orders)
    elif whole:
        if all(-rank <= v < rank for v in values):  # axes
            yield [v - rank if v >= 0 else v + rank for v in values]
        later = any(v >= k for k, v in enumerate(values))  # else each comes after what it names
        yield from (
            ([*values[:-1], values[0]], values[::-1], [v + 1 for v in values]) if later else ()
        )
    elif all(type(v) in (int, float) for v in values):
        other = [v * (1.5, 0.8, 1.2)[k % 3] for k, v in enumerate(values)]
        yield sorted(other) if sorted(values) == values and len(values) > 2 else other


def _literals(hint: Any) -> list[Any]:
    """Return the values that a hint lists."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    options = typing.get_args(hint) if union else (hint,)
    return [v for h in options if typing.get_origin(h) is Literal for v in typing.get_args(h)]


def _words(fn: Callable[..., Any]) -> Iterator[str]:
    """Yield the words in forward's code, in the helpers of its file, and in tables that it uses."""
    forward = getattr(fn, "forward", fn)
    if not isinstance(forward, types.FunctionType):
        return
    yield from _constants(forward.__code__)
    found = inspect.getclosurevars(forward)
    for value in (*found.nonlocals.values(), *found.globals.values()):
        if isinstance(value, types.FunctionType):
            if value.__code__.co_filename == forward.__code__.co_filename:
                yield from _constants(value.__code__)
        elif isinstance(value, (dict, set, frozenset, tuple, list)):
            yield from (word for word in value if isinstance(word, str))


def _constants(code: types.CodeType) -> Iterator[str]:
    """Yield the words in the code of a function and of the functions in it."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _constants(constant)
        for word in constant if isinstance(constant, (tuple, frozenset)) else (constant,):
            named = isinstance(word, str) and word not in code.co_varnames
            if named and 1 < len(word) <= _LONGEST and word.replace("-", "_").isidentifier():
                yield word


# -- in place of None ------------------------------------------------------------------------------
def _given(
    fn: Callable[..., Any], slot: _Slot, inputs: Inputs, outputs: Sequence[Array]
) -> Iterator[Inputs]:
    """Yield the calls in which an argument is given that is left out, the likeliest first.

    An array of which backward has a gradient, then words and numbers, then constant arrays; those
    that both passes take and that make a difference: no more shows that they are meant.
    """
    hint, leaves = str(slot.hint or ""), _with_leaves(inputs)
    arrays = list(_arrays(inputs, outputs))
    lengths = sorted({length for array in arrays for length in array.shape}, reverse=True)
    numbers: tuple[Any, ...] = (0.4, 2.0) if "float" in hint else (2, 1, 0, -1)
    values = _literals(slot.hint) or [
        *dict.fromkeys(_words(fn)),
        *(numbers if hint else (0.4, *numbers)),
        *(length + 2 for length in lengths),
    ]
    tensors = [] if any(t in hint for t in ("int", "float", "str")) else arrays
    calls = [
        *(slot.put(leaves, box(array).requires_grad_()) for array in tensors),
        *(slot.put(inputs, value) for value in values),
        *(slot.put(leaves, array) for array in arrays),
        *(slot.put(leaves, np.arange(a.size).reshape(a.shape) % 3 != 1) for a in arrays),
    ]
    for k, call in enumerate(calls):
        first = taken(fn, call)
        if not isinstance(first, str) and _moved(outputs, first.values) > 0:
            grads = _gradients(first)
            if grads is not None and (k >= len(tensors) or all(g is not None for g in grads)):
                yield call


def _gradients(first: FirstRun) -> list[Any] | None:
    """Return the gradients of a call; None where backward does not take it."""
    try:
        with np.errstate(all="ignore"):
            return list(first.run.vjp([np.ones_like(out) for out in first.values]))
    except Exception:  # of any kind
        return None


def _arrays(inputs: Inputs, outputs: Sequence[Array]) -> Iterator[Array]:
    """Yield arrays of the shapes that occur in a call, each once."""
    given = [host(v) for v in (*inputs.args, *inputs.kwargs.values()) if holds_numbers(v)]
    shapes = [a.shape for a in (*outputs, *given) if a.ndim]
    shapes = [s for shape in shapes for s in (shape, shape[-1:], shape[:1])]
    rng = np.random.default_rng(0)
    yield from (rng.uniform(0.5, 1.5, shape) for shape in dict.fromkeys(shapes))


def _with_leaves(inputs: Inputs) -> Inputs:
    """Return a call whose arrays are tensors that require grad, so that others are constants."""
    found = [*inputs.args, *inputs.kwargs.values()]
    if any(getattr(v, "requires_grad", False) for v in found):
        return inputs

    def leaf(value: Any) -> Any:
        wanted = holds_numbers(value) and host(value).dtype.kind in "fc"
        return box(host(value)).requires_grad_() if wanted else value

    kwargs = {name: leaf(value) for name, value in inputs.kwargs.items()}
    return inputs._replace(args=tuple(map(leaf, inputs.args)), kwargs=kwargs)
