"""`check_op`: the check of an operation, with inputs given, described, drawn or guessed.

Owns where inputs come from and how the reports of several sets of them become one.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.check.api import check, chosen_parts, options_of, settled
from pullback.check.inputs.arguments import Inputs, bound, on_symmetric, outcome, shown, symmetric
from pullback.check.inputs.drawing import CHARACTERS, LARGE, draw, draw_sizes
from pullback.check.inputs.guessing import guess
from pullback.check.inputs.roles import callable_of
from pullback.check.inputs.search import is_strategy, search, strategy_of
from pullback.check.inputs.shape_text import Described, parse
from pullback.check.naming import name_of, parameters_of
from pullback.check.report import FAILED, PASSED, PartResult, Report
from pullback.check.session import Options
from pullback.check.subject import Subject
from pullback.check.values import host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ArgumentTypeError

# The parts that depend on the values: further sets of inputs go through these alone.
OF_VALUES = ("first", "masks")


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
) -> Report:
    """Check the gradients of an operation, on inputs that are given, described, drawn or guessed.

    Parameters
    ----------
    op : callable
        An operation of `autograd_function`, a `Function` class, a built-in operation, or any
        differentiable function.
    *inputs : object
        Its arguments by position, tensors, arrays and others. Or one text that describes them, as
        ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``: shapes of symbols and numbers,
        behind them the dtype and ``positive``, ``unit``, ``distinct``, ``spd`` or ``in [a, b]``;
        a name that comes several times is a list of arrays.
        Or strategies of Hypothesis: one that draws all arguments, as `arguments` does, or one for
        an argument. Or nothing: they are guessed from names, hints and defaults.
    kwargs : dict, optional
        Arguments by name, beside the others; where there are no others, what is left is guessed.
    seed : int, default 0
        Where all random numbers come from; a report repeats exactly with its seed.
    fast : bool, default False
        Compare along random directions alone, with fewer inputs.
    only, skip : sequence of str, optional
        The parts to run, or not to run, by name: ``[part.name for part in pb.check.PARTS]``.
    rtol, atol : float, optional
        Tolerances beside the differences' own error; by default by dtype.
    raise_exception : bool, default True
        Whether a failure raises; else look at ``report.ok``.

    Returns
    -------
    Report
        Of all sets of inputs; its notes say what was described, drawn or guessed.

    Raises
    ------
    GradcheckError
        If a gradient is wrong; its ``report`` has everything.
    ArgumentError, ArgumentTypeError
        If no inputs are given and none can be guessed, a text describes none, or an argument of
        this function is wrong.
    MissingExtraError
        If a strategy is given and Hypothesis is not installed.

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
    runner = _Runner(fn, options_of("check_op", seed, fast, rtol, atol), parts, kwargs or {})
    if any(is_strategy(value) for value in inputs):
        report = runner.drawn(inputs)
    elif not inputs and not _complete(fn, kwargs):
        report = runner.sets(guess(_rest(fn, kwargs), seed))
    elif len(inputs) == 1 and isinstance(inputs[0], str):
        report = runner.sets(described(_rest(fn, kwargs), inputs[0], seed))
    else:
        report = runner.one(Inputs(inputs, {}))
    return settled(report, raise_exception)


def _complete(fn: Callable[..., Any], kwargs: dict[str, Any] | None) -> bool:
    """Say whether the arguments by name are all that a call needs."""
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
    """Return the function of the arguments that are not given by name."""
    if not kwargs:
        return fn
    rest: Any = functools.partial(fn, **kwargs)
    rest.name, rest.forward = name_of(fn), getattr(fn, "forward", fn)
    found: Callable[..., Any] = rest
    return found


# -- inputs that are described ---------------------------------------------------------------------
def described(fn: Callable[..., Any], text: str, seed: int) -> list[Inputs]:
    """Draw several sets of the inputs that a text describes.

    The first is as described, of scale 1; forward need not take those with zeros and equal values,
    or with larger ones.
    """
    parameters = parameters_of(fn)
    spread = inspect.Parameter.VAR_KEYWORD
    free = parameters is None or any(p.kind is spread for p in parameters)
    found = parse("check_op", text, None if free else [p.name for p in parameters or []])
    _check_complete(fn, found, parameters or [])
    sets = []
    for trial, character in enumerate(CHARACTERS):
        rng = np.random.default_rng([seed, trial])
        sizes = draw_sizes(found, rng)
        values: dict[str, list[Any]] = {}
        for i, d in enumerate(found):
            drawn = draw(d, sizes, rng, character, i)
            values.setdefault(d.name, []).append(
                box(drawn) if isinstance(drawn, np.ndarray) else drawn
            )
        inputs = _bound(parameters, values)
        inputs = inputs._replace(symmetric=symmetric(found), character=character)
        if trial == 0 or not isinstance(outcome(fn, inputs), str):
            sets.append(inputs)
    return sets


