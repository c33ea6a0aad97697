"""Passes of backward whose right gradients are known, and what they tell of its expressions.

Owns what a change has to do: make wrong gradients right for two output gradients and at other
values, make none wrong that was right, and leave what forward returns as it is. Gradients are
functions of every value that backward computes; so what a value would need to be is solved for.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.explain.evidence import Evidence
from pullback.check.numerical import coordinates
from pullback.check.repair.sites import Rewritten, kind_of, own, plain, shape_of
from pullback.check.repair.source import Places, Source, rebuilt, through
from pullback.check.report import Report
from pullback.check.session import Session, gradients
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies, host, in_place_of
from pullback.core.custom.define import once_differentiable
from pullback.core.custom.operation import CustomOp

_OWN, _CHANGE = "__own__", "__change__"
_SAME = 1e-6  # relative, of gradients that a change must not change
_SECONDS = 0.4  # of the processor, to solve for what is needed
_MOST = 40  # numbers that are solved for at once
_STEP = 1e-6  # of differences, in proportion to the largest number
_RANK = 1e-9  # of singular values, in proportion to the largest
_TURNS = 6  # of Newton's method
_RTOL = 1e-5  # to which what is needed is known
_LINEAR = 1e-3  # by how much a step may miss where gradients depend on a value linearly

Passes = Callable[[Array], list[Array]]  # gradients, with something added to a value


class Edit(NamedTuple):
    """A change of one function that may have been meant: the less likely, the higher its cost."""

    cost: float
    source: Source
    places: Places


class Trials:
    """The passes on which changes of an operation are tried.

    Attributes
    ----------
    wrong : tuple of int
        The arguments whose gradients are wrong.
    backward, saver : Rewritten
        The rule, and what saves values for it: forward or setup_context.
    first : list of array
        The gradients of the unchanged rule.
    names : dict of Source to dict
        The variables of all functions at their ends.
    """

    def __init__(
        self, evidence: Evidence, wrong: Sequence[int], rule: Source, saver: Source
    ) -> None:
        self.evidence, self.wrong = evidence, tuple(wrong)
        self.backward, self.saver = Rewritten(rule), Rewritten(saver)
        op: Any = evidence.session.subject.fn
        called, save = self.backward.called(), self.saver.called()
        self._op = CustomOp(
            op.name,
            op.forward if op.setup_context else save,
            once_differentiable(called) if op.once else called,
            setup_context=save if op.setup_context else None,
            traverse=op.traverse,
        )
        self._first: Run | None = None  # what was saved in it can be read as long as it is there
        with self.saver.noting() as seen, self.backward.noting() as found:
            self.first = self.gradients(evidence, evidence.seeds, {})
        for node, each in {**seen.seen, **found.seen}.items():
            node.seen = each
        sources = (*self.saver.sources.values(), *self.backward.sources.values())
        self.names = {each: dict[str, Any]() for each in sources} | seen.names | found.names
        base = evidence.session.subject.base  # the call of which this one is a variation
        self._base = Session(base, evidence.session.options, Report("", 0)) if base else None
        self._kept = self.gradients(self._base, self._base.seeds(), {}) if self._base else []

    def gradients(
        self, call: Evidence | Session, seeds: Arrays, lent: Mapping[str, CellType]
    ) -> list[Array]:
        """Run forward and backward, with some of forward's variables in cells of backward."""
        session = call.session if isinstance(call, Evidence) else call
        subject = session.subject.with_arrays(copies(session.arrays))
        subject.fn = self._op
        if lent:
            with self.saver.noting() as noted:
                run = subject.run()
            for name, cell in lent.items():
                cell.cell_contents = noted.names[self.saver.source][name]
        else:
            run = subject.run()
        self._first = self._first or run
        pairs = zip(run.values(), session.outputs, strict=True)
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
            raise ValueError("other outputs")
        return gradients(run, seeds, [host(each) for each in run.tensors])

    def mended_by(self, edit: Edit) -> tuple[int, ...]:
        """Return the arguments whose gradients a change makes right, if it makes none wrong.

        Those of the call of which this one is a variation stay as they are.
        """
        right = self.wrong
        try:
            with self._changed(edit) as lent:
                for look in self.evidence.looks():
                    right = self.right_of(self.gradients(look, look.seeds, lent), look, right)
                    if not right:
                        return ()
                again = self._base and self.gradients(self._base, self._base.seeds(), lent)
                return right if all(map(_same, self._kept, again or [])) else ()
        except Exception:  # whatever a change leads to, it is not what was meant
            return ()

    @contextlib.contextmanager
    def _changed(self, edit: Edit) -> Iterator[dict[str, CellType]]:
        """Let the operation run with a change; yields the cells of forward's variables in it."""
        lent = {name: CellType() for name in self.borrowed(edit)}
        known = {"np": np, **self.saver.source.known}
        new = (_loaded(edit) - edit.source.names) & known.keys()
        more = {name: known[name] for name in new}
        places = [(old, _owned(new)) for old, new in edit.places]
        is_rule = edit.source.function in self.backward.sources
        rewritten = self.backward if is_rule else self.saver
        with rewritten.changed(edit.source, places, {_OWN: own, **more, **lent}):
            yield lent

    def borrowed(self, edit: Edit) -> list[str]:
        """Return the variables of forward that a change of another function uses."""
        names = self.names[self.saver.source].keys()
        return sorted((_loaded(edit) - edit.source.names) & names)

    def right_of(self, got: Arrays, look: Evidence, wanted: Sequence[int]) -> tuple[int, ...]:
        """Return which of some gradients are right; none if one that was right is not."""
        off = [i for i, g in enumerate(got) if look.differs(g, look.expected[i], i).any()]
        if any(i not in self.wrong for i in off):
            return ()
        return tuple(i for i in wanted if i not in off)

    def value_of(self, new: Any, source: Source) -> Any:
        """Return the value of a changed expression: nothing that the source has is evaluated again.

        None if it calls a method of something else than an array, which may do more than return.
        """
        values: dict[str, Any] = {}
        try:
            tree = ast.fix_missing_locations(ast.Expression(_with_values(new, values)))
        except _UnsafeError:
            return None
        known = {"np": np, **source.known}
        names = {**self.names[self.saver.source], **self.names[source], **values}
        return eval(compile(tree, "<change>", "eval"), known, names)


