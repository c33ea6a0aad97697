"""Passes of backward whose right gradients are known, and what they tell of its expressions.

Owns what a change has to do: make wrong gradients right for two output gradients and at other
values, make none wrong that was right, and leave what forward returns as it is. Gradients are
functions of every value that backward computes; so what a value would need to be is solved for.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.explain.evidence import Evidence
from pullback.check.numerical import coordinates
from pullback.check.repair.source import (
    Places,
    Rewritten,
    Source,
    kind_of,
    own,
    plain,
    rebuilt,
    shape_of,
    through,
    with_helpers,
)
from pullback.check.sizes import session_of, symbols, with_other_length
from pullback.check.subject import BackwardError, ForwardError, Run
from pullback.check.values import Array, Arrays, copies, in_place_of
from pullback.core.custom.define import once_differentiable
from pullback.core.custom.operation import CustomOp

_DRAWS = 4  # of other values
_OWN, _CHANGE = "__own__", "__change__"
_SECONDS = 0.4  # of the processor, to solve for what is needed
_MOST = 40  # numbers that are solved for at once
_STEP = 1e-6  # of differences, in proportion to the largest number
_RANK = 1e-9  # of singular values, in proportion to the largest
_TURNS = 6  # of Newton's method
_CLOSER = 0.5  # how far away a turn may leave it, in proportion
_RTOL = 1e-5  # to which what is needed is known

Passes = Callable[[Array], list[Array]]  # gradients, with something added to a value


class Edit(NamedTuple):
    """A change of one function that may have been meant: the less likely, the higher its cost."""

    cost: float
    source: Source
    places: Places

    @property
    def new_names(self) -> set[str]:
        """The names in it that its function does not know."""
        nodes = [node for _, new in self.places for node in ast.walk(new)]
        return {node.id for node in nodes if isinstance(node, ast.Name)} - self.source.names


class Trials:
    """The passes on which changes of an operation are tried.

    A rule, whose gradients of some arguments are wrong, and what saves values for it: forward or
    setup_context.
    """

    def __init__(
        self, evidence: Evidence, wrong: Sequence[int], rule: Source, saver: Source
    ) -> None:
        self.evidence, self.wrong, self.rule, self.saver = evidence, tuple(wrong), rule, saver
        used = with_helpers(saver)
        known = {each.function for each in used}
        # The functions that the rule calls and forward, which is right, does not.
        self.helpers = [each for each in with_helpers(rule)[1:] if each.function not in known]
        # Those of one argument that forward passes values through.
        arguments = [(each.tree.name, each.tree.args.args) for each in used[1:]]
        self.passed = [name for name, args in arguments if len(args) == 1 and name.isidentifier()]
        self.program = Rewritten([rule, *self.helpers, *used])
        op: Any = evidence.session.subject.fn
        called, save = (self.program.calls[each.function] for each in (rule, saver))
        self._op = CustomOp(
            op.name,
            op.forward if op.setup_context else save,
            once_differentiable(called) if op.once else called,
            setup_context=save if op.setup_context else None,
            traverse=op.traverse,
        )
        self._variables = functools.cache(self._variables_at)
        self._runs: list[Run] = []  # what was saved in the first can be read as long as it is there
        with self.program.noting() as noted:
            self.first = self.gradients(evidence)  # of the unchanged rule
        for node, seen in noted.seen.items():
            node.seen = seen
        # The variables of all functions at their ends.
        self.names = {each: noted.names.get(each, {}) for each in self.program.sources.values()}

    def gradients(self, look: Evidence) -> list[Array]:
        """Run forward and backward as they are now."""
        subject = look.session.subject.with_arrays(copies(look.arrays))
        subject.fn = self._op
        run = subject.run()
        self._runs = self._runs or [run]
        pairs = zip(run.values(), look.outputs, strict=True)
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
            raise ValueError("other outputs")
        return run.gradients(look.seeds)

    def mended_by(self, edit: Edit) -> tuple[int, ...]:
        """Return the arguments whose gradients a change makes right, if it makes none wrong."""
        right, lent, told = self.wrong, self.borrowed(edit), set[int]()
        places = [(old, _owned(new)) for old, new in edit.places]
        try:
            for look in self._looks():
                more = {_OWN: own, **{name: own(self._variables(look)[name]) for name in lent}}
                with self.program.changed(edit.source, places, more):
                    right = self.right_of(self.gradients(look), look, right)
                if not right:
                    break
                told |= {i for i in right if np.any(np.abs(look.expected[i]) > look.tolerance[i])}
        except Exception:  # whatever a change leads to, it is not what was meant
            return ()
        return tuple(i for i in right if i in told)  # of zeros alone nothing can be told

    def _looks(self) -> Iterator[Evidence]:
        """Yield the evidence that a change has to fit."""
        yield from self.evidence.looks()
        yield from self._base
        yield from self._fresh

    @functools.cached_property
    def _base(self) -> list[Evidence]:
        """The evidence on the call of which this one is a variation, which stays right."""
        base = self.evidence.session.subject.base
        return [self.evidence.on(base)] if base else []

    @functools.cached_property
    def _fresh(self) -> list[Evidence]:
        """The evidence at values drawn anew and at other sizes, where the rule does not raise.

        Values are of both signs if forward takes these; of more axes at last.
        """
        e, rng = self.evidence, self.evidence.session.rng("repairs")

        def drawn(x: Array, both: bool) -> Array:
            signs = rng.choice([-1.0, 1.0], x.shape) if both else 1.0
            return (
                rng.permutation(x.ravel()).reshape(x.shape) * signs * 10 ** rng.uniform(-0.5, 1.5)
            )

        subject = e.session.subject
        calls = [[drawn(x, k > 0).astype(x.dtype) for x in e.arrays] for k in range(_DRAWS)]
        found = [e.of(subject.with_arrays(arrays)) for arrays in calls]
        session = e.session.on(subject, max_elements=_MOST)
        twice = [np.stack([x, x]) if np.ndim(x) else x for x in session.leaves()]
        sizes = [with_other_length(session, symbol) for symbol in symbols(session)]
        for other in (session_of(session, twice), *(size[1] for size in sizes if size)):
            with contextlib.suppress(BackwardError, ForwardError):
                if other is not None:
                    found.append(Evidence(other))
        return [look for look in found if look]

    def _variables_at(self, look: Evidence) -> dict[str, Any]:
        with self.program.noting() as noted:
            self.gradients(look)
        return noted.names[self.saver]

    def borrowed(self, edit: Edit) -> list[str]:
        """Return the variables of forward that a change of another function uses."""
        return sorted(edit.new_names & self.names[self.saver].keys())

    def right_of(self, got: Arrays, look: Evidence, wanted: Sequence[int]) -> tuple[int, ...]:
        """Return which of some gradients are right; none if one that was right is not."""
        off = [i for i, g in enumerate(got) if look.differs(g, look.expected[i], i).any()]
        if any(i not in self.wrong and not look.wrong[i].any() for i in off):
            return ()
        return tuple(i for i in wanted if i not in off)


def _owned(new: Any) -> Any:
    """Return a changed expression, or a statement, with copies of the arrays that it leads to."""
    if isinstance(new, ast.Assign):
        return rebuilt(new, value=_owned(new.value))
    is_stored = isinstance(getattr(new, "ctx", None), ast.Store)
    return through(_OWN, new) if isinstance(new, ast.expr) and not is_stored else new


# -- what a value would need to be -----------------------------------------------------------------
class Need(NamedTuple):
    """What an expression would need to have when it is first evaluated; NaN where not known."""

    needed: Array
    unique: bool = True  # whether no other value would do as well

    def is_met_by(self, value: Array) -> bool:
        """Return whether another value of the same shape is what is needed, or may be."""
        size = np.nanmax(np.abs(self.needed), initial=0.0)
        off = np.abs(value - self.needed)
        return not self.unique or bool(np.all((off <= _RTOL * size) | np.isnan(self.needed)))


class Needs:
    """What values backward's expressions would need for all gradients to be right, or for one."""

    def __init__(self, trials: Trials) -> None:
        self.trials, self.time = trials, Budget(_SECONDS)
        wrong = trials.wrong
        self._goals = dict.fromkeys([wrong, *((i,) for i in wrong)])

    def of(self, node: Any) -> list[Need] | None:
        """Return what would do for an expression; None where that is not known: anything may."""
        return self._gradient_itself(node) or self._solved(node)

    def _gradient_itself(self, node: Any) -> list[Need]:
        """Return what is needed where the value is a gradient."""
        e, value = self.trials.evidence, plain(node.seen.value)
        once = shape_of(value) and node.seen.count == 1
        same = [i for i in self.trials.wrong if once and np.array_equal(value, e.got[i])]
        return [Need(e.expected[i]) for i in same]

    def _solved(self, node: Any) -> list[Need] | None:
        """Solve for a value, for each goal; none where nothing would do for any of them."""
        seen = node.seen
        shape = seen.count, *shape_of(seen.value)
        is_number = kind_of(seen.value) in ("f", "i")
        if not is_number or not 0 < math.prod(shape) <= _MOST or not self.time.lasts():
            return None
        left: list[Array] = []  # what is added to the values, one after the other

        def change(each: Any) -> Any:
            array = np.asarray(plain(each) + left.pop(0))
            return array if each is plain(each) else in_place_of(each, array)

        def gradients_with(added: Array) -> list[Array]:
            left[:] = added.reshape(shape)
            return self.trials.gradients(self.trials.evidence)

        found = []
        places = [(node, through(_CHANGE, node))]
        with self.trials.program.changed(seen.source, places, {_CHANGE: change}):
            for goal in self._goals:
                try:
                    added, unique = self._newton(goal, math.prod(shape), gradients_with)
                except ArithmeticError:
                    continue
                except Exception:  # whatever other values lead to
                    return None
                found.append(Need(plain(seen.value) + added.reshape(shape)[0], unique))
        return found

    def _newton(self, goal: tuple[int, ...], size: int, passes: Passes) -> tuple[Array, bool]:
        """Solve by Newton's method, uniquely or not; an `ArithmeticError` if it gets no closer."""
        distance, added = self._distance(goal), np.zeros(size)
        before = distance(passes(added))
        if not np.allclose(before, distance(self.trials.first), 1e-12, 0):
            raise ValueError("it is written to: a copy is not the same")
        for _ in range(_TURNS):
            moved = [distance(passes(added + each)) for each in _STEP * np.eye(size)]
            slopes = (np.stack(moved, 1) - before[:, None]) / _STEP
            added = added - np.linalg.pinv(slopes, rcond=_RANK) @ before
            grads = passes(added)
            if self.trials.right_of(grads, self.trials.evidence, goal) == goal:
                return added, bool(np.linalg.matrix_rank(slopes, rtol=_RANK) == size)
            after = distance(grads)
            if not np.abs(after).max() < _CLOSER * np.abs(before).max():
                break
            before = after
        raise ArithmeticError

    def _distance(self, goal: Sequence[int]) -> Callable[[Sequence[Array]], Array]:
        """Return how far gradients are from right ones, or from what they were, in proportion."""
        e, first = self.trials.evidence, self.trials.first
        chosen = [i for i in range(len(first)) if i in goal or i not in self.trials.wrong]
        parts = [coordinates(e.expected[i] if i in goal else first[i]) for i in chosen]
        sizes = [np.abs(part[np.isfinite(part)]).max(initial=0.0) or 1.0 for part in parts]
        right, size = np.concatenate(parts), np.repeat(sizes, [part.size for part in parts])
        known = np.isfinite(right)

        def distance(grads: Sequence[Array]) -> Array:
            found = np.concatenate([coordinates(grads[i]) for i in chosen])
            return np.asarray(((found - right) / size)[known])

        return distance
