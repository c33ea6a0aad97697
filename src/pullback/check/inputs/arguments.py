"""The arguments of one call: drawn as they are described, tried, and printed in one line.

The same generator draws the same values. The strategies of Hypothesis draw differently, within the
same bounds.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import ends
from pullback.check.inputs.domains import DOMAINS, from_end_to_end
from pullback.check.inputs.shape_text import ArgumentSpec, evaluate, parse
from pullback.check.report import first_line
from pullback.check.subject import ForwardError, Run, Subject, name_of, parameters_of
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom.define import Function
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError, ArgumentTypeError, AutogradError

_EACH_ONCE = ("permutation", "sorted", "distinct")  # along the last axis, or of all
_BOUNDS = {"positive": (0.5, 2.0), "unit": (0.1, 0.9)}
_KINDS = inspect.Parameter
NOT_FINITE, NO_RESULT = "a result that is not finite", "no floating or complex result"
ENDLESS = "it does not end"
# What forward raises for any inputs.
ALWAYS = ("NameError", "NameNotFoundError", "InplaceError")
_POSITIONAL = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
Generator = np.random.Generator
Sizes = dict[str, int]


def callable_of(op: Any, api: str = "check_op") -> Callable[..., Any]:
    """Return what is called to run an operation: for a `Function` class its ``apply``."""
    if isinstance(op, type) and issubclass(op, Function):
        return op.apply  # type: ignore[misc]
    if not callable(op):
        raise ArgumentTypeError(
            f"{api}: an operation or a function to check is required, got {name_of(op)}.\n"
            "hint: pass the operation itself and its inputs after it."
        )
    return op  # type: ignore[no-any-return]


class Inputs(NamedTuple):
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    notes: tuple[str, ...] = ()  # for the report
    domains: Mapping[str, str] = {}  # the words for those that have a structure, by name
    bounded: frozenset[str] = frozenset()  # the names of those that have to stay between bounds
    doubt: str = ""  # why others may be meant
    text: str = ""  # their description, of those that were guessed


class Change(NamedTuple):
    """One difference from the user's call: what it is, of which argument, and how it is made."""

    what: str
    name: str
    put: Callable[[Inputs], Inputs]


