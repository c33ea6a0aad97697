"""`check_op`: the check of an operation on explicit, described, drawn or guessed inputs.

Owns the choice of the inputs, and how the reports on several sets of them become one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.check.agreement import counts, looks_right
from pullback.check.api import check, checked_options, chosen_parts, judged, running
from pullback.check.comparison import max_abs
from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.exceptions import ForwardError
from pullback.check.inputs.arguments import (
    FirstRun,
    Inputs,
    bind,
    callable_of,
    format_inputs,
    on_domains,
    structured,
    try_forward,
)
from pullback.check.inputs.candidates import described_call
from pullback.check.inputs.domains import DOMAINS, recognised
from pullback.check.inputs.drawing import LARGE, PROFILES, SPECIAL, draw, draw_sizes
from pullback.check.inputs.guessing import (
    CannotGuessError,
    guess,
    other_guesses,
)
from pullback.check.inputs.settings import ENDLESS, taken
from pullback.check.inputs.shape_text import ArgumentSpec, documented, is_description, parse
from pullback.check.inputs.strategies import is_strategy, search, strategy_of
from pullback.check.inputs.vary import Variation, vary
from pullback.check.naming import name_of, parameters_of, quoted
from pullback.check.numerical import joined
from pullback.check.report import (
    FAILED,
    NOT_RUN,
    PASSED,
    SKIPPED,
    PartResult,
    Report,
    Unchecked,
)
from pullback.check.session import Options, Session
from pullback.check.subject import Subject
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError, ArgumentTypeError

# The parts that depend on the values: further sets of inputs run only these.
OF_VALUES = ("first", "masks")
_CALLS = 8  # of which two of a random operation differ


def check_op(
    op: Any,
    *inputs: Any,
    kwargs: dict[str, Any] | None = None,
    seed: int = 0,
    fast: bool = False,
    only: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    rtol: float | None = None,
    atol: float | None = None,
    raise_exception: bool = True,
    allow_unchecked: bool = False,
    time_limit: float = 60.0,
    surrogate: str = "",
    order: int = 1,
    ignore: Mapping[str, str] | None = None,
    repair: bool = True,
) -> Report:
    """Check the gradients of an operation, on explicit, described, drawn or guessed inputs.

    Parameters
    ----------
    op : callable
        An operation of `autograd_function`, a `Function` class, a built-in operation, or any
        differentiable function.
    *inputs : object
        Its positional arguments: tensors, arrays and others. Or one text that describes them, as
        ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``: shapes of symbols and numbers (a
        text without a colon is an argument of the operation itself),
        followed by a dtype and ``positive``, ``unit``, ``distinct``, ``spd`` or ``in [a, b]``; a
        name that occurs several times is a list of arrays. A tuple of all arguments, as PyTorch's
        gradcheck takes it, is taken apart.
        Or strategies of Hypothesis: one that draws all arguments, as `arguments` does, or one for
        each argument. Or nothing: then they are guessed from names, hints and defaults.
    kwargs : dict, optional
        Keyword arguments; if there are no positional ones, the remaining arguments are guessed.
    seed : int, default 0
        Seeds all random numbers; a check with the same seed repeats exactly.
    fast : bool, default False
        Compare along random directions only, with fewer inputs.
    only, skip : sequence of str, optional
        The parts to run, or not to run, by name: ``[part.name for part in pb.check.PARTS]``.
    rtol, atol : float, optional
        Tolerances, added to the error of the differences; the default depends on the dtype.
    raise_exception : bool, default True
        Whether a failure raises; otherwise look at ``report.outcome``.
    allow_unchecked : bool, default False
        Whether to warn, not raise, of what could not be checked.
    time_limit : float, default 60
        How long the check may take, in seconds. What is left by then counts as not checked.
    surrogate : str, optional
        Why the gradient is meant to differ from the derivative; then it is not compared with
        differences, and everything else is checked. An operation may declare it itself.
    order : int, default 1
        2 asks for second derivatives: a backward that cannot be differentiated is then wrong.
        Otherwise that is a note.
    ignore : dict of str to str, optional
        What may be wrong, by the name of the part that finds it, with the reason, as
        ``{"second_order": "used once only"}``. The report shows both.
    repair : bool, default True
        Whether the report seeks a change of the source that makes a wrong gradient right, once it
        is read. `fast` leaves it out.

    Returns
    -------
    Report
        On all sets of inputs; its notes show those that were described, drawn or guessed.

    Raises
    ------
    GradcheckError
        If a gradient is wrong; its attribute ``report`` is the report. `UncheckedError`, one of
        these, if nothing is wrong and something could not be checked, such as an operation whose
        inputs could not be guessed.
    ArgumentError, ArgumentTypeError
        If a text is not a valid description, or an argument of this function is wrong.
    MissingExtraError
        If an input is a strategy and Hypothesis is not installed.

    Examples
    --------
    >>> import pullback as pb
    >>> def forward(ctx, x, w):
    ...     ctx.save_for_backward(x=x, w=w)
    ...     return x @ w.T
    >>> def backward(ctx, grad_output):
    ...     x, w = ctx.saved_tensors
    ...     return {"x": grad_output @ w, "w": grad_output.T @ x}
    >>> dense = pb.autograd_function(forward, backward, name="dense")
    >>> report = pb.check.check_op(dense, "x: (n, d), w: (m, d)")
    >>> report.ok, report.notes[0]
    (True, 'inputs: x (4, 2), w (3, 2)')
    """
    __tracebackhide__ = True
    fn = callable_of(op)
    if not isinstance(kwargs, (dict, type(None))):
        raise ArgumentTypeError(
            f"check_op: kwargs must be a dict of arguments by name, got {type(kwargs).__name__}"
        )
    parts = chosen_parts("check_op", only, skip)
    options = checked_options("check_op", seed, fast, rtol, atol, order, ignore, repair, only)
    runner = _Runner(fn, options, parts, kwargs or {}, surrogate)
    with running("check_op", name_of(fn), time_limit, only):
        report = runner.report(inputs)
    return judged(report, options, raise_exception, allow_unchecked)


def _complete(fn: Callable[..., Any], kwargs: dict[str, Any] | None) -> bool:
    """Return whether the keyword arguments are all that a call needs."""
    if not kwargs:
        return False
    try:
        inspect.signature(fn).bind(**kwargs)
    except TypeError:
        return False
    except ValueError:  # it has no signature
        return True
    return True


def _rest(fn: Callable[..., Any], kwargs: dict[str, Any] | None) -> Callable[..., Any]:
    """Return the function of the remaining arguments."""
    if not kwargs:
        return fn
    rest: Any = functools.partial(
        fn, **{k: box(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    )
    rest.name, rest.forward = name_of(fn), getattr(fn, "forward", fn)
    found: Callable[..., Any] = rest
    return found


# -- described inputs ------------------------------------------------------------------------------
def draw_described(fn: Callable[..., Any], text: str, seed: int) -> list[Inputs]:
    """Draw several sets of the inputs that a text describes.

    The first has values of scale 1, the others have zeros and equal values, and larger values:
    forward need not accept these.
    """
    parameters = parameters_of(fn)
    spread = inspect.Parameter.VAR_KEYWORD
    free = parameters is None or any(p.kind is spread for p in parameters)
    found = parse("check_op", text, None if free else [p.name for p in parameters or []])
    _check_complete(fn, found, parameters or [])
    sets = []
    for trial, profile in enumerate(PROFILES):
        rng = np.random.default_rng([seed, trial])
        sizes = draw_sizes(found, rng)
        values: dict[str, list[Any]] = {}
        for i, d in enumerate(found):
            drawn = draw(d, sizes, rng, profile, i)
            values.setdefault(d.name, []).append(
                box(drawn) if isinstance(drawn, np.ndarray) else drawn
            )
        inputs = _bound(parameters, values)
        bounded = frozenset(d.name for d in found if d.interval or d.domain)
        sets.append(inputs._replace(domains=structured(found), profile=profile, bounded=bounded))
    return sets


def _bound(parameters: Sequence[inspect.Parameter] | None, values: dict[str, list[Any]]) -> Inputs:
    if parameters is None:
        return Inputs(tuple(v for some in values.values() for v in some), {})
    inputs = bind(parameters, values)
    known = {p.name for p in parameters}
    further = {name: some[0] for name, some in values.items() if name not in known}
    return inputs._replace(kwargs=inputs.kwargs | further)


def _check_complete(
    fn: Any, found: Sequence[ArgumentSpec], parameters: Sequence[inspect.Parameter]
) -> None:
    """Raise if a text leaves out an argument."""
    names = [d.name for d in found]
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for p in parameters:
        if p.kind in various:
            continue
        if p.name not in names and p.default is inspect.Parameter.empty:
            raise ArgumentError(
                f"check_op: a description of each argument of `{name_of(fn)}` is required, got "
                f"none of `{p.name}`.\nhint: the arguments are: "
                f"{', '.join(str(p) for p in parameters)}."
            )


# -- running ---------------------------------------------------------------------------------------
class _Runner:
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
        self.size = 0.0  # of its outputs
        self.guesses = False  # whether nobody gave the inputs

    # -- choosing the inputs -------------------------------------------------------------------
    def report(self, inputs: Sequence[Any]) -> Report:
        """Check the operation on inputs as `check_op` takes them."""
        rest, seed = _rest(self.fn, self.kwargs), self.options.seed
        if any(is_strategy(value) for value in inputs):
            return self.check_drawn(inputs)
        if not inputs and not _complete(self.fn, self.kwargs):
            try:
                with deadline().leaving_out():
                    sets = guess(rest, seed)
            except CannotGuessError as error:
                return self._not_checked(error.why, error.hint)
            except OutOfTimeError:
                reason = f"while its inputs were guessed, {deadline().reason()}"
                return self._not_checked(reason, f"give inputs: {described_call(rest)}")
            return self.guessed(rest, sets)
        if len(inputs) == 1 and isinstance(inputs[0], str) and is_description(inputs[0]):
            try:
                return self.check_sets(draw_described(rest, inputs[0], seed))
            except OutOfTimeError:
                return self._not_checked(deadline().reason(), deadline().way_out())
        given = self._taken(Inputs(tuple(inputs), {}))
        return self.varied(self.check_one(given), given)

    def _taken(self, given: Inputs) -> Inputs:
        """Return a call; that of the items where forward does not take the one tuple it has.

        And raise if forward does not take the one text it has, perhaps meant as a description.
        """
        (only,) = given.args if len(given.args) == 1 else (None,)
        if not isinstance(only, (str, tuple)):
            return given
        problem = try_forward(self.fn, self._whole(given))
        if not isinstance(problem, str):
            return given
        if isinstance(only, str):
            raise ArgumentError(
                f"check_op: a description of the inputs, or a text that `{name_of(self.fn)}` "
                f"takes, is required, got {only!r}, for which forward says: {problem}\n"
                f"hint: a description has a colon after each name: {described_call(self.fn)}"
            )
        items = given._replace(args=only)
        if isinstance(try_forward(self.fn, self._whole(items)), str):
            raise ArgumentError(
                f"check_op: arguments that `{name_of(self.fn)}` takes are required, got one tuple "
                f"of {len(only)}, which it takes neither as one argument nor as several; of the "
                f"tuple it says: {problem}\nhint: pass the arguments one after the other."
            )
        return items

    def guessed(self, rest: Callable[..., Any], sets: Sequence[Inputs]) -> Report:
        """Check guessed inputs; a rule that is right for other shapes may be meant for these."""
        self.guesses = True
        report = self.check_sets(sets)
        if report.failures and self._is_random(sets[0]):
            why = "forward draws random numbers where it is given no seed or generator"
            return self._not_checked(why, f"give it one: {described_call(rest)}")
        plain = [f for f in report.failures if f.part == "first" and not f.situation]
        if plain and not self._counting(self._subject(sets[0])):
            why = (
                "the disagreement at the inputs guessed does not repeat nearby, or forward is rough"
            )
            return self._not_checked(why, f"give others: {described_call(rest)}")
        if not plain or "missing-sum" in {f.cause.name for f in plain}:  # a bias is meant smaller
            return report
        for other, *more in other_guesses(rest, self.options.seed):
            if not all(self.check_one(draw, ("first",)).ok for draw in more):
                continue
            if self.varied(self.check_one(other, ("first",)), other).ok:
                why = (
                    f"backward is right for {self.summary(other)} and wrong for "
                    f"{self.summary(sets[0])}, and forward takes both: {report.failures[0]}"
                )
                hint = f"say which are meant, or refuse others: {described_call(rest)}"
                return self._not_checked(why, hint)
        return report

    def _is_random(self, inputs: Inputs) -> bool:
        """Return whether one call has several results."""
        found = [try_forward(self.fn, self._whole(inputs)) for _ in range(_CALLS)]
        runs = [outs for outs in found if not isinstance(outs, str)]
        pairs = [pair for run in runs for pair in zip(runs[0], run, strict=True)]
        return any(not np.array_equal(a, b) for a, b in pairs)

    # -- varying them --------------------------------------------------------------------------
    def varied(self, report: Report, inputs: Inputs) -> Report:
        """Compare derivatives with other settings and values too; return the report on all."""
        wrong_here = any(failure.part in OF_VALUES for failure in report.failures)
        if wrong_here or self.options.fast or "first" not in self.parts or self.surrogate:
            return report
        inputs = self._whole(inputs)
        self.base = Subject(self.fn, inputs.args, inputs.kwargs)
        try:
            with deadline().leaving_out():
                self.size = max_abs(*self.base.values(self.base.arrays))
                domains = inputs.domains or _read_by_half(self.base)
                inputs = inputs._replace(domains=domains)
                fn, seed = on_domains(self.fn, domains), self.options.seed
                for variation in vary(fn, self.parameters or (), inputs, seed, not self.guesses):
                    if variation.values and report.precision:  # there it may be coarser
                        continue
                    first = taken(fn, variation.inputs(fn))
                    if first == ENDLESS:
                        report.notes.append("other values left out: forward does not end at some")
                        break
                    if isinstance(first, str):
                        continue
                    what, found = self._compared(fn, variation, first, bool(report.unchecked))
                    if found.failures:  # so no other size is needed to show the mistake
                        report.failures = [f for f in report.failures if f.cause.name != "size"]
                    if what:
                        merge(report, found, f"with {what}")
                    if found.failures:
                        break
        except OutOfTimeError:
            report.notes.append(f"other settings and values left out: {deadline().slowness()}")
        return report

    def _compared(
        self, fn: Callable[..., Any], variation: Variation, first: FirstRun, unmeasured: bool
    ) -> tuple[str, Report]:
        """Return what is different in a call, no more than shows a mistake, and its report.

        Without words where there is nothing to tell of it.
        """
        nothing = "", Report(name_of(self.fn), self.options.seed)
        usual = self.options.rtol is None and not unmeasured
        if usual and looks_right(first, self.options.seed):
            return nothing
        names = self._counting(first.subject, variation.slack)
        if not names:
            found = self.check_one(variation.inputs(fn), ("first",)) if unmeasured else nothing[1]
            return nothing if not unmeasured or found.failures else (variation.what, found)
        with deadline().as_time_allows():
            variation, names = self._simplest(fn, variation, names)
        found = self.check_one(variation.inputs(fn), ("first",))
        found.notes = []  # on the user's own inputs they are enough
        found.failures = [f for f in found.failures if "" in names or f.argument in names]
        return (variation.what, found) if found.failures else nothing

    def _simplest(
        self, fn: Callable[..., Any], variation: Variation, names: list[str]
    ) -> tuple[Variation, list[str]]:
        """Return the variation with as few differences as show the mistake."""
        for other in variation.simpler():
            first = taken(fn, other.inputs(fn))
            if not isinstance(first, str):
                found = self._counting(first.subject, other.slack)
                if found:
                    return self._simplest(fn, other, found)
        return variation, names

    def _counting(self, subject: Subject, slack: float = 0.0) -> list[str]:
        """Return the arguments whose gradients are wrong at a call, as measurements tell."""
        report = Report(subject.name, self.options.seed)
        return counts(Session(subject, self.options, report), slack, self.size)

    # -- one call ------------------------------------------------------------------------------
    def _whole(self, inputs: Inputs) -> Inputs:
        return inputs._replace(kwargs=self.kwargs | inputs.kwargs)

    def _subject(self, inputs: Inputs) -> Subject:
        call, fn = self._whole(inputs), on_domains(self.fn, inputs.domains)
        return Subject(fn, call.args, call.kwargs, self.surrogate)

    def _not_checked(self, why: str, hint: str) -> Report:
        """Return the report on an operation for which there are no inputs."""
        report = Report(name_of(self.fn), self.options.seed)
        report.unchecked.append(Unchecked(f"`{report.name}`", why, hint))
        return report

    def check_one(self, inputs: Inputs, parts: Sequence[str] | None = None) -> Report:
        """Check one set of inputs."""
        subject = self._subject(inputs)
        subject.said, subject.base = self.said, self.base
        quick = self.options.fast or inputs.profile == LARGE
        options = dataclasses.replace(self.options, fast=quick)
        report = check(subject, options, self.parts if parts is None else parts)
        if report.ok or inputs.domains:
            return report
        words = _read_by_half(subject)
        if words:
            report = self.check_one(inputs._replace(domains=words), parts)
            report.notes.append(
                f"forward reads one triangle of {quoted(words)} alone, or takes no other matrices "
                "than symmetric ones: the gradient is compared along these"
            )
        else:
            self._suggest(report, subject)
        return report

    def _suggest(self, report: Report, subject: Subject) -> None:
        """Note the words for arrays whose structure forward may need."""
        for name, array in zip(subject.names, subject.arrays, strict=True):
            word = recognised(array)
            if word:
                shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
                report.notes.append(
                    f"`{name}` is {DOMAINS[word].title}: if forward needs that, describe it, so "
                    f'that it is kept: "{name}: ({shape}) {word}"'
                )

    # -- several sets --------------------------------------------------------------------------
    def check_sets(self, sets: Sequence[Inputs]) -> Report:
        """Run all parts on the first set, those that depend on the values on the others."""
        report = self.check_one(sets[0])
        report.notes[:0] = [f"inputs: {self.summary(sets[0])}", *sets[0].notes]
        try:
            with deadline().leaving_out():
                subject = self._subject(sets[0])
                self.size = max_abs(*subject.values(subject.arrays))
                for inputs in sets[1:2] if self.options.fast else sets[1:]:
                    if report.failures or not self._of_values():
                        break
                    if self.guesses and inputs.profile == SPECIAL:  # nobody said zeros are meant
                        continue
                    self._check_another(inputs, report)
        except OutOfTimeError:
            report.notes.append(f"other values left out: {deadline().slowness()}")
        return self.varied(report, sets[0])

    def _check_another(self, inputs: Inputs, report: Report) -> None:
        """Check another set of inputs, if forward takes it, in the parts that depend on values."""
        if isinstance(try_forward(self.fn, self._whole(inputs)), str):
            return
        found = self.check_one(inputs, self._of_values())
        if found.failures and not self._counting(self._subject(inputs)):
            return
        late = any(part.status in (SKIPPED, NOT_RUN) and part.reason for part in found.parts)
        if late and not found.failures:
            raise OutOfTimeError
        merge(report, found, f"inputs: {self.summary(inputs)}")

    def check_drawn(self, inputs: Sequence[Any]) -> Report:
        """Check examples of strategies: each of them fast, the largest in all parts."""
        failing: list[tuple[Inputs, Report]] = []
        passing: list[Inputs] = []
        quick = _Runner(
            self.fn,
            dataclasses.replace(self.options, fast=True),
            self.parts,
            self.kwargs,
            self.surrogate,
        )

        def passes(args: Inputs) -> bool:
            report = quick.check_one(args, self._of_values())
            if report.failures:
                failing.append((args, report))
            else:
                passing.append(args)
            return not report.failures

        examples = 5 if self.options.fast else 20
        smallest = search(strategy_of(inputs), passes, self.options.seed, examples)
        if smallest is None:
            largest = max(passing, key=_elements)
            report = self.check_one(largest)
            described = self.summary(largest)
            report.notes.insert(0, f"inputs: {described}, the largest of {len(passing)} examples")
            return report
        # The largest failing example shows most of the pattern; the smallest is easy to read.
        largest, quickly = max(failing, key=lambda pair: _elements(pair[0]))
        report = self.check_one(largest)
        if not report.failures:
            merge(report, quickly, "")
        report.notes.insert(0, f"inputs: {self.summary(largest)}")
        report.notes.insert(1, f"the smallest inputs that fail: {self.values_of(smallest)}")
        return report

    def _of_values(self) -> tuple[str, ...]:
        return tuple(name for name in OF_VALUES if name in self.parts)

    def summary(self, inputs: Inputs) -> str:
        """Return the arguments in one line, arrays by shape."""
        return format_inputs(self._whole(inputs), self.parameters)

    def values_of(self, inputs: Inputs) -> str:
        """Return the arguments in one line, arrays by their values."""
        return format_inputs(inputs, self.parameters, values=True)


def _elements(inputs: Inputs) -> int:
    values = tree.leaves((inputs.args, inputs.kwargs))
    return sum(host(v).size for v in values if holds_numbers(v))


def _read_by_half(subject: Subject) -> dict[str, str]:
    """Return the words for the symmetric matrices that forward reads as such, by name.

    Of these it reads one triangle alone, or refuses others that are nearly so. The gradient is
    right if it is along symmetric matrices: over which elements it is spread is a convention.
    """
    words = {}
    for i, (name, array) in enumerate(zip(subject.names, subject.arrays, strict=True)):
        word = recognised(array)
        if word in ("spd", "symmetric"):
            upper = np.triu(np.ones(array.shape), 1)
            trials = ((1e-7, upper), (1e-7, np.swapaxes(upper, -1, -2)), (1e-2, upper))
            moved = [_values_at(subject, i, array * (1 + by * where)) for by, where in trials]
            still = _values_at(subject, i, array)
            if moved[2] is None or any(
                a is not None and still is not None and np.array_equal(a, still) for a in moved[:2]
            ):
                words[name] = word
    return words


def _values_at(subject: Subject, i: int, array: Array) -> Array | None:
    """Return the outputs for another value of an argument; None where forward raises."""
    arrays = [*subject.arrays[:i], array.astype(subject.arrays[i].dtype), *subject.arrays[i + 1 :]]
    try:
        return joined(subject.values(arrays))
    except ForwardError:
        return None


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
    # What one set of inputs leaves open, another may have shown.
    still = {found.argument for found in other.unchecked}
    kept = [u for u in report.unchecked if not u.argument or u.argument in still]
    kept += [u for u in other.unchecked if not u.argument and u not in kept]
    report.unchecked = kept
