"""What a gradient lacks, computed from the values at hand: sums over products of two of them.

Where backward computes a gradient that is wrong, the right one is known from differences. So a
missing term is not searched by trial: every product, sum of products and matrix product of two
values at hand is compared with what is missing, or with the whole.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.mending.atoms import Atom, kind_of, plain
from pullback.check.mending.edits import Edit
from pullback.check.values import Array

_FACTORS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
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
    for text, value in _combinations(pool, got.shape):
        value = np.where(known, value, 0.0)
        for target, joined, cost in ((lacking, f"({ast.unparse(node)})", 4.0), (whole, "", 4.5)):
            factor = _factor(target, value)
            if factor is not None:
                yield _edit(k, joined, factor, text, cost)


def _combinations(pool: Sequence[Atom], shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield every combination of values that has a shape, and how it is written."""
    values = [(np.asarray(plain(atom.value)), ast.unparse(atom.node)) for atom in pool]
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


def _factor(target: Array, value: Array) -> float | None:
    """Return the small number by which a value is the target; None if there is none."""
    if value.dtype.kind not in "fcib" or value.shape != target.shape:
        return None
    size = float(np.vdot(value, value).real)
    if not size > 0 or not np.isfinite(size):
        return None
    ratio = float(np.vdot(value, target).real) / size
    factor = min(_FACTORS, key=lambda f: abs(f - ratio))
    if abs(factor - ratio) > _RTOL * abs(factor):
        return None
    close = np.abs(target - factor * value).max() <= _RTOL * np.abs(target).max()
    return factor if close else None


def _edit(k: int, joined: str, factor: float, text: str, cost: float) -> Edit:
    sign = "-" if factor < 0 else "+" if joined else ""
    size = "" if abs(factor) == 1 else f"{abs(factor):g} * "
    return Edit({k: ast.parse(f"{joined} {sign} {size}({text})".strip(), mode="eval").body}, cost)


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
    grouped = [text if text.isidentifier() else f"({text})" for text in values]
    return _LETTERS.sub(lambda found: grouped["ab".index(found[0])], form)
