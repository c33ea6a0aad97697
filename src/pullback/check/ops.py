"""`check_op`: the check of an operation on explicit, described, drawn or guessed inputs.

Owns the choice of the inputs, and how the reports on several sets of them become one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.check.api import (
    check,
    checked_options,
    chosen_parts,
    judged,
    running,
)
from pullback.check.deadline import Budget, OutOfTimeError, deadline
from pullback.check.first_look import looks_right
from pullback.check.inputs.arguments import (
    Inputs,
    bind,
    format_inputs,
    on_domains,
    structured,
    try_forward,
)
from pullback.check.inputs.domains import DOMAINS, recognised
from pullback.check.inputs.drawing import LARGE, PROFILES, SPECIAL, draw, draw_sizes
from pullback.check.inputs.guessing import (
    CannotGuessError,
    described_call,
    guess,
    other_guesses,
)
from pullback.check.inputs.roles import callable_of, documented
from pullback.check.inputs.search import is_strategy, search, strategy_of
from pullback.check.inputs.settings import SEVERAL
from pullback.check.inputs.shape_text import ArgumentSpec, is_description, parse
from pullback.check.inputs.signs import said_positive, signed
from pullback.check.inputs.triangles import read_by_half
from pullback.check.inputs.variations import Variation, is_singular, variations
from pullback.check.iterating import guards
from pullback.check.naming import name_of, parameters_of, quoted
from pullback.check.nearby import is_among_nearby, is_smooth, poles
from pullback.check.repair import has_settled
from pullback.check.report import (
    FAILED,
    NOT_RUN,
    PASSED,
    SKIPPED,
    Failure,
    PartResult,
    Report,
    Unchecked,
)
from pullback.check.rounding import is_rounding
from pullback.check.session import Options, Session
from pullback.check.subject import Subject
from pullback.check.values import holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import box
from pullback.errors import ArgumentError, ArgumentTypeError

# The parts that depend on the values: further sets of inputs run only these.
OF_VALUES = ("first", "masks")
# Where values are large, forward may round to a constant what has a tiny derivative.
_UNDERFLOW = {"float64": 1e-12, "float32": 3e-5, "float16": 3e-2}
_CALLS = 8  # of which two of a random operation differ
# Once so many seconds are spent on variations, no other is begun.
_FOR_VARIATIONS = 1.5


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
        name that occurs several times is a list of arrays.
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
    fn = callable_of(op)
    if not isinstance(kwargs, (dict, type(None))):
        raise ArgumentTypeError(
            f"check_op: kwargs must be a dict of arguments by name, got {type(kwargs).__name__}"
        )
    parts = chosen_parts("check_op", only, skip)
    options = checked_options("check_op", seed, fast, rtol, atol, repair, only)
    runner = _Runner(fn, options, parts, kwargs or {}, surrogate)
    with running("check_op", name_of(fn), time_limit, only):
        report = runner.report(inputs)
    return judged(report, raise_exception, allow_unchecked)


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
        self.base: Subject | None = None  # the call whose gradients are right, if they are
        self.positive: set[str] = set()  # its arrays that have to stay so
        self.unmeasured: list[Unchecked] = []  # of that call's derivatives
        self.guesses = False  # whether nobody gave the inputs
        self.said = {name: tuple(map(str, shape)) for name, shape in shapes.items() if shape}

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
        given = Inputs(tuple(inputs), {})
        if len(inputs) == 1 and isinstance(inputs[0], str):
            self._require_taken(given)
        return self.varied(self.check_one(given), given)

    def _require_taken(self, inputs: Inputs) -> None:
        """Raise if forward does not take a text, which was perhaps meant as a description."""
        problem = try_forward(self.fn, inputs._replace(kwargs=self.kwargs))
        if isinstance(problem, str):
            raise ArgumentError(
                f"check_op: a description of the inputs, or a text that `{name_of(self.fn)}` "
                f"takes, is required, got {inputs.args[0]!r}, for which forward says: {problem}\n"
                f"hint: a description has a colon after each name: {described_call(self.fn)}"
            )

    def guessed(self, rest: Callable[..., Any], sets: Sequence[Inputs]) -> Report:
        """Check guessed inputs; a rule that is right for other shapes may be meant for these."""
        self.guesses = True
        report = self.check_sets(sets)
        if report.failures and self._is_random(sets[0]):
            why = "forward draws random numbers where it is given no seed or generator"
            return self._not_checked(why, f"give it one: {described_call(rest)}")
        if report.failures and not self._has_settled(sets[0]):
            why = "forward repeats one step, and has not come to rest after the last of them"
            return self._not_checked(why, f"give inputs where it has: {described_call(rest)}")
        if report.failures and all(is_rounding(self._subject(sets[0]), f) for f in report.failures):
            why = "forward rounds too much at the inputs guessed to be compared"
            return self._not_checked(why, f"give others: {described_call(rest)}")
        plain = [f for f in report.failures if re.match("$|inputs: [^;]*$", f.situation)]
        causes = {f.cause.name for f in plain if f.part == "first"}
        if not causes or "missing-sum" in causes:  # a bias is meant to be smaller
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

    def _has_settled(self, inputs: Inputs) -> bool:
        inputs = self._whole(inputs)
        return has_settled(self.fn, inputs.args, inputs.kwargs)

    def _is_random(self, inputs: Inputs) -> bool:
        """Return whether one call has several results."""
        inputs = self._whole(inputs)
        found = [try_forward(self.fn, inputs) for _ in range(_CALLS)]
        runs = [outs for outs in found if not isinstance(outs, str)]
        pairs = [pair for run in runs for pair in zip(runs[0], run, strict=True)]
        return any(not np.array_equal(a, b) for a, b in pairs)

    def varied(self, report: Report, inputs: Inputs) -> Report:
        """Compare derivatives with other settings and values too; return the report on all."""
        wrong_here = any(failure.part in OF_VALUES for failure in report.failures)
        if wrong_here or self.options.fast or "first" not in self.parts or self.surrogate:
            return report
        inputs = inputs._replace(kwargs=inputs.kwargs | self.kwargs)
        self.base = Subject(self.fn, inputs.args, inputs.kwargs)
        self.positive = self._staying_positive(self.base)
        self.unmeasured = list(report.unchecked)
        time = Budget(_FOR_VARIATIONS)
        try:
            with deadline().leaving_out():
                for variation in variations(self.fn, self.parameters, inputs):
                    elsewhere = variation.moved or variation.drawn
                    if elsewhere and report.precision:  # there it may be coarser
                        continue
                    if not self._is_meant(variation):
                        continue
                    what, found = self.check_variation(variation)
                    if found.failures:  # so no other size is needed to show the mistake
                        report.failures = [f for f in report.failures if f.cause.name != "size"]
                    merge(report, found, f"with {what}")
                    if found.failures or not time.lasts():
                        break
        except OutOfTimeError:
            report.notes.append(f"other settings and values left out: {deadline().slowness()}")
        return report

    def _is_meant(self, variation: Variation) -> bool:
        """Return whether what is positive stays so, or the operation takes care of its signs.

        Of a guess nobody said even that zeros are meant.
        """
        if self.guesses and variation.inner:
            return False
        if not self.positive or variation.first_run is None:
            return True
        other = variation.first_run.subject.array_arguments()
        least = [a.min(initial=np.inf) for name, a in other if name in self.positive]
        return all(n > 0 if self.guesses else n >= 0 for n in least)

    def _staying_positive(self, base: Subject) -> set[str]:
        """Return the arrays of a call with positive values alone, but for those of both signs."""
        found = base.array_arguments()
        names = {name for name, a in found if a.dtype.kind == "f" and (a > 0).all()}
        return names - self._signed if names else names

    @functools.cached_property
    def _signed(self) -> set[str]:
        """The arguments that may have both signs, though all values are positive."""
        names = [p.name for p in self.parameters or ()]
        return signed(self.fn, names) - said_positive(self.fn, names)

    def check_variation(self, variation: Variation) -> tuple[str, Report]:
        """Compare first derivatives of another call, in full only if that shows a mistake.

        Returns what is different, of that no more than shows the mistake, and the report.
        """
        large = variation.inputs.profile == LARGE
        report = self._compared(variation, fast=True)
        if report.failures:
            variation, report = self._simplest(variation, report)
        if report.failures and not large:
            with deadline().as_time_allows():
                found = self._compared(variation, fast=False)
                report = found if found.failures else report
        return variation.what, report

    def _simplest(self, variation: Variation, report: Report) -> tuple[Variation, Report]:
        """Return the variation with as few differences as show the mistake, and its report."""
        with deadline().as_time_allows():
            for other in variation.simpler(self.fn):
                found = self._compared(other, fast=True)
                if found.failures:
                    return self._simplest(other, found)
        return variation, report

    def _compared(self, variation: Variation, fast: bool) -> Report:
        """Compare first derivatives of another call; what is excused is left out."""
        singular = functools.partial(is_singular, self.fn, self._whole(variation.inputs))
        if self._looks_right(variation) or singular():
            none = Report(name_of(self.fn), self.options.seed)
            none.unchecked = list(self.unmeasured)
            return none
        least = _underflow(variation.inputs) if variation.inputs.profile == LARGE else 0.0
        options = dataclasses.replace(
            self.options,
            atol=max(self.options.atol or 0.0, least) or self.options.atol,
            smooth=variation.tied,
            edges=not variation.crosses,
            fast=fast,
        )
        report = self.check_one(variation.inputs, ("first",), options)
        report.notes = []  # on the user's own inputs they are enough
        report.failures = [f for f in report.failures if not _is_excused(f, variation)]
        doubtful = variation.tied or variation.edge or variation.coarse or variation.crosses
        if report.failures and doubtful:
            self._excuse_ties(report, variation, options)
        if self.guesses and report.failures and self._has_new_zero(self._subject(variation.inputs)):
            self._excuse_zeros(report)
        if (variation.small or variation.drawn) and report.failures:
            subject = self._subject(variation.inputs)
            report.failures = [f for f in report.failures if not is_rounding(subject, f)]
        if report.failures and variation.moved and not self._has_settled(variation.inputs):
            report.failures = []
        if not report.failures:
            report.parts = []  # what was excused failed nothing
        return report

    def _whole(self, inputs: Inputs) -> Inputs:
        return inputs._replace(kwargs=self.kwargs | inputs.kwargs)

    def _subject(self, inputs: Inputs) -> Subject:
        call, fn = self._whole(inputs), on_domains(self.fn, inputs.domains)
        return Subject(fn, call.args, call.kwargs, self.surrogate)

    def _looks_right(self, variation: Variation) -> bool:
        """Return whether a call needs no closer look, with tolerances as they are by default."""
        if self.options.rtol is not None or variation.inputs.domains or self.unmeasured:
            return False
        first = variation.first_run
        return first is not None and looks_right(first, self.options.seed)

    def _excuse_ties(self, report: Report, variation: Variation, options: Options) -> None:
        """Leave out what is right where no derivative exists: of one side or between, or NaN."""
        subject = self._subject(variation.inputs)
        session = Session(subject, options, Report(subject.name, options.seed))
        if variation.tied and is_among_nearby(session):
            report.failures = []
        elif any(f.cause.name == "nan" for f in report.failures):
            # Zeros among positive values are meant where forward takes care of them; values at its
            # limits are not.
            beyond = variation.small or variation.drawn is not None
            meant = variation.edge and not beyond and guards(self.fn)
            edge = variation.edge or (not variation.inner and self._has_new_zero(subject))
            at_poles = poles(session)
            report.failures = [
                f
                for f in report.failures
                if f.cause.name != "nan"
                or (f.argument not in at_poles and (meant or (not edge and _is_smooth(session, f))))
            ]

    def _excuse_zeros(self, report: Report) -> None:
        """Leave out NaN at zeros of which nobody said that they are meant."""
        if not guards(self.fn):
            report.failures = [f for f in report.failures if f.cause.name != "nan"]

    def _has_new_zero(self, subject: Subject) -> bool:
        """Return whether a call has a zero among its numbers, and the user's own has none."""
        calls = [subject, *([self.base] if self.base else [])]
        found = [any(not v.all() for _, v in call.array_arguments()) for call in calls]
        return found == [True, False]

    def _not_checked(self, why: str, hint: str) -> Report:
        """Return the report on an operation for which there are no inputs."""
        report = Report(name_of(self.fn), self.options.seed)
        report.unchecked.append(Unchecked(f"`{report.name}`", why, hint))
        return report

    def check_one(
        self,
        inputs: Inputs,
        parts: Sequence[str] | None = None,
        options: Options | None = None,
    ) -> Report:
        """Check one set of inputs."""
        subject = self._subject(inputs)
        subject.said, subject.base = self.said, self.base
        options = options or self.options
        quick = options.fast or inputs.profile == LARGE
        options = dataclasses.replace(options, fast=quick)
        report = check(subject, options, self.parts if parts is None else parts)
        if report.ok or inputs.domains:
            return report
        words = read_by_half(subject)
        if words:
            report = self.check_one(inputs._replace(domains=words), parts, options)
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

    def check_sets(self, sets: Sequence[Inputs]) -> Report:
        """Run all parts on the first set, those that depend on the values on the others."""
        report = self.check_one(sets[0])
        report.notes[:0] = [f"inputs: {self.summary(sets[0])}", *sets[0].notes]
        try:
            with deadline().leaving_out():
                for inputs in sets[1:2] if self.options.fast else sets[1:]:
                    if report.failures or not self._of_values():
                        break
                    self._check_another(inputs, report)
        except OutOfTimeError:
            report.notes.append(f"other values left out: {deadline().slowness()}")
        return self.varied(report, sets[0])

    def _check_another(self, inputs: Inputs, report: Report) -> None:
        """Check another set of inputs, if forward takes it, in the parts that depend on values."""
        call = self._whole(inputs)
        if isinstance(try_forward(self.fn, call), str) or not self._has_settled(inputs):
            return
        # Zeros and equal values may be where it has no derivative.
        options = dataclasses.replace(self.options, smooth=inputs.profile == SPECIAL)
        found = self.check_one(inputs, self._of_values(), options)
        if self.guesses and inputs.profile == SPECIAL:
            self._excuse_zeros(found)
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


