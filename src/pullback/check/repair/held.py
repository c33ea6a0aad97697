"""Parts of forward that a wrong gradient takes for constants, or for too much.

Forward runs with one of its expressions held at the values that it had, while the arguments move.
By what the derivative differs then goes through the expression. If backward's gradient is the
derivative of that, it leaves this out; if it is off by a multiple of it, it has the wrong sign or
factor there.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.exceptions import ForwardError
from pullback.check.explain.evidence import Evidence
from pullback.check.numerical import across, coordinates, direction_scales, joined
from pullback.check.repair.atoms import kind_of, plain, shape_of
from pullback.check.repair.quoting import grouped
from pullback.check.repair.sites import Rewritten
from pullback.check.repair.source import source_of
from pullback.check.repair.trials import with_forward
from pullback.check.session import away_from_zero
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, in_place_of
from pullback.core.custom.operation import CustomOp

_SECONDS = 0.5  # of the processor, for all arguments
_STEP, _CLOSE = 1e-5, 1e-6
_SMALL = 1e-3  # what goes through an expression, in proportion to the gradient, at least
_LONGEST = 60  # characters of a statement that is quoted
# Parts of vectors, and those that matrices have beside these.
_PARTS = (("-1", "0", ":-1", "1:", "::2", "1::2"), ("..., -1", "..., 0", "..., :-1", "..., 1:"))
_EXTREMUM = re.compile(r"\ba?(max|min)$")
_NOTHING = ast.Constant("")
_TIMES = {-1.0: "has the wrong sign", 2.0: "counts twice", 0.5: "counts half"}


@dataclasses.dataclass(frozen=True)
class Held:
    """An expression of forward through which a gradient is wrong.

    Attributes
    ----------
    text : str
        As it is written.
    around : str
        The expression or statement in which it stands; empty for what is assigned there.
    line : int
    times : float
        How many times as large as it should be what depends on the argument through it is: 0 where
        it is taken for a constant.
    setting : str
        That in words, if it is a number among the arguments, or one over it; empty if it is none.
    """

    text: str
    around: str
    line: int
    times: float = 0.0
    setting: str = ""

    @property
    def verdict(self) -> str:
        """What is wrong with the gradient there."""
        if self.times == 0:
            return "is left out, as if it were constant"
        size = self.setting or f"is {self.times:.4g} times what it should be"
        return _TIMES.get(self.times, size)

    def __str__(self) -> str:
        where = f" in `{self.around}`" if self.around else ""
        return f"line {self.line} of forward: `{self.text}`{where}; all else is right"


def held(evidence: Evidence, wrong: Sequence[int]) -> dict[int, Held]:
    """Return, for arguments whose gradients are wrong, through what of forward they are.

    Nothing where forward's source cannot be read.
    """
    op = evidence.session.subject.fn
    if not isinstance(op, CustomOp) or op.given_rule is None:
        return {}
    source = source_of(op.forward)
    if source is None or any(a.dtype != np.float64 for a in evidence.arrays):
        return {}
    return _Holding(evidence, op, Rewritten(source)).found(wrong)


@dataclasses.dataclass
class _Point:
    """A call: the values of its arguments, backward's gradients, and forward's values there."""

    arrays: Arrays
    seeds: Array
    got: list[Array]
    tape: dict[int, list[Any]]


@dataclasses.dataclass
class _Line:
    """A point, a direction of one argument, and by how much the gradient along it is too large."""

    point: _Point
    direction: Array
    slope: float
    excess: float
    size: float


class _Candidate(NamedTuple):
    """Expressions that are held at once, the elements of these, and how that is told."""

    sites: Sequence[int]
    part: Any
    told: Held


class _Holding:
    """The search for one operation."""

    def __init__(self, evidence: Evidence, op: CustomOp, forward: Rewritten) -> None:
        self.evidence, self.forward = evidence, forward
        self.subject: Subject = evidence.session.subject.with_arrays(evidence.arrays)
        self.subject.fn = with_forward(op, forward)
        self.time = Budget(_SECONDS)
        self.rng = np.random.default_rng(0)

    def found(self, wrong: Sequence[int]) -> dict[int, Held]:
        """Return through what the gradients of arguments are wrong, where that is found."""
        try:
            points = self._points()
        except ForwardError:
            return {}
        results: dict[int, Held] = {}
        for i in wrong:
            lines = self._lines(points, i)
            for candidate, beside in self._candidates(points[0], lines, i) if lines else ():
                if not self.time.lasts():
                    return results
                times = self._times(candidate, beside, lines, i)
                if times is not None:
                    results[i] = self._told(candidate.told, times)
                    break
        return results

    def _told(self, told: Held, times: float) -> Held:
        numbers = [(name, v) for name, v in self.evidence.numbers if v not in (0.0, 1.0)]
        near = [name for name, v in numbers if abs(v - times) < _SMALL * abs(times)]
        inverse = [name for name, v in numbers if abs(v * times - 1) < _SMALL]
        setting = f"lacks the factor `{inverse[0]}`" if inverse else ""
        setting = f"is `{near[0]}` times what it should be" if near else setting
        return dataclasses.replace(told, times=times, setting=setting)

    def _points(self) -> list[_Point]:
        e = self.evidence
        points = [
            self._point(e.arrays, joined(e.seeds), e.got),
            self._point(e.arrays, joined(e.other_seeds), e.got_other),
        ]
        other = e.elsewhere
        if other is not None:
            points.append(self._point(other.arrays, joined(other.seeds), other.got))
        return points

    def _point(self, arrays: Arrays, seeds: Array, got: list[Array]) -> _Point:
        probe = self.forward.probe
        probe.tape, probe.turns, probe.kept = {}, 0, 0
        try:
            self.subject.values(arrays)
            return _Point(arrays, seeds, got, probe.tape)
        finally:
            probe.tape, probe.most = None, max(probe.most, probe.turns)

    def _candidates(
        self, point: _Point, lines: Sequence[_Line], i: int
    ) -> Iterator[tuple[_Candidate, Sequence[int]]]:
        """Yield expressions: variables first, then by length; then parts of them in this order.

        Then those beside which extrema are held that cancel, as in a softmax: a rule may leave
        these out rightly.
        """
        whole = list(self._whole(point))
        yield from ((candidate, ()) for candidate in whole)
        for sites, _, told in whole:
            name = grouped(ast.unparse(self.forward.sites[sites[0]].node))
            for text, part in _parts(shape_of(point.tape[sites[0]][0])):
                told = dataclasses.replace(told, text=f"{name}[{text}]")
                yield _Candidate(sites, part, told), ()
        cancelling = self._cancelling(point, lines[0], i)
        yield from ((candidate, cancelling) for candidate in whole if cancelling)

    def _cancelling(self, point: _Point, line: _Line, i: int) -> list[int]:
        """Return the extrema that depend on an argument, and through which forward does not."""
        found = [
            k
            for k in point.tape
            if _EXTREMUM.search(ast.unparse(getattr(self.forward.sites[k].node, "func", _NOTHING)))
        ]
        inert = []
        for k in found:
            slope = self._slope(
                point, line.direction, i, {k: partial(_replay, point.tape[k], None)}
            )
            if abs(line.slope - slope) <= _CLOSE * line.size:
                inert.append(k)
        return inert

    def _whole(self, point: _Point) -> Iterator[_Candidate]:
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
                yield _Candidate(uses, None, Held(name, "", assigned.lineno))
        is_name = {k: isinstance(sites[k].node, ast.Name) for k in real}
        for k in sorted(real, key=lambda k: (not is_name[k], len(texts[k]))):
            own, around = self._around(k)
            if around:
                told = Held(ast.unparse(own), _shortened(around), sites[k].line)
                yield _Candidate([k], None, told)

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
                return node
        return None

    def _around(self, k: int) -> tuple[Any, str]:
        """Return an expression with its methods, and the larger one or statement around it."""
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
        return own, "" if found is None else ast.unparse(found).splitlines()[0]

    def _lines(self, points: Sequence[_Point], i: int) -> list[_Line]:
        """Return directions of an argument at all points; none where a gradient is not known."""
        lines = []
        for point in [*points, points[0]]:
            flat = coordinates(point.arrays[i])
            direction = away_from_zero(flat.size, self.rng) * direction_scales(np.abs(flat))
            terms = direction * coordinates(point.got[i])
            slope = self._slope(point, direction, i, {})
            size = float(np.abs(terms).sum() + abs(slope))
            lines.append(_Line(point, direction, slope, float(terms.sum()) - slope, size))
        known = all(np.isfinite([line.slope, line.excess, line.size]).all() for line in lines)
        return lines if known and any(line.excess for line in lines) else []

    def _slope(self, point: _Point, direction: Array, i: int, change: dict[int, Any]) -> float:
        """Return forward's derivative along a direction, with some expressions changed."""

        def values(arrays: Arrays) -> Arrays:
            self.forward.probe.turns = 0
            with self.forward.changed({k: made() for k, made in change.items()}):
                return self.subject.values(arrays)

        try:
            found = across(values, point.arrays, {i: _STEP * direction})
        except Exception:  # whatever it leads to
            return np.nan
        if found is None or found.shape != point.seeds.shape:
            return np.nan
        return float(point.seeds @ found) / (2 * _STEP)

    def _times(
        self, candidate: _Candidate, beside: Sequence[int], lines: Sequence[_Line], i: int
    ) -> float | None:
        """Return how many times too large is what goes through expressions; None if by no one."""
        times = None
        for line in lines:
            tape = line.point.tape
            change = {k: partial(_replay, tape[k], None) for k in beside}
            change |= {k: partial(_replay, tape[k], candidate.part) for k in candidate.sites}
            through = line.slope - self._slope(line.point, line.direction, i, change)
            if not np.isfinite(through):
                return None
            if times is None:
                if abs(through) <= _SMALL * line.size:
                    return None
                times = 1 + line.excess / through
                times = round(times, 1) if abs(times - round(times, 1)) < _SMALL else times
            if abs(line.excess - (times - 1) * through) > _CLOSE * line.size:
                return None
        is_number = lines[0].direction.size == 1  # of which any two are in proportion
        return None if is_number and times not in (0.0, *_TIMES) else times


def _replay(values: Sequence[Any], part: Any) -> Any:
    """Return a change that puts in the values of another run, one after the other."""
    left = iter(values)

    def change(names: dict[str, Any], value: Any) -> Any:
        old = next(left)
        if part is None:
            return old
        array = np.array(plain(value))
        array[part] = plain(old)[part]
        return array if value is plain(value) else in_place_of(value, array)

    return change


def _parts(shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an array that may be treated otherwise than the rest."""
    for text in _PARTS[: len(shape)]:
        yield from ((each, eval(f"np.s_[{each}]", {"np": np})) for each in text)


def _place(node: Any) -> tuple[int, ...]:
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    return tuple(getattr(node, name, -1) for name in names)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
