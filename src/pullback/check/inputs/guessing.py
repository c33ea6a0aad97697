"""Guessing inputs from a signature and a source, by trial.

Owns the search: candidates.py has what may be tried. A guess is accepted if forward returns finite
floating results that depend on it, for larger values too, and backward takes it.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from pullback.check.exceptions import first_line
from pullback.check.inputs.arguments import (
    NO_RESULT,
    NOT_FINITE,
    Inputs,
    bind,
    callable_of,
    structured,
    try_forward,
)
from pullback.check.inputs.candidates import (
    Specs,
    as_text,
    choices_of,
    described_call,
    is_real,
    parameters_to_guess,
    planned,
    ranked,
    reals_of,
)
from pullback.check.inputs.drawing import draw, draw_sizes
from pullback.check.inputs.reading import Reading, Use
from pullback.check.inputs.shape_text import ArgumentSpec, Interval
from pullback.check.naming import name_of
from pullback.check.subject import Subject
from pullback.check.values import Array
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError, GradientError, NameNotFoundError

_MAX_TRIES, _LARGE = 1000, 8.0
_SIZES = {"n": 4, "d": 3, "m": 2}
_COMPLEX = "complex128"
# Domains, an interval and a dtype of real arrays whose values matter.
_VALUES = ("", "spd", "positive", "unit", Interval("1.2", "3"), _COMPLEX)
_CONSTANT, _REFUSED = "a result that is constant", "backward raises"
# Ends of what does not depend on the values of arrays.
_WHATEVER = ("ShapeError", "IndexError", "TypeError", _CONSTANT, _REFUSED, NO_RESULT)


class CannotGuessError(ArgumentError):
    """No inputs were found that an operation accepts: `why`, and in `hint` what to give."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"check_op: {why}\nhint: {hint}")
        self.why = why
        self.hint = hint


class Guess(NamedTuple):
    """Specifications, which of the arrays are not differentiated, and notes for the report."""

    specs: Specs
    constants: Collection[str] = ()
    notes: tuple[str, ...] = ()


