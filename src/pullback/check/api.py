"""`gradcheck`: the whole check of one call, part by part.

Owns the loop over the parts. When an essential part fails, the later ones are not run: a wrong
first derivative would show again in each of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.check.deadline import OutOfTimeError, deadline, limited
from pullback.check.exceptions import (
    BackwardError,
    ForwardError,
    InapplicableError,
    NotComparedError,
    first_line,
)
from pullback.check.naming import name_of, place_of
from pullback.check.properties import PARTS, Part
from pullback.check.report import (
    FAILED,
    INAPPLICABLE,
    NOT_COMPARED,
    NOT_RUN,
    PASSED,
    SKIPPED,
    Cause,
    PartResult,
    Report,
    Unchecked,
)
from pullback.check.session import Session
from pullback.check.slopes import Options
from pullback.check.subject import Subject
from pullback.check.values import holds_numbers
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
    if not callable(fn):
        raise ArgumentTypeError(
            f"gradcheck: a function to check is required, got {name_of(fn)}.\nhint: pass the "
            "function itself, and its arguments separately."
        )
    if holds_numbers(inputs) or hasattr(inputs, "__dlpack__"):
        inputs = (inputs,)
    if not isinstance(inputs, (tuple, list, dict)):
        raise ArgumentTypeError(
            "gradcheck: inputs must be a tensor, a tuple of arguments or a dict of them by name, "
            f"got {type(inputs).__name__}"
        )
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    subject = Subject(fn, args, kwargs, surrogate)
    parts = chosen_parts("gradcheck", only, skip)
    options = checked_options("gradcheck", seed, fast, rtol, atol, order, ignore, repair, only)
    with running("gradcheck", subject.name, time_limit, only):
        report = check(subject, options, parts)
    return judged(report, options, raise_exception, allow_unchecked)


def checked_options(
    api: str,
    seed: int,
    fast: bool,
    rtol: float | None,
    atol: float | None,
    order: int,
    ignore: Mapping[str, str] | None,
    repair: bool,
    only: Sequence[str] | None,
) -> Options:
    """Return the user's options, validated."""
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentTypeError(f"{api}: seed must be a whole number from 0 on, got {seed!r}")
    for role, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not (isinstance(value, (int, float)) and 0 <= value < np.inf):
            raise ArgumentTypeError(f"{api}: {role} must be a number from 0 on, got {value!r}")
    if order not in (1, 2):
        raise ArgumentError(f"{api}: order must be 1 or 2, got {order!r}")
    return Options(
        seed=int(seed),
        fast=bool(fast),
        rtol=rtol,
        atol=atol,
        order=2 if "second_order" in (only or ()) else order,
        ignore=checked_reasons(api, {} if ignore is None else ignore),
        repair=bool(repair) and not fast,
    )


def checked_reasons(api: str, ignore: Any) -> dict[str, str]:
    """Return the parts to ignore by name, with why."""
    if not isinstance(ignore, Mapping):
        raise ArgumentTypeError(
            f"{api}: ignore must be a dict of reasons by the names of parts, got {ignore!r}"
        )
    _check_names(api, "ignore", ignore)
    for name, why in ignore.items():
        if not isinstance(why, str) or not why.strip():
            raise ArgumentError(
                f"{api}: ignore must say why `{name}` may be wrong, got {why!r}.\nhint: write "
                f'ignore={{"{name}": "the reason"}}.'
            )
    return dict(ignore)


@contextlib.contextmanager
def running(api: str, name: str, seconds: float, only: Sequence[str] | None) -> Iterator[None]:
    """Limit the check of an operation within a block to the user's time, and show its progress."""
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        raise ArgumentTypeError(
            f"{api}: time_limit must be a number of seconds above 0, got {seconds!r}"
        )
    usual = _USUAL if only is None else float("inf")  # parts that are named are not left out
    with limited(float(seconds), usual, f"{name}: inputs"):
        yield


def check(subject: Subject, options: Options, parts: Sequence[str]) -> Report:
    """Run parts of the check on one call; none after an essential part that failed."""
    report = Report(subject.name, options.seed, rule=place_of(subject.fn))
    session, stopped, mode = Session(subject, options, report), "", STATE.get()
    try:
        STATE.set(RECORD)  # whatever the caller's mode: no_grad, inference, anomaly detection
        for k, part in enumerate(PARTS):
            result = PartResult(part.name, part.title, NOT_RUN, stopped)
            report.parts.append(result)
            if part.name not in parts or (options.fast and not part.fast):
                result.status, result.reason = SKIPPED, ""
            elif not stopped:
                deadline().show(f"{report.name}: {part.title} ({k + 1} of {len(PARTS)})")
                result.status, result.reason = _run(session, part)
                stopped = _why_stopped(session, part, result)
    finally:
        STATE.set(mode)
    late = [part for part in report.parts if part.status == NOT_RUN]
    if late and not report.failures:
        titles = ", ".join(part.title for part in late)
        report.unchecked.append(Unchecked(titles, late[0].reason, deadline().way_out()))
    return report


def _why_stopped(session: Session, part: Part, result: PartResult) -> str:
    """Return why no other part is run after this one; empty if they are."""
    if result.status != FAILED:
        return result.reason if result.status == NOT_RUN else ""
    why = session.options.ignore.get(part.name)
    if part.name == "first" and why is not None:
        session.subject.surrogate = why  # of what compares it again, too
    return f"{part.title} failed" if part.essential and why is None else ""


def _run(session: Session, part: Part) -> tuple[str, str]:
    """Run one part; return its status, and why, or what was left out."""
    session.part, before, said = part.name, len(session.report.failures), ""
    try:
        with contextlib.nullcontext() if part.essential else deadline().leaving_out():
            said = part.run(session)
    except NotComparedError as reason:
        return NOT_COMPARED, str(reason)
    except InapplicableError as reason:
        return INAPPLICABLE, str(reason)
    except OutOfTimeError:
        over = deadline().is_over()
        return (NOT_RUN, deadline().reason()) if over else (SKIPPED, deadline().slowness())
    except (BackwardError, ForwardError) as error:
        side = "backward" if isinstance(error, BackwardError) else "forward"
        session.fail(Cause("raised", f"{side} raises: {first_line(error)}"))
    return FAILED if len(session.report.failures) > before else PASSED, said


def chosen_parts(api: str, only: Sequence[str] | None, skip: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the parts to run."""
    for role, chosen in (("only", only or ()), ("skip", skip)):
        if isinstance(chosen, str) or not isinstance(chosen, Iterable):
            raise ArgumentTypeError(f"{api}: {role} must be a sequence of names, got {chosen!r}")
        _check_names(api, role, chosen)
    names = [part.name for part in PARTS]
    return tuple(name for name in names if name in (only or names) and name not in skip)


def _check_names(api: str, role: str, chosen: Iterable[str]) -> None:
    names = [part.name for part in PARTS]
    for name in chosen:
        if name not in names:
            raise ArgumentError(
                f"{api}: {role} must name parts of the check, got {name!r}; the parts are: "
                f"{', '.join(names)}"
            )


def judged(
    report: Report, options: Options, raise_exception: bool, allow_unchecked: bool
) -> Report:
    """Return the report; raise, or warn, unless its outcome is that all is right."""
    __tracebackhide__ = True  # pytest shows the line that called the checker
    report.ignore(options.ignore)
    if report.ok or not raise_exception:
        return report
    if allow_unchecked and not report.failures:
        warn_user(str(report), UncheckedWarning)
        return report
    raise GradcheckError(report) if report.failures else UncheckedError(report)
