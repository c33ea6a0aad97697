"""First derivatives: backward against differences, along directions first, then by elements.

Owns the condition that a gradient has to satisfy: along every measured line, its component lies
between the one-sided derivatives, up to the tolerance. Gradients that do not are passed to the
diagnosis with all measurements.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence

import numpy as np

from pullback.check.deadline import OutOfTimeError, deadline
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError
from pullback.check.explain import cause_of_exception, diagnose
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.numerical import coordinates, joined
from pullback.check.properties.accuracy import forward_error
from pullback.check.properties.failing import fail
from pullback.check.report import Cause, Unchecked
from pullback.check.session import Line, Session, is_range
from pullback.check.values import Array, Arrays

# The calls that a diagnosis may make however long they take.
_FOR_DIAGNOSIS = 12


def check_first(session: Session) -> None:
    """Check first derivatives."""
    if not session.outputs:
        session.fail(
            Cause(
                "none",
                f"{session.subject.name} returns no floating or complex tensor to differentiate",
            )
        )
        return
    if not np.all(np.isfinite(session.center)):
        session.note(
            "the outputs are not all finite here: gradients were only checked where they are"
        )
    try:
        if session.subject.surrogate:
            _check_surrogate(session)
            return
        wrong = _wrong(session)
        if wrong:
            session.discard_inconsistent()
            wrong = _wrong(session)
        if wrong and _is_forwards_error(session, sorted(wrong)):
            wrong = set()
        if wrong:
            _explain(session, sorted(wrong))
        else:
            _check_precision(session)
    except BackwardError as error:
        session.fail(cause_of_exception(error))
        return
    _note_kinks(session)
    _note_slowness(session)
    if not wrong:
        _report_unmeasured(session)


def _check_surrogate(session: Session) -> None:
    """Run backward where its gradient is meant to differ from the derivative."""
    session.gradients()
    session.note(
        f"the gradient is declared a surrogate ({session.subject.surrogate}): it was not compared "
        "with differences"
    )


def _wrong(session: Session) -> set[int]:
    """Return the arguments whose gradient is wrong.

    Where some outputs have no derivative along a line, nothing is known of the sum over all: the
    others are compared without them.
    """
    wrong = _wrong_among(session)
    if not wrong and not session.options.smooth:
        session.hidden = _without_slope(session)
        if session.hidden is not None:
            wrong = _wrong_among(session)
        if not wrong:
            session.hidden = None
    return wrong


def _wrong_among(session: Session) -> set[int]:
    """Compare along directions, then along elements: those first without which nothing is known."""
    seeds = session.seeds()
    session.gradients()  # before the time for it is spent on directions
    wrong = _wrong_along(session, session.directions, "seeds")
    known = {line.argument for line in session.directions if session.is_known(line, seeds)}
    for i in range(len(session.arrays)):
        if not wrong and i not in known:
            with contextlib.suppress(OutOfTimeError):
                session.along(i, session.elements(i))
            wrong |= _wrong_along(session, _lines(session, i), "seeds")
    with deadline().as_time_allows():
        wrong |= _wrong_along(session, session.directions, "other seeds")
        for i in known if not session.options.fast else ():
            if not wrong:
                wrong |= _wrong_along(session, session.sample(i), "seeds")
    return wrong


def _is_forwards_error(session: Session, wrong: Sequence[int]) -> bool:
    """Return whether gradients are as right as forward is; if so, note how right."""
    error = forward_error(session, wrong)
    if error is None:
        return False
    names = quoted(session.subject.names[i] for i in wrong)
    session.note(
        f"the gradient of {names} is right to forward's own precision, about {error:.0e}: forward "
        "iterates or approximates. Make it more accurate (its tolerance, its steps), or pass rtol, "
        "for a closer look"
    )
    session.report.precision = error
    session.loosen(10 * error)
    return True


def _without_slope(session: Session) -> Array | None:
    """Return which outputs have no slope on a line where others have; None if there are none."""
    used = joined(session.seeds()) != 0
    hidden = np.zeros(used.shape, bool)
    for line in _lines(session):
        unknown = used & ~is_range(line.slope.low, line.slope.high)
        if not unknown[used].all():
            hidden |= unknown
    return hidden if hidden.any() and not hidden[used].all() else None


def _lines(session: Session, i: int | None = None) -> list[Line]:
    """Return the measured lines, those of argument `i` if one is given."""
    columns = [found.values() for found in session.along_elements]
    lines = itertools.chain(session.directions, *columns)
    return [line for line in lines if i is None or line.argument == i]


def _wrong_along(session: Session, lines: Sequence[Line], purpose: str) -> set[int]:
    """Return the arguments whose gradient disagrees with a measured slope."""
    seeds = session.seeds(purpose)
    got = [coordinates(g) for g in session.gradients(purpose)]
    return {line.argument for line in lines if not agrees(session, line, got, seeds)}


def agrees(session: Session, line: Line, got: Sequence[Array], seeds: Arrays) -> bool:
    """Return whether a gradient's component along a line lies within the measured range."""
    low, high, error = session.bounds(line, seeds)
    if not is_range(low, high):
        return True
    if session.options.smooth and line.element is None and session.is_kinked(line, seeds):
        return True
    with np.errstate(all="ignore"):
        terms = np.where(line.direction != 0, line.direction * got[line.argument], 0.0)
        value = float(np.sum(terms))
        size = session.magnitude(line, seeds)
        if line.element is None:  # rounding of the single elements adds up
            size += float(np.sum(np.abs(terms))) / 4
    tolerance = session.rtol * size + error + session.atol
    return bool(low - tolerance <= value <= high + tolerance)


