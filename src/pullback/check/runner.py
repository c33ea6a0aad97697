"""One operation on one set of inputs or on several: explicit, described, drawn or guessed ones.

Owns the loop over the parts of a check, the choice of the inputs, and how what several calls show
becomes one report.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from pullback.check.comparison import wrong_at
from pullback.check.deadline import WAY_OUT, OutOfTimeError, deadline
from pullback.check.inputs.arguments import (
    ALWAYS,
    ENDLESS,
    Inputs,
    draw_described,
    first_run,
    format_inputs,
    results_of,
    taken,
)
from pullback.check.inputs.domains import on_domains, read_by_half, recognised
from pullback.check.inputs.guessing import CannotGuessError, described_call, guesses
from pullback.check.inputs.shape_text import documented
from pullback.check.inputs.strategies import is_strategy, search
from pullback.check.inputs.vary import changed, vary
from pullback.check.properties import PARTS, Part
from pullback.check.report import (
    InapplicableError,
    Options,
    PartResult,
    Report,
    Status,
    Unchecked,
    first_line,
    quoted,
)
from pullback.check.session import Session
from pullback.check.subject import (
    BackwardError,
    ForwardError,
    Subject,
    device_key,
    name_of,
    parameters_of,
)
from pullback.check.values import holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError

# The parts that depend on the values: further sets of inputs run only these.
OF_VALUES = ("first", "masks")
_OTHERS = 5  # guesses of other kinds that may show that the first is not meant
_MANY = 8  # numbers that are sorted by chance seldom


def check(subject: Subject, options: Options, among: Sequence[str] = ()) -> Report:
    """Run the parts that are chosen on one call; none after an essential part that failed."""
    report = Report(subject.name, options.seed, rule=device_key(subject.fn))
    session, stopped = Session(subject, options, report), ""
    for k, part in enumerate(PARTS):
        result = PartResult(part.name, part.title, Status.NOT_RUN, stopped)
        report.parts.append(result)
        chosen = options.chooses(part.name) and (not among or part.name in among)
        if not chosen or (options.fast and not part.fast):
            result.status, result.reason = Status.SKIPPED, ""
        elif not stopped:
            deadline().show(f"{report.name}: {part.title} ({k + 1} of {len(PARTS)})")
            result.status, result.reason = _named(part)(part, session)
            if result.status == Status.FAILED and part.name in options.ignore:
                result.status, result.reason = Status.IGNORED, options.ignore[part.name]
                if part.name == "first":
                    subject.surrogate = result.reason  # of what compares it again, too
            if result.status == Status.NOT_RUN:
                stopped = result.reason
            elif result.status == Status.FAILED and part.essential:
                stopped = f"{part.title} failed"
    ignored = [failure for failure in report.failures if failure.part in options.ignore]
    report.failures = [failure for failure in report.failures if failure.part not in options.ignore]
    report.ignored = [dataclasses.replace(failure, find_repair=None) for failure in ignored]
    late = [part for part in report.parts if part.status == Status.NOT_RUN]
    if late and not report.failures:
        titles = ", ".join(part.title for part in late)
        report.unchecked.append(Unchecked(titles, late[0].reason, WAY_OUT))
    return report


def _named(part: Part) -> Callable[[Part, Session], tuple[Status, str]]:
    """Return what runs a part, under its name: where Python dies, its last words have that."""

    def run(part: Part, session: Session) -> tuple[Status, str]:
        return part.run(session)

    return FunctionType(run.__code__.replace(co_name=f"the part `{part.name}`"), globals())


class Runner:
    """Checks one operation on one set of inputs or on several."""

    def __init__(self, fn: Callable[..., Any], options: Options, kwargs: dict[str, Any]) -> None:
        self.fn, self.rest, self.options, self.kwargs = fn, fn, options, kwargs
        if kwargs:  # the function of the remaining arguments
            given = {
                k: box(v.copy()) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()
            }
            rest: Any = functools.partial(fn, **given)
            rest.name, rest.forward = name_of(fn), getattr(fn, "forward", fn)
            self.rest = rest
        self.surrogate = options.surrogate or getattr(fn, "surrogate_reason", "")
        self.parameters = parameters_of(fn) or []
        shapes = documented(fn, [p.name for p in self.parameters])
        self.said = {n: tuple(map(str, spec.shape)) for n, spec in shapes.items() if spec.shape}
        self.base: Subject | None = None  # the call whose gradients are right, if they are
        self.passed = False  # whether the inputs are the user's own

    # -- choosing the inputs -------------------------------------------------------------------
    def report(self, inputs: Sequence[Any]) -> Report:
        """Check the operation on inputs as `check_op` takes them."""
        needed = {
            p.name
            for p in self.parameters
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        if any(is_strategy(value) for value in inputs):
            return self._drawn(inputs)
        if not inputs and not (self.kwargs and needed <= self.kwargs.keys()):
            return self._guessed()
        if len(inputs) == 1 and isinstance(inputs[0], str) and ":" in inputs[0]:
            drawn = self._whole(draw_described(self.rest, inputs[0], self.options.seed))
            try:
                Subject(self.fn, drawn.args, drawn.kwargs).run()
            except ForwardError as error:  # of which the description may be the cause
                why = f"forward does not take what was described: {first_line(error)}"
                if not str(error).startswith(ALWAYS):
                    return self._unchecked(why, "describe other inputs, or pass some")
            return self._described(drawn)
        self.passed = True
        return self._varied(self._whole(self._taken(Inputs(tuple(inputs), self.kwargs))))

    def _taken(self, given: Inputs) -> Inputs:
        """Return a call; that of the items where forward does not take the one tuple it has."""
        only = given.args[0] if len(given.args) == 1 else None
        if not isinstance(only, (str, tuple)):
            return given
        calls = [given, given._replace(args=only)] if isinstance(only, tuple) else [given]
        for call in calls:
            problem = first_run(self.fn, call)
            if not isinstance(problem, str):
                return call
        what = f"one tuple of {len(only)}, which fits neither as one argument nor as several"
        hint = "pass the arguments one after the other"
        if isinstance(only, str):
            what, hint = "a text", f"write a colon after each name: {described_call(self.fn)}"
        raise ArgumentError(
            f"check_op: a description of the inputs, or arguments that `{name_of(self.fn)}` takes, "
            f"are required, got {what}, of which forward says: {problem}\nhint: {hint}."
        )

    def _whole(self, inputs: Inputs) -> Inputs:
        """Return a call with the user's keyword arguments, and the matrices that are read by half.

        These are moved along symmetric ones.
        """
        inputs = inputs._replace(kwargs=self.kwargs | inputs.kwargs)
        words: dict[str, str] = {}
        if not inputs.domains:
            with deadline().as_time_allows():
                words = read_by_half(Subject(self.fn, inputs.args, inputs.kwargs))
        if not words:
            return inputs
        note = (
            f"forward reads one triangle of {quoted(words)} alone, or takes no other matrices than "
            "symmetric ones: the gradient is compared along these"
        )
        return inputs._replace(domains=words, notes=(*inputs.notes, note))

    def _guessed(self) -> Report:
        """Check guessed inputs; a mistake counts if it repeats nearby, and at other guesses."""
        every = guesses(self.rest, self.options.seed)
        try:
            with deadline().leaving_out():
                inputs = self._whole(next(every))
        except CannotGuessError as error:
            return self._unchecked(error.why, error.hint)
        except OutOfTimeError:
            return self._unchecked(f"while its inputs were guessed, {deadline().reason()}")
        self.options = dataclasses.replace(self.options, guessed=True)
        report = self._described(inputs)
        plain = any(f.part == "first" and not f.situation for f in report.failures)
        if report.failures and self._is_random(inputs):
            why = "forward draws random numbers where it is given no seed or generator"
            return self._unchecked(why)
        if plain and not self._wrong(inputs):
            why = "the disagreement at the guess does not repeat nearby, or forward is rough"
            return self._unchecked(why)
        if plain and (other := self._right_at(every)):
            why = f"at {inputs.text}, {report.failures[0].text}; all is right at {other.text}"
            call = described_call(self.rest, inputs.text)
            return self._unchecked(why, f"if the first are meant, describe them: {call}")
        if inputs.doubt:
            hint = f"if these are meant, describe them: {described_call(self.rest, inputs.text)}"
            what = f"`{report.name}` at other inputs than {inputs.text}"
            report.unchecked.insert(0, Unchecked(what, inputs.doubt, hint))
        return report

    def _right_at(self, others: Iterator[Inputs]) -> Inputs | None:
        """Return the first of some guesses at which the gradients are right."""
        with deadline().as_time_allows():
            for inputs in itertools.islice(map(self._whole, others), _OTHERS):
                if self._checked(inputs, OF_VALUES, fast=True).ok:
                    return inputs
        return None

    def _unchecked(self, why: str, hint: str = "") -> Report:
        name, hint = name_of(self.fn), hint or f"give inputs: {described_call(self.rest)}"
        return Report(name, self.options.seed, unchecked=[Unchecked(f"`{name}`", why, hint)])

    def _is_random(self, inputs: Inputs) -> bool:
        return len({repr(results_of(self.fn, inputs)) for _ in range(8)}) > 1

    def _described(self, inputs: Inputs) -> Report:
        """Check inputs that nobody passed, and describe them in the report."""
        report = self._varied(inputs)
        report.notes.insert(0, f"inputs: {format_inputs(inputs, self.parameters)}")
        return report

    def _drawn(self, inputs: Sequence[Any]) -> Report:
        """Check examples of strategies: each of them fast, the largest in all parts."""
        tried: list[tuple[Inputs, Report]] = []

        def passes(call: Inputs) -> bool:
            call = self._whole(call)
            tried.append((call, self._checked(call, OF_VALUES, fast=True)))
            return not tried[-1][1].failures

        smallest = search(inputs, passes, self.options.seed, 5 if self.options.fast else 20)
        # The largest failing example shows most of the pattern; the smallest is easy to read.
        pairs = [pair for pair in tried if smallest is None or pair[1].failures]
        largest, quickly = max(pairs, key=lambda pair: _elements(pair[0]))
        report = self._checked(largest)
        what = f"inputs: {format_inputs(largest, self.parameters)}"
        if smallest is None:
            report.notes.insert(0, f"{what}, the largest of {len(tried)} examples")
            return report
        report = report if report.failures else quickly
        values = format_inputs(smallest, self.parameters, values=True)
        report.notes[:0] = [what, f"the smallest inputs that fail: {values}"]
        return report

    # -- one call, and others ------------------------------------------------------------------
    def _checked(self, inputs: Inputs, among: Sequence[str] = (), fast: bool = False) -> Report:
        """Check one set of inputs."""
        fn = on_domains(self.fn, inputs.domains)
        subject = Subject(fn, inputs.args, inputs.kwargs, self.surrogate)
        subject.said, subject.base = self.said, self.base
        options = dataclasses.replace(self.options, fast=self.options.fast or fast)
        report = check(subject, options, among)
        report.notes[:0] = inputs.notes
        pairs = zip(subject.names, subject.arrays, strict=True)
        for name, array in pairs if self.passed and not (report.ok or inputs.domains) else ():
            word = recognised(array)
            if word and (word != "sorted" or array.size >= _MANY):
                shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
                report.notes.append(
                    f"`{name}` has the structure {word}: if forward needs that, describe it, so "
                    f'that it is kept: "{name}: ({shape}) {word}"'
                )
        return report

    def _varied(self, inputs: Inputs) -> Report:
        """Check one set of inputs, and compare derivatives with other settings and values too."""
        report = self._checked(inputs)
        wrong_here = any(failure.part in OF_VALUES for failure in report.failures)
        wrong_here |= any(part.status == Status.NOT_RUN for part in report.parts)
        options, coarse = self.options, report.precision  # at other calls it may be coarser
        left_out = options.fast or self.surrogate or not options.chooses("first")
        if wrong_here or left_out or "first" in options.ignore or coarse:
            return report
        self.base = Subject(self.fn, inputs.args, inputs.kwargs)
        try:
            with deadline().leaving_out():
                self._vary(report, inputs)
        except OutOfTimeError:
            report.notes.append(f"other settings and values left out: {deadline().reason()}")
        except InapplicableError as reason:
            report.notes.append(f"other values left out: {reason}")
        return report

    def _vary(self, report: Report, inputs: Inputs) -> None:
        """Report what is wrong at another call; end with the first mistake."""
        varied = {*inputs.bounded}
        for changes in vary(on_domains(self.fn, inputs.domains), inputs, self.options.seed):
            varied |= {change.name for change in changes}
            names = self._wrong(changed(inputs, changes))
            if not names:
                continue
            fewest = changes
            with deadline().as_time_allows():
                for change in changes:
                    fewer = tuple(other for other in fewest if other is not change)
                    found = self._wrong(changed(inputs, fewer)) if fewer else []
                    if found:
                        fewest, names = fewer, found
            failures = self._checked(changed(inputs, fewest), ("first",)).failures
            failures = [f for f in failures if "" in names or f.argument in names]
            if not failures:
                continue
            # Of those on the user's own inputs, no other size is needed to show the mistake.
            report.failures = [f for f in report.failures if f.cause.name != "size"]
            for failure in failures:
                what = f"with {', '.join(change.what for change in fewest)}"
                what = f"{failure.situation}; {what}" if failure.situation else what
                report.failures.append(dataclasses.replace(failure, situation=what))
            first = next(part for part in report.parts if part.name == "first")
            first.status, first.reason = Status.FAILED, ""
            return
        assert self.base is not None
        whole = [n.partition("[")[0] for n, v in self.base.settings() if type(v) is int]
        fixed = dict.fromkeys(name for name in whole if name not in varied)
        if fixed:
            report.notes.append(f"{quoted(fixed)} had one value in all calls: pass others as well")

    def _wrong(self, inputs: Inputs) -> list[str]:
        """Return the arguments whose gradient is wrong at a call that nobody gave."""
        first = taken(on_domains(self.fn, inputs.domains), inputs)
        if first == ENDLESS:
            raise InapplicableError("forward does not end at some")
        if isinstance(first, str):
            return []
        subject, run = first
        subject.base = self.base
        session = Session(subject, self.options, Report(subject.name, self.options.seed))
        try:
            return [subject.names[i] for i in wrong_at(session, run)]
        except BackwardError:
            return [""]


def _elements(inputs: Inputs) -> int:
    values = tree.leaves((inputs.args, inputs.kwargs))
    return sum(host(v).size for v in values if holds_numbers(v))
