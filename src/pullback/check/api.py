"""`check_op` and `gradcheck`: what they take, how it is validated, and what they raise."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Never

import numpy as np

from pullback.check.deadline import limited
from pullback.check.inputs.arguments import callable_of
from pullback.check.inputs.strategies import as_inputs
from pullback.check.properties import PARTS
from pullback.check.report import Options, Report
from pullback.check.runner import Runner, check
from pullback.check.subject import Subject, name_of
from pullback.core.graph.modes import RECORD, STATE
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    GradcheckError,
    UncheckedError,
    UncheckedWarning,
    warn_user,
)

# A slow operation is checked in what fits into so many seconds, unless parts are named.
_USUAL = 3.5


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
    **others: Never,
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
    **others
        Refused: the operation's arguments by name go in `kwargs`.

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
    if others:
        name = next(iter(others))
        raise ArgumentTypeError(
            f"check_op: an option by name is required, got {name}.\n"
            f'hint: arguments of the operation: kwargs={{"{name}": ...}}.'
        )

    def run(options: Options) -> Report:
        return Runner(fn, options, kwargs or {}).report(inputs)

    chosen = seed, fast, only, skip, rtol, atol, time_limit, surrogate, order, ignore, repair
    return _judged("check_op", fn, run, chosen, raise_exception, allow_unchecked)


def gradcheck(
    fn: Callable[..., Any],
    inputs: Any,
    *,
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
    """Check the gradients of a differentiable function, and report what is wrong with them.

    Parameters
    ----------
    fn : callable
        Any function of tensors; returns a tensor or a structure of tensors.
    inputs : Tensor, array, tuple or dict
        Its arguments; a tuple by position, a dict by name. The tensors among them that require
        grad are differentiated, else every floating or complex array.
    seed, fast, only, skip, rtol, atol, raise_exception, allow_unchecked, time_limit, surrogate, \
    order, ignore, repair
        As of `check_op`, which also draws and guesses inputs.

    Returns
    -------
    Report

    Raises
    ------
    GradcheckError, UncheckedError
        If a gradient is wrong, or could not be checked; its attribute ``report`` is the report.
    ArgumentError, ArgumentTypeError
        If there is nothing to differentiate, or an argument of this function is wrong.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> report = pb.check.gradcheck(lambda x: pb.sin(x) * x, np.array([0.5, 1.0]))
    >>> report.ok
    True
    """
    __tracebackhide__ = True
    fn = callable_of(fn, "gradcheck")
    given = as_inputs(inputs)

    def run(options: Options) -> Report:
        return check(Subject(fn, given.args, given.kwargs, surrogate), options)

    chosen = seed, fast, only, skip, rtol, atol, time_limit, surrogate, order, ignore, repair
    return _judged("gradcheck", fn, run, chosen, raise_exception, allow_unchecked)


def validated(api: str, options: Options) -> Options:
    """Return the user's options, validated."""

    def require(role: str, required: str, fits: bool) -> None:
        if not fits:
            got = getattr(options, role)
            raise ArgumentTypeError(f"{api}: {role} must be {required}, got {got!r}")

    seed, names = options.seed, [part.name for part in PARTS]
    require("seed", "a whole number from 0 on", isinstance(seed, (int, np.integer)) and seed >= 0)
    for role in ("rtol", "atol", "time_limit"):
        value = getattr(options, role)
        fits = value is None or (isinstance(value, (int, float)) and value >= 0)
        require(role, "a number from 0 on", fits)
    require("order", "1 or 2", options.order in (1, 2))
    reasons = options.ignore or {}
    require("ignore", "a dict of reasons by the names of parts", isinstance(reasons, Mapping))
    for role, chosen in (("only", options.only or ()), ("skip", options.skip), ("ignore", reasons)):
        fits = isinstance(chosen, Iterable) and not isinstance(chosen, str)
        require(role, "a sequence of names", fits)
        unknown = [name for name in chosen if name not in names]
        if unknown:
            raise ArgumentError(
                f"{api}: {role} must name parts of the check, got {unknown[0]!r}; the parts are: "
                f"{', '.join(names)}"
            )
    for name, why in reasons.items():
        if not isinstance(why, str) or not why.strip():
            raise ArgumentError(
                f"{api}: ignore must say why `{name}` may be wrong, got {why!r}.\nhint: write "
                f'ignore={{"{name}": "the reason"}}.'
            )
    order = 2 if "second_order" in (options.only or ()) else options.order
    options = dataclasses.replace(options, seed=int(seed), order=order, ignore=reasons)
    repair = options.repair and not options.fast
    return dataclasses.replace(options, repair=repair, atol=options.atol or 0)


def _judged(
    api: str,
    fn: Callable[..., Any],
    run: Callable[[Options], Report],
    chosen: tuple[Any, ...],
    raise_exception: bool,
    allow_unchecked: bool,
) -> Report:
    """Return the report of a check; raise, or warn, unless its outcome is that all is right."""
    __tracebackhide__ = True  # pytest shows the line that called the checker
    options = validated(api, Options(*chosen))
    usual = _USUAL if options.only is None else float("inf")  # what is named is not left out
    mode = STATE.get()
    try:
        STATE.set(RECORD)  # whatever the caller's mode: no_grad, inference, anomaly detection
        with contextlib.ExitStack() as inside:
            inside.enter_context(limited(options.time_limit, usual, f"{name_of(fn)}: inputs"))
            if not faulthandler.is_enabled():  # where compiled code ends Python, it says where
                inside.callback(faulthandler.disable)
                with contextlib.suppress(AttributeError, OSError, RuntimeError, ValueError):
                    faulthandler.enable(all_threads=False)  # if there is a standard error
            report = run(options)
    finally:
        STATE.set(mode)
    if report.ok or not raise_exception:
        return report
    if allow_unchecked and not report.failures:
        warn_user(str(report), UncheckedWarning)
        return report
    raise GradcheckError(report) if report.failures else UncheckedError(report)
