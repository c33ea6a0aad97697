"""The values that expressions of backward would need for its gradients to be right.

Gradients are functions of every value that backward computes. So one that is wrong is found by
solving for it: where a value exists with which all gradients are right, the mistake may be there,
and what is lacking is known; where none does, no other expression need be tried.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.numerical import coordinates
from pullback.check.repair.atoms import kind_of, plain, shape_of
from pullback.check.repair.sites import Change, Seen
from pullback.check.repair.trials import Trials
from pullback.check.values import Array, in_place_of

_SECONDS = 0.4  # of the processor, for all expressions
_MOST = 40  # numbers that are solved for at once
_STEP = 1e-6  # of differences, in proportion to the largest number
_RANK = 1e-9  # of singular values, in proportion to the largest
_TURNS = 6  # of Newton's method
_RTOL = 1e-5  # to which what is needed is known
_LINEAR = 1e-3  # by how much a step may miss where gradients depend on a value linearly


@dataclasses.dataclass(frozen=True)
class Need:
    """What an expression had when it was first evaluated, and what it would need to have.

    Attributes
    ----------
    site : int
    value, needed : array
        NaN where what is needed is not known.
    unique : bool
        Whether no other values would do.
    """

    site: int
    value: Array
    needed: Array
    unique: bool = True

    def is_met_by(self, value: Any) -> bool:
        """Return whether another value is what is needed, or may be: it has another shape."""
        if value is None or np.shape(value) != self.needed.shape:
            return value is not None
        size = np.nanmax(np.abs(self.needed), initial=0.0)
        off = np.abs(value - self.needed)
        return bool(np.all((off <= _RTOL * size) | np.isnan(self.needed)))


class Needs:
    """What values backward's expressions would need.

    Parameters
    ----------
    trials : Trials
    """

    def __init__(self, trials: Trials) -> None:
        self.trials, self.time = trials, Budget(_SECONDS)
        e = trials.evidence
        self._goal = [
            e.expected[i] if i in trials.wrong else found for i, found in enumerate(trials.first)
        ]
        known = [coordinates(goal) for goal in self._goal]
        sizes = [np.max(np.abs(flat[np.isfinite(flat)]), initial=0.0) or 1.0 for flat in known]
        self._sizes = np.repeat(sizes, [flat.size for flat in known])
        self._known = np.isfinite(np.concatenate(known))
        self._solved: dict[int, Array | None] = {}
        self._hopeless: set[int] = set()
        self._unique: set[int] = set()

    def solve(self) -> None:
        """Solve for one expression after the other, those of few numbers first, while time is."""
        seen = self.trials.seen
        for k in sorted(seen, key=lambda k: (_count(seen[k]), k)):
            self._solve(k)

    def is_hopeless(self, k: int) -> bool:
        """Return whether no value of the shape that an expression has makes all gradients right."""
        self._solve(k)
        return k in self._hopeless

    def of(self, k: int) -> Need | None:
        """Return what is needed of an expression; None if that is not found."""
        if kind_of(self.trials.seen[k].value) not in ("f", "c"):
            return None
        return self._gradient_itself(k) or self._row_of_gradient(k) or self._by_solving(k)

    def all(self) -> Iterator[Need]:
        """Yield what is needed, of each expression of which that is found; no two alike.

        Small ones first, and no call before what it may return as it is.
        """
        told: set[Any] = set()
        seen, sites = self.trials.seen, self.trials.backward.sites
        is_call = {k: isinstance(sites[k].node, ast.Call) for k in seen}
        for k in sorted(seen, key=lambda k: (_count(seen[k]), is_call[k], k)):
            need = self.of(k)
            if need is not None:
                key = need.value.shape, need.value.tobytes(), np.round(need.needed, 9).tobytes()
                if key not in told:
                    told.add(key)
                    yield need

    # -- gradients -----------------------------------------------------------------------------
    def _gradient_itself(self, k: int) -> Need | None:
        """Return what is needed where the value is a gradient."""
        seen = self.trials.seen[k]
        value = np.asarray(plain(seen.then))
        for i in self.trials.wrong if seen.count == 1 else ():
            got = self.trials.evidence.got[i]
            if value.shape == got.shape and np.array_equal(value, got):
                return Need(k, got, self.trials.evidence.expected[i])
        return None

    def _row_of_gradient(self, k: int) -> Need | None:
        """Return what is needed where a loop computes a gradient row by row, from either end."""
        e, seen = self.trials.evidence, self.trials.seen[k]
        value = np.asarray(plain(seen.then))
        for i in self.trials.wrong:
            got = e.got[i]
            if got.ndim and seen.count == len(got) > 1 and value.shape == got.shape[1:]:
                for row in (0, len(got) - 1):
                    if np.array_equal(value, got[row]):
                        return Need(k, got[row], e.expected[i][row])
        return None

    # -- solving -------------------------------------------------------------------------------
    def _by_solving(self, k: int) -> Need | None:
        found = self._solve(k)
        if found is None:
            return None
        value = np.asarray(plain(self.trials.seen[k].then))
        first = found.reshape(self.trials.seen[k].count, *value.shape)[0]
        return Need(k, value, value + first, k in self._unique)

    def _solve(self, k: int) -> Array | None:
        """Return by how much the values of an expression would have to differ."""
        if k not in self._solved:
            self._solved[k] = None
            seen = self.trials.seen.get(k)
            count = _MOST + 1 if seen is None else _count(seen)
            solvable = 0 < count <= min(_MOST, int(self._known.sum()))
            if seen is not None and solvable and kind_of(seen.value) in "fi" and self.time.lasts():
                try:
                    self._solved[k] = self._newton(k, seen, count)
                except Exception:  # whatever other values lead to
                    self._solved[k] = None
        return self._solved[k]

    def _newton(self, k: int, seen: Seen, count: int) -> Array | None:
        """Solve by Newton's method; note where that is hopeless."""
        scale = float(np.max(np.abs(plain(seen.value)), initial=0.0)) or 1.0
        found = np.zeros(count)
        base, _ = self._off(k, seen, found)
        if not np.allclose(base, self._distance(self.trials.first), rtol=1e-12, atol=0):
            return None  # it is written to: a copy is not the same
        for turn in range(_TURNS):
            slopes = np.empty((base.size, count))
            for j in range(count):
                moved = found.copy()
                moved[j] += _STEP * scale
                slopes[:, j] = (self._off(k, seen, moved)[0] - base) / (_STEP * scale)
            inverse = np.linalg.pinv(slopes, rcond=_RANK)
            step = -inverse @ base
            found = found + step
            after, right = self._off(k, seen, found)
            if right:
                if np.linalg.matrix_rank(slopes, rtol=_RANK) == count:
                    self._unique.add(k)
                return np.asarray(found - inverse @ after)
            missed = np.abs(after - base - slopes @ step).max()
            linear = missed <= _LINEAR * np.abs(slopes @ step).max(initial=1e-9)
            if turn == 0 and linear and np.abs(after).max() > _LINEAR * np.abs(base).max():
                self._hopeless.add(k)
            if missed == 0 or not np.isfinite(after).all() or k in self._hopeless:
                return None
            base = after
        return None

    def _off(self, k: int, seen: Seen, added: Array) -> tuple[Array, bool]:
        """Return how far gradients are off with something added to a value; whether not at all."""
        shape = (seen.count, *shape_of(seen.value))
        grads = self.trials.gradients_with({k: _adding(added.reshape(shape))})
        e = self.trials.evidence
        pairs = enumerate(zip(grads, self._goal, strict=True))
        right = not any(e.differs(g, goal, i).any() for i, (g, goal) in pairs)
        return self._distance(grads), right

    def _distance(self, grads: Sequence[Array]) -> Array:
        """Return how far gradients are from right ones, in proportion to these."""
        pairs = zip(grads, self._goal, strict=True)
        flat = np.concatenate([coordinates(g) - coordinates(goal) for g, goal in pairs])
        return np.asarray((flat / self._sizes)[self._known])


def _adding(deltas: Array) -> Change:
    """Return a change that adds to values, one after the other."""
    left = iter(deltas)

    def change(names: dict[str, Any], value: Any) -> Any:
        array = np.asarray(plain(value) + next(left))
        return array if value is plain(value) else in_place_of(value, array)

    return change


def _count(seen: Seen) -> int:
    """Return how many numbers an expression had in all."""
    size = 1
    for length in shape_of(seen.value):
        size *= length
    return seen.count * size
