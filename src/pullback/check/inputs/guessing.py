"""Inputs that nobody gave: guessed from a signature, by names, hints, defaults and trying.

Owns the search: what a name means is in roles.py, which shapes go together in plans.py. A guess
counts when forward takes it and gives finite floating results that depend on it.
"""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.inputs.arguments import Inputs, bound, outcome, symmetric
from pullback.check.inputs.drawing import CHARACTERS, GENERAL, LARGE, draw, draw_sizes
from pullback.check.inputs.plans import Found, candidate, domains, in_words, plans
from pullback.check.inputs.roles import Role, callable_of, documented, named_role, roles_of
from pullback.check.inputs.shape_text import Described
from pullback.check.naming import name_of, parameters_of
from pullback.check.subject import Subject
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError, GradientError, GraphError

MOST_TRIES = 400
_SIZES = {"n": 4, "d": 3, "m": 2}
_KINDS = inspect.Parameter
_CONSTANT = "a result that does not depend on the values"


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
        self.documented = documented(self.fn, self.names)
        self.constants: set[str] = set()  # what is not differentiated
        self.tried: dict[str, str] = {}  # from a candidate in words to what came of it

    # -- trying --------------------------------------------------------------------------------
    def assignments(self) -> list[tuple[Role, ...]]:
        """Return roles for all arguments, those first that differ least from the likeliest."""
        ranges = [range(len(c)) for c in self.choices]
        ranked = itertools.islice(itertools.product(*ranges), 5000)
        orders = sorted(ranked, key=lambda order: (sum(order), max(order, default=0)))[:40]
        return [tuple(c[k] for c, k in zip(self.choices, order, strict=True)) for order in orders]

    def ranked(self) -> Iterator[tuple[tuple[Role, ...], Found]]:
        """Yield roles and candidates, the likeliest first; other roles cost as much as 24 plans."""
        waiting: list[tuple[int, tuple[Role, ...], Found]] = []
        for a, roles in enumerate(self.assignments()):
            waiting += [(24 * a + cost, roles, found) for cost, found in self.candidates(roles)]
            waiting.sort(key=lambda entry: entry[0])
            while waiting and waiting[0][0] < 24 * (a + 1) - 1:
                yield waiting.pop(0)[1:]
        for _, roles, found in waiting:
            yield roles, found

    def candidates(self, roles: Sequence[Role]) -> Iterator[tuple[int, Found]]:
        """Yield what the arguments may be when they have these roles, and how unlikely that is."""
        if self.documented:
            found = candidate(self.names, roles, plans(roles)[0])
            yield -1, found | {name: [d] for name, d in self.documented.items() if found[name]}
        for i, plan in enumerate(plans(roles, self.name)):
            for j, domain in enumerate(domains(self.name)):
                if domain != "spd" or "d, d" in (plan.first, plan.second):
                    yield i + 4 * j, candidate(self.names, roles, plan, domain, self.name)

    def inputs(self, found: Found, trial: int, character: str) -> Inputs:
        """Draw the arguments of a candidate; trial 0 has the sizes 4, 3, 2."""
        every = [d for items in found.values() for d in items]
        sizes = draw_sizes(every, np.random.default_rng([self.seed, trial]), most=3)
        if trial == 0 and _SIZES.keys() >= sizes.keys():
            sizes = _SIZES
        rng = np.random.default_rng([self.seed, trial, CHARACTERS.index(character)])
        drawn = {
            name: [self.as_input(name, draw(d, sizes, rng, character, i)) for d in items]
            for i, (name, items) in enumerate(found.items())
        }
        inputs = bound(self.parameters, drawn)
        return inputs._replace(symmetric=symmetric(every), character=character)

    def as_input(self, name: str, drawn: Any) -> Any:
        """Return a drawn array as a tensor; without constants all of them are differentiated."""
        if not isinstance(drawn, np.ndarray):
            return drawn
        asked = self.constants and drawn.dtype.kind in "fc" and name not in self.constants
        return box(drawn).requires_grad_(bool(asked))

    def search(self) -> tuple[tuple[Role, ...], Found] | None:
        """Return the first candidate that works; a constant one if there is no other."""
        constant = None
        for roles, found in self.ranked():
            words = in_words(found)
            if words in self.tried:
                continue
            if len(self.tried) == MOST_TRIES:
                break
            came = self.attempt(found)
            if not came:
                return roles, found
            if came == _CONSTANT:
                constant = constant or (roles, found)
            self.tried[words] = came
        return constant

    def attempt(self, found: Found) -> str:
        """Return what is wrong with a candidate; empty if nothing."""
        values = outcome(self.fn, self.inputs(found, 0, GENERAL))
        if isinstance(values, str):
            return values
        other = outcome(self.fn, self.inputs(found, 0, LARGE))
        same = not isinstance(other, str) and all(
            a.shape == b.shape and np.array_equal(a, b) for a, b in zip(values, other, strict=False)
        )
        return _CONSTANT if same else ""

    # -- what was found ------------------------------------------------------------------------
    def gradients(self, found: Found) -> dict[str, Any] | None:
        """Return backward's gradient for each tensor, by name; None where it raises.

        A gradient that the library refuses counts as one, for the check to tell more of it; one
        that backward's mapping leaves out does not.
        """
        inputs = self.inputs(found, 0, GENERAL)
        subject = Subject(self.fn, inputs.args, inputs.kwargs)
        try:
            run = subject.run()
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                grads = run.vjp([np.ones_like(v) for v in run.values()])
        except (GradientError, GraphError) as error:
            left_out = re.search(r"must return a gradient for the argument '(\w+)'", str(error))
            return {left_out[1]: None} if left_out else {}
        except Exception:
            return None
        return dict(zip(subject.names, grads, strict=False))

    def settled(self, roles: tuple[Role, ...], found: Found) -> tuple[Found, tuple[str, ...]]:
        """Give as numbers, or undifferentiated, what backward gives no gradient for.

        Only arguments that neither a name nor a hint calls a tensor: a missing gradient of those is
        a mistake.
        """
        pairs = zip(self.names, roles, strict=True)
        unsure = [n for n, role in pairs if role.kind == "array" and not role.sure]
        notes: list[str] = []
        for name in unsure:
            grads = self.gradients(found)
            if grads is not None and grads.get(name, 0) is not None:
                continue
            number = self.as_number(found, name)
            why = "since backward " + (
                "raises otherwise" if grads is None else "gives no gradient for it"
            )
            if number is not None:
                found = number
                notes.append(f"`{name}` was given as the number {found[name][0].value}, {why}")
            elif grads is not None:
                self.constants.add(name)
                notes.append(f"`{name}` was not differentiated, {why}")
        return found, tuple(notes)

    def as_number(self, found: Found, name: str) -> Found | None:
        """Return the candidate with a number for an argument, where both passes take that."""
        for role in self.choices[self.names.index(name)]:
            if role.kind == "value":
                changed = found | {name: [Described(name, value=role.value)]}
                if not self.attempt(changed) and self.gradients(changed) is not None:
                    return changed
        return None

    def optional(self, roles: tuple[Role, ...]) -> Found | None:
        """Return a candidate in which the tensors that are None by default are given too."""
        filled = list(roles)
        for i, p in enumerate(self.parameters):
            named = named_role(p.name)[0]
            if p.default is None and named.kind in ("weight", "bias"):
                filled[i] = named
        if filled == list(roles):
            return None
        for _, found in itertools.islice(self.candidates(filled), 60):
            if not self.attempt(found):
                return found
        return None

    def refuse(self) -> ArgumentError:
        """Return the error for inputs that cannot be guessed."""
        pairs = list(self.tried.items()) or [("no arguments", "nothing to differentiate")]
        words, came = pairs[0]
        some = [f"  {w}: {c}" for w, c in pairs[:1] + pairs[1 :: max(1, len(pairs) // 6)][:6]]
        return ArgumentError(
            f"check_op: inputs of `{self.name}` that forward takes could not be guessed, got "
            f"{came.rstrip('.')} for {words}. Tried {len(self.tried)}, among them:\n"
            + "\n".join(some)
            + f'\nhint: describe them: pb.check.check_op({self.name}, "{suggestion(self.fn)}")'
        )


def guess(op: Any, seed: int = 0) -> list[Inputs]:
    """Guess inputs of an operation from its signature.

    Parameters
    ----------
    op : callable
        An operation, a `Function` class, or any function of tensors.
    seed : int, default 0
        Where the values and sizes come from.

    Returns
    -------
    list of Inputs
        Arguments to check it with: values of scale 1, some with zeros and equal values, larger
        ones; with other sizes where forward takes those.

    Raises
    ------
    ArgumentError
        If forward takes nothing that was tried; says what was, and how to describe the inputs.

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
    roles, found = answer
    found, notes = search.settled(roles, found)
    trials = [search.inputs(found, 0, GENERAL)._replace(notes=notes)]
    for trial, character in enumerate(CHARACTERS[1:], 1):
        other = search.inputs(found, trial, character)
        if isinstance(outcome(search.fn, other), str):  # perhaps it is the sizes
            other = search.inputs(found, 0, character)
        if not isinstance(outcome(search.fn, other), str):
            trials.append(other)
    more = search.optional(roles)
    if more is not None:
        trials.append(search.inputs(more, 0, GENERAL))
    return trials


def suggestion(op: Any) -> str:
    """Return a text to begin from when describing the inputs of an operation.

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
    plan = plans(roles)[0]._replace(places="n,")
    return in_words(candidate([p.name for p in parameters], roles, plan)) or "x: (n, d)"