class _Search:
    """The search for inputs of one operation."""

    def __init__(self, op: Any, seed: int) -> None:
        self.fn = callable_of(op)
        self.seed = seed
        self.read = Reading(self.fn)
        self.parameters = parameters_to_guess(self.fn)
        of = self.read.of
        self.sure = of(Use.GRADIENT)  # of these a missing gradient is a mistake
        arrays = of(Use.ARRAY, Use.INDEX, Use.OVERWRITTEN, Use.MASK, Use.EQUAL) | self.read.left_out
        self.arrays = arrays - self.sure - of(Use.TENSOR)  # what forward takes as arrays
        self.real: set[str] = set()  # what forward takes as real numbers, so that it is no index
        self.problems: dict[str, str] = {}  # from a candidate in words to what is wrong with it
        self.unsummed = False  # whether a sum over an axis was missing in a gradient

    # -- drawing -------------------------------------------------------------------------------
    def inputs(self, guess: Guess, scale: float = 1.0) -> Inputs:
        """Draw the arguments of a guess."""
        rng = np.random.default_rng([self.seed, int(scale)])
        sizes = draw_sizes(guess.specs, np.random.default_rng(self.seed), most=3) | _SIZES
        drawn: dict[str, list[Any]] = {}
        some = bool(guess.constants or self.arrays)  # then the others have to ask for a gradient
        for d in guess.specs:
            value = draw(d, sizes, rng, scale)
            if isinstance(value, np.ndarray) and d.name not in self.arrays:
                value = box(value)
                asks = some and value.dtype.is_inexact and d.name not in guess.constants
                value.requires_grad_(asks)
            drawn.setdefault(d.name, []).append(value)
        bounded = frozenset(d.name for d in guess.specs if d.interval or d.domain == "distinct")
        found = bind(self.parameters, drawn)
        return found._replace(notes=guess.notes, domains=structured(guess.specs), bounded=bounded)

    def values(self, guess: Guess, scale: float = 1.0) -> list[Array] | str:
        """Return forward's results, or why there are none."""
        try:
            inputs = self.inputs(guess, scale)
        except (ArgumentError, ValueError, IndexError):  # as of a symmetric array that is no square
            return "no such values"
        return try_forward(self.fn, inputs)

    # -- searching -----------------------------------------------------------------------------
    def answer(self) -> Guess | None:
        """Return the first guess that works; None if none does."""
        for chosen, plan in ranked(choices_of(self.fn, self.read)):
            specs = planned(chosen, plan)
            whole = {d.name for d in specs if d.dtype in ("int64", "bool")}
            known = as_text(specs) in self.problems
            if known or whole & self.real or not self.fits(specs):
                continue
            if self.unsummed and any(
                len({*shape}) < len(shape) for d in specs if (shape := d.shape)
            ):
                continue  # squares hide which axes forward takes as one
            found = self.with_values(specs)
            if found or len(self.problems) > _MAX_TRIES:
                return found
        return None

    def fits(self, specs: Specs) -> bool:
        """Return whether arrays have no fewer and no more axes than the source uses."""
        ranks = [(d.name, len(d.shape)) for d in specs if d.shape is not None]
        bounds = [(rank, self.read.axes.get(name, (rank, rank))) for name, rank in ranks]
        return all(least <= rank <= most for rank, (least, most) in bounds)

    def with_values(self, specs: Specs) -> Guess | None:
        """Return a guess with the first values that both passes take; None if there are none."""
        smaller: Guess | None = None  # where larger values have no finite results
        hopeless = False  # whatever the real numbers are
        for values in _VALUES if len(reals_of(specs)) == 1 else _VALUES[:-1]:
            other = tuple(_having(d, values) for d in specs)
            words = as_text(other)
            if words in self.problems or (hopeless and values != _COMPLEX):
                continue
            problem, found = self.tried(Guess(other))
            if found and problem != NOT_FINITE:
                return found
            self.problems[words] = problem
            smaller = smaller or found
            hopeless = problem.partition(":")[0].endswith(_WHATEVER)
        return smaller

    def tried(self, guess: Guess) -> tuple[str, Guess | None]:
        """Return what is wrong with a guess, and the guess as backward takes it, if it does."""
        values = self.values(guess)
        if values == NOT_FINITE or not isinstance(values, str):
            self.real |= {*reals_of(guess.specs)}
        if isinstance(values, str):
            return values, None
        larger = self.values(guess, _LARGE)
        pairs = [] if isinstance(larger, str) else list(zip(values, larger, strict=False))
        if pairs and all(np.array_equal(a, b) for a, b in pairs):
            return _CONSTANT, None
        problem = larger if larger == NOT_FINITE else ""
        try:
            return problem, self.differentiated(guess)
        except GradientError as error:
            self.unsummed |= bool(error.unsummed)
            return f"{_REFUSED}: {first_line(error)}", None if error.argument else guess
        except (NameError, ImportError, NameNotFoundError):  # whatever the inputs
            return problem, guess
        except Exception as error:
            return f"{_REFUSED}: {type(error).__name__}: {first_line(error)}", None

    def differentiated(self, guess: Guess) -> Guess:
        """Return the guess without the arguments that have no gradient; backward has to take it.

        Only those of which neither the source nor a hint tells that they have one.
        """
        inputs = self.inputs(guess)
        subject = Subject(self.fn, inputs.args, inputs.kwargs)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run = subject.run()
            grads = run.vjp([np.ones_like(v) for v in run.values()])
        found = dict(zip(subject.names, grads, strict=True))
        none = [n for n in reals_of(guess.specs) if found.get(n) is None and n not in self.sure]
        if not found.keys() - {*none}:
            return guess
        why = "was not differentiated, since backward gives no gradient for it"
        return guess._replace(constants=none, notes=tuple(f"`{name}` {why}" for name in none))

    # -- answers -------------------------------------------------------------------------------
    def refusal(self) -> CannotGuessError:
        """Return the error for inputs that cannot be guessed, with a description to edit."""
        problems = self.problems or {"no arguments": "nothing to differentiate"}
        taken = [words for words, problem in problems.items() if problem.startswith(_REFUSED)]
        words = [*taken, *problems][0]
        why = (
            f"inputs of `{name_of(self.fn)}` could not be guessed, got "
            f"{problems[words].rstrip('.')} for {words}. Tried {len(problems)}"
        )
        return CannotGuessError(why, f"describe them: {described_call(self.fn, *taken[:1])}")


def _having(d: ArgumentSpec, values: str | Interval) -> ArgumentSpec:
    """Return a real array with such values, if it may have these."""
    if not is_real(d) or d.domain or d.interval or (values == "spd" and not d.is_square):
        return d
    field = "dtype" if values == _COMPLEX else "domain"
    field = "interval" if isinstance(values, Interval) else field
    return dataclasses.replace(d, **{field: values})  # type: ignore[arg-type]


def guess(op: Any, seed: int = 0) -> Inputs:
    """Return inputs of an operation, guessed from its signature and source.

    Raises
    ------
    CannotGuessError
        If forward accepts nothing that was tried; says how to describe inputs.
    ArgumentError
        If the operation has no signature.

    Examples
    --------
    >>> import pullback as pb
    >>> def linear(input, weight, bias):
    ...     return input @ weight.T + bias
    >>> [tuple(a.shape) for a in guess(linear).args]
    [(4, 3), (2, 3), (2,)]
    """
    search = _Search(op, seed)
    answer = search.answer()
    if answer is None:
        raise search.refusal()
    return search.inputs(answer)
