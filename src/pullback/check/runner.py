"""One operation on one set of inputs or on several: explicit, described, drawn or guessed ones.

Owns the choice of the inputs, and how the reports on several calls become one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.check.agreement import wrong_at
from pullback.check.api import check
from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.exceptions import BackwardError
from pullback.check.inputs.arguments import (
    ENDLESS,
    Change,
    Inputs,
    draw_described,
    format_inputs,
    on_domains,
    read_by_half,
    taken,
    try_forward,
)
from pullback.check.inputs.candidates import described_call
from pullback.check.inputs.domains import DOMAINS, recognised
from pullback.check.inputs.guessing import CannotGuessError, guess
from pullback.check.inputs.shape_text import documented
from pullback.check.inputs.strategies import is_strategy, search
from pullback.check.inputs.vary import changed, vary
from pullback.check.naming import name_of, parameters_of, quoted
from pullback.check.report import FAILED, PASSED, PartResult, Report, Unchecked
from pullback.check.session import Session
from pullback.check.slopes import Options
from pullback.check.subject import Run, Subject
from pullback.check.values import holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError

# The parts that depend on the values: further sets of inputs run only these.
OF_VALUES = ("first", "masks")
_CALLS = 8  # of which two of a random operation differ


def _complete(fn: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """Return whether the keyword arguments are all that a call needs."""
    try:
        inspect.signature(fn).bind(**kwargs)
    except (TypeError, ValueError) as error:
        return bool(kwargs) and isinstance(error, ValueError)  # it has no signature
    return bool(kwargs)


def _rest(fn: Callable[..., Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of the remaining arguments."""
    given = {k: box(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    rest: Any = functools.partial(fn, **given)
    rest.name, rest.forward = name_of(fn), getattr(fn, "forward", fn)
    found: Callable[..., Any] = rest if kwargs else fn
    return found


class Runner:
    """Checks one operation on one set of inputs or on several."""

    def __init__(
        self,
        fn: Callable[..., Any],
        options: Options,
        parts: tuple[str, ...],
        kwargs: dict[str, Any],
        surrogate: str = "",
    ) -> None:
        self.fn = fn
        self.options = options
        self.parts = parts
        self.kwargs = kwargs
        self.surrogate = surrogate or getattr(fn, "surrogate_reason", "")
        self.parameters = parameters_of(fn)
        names = [p.name for p in self.parameters or ()]
        shapes = {name: described.shape for name, described in documented(fn, names).items()}
        self.said = {name: tuple(map(str, shape)) for name, shape in shapes.items() if shape}
        self.base: Subject | None = None  # the call whose gradients are right, if they are

    # -- choosing the inputs -------------------------------------------------------------------
    def report(self, inputs: Sequence[Any]) -> Report:
        """Check the operation on inputs as `check_op` takes them."""
        rest, seed = _rest(self.fn, self.kwargs), self.options.seed
        if any(is_strategy(value) for value in inputs):
            return self.check_drawn(inputs)
        if not inputs and not _complete(self.fn, self.kwargs):
            try:
                with deadline().leaving_out():
                    guessed = guess(rest, seed)
            except CannotGuessError as error:
                return self._not_checked(error.why, error.hint)
            except OutOfTimeError:
                reason = f"while its inputs were guessed, {deadline().reason()}"
                return self._not_checked(reason, f"give inputs: {described_call(rest)}")
            return self.guessed(rest, self._whole(guessed))
        if len(inputs) == 1 and isinstance(inputs[0], str) and ":" in inputs[0]:
            return self.check_described(self._whole(draw_described(rest, inputs[0], seed)))
        given = self._taken(Inputs(tuple(inputs), self.kwargs))
        return self.varied(self.check_one(given), given)

    def _taken(self, given: Inputs) -> Inputs:
        """Return a call; that of the items where forward does not take the one tuple it has."""
        only = given.args[0] if len(given.args) == 1 else None
        if not isinstance(only, (str, tuple)):
            return given
        problem = try_forward(self.fn, given)
        if not isinstance(problem, str):
            return given
        what, hint = "a text", f"write a colon after each name: {described_call(self.fn)}"
        if isinstance(only, tuple):
            items = given._replace(args=only)
            if not isinstance(try_forward(self.fn, items), str):
                return items
            what = f"one tuple of {len(only)}, which fits neither as one argument nor as several"
            hint = "pass the arguments one after the other"
        raise ArgumentError(
            f"check_op: a description of the inputs, or arguments that `{name_of(self.fn)}` takes, "
            f"are required, got {what}, of which forward says: {problem}\nhint: {hint}."
        )

    def guessed(self, rest: Callable[..., Any], inputs: Inputs) -> Report:
        """Check guessed inputs; a mistake counts if it repeats nearby."""
        self.options = dataclasses.replace(self.options, guessed=True)
        report = self.check_described(inputs)
        if report.failures and self._is_random(inputs):
            why = "forward draws random numbers where it is given no seed or generator"
            return self._not_checked(why, f"give it one: {described_call(rest)}")
        plain = [f for f in report.failures if f.part == "first" and not f.situation]
        if plain and not self._wrong(self._subject(inputs)):
            why = "the disagreement at the guess does not repeat nearby, or forward is rough"
            return self._not_checked(why, f"give others: {described_call(rest)}")
        return report

    def _is_random(self, inputs: Inputs) -> bool:
        """Return whether one call has several results."""
        calls = (try_forward(self.fn, inputs) for _ in range(_CALLS))
        return len({repr(found) for found in calls}) > 1

    # -- varying them --------------------------------------------------------------------------
    def varied(self, report: Report, inputs: Inputs) -> Report:
        """Compare derivatives with other settings and values too; return the report on all."""
        wrong_here = any(failure.part in OF_VALUES for failure in report.failures)
        left_out = self.options.fast or "first" not in self.parts or self.surrogate
        if wrong_here or left_out or report.precision:  # at other calls it may be coarser
            return report
        self.base = Subject(self.fn, inputs.args, inputs.kwargs)
        try:
            with deadline().leaving_out():
                inputs = inputs._replace(domains=inputs.domains or read_by_half(self.base))
                self._vary(report, inputs)
        except OutOfTimeError:
            report.notes.append(f"other settings and values left out: {deadline().slowness()}")
        return report

    def _vary(self, report: Report, inputs: Inputs) -> None:
        """Merge what is wrong at another call into the report; it ends with the first mistake."""
        fn, seed = on_domains(self.fn, inputs.domains), self.options.seed
        changes: Sequence[Change]
        for changes in vary(fn, inputs, seed):
            first = taken(fn, changed(inputs, changes))
            if first == ENDLESS:
                report.notes.append("other values left out: forward does not end at some")
                return
            names = [] if isinstance(first, str) else self._wrong(*first)
            if not names:
                continue
            with deadline().as_time_allows():
                changes, names = self._simplest(fn, inputs, changes, names)
            found = self.check_one(changed(inputs, changes), ("first",))
            found.notes = []  # on the user's own inputs they are enough
            found.failures = [f for f in found.failures if "" in names or f.argument in names]
            if found.failures:  # so no other size is needed to show the mistake
                report.failures = [f for f in report.failures if f.cause.name != "size"]
                merge(report, found, f"with {', '.join(change.what for change in changes)}")
                return

    def _simplest(
        self, fn: Callable[..., Any], inputs: Inputs, changes: Sequence[Change], names: list[str]
    ) -> tuple[Sequence[Change], list[str]]:
        """Return as few changes as show a mistake, and what is wrong there."""
        for change in changes:
            fewer = [other for other in changes if other is not change]
            first = taken(fn, changed(inputs, fewer)) if fewer else ""
            found = [] if isinstance(first, str) else self._wrong(*first)
            if found:
                changes, names = fewer, found
        return changes, names

    def _wrong(self, subject: Subject, run: Run | None = None) -> list[str]:
        """Return the arguments whose gradient is wrong at a call that nobody gave."""
        subject.base = self.base
        session = Session(subject, self.options, Report(subject.name, self.options.seed))
        try:
            return [subject.names[i] for i in wrong_at(session, run)]
        except BackwardError:
            return [""]

    # -- one call ------------------------------------------------------------------------------
    def _whole(self, inputs: Inputs) -> Inputs:
        """Return a call with the user's keyword arguments too."""
        return inputs._replace(kwargs=self.kwargs | inputs.kwargs)

    def _subject(self, inputs: Inputs) -> Subject:
        fn = on_domains(self.fn, inputs.domains)
        return Subject(fn, inputs.args, inputs.kwargs, self.surrogate)

    def _not_checked(self, why: str, hint: str) -> Report:
        """Return the report on an operation for which there are no inputs."""
        report = Report(name_of(self.fn), self.options.seed)
        report.unchecked.append(Unchecked(f"`{report.name}`", why, hint))
        return report

    def check_one(
        self, inputs: Inputs, parts: Sequence[str] | None = None, fast: bool = False
    ) -> Report:
        """Check one set of inputs."""
        subject = self._subject(inputs)
        subject.said, subject.base = self.said, self.base
        options = dataclasses.replace(self.options, fast=self.options.fast or fast)
        report = check(subject, options, self.parts if parts is None else parts)
        if report.ok or inputs.domains:
            return report
        words: dict[str, str] = {}
        with deadline().as_time_allows():
            words = read_by_half(subject)
        if words:
            report = self.check_one(inputs._replace(domains=words), parts)
            report.notes.append(
                f"forward reads one triangle of {quoted(words)} alone, or takes no other matrices "
                "than symmetric ones: the gradient is compared along these"
            )
            return report
        for name, array in zip(subject.names, subject.arrays, strict=True):
            word = recognised(array)
            if word:
                shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
                report.notes.append(
                    f"`{name}` is {DOMAINS[word].title}: if forward needs that, describe it, so "
                    f'that it is kept: "{name}: ({shape}) {word}"'
                )
        return report

    # -- several sets --------------------------------------------------------------------------
    def check_described(self, inputs: Inputs) -> Report:
        """Check inputs that nobody passed, and describe them in the report."""
        report = self.check_one(inputs)
        report.notes[:0] = [f"inputs: {self.summary(inputs)}", *inputs.notes]
        return self.varied(report, inputs)

    def check_drawn(self, inputs: Sequence[Any]) -> Report:
        """Check examples of strategies: each of them fast, the largest in all parts."""
        tried: list[tuple[Inputs, Report]] = []

        def passes(call: Inputs) -> bool:
            call = self._whole(call)
            tried.append((call, self.check_one(call, self._of_values(), fast=True)))
            return not tried[-1][1].failures

        smallest = search(inputs, passes, self.options.seed, 5 if self.options.fast else 20)
        # The largest failing example shows most of the pattern; the smallest is easy to read.
        pairs = [pair for pair in tried if smallest is None or pair[1].failures]
        largest, quickly = max(pairs, key=lambda pair: _elements(pair[0]))
        report = self.check_one(largest)
        if not report.failures:
            merge(report, quickly, "")
        what = f"inputs: {self.summary(largest)}"
        if smallest is None:
            report.notes.insert(0, f"{what}, the largest of {len(tried)} examples")
        else:
            values = format_inputs(smallest, self.parameters, values=True)
            report.notes[:0] = [what, f"the smallest inputs that fail: {values}"]
        return report

    def _of_values(self) -> tuple[str, ...]:
        return tuple(name for name in OF_VALUES if name in self.parts)

    def summary(self, inputs: Inputs) -> str:
        """Return the arguments in one line, arrays by shape."""
        return format_inputs(inputs, self.parameters)


def _elements(inputs: Inputs) -> int:
    values = tree.leaves((inputs.args, inputs.kwargs))
    return sum(host(v).size for v in values if holds_numbers(v))


def merge(report: Report, other: Report, situation: str) -> None:
    """Merge another report into this one: the worse status, new failures, new notes."""
    order = {PASSED: 1, FAILED: 2}
    titles = {part.name: part for part in other.parts}
    for i, part in enumerate(report.parts):
        found = titles.get(part.name, part)
        if order.get(found.status, 0) > order.get(part.status, 0):
            report.parts[i] = PartResult(part.name, part.title, found.status, found.reason)
    known = {(f.part, f.argument, f.cause.name) for f in report.failures}
    for failure in other.failures:
        if (failure.part, failure.argument, failure.cause.name) not in known:
            both = "; ".join(text for text in (failure.situation, situation) if text)
            report.failures.append(dataclasses.replace(failure, situation=both))
    report.notes += [note for note in other.notes if note not in report.notes]