def _explain(session: Session, arguments: Sequence[int]) -> None:
    """Diagnose why the gradients of these arguments are wrong, and report it."""
    evidence = Evidence(session)
    try:
        wrong = [i for i in range(len(session.arrays)) if evidence.wrong[i].any()]
    except OutOfTimeError:
        for i in arguments:
            session.fail(_not_measured(session, i), session.subject.names[i])
        return
    fail(session, evidence, _causes(evidence, wrong or list(arguments)))


def _causes(evidence: Evidence, wrong: Sequence[int]) -> list[tuple[int, Cause]]:
    """Return why these gradients are wrong, as far as there is time to find it out."""
    why = ""
    try:
        with deadline().leaving_out(_FOR_DIAGNOSIS):
            return diagnose(evidence, wrong)
    except OutOfTimeError:
        why = deadline().slowness()
    except (BackwardError, ForwardError):
        raise
    except Exception as error:  # a wrong gradient is reported all the same
        why = f"the search failed, which is the checker's mistake: {error!r}"
    return [(i, _not_explained(evidence, i, why)) for i in wrong]


def _not_explained(evidence: Evidence, i: int, why: str) -> Cause:
    wrong = evidence.wrong[i]
    text = (
        f"the gradient of `{evidence.names[i]}` is wrong at {int(wrong.sum())} of "
        f"{int(evidence.known(i).sum())} elements measured"
    )
    return Cause("formula", text, f"no pattern was looked for: {why}")


def _not_measured(session: Session, i: int) -> Cause:
    """Return what is known of a wrong gradient where the limit leaves no time for its elements."""
    lines = [line for line in _lines(session, i) if line.slope.value.size]
    got = coordinates(session.gradients()[i])
    pairs = [(session.bounds(line, session.seeds()), line.direction @ got) for line in lines]
    (low, high, _), value = max(
        pairs, key=lambda pair: abs(pair[1] - (pair[0][0] + pair[0][1]) / 2)
    )
    text = (
        f"the gradient of `{session.subject.names[i]}` is wrong along a random direction: the "
        f"derivative is {(low + high) / 2:.6g}, backward's {value:.6g}"
    )
    return Cause("formula", text, f"no pattern was looked for: {deadline().reason()}")


