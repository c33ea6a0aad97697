"""Passes of backward whose right gradients are known, for trying changes of its source.

Owns what a change has to do: make wrong gradients right for two output gradients and at other
values, make none wrong that was right, and leave what forward returns as it is.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.check.explain.evidence import Evidence
from pullback.check.repair.sites import Change, Rewritten, Seen
from pullback.check.session import Session, zeros_for_none
from pullback.check.subject import Run, Subject
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.custom.define import once_differentiable
from pullback.core.custom.operation import CustomOp

_AS_BEFORE = 25  # after how many changes to see whether what forward saved is as it was
_RTOL = 1e-6  # of gradients that a change must not change


@dataclasses.dataclass
class Trial:
    """A run of forward.

    Attributes
    ----------
    run : Run
    arrays : list of array
        The values of the differentiated arguments.
    seen : dict of int to Seen
        What the expressions of forward had.
    names : dict
        Its variables.
    """

    run: Run
    arrays: Arrays
    seen: dict[int, Seen]
    names: dict[str, Any]


@dataclasses.dataclass
class Candidate:
    """A change that may have been meant.

    Attributes
    ----------
    cost : float
        The less likely, the higher.
    rewritten : Rewritten
        The function.
    change : dict of int to callable, or ast.FunctionDef
        Of its expressions, or what comes in the place of its definition.
    places : list of (ast.AST, ast.AST)
        What stands in the source, and what comes there.
    """

    cost: float
    rewritten: Rewritten
    change: dict[int, Change] | ast.FunctionDef
    places: list[tuple[Any, Any]]


class Trials:
    """The passes on which changes of an operation are tried.

    Attributes
    ----------
    evidence : Evidence
    wrong : tuple of int
        The arguments whose gradients are wrong.
    backward, saver : Rewritten
        The rule, and what saves values for it: forward or setup_context.
    beside : dict
        The variables of forward in the run that is tried.
    seen : dict of int to Seen
        What the expressions of the unchanged rule had.
    spoiled : bool
        Whether the last change made a gradient wrong that was right.
    """

    def __init__(
        self, evidence: Evidence, wrong: Sequence[int], backward: Rewritten, saver: Rewritten
    ) -> None:
        self.evidence = evidence
        self.wrong = tuple(wrong)
        self.backward, self.saver = backward, saver
        backward.lent = saver.source.known()
        self.beside: dict[str, Any] = {}
        self.clone = rewritten_op(evidence.session.subject.fn, backward, saver)
        self.count = 0
        self.spoiled = False
        self.main = self._trial_of(self._subject(evidence))
        backward.probe.seen = {}
        self.first = self._gradients(self.main, evidence.seeds)
        self.seen, backward.probe.seen = backward.probe.seen, None
        backward.probe.most = backward.probe.turns
        again = self._gradients(self.main, evidence.seeds)
        # A rule that changes what was saved needs a new forward for each pass.
        self.anew = not _equal(self.first, again)

    def _subject(self, evidence: Evidence) -> Subject:
        return evidence.session.subject.with_arrays(evidence.arrays)

    def _trial_of(self, subject: Subject) -> Trial:
        """Run forward, and note its expressions."""
        subject = subject.with_arrays(copies(subject.arrays))
        subject.fn = self.clone
        probe = self.saver.probe
        probe.turns, probe.seen = 0, {}
        try:
            run = subject.run()
        finally:
            seen, probe.seen = probe.seen, None
        probe.most = max(probe.most, probe.turns)
        return Trial(run, subject.arrays, seen, self.saver.names_in(seen))

    def _gradients(self, trial: Trial, seeds: Sequence[Any]) -> list[Array]:
        self.backward.probe.turns = 0
        self.beside.clear()
        self.beside.update(trial.names)
        found = [None if g is None else host(g) for g in trial.run.vjp(seeds, retain=True)]
        return zeros_for_none(found, trial.arrays)

    # -- trying ------------------------------------------------------------------------------------
    def gradients_with(self, change: dict[int, Change]) -> list[Array]:
        """Return the gradients that a change of backward's expressions leads to."""
        with self.backward.changed(change):
            main = self._trial_of(self._subject(self.evidence)) if self.anew else self.main
            return self._gradients(main, self.evidence.seeds)

    def mended_by(self, candidate: Candidate) -> tuple[int, ...]:
        """Return the arguments whose gradients a change makes right, if it makes none wrong."""
        self.count += 1
        self.spoiled = False
        if self.count % _AS_BEFORE == 0:
            self._renew()
        anew = self.anew or candidate.rewritten is self.saver
        try:
            with candidate.rewritten.changed(candidate.change):
                return self._judged(anew)
        except Exception:  # whatever a change leads to, it is not what was meant
            return ()

    def _renew(self) -> None:
        """Run forward anew if a change has written to what it saved."""
        try:
            same = _equal(self._gradients(self.main, self.evidence.seeds), self.first)
        except Exception:
            same = False
        if not same:
            self.main = self._trial_of(self._subject(self.evidence))

    def _judged(self, anew: bool) -> tuple[int, ...]:
        e = self.evidence
        right = self._right(e, e.seeds, e.expected, anew, self.wrong)
        if right:
            right = self._right(e, e.other_seeds, e.expected_other, anew, right)
        other = e.elsewhere if right else None
        if other is not None:
            right = self._right(other, other.seeds, other.expected, True, right)
        return right

    def _right(
        self,
        e: Evidence,
        seeds: Sequence[Any],
        expected: Sequence[Array],
        anew: bool,
        wanted: Sequence[int],
    ) -> tuple[int, ...]:
        """Return which of some gradients are right now; none if one that was right is not."""
        trial = self._trial_of(self._subject(e)) if anew else self.main
        if anew and not _equal(trial.run.values(), e.outputs):
            return ()
        got = self._gradients(trial, seeds)
        off = [i for i, g in enumerate(got) if e.differs(g, expected[i], i).any()]
        if any(i not in self.wrong for i in off):
            self.spoiled = True
            return ()
        return tuple(i for i in wanted if i not in off)

    def keeps(self, candidate: Candidate, session: Session, arguments: Sequence[int]) -> bool:
        """Return whether a change leaves the gradients of another call as they are."""
        seeds = session.seeds()
        before = self._gradients(self._trial_of(session.subject), seeds)
        try:
            with candidate.rewritten.changed(candidate.change):
                after = self._gradients(self._trial_of(session.subject), seeds)
        except Exception:
            return False
        return all(_close(before[i], after[i]) for i in arguments)


def rewritten_op(op: Any, backward: Rewritten, saver: Rewritten) -> CustomOp:
    """Return an operation made of the rewritten functions of another."""
    rule, save = backward.called(), saver.called()
    if op.once:
        rule = once_differentiable(rule)
    forward, setup = (op.forward, save) if op.setup_context else (save, None)
    found: CustomOp = CustomOp(op.name, forward, rule, setup_context=setup, traverse=op.traverse)
    return found


def with_forward(op: Any, forward: Rewritten) -> CustomOp:
    """Return an operation with the rewritten forward of another, and its rule as it is."""
    setup, traverse = op.setup_context, op.traverse
    return CustomOp(
        op.name, forward.called(), op.given_rule, setup_context=setup, traverse=traverse
    )


def _close(a: Array, b: Array) -> bool:
    with np.errstate(all="ignore"):
        size = np.max(np.abs(a), initial=0.0)
        return bool(np.allclose(a, b, _RTOL, _RTOL * size, equal_nan=True))


def _equal(arrays: Sequence[Array], others: Sequence[Array]) -> bool:
    pairs = zip(arrays, others, strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
