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
from pullback.check.inputs.domains import DOMAINS
from pullback.check.inputs.reading import Reading
from pullback.check.inputs.shape_text import VALUES, ArgumentSpec, Interval, documented
from pullback.check.inputs.source import Use
from pullback.check.naming import name_of, parameters_of
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError

# The specifications of each argument: none for a default, several for a list of arrays.
Candidate = dict[str, list[ArgumentSpec]]
_EMPTY = inspect.Parameter.empty


class Kind(NamedTuple):
    """What an argument may be.

    Attributes
    ----------
    name : str
        ``"array"``, ``"scalar"`` for one of no axes, ``"arrays"`` for a list of them, ``"index"``,
        ``"mask"``, ``"said"`` for what is described, ``"value"``, or ``"default"``.
    value : object
        The value; the description; of others a domain.
    sure : bool
        Whether a missing gradient of it is a mistake.
    """

    name: str
    value: Any = ""
    sure: bool = False


def _values(*choices: Any) -> list[Kind]:
    return [Kind("value", choice) for choice in choices]


_FREE = [Kind("array"), Kind("index"), Kind("mask"), *_values(0.5, 2, -1, True)]
_AXES = _values(-1, 0, 1, (0, 1))


# -- kinds -----------------------------------------------------------------------------------------
def hints_of(fn: Any) -> dict[str, Any]:
    """Return the type hints of a function, or of an operation's forward."""
    try:
        return typing.get_type_hints(getattr(fn, "forward", fn))
    except Exception:  # a name that is not defined where the hint is read
        return {}


def kinds_of(
    fn: Any, parameters: Sequence[inspect.Parameter], read: Reading
) -> dict[str, list[Kind]]:
    """Return what each argument may be, the most likely first."""
    hints, said = hints_of(fn), documented(fn, [p.name for p in parameters])
    found = {}
    for p in parameters:
        uses = read.uses.get(p.name, set())
        if p.kind is p.VAR_POSITIONAL:
            numbers = [Kind("default"), *_values(-1, 2)] if len(parameters) > 1 else []
            found[p.name] = [*numbers, Kind("arrays")]
        elif p.default is not _EMPTY:
            found[p.name] = [Kind("default"), *(_values(-1, 2) if p.default is None else ())]
        elif p.name in said:
            sure = Use.GRADIENT in uses or hints.get(p.name) is Tensor
            found[p.name] = [Kind("said", said[p.name], sure)]
        else:
            found[p.name] = list(dict.fromkeys([*_hinted(hints.get(p.name)), *_used(uses)]))
            if p.name in hints:
                found[p.name] = _hinted(hints[p.name]) or found[p.name]
    return found


