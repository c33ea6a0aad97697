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
from typing import Any, Literal, NamedTuple

import numpy as np

from pullback.check.inputs.arguments import callable_of
from pullback.check.inputs.reading import Reading
from pullback.check.inputs.shape_text import VALUES, ArgumentSpec, Interval, documented
from pullback.check.inputs.source import Use
from pullback.check.naming import name_of, parameters_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError

# One argument: no specification for its default, several for a list of arrays.
Choice = tuple[ArgumentSpec, ...]
Specs = dict[str, Choice]

# -- choices ---------------------------------------------------------------------------------------
_BY_PLAN = ("...",)  # the shape is that of a plan
_TABLE = Interval("-2", "2")  # between the ends of tables is what is looked up in them
_DEFAULT: Choice = ()
_ARRAY: Choice = (ArgumentSpec("", _BY_PLAN),)
_ARRAYS: Choice = (*_ARRAY, *_ARRAY)
_INDEX: Choice = (ArgumentSpec("", _BY_PLAN, "int64"),)
_MASK: Choice = (ArgumentSpec("", _BY_PLAN, "bool"),)
_SCALAR: Choice = (ArgumentSpec("", ()),)
_SHARE: Choice = (ArgumentSpec("", (), domain="unit"),)


def _values(*values: Any) -> list[Choice]:
    return [(ArgumentSpec("", value=value),) for value in values]


def hints_of(fn: Any) -> dict[str, Any]:
    """Return the type hints of a function, or of an operation's forward."""
    try:
        return typing.get_type_hints(getattr(fn, "forward", fn))
    except Exception:  # a name that is not defined where the hint is read
        return {}


def _choices(
    fn: Any, parameters: Sequence[inspect.Parameter], read: Reading
) -> dict[str, list[Choice]]:
    """Return what each argument may be, the most likely first."""
    hints, said = hints_of(fn), documented(fn, [p.name for p in parameters])
    found: dict[str, list[Choice]] = {}
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            some = [_DEFAULT, *_values(-1, 2)] if len(parameters) > 1 else []
            some.append(_ARRAYS)
        elif p.default is not p.empty:
            some = [_DEFAULT, *(_values(-1, 2) if p.default is None else ())]
        elif p.name in said:
            some = [(said[p.name],)]
        else:
            some = _hinted(hints.get(p.name)) or _used(read.uses.get(p.name, set()))
        found[p.name] = [tuple(_read(d, p.name, read) for d in choice) for choice in some]
    return found


def _hinted(hint: Any) -> list[Choice]:
    """Return what a type hint allows; nothing if it tells nothing."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return _values(*inner)
    if origin in (typing.Union, types.UnionType):
        return [choice for part in inner for choice in _hinted(part)]
    kind = origin or hint
    if kind is Callable or kind is typing.Callable:
        return _values(VALUES["callable"])
    if not isinstance(kind, type):
        return []
    if issubclass(kind, Tensor | np.ndarray):
        return [_ARRAY, _INDEX, _MASK]
    if issubclass(kind, Iterable) and inner:
        return _values((0, 1), (2, 2), (1, 1)) if inner[0] is int else [_ARRAYS]
    by_type = {bool: _values(True, False), int: _values(2, 1), float: _values(0.5, 2.0)}
    return by_type.get(kind, [])


def _used(uses: set[str]) -> list[Choice]:
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
class Plan(NamedTuple):
    """Shapes of the first array, the second, all further ones, and an index."""

    first: str
    second: str
    further: str
    indices: str = "n,"


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
PLANS = tuple(Plan(*row.split(";")) for row in _SHAPES.split())
_USUAL = 8  # so many plans are tried before a less likely choice
_ORDERS = 60  # combinations of choices


class Candidates:
    """The candidates for the arguments of an operation.

    Attributes
    ----------
    parameters : sequence of inspect.Parameter
    choices : dict of list of tuple of ArgumentSpec
        What each argument may be.
    """

    def __init__(self, fn: Any, read: Reading) -> None:
        self.parameters = _parameters_to_guess(fn)
        self.read = read
        self.choices = _choices(fn, self.parameters, read)

    def ranked(self) -> Iterator[tuple[Specs, Plan]]:
        """Yield a choice for each argument and a plan, the most likely first."""
        ranges = [range(len(some)) for some in self.choices.values()]
        orders = sorted(itertools.islice(itertools.product(*ranges), 5000), key=sum)[:_ORDERS]
        pairs = itertools.product(orders, enumerate(PLANS))
        for order, (_, plan) in sorted(pairs, key=lambda pair: sum(pair[0]) + pair[1][0] // _USUAL):
            pairs_of = zip(self.choices.items(), order, strict=True)
            yield {name: some[k] for (name, some), k in pairs_of}, plan

    def fits(self, specs: Specs) -> bool:
        """Return whether arrays have no fewer and no more axes than the source uses."""
        ranks = [(d.name, len(d.shape)) for d in every(specs) if d.shape is not None]
        bounds = [(rank, self.read.axes.get(name, (rank, rank))) for name, rank in ranks]
        return all(least <= rank <= most for rank, (least, most) in bounds)


def planned(chosen: Specs, plan: Plan) -> Specs:
    """Return the specifications with the shapes of a plan."""
    found: Specs = {}
    slot = 0
    for name, choice in chosen.items():
        dtype = choice[0].dtype if choice else ""
        sizes = {"int64": plan.indices, "bool": plan.first}.get(dtype, plan[min(slot, 2)])
        shape = tuple(size for size in sizes.split(",") if size)
        found[name] = tuple(
            dataclasses.replace(d, shape=shape) if d.shape == _BY_PLAN else d for d in choice
        )
        slot += any(map(is_real, choice))
    return found


def every(specs: Specs) -> list[ArgumentSpec]:
    """Return the specifications of all arguments."""
    return [d for choice in specs.values() for d in choice]


def as_text(specs: Specs) -> str:
    """Return specifications as a description."""
    return ", ".join(map(str, every(specs)))


def is_real(d: ArgumentSpec) -> bool:
    """Return whether an argument is a real array."""
    return d.shape is not None and d.dtype == "float64"


def _parameters_to_guess(fn: Callable[..., Any]) -> Sequence[inspect.Parameter]:
    parameters = parameters_of(fn)
    if parameters is None:
        raise ArgumentError(
            f"check_op: inputs of `{name_of(fn)}` are required, since it has no signature to "
            "guess them from, got none.\nhint: pass arrays after the operation."
        )
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]


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
    choices = Candidates(fn, Reading(fn)).choices
    first = {name: some[0] for name, some in choices.items()}
    return as_text(planned(first, Plan("n,d", "n,d", "n,d"))) or "x: (n, d)"