def _bound(parameters: Sequence[inspect.Parameter] | None, values: dict[str, list[Any]]) -> Inputs:
    if parameters is None:
        return Inputs(tuple(v for some in values.values() for v in some), {})
    inputs = bound(parameters, values)
    known = {p.name for p in parameters}
    further = {name: some[0] for name, some in values.items() if name not in known}
    return inputs._replace(kwargs=inputs.kwargs | further)


def _check_complete(
    fn: Any, found: Sequence[Described], parameters: Sequence[inspect.Parameter]
) -> None:
    """Refuse a text that leaves out an argument."""
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
    ) -> None:
        self.fn = fn
        self.options = options
        self.parts = parts
        self.kwargs = kwargs
        self.parameters = parameters_of(fn)

    def one(self, inputs: Inputs, parts: Sequence[str] | None = None) -> Report:
        """Check one set of inputs."""
        fn = on_symmetric(self.fn, inputs.symmetric)
        subject = Subject(fn, inputs.args, inputs.kwargs | self.kwargs)
        quick = self.options.fast or inputs.character == LARGE
        options = dataclasses.replace(self.options, fast=quick)
        return check(subject, options, self.parts if parts is None else parts)

    def sets(self, sets: Sequence[Inputs]) -> Report:
        """Check the first set in all parts, the others in those that depend on values."""
        report = self.one(sets[0])
        report.notes[:0] = [f"inputs: {self.shown(sets[0])}", *sets[0].notes]
        for inputs in sets[1:2] if self.options.fast else sets[1:]:
            if not report.ok or not self._of_values():
                break
            found = self.one(inputs, self._of_values())
            merge(report, found, f"inputs: {self.shown(inputs)}")
        return report

    def drawn(self, inputs: Sequence[Any]) -> Report:
        """Check what strategies draw: each example quickly, the largest in all parts."""
        failing: list[tuple[Inputs, Report]] = []
        passing: list[Inputs] = []
        quick = _Runner(
            self.fn, dataclasses.replace(self.options, fast=True), self.parts, self.kwargs
        )

        def right(args: Inputs) -> bool:
            report = quick.one(args, self._of_values())
            if report.ok:
                passing.append(args)
            else:
                failing.append((args, report))
            return report.ok

        examples = 5 if self.options.fast else 20
        smallest = search(strategy_of(inputs), right, self.options.seed, examples)
        if smallest is None:
            largest = max(passing, key=_elements)
            report = self.one(largest)
            described = self.shown(largest)
            report.notes.insert(0, f"inputs: {described}, the largest of {len(passing)} examples")
            return report
        # The largest failing example shows most of the pattern; the smallest is for the reader.
        largest, quickly = max(failing, key=lambda pair: _elements(pair[0]))
        report = self.one(largest)
        if report.ok:
            merge(report, quickly, "")
        report.notes.insert(0, f"inputs: {self.shown(largest)}")
        report.notes.insert(1, f"the smallest inputs that fail: {self.written(smallest)}")
        return report

    def _of_values(self) -> tuple[str, ...]:
        return tuple(name for name in OF_VALUES if name in self.parts)

    def shown(self, inputs: Inputs) -> str:
        """Return the arguments in one line, arrays by shape."""
        return shown(inputs._replace(kwargs=inputs.kwargs | self.kwargs), self.parameters)

    def written(self, inputs: Inputs) -> str:
        """Return the arguments in one line, arrays by their values."""
        return shown(inputs, self.parameters, values=True)


def _elements(inputs: Inputs) -> int:
    values = tree.leaves((inputs.args, inputs.kwargs))
    return sum(host(v).size for v in values if isinstance(v, Tensor) or hasattr(v, "dtype"))


def merge(report: Report, other: Report, situation: str) -> None:
    """Add what another report found: statuses by the worse, failures that are new, notes."""
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
