"""First derivatives: backward against differences, along directions first, then by elements.

Owns the condition that a gradient has to satisfy: along every measured line, its component lies
between the one-sided derivatives, up to the tolerance. Gradients that do not are passed to the
search for a cause with all measurements.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from pullback.check.deadline import WAY_OUT, OutOfTimeError, deadline
from pullback.check.explain import cause_of_exception, diagnose
from pullback.check.explain.evidence import Evidence
from pullback.check.numerical import coordinates, is_range
from pullback.check.repair import fail
from pullback.check.report import Cause, InapplicableError, NotComparedError, Unchecked
from pullback.check.session import Line, Session
from pullback.check.subject import BackwardError, ForwardError
from pullback.check.values import Array

_FOR_DIAGNOSIS = 12  # the calls that a diagnosis may make however long they take
_SOME = 24  # elements that are moved where random directions tell of the argument: they show edges
_CHANGES = 1e-3  # of the terms of a slope: a smaller one is 0
_LOST = (
    "it is smaller than differences can tell from the rounding of forward",
    "give inputs at which it is larger, or keep other arguments, which outweigh it, constant",
)
_PHASES = (
    "it is right for the absolute values of the outputs and not for their phases, which forward "
    "may choose, as those of eigenvectors",
    "check a function of the outputs that does not depend on their phases, such as their abs()",
)


def first_derivatives(session: Session) -> Iterator[Cause | str]:
    """Compare first derivatives with differences; yield in words what was left out."""
    names, why = session.subject.names, session.subject.surrogate
    if not session.outputs:
        name = session.subject.name
        yield Cause("none", f"{name} returns no floating or complex tensor to differentiate")
        return
    try:
        session.gradients()  # before the time for it is spent on directions
        if why:
            session.note(f"the gradient is declared a surrogate ({why})")
            raise NotComparedError(why)
        wrong = _wrong(session)
        if wrong:
            session.discard_inconsistent()
            wrong = _wrong(session)
        if wrong and _is_right_but_for_phases(session, wrong):
            found = [Unchecked(f"the gradient of `{names[i]}`", *_PHASES, names[i]) for i in wrong]
            session.report.unchecked += found
            wrong = []
        elif wrong:
            _explain(session, wrong)
    except BackwardError as error:
        yield cause_of_exception(error)
        return
    left_out = list(_measured(session))
    if not wrong:
        if session.own_error:
            _note_precision(session)
        _report_unmeasured(session)
        yield from left_out


def _wrong(session: Session) -> list[int]:
    """Return the arguments whose gradient is wrong, along directions, then along elements.

    Elements first of those of which directions tell nothing.
    """
    session.hide(_without_slope(session))
    seeds, found = session.seeds(), _wrong_along(session, session.directions, "seeds")
    known = {d.argument for d in session.directions if session.component(d, seeds).measured}
    for i in range(len(session.arrays)):
        if not found and i not in known:
            with contextlib.suppress(OutOfTimeError):
                session.along(i, session.elements(i))
            found |= _wrong_along(session, _lines(session, i), "seeds")
    with deadline().as_time_allows():
        found |= _wrong_along(session, session.directions, "other seeds")
        for i in () if found or session.options.fast else known:
            some = session.along(i, session.elements(i, _SOME))
            found |= _wrong_along(session, some, "seeds")
    return sorted(found)


def _without_slope(session: Session) -> Array:
    """Return which outputs have no slope along a direction where others have; all else is kept.

    Nothing is known of a sum over all outputs there: the others are compared without them.
    """
    used = np.isfinite(session.center)
    hidden = np.zeros_like(used)
    for line in session.directions:
        unknown = used & ~is_range(line.slope.low, line.slope.high)
        hidden |= unknown & ~unknown[used].all()
    return hidden & ~hidden[used].all()


def _lines(session: Session, *arguments: int) -> list[Line]:
    """Return the lines of arguments that were measured."""
    columns = [found.values() for found in session.along_elements]
    lines = itertools.chain(session.directions, *columns)
    return [line for line in lines if line.argument in arguments]


def _wrong_along(session: Session, lines: Sequence[Line], purpose: str) -> set[int]:
    """Return the arguments whose gradient disagrees with a measured slope."""
    seeds = session.seeds(purpose)
    got = [coordinates(g) for g in session.gradients(purpose)]
    return {line.argument for line in lines if not session.agrees(line, got[line.argument], seeds)}


def _is_right_but_for_phases(session: Session, wrong: Sequence[int]) -> bool:
    """Return whether gradients are right for the sizes of complex outputs, which change."""
    if all(out.dtype.kind != "c" for out in session.outputs):
        return False
    seeds, changing = session.sizes(), set()
    got = [coordinates(g) for g in session.vjp(seeds)]
    for line in _lines(session, *wrong):
        if not session.agrees(line, got[line.argument], seeds):
            return False
        low, high, _, size, _ = session.component(line, seeds)
        if line.element is None and _CHANGES * size < min(abs(low), abs(high)) < np.inf:
            changing.add(line.argument)
    return changing == {*wrong}


# -- reporting -------------------------------------------------------------------------------------
def _explain(session: Session, arguments: Sequence[int]) -> None:
    """Search why the gradients of these arguments are wrong, and report it."""
    told = arguments
    try:
        evidence = Evidence(session)
        told = [i for i in range(len(session.arrays)) if evidence.wrong[i].any()] or told
        with deadline().leaving_out(_FOR_DIAGNOSIS):
            causes = diagnose(evidence, told)
    except OutOfTimeError:
        why = deadline().reason()
    except (BackwardError, ForwardError):
        raise
    except Exception as error:  # a wrong gradient is reported all the same
        why = f"the search failed, which is the checker's mistake: {error!r}"
    else:
        fail(session, evidence, causes)
        return
    for i in told:
        name = session.subject.names[i]
        text = f"the gradient of `{name}` is wrong along a random direction"
        session.fail(Cause("formula", text, f"no pattern was looked for: {why}"), name)


def _note_precision(session: Session) -> None:
    """Note by how much forward is off itself, and compare no closer in what follows."""
    session.note(
        f"the gradients are right to forward's own precision, about {session.own_error:.0e}: "
        "forward iterates or approximates. Make it more accurate (its tolerance, its steps), or "
        "pass rtol, for a closer look"
    )
    session.report.precision = session.own_error
    session.rtol = max(session.rtol, 3 * session.own_error)


def _report_unmeasured(session: Session) -> None:
    """Report the arguments without a measured derivative; raise if there are no others."""
    seeds, unchecked, measured = session.seeds(), session.report.unchecked, 0
    got = [coordinates(g) for g in session.gradients()]
    for i, name in enumerate(session.subject.names):
        lines = [line for line in _lines(session, i) if line.direction.any()]
        components = [session.component(line, seeds) for line in lines]
        pairs = zip(lines, components, strict=True)
        known = [(line, component) for line, component in pairs if component.measured]
        elements = sum(line.element is not None for line in lines)
        found = sum(line.element is not None for line, _ in known)
        measured += len(known)
        if session.arrays[i].size and len(known) == found < max(elements, 1):
            what = f"{elements - found} of {elements} elements of " if known else ""
            what += f"the gradient of `{name}`"
            unchecked.append(Unchecked(what, *_why_unmeasured(session, i), name))
        elif known and all(0.0 < abs(ln.direction @ got[i]) <= c.error for ln, c in known):
            unchecked.append(Unchecked(f"the gradient of `{name}`", *_LOST, name))
        elif lines and not any(any(component[:2]) for component in components):
            session.note(f"the outputs do not change with `{name}` at these inputs")
    if not measured:
        if not unchecked:
            why = "the outputs or the arguments have no elements at these inputs"
            unchecked.append(Unchecked("the gradient", why))
        raise InapplicableError("no derivative could be measured at these inputs")


def _why_unmeasured(session: Session, i: int) -> tuple[str, str]:
    """Return why no derivative in an argument could be measured, and what to give."""
    if deadline().is_over():
        return deadline().reason(), WAY_OUT
    if i in session.refusals:
        return (
            f"forward raises wherever it is moved a little: {session.refusals[i]}",
            "give inputs inside of the domain, or a text that says what they have to be",
        )
    if not np.isfinite(session.center).any():
        return "the outputs are not finite at these inputs", "give other inputs"
    return (
        "the outputs jump at these inputs, however little it is moved",
        "give inputs between the jumps; if the gradient is meant to differ from the derivative, "
        'declare it: surrogate="why"',
    )


def _measured(session: Session) -> Iterator[str]:
    """Note kinks and how little was compared; yield what ties, poles and masks leave out."""
    finite = np.isfinite(session.center)
    for i, name in enumerate(session.subject.names):
        columns, flat = session.along_elements[i], coordinates(session.wide[i])
        kinked = [k for k, line in columns.items() if line.slope.kink[finite].any()]
        if kinked:
            session.note(
                f"{session.subject.name} is not differentiable at {len(kinked)} of {len(columns)} "
                f"elements of `{name}`: there the gradient has to lie between the one-sided "
                "derivatives, where these exist"
            )
        tied = sum(np.count_nonzero(flat == flat[k]) > 1 for k in kinked)
        if tied:
            yield f"{tied} elements of `{name}` left out, since their values are tied"
    if not finite.all():
        count = int((~finite).sum())
        yield f"{count} of {finite.size} outputs left out, since they are infinite or NaN"
    for name, array in session.subject.array_arguments():
        if array.dtype.kind == "b" and array.size and not array.any():
            yield f"what `{name}` masks left out, since it is False everywhere"
    count = len(session.directions)
    if count < 2 * len(session.arrays):
        session.note(
            f"derivatives were compared along {count} random direction{'s' * (count > 1)}: "
            f"{deadline().reason()}"
        )
