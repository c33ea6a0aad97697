"""Which way the comparisons in an operation went, in forward and in backward.

A comparison that was always true tells that what happens where it is false was not tried. Maxima,
minima, bounds and absolute values compare as well.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from pullback.check.repair.atoms import kind_of, plain
from pullback.check.repair.edits import Values
from pullback.check.repair.search import sources_of
from pullback.check.repair.sites import Rewritten, Seen
from pullback.check.repair.source import Source
from pullback.check.repair.trials import rewritten_op
from pullback.check.subject import Subject
from pullback.check.values import Array

_ZERO = ast.Constant(0)
_NUMBERS = {"0": _ZERO, "h": ast.Constant(0.5), "-h": ast.Constant(-0.5)}
# What these compare: their arguments a, b and c.
_IMPLICIT = {
    "maximum": ("a > b",), "fmax": ("a > b",), "minimum": ("a < b",), "fmin": ("a < b",),
    "clip": ("a < b", "a > c"), "abs": ("a < 0",), "fabs": ("a < 0",), "sign": ("a < 0",),
    "round": ("a > h", "a < -h"), "rint": ("a > h", "a < -h"), "around": ("a > h", "a < -h"),
}  # fmt: skip
_OPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_OF = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@dataclasses.dataclass
class Branch:
    """A comparison of numbers.

    Attributes
    ----------
    text : str
        As it is written.
    left, right : array
        What is compared.
    outcomes : frozenset of bool
        How it went.
    """

    text: str
    left: Array
    right: Array
    outcomes: frozenset[bool]


class Branches:
    """The comparisons of an operation, whose calls differ in the values of arguments alone.

    Parameters
    ----------
    op : callable

    Attributes
    ----------
    known : bool
        Whether there may be any, and the source is known.
    """

    def __init__(self, op: Any) -> None:
        sources = sources_of(op) or ()
        self.known = any(map(_may_compare, sources))
        if not self.known:
            return
        self._functions = [Rewritten(source) for source in sources]
        self._clone = rewritten_op(op, *self._functions)
        self._first: Subject | None = None  # of the calls so far

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, Branch]:
        """Return the comparisons of one call and its backward pass, by where they stand.

        Raises
        ------
        Exception
            Whatever forward or backward raises.
        """
        subject = Subject(self._clone, args, kwargs)
        if self._first is None:
            subject.run()
            self._first = subject
        subject.learn_from(self._first)  # so that forward runs once
        for function in self._functions:
            function.probe.seen = {}
        try:
            run = subject.run()
            run.vjp([np.ones_like(out) for out in run.values()])
            found = [function.probe.seen or {} for function in self._functions]
        finally:
            for function in self._functions:
                function.probe.seen = None
        branches: dict[Any, Branch] = {}
        for function, seen in zip(self._functions, found, strict=True):
            branches.update(_branches(function, seen))
        return branches


def _may_compare(source: Source) -> bool:
    """Return whether a function compares anything, or uses one of its file that may."""
    nodes = list(ast.walk(source.tree))
    if any(True for node in nodes for _ in _compared(node)):
        return True
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    known = source.known()
    return any(isinstance(known.get(name), FunctionType) for name in names)


def _branches(function: Rewritten, seen: dict[int, Seen]) -> Iterator[tuple[Any, Branch]]:
    """Yield the comparisons of a function by where and when they are made."""
    for time in range(1 + max((len(at.later) for at in seen.values()), default=0)):
        values = Values(function.sites, seen, time)
        for k in (k for k, at in seen.items() if len(at.later) >= time):
            site = function.sites[k]
            file = site.source.function.__code__.co_filename
            for j, (left, op, right) in enumerate(_compared(site.node)):
                branch = _branch(values, left, op, right)
                counts = (
                    isinstance(site.node, ast.BinOp) and branch and branch.left.dtype.kind != "f"
                )
                if branch is not None and not counts:
                    yield (file, site.node.lineno, site.node.col_offset, j, time), branch


def _branch(values: Values, left: Any, op: str, right: Any) -> Branch | None:
    """Return a comparison; None where what it compares is not known, or no numbers."""
    a, b = _numbers(values, left), _numbers(values, right)
    if a is None or b is None or (op in ("==", "!=") and a.dtype.kind == "f"):
        return None
    try:
        outcome = np.asarray(_OF[op](a, b))
    except (TypeError, ValueError):
        return None
    text = f"{ast.unparse(left)} {op} {ast.unparse(right)}"
    return Branch(text, a, b, frozenset(np.unique(outcome).tolist()))


def _compared(node: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield what an expression compares."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPS:
        yield node.left, _OPS[type(node.ops[0])], node.comparators[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # what is periodic
        yield node.left, ">=", node.right
        yield node.left, "<", _ZERO
    elif isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        name = function.id if isinstance(function, ast.Name) else name
        parts = dict(zip("abc", node.args, strict=False)) | _NUMBERS
        for text in _IMPLICIT.get(name, ()):
            left, op, right = text.split()
            if left in parts and right in parts:
                yield parts[left], op, parts[right]


def _numbers(values: Values, node: Any) -> Array | None:
    value = values.of(node)
    return np.asarray(plain(value)) if kind_of(value) in ("f", "i") else None
