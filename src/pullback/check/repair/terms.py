"""What a gradient lacks, computed from the values at hand: sums over products of two of them.

What an expression of backward would need is known: a gradient from differences, another by solving
for it. So a missing term is not searched by trial: every product, sum of products and matrix
product of two values at hand is compared with what is missing, or with the whole.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.repair.atoms import Atom, kind_of, plain
from pullback.check.repair.edits import Edit
from pullback.check.repair.quoting import grouped
from pullback.check.values import Array

_SIZES = (1.0, 2.0, 0.5)
_MOST_FACTORS = 12  # numbers at hand that are combined
_MOST = 40  # values at hand that are combined
_MOST_NUMBERS = 4_000_000  # in all combinations of one shape
_RTOL = 1e-5
_FEW = 2  # numbers, which are in proportion to anything


class Terms:
    """What may be lacking: the products, sums of products and matrix products of values at hand.

    Parameters
    ----------
    atoms : sequence of Atom
    """

    def __init__(self, atoms: Sequence[Atom]) -> None:
        pool = [atom for atom in atoms if kind_of(atom.value) in "fci"][:_MOST]
        self._values = [(np.asarray(plain(atom.value)), atom.text) for atom in pool]
        self._plain = [
            pair for pair, atom in zip(self._values, pool, strict=True) if not _calls(atom.node)
        ]
        self._factors = _Factors(pool)
        self._tables: dict[tuple[int, ...], _Table] = {}
        self._pairs: dict[tuple[int, ...], tuple[list[str], Array]] = {}

    def edits(self, k: int, node: Any, got: Array, expected: Array) -> Iterator[Edit]:
        """Yield what makes the value of an expression the right one.

        Parameters
        ----------
        k, node : int, ast.expr
            The expression.
        got, expected : array
            What it is, and what it should be; NaN where that is not known.
        """
        known = np.isfinite(expected)
        lacking = np.where(known, expected - got, 0.0)
        own = f"({ast.unparse(node)})"
        targets = [(lacking, known, own, 4.0, "{}"), (expected, known, "", 4.5, "{}")]
        if known.all():
            parts = _along_axes(lacking)
            targets += [(part, np.ones(part.shape, bool), own, 4.2, form) for part, form in parts]
        for target, where, joined, cost, form in targets:
            for text, ratio in self._table(target.shape).in_proportion(target, where):
                factor = self._factors.of(ratio, target.size)
                if factor is not None:
                    yield Edit({k: _sum(joined, factor, form.format(f"({text})"))}, cost)

    def products(self, k: int, node: Any, got: Array, expected: Array) -> Iterator[Edit]:
        """Yield the same with products and quotients of three values, element by element."""
        if not np.isfinite(expected).all() or expected.size <= _FEW:
            return
        own = f"({ast.unparse(node)})"
        for target, joined, cost in ((expected - got, own, 5.0), (expected, "", 5.5)):
            for table in self._triples(target.shape):
                for text, ratio in table.in_proportion(target, np.ones(target.shape, bool)):
                    if min(abs(abs(ratio) - size) for size in _SIZES) <= _RTOL:
                        size = "{}" if abs(abs(ratio) - 1) <= _RTOL else f"{abs(ratio):.1g} * {{}}"
                        yield Edit({k: _sum(joined, (ratio, size), text)}, cost)

    def _triples(self, shape: tuple[int, ...]) -> Iterator[_Table]:
        """Yield tables of the products and quotients of three values, one for each third value."""
        fitting = [
            (np.broadcast_to(value, shape).ravel(), grouped(text))
            for value, text in self._plain
            if value.dtype.kind in "fi" and value.shape in ((), shape)
        ]
        if shape not in self._pairs:
            self._pairs[shape] = _pairs(fitting, math.prod(shape))
        texts, rows = self._pairs[shape]
        with np.errstate(all="ignore"):
            for third, text in fitting if len(rows) else ():
                yield _Table(texts, rows * third, f" * {text}")
                yield _Table(texts, rows / third, f" / {text}")

    def _table(self, shape: tuple[int, ...]) -> _Table:
        if shape not in self._tables:
            most = _MOST_NUMBERS // max(1, math.prod(shape))
            found = itertools.islice(_combinations(self._values, shape), most)
            pairs = [(text, value) for text, value in found if value.dtype.kind in "fcib"]
            rows = [value.ravel() for _, value in pairs]
            table = np.stack(rows) if rows else np.zeros((0, math.prod(shape)))
            self._tables[shape] = _Table([text for text, _ in pairs], table)
        return self._tables[shape]


def _sum(own: str, factor: tuple[float, str], term: str) -> Any:
    """Return an expression plus or minus a multiple of a term; the latter alone without one."""
    sign, size = factor
    joint = "-" if sign < 0 else "+" if own else ""
    return ast.parse(f"{own} {joint} {size.format(term)}".strip(), mode="eval").body


def _calls(node: ast.AST) -> bool:
    """Return whether an expression calls a function: a quotient by it would be far-fetched."""
    return any(isinstance(each, ast.Call) and each.args for each in ast.walk(node))


def _pairs(fitting: Sequence[tuple[Array, str]], size: int) -> tuple[list[str], Array]:
    """Return the products and quotients of two arrays, one in each row; none if there are many."""
    texts, rows = [], []
    if 2 * len(fitting) ** 2 * size <= _MOST_NUMBERS // 10:
        with np.errstate(all="ignore"):
            for j, (a, one) in enumerate(fitting):
                for m, (b, other) in enumerate(fitting):
                    if j <= m:
                        texts.append(f"{one} * {other}")
                        rows.append(a * b)
                    if j != m:
                        texts.append(f"{one} / {other}")
                        rows.append(a / b)
    return texts, np.stack(rows) if rows else np.zeros((0, size))


class _Table:
    """Combinations of one shape, one in each row; what follows the text of each."""

    def __init__(self, texts: Sequence[str], rows: Array, end: str = "") -> None:
        self._texts, self._rows, self._end = texts, rows, end

    def in_proportion(self, target: Array, where: Array) -> Iterator[tuple[str, float]]:
        """Yield the combinations of which an array is a multiple, and that multiple."""
        rows, wanted = self._rows[:, where.ravel()], target[where]
        if not rows.size or not np.any(wanted):
            return
        with np.errstate(all="ignore"):
            ratios = (rows.conj() @ wanted).real / np.sum(np.abs(rows) ** 2, axis=1)
            off = np.abs(ratios[:, None] * rows - wanted).max(axis=1)
        for j in map(int, np.flatnonzero(off <= _RTOL * np.abs(wanted).max())):
            yield self._texts[j] + self._end, float(ratios[j])


def _along_axes(lacking: Array) -> Iterator[tuple[Array, str]]:
    """Yield what is lacking without an axis along which it is constant, and how to broadcast it."""
    scale = np.abs(lacking).max(initial=0.0)
    for axis in range(lacking.ndim):
        part = lacking.take(0, axis) if lacking.shape[axis] > 1 else None
        if part is not None and np.abs(lacking - np.expand_dims(part, axis)).max() <= _RTOL * scale:
            places = ", ".join([":"] * axis + ["None"])
            yield part, "{}" if axis == 0 else f"{{}}[{places}]"


class _Factors:
    """The numbers by which a term may be multiplied: small ones, and those at hand."""

    def __init__(self, pool: Sequence[Atom]) -> None:
        numbers = [(1.0, "{}")]
        at_hand = [
            (float(np.real(plain(atom.value))), grouped(atom.text))
            for atom in pool
            if not np.shape(plain(atom.value)) and kind_of(atom.value) in "fi"
        ]
        at_hand = [(v, text) for v, text in at_hand if np.isfinite(v) and abs(v) not in (0.0, 1.0)]
        at_hand = at_hand[:_MOST_FACTORS]
        numbers += [(v, f"{text} * {{}}") for v, text in at_hand]
        numbers += [(1 / v, f"{{}} / {text}") for v, text in at_hand]
        for (v, one), (w, other) in itertools.product(at_hand, repeat=2):
            numbers.append((v * w, f"{one} * {other} * {{}}"))
            numbers.append((v / w, f"{one} / {other} * {{}}"))
        found = [
            (v * f, text if f == 1 else f"{f:g} * {text}") for v, text in numbers for f in _SIZES
        ]
        self._texts = [text for _, text in found]
        self._sizes = np.abs([v for v, _ in found])
        self._signs = np.sign([v for v, _ in found])

    def of(self, ratio: float, size: int) -> tuple[float, str] | None:
        """Return a number as a sign and a form; None if it is nothing at hand."""
        # Few numbers are in proportion to anything.
        sizes = self._sizes if size > _FEW else self._sizes[: len(_SIZES)]
        k = int(np.argmin(np.abs(sizes - abs(ratio))))
        if abs(sizes[k] - abs(ratio)) > _RTOL * abs(ratio):
            return None
        return float(np.sign(ratio) * self._signs[k]), self._texts[k]


def _combinations(
    values: Sequence[tuple[Array, str]], shape: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield every combination of values that has a shape, and how it is written."""
    if not shape:
        yield from ((text, value) for value, text in values if not value.ndim)
    for j, one in enumerate(values):
        yield from _fitting([one], shape)
        for other in values[j:]:
            yield from _fitting([one, other], shape)
            if other is not one:
                yield from _fitting([other, one], shape)


