"""What the elements with a wrong gradient have in common.

A predicate explains a wrong gradient if it holds at every wrong element and at no right one. To
rule out accidents, the function is run again with its values rearranged: they stay in the domain,
and predicates over values and over indices no longer coincide.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.evidence import Evidence
from pullback.check.explain.predicates import Sample, predicates
from pullback.check.report import Report
from pullback.check.session import Session
from pullback.check.subject import Subject
from pullback.check.values import Array

WrongOf = Callable[[Evidence, int], Array]

# Numbers that are positions, not bounds.
_NO_BOUND = {"axis", "dim", "seed"}
_ENOUGH = 64  # elements, to distinguish causes from accidents
_SECONDS = 1.0  # of the processor, for one argument


def explanation(e: Evidence, i: int, wrong_of: WrongOf) -> str:
    """Return the predicate that holds where the gradient of argument `i` is wrong, or ``""``.

    Parameters
    ----------
    e, i : Evidence, int
    wrong_of : function
        From evidence and an argument to where that one's gradient is wrong; each has to be one
        object, by which what was found is kept.
    """
    key = i, wrong_of
    if key not in e.explanations:
        e.explanations[key] = _explanation(e, i, wrong_of)
    return e.explanations[key]


def _explanation(e: Evidence, i: int, wrong_of: WrongOf) -> str:
    first = sample_of(e, i, wrong_of)
    with np.errstate(all="ignore"):
        found = exact = [p.text for p in predicates(first, first) if p.fits(first)]
        for s in () if not found or e.session.options.fast else _samples(e, i, wrong_of):
            now = list(predicates(s, first))
            fits = {p.text for p in now if p.fits(s)}
            covers = {p.text for p in now if p.covers(s)}
            exact, found = [t for t in exact if t in fits], [t for t in found if t in covers]
    return (exact or found or [""])[0]


def _samples(e: Evidence, i: int, wrong_of: WrongOf) -> Iterator[Sample]:
    """Yield samples for other arrangements of the values, where the function is defined."""
    options = dataclasses.replace(e.session.options, max_elements=_ENOUGH)
    time = Budget(_SECONDS)
    for subject in _arrangements(e, i):
        if not time.lasts():
            return
        session = Session(subject, options, Report(subject.name, options.seed))
        with contextlib.suppress(BackwardError, ForwardError):
            yield sample_of(Evidence(session), i, wrong_of)


def _arrangements(e: Evidence, i: int) -> Iterator[Subject]:
    """Yield the call with arguments rearranged from the same values."""
    rng = e.session.rng(f"arrangements {i}")
    x = e.arrays[i]
    inner = x[(x != x.max()) & (x != x.min())]

    def moved_to(moved: Array) -> Subject:
        return e.session.subject.with_arrays([*e.arrays[:i], moved, *e.arrays[i + 1 :]])

    for _ in range(min(max(_ENOUGH // x.size, 1), 4)):  # accidents are likely at few elements
        yield moved_to(_permuted(x, rng))
        yield _independent(moved_to(rng.choice(x.ravel(), x.shape)), i, rng)  # with other ties
        yield moved_to(
            rng.choice(inner if inner.size else x.ravel(), x.shape)
        )  # with other extremes
        yield moved_to((_permuted(x, rng) * (1 - 1 / 27)).astype(x.dtype))  # without whole numbers


def _independent(subject: Subject, i: int, rng: np.random.Generator) -> Subject:
    """Return the call with every other array permuted."""
    own = subject.tracked[i]
    return subject.with_leaves(
        [
            _permuted(leaf, rng) if isinstance(leaf, np.ndarray) and k != own else leaf
            for k, leaf in enumerate(subject.leaves_on_host())
        ]
    )


def _permuted(array: Array, rng: np.random.Generator) -> Array:
    return rng.permutation(array.ravel()).reshape(array.shape)


def wrong_elements(e: Evidence, i: int) -> Array:
    """Return where the gradient of argument `i` is wrong."""
    return e.wrong[i]


def sample_of(e: Evidence, i: int, wrong_of: WrongOf) -> Sample:
    """Return the sample that predicates about argument `i` are evaluated on."""
    wrong = wrong_of(e, i)
    with np.errstate(invalid="ignore"):
        visible = (np.abs(e.expected[i]) > e.tolerance[i]) | ~np.isfinite(e.got[i][wrong]).all()
    informative = e.known(i) & (wrong | visible)
    return Sample(e.names[i], e.arrays[i], _others(e, i), e.named_outputs, wrong, informative)


def _others(e: Evidence, i: int) -> list[tuple[str, Array]]:
    """Return the other arguments that are arrays or numbers, by name."""
    subject = e.session.subject
    arrays = [(name, a) for name, a in subject.array_arguments() if name != e.names[i]]
    numbers = subject.number_arguments()
    return arrays + [(name, np.asarray(v)) for name, v in numbers if name not in _NO_BOUND]
