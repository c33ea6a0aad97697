"""Passes of backward whose right gradients are known, and what they tell of its expressions.

Owns what a change has to do: make wrong gradients right for two output gradients and at other
values, make none wrong that was right, and leave what forward returns as it is. Gradients are
functions of every value that backward computes; so what a value would need to be is solved for.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from types import CellType
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.explain.evidence import Evidence
from pullback.check.numerical import coordinates
from pullback.check.repair.sites import Change, Rewritten, kind_of, owned, plain, shape_of
from pullback.check.repair.source import Places, Source, replaced
from pullback.check.session import Session, gradients
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies, host, in_place_of
from pullback.core.custom.define import once_differentiable
from pullback.core.custom.operation import CustomOp

_SAME = 1e-6  # relative, of gradients that a change must not change
_SECONDS = 0.4  # of the processor, to solve for what is needed
_MOST = 40  # numbers that are solved for at once
_STEP = 1e-6  # of differences, in proportion to the largest number
_RANK = 1e-9  # of singular values, in proportion to the largest
_TURNS = 6  # of Newton's method
_RTOL = 1e-5  # to which what is needed is known
_LINEAR = 1e-3  # by how much a step may miss where gradients depend on a value linearly


class Edit(NamedTuple):
    """A change of one function that may have been meant: the less likely, the higher its cost."""

    cost: float
    source: Source
    places: Places


class Trials:
    """The passes on which changes of an operation are tried.

    Attributes
    ----------
    evidence : Evidence
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
        self._op = _op_of(evidence.session.subject.fn, self.backward, self.saver)
        with self.saver.noting() as seen:
            self._main = self._run(evidence)
        with self.backward.noting() as own:
            self.first = self._vjp(self._main, evidence.seeds)
        again = self._vjp(self._main, evidence.seeds)
        # A rule that changes what was saved needs a new forward for each pass.
        self._anew = not _equal(self.first, again)
        self.names: dict[Source, dict[str, Any]] = {}
        for rewritten, found in ((self.backward, own), (self.saver, seen)):
            for k, each in found.items():
                rewritten.sites[k][1].seen = each
            for source in rewritten.sources.values():
                self.names[source] = rewritten.names_in(found, source)

    def _run(self, e: Evidence | Session) -> Run:
        session = e.session if isinstance(e, Evidence) else e
        subject = session.subject.with_arrays(copies(e.arrays))
        subject.fn = self._op
        return subject.run()

    def _vjp(self, run: Run, seeds: Sequence[Any]) -> list[Array]:
        return gradients(run, seeds, [host(each) for each in run.tensors])

    def gradients_with(self, changes: Mapping[int, Change]) -> list[Array]:
        """Return the gradients with other values of some expressions of backward."""
        run = self._run(self.evidence) if self._anew else self._main
        with self.backward.with_values(changes):
            return self._vjp(run, self.evidence.seeds)

    def mended_by(self, edit: Edit) -> tuple[int, ...]:
        """Return the arguments whose gradients a change makes right, if it makes none wrong."""
        e, right = self.evidence, self.wrong
        points = [(e, e.seeds, e.expected), (e, e.other.seeds, e.other.expected)]
        if e.elsewhere is not None:
            points.append((e.elsewhere, e.elsewhere.seeds, e.elsewhere.expected))
        try:
            with self._changed(edit) as lent:
                for point, seeds, expected in points:
                    found = self._gradients(point, lent, seeds)
                    right = self.right_of(found, expected, right, point)
                    if not right:
                        break
        except Exception:  # whatever a change leads to, it is not what was meant
            return ()
        return right

    @contextlib.contextmanager
    def _changed(self, edit: Edit) -> Iterator[dict[str, CellType]]:
        """Let an operation run with a change; yields the cells of forward's variables in it."""
        tree = replaced(edit.source.tree, [(old, owned(new)) for old, new in edit.places])
        lent = {name: CellType() for name in self.borrowed(edit)}
        unknown = _loaded(tree) - _known(edit.source) - lent.keys()
        known = {"np": np, **self.saver.source.known}
        more = {name: CellType(known[name]) for name in unknown & known.keys()}
        own = edit.source.function in self.backward.sources
        rewritten = self.backward if own else self.saver
        with rewritten.with_tree(edit.source, tree, {**lent, **more}):
            yield lent

    def borrowed(self, edit: Edit) -> list[str]:
        """Return the variables of forward that a change of another function uses."""
        loaded = set[str]().union(*(_loaded(new) for _, new in edit.places))
        return sorted((loaded - _known(edit.source)) & self.names[self.saver.source].keys())

    def _gradients(
        self, e: Evidence | Session, lent: Mapping[str, CellType], seeds: Sequence[Any]
    ) -> list[Array]:
        """Run forward and backward anew; other outputs than before are an error."""
        if not lent:
            run = self._run(e)
        else:
            with self.saver.noting() as seen:
                run = self._run(e)
            names = self.saver.names_in(seen, self.saver.source)
            for name, cell in lent.items():
                cell.cell_contents = names[name]
        if not _equal(run.values(), e.outputs):
            raise ValueError("other outputs")
        return self._vjp(run, seeds)

    def right_of(
        self, got: Arrays, expected: Arrays, wanted: Sequence[int], e: Evidence
    ) -> tuple[int, ...]:
        """Return which of some gradients are right; none if one that was right is not."""
        off = [i for i, g in enumerate(got) if e.differs(g, expected[i], i).any()]
        if any(i not in self.wrong for i in off):
            return ()
        return tuple(i for i in wanted if i not in off)

    def keeps(self, edit: Edit, session: Session, arguments: Sequence[int]) -> bool:
        """Return whether a change leaves the gradients of another call as they are."""
        seeds = session.seeds()
        before = self._gradients(session, {}, seeds)
        try:
            with self._changed(edit) as lent:
                after = self._gradients(session, lent, seeds)
        except Exception:
            return False
        pairs = [(before[i], after[i], np.max(np.abs(before[i]), initial=0.0)) for i in arguments]
        return all(np.allclose(b, a, _SAME, _SAME * size, equal_nan=True) for b, a, size in pairs)


