"""What a gradient lacks, computed from the values at hand: sums over products of two of them.

Where backward computes a gradient that is wrong, the right one is known from differences. So a
missing term is not searched by trial: every product, sum of products and matrix product of two
values at hand is compared with what is missing, or with the whole.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.mending.atoms import Atom, kind_of, plain
from pullback.check.mending.edits import Edit
from pullback.check.values import Array

_SIZES = (1.0, 2.0, 0.5)
_MOST_FACTORS = 12  # numbers at hand that are combined
_MOST = 40  # values at hand that are combined
_RTOL = 1e-5


def missing_terms(
    k: int, node: Any, got: Array, expected: Array, atoms: Sequence[Atom]
) -> Iterator[Edit]:
    """Yield what makes a computed gradient the right one.

    Parameters
    ----------
    k, node : int, ast.expr
        The expression that computes the gradient.
    got, expected : array
        What it is, and what it should be; NaN where that is not known.
    atoms : sequence of Atom
    """
    known = np.isfinite(expected)
    lacking = np.where(known, expected - got, 0.0)
    whole = np.where(known, expected, 0.0)
    pool = [atom for atom in atoms if kind_of(atom.value) in "fci"][:_MOST]
    factors = _Factors(pool)
    targets = [(lacking, known, f"({ast.unparse(node)})", 4.0, "{}"), (whole, known, "", 4.5, "{}")]
    if known.all():
        targets += [
            (part, np.ones(part.shape, bool), f"({ast.unparse(node)})", 4.2, form)
            for part, form in _along_axes(lacking)
        ]
    for target, where, joined, cost, form in targets:
        if not np.any(target):
            continue
        for text, value in _combinations(pool, target.shape):
            factor = factors.of(target, np.where(where, value, 0.0))
            if factor is not None:
                sign, size = factor
                joint = "-" if sign < 0 else "+" if joined else ""
                term = form.format(f"({text})")
                written = f"{joined} {joint} {size.format(term)}"
                yield Edit({k: ast.parse(written.strip(), mode="eval").body}, cost)


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
            (float(np.real(plain(atom.value))), _grouped(atom.text))
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

    def of(self, target: Array, value: Array) -> tuple[float, str] | None:
        """Return by what a value is the target: a sign, and a form; None if by nothing at hand."""
        if value.dtype.kind not in "fcib" or value.shape != target.shape:
            return None
        square = float(np.vdot(value, value).real)
        if not square > 0 or not np.isfinite(square):
            return None
        ratio = float(np.vdot(value, target).real) / square
        if not np.abs(target - ratio * value).max() <= _RTOL * np.abs(target).max():
            return None
        # One or two numbers are in proportion to anything.
        sizes = self._sizes if target.size > 2 else self._sizes[: len(_SIZES)]
        k = int(np.argmin(np.abs(sizes - abs(ratio))))
        if abs(sizes[k] - abs(ratio)) > _RTOL * abs(ratio):
            return None
        return float(np.sign(ratio) * self._signs[k]), self._texts[k]


def _combinations(pool: Sequence[Atom], shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield every combination of values that has a shape, and how it is written."""
    values = [(np.asarray(plain(atom.value)), atom.text) for atom in pool]
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
    grouped = list(map(_grouped, values))
    return _LETTERS.sub(lambda found: grouped["ab".index(found[0])], form)


def _grouped(text: str) -> str:
    return text if text.isidentifier() else f"({text})"
