"""Parts of forward that a wrong gradient takes for constants.

Forward runs with one of its expressions held at the values that it had, while the arguments move.
If backward's gradient is the derivative of that, what goes through the expression is left out.
"""

from __future__ import annotations

import ast
import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.diagnosis.evidence import Evidence
from pullback.check.exceptions import ForwardError
from pullback.check.mending.atoms import kind_of
from pullback.check.mending.sites import Rewritten
from pullback.check.mending.source import source_of
from pullback.check.numerical import across, coordinates, joined
from pullback.check.session import away_from_zero, direction_scales
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays
from pullback.core.custom.operation import CustomOp

_SECONDS = 0.4  # of the processor, for all arguments
_STEP, _CLOSE = 1e-5, 1e-6
_LONGEST = 60  # characters of a statement that is quoted


@dataclasses.dataclass(frozen=True)
class Held:
    """An expression of forward that backward takes for a constant.

    Attributes
    ----------
    text : str
        As it is written.
    around : str
        The expression or statement in which it stands; empty if it is one itself.
    line : int
    """

    text: str
    around: str
    line: int

    def __str__(self) -> str:
        where = f" in `{self.around}`" if self.around else ""
        return (
            f"it is right if `{self.text}`{where} (line {self.line} of forward) is held constant: "
            "what depends on the argument through it is left out"
        )


def held(evidence: Evidence, wrong: Sequence[int]) -> dict[int, Held]:
    """Return, for arguments whose gradients are wrong, what these take for a constant.

    Nothing where forward's source cannot be read.
    """
    op = evidence.session.subject.fn
    if not isinstance(op, CustomOp) or op.given_rule is None:
        return {}
    source = source_of(op.forward)
    if source is None or any(a.dtype != np.float64 for a in evidence.arrays):
        return {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _Holding(evidence, op, Rewritten(source)).found(wrong)


@dataclasses.dataclass
class _Point:
    """A call: the values of its arguments, backward's gradients, and forward's values there."""

    arrays: Arrays
    seeds: Array
    got: list[Array]
    tape: dict[int, list[Any]]


class _Holding:
    """The search for one operation."""

    def __init__(self, evidence: Evidence, op: CustomOp, forward: Rewritten) -> None:
        self.evidence, self.forward = evidence, forward
        self.subject: Subject = evidence.session.subject.with_arrays(evidence.arrays)
        setup = op.setup_context
        self.subject.fn = CustomOp(
            op.name, forward.called(), op.given_rule, setup_context=setup, traverse=op.traverse
        )
        self.time = Budget(_SECONDS)
        self.rng = np.random.default_rng(0)

    def found(self, wrong: Sequence[int]) -> dict[int, Held]:
        """Return what the gradients of arguments take for a constant, where that is found."""
        e = self.evidence
        try:
            main = self._point(e.arrays, joined(e.seeds), e.got)
            other = e.elsewhere
            points = [main, self._point(e.arrays, joined(e.other_seeds), e.got_other)]
            if other is not None:
                points.append(self._point(other.arrays, joined(other.seeds), other.got))
        except ForwardError:
            return {}
        results: dict[int, Held] = {}
        for i in wrong:
            for sites, told in self._candidates(main):
                if not self.time.left():
                    return results
                if all(self._fits(point, sites, i) for point in points):
                    results[i] = told
                    break
        return results

    def _point(self, arrays: Arrays, seeds: Array, got: list[Array]) -> _Point:
        probe = self.forward.probe
        probe.tape, probe.turns, probe.kept = {}, 0, 0
        try:
            self.subject.values(arrays)
            return _Point(arrays, seeds, got, probe.tape)
        finally:
            probe.tape, probe.most = None, max(probe.most, probe.turns)

    def _candidates(self, point: _Point) -> Iterator[tuple[list[int], Held]]:
        """Yield expressions, and how they are told: variables first, then by length."""
        sites = self.forward.sites
        real = [k for k, values in point.tape.items() if kind_of(values[0]) in ("f", "c")]
        texts = {k: ast.unparse(sites[k].node) for k in real}
        of_name: dict[tuple[int, str], list[int]] = {}
        for k in real:
            if isinstance(sites[k].node, ast.Name):
                of_name.setdefault((id(sites[k].source), texts[k]), []).append(k)
        for (_, name), uses in of_name.items():
            assigned = self._assigned(uses[0], name)
            if assigned is not None:
                yield uses, Held(ast.unparse(assigned), "", assigned.lineno)
        is_name = {k: isinstance(sites[k].node, ast.Name) for k in real}
        for k in sorted(real, key=lambda k: (not is_name[k], len(texts[k]))):
            around = self._around(k)
            if around:
                yield [k], Held(texts[k], _shortened(around), sites[k].line)

    def _assigned(self, k: int, name: str) -> Any:
        """Return the only statement that gives a variable its value."""
        found = [
            node
            for node in ast.walk(self.forward.sites[k].source.tree)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        ]
        if len(found) != 1:
            return None
        for node in ast.walk(self.forward.sites[k].source.tree):
            if isinstance(node, ast.Assign) and found[0] in ast.walk(node):
                return node if len(ast.unparse(node)) <= _LONGEST else None
        return None

    def _around(self, k: int) -> str:
        """Return what stands around an expression and its methods: a larger one, or a statement."""
        site = self.forward.sites[k]
        parents = {
            _place(child): node
            for node in ast.walk(site.source.tree)
            for child in ast.iter_child_nodes(node)
            if isinstance(node, (ast.expr, ast.stmt)) and _place(child) != _place(node)
        }
        own, found = site.node, parents.get(_place(site.node))
        while isinstance(found, ast.Attribute) or (
            isinstance(found, ast.Call) and found.func is own
        ):
            own, found = found, parents.get(_place(found))
        return "" if found is None else ast.unparse(found).splitlines()[0]

    def _fits(self, point: _Point, sites: Sequence[int], i: int) -> bool:
        """Return whether a gradient is the derivative with some expressions held."""
        flat = coordinates(point.arrays[i])
        direction = away_from_zero(flat.size, self.rng) * direction_scales(np.abs(flat))
        terms = direction * coordinates(point.got[i])

        def values(arrays: Arrays) -> Arrays:
            self.forward.probe.turns = 0
            with self.forward.changed({k: _replay(point.tape[k]) for k in sites}):
                return self.subject.values(arrays)

        try:
            change = across(values, point.arrays, i, _STEP * direction)
        except Exception:  # whatever it leads to
            return False
        if change is None or change.shape != point.seeds.shape:
            return False
        slope = float(point.seeds @ change) / (2 * _STEP)
        size = float(np.abs(terms).sum())
        return abs(slope - float(terms.sum())) <= _CLOSE * size and size > 0


def _replay(values: Sequence[Any]) -> Any:
    """Return a change that puts in the values of another run, one after the other."""
    left = iter(values)
    return lambda names: next(left)


def _place(node: Any) -> tuple[int, ...]:
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return tuple(getattr(node, name, -1) for name in names)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