def _underflow(inputs: Inputs) -> float:
    """Return what is nothing beside gradients of size 1 in the narrowest dtype of a call."""
    arrays = [host(v) for v in tree.leaves((inputs.args, inputs.kwargs)) if holds_numbers(v)]
    return max((_UNDERFLOW.get(a.dtype.name, 0.0) for a in arrays), default=0.0) or 1e-12


def _is_smooth(session: Session, failure: Failure) -> bool:
    """Return whether there are derivatives where a gradient is NaN."""
    return is_smooth(session, session.subject.names.index(failure.argument))


def _is_excused(failure: Failure, variation: Variation) -> bool:
    """Return whether a variation, and not the rule, is to blame.

    Equal values may make a matrix singular; where all is rounding, any number is right.
    """
    cause = failure.cause
    if not variation.tied and _is_rough(failure):  # tied values may be right alone, not together
        return True
    loud = cause.name in ("raised", "missing-sum") and "Error" in cause.text
    if loud and (SEVERAL in variation.what or "got the complex number" in cause.text):
        return True  # nobody said that it takes these
    if cause.name == "nan" and variation.inputs.profile == LARGE:  # where forward stays constant
        assert failure.expected is not None
        assert failure.wrong is not None
        return not failure.expected[failure.wrong].any()
    if cause.name == "precision" and (variation.small or variation.tied or variation.coarse):
        return True  # few numbers remain of tiny ones; the call's own tell enough
    return variation.coarse or (cause.name == "raised" and "singular" in cause.text.lower())


def _is_rough(failure: Failure) -> bool:
    """Return whether no element is wrong by itself: a direction may lie along what has no slope.

    Of large arrays only some elements were measured.
    """
    wrong = failure.wrong
    return wrong is not None and wrong.size <= Options.max_elements and not wrong.any()


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