def _hinted(hint: Any) -> list[Kind]:
    """Return what a type hint allows; nothing if it tells nothing."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return _values(*inner)
    if origin in (typing.Union, types.UnionType):
        return list(dict.fromkeys(itertools.chain(*map(_hinted, inner))))
    kind = origin or hint
    if not isinstance(kind, type):
        return _values(VALUES["callable"]) if kind is Callable else []
    if issubclass(kind, Tensor | np.ndarray):
        return [Kind("array", sure=kind is Tensor), Kind("index"), Kind("mask")]
    if issubclass(kind, Callable):  # type: ignore[arg-type]
        return _values(VALUES["callable"])
    if issubclass(kind, Iterable) and inner:
        return _values((0, 1), (2, 2), (1, 1)) if inner[0] is int else [Kind("arrays")]
    by_type = {bool: _values(True, False), int: _values(2, 1), float: _values(0.5, 2.0)}
    return by_type.get(kind, [])


def _used(uses: set[str]) -> list[Kind]:
    """Return what an argument may be by its uses."""
    sure = Use.GRADIENT in uses
    tensor = sure or Use.TENSOR in uses
    if Use.CALLED in uses:
        return _values(VALUES["callable"])
    if Use.NUMBER in uses:
        one = [Kind("scalar", "unit", sure), Kind("scalar", sure=sure)]
        return one if tensor else [*_values(2, 0.5), Kind("scalar")]
    if sure:
        return [Kind("array", sure=True), Kind("scalar", sure=True)]
    if uses & {Use.INDEX, Use.OVERWRITTEN, Use.COLUMNS, Use.POINTERS}:
        return [Kind("index"), Kind("mask"), Kind("array"), *_values(2)]
    if Use.MASK in uses and not tensor:
        return [Kind("mask"), *_FREE]
    if Use.AXIS in uses:
        return _AXES
    if Use.WINDOW in uses:
        return _values(3, 2, 1)
    if Use.UNGIVEN in uses:
        return [*_values(0.5, 2, -1), *(k for k in _FREE if k.name != "value"), *_values(True)]
    return [k for k in _FREE if k.name != "value"] if uses else _FREE


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
_PLANS = tuple(Plan(*row.split(";")) for row in _SHAPES.split())
# The entries of a sparse matrix, and the dense array beside them.
_SPARSE = (Plan("n,", "n + 2, m", "n + 2, m"), Plan("n,", "n + 2,", "n + 2,"))
# Domains of real arrays, each with a cost: so many plans are tried before.
_DOMAINS = (
    ("", 0),
    ("spd", 2),
    ("positive", 5),
    ("unit", 12),
    ("above", 30),
    ("complex128", 60),
)
_USUAL = 8  # plans that are tried for all kinds of arguments
_RARER = 10  # the cost of the other plans
_FEWER = 4  # the cost of a less likely kind of an argument
_ORDERS = 60  # combinations of kinds
_STRANGE = 40  # the cost of an array that has fewer or more axes than the source uses
_TABLE = Interval("-2", "2")  # between the ends of tables is what is looked up in them


class Candidates:
    """The candidates for the arguments of an operation.

    Attributes
    ----------
    kinds : dict of list of Kind
        What each argument may be.
    """

    def __init__(self, fn: Any, parameters: Sequence[inspect.Parameter], read: Reading) -> None:
        self.read = read
        self.kinds = kinds_of(fn, parameters, read)
        self.plans = _SPARSE if read.of(Use.POINTERS) else _PLANS

    def ranked(self) -> Iterator[tuple[tuple[Kind, ...], Candidate]]:
        """Yield kinds and candidates of them, the most likely first."""
        ranges = [range(len(kinds)) for kinds in self.kinds.values()]
        orders = sorted(itertools.islice(itertools.product(*ranges), 5000), key=sum)[:_ORDERS]
        waiting: list[tuple[int, tuple[Kind, ...], Candidate]] = []
        for order in orders:
            least = _FEWER * sum(order)
            while waiting and waiting[0][0] <= least:
                yield waiting.pop(0)[1:]
            kinds = tuple(c[k] for c, k in zip(self.kinds.values(), order, strict=True))
            waiting += [(least + cost, kinds, found) for cost, found in self.of_kinds(kinds)]
            waiting.sort(key=lambda entry: entry[0])
        yield from (entry[1:] for entry in waiting)

    def of_kinds(self, kinds: Sequence[Kind]) -> Iterator[tuple[int, Candidate]]:
        """Yield candidates for arguments of these kinds, each with a cost."""
        alone = sum(kind.name == "array" for kind in kinds) == 1  # else which ones are complex?
        for i, plan in enumerate(self.plans):
            for domain, cost in _DOMAINS:
                if (domain != "spd" or "d,d" in plan) and (alone or domain != "complex128"):
                    found = self.candidate(kinds, plan, domain)
                    rarer = _RARER * (i >= _USUAL)
                    yield i + rarer + cost + self.strangeness(found), found

    def strangeness(self, found: Candidate) -> int:
        """Return a cost for arrays that have fewer or more axes than the source uses.

        And for indices of which some would be repeated along an axis, where they are to be written.
        """
        strange = 0
        for d in (d for items in found.values() for d in items if d.shape is not None):
            shape = d.shape or ()
            least, most = self.read.axes.get(d.name, (0, len(shape)))
            strange += not least <= len(shape) <= most
            strange += d.domain == "latin" and len({*shape}) > 1
        return _STRANGE * strange

    def candidate(self, kinds: Sequence[Kind], plan: Plan, domain: str = "") -> Candidate:
        """Return the specifications of all arguments by their kinds and a plan."""
        found: Candidate = {}
        slot = 0
        for name, kind in zip(self.kinds, kinds, strict=True):
            shape = plan[min(slot, 2)]
            found[name] = [self.spec(name, kind, plan, _sizes(shape), domain)] * _COUNTS.get(
                kind.name, 1
            )
            slot += kind.name in ("array", "scalar")
        return found

    def spec(
        self, name: str, kind: Kind, plan: Plan, shape: tuple[str, ...], domain: str
    ) -> ArgumentSpec:
        """Return the specification of an argument by its kind and a plan."""
        uses = self.read.uses.get(name, set())
        if kind.name == "value":
            return ArgumentSpec(name, value=kind.value)
        if kind.name == "said":
            said: ArgumentSpec = kind.value
            return _chosen(said, domain) if not (said.domain or said.interval) else said
        if kind.name == "mask":
            return ArgumentSpec(name, _sizes(plan.first), "bool")
        if kind.name == "index":
            return self.whole_numbers(name, plan, uses)
        if name in self.read.lengths:
            shape = (str(self.read.lengths[name]),)
        if kind.name == "scalar":
            shape = ()
        elif Use.SORTED in uses:
            return ArgumentSpec(name, shape or ("n",), domain="sorted", interval=_TABLE)
        elif Use.LOOKED_UP in uses:
            return ArgumentSpec(name, shape, interval=_TABLE)
        return _chosen(ArgumentSpec(name, shape), kind.value or domain)

    def whole_numbers(self, name: str, plan: Plan, uses: set[str]) -> ArgumentSpec:
        """Return the specification of an argument that is an array of whole numbers."""
        if name in self.read.columns:
            shape = ("n", str(self.read.columns[name]))
            return ArgumentSpec(name, shape, "int64", "sorted")  # so none is twice in a row
        if Use.POINTERS in uses:
            return ArgumentSpec(name, ("d",), "int64", "pointers", Interval("0", "n"))
        if self.plans is _SPARSE:  # no two entries stand at one place
            inside = Interval("0", "n + 2", without_high=True)
            return ArgumentSpec(name, ("n",), "int64", "distinct", inside)
        domain = "latin" if Use.OVERWRITTEN in uses else ""
        return ArgumentSpec(name, _sizes(plan.indices), "int64", domain)


_COUNTS = {"default": 0, "arrays": 2}


def _chosen(d: ArgumentSpec, domain: str) -> ArgumentSpec:
    """Return a real array with values of a domain, if it may have these."""
    if d.dtype != "float64" or (domain == "spd" and d.shape[-2:-1] != d.shape[-1:]):  # type: ignore[index]
        return d
    if domain == "complex128":
        return dataclasses.replace(d, dtype=domain)
    if domain == "above":
        return dataclasses.replace(d, interval=Interval("1.2", "3"))
    return dataclasses.replace(d, domain="" if domain in DOMAINS and not d.shape else domain)


def _sizes(text: str) -> tuple[str, ...]:
    return tuple(size.strip() for size in text.split(",") if size.strip())


def as_text(found: Candidate) -> str:
    """Return a candidate as a description."""
    return ", ".join(str(d) for items in found.values() for d in items)


class Guess(NamedTuple):
    """A candidate, which of its arrays are not differentiated, and notes for the report."""

    kinds: tuple[Kind, ...]
    specs: Candidate
    constants: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def with_specs(self, name: str, **changes: Any) -> Guess:
        """Return a guess with an argument changed."""
        changed = [dataclasses.replace(d, **changes) for d in self.specs[name]]
        return self._replace(specs=self.specs | {name: changed})

    def ranks(self) -> tuple[int | None, ...]:
        """Return how many axes the arrays have; None for other values."""
        every = (d for items in self.specs.values() for d in items)
        return tuple(None if d.shape is None else len(d.shape) for d in every)

    def reals(self) -> list[str]:
        """Return the names of the real arrays."""
        return [n for n, items in self.specs.items() if items and all(map(_is_real, items))]


def _is_real(d: ArgumentSpec) -> bool:
    return d.shape is not None and d.dtype == "float64"


def shapes_of(specs: Candidate) -> tuple[Any, ...]:
    """Return the shapes and dtypes of the arrays of a candidate, and the other values."""
    every = (d for items in specs.values() for d in items)
    return tuple((d.name, d.shape, d.dtype, repr(d.value)) for d in every)


def arrays_of(specs: Candidate) -> list[Any]:
    """Return the specifications of the arrays."""
    return [d for items in specs.values() for d in items if d.shape is not None]


def deeper(found: Candidate) -> Iterator[Candidate]:
    """Yield a candidate with one more axis of one array, the last array first."""
    for name, items in reversed(found.items()):
        if items and all(d.shape and _is_real(d) for d in items):
            longer = [dataclasses.replace(d, shape=(*(d.shape or ()), "d")) for d in items]
            yield found | {name: longer}


def parameters_to_guess(fn: Callable[..., Any]) -> Sequence[inspect.Parameter]:
    """Return the parameters that have to be guessed, or raise where there is no signature."""
    parameters = parameters_of(fn)
    if parameters is None:
        raise ArgumentError(
            f"check_op: inputs of `{name_of(fn)}` are required, since it has no signature to "
            "guess them from, got none.\nhint: pass arrays after the operation."
        )
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]


def described_call(op: Any) -> str:
    """Return a call of `check_op` with a first description of an operation's inputs."""
    return f'pb.check.check_op({name_of(op)}, "{suggestion(op)}")'


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
    found = Candidates(fn, parameters_to_guess(fn), Reading(fn))
    kinds = [choices[0] for choices in found.kinds.values()]
    return as_text(found.candidate(kinds, Plan("n, d", "n, d", "n, d"))) or "x: (n, d)"
