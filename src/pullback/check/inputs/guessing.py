"""Guessing inputs from a signature and a source, by trial.

Owns the search: candidates.py has what may be tried. A guess is accepted if forward returns finite
floating results that depend on it, for larger values too, and backward takes it.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

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
    Candidates,
    Guess,
    Kind,
    arrays_of,
    as_text,
    deeper,
    described_call,
    hints_of,
    parameters_to_guess,
    shapes_of,
)
from pullback.check.inputs.drawing import GENERAL, LARGE, PROFILES, draw, draw_sizes
from pullback.check.inputs.reading import Reading
from pullback.check.inputs.shape_text import ArgumentSpec
from pullback.check.inputs.source import Use
from pullback.check.naming import name_of
from pullback.check.subject import Subject
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GradientError,
    GraphError,
    MissingRuleError,
    ShapeError,
    TensorIndexError,
)

MAX_TRIES = 600
_MAX_REFUSED = 40  # candidates that forward takes and backward does not
_MAX_OTHERS, _DRAWS = 3, 4  # guesses of other ranks, and draws of each
_SIZES = {"n": 4, "d": 3, "m": 2}
_LONG_SIZES = {"n": 9, "d": 7, "m": 2}  # several windows fit, and overlap
_WORKS, _LARGER, _UNSUMMED, _CONSTANT = range(4)  # how good a guess is


class CannotGuessError(ArgumentError):
    """No inputs were found that an operation accepts: `why`, and in `hint` what to give."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"check_op: {why}\nhint: {hint}")
        self.why = why
        self.hint = hint