def _check_precision(session: Session) -> None:
    """Report gradients in float64 that were computed in float32, and so are right to 1e-7."""
    if session.eps > np.finfo(np.float64).eps:
        return
    for i, g in enumerate(session.gradients()):
        values = coordinates(g)
        # Rounding errors of a gradient that is 0 are representable, too.
        values = values[np.isfinite(values) & (np.abs(values) > 1e-10)]
        values = values[values != np.round(values)]
        with np.errstate(all="ignore"):
            narrow = values.astype(np.float32).astype(np.float64)
        several = np.unique(np.abs(values)).size > 3
        if np.finfo(g.dtype).bits == 64 and several and np.array_equal(narrow, values):
            name = session.subject.names[i]
            text = f"`{name}` is computed in float32, though inputs and outputs are {g.dtype}"
            session.fail(Cause("precision", text), name)


def _report_unmeasured(session: Session) -> None:
    """Report the arguments without a measured derivative; raise if there are no others."""
    seeds = [session.seeds()]
    session.hidden = _without_slope(session)
    seeds += [session.seeds()] if session.hidden is not None else []
    session.hidden = None
    known: list[bool] = []
    for i, name in enumerate(session.subject.names):
        lines = [line for line in _lines(session, i) if line.direction.any()]
        found = [any(session.is_known(line, g) for g in seeds) for line in lines]
        known.append(any(found))
        if session.arrays[i].size and not _tells_of_all(lines, found):
            what = f"the gradient of `{name}`"
            if known[-1]:
                alone = [
                    ok for line, ok in zip(lines, found, strict=True) if line.element is not None
                ]
                what = f"{alone.count(False)} of {len(alone)} elements of {what}"
            session.report.unchecked.append(Unchecked(what, *_why_unmeasured(session, i), name))
        elif lines and not any(any(session.bounds(line, seeds[0])[:2]) for line in lines):
            session.note(f"the outputs do not change with `{name}` at these inputs")
    if not any(known):
        if not session.report.unchecked:
            why = "the outputs or the arguments have no elements at these inputs"
            session.report.unchecked.append(Unchecked("the gradient", why))
        raise InapplicableError("no derivative could be measured at these inputs")


def _tells_of_all(lines: Sequence[Line], known: Sequence[bool]) -> bool:
    """Return whether a random direction is known, or every element that was moved."""
    pairs = list(zip(lines, known, strict=True))
    alone = [found for line, found in pairs if line.element is not None]
    return any(found for line, found in pairs if line.element is None and not line.tied) or (
        bool(alone) and all(alone)
    )


def _why_unmeasured(session: Session, i: int) -> tuple[str, str]:
    """Return why no derivative in an argument could be measured, and what to give."""
    refusals = session.refusals.get(i)
    if deadline().is_over():
        return deadline().reason(), deadline().way_out()
    if refusals:
        return (
            f"forward raises wherever it is moved a little: {refusals[-1]}",
            "give inputs inside of the domain, or a text that says what they have to be",
        )
    if not np.isfinite(session.center).any():
        return "the outputs are not finite at these inputs", "give other inputs"
    return (
        "the outputs jump at these inputs, however little it is moved",
        "give inputs between the jumps; if the gradient is meant to differ from the derivative, "
        'declare it: surrogate="why"',
    )


def _note_slowness(session: Session) -> None:
    """Note how little was compared because calls take long."""
    count = len(session.directions) - sum(line.tied for line in session.directions)
    if count < 2 * len(session.arrays):
        session.note(
            f"derivatives were compared along {count} random direction{'s' * (count > 1)}: "
            f"{deadline().slowness()}"
        )


def _note_kinks(session: Session) -> None:
    """Note the elements at which the function has kinks, jumps or edges."""
    finite = np.isfinite(session.center)
    for i, columns in enumerate(session.along_elements):
        count = sum(bool(line.slope.kink[finite].any()) for line in columns.values())
        if count:
            session.note(
                f"{session.subject.name} is not differentiable at {count} of {len(columns)} "
                f"elements of `{session.subject.names[i]}`: there the gradient has to lie between "
                "the one-sided derivatives, where these exist"
            )
