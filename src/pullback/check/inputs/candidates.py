"""What each argument may be, by its hint, default, docstring and use, and shapes that fit together.

Owns the order in which guesses are tried. Whether one works is found by trial, in guessing.py.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from pullback.check.inputs.arguments import callable_of
from pullback.check.inputs.reading import Reading, Use
from pullback.check.inputs.shape_text import VALUES, ArgumentSpec, Interval, documented
from pullback.check.naming import name_of, parameters_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError

# Of the arguments of a call: none of one that keeps its default, several of a list of arrays.
Specs = tuple[ArgumentSpec, ...]

# -- choices ---------------------------------------------------------------------------------------
_BY_PLAN = ("...",)  # the shape is that of a plan
_TABLE = Interval("-2", "2")  # between the ends of tables is what is looked up in them
_DEFAULT: Specs = ()
_ARRAY: Specs = (ArgumentSpec("", _BY_PLAN),)
_INDEX: Specs = (ArgumentSpec("", _BY_PLAN, "int64"),)
_MASK: Specs = (ArgumentSpec("", _BY_PLAN, "bool"),)
_SCALAR: Specs = (ArgumentSpec("", ()),)
_SHARE: Specs = (ArgumentSpec("", (), domain="unit"),)


def _values(*values: Any) -> list[Specs]:
    return [(ArgumentSpec("", value=value),) for value in values]


def parameters_to_guess(fn: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that have to be guessed, or raise where there is no signature."""
    parameters = parameters_of(fn)
    if parameters is None:
        raise ArgumentError(
            f"check_op: inputs of `{name_of(fn)}` are required, since it has no signature to "
            "guess them from, got none.\nhint: pass arrays after the operation."
        )
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]


def choices_of(fn: Callable[..., Any], read: Reading) -> list[list[Specs]]:
    """Return what each argument may be, the most likely first."""
    parameters = parameters_to_guess(fn)
    said = documented(fn, [p.name for p in parameters])
    found: list[list[Specs]] = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            some = [_DEFAULT, *_values(-1, 2)] if len(parameters) > 1 else []
            some.append(_ARRAY * 2)
        elif p.default is not p.empty:
            some = [_DEFAULT, *(_values(-1, 2) if p.default is None else ())]
        elif p.name in said:
            some = [(said[p.name],)]
        else:
            some = _hinted(read.hints.get(p.name)) or _used(read.uses.get(p.name, set()))
        found.append([tuple(_read(d, p.name, read) for d in specs) for specs in some])
    return found


def _hinted(hint: Any) -> list[Specs]:
    """Return what a type hint allows; nothing if it tells nothing."""
    kind, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind is Literal:
        return _values(*inner)
    if kind in (typing.Union, types.UnionType):
        return [specs for part in inner for specs in _hinted(part)]
    if kind is Callable:
        return _values(VALUES["callable"])
    if kind in (Tensor, np.ndarray):
        return [_ARRAY, _INDEX, _MASK]
    if inner and isinstance(kind, type) and issubclass(kind, Iterable):
        return _values((0, 1), (2, 2), (1, 1)) if inner[0] is int else [_ARRAY * 2]
    by_type = {bool: _values(True, False), int: _values(2, 1), float: _values(0.5, 2.0)}
    return by_type.get(kind, [])


def _used(uses: set[str]) -> list[Specs]:
    """Return what an argument may be by its uses."""
    gradient = Use.GRADIENT in uses
    tensor = gradient or Use.TENSOR in uses
    arrays = [_ARRAY, _INDEX, _MASK]
    if Use.CALLED in uses:
        return _values(VALUES["callable"])
    if Use.NUMBER in uses:
        return [_SHARE, _SCALAR] if tensor else [*_values(2, 0.5), _SCALAR]
    if gradient:
        return [_ARRAY, _SCALAR]
    if uses & {Use.INDEX, Use.OVERWRITTEN} or (Use.EQUAL in uses and not tensor):
        return [_INDEX, _MASK, _ARRAY, *_values(2)]
    if Use.MASK in uses and not tensor:
        return [_MASK, _ARRAY, _INDEX]
    if Use.AXIS in uses:
        return _values(-1, 0, 1, (0, 1))
    if Use.UNGIVEN in uses and not tensor and Use.ARRAY not in uses:
        return [*_values(0.5, 2, -1), *arrays, *_values(True)]
    return arrays if tensor else [*arrays, *_values(0.5, 2, -1, True)]


