"""Guessing inputs from a signature and a source, by trial.

What an argument may be follows from its hint, default, docstring and use; which shapes fit
together, from a table. A guess is accepted if forward returns finite floating results that depend
on it, for larger values too. Where backward does not take one, others are tried; but no rule is
right because arguments became small enough for it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from pullback.check.inputs.arguments import (
    ALWAYS,
    NO_RESULT,
    NOT_FINITE,
    Inputs,
    callable_of,
    draw_call,
    draw_sizes,
    first_run,
)
from pullback.check.inputs.reading import Reading, Use
from pullback.check.inputs.shape_text import (
    VALUES,
    ArgumentSpec,
    Interval,
    documented,
    with_words,
)
from pullback.check.report import first_line
from pullback.check.subject import name_of, parameters_of
from pullback.check.values import Array
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, GradientError, NameNotFoundError

# Of the arguments of a call: none of one that keeps its default, several of a list of arrays.
Specs = tuple[ArgumentSpec, ...]

# -- what an argument may be ----------------------------------------------------------------------
_BY_PLAN = ("...",)  # the shape is that of a plan
_TABLE = Interval("-2", "2")  # between the ends of tables is what is looked up in them
_DEFAULT: Specs = ()
_ARRAY: Specs = (ArgumentSpec("", _BY_PLAN),)
_INDEX: Specs = (ArgumentSpec("", _BY_PLAN, "int64"),)
_MASK: Specs = (ArgumentSpec("", _BY_PLAN, "bool"),)
_SCALAR: Specs = (ArgumentSpec("", ()),)


def _values(*values: Any) -> list[Specs]:
    return [(ArgumentSpec("", value=value),) for value in values]


def _choices_of(fn: Callable[..., Any], read: Reading) -> list[list[Specs]]:
    """Return what each argument may be, the most likely first."""
    parameters = parameters_of(fn)
    if parameters is None:
        raise ArgumentError(
            f"check_op: inputs of `{name_of(fn)}` are required, since it has no signature to "
            "guess them from, got none.\nhint: pass arrays after the operation."
        )
    said = documented(fn, [p.name for p in parameters])
    found: list[list[Specs]] = []
    for p in parameters:
        if p.kind is p.VAR_KEYWORD:
            continue
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
    arrays, numbers = [_ARRAY, _INDEX, _MASK], _values(0.5, 2, -1, True)
    if Use.NUMBER in uses:
        return [_SCALAR] if tensor else [*_values(2, 0.5), _SCALAR]
    if gradient:
        return [_ARRAY, _SCALAR]
    if uses & {Use.INDEX, Use.OVERWRITTEN}:
        return [_INDEX, _MASK, _ARRAY, *_values(2)]
    return arrays if tensor else [*arrays, *numbers]


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
_COMPLEX = "complex128"
_VALUES = ("", "spd", "positive", "unit", "in [1.2, 3]", _COMPLEX)  # of real arrays


def _ranked(choices: list[list[Specs]]) -> Iterator[tuple[Specs, str]]:
    """Yield a specification of all arguments and what values they have, the most likely first."""
    ranges = [range(len(some)) for some in choices]
    orders = sorted(itertools.islice(itertools.product(*ranges), 5000), key=sum)[:_ORDERS]

    def unlikely(one: tuple[tuple[int, ...], int, str]) -> int:
        order, plan, values = one
        return sum(order) + plan // _USUAL + (values != "")

    @functools.cache
    def planned(order: tuple[int, ...], plan: int) -> Specs:
        chosen = [some[k] for some, k in zip(choices, order, strict=True)]
        return _planned(tuple(itertools.chain.from_iterable(chosen)), PLANS[plan])

    for order, plan, values in sorted(
        itertools.product(orders, range(len(PLANS)), _VALUES), key=unlikely
    ):
        yield planned(order, plan), values


def _planned(chosen: Specs, plan: Sequence[str]) -> Specs:
    """Return the specifications with the shapes of a plan."""
    reals = _reals_of(chosen)
    found = []
    for d in chosen:
        if d.shape == _BY_PLAN:
            place = min(reals.index(d.name), 2) if _is_real(d) else 3 if d.dtype == "int64" else 0
            sizes = plan[place] if place < len(plan) else "n,"
            d = dataclasses.replace(d, shape=tuple(size for size in sizes.split(",") if size))
        found.append(d)
    return tuple(found)


def _having(d: ArgumentSpec, words: str) -> ArgumentSpec:
    """Return a real array with such values, if it may have these."""
    plain = _is_real(d) and not d.domain and not d.interval
    return with_words(d, words)[0] if plain else d


def _is_real(d: ArgumentSpec) -> bool:
    return d.shape is not None and d.dtype == "float64"


def _reals_of(specs: Specs) -> list[str]:
    """Return the names of the real arrays."""
    return list(dict.fromkeys(d.name for d in specs if _is_real(d)))


def _kinds_of(specs: Specs) -> tuple[Any, ...]:
    """Return what kind of value each argument has, with how many axes."""
    return tuple((d.name, d.shape is None or (d.dtype, len(d.shape))) for d in specs)


def _ranks_of(specs: Specs) -> dict[str, int]:
    """Return how many axes each floating or complex array has."""
    return {d.name: len(d.shape) for d in specs if d.shape is not None and d.dtype[0] in "fc"}


def _is_shrunk(specs: Specs, other: Specs) -> bool:
    """Return whether each floating or complex array that has axes in others has fewer in some."""
    ranks, axes = _ranks_of(specs), {name: rank for name, rank in _ranks_of(other).items() if rank}
    return bool(axes) and all(ranks.get(name, -1) < rank for name, rank in axes.items())


# -- the text to give ------------------------------------------------------------------------------
def _as_text(specs: Specs) -> str:
    return ", ".join(map(str, specs))


def described_call(op: Any, text: str = "") -> str:
    """Return a call of `check_op` with a description of an operation's inputs, to be edited."""
    return f'pb.check.check_op({name_of(op)}, "{text or suggestion(op)}")'