def _same(a: Array, b: Array) -> bool:
    return np.allclose(a, b, _SAME, _SAME * np.max(np.abs(a), initial=0.0), equal_nan=True)


def _loaded(edit: Edit) -> set[str]:
    return {n.id for _, new in edit.places for n in ast.walk(new) if isinstance(n, ast.Name)}


def _owned(new: Any) -> Any:
    """Return a changed expression, or a statement, with copies of the arrays that it leads to."""
    if isinstance(new, ast.Assign):
        return rebuilt(new, value=_owned(new.value))
    is_stored = isinstance(getattr(new, "ctx", None), ast.Store)
    return through(_OWN, new) if isinstance(new, ast.expr) and not is_stored else new


class _UnsafeError(Exception):
    """An expression may do more than return a value."""


def _with_values(node: Any, values: dict[str, Any]) -> Any:
    """Return an expression with names for what is known, and the values of these."""
    if isinstance(node, list):
        return [_with_values(each, values) for each in node]
    if not isinstance(node, ast.AST):
        return node
    if hasattr(node, "seen"):
        name = f"_{len(values)}"
        values[name] = node.seen.value
        return ast.Name(name, ast.Load())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = getattr(node.func.value, "seen", None)
        if owner is not None and not kind_of(owner.value):
            raise _UnsafeError
    return type(node)(**{name: _with_values(v, values) for name, v in ast.iter_fields(node)})


# -- what a value would need to be -----------------------------------------------------------------
class Need(NamedTuple):
    """What an expression had when it was first evaluated, and what it would need to have.

    It is NaN where that is not known; where it is not unique, other values would do as well.
    """

    node: Any
    value: Array
    needed: Array
    unique: bool = True

    def is_met_by(self, value: Any) -> bool:
        """Return whether another value of the same shape is what is needed, or may be."""
        if not self.unique or not kind_of(value):
            return True
        size = np.nanmax(np.abs(self.needed), initial=0.0)
        off = np.abs(plain(value) - self.needed)
        return bool(np.all((off <= _RTOL * size) | np.isnan(self.needed)))