def first_run(fn: Callable[..., Any], inputs: Inputs) -> tuple[Subject, Run] | str:
    """Run a call for the first time; return it and the run, or why it is not usable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject = Subject(fn, inputs.args, inputs.kwargs)
            run = subject.run()
    except (ForwardError, AutogradError) as error:
        return first_line(error)
    values = run.values()
    if not any(v.size for v in values):
        return NO_RESULT
    return (subject, run) if all(np.isfinite(v).all() for v in values) else NOT_FINITE


def taken(fn: Callable[..., Any], inputs: Inputs) -> tuple[Subject, Run] | str:
    """Run a call that nobody made; return it and the run, or why it is not usable."""
    found: list[tuple[Subject, Run] | str] = []
    over = not ends(lambda: found.append(first_run(fn, inputs)))
    return ENDLESS if over or not found else found[0]


def results_of(fn: Callable[..., Any], inputs: Inputs) -> list[Array]:
    """Return the results of a call that nobody made; none if it is not usable."""
    found = taken(fn, inputs)
    return [] if isinstance(found, str) else found[1].values()


def format_inputs(inputs: Inputs, parameters: Sequence[Any] = (), *, values: bool = False) -> str:
    """Return the arguments of a call in one line: arrays by shape or values, others by repr."""
    names = [p.name for p in parameters if p.kind in _POSITIONAL][: len(inputs.args)]
    names += [f"input {i}" for i in range(len(names), len(inputs.args))]
    pairs = [*zip(names, inputs.args, strict=True), *inputs.kwargs.items()]
    return ", ".join(f"{name} {'= ' * values}{_text(value, values)}" for name, value in pairs)


def _text(value: Any, values: bool) -> str:
    if not holds_numbers(value):
        return repr(value)
    array = host(value)
    text = str(array.tolist()) if values and array.size <= 16 else f"{array.shape}"
    return text + ("" if array.dtype == np.float64 else f" {array.dtype}")


# -- drawing ---------------------------------------------------------------------------------------
def draw_sizes(described: Sequence[ArgumentSpec], rng: Generator) -> Sizes:
    """Draw small sizes for the symbols, all different unless there are more than four."""
    symbols = list(dict.fromkeys(name for d in described for name in d.symbols))
    sizes = 2 + (rng.permutation(4) if len(symbols) <= 4 else rng.integers(2, size=len(symbols)))
    return {name: int(size) for name, size in zip(symbols, sizes, strict=False)}


def shape_of(described: ArgumentSpec, sizes: Sizes) -> tuple[int, ...]:
    """Return the shape of an argument for these sizes."""
    return tuple(int(evaluate(size, sizes)) for size in described.shape or ())


def bounds(described: ArgumentSpec, sizes: Sizes) -> tuple[float, float] | None:
    """Return the bounds of an argument, None if there are none; open ends are not excluded."""
    interval, whole = described.interval, np.dtype(described.dtype).kind in "iu"
    if interval is None:
        return (1, 4) if whole and described.domain == "positive" else _BOUNDS.get(described.domain)
    low, high = float(evaluate(interval.low, sizes)), float(evaluate(interval.high, sizes))
    low = high - 4 if low == -np.inf else low
    high = low + 4 if high == np.inf else high
    if whole:
        return low + interval.without_low, high - interval.without_high
    return low, high


def draw(described: ArgumentSpec, sizes: Sizes, rng: Generator, scale: float = 1.0) -> Any:
    """Draw an argument: a value, or an array, of a scale unless it has bounds."""
    if described.size:
        return evaluate(described.size, sizes)
    if described.shape is None:
        return described.value
    dtype = np.dtype(described.dtype)
    if dtype.kind == "b":
        shape = shape_of(described, sizes)
        return rng.permutation(np.arange(int(np.prod(shape))) % 2 == 0).reshape(shape)
    if dtype.kind in "iu":
        return _integers(described, sizes, rng).astype(dtype)
    drawn = _reals(described, sizes, rng, scale)
    if dtype.kind == "c":
        drawn = drawn + 1j * _reals(described, sizes, rng, scale)
    if described.domain in DOMAINS:
        drawn = DOMAINS[described.domain].draw(drawn)
        between = bounds(described, sizes)
        if between and described.domain == "sorted":
            drawn = from_end_to_end(drawn, *between)
    return np.asarray(drawn).astype(dtype)


def _integers(described: ArgumentSpec, sizes: Sizes, rng: Generator) -> Array:
    """Draw integers: by default indices of the shortest axis."""
    shape, between = shape_of(described, sizes), bounds(described, sizes)
    count, domain, free = int(np.prod(shape)), described.domain, described.interval is None
    if domain == "pointers":
        first, last = between or (0, count)
        return np.linspace(first, last, count, dtype=int)
    low, high = map(int, between or (0, min([*sizes.values(), 4]) - 1))
    if domain not in _EACH_ONCE:
        return rng.integers(low, high + 1, shape)
    *rows, length = (count,) if domain == "distinct" else shape
    if domain == "permutation":
        high = low + length - 1
    elif free:
        high = max(high, low + length - 1)
    if domain == "distinct" and high - low + 1 < count:
        raise ArgumentError(
            f"check_op: at least {count} integers for `{described.name}` to be distinct are "
            f"required, got {high - low + 1}.\nhint: widen its interval."
        )
    every = np.resize(np.arange(low, high + 1), (*rows, max(high - low + 1, length)))
    drawn = rng.permuted(every, axis=-1)[..., :length].reshape(shape)
    return np.sort(drawn, axis=-1) if domain == "sorted" else drawn


def _reals(described: ArgumentSpec, sizes: Sizes, rng: Generator, scale: float) -> Array:
    """Draw real numbers, normal ones of a scale or between bounds."""
    shape, between = shape_of(described, sizes), bounds(described, sizes)
    if described.domain == "distinct":
        low, high = between or (-2.0, 2.0)
        count = int(np.prod(shape))
        steps = rng.permutation(count) + rng.uniform(0.3, 0.7, count)
        return np.asarray((low + (high - low) * steps / count).reshape(shape))
    if between is None or described.domain in DOMAINS:
        return scale * rng.normal(size=shape)
    margin = 0.05 * (between[1] - between[0])
    return rng.uniform(between[0] + margin, between[1] - margin, shape)


def draw_call(
    fn: Callable[..., Any],
    described: Sequence[ArgumentSpec],
    sizes: Sizes,
    rng: Generator,
    scale: float = 1.0,
    passed: Callable[[str, Array], Any] = lambda _, array: box(array),
) -> Inputs:
    """Draw the arguments of a call; those that are described several times are a list."""
    values: dict[str, list[Any]] = {}
    for d in described:
        value = draw(d, sizes, rng, scale)
        value = passed(d.name, value) if isinstance(value, np.ndarray) else value
        values.setdefault(d.name, []).append(value)
    domains = {d.name: d.domain for d in described if d.domain in DOMAINS}
    kept = [d.name for d in described if d.interval or d.size or d.domain not in ("", *_BOUNDS)]
    call = _bound(fn, values)
    return Inputs(call.args, call.kwargs, domains=domains, bounded=frozenset(kept))


def _bound(fn: Callable[..., Any], values: dict[str, list[Any]]) -> inspect.BoundArguments:
    """Return the call with these values of each argument."""
    parameters = parameters_of(fn)
    if parameters is None:
        any_call = inspect.signature(lambda *args: None)
        return any_call.bind(*(value for some in values.values() for value in some))
    arguments: OrderedDict[str, Any] = OrderedDict()
    for p in parameters:
        if p.kind is p.VAR_KEYWORD:
            arguments[p.name] = {name: some[0] for name, some in values.items()}
        elif p.name in values:
            some = values.pop(p.name)
            arguments[p.name] = some if len(some) > 1 or p.kind is p.VAR_POSITIONAL else some[0]
    return inspect.BoundArguments(inspect.Signature(parameters), arguments)


def draw_described(fn: Callable[..., Any], text: str, seed: int) -> Inputs:
    """Draw the inputs that a text describes."""
    parameters = parameters_of(fn) or []
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    free = not parameters or parameters != named
    described = parse("check_op", text, None if free else [p.name for p in named])
    said = {d.name for d in described}
    needed = [p.name for p in named if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    missing = [name for name in needed if name not in said]
    if missing:
        raise ArgumentError(
            f"check_op: a description of each argument of `{name_of(fn)}` is required, got none "
            f"of `{missing[0]}`.\nhint: the arguments are: {', '.join(map(str, parameters))}."
        )
    rng = np.random.default_rng([seed, 0])
    return draw_call(fn, described, draw_sizes(described, rng), rng)
