"""Memory layouts: equal values in another layout have the same results and gradients.

Owns the trials, and the search for the smallest set of arrays whose layout matters. The layouts
themselves are in memory_layouts.py.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pullback.arrays import NUMPY
from pullback.check.comparison import beyond_rounding, max_abs, rounding_noise
from pullback.check.exceptions import BackwardError, ForwardError, InapplicableError, first_line
from pullback.check.memory_layouts import Layout, layouts_of
from pullback.check.naming import quoted
from pullback.check.report import Cause
from pullback.check.session import Session, gradients
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies
from pullback.core.tensor.tensor import box

_POLE = 1e12  # times as large as at the user's values
SEEDS = -1  # the position of grad_output; other positions are those of the leaves of the call


def check_layouts(session: Session) -> None:
    """Check that no result depends on the layout of an input or of grad_output."""
    if session.subject.backend.library is not NUMPY:
        raise InapplicableError("only arrays of NumPy have layouts that a caller can choose")
    trials = _Trials(session)
    trials.try_layouts("grad_output", [SEEDS])
    if not session.options.fast:
        for position in trials.leaves:
            trials.try_layouts(f"`{session.subject.labels[position]}`", [position])
        if not trials.found and len(trials.leaves) > 1:
            trials.try_layouts("inputs (all of them)", [*trials.leaves])
        if not trials.found:
            trials.try_layouts("inputs and grad_output", [SEEDS, *trials.leaves])
    trials.report()


class _Mismatch(NamedTuple):
    """What failed with one layout: the argument whose gradient is wrong, or the exception."""

    layout: str
    argument: str  # empty: the outputs themselves
    expected: Array | None = None
    got: Array | None = None
    where: Array | None = None
    raised: str = ""


class _Trials:
    """The trials of one check: every layout of one array, or of several at once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.subject = session.subject
        self.arrays = session.arrays
        self.seeds = session.seeds("layouts")
        self.leaves = self._leaves()
        self.found: dict[str, list[_Mismatch]] = {}  # by what was laid out
        self.refused: dict[str, tuple[str, str, str]] = {}  # by layout: what, strides, the error
        self.base = self._results({}, self.arrays, self.seeds)

    def _leaves(self) -> dict[int, Array]:
        """Return the arrays among the leaves of the call, by position."""
        tracked = self.subject.tracked
        found = dict(zip(tracked, copies(self.arrays), strict=True))
        others = enumerate(() if self.subject.works_in_place else self.session.leaves())
        arrays = {i: v for i, v in others if isinstance(v, np.ndarray) and i not in tracked}
        return found | dict(zip(arrays, copies(list(arrays.values())), strict=True))

    # -- running -------------------------------------------------------------------------------
    def _results(self, others: dict[int, Array], arrays: Arrays, seeds: Arrays) -> list[Array]:
        """Return gradients and outputs; `others` are arrays that are not differentiated."""
        run = self._run(others, arrays)
        return [*gradients(run, seeds, arrays), *run.values()]

    def _run(self, others: dict[int, Array], arrays: Arrays) -> Run:
        if not others:
            return self.subject.run(arrays)
        leaves = self.subject.tensors(arrays, None)
        for i, array in others.items():
            leaves[i] = array if isinstance(leaves[i], np.ndarray) else box(array)
        return self.subject.run_leaves(leaves)

    def try_layouts(self, what: str, positions: Sequence[int]) -> None:
        """Try every layout of the arrays at these positions, on all that have it at once."""
        options: dict[str, list[tuple[int, int, Layout]]] = {}
        for position in positions:
            arrays = self.seeds if position == SEEDS else [self.leaves[position]]
            for k, array in enumerate(arrays):
                for layout in layouts_of(array, self.session.options.fast):
                    options.setdefault(layout.name, []).append((position, k, layout))
        for name, chosen in options.items():
            wrong = self._try(name, what, chosen)
            if wrong is not None:
                self.found.setdefault(what, []).append(wrong)

    def _try(
        self, name: str, what: str, chosen: Sequence[tuple[int, int, Layout]]
    ) -> _Mismatch | None:
        """Compare the results for arrays in one layout with those for contiguous copies."""
        plain, laid = (dict(self.leaves), list(self.seeds)), (dict(self.leaves), list(self.seeds))
        for position, k, layout in chosen:
            for (leaves, seeds), arrange in ((plain, layout.values), (laid, layout.apply)):
                if position == SEEDS:
                    seeds[k] = arrange(self.seeds[k])
                else:
                    leaves[position] = arrange(self.leaves[position])
        strides = ", ".join(
            dict.fromkeys(
                str((laid[1][k] if p == SEEDS else laid[0][p]).strides) for p, k, _ in chosen
            )
        )
        expected = self.base
        expanded = any(layout.axes for *_, layout in chosen)
        if expanded:
            try:
                expected = self._of(*plain)
            except (ForwardError, BackwardError):
                return None  # not defined for equal values
            if any(
                max_abs(e) > _POLE * (max_abs(b) or 1.0)
                for e, b in zip(expected, self.base, strict=True)
            ):
                return None  # nor there: it is rounding alone that makes them differ
        name = f"{name} (strides {strides})"
        try:
            got = self._of(*laid)
        except ForwardError as error:
            self.refused.setdefault(_short(name), (what, name, first_line(error)))
            return None
        except BackwardError as error:
            return _Mismatch(name, "", raised=first_line(error))
        return self._compared(name, got, expected, plain, expanded)

    def _of(self, leaves: dict[int, Array], seeds: list[Array]) -> list[Array]:
        arrays = [leaves[i] for i in self.subject.tracked]
        return self._results(self._others(leaves), arrays, seeds)

    def _others(self, leaves: dict[int, Array]) -> dict[int, Array]:
        """Return the arrays that are not differentiated and differ from the call's."""
        return {
            i: a
            for i, a in leaves.items()
            if i not in self.subject.tracked and a is not self.leaves[i]
        }

    # -- comparing -----------------------------------------------------------------------------
    def _compared(
        self,
        name: str,
        got: list[Array],
        expected: list[Array],
        plain: tuple[dict[int, Array], list[Array]],
        expanded: bool,
    ) -> _Mismatch | None:
        """Return what is wrong beyond rounding; the outputs first."""
        wrong = beyond_rounding(
            self.session, got, expected, plain[1], functools.partial(self._noise, *plain, expanded)
        )
        if not wrong:
            return None
        count = len(self.arrays)
        i, where = min(wrong, key=lambda pair: pair[0] < count)
        argument = self.subject.names[i] if i < count else ""
        return _Mismatch(name, argument, expected[i], got[i], where)

    def _noise(self, leaves: dict[int, Array], seeds: list[Array], expanded: bool) -> list[float]:
        """Return how much rounding may change the results at this point."""
        arrays, others = [leaves[i] for i in self.subject.tracked], self._others(leaves)

        def compute(xs: Arrays, gs: Arrays) -> list[Array]:
            return self._results({i: a.copy() for i, a in others.items()}, copies(xs), gs)

        return rounding_noise(compute, arrays, seeds, apart=expanded)

    # -- reporting -----------------------------------------------------------------------------
    def report(self) -> None:
        """Report one failure for each array whose layout matters; note what forward refuses."""
        for what in dict.fromkeys(what for what, *_ in self.refused.values()):
            rows = [(name, line) for w, name, line in self.refused.values() if w == what]
            names = ", ".join(name for name, _ in rows)
            self.session.note(f"forward refuses {what} that is {names}: {rows[0][1]}")
        for what, wrong in self.found.items():
            first = wrong[0]
            name = what.strip("`")
            hint = _HINT.format(name if name.isidentifier() else "them")
            self.session.fail(
                Cause("layout", _text(what, wrong), hint),
                first.argument,
                expected=first.expected,
                got=first.got,
                wrong=first.where,
            )


_HINT = "call {0}.contiguous(), or numpy.ascontiguousarray(...) of its memory, before relying on it"
_NEEDED = {
    "misaligned": "aligned",
    "read-only": "writeable",
    "inside a larger storage": "contiguous, memory-owning",
}


def _text(what: str, wrong: Sequence[_Mismatch]) -> str:
    """Return the sentence that names the failing layouts."""
    names = {_short(w.layout) for w in wrong}
    needed = _NEEDED.get(next(iter(names)), "contiguous") if len(names) == 1 else "contiguous"
    arguments = list(dict.fromkeys(w.argument for w in wrong if not w.raised))
    if not arguments:
        who = f"backward raises ({wrong[0].raised}): it is"
    elif "" in arguments:
        who = "forward is"
    else:
        who = f"the gradient of {quoted(arguments, ' and ')} is"
    plural = "layouts are" if len(wrong) > 1 else "layout is"
    listed = ", ".join(w.layout for w in wrong)
    return f"{who} right only for {needed} {what}; the failing {plural} {listed}"


def _short(layout: str) -> str:
    """Return the name of a layout without its strides."""
    return layout.split(" (")[0]
