"""Guessing inputs from a signature: by names, hints, defaults and trial.

Owns the search: roles.py has the meaning of names, plans.py the shapes that fit together. A guess
is accepted if forward returns finite floating results that depend on it.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.exceptions import first_line
from pullback.check.inputs.arguments import Inputs, bind, structured, try_forward
from pullback.check.inputs.drawing import GENERAL, LARGE, PROFILES, draw, draw_sizes
from pullback.check.inputs.mending import mended
from pullback.check.inputs.plans import Candidate, as_text, candidate_of, domains, plans
from pullback.check.inputs.reading import (
    ARRAY,
    CALLED,
    CONJUGATED,
    FOREIGN,
    GRADIENT,
    INDEX,
    NUMBER,
    TENSOR,
    axes,
    index_columns,
    is_of_complex,
    lengths,
    undifferentiated,
    uses,
)
from pullback.check.inputs.roles import (
    WINDOW,
    Role,
    callable_of,
    documented,
    documented_constants,
    hints_of,
    named_role,
    roles_of,
)
from pullback.check.inputs.shape_text import ArgumentSpec
from pullback.check.naming import name_of, parameters_of
from pullback.check.subject import Subject
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, GradientError, GraphError, MissingRuleError

MAX_TRIES = 400
_MAX_OTHERS = 3
_DRAWS = 4  # of each of these
_MAX_REFUSED = 40  # candidates that forward takes and backward does not
_MAX_MENDED = 4  # candidates of which each is the last one, as its refusal asks for it
_SIZES = {"n": 4, "d": 3, "m": 2}
_LONG_SIZES = {"n": 9, "d": 7, "m": 2}  # several windows fit, and overlap
_KINDS = inspect.Parameter
_INTEGERS = ("index", "labels", "mask")
_SHAPES_SAID = r"broadcast|core dimension|not aligned|too deep|dimensional|^ShapeError"
_INDICES_SAID = r"^IndexError: (only|arrays used as) in|^DTypeError: index"
_CONSTANT = "a result that does not depend on the values"


class CannotGuessError(ArgumentError):
    """No inputs were found that an operation accepts: `why`, and in `hint` what to give."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"check_op: {why}\nhint: {hint}")
        self.why = why
        self.hint = hint


class _Found(NamedTuple):
    """What a search found: roles, a candidate of them, and notes for the report."""

    roles: tuple[Role, ...]
    candidate: Candidate
    notes: tuple[str, ...]