def suggestion(op: Any) -> str:
    """Return a first description of the inputs of an operation, to be edited."""
    fn = callable_of(op)
    choices = _choices_of(fn, Reading(fn))
    first = tuple(itertools.chain.from_iterable(some[0] for some in choices))
    return _as_text(_planned(first, ["n,d"] * 3)) or "x: (n, d)"


class CannotGuessError(ArgumentError):
    """No inputs were found that an operation accepts: `why`, and in `hint` what to give."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"check_op: {why}\nhint: {hint}")
        self.why = why
        self.hint = hint


# -- the search ------------------------------------------------------------------------------------
_MAX_TRIES, _FEW, _LARGE = 1000, 3, 8.0
_SIZES = {"n": 4, "d": 3, "m": 2}
_CONSTANT, _REFUSED = "a result that is constant", "backward raises"
# Ends of what does not depend on the values of arrays.
_WHATEVER = ("ShapeError", "IndexError", "TypeError", _CONSTANT, _REFUSED, NO_RESULT)


class _Search:
    """The search for inputs of one operation."""

    def __init__(self, op: Any, seed: int) -> None:
        self.fn = callable_of(op)
        self.seed = seed
        self.read = Reading(self.fn)
        of = self.read.of
        self.sure = of(Use.GRADIENT)  # of these a missing gradient is a mistake
        arrays = of(Use.ARRAY, Use.INDEX, Use.OVERWRITTEN, Use.LEFT_OUT)
        self.arrays = arrays - self.sure - of(Use.TENSOR)  # what forward takes as arrays
        self.real: set[str] = set()  # what forward takes as real numbers, so that it is no index
        self.problems: dict[Specs, str] = {}  # of what was tried
        self.misfits: dict[Specs, str] = {}  # of those that forward takes, whose gradient is unfit
        self.unsummed = False  # whether a sum over an axis was missing in a gradient

    def inputs(self, specs: Specs, constants: Collection[str] = (), scale: float = 1.0) -> Inputs:
        """Draw arguments, of which the constants are not differentiated."""
        rng = np.random.default_rng([self.seed, int(scale)])
        sizes = draw_sizes(specs, np.random.default_rng(self.seed)) | _SIZES
        some = bool(constants or self.arrays)  # then the others have to ask for a gradient

        def passed(name: str, array: Array) -> Any:
            if name in self.arrays:
                return array
            tensor = box(array)
            return tensor.requires_grad_(some and tensor.dtype.is_inexact and name not in constants)

        why = "was not differentiated, since backward gives no gradient for it"
        notes = tuple(f"`{name}` {why}" for name in constants)
        call = draw_call(self.fn, specs, sizes, rng, scale, passed)
        return call._replace(notes=notes, text=_as_text(specs))

    def answers(self) -> Iterator[Inputs]:
        """Yield the first inputs that work, then the first of each other kind; raise if none do."""
        found: dict[Any, Specs] = {}
        for plain, values in _ranked(_choices_of(self.fn, self.read)):
            specs, kinds = tuple(_having(d, values) for d in plain), _kinds_of(plain)
            if specs in self.problems or kinds in found or not self.is_likely(plain, values):
                continue
            problem = self.tried(specs)
            if not isinstance(problem, str):
                if not any(_is_shrunk(specs, other) for other in found.values()):
                    yield self.chosen(specs, problem)
                found[kinds] = specs
                continue
            self.problems[specs] = problem
            if problem.startswith(ALWAYS) and [*self.problems.values()].count(problem) == _FEW:
                yield self.inputs(specs)  # the check says it
                return
            if len(self.problems) > _MAX_TRIES:
                break
        larger = [specs for specs in self.taken() if any(_ranks_of(specs).values())]
        if not found and larger and all(specs in self.misfits for specs in larger):
            yield self.inputs(larger[0])
        elif not found:
            raise self.refusal()

    def chosen(self, specs: Specs, constants: Collection[str]) -> Inputs:
        """Return inputs that backward takes, with the doubt that larger ones leave.

        If it takes nothing but 0-d arrays, those are returned that forward took first.
        """
        ranks = _ranks_of(specs)
        if self.misfits and not any(ranks.values()):
            return self.inputs(next(iter(self.misfits)))
        for other in self.taken():
            unfit, old = self.misfits.get(other, ""), _ranks_of(other)
            batch = not unfit and max(old.values()) > 2  # which is seldom meant
            if unfit in old.keys() - ranks or (_is_shrunk(specs, other) and not batch):
                why = f"forward takes {_as_text(other)} too, for which {self.problems[other]}"
                return self.inputs(specs, constants)._replace(doubt=why)
        return self.inputs(specs, constants)

    def taken(self) -> list[Specs]:
        """Return what forward takes and backward does not."""
        return [specs for specs, why in self.problems.items() if why.startswith(_REFUSED)]

    def is_likely(self, plain: Specs, values: str) -> bool:
        """Return whether what was read and tried speaks for a candidate."""
        shapes = [d.shape for d in plain if d.shape is not None]
        if self.unsummed and any(len({*shape}) < len(shape) for shape in shapes):
            return False  # squares hide which axes are taken as one
        if self.real.intersection(d.name for d in plain if d.dtype in ("int64", "bool")):
            return False
        if values == _COMPLEX:
            return len(_reals_of(plain)) == 1
        return not self.problems.get(plain, "").partition(":")[0].endswith(_WHATEVER)

    def tried(self, specs: Specs) -> str | list[str]:
        """Return the arrays that have no gradient, or what is wrong with a candidate.

        Only those of which neither the source nor a hint tells that they have one.
        """
        found = first_run(self.fn, self.inputs(specs))
        if found == NOT_FINITE or not isinstance(found, str):
            self.real |= {*_reals_of(specs)}
        if isinstance(found, str):
            return found
        larger = first_run(self.fn, self.inputs(specs, scale=_LARGE))
        if isinstance(larger, str):
            return larger
        (subject, run), (_, other) = found, larger
        if all(map(np.array_equal, run.values(), other.values())):
            return _CONSTANT
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                grads = run.vjp([np.ones_like(v) for v in run.values()])
        except GradientError as error:
            self.unsummed |= bool(error.unsummed)
            if error.argument and not error.unsummed and any(_ranks_of(specs).values()):
                self.misfits[specs] = error.argument
            return f"{_REFUSED}: {first_line(error)}" if error.argument else []
        except (NameError, ImportError, NameNotFoundError):  # whatever the inputs
            return []
        except Exception as error:
            return f"{_REFUSED}: {type(error).__name__}: {first_line(error)}"
        given = {name for name, g in zip(subject.names, grads, strict=True) if g is not None}
        none = [name for name in _reals_of(specs) if name not in given | self.sure]
        return none if {*subject.names} - {*none} else []

    def refusal(self) -> CannotGuessError:
        """Return the error for inputs that cannot be guessed, with a description to edit."""
        problems = self.problems or {(): "nothing to differentiate"}
        taken = self.taken()
        specs = [*taken, *problems][0]
        why = (
            f"inputs of `{name_of(self.fn)}` could not be guessed, got "
            f"{problems[specs].rstrip('.')} for {_as_text(specs) or 'no arguments'}. "
            f"Tried {len(problems)}"
        )
        call = described_call(self.fn, _as_text(specs) if taken else "")
        how = "describe them" if taken else "describe those that forward takes, in this form"
        if problems[specs].startswith("AttributeError"):
            why, how = f"forward raises {problems[specs]}", f"if that is no mistake, {how}"
        return CannotGuessError(why, f"{how}: {call}")


def guesses(op: Any, seed: int = 0) -> Iterator[Inputs]:
    """Yield inputs of an operation, guessed from its signature and source: first the likeliest.

    The others are of other kinds, or have another number of axes. `CannotGuessError` is raised if
    forward accepts nothing that was tried, and `ArgumentError` if the operation has no signature.
    """
    return _Search(op, seed).answers()