def _fitting(
    values: Sequence[tuple[Array, str]], shape: tuple[int, ...]
) -> Iterator[tuple[str, Array]]:
    """Yield the forms of values that have a shape."""
    for form, of in _forms((*(array.ndim for array, _ in values), len(shape))):
        try:
            found = np.asarray(of(*(array for array, _ in values)))
        except ValueError:
            continue
        if found.shape == shape:
            yield _written(form, [text for _, text in values]), found


# -- forms -----------------------------------------------------------------------------------------
# By the numbers of axes of the values and of the result; a and b are the values.
_MADE_OF_ONE: dict[tuple[int, ...], str] = {
    (1, 0): "a.sum()",
    (2, 0): "a.sum()",
    (1, 1): "a",
    (2, 1): "a.sum(0); a.sum(1)",
    (3, 1): "a.sum((0, 1)); a.sum((1, 2))",
    (2, 2): "a; a.T",
    (3, 2): "a.sum(0); a.sum(1); a.sum(2)",
    (3, 3): "a",
}
_MADE_OF_TWO: dict[tuple[int, ...], str] = {
    (0, 0, 0): "a * b; a / b",
    (0, 1, 1): "a * b; a / b",
    (0, 2, 2): "a * b; a * b.T",
    (0, 3, 3): "a * b",
    (1, 0, 1): "a / b",
    (1, 1, 0): "(a * b).sum()",
    (1, 1, 1): "a * b; a / b",
    (1, 1, 2): "np.outer(a, b)",
    (2, 0, 2): "a / b",
    (2, 1, 0): "(a * b).sum(); (a * b[:, None]).sum()",
    (2, 1, 1): "a @ b; a.T @ b; a.sum(0) * b; a.sum(1) * b",
    (2, 1, 2): "a * b; a * b[:, None]; a / b; a / b[:, None]; a.T * b",
    (2, 2, 0): "(a * b).sum()",
    (2, 2, 1): "(a * b).sum(0); (a * b).sum(1); (a * b.T).sum(1)",
    (2, 2, 2): "a * b; a / b; a @ b; a.T @ b; a @ b.T; (a @ b).T",
    (3, 0, 3): "a / b",
    (3, 1, 3): "a * b",
    (3, 2, 2): "(a * b[:, None]).sum(0); (a * b[..., None]).sum(1); (a * b[..., None]).sum(0)",
    (3, 3, 0): "(a * b).sum()",
    (3, 3, 1): "(a * b).sum((0, 1)); (a * b).sum((1, 2))",
    (3, 3, 2): "(a * b).sum(0); (a * b).sum(1); (a * b).sum(2)",
    (3, 3, 3): "a * b; a / b; a @ b",
}
_LETTERS = re.compile(r"\b[ab]\b")


@functools.cache
def _forms(kinds: tuple[int, ...]) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return the forms for values and a result of so many axes, each with its function."""
    single = len(kinds) == 2
    text = (_MADE_OF_ONE if single else _MADE_OF_TWO).get(kinds, "")
    head = "lambda a: " if single else "lambda a, b: "
    return tuple((form, eval(head + form, {"np": np})) for form in text.split("; ") if form)


def _written(form: str, values: Sequence[str]) -> str:
    """Return a form with the expressions of its values."""
    parts = list(map(grouped, values))
    return _LETTERS.sub(lambda found: parts["ab".index(found[0])], form)
