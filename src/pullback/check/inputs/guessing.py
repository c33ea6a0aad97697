"""Guessing inputs from a signature and a source, by trial.

Owns the search: candidates.py has what may be tried. A guess is accepted if forward returns finite
floating results that depend on it, for larger values too, and backward takes it.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.exceptions import first_line
from pullback.check.inputs.arguments import (
    NOT_FINITE,
    Inputs,
    bind,
    callable_of,
    structured,
    try_forward,
)
from pullback.check.inputs.candidates import (
    PLANS,
    Candidates,
    Specs,
    as_text,
    described_call,
    every,
    hints_of,
    is_real,
    planned,
)
from pullback.check.inputs.drawing import draw, draw_sizes
from pullback.check.inputs.reading import Reading
from pullback.check.inputs.shape_text import ArgumentSpec, Interval
from pullback.check.inputs.source import Use
from pullback.check.naming import name_of
from pullback.check.subject import Subject
from pullback.check.values import Array
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    MissingRuleError,
    ShapeError,
    TensorIndexError,
)

_MAX_TRIES = 1000
_LARGE = 8.0
_MAX_OTHERS, _DRAWS = 3, 4  # guesses of other ranks, and draws of each
_SIZES = {"n": 4, "d": 3, "m": 2}
_COMPLEX = "complex128"
# Domains, an interval and a dtype of real arrays whose values matter.
_VALUES = ("", "spd", "positive", "unit", Interval("1.2", "3"), _COMPLEX)
_WHATEVER = (NameError, ImportError, MissingRuleError)  # what does not depend on the inputs
# Exceptions that do not depend on the values of arrays.
_OF_SHAPES = {
    kind.__name__
    for kind in (ShapeError, DTypeError, IndexError, TensorIndexError, TypeError, ArgumentTypeError)
}


class CannotGuessError(ArgumentError):
    """No inputs were found that an operation accepts: `why`, and in `hint` what to give."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"check_op: {why}\nhint: {hint}")
        self.why = why
        self.hint = hint


class Guess(NamedTuple):
    """Specifications, which of the arrays are not differentiated, and notes for the report.

    `chosen` are the specifications before a plan gave them shapes.
    """

    chosen: Specs
    specs: Specs
    constants: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    def ranks(self) -> tuple[int | None, ...]:
        """Return how many axes the arrays have; None for other values."""
        return tuple(None if d.shape is None else len(d.shape) for d in every(self.specs))

    def without(self, names: set[str], why: str) -> Guess:
        """Return the guess with arguments that are not differentiated, and a note on each."""
        notes = [f"`{n}` was not differentiated, since backward {why}" for n in sorted(names)]
        return self._replace(constants=self.constants | names, notes=(*self.notes, *notes))