def _op_of(op: Any, backward: Rewritten, saver: Rewritten) -> CustomOp:
    """Return an operation made of the rewritten functions of another."""
    rule, save = backward.called(), saver.called()
    if op.once:
        rule = once_differentiable(rule)
    forward, setup = (op.forward, save) if op.setup_context else (save, None)
    return CustomOp(op.name, forward, rule, setup_context=setup, traverse=op.traverse)


def _equal(arrays: Arrays, others: Arrays) -> bool:
    pairs = zip(arrays, others, strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def _loaded(new: Any) -> set[str]:
    nodes = (node for tree in (new if isinstance(new, list) else [new]) for node in ast.walk(tree))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _known(source: Source) -> set[str]:
    code = source.function.__code__
    return {*source.known, *code.co_varnames, *code.co_cellvars}


# -- values ----------------------------------------------------------------------------------------
class UnsafeError(Exception):
    """An expression may do more than return a value."""


def evaluated(node: Any, source: Source, names: Mapping[str, Any]) -> Any:
    """Return the value of a changed expression: nothing that the source has is evaluated again.

    Raises
    ------
    UnsafeError
        If it calls a method of something else than an array.
    Exception
        Whatever it raises.
    """
    values: dict[str, Any] = {}
    tree = ast.fix_missing_locations(ast.Expression(_with_values(node, values)))
    known = {"np": np, **source.known}
    return eval(compile(tree, "<change>", "eval"), known, {**names, **values})


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
            raise UnsafeError
    return type(node)(**{name: _with_values(v, values) for name, v in ast.iter_fields(node)})


class Need(NamedTuple):
    """What an expression had when it was first evaluated, and what it would need to have.

    It is NaN where that is not known; where it is not unique, other values would do as well.
    """

    node: Any
    value: Array
    needed: Array
    unique: bool = True

    def is_met_by(self, value: Any) -> bool:
        """Return whether another value is what is needed, or may be: it has another shape."""
        if not self.unique or not kind_of(value) or shape_of(value) != self.needed.shape:
            return True
        size = np.nanmax(np.abs(self.needed), initial=0.0)
        off = np.abs(plain(value) - self.needed)
        return bool(np.all((off <= _RTOL * size) | np.isnan(self.needed)))


class Needs:
    """What values backward's expressions would need for all gradients to be right, or for one."""

    def __init__(self, trials: Trials) -> None:
        self.trials, self.time = trials, Budget(_SECONDS)
        wrong = trials.wrong
        sets = dict.fromkeys([wrong, *((i,) for i in wrong)])
        self._goals = [_Goal(trials, each) for each in sets]
        self._found: dict[int, list[Need] | None] = {}

    def of(self, node: Any) -> list[Need] | None:
        """Return what would do for an expression; None where that is not known: anything may."""
        if node.site not in self._found:
            self._found[node.site] = self._gradient_itself(node) or self._solved(node)
        return self._found[node.site]

    def _gradient_itself(self, node: Any) -> list[Need]:
        """Return what is needed where the value is a gradient."""
        e, value = self.trials.evidence, node.seen.value
        once = shape_of(value) and node.seen.count == 1
        same = [i for i in self.trials.wrong if once and np.array_equal(plain(value), e.got[i])]
        return [Need(node, e.got[i], e.expected[i]) for i in same]

    def _solved(self, node: Any) -> list[Need] | None:
        """Solve for a value, for each goal; none where nothing would do for any of them."""
        count = node.seen.count * math.prod(shape_of(node.seen.value))
        kind = kind_of(node.seen.value)
        if kind not in ("f", "i") or not 0 < count <= _MOST or not self.time.lasts():
            return None
        found: list[Need] = []
        known = True
        for goal in self._goals:
            try:
                found += self._newton(node, goal, count)
            except Exception:  # whatever other values lead to, or that is not known
                known = False
        return found if found or known else None

    def _newton(self, node: Any, goal: _Goal, count: int) -> list[Need]:
        """Solve by Newton's method; an error where it does not end, or a copy is not the same."""
        value = np.asarray(plain(node.seen.value))
        shape = node.seen.count, *value.shape
        step_size = _STEP * (float(np.max(np.abs(value), initial=0.0)) or 1.0)

        def off(added: Array) -> list[Array]:
            return self.trials.gradients_with({node.site: _adding(iter(added.reshape(shape)))})

        added = np.zeros(count)
        base = goal.distance(off(added))
        if not np.allclose(base, goal.distance(self.trials.first), 1e-12, 0):
            raise ArithmeticError("it is written to")
        for turn in range(_TURNS):
            moved = added + step_size * np.eye(count)
            slopes = np.stack([goal.distance(off(each)) - base for each in moved], 1) / step_size
            inverse = np.linalg.pinv(slopes, rcond=_RANK)
            step = -inverse @ base
            added = added + step
            grads = off(added)
            after = goal.distance(grads)
            if goal.is_met_by(grads):
                unique = bool(np.linalg.matrix_rank(slopes, rtol=_RANK) == count)
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


class _Goal:
    """Some gradients that should become right, and those that should stay right."""

    def __init__(self, trials: Trials, wrong: Sequence[int]) -> None:
        e, self._trials, self._wrong = trials.evidence, trials, wrong
        self._chosen = [i for i in range(len(e.expected)) if i in wrong or i not in trials.wrong]
        goals = [(e.expected[i] if i in wrong else trials.first[i]) for i in self._chosen]
        flat = [coordinates(goal) for goal in goals]
        sizes = [np.max(np.abs(each[np.isfinite(each)]), initial=0.0) or 1.0 for each in flat]
        self._goal = np.concatenate(flat)
        self._sizes = np.repeat(sizes, [each.size for each in flat])
        self._known = np.isfinite(self._goal)

    def distance(self, grads: Sequence[Array]) -> Array:
        """Return how far gradients are from right ones, in proportion to these."""
        flat = np.concatenate([coordinates(grads[i]) for i in self._chosen])
        return np.asarray(((flat - self._goal) / self._sizes)[self._known])

    def is_met_by(self, grads: Sequence[Array]) -> bool:
        """Return whether gradients are right."""
        e = self._trials.evidence
        return self._trials.right_of(grads, e.expected, self._wrong, e) == tuple(self._wrong)


def _adding(left: Iterator[Array]) -> Change:
    """Return a change that adds to values, one after the other."""

    def change(value: Any) -> Any:
        array = np.asarray(plain(value) + next(left))
        return array if value is plain(value) else in_place_of(value, array)

    return change
