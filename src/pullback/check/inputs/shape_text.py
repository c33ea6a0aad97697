"""Descriptions of arguments: ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``.

Owns the grammar of such a text. An argument is a shape of symbols and numbers, followed by a dtype
and the domain of its values; or a literal of Python. Guessing tries the same specifications.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from pullback.arrays import DTYPES
from pullback.check.inputs.domains import DOMAINS
from pullback.errors import ArgumentError
from pullback.ops.primitives.trigonometric import tanh

KINDS = {
    **{name: name for name in DTYPES},
    "float": "float64",
    "complex": "complex128",
    "int": "int64",
}
WORDS = ("positive", "unit", "distinct", "permutation", "pointers", *DOMAINS)
# A word that says dtype and values at once.
_SHORT = {
    "mask": ("bool", ""),
    "permutation": ("int64", "permutation"),
    "pointers": ("int64", "pointers"),
}
_BELOW = re.compile(r"\bbelow\s+(\S+)")
_ARGUMENT = re.compile(r"(\w+)\s*(?:(=)|:)\s*(.*)", re.DOTALL)
_SHAPE = re.compile(r"\(([^()]*)\)(.*)", re.DOTALL)
_INTERVAL = re.compile(r"\bin\s*([\[(])([^,\])]+),([^,\])]+)([\])])")
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclasses.dataclass(frozen=True)
class Interval:
    """An interval; each end is a number or an expression of the sizes."""

    low: str
    high: str
    without_low: bool = False
    without_high: bool = False

    def __str__(self) -> str:
        left, right = "[("[self.without_low], "])"[self.without_high]
        return f"in {left}{self.low}, {self.high}{right}"


@dataclasses.dataclass(frozen=True)
class ArgumentSpec:
    """One argument: an array of a shape, or a literal.

    Attributes
    ----------
    name : str
    shape : tuple of str, or None
        A number, symbol or expression for each axis; None for a literal.
    dtype : str
    domain : str
        One of `WORDS`, empty, or ``"latin"``, which a text cannot express: indices of which none
        is repeated along an axis.
    interval : Interval, optional
        The interval of the values.
    value : object
        The literal.
    size : str
        In place of the literal, an expression of the sizes.
    """

    name: str
    shape: tuple[str, ...] | None = None
    dtype: str = "float64"
    domain: str = ""
    interval: Interval | None = None
    value: Any = None
    size: str = ""

    def __str__(self) -> str:
        """Return the description."""
        if self.size:
            return f"{self.name}: {self.size}"
        if self.shape is None:
            sign = "=" if isinstance(self.value, tuple) else ": "
            return f"{self.name}{sign}{self.value!r}"
        shape = ", ".join(self.shape) + ("," if len(self.shape) == 1 else "")
        words = [f"{self.name}: ({shape})"]
        if self.dtype != "float64":
            words.append({"int64": "int", "complex128": "complex"}.get(self.dtype, self.dtype))
        domain = "distinct" if self.domain == "latin" else self.domain
        words += [str(word) for word in (domain, self.interval) if word]
        return " ".join(words)

    @property
    def symbols(self) -> list[str]:
        """The symbols of its shape, in order."""
        return [name for size in self.shape or () for name in _symbols(size)]


# What stands for a value that has no literal: a smooth function of tensors or numbers, a seed.
VALUES: dict[str, Any] = {"callable": tanh, "seed": 0}
_VALUE = "a shape such as (n, d) or a literal of Python, a size, callable or seed for `{}`"


# -- reading ---------------------------------------------------------------------------------------
class _Reader:
    """Reads one text; its errors say at which character."""

    def __init__(self, api: str, text: str, names: Sequence[str] | None) -> None:
        self.api = api
        self.text = text
        self.names = names

    def refuse(self, required: str, came: str, position: int) -> NoReturn:
        known = f" The arguments are: {', '.join(self.names)}." if self.names else ""
        raise ArgumentError(
            f"{self.api}: {required} is required, got {came!r} at character {position} of "
            f"{self.text!r}.{known}\nhint: describe each argument by a shape or a value, such as "
            '"x: (n, d), index: (n,) int in [0, d), scale: 0.5".'
        )

    def pieces(self) -> Iterator[tuple[int, str]]:
        """Yield the pieces between the outer commas, and where they start."""
        depth, quote, start = 0, "", 0
        for i, char in enumerate(self.text):
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "([{":
                depth += 1
            elif char in ")]}":
                depth -= 1
            elif char == "," and depth == 0:
                yield start, self.text[start:i]
                start = i + 1
        if depth:
            self.refuse("a closing bracket for each opening one", self.text[start:], start)
        if self.text[start:].strip() or start == 0:
            yield start, self.text[start:]

    def argument(self, position: int, piece: str) -> ArgumentSpec:
        """Return the argument that one piece describes."""
        position += len(piece) - len(piece.lstrip())
        piece = piece.strip()
        found = _ARGUMENT.fullmatch(piece)
        if not found:
            self.refuse("an argument as `name: shape` or `name: value`", piece, position)
        name, literal, rest = found[1], bool(found[2]), found[3].strip()
        if self.names is not None and name not in self.names:
            self.refuse("the name of an argument", name, position)
        position += found.start(3)
        shaped = None if literal else _SHAPE.fullmatch(rest)
        if not shaped:
            return self.value(name, rest, position)
        sizes = [size.strip() for size in shaped[1].split(",")]
        sizes = sizes[:-1] if not sizes[-1] else sizes
        for size in sizes:
            if _expression(size) is None:
                self.refuse(f"a size for each axis of `{name}`", rest, position)
        return self.described(name, tuple(sizes), shaped[2], position + shaped.start(2))

    def value(self, name: str, text: str, position: int) -> ArgumentSpec:
        """Return an argument that is no array: a literal, a word for one, or a size."""
        if text in VALUES:
            return ArgumentSpec(name, value=VALUES[text])
        try:
            return ArgumentSpec(name, value=ast.literal_eval(text))
        except (ValueError, SyntaxError):
            if _expression(text) is not None:
                return ArgumentSpec(name, size=text)
        self.refuse(_VALUE.format(name), text, position)

    def described(
        self, name: str, shape: tuple[str, ...], words: str, position: int
    ) -> ArgumentSpec:
        """Return an array of a shape, with the dtype and domain in the words that follow it."""
        interval, dtype, domain = None, "float64", ""
        found = _INTERVAL.search(words)
        if found:
            low, high = found[2].strip(), found[3].strip()
            if _expression(low) is None or _expression(high) is None:
                self.refuse("an interval of numbers", found[0], position + found.start())
            interval = Interval(low, high, found[1] == "(", found[4] == ")")
            words = words.replace(found[0], " " * len(found[0]))
        below = _BELOW.search(words)
        if below and interval is None:
            interval, dtype = Interval("0", below[1], without_high=True), "int64"
            words = words.replace(below[0], " " * len(below[0]))
        for match in re.finditer(r"\S+", words):
            word = match[0]
            if word in KINDS:
                dtype = KINDS[word]
            elif word in _SHORT:
                dtype, domain = _SHORT[word]
            elif word in WORDS:
                domain = word
            elif word != "indices":
                valid = f"one of {', '.join([*KINDS, 'mask', *WORDS])}, in [a, b], below n"
                self.refuse(f"{valid} after the shape of `{name}`", word, position + match.start())
        square = domain in DOMAINS and DOMAINS[domain].square
        if square and (len(shape) < 2 or shape[-1] != shape[-2]):
            example = f"`{name}: (n, n) {domain}`"
            self.refuse(f"a square shape for {domain}, as in {example},", words, position)
        return ArgumentSpec(name, shape, dtype, domain, interval)


def parse(api: str, text: str, names: Sequence[str] | None = None) -> list[ArgumentSpec]:
    """Read a text that describes arguments.

    Parameters
    ----------
    api : str
        The function that messages name.
    text : str
        Such as ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``. After a shape: a dtype
        (float64 unless it says ``float32``, ``complex``, ``int``, ``bool``, ...), ``positive``,
        ``unit`` (between 0 and 1), ``distinct``, a word of `domains` such as ``spd``, ``simplex``
        or ``sorted``, ``mask``, ``permutation``, ``pointers`` (where the rows of a sparse matrix
        start: from the first to the last of its interval), ``int below n``, or ``in [a, b]`` with
        an end left out by a round bracket. In place of a shape: a literal, also as
        ``name=(0, 1)``, a size such as ``n``, ``callable`` or ``seed``.
    names : sequence of str, optional
        The valid names.

    Raises
    ------
    ArgumentError
        If the text is not such a description; the message says where.

    Examples
    --------
    >>> [str(d) for d in parse("here", "x: (n, 2*n), i: (n,) int in [0, n), axes=(0, 1)")]
    ['x: (n, 2*n)', 'i: (n,) int in [0, n)', 'axes=(0, 1)']
    """
    reader = _Reader(api, text, names)
    described = [reader.argument(position, piece) for position, piece in reader.pieces()]
    known = {name for d in described for name in d.symbols}
    for d in described:
        for end in (d.interval.low, d.interval.high) if d.interval else (d.size or "0",):
            if not known.issuperset(_symbols(end)):
                position = text.index(end, text.index(str(d.name)) + len(d.name))
                what = (
                    _VALUE.format(d.name) if d.size else "a number or a symbol of one of the shapes"
                )
                reader.refuse(what, end, position)
    return described


def is_description(text: str) -> bool:
    """Return whether a text reads as a description of arguments, not as an argument itself.

    Examples
    --------
    >>> is_description("x: (n,)"), is_description("CC(=O)O")
    (True, False)
    """
    return ":" in text


def _expression(text: str) -> ast.expr | None:
    """Return an expression of numbers and symbols, None if the text is not one."""
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    known = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.USub, ast.Load, *_OPERATORS)
    return parsed if all(isinstance(node, known) for node in ast.walk(parsed)) else None


def _symbols(size: str) -> list[str]:
    nodes = ast.walk(ast.parse(size, mode="eval"))
    return [n.id for n in nodes if isinstance(n, ast.Name) and n.id not in ("inf", "pi")]


def evaluate(text: str, sizes: dict[str, int]) -> Any:
    """Return the value of a size or of an interval's end.

    Examples
    --------
    >>> evaluate("2*n - 1", {"n": 3})
    5
    """
    known = {"inf": float("inf"), "pi": float(np.pi), **sizes}

    def value(node: ast.expr | None) -> Any:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        if isinstance(node, ast.Name):
            return known[node.id]
        assert isinstance(node, ast.Constant)
        return node.value

    return value(_expression(text))