class _Search:
    """The search for inputs of one operation."""

    def __init__(self, op: Any, seed: int) -> None:
        self.fn = callable_of(op)
        self.seed = seed
        self.read = Reading(self.fn)
        self.candidates = Candidates(self.fn, self.read)
        hints, of = hints_of(self.fn), self.read.of
        tensors = {name for name, hint in hints.items() if hint is Tensor}
        self.sure = of(Use.GRADIENT) | tensors  # of these a missing gradient is a mistake
        arrays = of(Use.ARRAY, Use.INDEX, Use.OVERWRITTEN, Use.MASK, Use.EQUAL)
        arrays |= self.read.left_out | {name for name, hint in hints.items() if hint is np.ndarray}
        self.arrays = arrays - self.sure - of(Use.TENSOR)  # what forward takes as arrays
        self.real: set[str] = set()  # what forward takes as real numbers, so that it is no index
        self.problems: dict[str, str] = {}  # from a candidate in words to what is wrong with it
        self.unsummed = False  # whether a sum over an axis was missing in a gradient

    # -- drawing -------------------------------------------------------------------------------
    def inputs(self, guess: Guess, trial: int = 0, scale: float = 1.0) -> Inputs:
        """Draw the arguments of a guess; trial 0 has the sizes 4, 3, 2."""
        described = every(guess.specs)
        sizes = draw_sizes(described, np.random.default_rng([self.seed, trial]), most=3)
        said = [name for name in sizes if name not in _SIZES]  # in the docstring alone
        if trial == 0 or said:
            sizes |= _SIZES
        rng = np.random.default_rng([self.seed, trial, int(scale > 1)])
        drawn = {
            name: [self._as_input(draw(d, sizes, rng, scale), name, guess) for d in choice]
            for name, choice in guess.specs.items()
        }
        bounded = {d.name for d in described if d.interval or d.domain == "distinct"}
        return bind(self.candidates.parameters, drawn)._replace(
            notes=guess.notes,
            domains=structured(described),
            bounded=frozenset(bounded),
        )

    def _as_input(self, drawn: Any, name: str, guess: Guess) -> Any:
        """Return a drawn array as a tensor; it requires grad if others are constants."""
        if not isinstance(drawn, np.ndarray) or name in self.arrays:
            return drawn
        constants = guess.constants | self.arrays
        asked = constants and drawn.dtype.kind in "fc" and name not in constants
        return box(drawn).requires_grad_(bool(asked))

    def trial(self, guess: Guess, trial: int, scale: float = 1.0) -> Inputs | None:
        """Draw the arguments of a guess; None if these sizes have no such values."""
        try:
            return self.inputs(guess, trial, scale)
        except (ArgumentError, ValueError, IndexError):  # as of a symmetric array that is no square
            return None

    def values(self, guess: Guess, scale: float = 1.0) -> list[Array] | str:
        """Return forward's results, or why there are none."""
        inputs = self.trial(guess, 0, scale)
        return "no such values" if inputs is None else try_forward(self.fn, inputs)

    # -- searching -----------------------------------------------------------------------------
    def answer(self) -> Guess | None:
        """Return the first guess that works; None if none does."""
        for chosen, plan in self.candidates.ranked():
            specs = planned(chosen, plan)
            whole = {d.name for d in every(specs) if d.dtype in ("int64", "bool")}
            known = as_text(specs) in self.problems
            if known or whole & self.real or not self.candidates.fits(specs):
                continue
            shapes = [d.shape for d in every(specs) if d.shape]
            if self.unsummed and any(len({*shape}) < len(shape) for shape in shapes):
                continue  # squares hide which axes forward takes as one
            left_out = {d.name for d in every(specs) if is_real(d)} & self.read.left_out
            found = self.with_values(Guess(chosen, specs).without(left_out, "leaves it out"))
            if found or len(self.problems) > _MAX_TRIES:
                return found
        return None

    def with_values(self, guess: Guess) -> Guess | None:
        """Return the guess with the first values that both passes take; None if there are none."""
        smaller: Guess | None = None  # where larger values have no finite results
        alone = len(list(filter(is_real, every(guess.specs)))) == 1  # else which are complex?
        hopeless = False  # whatever the real numbers are
        for values in _VALUES if alone else _VALUES[:-1]:
            specs = {
                name: tuple(_with_values(d, values) for d in choice)
                for name, choice in guess.specs.items()
            }
            words = as_text(specs)
            if words in self.problems or (hopeless and values != _COMPLEX):
                continue
            problem, found = self.tried(guess._replace(specs=specs))
            if found and problem != NOT_FINITE:
                return found
            self.problems[words] = problem
            smaller = smaller or found
            kind = problem.partition(":")[0]
            hopeless = kind in _OF_SHAPES or kind.startswith(_REFUSED) or kind in _ENDS
        return smaller

    def tried(self, guess: Guess) -> tuple[str, Guess | None]:
        """Return what is wrong with a guess, and the guess as backward takes it, if it does."""
        values = self.values(guess)
        if values == NOT_FINITE or not isinstance(values, str):
            self.real |= {d.name for d in every(guess.specs) if is_real(d)}
        if isinstance(values, str):
            return values, None
        larger = self.values(guess, _LARGE)
        pairs = [] if isinstance(larger, str) else list(zip(values, larger, strict=False))
        if pairs and all(np.array_equal(a, b) for a, b in pairs):
            return _CONSTANT, None
        problem = larger if larger == NOT_FINITE else ""
        try:
            return problem, self.differentiated(guess)
        except _WHATEVER as error:
            return first_line(error), guess
        except GradientError as error:
            self.unsummed |= bool(error.unsummed)
            return f"{_REFUSED}: {first_line(error)}", None if error.argument else guess
        except Exception as error:
            return f"{_REFUSED} {type(error).__name__}: {first_line(error)}", None

    def differentiated(self, guess: Guess) -> Guess:
        """Return the guess without the arguments that have no gradient; backward has to take it.

        Only those of which neither the source nor a hint tells that they have one.
        """
        found = self.gradients(guess)
        none = {name for name, g in found.items() if g is None} - self.sure
        return guess.without(none, "gives no gradient for it") if none < found.keys() else guess

    def gradients(self, guess: Guess) -> dict[str, Any]:
        """Return the gradients of the differentiated arguments, by name."""
        inputs = self.inputs(guess)
        subject = Subject(self.fn, inputs.args, inputs.kwargs)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run = subject.run()
            grads = run.vjp([np.ones_like(v) for v in run.values()])
        return dict(zip(subject.names, grads, strict=True))

    # -- further guesses -----------------------------------------------------------------------
    def others(self, answer: Guess) -> Iterator[list[Inputs]]:
        """Yield inputs of other ranks that work too, for each rank several draws."""
        known = {answer.ranks()}
        for plan in PLANS:
            guess = Guess(answer.chosen, planned(answer.chosen, plan))
            if guess.ranks() in known or not any(guess.ranks()):
                continue
            found = self.with_values(guess) if self.candidates.fits(guess.specs) else None
            if found:
                known.add(guess.ranks())
                draws = (self.trial(found, k) for k in range(_DRAWS))
                yield [drawn for drawn in draws if drawn is not None]
            if len(known) > _MAX_OTHERS:
                break

    def complex(self, answer: Guess) -> Iterator[Inputs]:
        """Yield inputs of complex numbers that work, where the source conjugates."""
        conjugated = self.read.of(Use.CONJUGATED)
        for names in (conjugated, set(answer.specs)) if conjugated else ():
            specs = {
                name: tuple(_with_values(d, _COMPLEX) if name in names else d for d in choice)
                for name, choice in answer.specs.items()
            }
            problem, found = self.tried(answer._replace(specs=specs))
            if found and not problem:
                yield self.inputs(found)
                break

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