def _arrays(fn: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> set[str]:
    """Return the arguments that forward takes as arrays, not as tensors, by its source."""
    read, hints = uses(fn), hints_of(fn)
    plain = {
        name
        for name, kinds in read.items()
        if kinds & {ARRAY, FOREIGN, INDEX} and TENSOR not in kinds
    }
    plain = {p.name for p in parameters if hints.get(p.name) is np.ndarray or p.name in plain}
    converted = {name for name, kinds in read.items() if TENSOR in kinds}
    if converted:  # forward works on arrays: whole numbers it does not convert are arrays already
        kinds = {p.name: named_role(p.name)[0].kind for p in parameters}
        plain |= {n for n, kind in kinds.items() if kind in _INTEGERS and n not in converted}
    for name in undifferentiated(fn) - converted:
        if hints.get(name) is not Tensor and not read.get(name, set()) & {CALLED, NUMBER}:
            plain.add(name)
    return {name for name in plain if GRADIENT not in read.get(name, ())}


def _kinds_of(found: Candidate) -> tuple[Any, ...]:
    """Return how many axes the arrays of a candidate have; None for other values."""
    every = (d for items in found.values() for d in items)
    return tuple(None if d.shape is None else len(d.shape) for d in every)


def _shapes_of(found: Candidate) -> tuple[Any, ...]:
    """Return the shapes and dtypes of the arrays of a candidate, and the other values."""
    every = (d for items in found.values() for d in items)
    return tuple((d.shape, d.dtype) if d.shape is not None else repr(d.value) for d in every)


def _as_said(said: ArgumentSpec, planned: ArgumentSpec, by_plan: bool) -> ArgumentSpec:
    """Return an argument of the shape that the docstring says, or of one with as many axes."""
    if planned.shape is None or said.shape is None:
        return said
    shape = said.shape
    if by_plan and len(planned.shape) == len(shape):
        pairs = zip(shape, planned.shape, strict=True)
        shape = tuple(own if own.isdigit() else other for own, other in pairs)
    says_more = said.dtype != "float64" or said.domain
    return dataclasses.replace(said if says_more else planned, shape=shape)


def _is_real(d: ArgumentSpec) -> bool:
    return d.shape is not None and d.dtype == "float64"


def _deeper(found: Candidate) -> Iterator[Candidate]:
    """Yield a candidate with one more axis of one array, the last array first."""
    for name, items in reversed(found.items()):
        if items and all(d.shape and d.dtype == "float64" for d in items):
            longer = [dataclasses.replace(d, shape=(*(d.shape or ()), "d")) for d in items]
            yield found | {name: longer}


def _with_ordered_pairs(inputs: Inputs) -> Inputs:
    """Return a call in which the first of two integers, as start and end, is the smaller one."""

    def ordered(value: Any) -> Any:
        array = host(value) if holds_numbers(value) else np.zeros(0)
        if array.dtype.kind not in "iu" or array.shape[1:] != (2,):
            return value
        low, high = array.min(axis=1), array.max(axis=1)
        low = np.where(low == high, np.maximum(low - 1, 0), low)
        pairs = np.stack([low, np.where(low == high, high + 1, high)], axis=1).astype(array.dtype)
        return box(pairs) if isinstance(value, Tensor) else pairs

    args, kwargs = tree.map_leaves(ordered, (inputs.args, inputs.kwargs))
    return inputs._replace(args=args, kwargs=kwargs)


def _is_same(a: Inputs, b: Inputs) -> bool:
    pairs = zip(tree.leaves((a.args, a.kwargs)), tree.leaves((b.args, b.kwargs)), strict=True)
    return all(x is y or (holds_numbers(x) and np.array_equal(host(x), host(y))) for x, y in pairs)


class _Guess:
    """The search for inputs of one operation."""

    def __init__(self, op: Any, seed: int) -> None:
        self.fn = callable_of(op)
        self.name = name_of(self.fn)
        self.seed = seed
        parameters = parameters_of(self.fn)
        if parameters is None:
            raise ArgumentError(
                f"check_op: inputs of `{self.name}` are required, since it has no signature to "
                "guess them from, got none.\nhint: pass arrays after the operation."
            )
        self.parameters = [p for p in parameters if p.kind is not _KINDS.VAR_KEYWORD]
        self.names = [p.name for p in self.parameters]
        self.choices = roles_of(self.parameters, self.fn)
        self.windowed = any(choices[0] == WINDOW for choices in self.choices)
        self.documented = documented(self.fn, self.names)
        self.axes, self.lengths = axes(self.fn), lengths(self.fn)
        self.columns = index_columns(self.fn)
        self.plain = _arrays(self.fn, self.parameters)
        self.left_out = self.plain & undifferentiated(self.fn)
        # Arguments that are not differentiated.
        self.constants = self.plain | documented_constants(self.fn, self.names)
        left_out = () if is_of_complex(self.fn) else ("complex",)
        self.domains = [domain for domain in domains(self.name) if domain not in left_out]
        self.tried: dict[str, str] = {}  # from a candidate in words to what is wrong with it
        self.refused: list[str] = []  # what backward raised where forward did not
        self.shapes_refused: set[Any] = set()
        self.narrow = False  # whether forward asks for float32
        self.careful = True  # whether larger values have to be in forward's domain too

    # -- trying --------------------------------------------------------------------------------
    def assignments(self) -> list[tuple[Role, ...]]:
        """Return roles for all arguments, the most likely combinations first."""
        ranges = [range(len(c)) for c in self.choices]
        ranked = itertools.islice(itertools.product(*ranges), 5000)
        orders = sorted(ranked, key=lambda order: (sum(order), max(order, default=0)))[:40]
        return [tuple(c[k] for c, k in zip(self.choices, order, strict=True)) for order in orders]

    def ranked(self) -> Iterator[tuple[tuple[Role, ...], Candidate]]:
        """Yield roles and candidates, the most likely first; each change of roles costs 24."""
        waiting: list[tuple[int, tuple[Role, ...], Candidate]] = []
        for a, roles in enumerate(self.assignments()):
            waiting += [(24 * a + cost, roles, found) for cost, found in self.candidates(roles)]
            waiting.sort(key=lambda entry: entry[0])
            while waiting and waiting[0][0] < 24 * (a + 1) - 1:
                yield waiting.pop(0)[1:]
        for _, roles, found in waiting:
            yield roles, found

    def candidates(self, roles: Sequence[Role]) -> Iterator[tuple[int, Candidate]]:
        """Yield candidates for arguments of these roles, each with a cost.

        What the docstring says of an argument holds; plans that fit what the source says of its
        axes come before those that differ.
        """
        if self.documented:
            for i, plan in enumerate(plans(roles)):
                found = self.known(candidate_of(self.names, roles, plan))
                yield i - 1 + self.strangeness(found), found
        for i, plan in enumerate(plans(roles, self.name)):
            for j, domain in enumerate(self.domains):
                if domain != "spd" or "d, d" in (plan.first, plan.second):
                    found = candidate_of(self.names, roles, plan, domain, self.name)
                    found = self.known(found, by_plan=True)
                    yield i + 4 * j + self.strangeness(found), found

    def known(self, found: Candidate, by_plan: bool = False) -> Candidate:
        """Return a candidate with what docstring and source say of the arguments.

        `by_plan` leaves the lengths along documented axes to the plan if it has as many axes: the
        symbols of a docstring may be others than those of arguments that it leaves out.
        """
        sized = {
            name: [dataclasses.replace(d, shape=(str(count),)) for d in found[name]]
            for name, count in self.lengths.items()
            if all(d.shape is not None for d in found.get(name, ()))
        }
        sized |= {
            name: [ArgumentSpec(name, ("n", str(count)), "int64", "latin")]
            for name, count in self.columns.items()
            if all(d.shape is not None for d in found.get(name, ()))
        }
        said = {
            name: [_as_said(d, planned, by_plan)]
            for name, d in self.documented.items()
            for planned in (found | sized)[name][:1]
        }
        return found | sized | said

    def strangeness(self, found: Candidate) -> int:
        """Return a cost for arrays that have fewer or more axes than the source uses."""
        differ = 0
        for name, (least, most) in self.axes.items():
            shapes = [d.shape for d in found.get(name, ()) if d.shape is not None]
            differ += sum(not least <= len(shape) <= most for shape in shapes)
        return 40 * differ

    def inputs(self, found: Candidate, trial: int, profile: str) -> Inputs:
        """Draw the arguments of a candidate; trial 0 has the sizes 4, 3, 2."""
        every = [d for items in found.values() for d in items]
        sizes = draw_sizes(every, np.random.default_rng([self.seed, trial]), most=3)
        if trial == 0 and _SIZES.keys() >= sizes.keys():
            chosen = _LONG_SIZES if self.windowed else _SIZES
            sizes = {name: chosen[name] for name in sizes}
        sizes = _SIZES | sizes  # an interval may name a size that no documented shape has
        rng = np.random.default_rng([self.seed, trial, PROFILES.index(profile)])
        drawn = {
            name: [self.as_input(name, draw(d, sizes, rng, profile, i)) for d in items]
            for i, (name, items) in enumerate(found.items())
        }
        inputs = bind(self.parameters, drawn)
        return inputs._replace(domains=structured(every), profile=profile)

    def as_input(self, name: str, drawn: Any) -> Any:
        """Return a drawn array as a tensor; it requires grad if others are constants."""
        if not isinstance(drawn, np.ndarray):
            return drawn
        if self.narrow and drawn.dtype == np.float64:
            drawn = drawn.astype(np.float32)
        if name in self.plain:
            return drawn
        asked = self.constants and drawn.dtype.kind in "fc" and name not in self.constants
        return box(drawn).requires_grad_(bool(asked))

    def search(self) -> _Found | None:
        """Return the first candidate that works, or one with constant results, or None.

        What backward raises for is a bad guess, as what forward raises for. Where larger values
        are refused for all candidates, such as by a logarithm of a difference, they may be.
        """
        answer = self.first()
        if answer is None and any("larger values" in problem for problem in self.tried.values()):
            self.careful = False
            self.tried = {w: p for w, p in self.tried.items() if "larger values" not in p}
            answer = self.first()
        return answer

    def first(self) -> _Found | None:
        """Return the first candidate that works, or one with constant results, or None."""
        constant = None
        for roles, found in self.ranked():
            next_one: Candidate | None = found
            for _ in range(_MAX_MENDED):
                words = as_text(next_one) if next_one else ""
                if next_one is None or words in self.tried or self.is_hopeless(next_one):
                    break
                if len(self.tried) == MAX_TRIES or len(self.refused) == _MAX_REFUSED:
                    return constant
                answer = self.judged(roles, next_one)
                if isinstance(answer, _Found):
                    return answer
                if answer == _CONSTANT and constant is None:
                    constant = self.constant(roles, next_one)
                self.tried[words] = answer
                next_one = self.asked_for(next_one, answer)
        return constant

    def asked_for(self, found: Candidate, problem: str) -> Candidate | None:
        """Return a candidate changed as forward's refusal asks for it, None if it does not."""
        if problem.startswith("backward"):
            return None
        return mended(found, problem, self.name) or self.with_indices(found, problem)

    def with_indices(self, found: Candidate, problem: str) -> Candidate | None:
        """Return a candidate with indices for a constant, if forward asks for indices.

        Of several that backward leaves out, the first that may be one.
        """
        reals = (n for n in self.names if n in self.left_out)
        name = next((n for n in reals if any(d.shape and _is_real(d) for d in found[n])), None)
        if name is None or not re.search(_INDICES_SAID, problem):
            return None
        return found | {
            name: [
                dataclasses.replace(d, dtype="int64", domain="", interval=None) for d in found[name]
            ]
        }

    def constant(self, roles: tuple[Role, ...], found: Candidate) -> _Found | None:
        """Return a candidate for which forward is constant, if backward takes it."""
        return None if self.raised(self.inputs(found, 0, GENERAL)) else _Found(roles, found, ())

    def judged(self, roles: tuple[Role, ...], found: Candidate) -> _Found | str:
        """Return a candidate, refined, if both passes take it; else what is wrong with it."""
        problem = self.attempt(found)
        if problem:
            if re.search(_SHAPES_SAID, problem):
                self.shapes_refused.add(_shapes_of(found))
            return problem
        known = set(self.constants)
        found = self.least_complex(found)
        resolved, notes = self.resolved(roles, found)
        problem = self.raised(self.inputs(resolved, 0, GENERAL))
        if not problem:
            return _Found(roles, resolved, notes)
        self.constants = known
        self.shapes_refused.add(_shapes_of(found))
        return problem

    def least_complex(self, found: Candidate) -> Candidate:
        """Return a candidate with real numbers in all arrays but one, if both passes take it."""
        names = [n for n, items in found.items() if any(d.dtype == "complex128" for d in items)]
        for kept in names if len(names) > 1 else ():
            real = {
                name: [dataclasses.replace(d, dtype="float64") for d in found[name]]
                for name in names
                if name != kept
            }
            changed = found | real
            if not self.attempt(changed) and not self.raised(self.inputs(changed, 0, GENERAL)):
                return changed
        return found

    def is_hopeless(self, found: Candidate) -> bool:
        """Return whether no values of these shapes will do, as others of them have shown."""
        return _shapes_of(found) in self.shapes_refused

    def others(self, answer: _Found) -> Iterator[list[Inputs]]:
        """Yield inputs of other shapes that work too, and with pairs of integers in order.

        Several draws of each, since few values may all be where a wrong rule is right; and not of
        numbers alone, which have nothing to sum, to order or to move.
        """
        ranked = (found for roles, found in self.ranked() if roles == answer.roles)
        for group in (ranked, _deeper(answer.candidate)):
            yield from itertools.islice(self.working(group, answer), _MAX_OTHERS)
        draws = [self.inputs(answer.candidate, k, GENERAL) for k in range(_DRAWS)]
        ordered = [_with_ordered_pairs(draw) for draw in draws]
        if not _is_same(draws[0], ordered[0]):
            yield [d for d in ordered if not isinstance(try_forward(self.fn, d), str)]

    def working(self, group: Iterable[Candidate], answer: _Found) -> Iterator[list[Inputs]]:
        """Yield draws of the candidates that both passes take, one for each kind of shapes."""
        kinds = {_kinds_of(answer.candidate)}
        for found in group:
            ranks = _kinds_of(found)
            if ranks in kinds or not any(ranks) or self.attempt(found):
                continue
            kinds.add(ranks)
            resolved, notes = self.resolved(answer.roles, found)
            first = self.inputs(resolved, 0, GENERAL)._replace(notes=notes)
            if not self.raised(first):
                draws = (self.trial(resolved, k, GENERAL) for k in range(1, _DRAWS))
                yield [first, *(d for d in draws if d is not None)]

    def raised(self, inputs: Inputs) -> str:
        """Return what backward raises, empty if nothing, or what it would raise for any inputs."""
        try:
            names, grads = self.run_backward(inputs)
        except (NameError, ImportError, MissingRuleError):
            return ""
        except Exception as error:
            if isinstance(error, GradientError) and self.is_sure(error):
                return ""
            problem = f"backward raises {type(error).__name__}: {first_line(error)}"
            self.refused.append(problem)
            return problem
        for name, g in zip(names, grads, strict=True):
            if g is not None and host(g).size and not np.isfinite(host(g)).any():
                return f"the gradient of `{name}` is finite nowhere"
        return ""

    def is_sure(self, error: GradientError) -> bool:
        """Return whether what is wrong with a gradient does not depend on the guess.

        A bias is smaller than what it is added to; no shape mends a misspelt name.
        """
        if error.unsummed:
            return named_role(error.argument)[0].kind == "bias"
        left_out = re.search(r"must return a gradient for the argument '(\w+)'", str(error))
        if left_out:
            return named_role(left_out[1])[0].sure
        return not re.search("wrong shape|dtype", str(error))

    def run_backward(self, inputs: Inputs) -> tuple[list[str], list[Any]]:
        """Return the names of the differentiated arguments and their gradients."""
        subject = Subject(self.fn, inputs.args, inputs.kwargs)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run = subject.run()
            return subject.names, run.vjp([np.ones_like(v) for v in run.values()])

    def attempt(self, found: Candidate) -> str:
        """Return what is wrong with a candidate; empty if nothing."""
        values = self.values(found, GENERAL)
        if isinstance(values, str) and "float32" in values and not self.narrow:
            self.narrow = True
            values = self.values(found, GENERAL)
        if isinstance(values, str):
            return values
        other = self.values(found, LARGE)
        if isinstance(other, str) and "not finite" in other and self.careful:
            return f"{other}, for larger values"
        same = not isinstance(other, str) and all(
            a.shape == b.shape and np.array_equal(a, b) for a, b in zip(values, other, strict=False)
        )
        return _CONSTANT if same else ""

    def values(self, found: Candidate, profile: str) -> list[Array] | str:
        """Return forward's results, or why there are none."""
        inputs = self.trial(found, 0, profile)
        return "no such values" if inputs is None else try_forward(self.fn, inputs)

    def trial(self, found: Candidate, trial: int, profile: str) -> Inputs | None:
        """Draw the arguments of a candidate; None if these sizes have no such values."""
        try:
            return self.inputs(found, trial, profile)
        except (ArgumentError, ValueError, IndexError):  # as of a symmetric array that is no square
            return None

    # -- refining ------------------------------------------------------------------------------
    def gradients(self, found: Candidate) -> dict[str, Any] | None:
        """Return backward's gradient for each tensor, by name; None where it raises.

        A gradient that the library refuses counts as present: the check reports it in detail. One
        that backward's mapping leaves out counts as missing.
        """
        try:
            names, grads = self.run_backward(self.inputs(found, 0, GENERAL))
        except (GradientError, GraphError) as error:
            left_out = re.search(r"must return a gradient for the argument '(\w+)'", str(error))
            return {left_out[1]: None} if left_out else {}
        except Exception:
            return None
        return dict(zip(names, grads, strict=False))

    def resolved(
        self, roles: tuple[Role, ...], found: Candidate
    ) -> tuple[Candidate, tuple[str, ...]]:
        """Replace arguments without a gradient by numbers, or by constants.

        Only those that neither a name nor a hint declares a tensor: for a tensor a missing gradient
        is a mistake. What backward's mapping leaves out is a constant; the notes say so.
        """
        pairs = zip(self.names, roles, strict=True)
        unsure = [n for n, role in pairs if role.kind == "array" and not role.sure]
        notes: list[str] = []
        known = [n for n in self.left_out if n in found]
        left_out = [n for n in known if any(d.shape and _is_real(d) for d in found[n])]
        for name in dict.fromkeys([*unsure, *left_out]):
            grads = dict.fromkeys(left_out) if name in left_out else self.gradients(found)
            if grads is not None and grads.get(name, 0) is not None:
                continue
            if name in left_out and name not in unsure:
                notes.append(f"`{name}` was not differentiated, since backward leaves it out")
                continue
            number = self.as_number(found, name)
            why = "since backward " + (
                "raises otherwise" if grads is None else "gives no gradient for it"
            )
            if number is not None:
                found = number
                notes.append(f"`{name}` was passed as the number {found[name][0].value}, {why}")
            elif grads is not None:
                self.constants.add(name)
                notes.append(f"`{name}` was not differentiated, {why}")
        return found, tuple(notes)

    def as_number(self, found: Candidate, name: str) -> Candidate | None:
        """Return the candidate with a number for an argument, if both passes accept that."""
        for role in self.choices[self.names.index(name)]:
            if role.kind == "value":
                changed = found | {name: [ArgumentSpec(name, value=role.value)]}
                if not self.attempt(changed) and self.gradients(changed) is not None:
                    return changed
        return None

    def further(self, answer: _Found) -> Iterator[Candidate]:
        """Yield candidates with tensors in place of None, and with complex numbers, that work."""
        filled = list(answer.roles)
        for i, p in enumerate(self.parameters):
            named = named_role(p.name)[0]
            if p.default is None and named.kind in ("weight", "bias"):
                filled[i] = named
        if filled != list(answer.roles):
            found = [found for _, found in itertools.islice(self.candidates(filled), 60)]
            yield from itertools.islice((f for f in found if not self.attempt(f)), 1)
        conjugated = [name for name, kinds in uses(self.fn).items() if CONJUGATED in kinds]
        if conjugated:
            options = (self.as_complex(answer.candidate, n) for n in (conjugated, self.names))
            works = (
                f
                for f in options
                if not self.attempt(f) and not self.raised(self.inputs(f, 0, GENERAL))
            )
            yield from itertools.islice(works, 1)

    def as_complex(self, found: Candidate, names: Sequence[str]) -> Candidate:
        """Return a candidate with complex numbers for some of the arrays."""
        changed = {
            name: [dataclasses.replace(d, dtype="complex128", domain="") for d in found[name]]
            for name in names
            if all(d.shape is not None and d.dtype == "float64" for d in found[name])
        }
        return found | changed

    def refuse(self) -> CannotGuessError:
        """Return the error for inputs that cannot be guessed."""
        pairs = list(self.tried.items()) or [("no arguments", "nothing to differentiate")]
        words, problem = pairs[0]
        some = [f"  {w}: {c}" for w, c in pairs[1 :: max(1, len(pairs) // 2)][:2]]
        if self.refused:
            problem = self.refused[0]
        why = (
            f"inputs of `{self.name}` could not be guessed, got "
            f"{problem.rstrip('.')} for {words}. Tried {len(self.tried)}, among them:\n"
        )
        hint = f"describe them: {described_call(self.fn)}"
        return CannotGuessError(why + "\n".join(some), hint)


def guess(op: Any, seed: int = 0) -> list[Inputs]:
    """Guess inputs of an operation from its signature.

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
    search = _Guess(op, seed)
    answer = search.search()
    if answer is None:
        raise search.refuse()
    _, found, notes = answer
    trials = [search.inputs(found, 0, GENERAL)._replace(notes=notes)]
    for trial, profile in enumerate(PROFILES[1:], 1):
        for sizes in (trial, 0):  # perhaps it is the sizes
            other = search.trial(found, sizes, profile)
            if other is not None and not isinstance(try_forward(search.fn, other), str):
                if not search.raised(other):
                    trials.append(other)
                break
    return trials + [search.inputs(more, 0, GENERAL) for more in search.further(answer)]


def other_guesses(op: Any, seed: int = 0) -> list[list[Inputs]]:
    """Return inputs of other shapes than `guess` has, each of which works as well.

    For each shape one or more draws.
    """
    search = _Guess(op, seed)
    answer = search.search()
    return [] if answer is None else list(search.others(answer))


def described_call(op: Any) -> str:
    """Return a call of `check_op` with a first description of an operation's inputs."""
    return f'pb.check.check_op({name_of(op)}, "{suggestion(op)}")'


def suggestion(op: Any) -> str:
    """Return a first description of the inputs of an operation, to be edited.

    Examples
    --------
    >>> def attend(query, keys, index, dim, eps=1e-6):
    ...     ...
    >>> suggestion(attend)
    'query: (n, d), keys: (n, d), index: (n,) int, dim: -1'
    """
    fn = callable_of(op)
    parameters = [p for p in parameters_of(fn) or [] if p.kind is not _KINDS.VAR_KEYWORD]
    roles = [choices[0] for choices in roles_of(parameters, fn)]
    plan = plans(roles)[0]._replace(index_shape="n,")
    return as_text(candidate_of([p.name for p in parameters], roles, plan)) or "x: (n, d)"
