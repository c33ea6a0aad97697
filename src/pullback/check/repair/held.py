"""Parts of forward that a wrong gradient takes for constants, or for too much.

Forward runs with one of its expressions held at the values that it had, while the arguments move.
By what the derivative differs then goes through the expression. If backward's gradient is the
derivative of that, it leaves this out; if it is off by a multiple of it, it has the wrong sign or
factor there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.exceptions import ForwardError
from pullback.check.explain.evidence import Evidence
from pullback.check.numerical import across, coordinates, direction_scales, joined
from pullback.check.repair.sites import Change, Rewritten, Seen, kind_of, plain, shape_of
from pullback.check.repair.source import source_of
from pullback.check.session import away_from_zero
from pullback.check.values import Array, Arrays, in_place_of
from pullback.core.custom.operation import CustomOp

_SECONDS = 0.5  # of the processor, for all arguments
_STEP, _CLOSE = 1e-5, 1e-6
_SMALL = 1e-3  # what goes through an expression, in proportion to the gradient, at least
_LONGEST = 60  # characters of a statement that is quoted
# Parts of vectors, and those that matrices have beside these.
_PARTS = ["-1", "0", ":-1", "1:", "::2", "1::2"]
_VERDICTS = {
    0.0: "is left out, as if it were constant",
    -1.0: "has the wrong sign",
    2.0: "counts twice",
    0.5: "counts half",
}


class _Point(NamedTuple):
    """A call: the values of its arguments, backward's gradients, and forward's values there."""

    arrays: Arrays
    seeds: Array
    got: list[Array]
    seen: dict[int, Seen]


class _Line(NamedTuple):
    """A direction of one argument, and by how much the gradient along it is too large."""

    point: _Point
    direction: Array
    slope: float
    excess: float
    size: float


class _Part(NamedTuple):
    """Expressions that are held at once, the elements of these, and where they stand."""

    sites: Sequence[int]
    elements: Any
    text: str


def held(evidence: Evidence, wrong: Sequence[int]) -> dict[int, str]:
    """Return, for arguments whose gradients are wrong, through what of forward they are.

    Nothing where forward's source cannot be read.
    """
    op = evidence.session.subject.fn
    source = source_of(op.forward) if isinstance(op, CustomOp) and op.given_rule else None
    if source is None or any(a.dtype != np.float64 for a in evidence.arrays):
        return {}
    try:
        return _Holding(evidence, Rewritten(source)).found(wrong)
    except ForwardError:
        return {}


class _Holding:
    """The search for one operation."""

    def __init__(self, evidence: Evidence, forward: Rewritten) -> None:
        self.evidence, self.forward = evidence, forward
        self.subject = evidence.session.subject.with_arrays(evidence.arrays)
        op: Any = self.subject.fn
        setup, traverse = op.setup_context, op.traverse
        self.subject.fn = CustomOp(
            op.name, forward.called(), op.given_rule, setup_context=setup, traverse=traverse
        )
        self.time = Budget(_SECONDS)
        self.rng = np.random.default_rng(0)

    def found(self, wrong: Sequence[int]) -> dict[int, str]:
        """Return through what the gradients of arguments are wrong, where that is found."""
        e, other = self.evidence, self.evidence.elsewhere
        calls = [(e.arrays, e.seeds, e.got), (e.arrays, e.other.seeds, e.other.got)]
        calls += [] if other is None else [(other.arrays, other.seeds, other.got)]
        points = []
        for arrays, seeds, got in calls:
            with self.forward.noting() as seen:
                self.subject.values(arrays)
            points.append(_Point(arrays, joined(seeds), got, seen))
        results: dict[int, str] = {}
        for i in wrong:
            lines = [] if self._is_multiple(i) else self._lines(points, i)
            for part in self._parts(points[0]) if lines else ():
                if not self.time.lasts():
                    return results
                times = self._times(part, lines, i)
                if times is not None:
                    which = f"what depends on `{e.names[i]}` through one expression"
                    results[i] = f"{which} {self._verdict(times)}\n{part.text}; all else is right"
                    break
        return results

    def _is_multiple(self, i: int) -> bool:
        """Return whether a gradient is a multiple of the right one: no part of forward is wrong."""
        got, right = coordinates(self.evidence.got[i]), coordinates(self.evidence.expected[i])
        size = right @ right
        return right.size > 1 and bool(np.allclose(got * size, (got @ right) * right, _SMALL, 0.0))

    def _verdict(self, times: float) -> str:
        numbers = self.evidence.session.subject.number_arguments()
        numbers = [(name, v) for name, v in numbers if v not in (0.0, 1.0)]
        for name, v in numbers if times not in _VERDICTS else ():
            if abs(v - times) < _SMALL * abs(times):
                return f"is `{name}` times what it should be"
            if abs(v * times - 1) < _SMALL:
                return f"lacks the factor `{name}`"
        return _VERDICTS.get(times, f"is {times:.4g} times what it should be")

    # -- what is held ------------------------------------------------------------------------------
    def _parts(self, point: _Point) -> Iterator[_Part]:
        """Yield expressions: variables first, then by length; then parts of them in this order."""
        whole = list(self._whole(point))
        yield from (part for part, _ in whole)
        for part, (name, rest) in whole:
            axes = len(shape_of(point.seen[part.sites[0]].value))
            texts = [f"..., {each}" for each in _PARTS[:4]] if axes > 1 else []
            for text in [*_PARTS, *texts] if axes else ():
                elements = eval(f"np.s_[{text}]", {"np": np})
                yield _Part(part.sites, elements, f"{rest[0]}`{name}[{text}]`")

    def _whole(self, point: _Point) -> Iterator[tuple[_Part, Any]]:
        nodes = {k: self.forward.sites[k] for k, seen in point.seen.items() if self._fits(seen)}
        texts = {k: ast.unparse(node) for k, (_, node) in nodes.items()}
        uses: dict[tuple[int, str], list[int]] = {}
        for k, (source, node) in nodes.items():
            if isinstance(node, ast.Name):
                uses.setdefault((id(source), texts[k]), []).append(k)
        for (_, name), sites in uses.items():
            tree = nodes[sites[0]][0].tree
            stored = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and _stores(n, name)]
            if len(stored) == 1:
                where = f"line {stored[0].lineno} of forward: "
                yield _Part(sites, None, f"{where}`{name}`"), (name, (where,))
        for k in sorted(
            nodes, key=lambda k: (not isinstance(nodes[k][1], ast.Name), len(texts[k]))
        ):
            source, node = nodes[k]
            own, around = _around(source.tree, node)
            if around is not None:
                where = f"line {node.lineno} of forward: "
                text = ast.unparse(around).splitlines()[0]
                text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
                told = f"{where}`{ast.unparse(own)}` in `{text}`"
                yield (
                    _Part([k], None, told),
                    (texts[k] if texts[k].isidentifier() else f"({texts[k]})", (where,)),
                )

    def _fits(self, seen: Seen) -> bool:
        return kind_of(seen.value) in ("f", "c") and len(seen.values) == seen.count

    # -- what goes through it ----------------------------------------------------------------------
    def _lines(self, points: Sequence[_Point], i: int) -> list[_Line]:
        """Return directions of an argument at all points; none where a gradient is not known."""
        lines = []
        for point in [*points, points[0]]:
            flat = coordinates(point.arrays[i])
            direction = away_from_zero(flat.size, self.rng) * direction_scales(np.abs(flat))
            terms = direction * coordinates(point.got[i])
            slope = self._slope(point, direction, i, (), None)
            size = float(np.abs(terms).sum() + abs(slope))
            lines.append(_Line(point, direction, slope, float(terms.sum()) - slope, size))
        known = all(np.isfinite([line.slope, line.excess, line.size]).all() for line in lines)
        return lines if known and any(line.excess for line in lines) else []

    def _slope(
        self, point: _Point, direction: Array, i: int, sites: Sequence[int], elements: Any
    ) -> float:
        """Return forward's derivative along a direction, with some expressions held."""

        def values(arrays: Arrays) -> Arrays:
            changes = {k: _replay(point.seen[k].values, elements) for k in sites}
            with self.forward.with_values(changes):
                return self.subject.values(arrays)

        try:
            found = across(values, point.arrays, {i: _STEP * direction})
        except Exception:  # whatever it leads to
            return np.nan
        if found is None or found.shape != point.seeds.shape:
            return np.nan
        return float(point.seeds @ found) / (2 * _STEP)

    def _times(self, part: _Part, lines: Sequence[_Line], i: int) -> float | None:
        """Return how many times too large is what goes through a part; None if by no one factor."""
        times = None
        for line in lines:
            slope = self._slope(line.point, line.direction, i, part.sites, part.elements)
            through = line.slope - slope
            if times is None:
                if not abs(through) > _SMALL * line.size:
                    return None
                times = 1 + line.excess / through
                times = round(times, 1) if abs(times - round(times, 1)) < _SMALL else times
            if not abs(line.excess - (times - 1) * through) <= _CLOSE * line.size:
                return None
        is_number = lines[0].direction.size == 1  # of which any two are in proportion
        return None if is_number and times not in _VERDICTS else times


def _replay(values: Sequence[Any], elements: Any) -> Change:
    """Return a change that puts in the values of another run, one after the other."""
    left = iter(values)

    def change(value: Any) -> Any:
        old = next(left)
        if elements is None:
            return old
        array = np.array(plain(value))
        array[elements] = plain(old)[elements]
        return array if value is plain(value) else in_place_of(value, array)

    return change


def _stores(statement: ast.Assign, name: str) -> bool:
    nodes = (node for target in statement.targets for node in ast.walk(target))
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


def _around(tree: ast.AST, node: Any) -> tuple[Any, Any]:
    """Return an expression with its methods, and the larger one or statement around it."""
    parents = {
        id(child): parent
        for parent in ast.walk(tree)
        for child in ast.iter_child_nodes(parent)
        if isinstance(parent, (ast.expr, ast.stmt))
    }
    own, found = node, parents.get(id(node))
    while isinstance(found, ast.Attribute) or (isinstance(found, ast.Call) and found.func is own):
        own, found = found, parents.get(id(found))
    return own, None if isinstance(found, ast.FunctionDef) else found