_REFUSED, _CONSTANT = "backward raises", "a result that is constant"
_ENDS = (_CONSTANT, "no floating or complex result")


def _with_values(d: ArgumentSpec, values: str | Interval) -> ArgumentSpec:
    """Return a real array with such values, if it may have these."""
    if not is_real(d) or d.domain or d.interval:
        return d
    if isinstance(values, Interval):
        return dataclasses.replace(d, interval=values)
    if values == _COMPLEX:
        return dataclasses.replace(d, dtype=values)
    return d if values == "spd" and not d.is_square else dataclasses.replace(d, domain=values)


def guess(op: Any, seed: int = 0) -> list[Inputs]:
    """Guess inputs of an operation from its signature and source.

    Parameters
    ----------
    op : callable
        An operation, a `Function` class, or any function of tensors.
    seed : int, default 0
        The seed of the values and sizes.

    Returns
    -------
    list of Inputs
        Arguments to check it with, and complex ones where it conjugates.

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
    >>> [tuple(a.shape) for a in guess(linear)[0].args]
    [(4, 3), (2, 3), (2,)]
    """
    search = _Search(op, seed)
    answer = search.answer()
    if answer is None:
        raise search.refusal()
    return [search.inputs(answer), *search.complex(answer)]


def other_guesses(op: Any, seed: int = 0) -> list[list[Inputs]]:
    """Return inputs of other ranks than `guess` has, each of which works as well.

    For each rank one or more draws.
    """
    search = _Search(op, seed)
    answer = search.answer()
    return [] if answer is None else list(search.others(answer))