class _Search:
    """The search for inputs of one operation."""

    def __init__(self, op: Any, seed: int) -> None:
        self.fn = callable_of(op)
        self.name, self.seed = name_of(self.fn), seed
        self.parameters = parameters_to_guess(self.fn)
        self.read = Reading(self.fn)
        self.candidates = Candidates(self.fn, self.parameters, self.read)
        self.sizes = _LONG_SIZES if self.read.of(Use.WINDOW) else _SIZES
        self.arrays = self._arrays()
        self.real: set[str] = set()  # what forward takes as real numbers, so that it is no index
        self.problems: dict[str, str] = {}  # from a candidate in words to what is wrong with it
        self.refused: list[str] = []  # what backward raised where forward did not

    def _arrays(self) -> set[str]:
        """Return the arguments that forward takes as arrays, not as tensors."""
        of, hints = self.read.of, hints_of(self.fn)
        plain = of(Use.ARRAY, Use.FOREIGN, Use.INDEX, Use.OVERWRITTEN)
        plain |= of(Use.COLUMNS, Use.POINTERS, Use.MASK)
        plain |= self.read.left_out - of(Use.CALLED, Use.NUMBER)
        plain |= {name for name, hint in hints.items() if hint is np.ndarray}
        tensors = {name for name, hint in hints.items() if hint is Tensor}
        return plain - of(Use.TENSOR, Use.GRADIENT) - tensors

    # -- drawing -------------------------------------------------------------------------------
    def inputs(self, guess: Guess, trial: int = 0, profile: str = GENERAL) -> Inputs:
        """Draw the arguments of a guess; trial 0 has the sizes 4, 3, 2."""
        every = [d for items in guess.specs.values() for d in items]
        sizes = draw_sizes(every, np.random.default_rng([self.seed, trial]), most=3)
        if trial == 0 or not sizes.keys() <= self.sizes.keys():
            sizes |= self.sizes
        said = [kind.value for kind in guess.kinds if kind.name == "said"]
        own = [name for name in sizes if name not in self.sizes]  # those of the docstring
        free = [name for name in self.sizes if not any(name in d.symbols for d in said)]
        sizes |= {plan: sizes[name] for plan, name in zip(free, own, strict=False)}
        rng = np.random.default_rng([self.seed, trial, PROFILES.index(profile)])
        drawn = {
            name: [self.as_input(name, draw(d, sizes, rng, profile, i), guess) for d in items]
            for i, (name, items) in enumerate(guess.specs.items())
        }
        bounded = frozenset(d.name for d in every if d.interval or d.domain == "latin")
        inputs = bind(self.parameters, drawn)
        return inputs._replace(
            notes=guess.notes, domains=structured(every), profile=profile, bounded=bounded
        )

    def as_input(self, name: str, drawn: Any, guess: Guess) -> Any:
        """Return a drawn array as a tensor; it requires grad if others are constants."""
        if not isinstance(drawn, np.ndarray) or name in self.arrays:
            return drawn
        constants = guess.constants | self.arrays
        asked = constants and drawn.dtype.kind in "fc" and name not in constants
        return box(drawn).requires_grad_(bool(asked))

    def trial(self, guess: Guess, trial: int, profile: str) -> Inputs | None:
        """Draw the arguments of a guess; None if these sizes have no such values."""
        try:
            return self.inputs(guess, trial, profile)
        except (ArgumentError, ValueError, IndexError):  # as of a symmetric array that is no square
            return None

    # -- searching -----------------------------------------------------------------------------
    def answer(self) -> Guess | None:
        """Return the first guess that works, else the best of those that may do; None if none."""
        best: dict[int, Guess] = {}
        hopeless: set[Any] = set()  # shapes and dtypes that no other values mend
        for kinds, specs in self.candidates.ranked():
            words, shapes = as_text(specs), shapes_of(specs)
            whole = {n for n, k in zip(specs, kinds, strict=True) if k.name in ("index", "mask")}
            if words in self.problems or shapes in hopeless or whole & self.real:
                continue
            if _UNSUMMED in best and any(len({*d.shape}) < len(d.shape) for d in arrays_of(specs)):
                continue  # squares hide which axes forward takes as one
            if len(self.problems) == MAX_TRIES or len(self.refused) == _MAX_REFUSED:
                break
            quality, problem, guess = self.judged(Guess(kinds, specs))
            if quality == _WORKS:
                return guess
            self.problems[words] = problem
            if quality is None and problem.partition(":")[0] in _OF_SHAPES:
                hopeless.add(shapes)
            if quality is not None:
                best.setdefault(quality, guess)
        return best[min(best)] if best else None

    def judged(self, guess: Guess) -> tuple[int | None, str, Guess]:
        """Return how good a guess is, what is wrong with it, and the guess refined."""
        values = self.values(guess, GENERAL)
        if values == NOT_FINITE or not isinstance(values, str):
            self.real.update(guess.reals())
        if isinstance(values, str):
            return None, values, guess
        other = self.values(guess, LARGE)
        quality = _LARGER if other == NOT_FINITE else _WORKS
        pairs = [] if isinstance(other, str) else list(zip(values, other, strict=False))
        if pairs and all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs):
            quality = _CONSTANT
        guess = self.resolved(self.symmetric(guess, values))
        error = self.raised(guess)
        if isinstance(error, GradientError) and error.unsummed and len(arrays_of(guess.specs)) > 1:
            return max(quality, _UNSUMMED), first_line(error), guess
        if error is not None:
            problem = f"backward raises {type(error).__name__}: {first_line(error)}"
            self.refused.append(problem)
            return None, problem, guess
        return quality, _SAYS[quality], guess

    def values(self, guess: Guess, profile: str) -> list[Array] | str:
        """Return forward's results, or why there are none."""
        inputs = self.trial(guess, 0, profile)
        return "no such values" if inputs is None else try_forward(self.fn, inputs)

    def works(self, guess: Guess) -> bool:
        """Return whether both passes take a guess."""
        try:
            self.gradients(guess)
        except Exception:
            return False
        return not isinstance(self.values(guess, GENERAL), str)

    def raised(self, guess: Guess) -> Exception | None:
        """Return what backward raises for a guess, None if it would raise that for any inputs."""
        try:
            found = self.gradients(guess)
        except (NameError, ImportError, MissingRuleError):
            return None
        except Exception as error:
            sure = isinstance(error, GradientError) and not error.argument
            return None if sure else error
        for name, g in found.items():
            if g is not None and host(g).size and not np.isfinite(host(g)).any():
                return GraphError(f"the gradient of `{name}` is finite nowhere")
        return None

    def gradients(self, guess: Guess) -> dict[str, Any]:
        """Return the gradients of the differentiated arguments, by name."""
        inputs = self.inputs(guess)
        subject = Subject(self.fn, inputs.args, inputs.kwargs)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run = subject.run()
            grads = run.vjp([np.ones_like(v) for v in run.values()])
        return dict(zip(subject.names, grads, strict=True))

    def symmetric(self, guess: Guess, values: list[Array]) -> Guess:
        """Return a guess with symmetric matrices where forward reads one triangle of them."""
        for name in guess.reals():
            d = guess.specs[name][0]
            if d.domain or len(d.shape or ()) < 2 or len({*(d.shape or ())[-2:]}) > 1:
                continue
            for half in (np.tril, np.triu):
                inputs = self.inputs(guess)
                for value in tree.leaves((inputs.args, inputs.kwargs)):
                    if (
                        holds_numbers(value)
                        and len({*host(value).shape[-2:]}) == 1 < host(value).ndim
                    ):
                        host(value)[...] = half(host(value))
                found = try_forward(self.fn, inputs)
                if not isinstance(found, str) and all(map(np.array_equal, found, values)):
                    return guess.with_specs(name, domain="symmetric")
        return guess

    # -- refining ------------------------------------------------------------------------------
    def resolved(self, guess: Guess) -> Guess:
        """Replace arguments without a gradient by numbers, or by constants.

        Only those of which neither the source nor a hint tells that they have one: of these a
        missing gradient is a mistake.
        """
        pairs = zip(guess.specs, guess.kinds, strict=True)
        unsure = [name for name, kind in pairs if not kind.sure and name in guess.reals()]
        for name in unsure:
            left_out = name in self.read.left_out
            why = "leaves it out" if left_out else self.without_gradient(guess, name)
            if not why:
                continue
            number = self.as_number(guess, name)
            if number is not None:
                value = number.specs[name][0].value
                note = f"`{name}` was passed as the number {value}, since backward {why}"
                guess = number._replace(notes=(*guess.notes, note))
            elif why != _RAISES:
                note = f"`{name}` was not differentiated, since backward {why}"
                constants = guess.constants | {name}
                guess = guess._replace(constants=constants, notes=(*guess.notes, note))
        return guess

    def without_gradient(self, guess: Guess, name: str) -> str:
        """Return why an argument is perhaps not to be differentiated; empty if it is."""
        try:
            found = self.gradients(guess).get(name, 0)
            return "gives no gradient for it" if found is None else ""
        except (GradientError, GraphError) as error:
            constant = guess._replace(constants=guess.constants | {name})
            alone = isinstance(error, GradientError) and not error.argument
            return "leaves it out" if alone and self.works(constant) else ""
        except Exception:
            return _RAISES

    def as_number(self, guess: Guess, name: str) -> Guess | None:
        """Return the guess with a number for an argument, if both passes take that."""
        for kind in self.candidates.kinds[name]:
            if kind.name == "value" and kind.value is not True:
                spec = [ArgumentSpec(name, value=kind.value)]
                number = guess._replace(specs=guess.specs | {name: spec})
                if self.works(number):
                    return number
        return None

    # -- further guesses -----------------------------------------------------------------------
    def others(self, answer: Guess) -> Iterator[list[Inputs]]:
        """Yield inputs of other ranks that work too, for each rank several draws.

        Few values may all be where a wrong rule is right; numbers alone have nothing to sum, to
        order or to move.
        """
        ranked = (found for kinds, found in self.candidates.ranked() if kinds == answer.kinds)
        for group in (ranked, deeper(answer.specs)):
            guesses = (answer._replace(specs=specs) for specs in group)
            yield from itertools.islice(self.working(guesses, answer), _MAX_OTHERS)

    def working(self, group: Iterable[Guess], answer: Guess) -> Iterator[list[Inputs]]:
        """Yield draws of the guesses that both passes take, one for each kind of shapes."""
        known = {answer.ranks()}
        for found in group:
            ranks = found.ranks()
            if ranks in known or not any(ranks) or isinstance(self.values(found, GENERAL), str):
                continue
            known.add(ranks)
            found = self.resolved(found._replace(constants=frozenset(), notes=()))
            if self.raised(found) is None:
                draws = (self.trial(found, k, GENERAL) for k in range(_DRAWS))
                yield [d for d in draws if d is not None]

    def further(self, answer: Guess) -> Iterator[Guess]:
        """Yield guesses with tensors in place of None, and with complex numbers, that work."""
        given, tells = self.read.of(Use.GRADIENT), self.read.tells
        none = [p.default is None and (p.name in given or not tells) for p in self.parameters]
        pairs = zip(none, answer.kinds, strict=True)
        kinds = tuple(Kind("array", sure=True) if filled else kind for filled, kind in pairs)
        if kinds != answer.kinds:
            found = (specs for _, specs in itertools.islice(self.candidates.of_kinds(kinds), 60))
            filled = (Guess(kinds, specs, answer.constants) for specs in found)
            yield from itertools.islice((guess for guess in filled if self.works(guess)), 1)
        conjugated = self.read.of(Use.CONJUGATED)
        for names in (conjugated, set(answer.reals())) if conjugated else ():
            guess = answer
            for name in names & set(answer.reals()):
                guess = guess.with_specs(name, dtype="complex128", domain="", interval=None)
            if self.works(guess):
                yield guess
                return

    def refusal(self) -> CannotGuessError:
        """Return the error for inputs that cannot be guessed."""
        pairs = list(self.problems.items()) or [("no arguments", "nothing to differentiate")]
        words, problem = pairs[0]
        some = [f"  {w}: {c}" for w, c in pairs[1 :: max(1, len(pairs) // 2)][:2]]
        problem = self.refused[0] if self.refused else problem
        why = (
            f"inputs of `{self.name}` could not be guessed, got "
            f"{problem.rstrip('.')} for {words}. Tried {len(self.problems)}, among them:\n"
        )
        return CannotGuessError(why + "\n".join(some), f"describe them: {described_call(self.fn)}")


# Exceptions that do not depend on the values of arrays.
_OF_SHAPES = {
    kind.__name__
    for kind in (ShapeError, DTypeError, IndexError, TensorIndexError, TypeError, ArgumentTypeError)
}
_RAISES = "raises otherwise"
_SAYS = ("", "a result that is not finite, for larger values", "", "a result that is constant")


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
        Arguments to check it with: values of scale 1; with zeros and equal values; larger ones.
        Their sizes differ where forward accepts that.

    Raises
    ------
    CannotGuessError
        If forward accepts nothing that was tried; lists some trials, and how to describe inputs.
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
    trials = [search.inputs(answer)]
    for trial, profile in enumerate(PROFILES[1:], 1):
        for sizes in (trial, 0):  # perhaps it is the sizes
            other = search.trial(answer, sizes, profile)
            if other is not None and not isinstance(try_forward(search.fn, other), str):
                trials.append(other)
                break
    return trials + [search.inputs(more) for more in search.further(answer)]


def other_guesses(op: Any, seed: int = 0) -> list[list[Inputs]]:
    """Return inputs of other ranks than `guess` has, each of which works as well.

    For each rank one or more draws.
    """
    search = _Search(op, seed)
    answer = search.answer()
    return [] if answer is None else list(search.others(answer))