def _read(d: ArgumentSpec, name: str, read: Reading) -> ArgumentSpec:
    """Return the specification of an argument, with the shape and values that the source shows."""
    uses, shape, domain, interval = read.uses.get(name, set()), d.shape, d.domain, d.interval
    if shape == _BY_PLAN:
        shape = read.shapes.get(name, shape)
        if d.dtype == "int64":
            rows = "sorted" if len(shape) > 1 else ""  # so that none is twice in a row
            domain = "distinct" if Use.OVERWRITTEN in uses else rows
        elif d.dtype == "float64" and uses & {Use.SORTED, Use.LOOKED_UP}:
            domain, interval = "sorted" if Use.SORTED in uses else "", _TABLE
    return dataclasses.replace(d, name=name, shape=shape, domain=domain, interval=interval)


# -- shapes ----------------------------------------------------------------------------------------
# The first array, the second, all further ones, and an index, which has the shape "n," if missing.
# Those whose axes have several lengths before those where they are all the same.
_SHAPES = """
      n,d;m,d;m,;n,d  n,d;d,m;m,;n,d  n,d;n,d;n,d;n,d  n,d;d,;d,  n,;n,;n,  n,d;n,d;n,d  n,d;;
    n,;m,;m,;m,  n,d;n,;n,  ;;  n,m;n,;n,  n,;d,;d,  n,;n,d;n,d  d,;n,d;n,d  n,;n,;  n,d;n,d;
    n,d;1,d;1,d  n,d;n,1;n,1  d-1,;d,;d-1,  n,;n,3;n,  m,n,d;m,n,d;m,n,d  2,n,d;2,d,m;2,n,m
    n,d;n,d;m,d,d  n,d;m,d,d;n,d  n,d;d,d;d,  d,d;d,;d,  d,d;d,d;d,d;d,d  d,d;d,m;d,m  d,;d,d;d,d
    d,d;d,;d,m  d,d;;  n,4;n,d;n,d  d,;m,d;m,  2,d,4,4;m,d,2,2;m,  2,d,4,4;d,m,2,2;m,
    2,d,5;n,d,2;n,  2,d,5;d,m,2;m,  2,d,3,3,3;m,d,2,2,2;m,  2,d,4,4;2,d,4,4;2,d,4,4  2,d,4,4;d,;d,
    d,4,4;m,d,2,2;m,  4,4;2,2;2,2  m,2,d,d;m,2,d,d;m,2,d,d
"""
PLANS = tuple(row.split(";") for row in _SHAPES.split())
_USUAL = 8  # so many plans are tried before a less likely choice
_ORDERS = 60  # combinations of choices


def ranked(choices: list[list[Specs]]) -> Iterator[tuple[Specs, Sequence[str]]]:
    """Yield a choice for each argument and a plan, the most likely first."""
    ranges = [range(len(some)) for some in choices]
    orders = sorted(itertools.islice(itertools.product(*ranges), 5000), key=sum)[:_ORDERS]
    pairs = itertools.product(orders, enumerate(PLANS))
    for order, (_, plan) in sorted(pairs, key=lambda pair: sum(pair[0]) + pair[1][0] // _USUAL):
        chosen = [some[k] for some, k in zip(choices, order, strict=True)]
        yield tuple(itertools.chain.from_iterable(chosen)), plan


def planned(chosen: Specs, plan: Sequence[str]) -> Specs:
    """Return the specifications with the shapes of a plan."""
    reals = reals_of(chosen)
    found = []
    for d in chosen:
        if d.shape == _BY_PLAN:
            place = min(reals.index(d.name), 2) if is_real(d) else 3 if d.dtype == "int64" else 0
            sizes = plan[place] if place < len(plan) else "n,"
            d = dataclasses.replace(d, shape=tuple(size for size in sizes.split(",") if size))
        found.append(d)
    return tuple(found)


def as_text(specs: Specs) -> str:
    """Return specifications as a description."""
    return ", ".join(map(str, specs))


def is_real(d: ArgumentSpec) -> bool:
    """Return whether an argument is a real array."""
    return d.shape is not None and d.dtype == "float64"


def reals_of(specs: Specs) -> list[str]:
    """Return the names of the real arrays."""
    return list(dict.fromkeys(d.name for d in specs if is_real(d)))


def described_call(op: Any, text: str = "") -> str:
    """Return a call of `check_op` with a description of an operation's inputs, to be edited."""
    return f'pb.check.check_op({name_of(op)}, "{text or suggestion(op)}")'


def suggestion(op: Any) -> str:
    """Return a first description of the inputs of an operation, to be edited.

    Examples
    --------
    >>> def attend(query, keys, dim: int, eps=1e-6):
    ...     ...
    >>> suggestion(attend)
    'query: (n, d), keys: (n, d), dim: 2'
    """
    fn = callable_of(op)
    choices = choices_of(fn, Reading(fn))
    first = tuple(itertools.chain.from_iterable(some[0] for some in choices))
    return as_text(planned(first, ["n,d"] * 3)) or "x: (n, d)"