class Needs:
    """What values backward's expressions would need for all gradients to be right, or for one."""

    def __init__(self, trials: Trials) -> None:
        self.trials, self.time = trials, Budget(_SECONDS)
        wrong = trials.wrong
        self._goals = dict.fromkeys([wrong, *((i,) for i in wrong)])
        self._found: dict[Any, list[Need] | None] = {}

    def of(self, node: Any) -> list[Need] | None:
        """Return what would do for an expression; None where that is not known: anything may."""
        if node not in self._found:
            self._found[node] = self._gradient_itself(node) or self._solved(node)
        return self._found[node]

    def may_be(self, node: Any, value: Any) -> bool:
        """Return whether another value of an expression may be what it needs."""
        seen = node.seen
        if shape_of(value) != shape_of(seen.value):
            return True
        if seen.count == 1 and kind_of(value) and np.array_equal(plain(value), plain(seen.value)):
            return False
        needs = self.of(node)
        # In a loop the value is that of any turn.
        return needs is None or any(seen.count > 1 or need.is_met_by(value) for need in needs)

    def _gradient_itself(self, node: Any) -> list[Need]:
        """Return what is needed where the value is a gradient."""
        e, value = self.trials.evidence, plain(node.seen.value)
        once = shape_of(value) and node.seen.count == 1
        same = [i for i in self.trials.wrong if once and np.array_equal(value, e.got[i])]
        return [Need(node, e.got[i], e.expected[i]) for i in same]

    def _solved(self, node: Any) -> list[Need] | None:
        """Solve for a value, for each goal; none where nothing would do for any of them."""
        seen, found, known = node.seen, list[Need](), True
        shape = seen.count, *shape_of(seen.value)
        is_number = kind_of(seen.value) in ("f", "i")
        if not is_number or not 0 < math.prod(shape) <= _MOST or not self.time.lasts():
            return None
        left: list[Array] = []  # what is added to the values, one after the other

        def change(value: Any) -> Any:
            array = np.asarray(plain(value) + left.pop(0))
            return array if value is plain(value) else in_place_of(value, array)

        def gradients_with(added: Array) -> list[Array]:
            left[:] = added.reshape(shape)
            return self.trials.gradients(self.trials.evidence, self.trials.evidence.seeds, {})

        places = [(node, through(_CHANGE, node))]
        with self.trials.backward.changed(seen.source, places, {_CHANGE: change}):
            for goal in self._goals:
                try:
                    found += self._newton(node, goal, shape, gradients_with)
                except Exception:  # whatever other values lead to, or that is not known
                    known = False
        return found if found or known else None

    def _newton(
        self, node: Any, wanted: tuple[int, ...], shape: tuple[int, ...], gradients_with: Passes
    ) -> list[Need]:
        """Solve by Newton's method; an error where it does not end, or a copy is not the same."""
        value = np.asarray(plain(node.seen.value))
        step_size = _STEP * (float(np.max(np.abs(value), initial=0.0)) or 1.0)
        added = np.zeros(math.prod(shape))
        distance = self._distance(wanted)
        base = distance(gradients_with(added))
        if not np.allclose(base, distance(self.trials.first), 1e-12, 0):
            raise ArithmeticError("it is written to")
        for turn in range(_TURNS):
            moved = added + step_size * np.eye(added.size)
            slopes = np.stack([distance(gradients_with(each)) - base for each in moved], 1)
            slopes /= step_size
            inverse = np.linalg.pinv(slopes, rcond=_RANK)
            step = -inverse @ base
            added = added + step
            grads = gradients_with(added)
            after = distance(grads)
            if self.trials.right_of(grads, self.trials.evidence, wanted) == wanted:
                unique = bool(np.linalg.matrix_rank(slopes, rtol=_RANK) == added.size)
                first = (added - inverse @ after).reshape(shape)[0]
                return [Need(node, value, value + first, unique)]
            missed = np.abs(after - base - slopes @ step).max()
            linear = missed <= _LINEAR * np.abs(slopes @ step).max(initial=1e-9)
            if turn == 0 and linear and np.abs(after).max() > _LINEAR * np.abs(base).max():
                return []
            if missed == 0 or not np.isfinite(after).all():
                break
            base = after
        raise ArithmeticError("not solved")

    def _distance(self, wanted: Sequence[int]) -> Callable[[Sequence[Array]], Array]:
        """Return how far gradients are from right ones, or from what they were, in proportion."""
        e, first = self.trials.evidence, self.trials.first
        chosen = [i for i in range(len(first)) if i in wanted or i not in self.trials.wrong]
        flat = [coordinates(e.expected[i] if i in wanted else first[i]) for i in chosen]
        sizes = [np.max(np.abs(each[np.isfinite(each)]), initial=0.0) or 1.0 for each in flat]
        goal, size = np.concatenate(flat), np.repeat(sizes, [each.size for each in flat])
        tolerance = np.concatenate([coordinates(e.tolerance[i] + 0 * first[i]) for i in chosen])
        known = np.isfinite(goal) & (np.abs(tolerance) <= _LINEAR * size)

        def distance(grads: Sequence[Array]) -> Array:
            found = np.concatenate([coordinates(grads[i]) for i in chosen])
            return np.asarray(((found - goal) / size)[known])

        return distance
