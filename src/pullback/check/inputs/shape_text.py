"""Descriptions of arguments: ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``.

Owns the grammar of such a text. An argument is a shape of symbols and numbers, followed by a dtype
and the domain of its values; or a literal of Python. Guessing tries the same specifications.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.arrays import DTYPES
from pullback.check.inputs.domains import DOMAINS
from pullback.errors import ArgumentError
from pullback.ops.primitives.trigonometric import tanh

KINDS = {name: name for name in DTYPES} | {"float": "float64", "complex": "complex128"}
KINDS |= {"int": "int64", "mask": "bool"}
_WHOLE = ("permutation", "pointers")  # of whole numbers
WORDS = ("positive", "unit", "distinct", *_WHOLE, *DOMAINS)
_OF_SQUARES = [word for word, domain in DOMAINS.items() if domain.square]
# What stands for a value that has no literal: a smooth function of tensors or numbers, a seed.
VALUES: dict[str, Any] = {"callable": tanh, "seed": 0}
_VALUE = "a shape such as (n, d) or a literal of Python, a size, callable or seed for `{}`"

_BETWEEN = re.compile(r",(?=\s*\w+\s*[:=])")  # two arguments
_ARGUMENT = re.compile(r"(\w+)\s*(?::\s*\(([^()]*)\)(.*)|[:=]\s*(.*))", re.DOTALL)
# One word after a shape; an interval is one.
_WORD = re.compile(r"\bin\s*([\[(])([^,\])]*),([^,\])]*)([\])])|below\s+([^\s,;.]+)|[^\s,;.]+")
# In a docstring: "x : Tensor of shape (n, d)", "x, y: (n,) positive".
_SAID = re.compile(r"((?:\w+, )*\w+)\s*:([\w, ]*)\((|[\w\s*+-]+,[\w\s,*+-]*)\)([^\n;:]*)")


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
    """One argument: an array of a shape, or a literal."""

    name: str
    shape: tuple[str, ...] | None = None  # a size for each axis; None of what is no array
    dtype: str = "float64"
    domain: str = ""  # one of `WORDS`, or empty
    interval: Interval | None = None  # of the values
    value: Any = None  # the literal
    size: str = ""  # in place of the literal, an expression of the sizes

    def __str__(self) -> str:
        """Return the description."""
        if self.shape is None:
            sign = "=" if isinstance(self.value, tuple) else ": "
            literal = "callable" if callable(self.value) else repr(self.value)
            return f"{self.name}{sign}{self.size or literal}"
        shape = ", ".join(self.shape) + ("," if len(self.shape) == 1 else "")
        dtype = {"float64": "", "int64": "int", "complex128": "complex"}.get(self.dtype, self.dtype)
        words = [dtype, self.domain, str(self.interval or "")]
        return " ".join([f"{self.name}: ({shape})", *filter(None, words)])

    @property
    def symbols(self) -> list[str]:
        """The symbols of its shape, in order."""
        return [name for size in self.shape or () for name in _symbols(size) or ()]

    @property
    def is_square(self) -> bool:
        """Whether the last two axes have one length."""
        return (self.shape or ())[-2:-1] == (self.shape or ())[-1:] != ()


# -- reading ---------------------------------------------------------------------------------------
def parse(api: str, text: str, names: Sequence[str] | None = None) -> list[ArgumentSpec]:
    """Read a text that describes arguments, such as ``"x: (n, d), i: (n,) int in [0, d)"``.

    After a shape: a dtype (float64 unless it says ``float32``, ``complex``, ``int``, ...), one of
    `WORDS` such as ``positive``, ``distinct`` or ``spd``, ``mask``, ``int below n``, or ``in
    [a, b]`` with an end left out by a round bracket. In place of a shape: a literal, also as
    ``name=(0, 1)``, a size such as ``n``, ``callable`` or ``seed``. An `ArgumentError` that names
    `api` says where a text is not such a description.

    Examples
    --------
    >>> [str(d) for d in parse("here", "x: (n, 2*n), i: (n,) int in [0, n), axes=(0, 1)")]
    ['x: (n, 2*n)', 'i: (n,) int in [0, n)', 'axes=(0, 1)']
    """
    described: list[ArgumentSpec] = []
    try:
        for piece in _BETWEEN.split(text.rstrip().removesuffix(",")):
            described.append(_argument(piece.strip(), names))
        symbols = {name for d in described for name in d.symbols}
        for d in described:
            for end in (d.interval.low, d.interval.high) if d.interval else (d.size or "0",):
                if not symbols.issuperset(_symbols(end) or ()):
                    symbol = "a number or a symbol of one of the shapes"
                    raise _RefusedError(_VALUE.format(d.name) if d.size else symbol, end)
    except _RefusedError as error:
        required, came = error.args
        known = f" The arguments are: {', '.join(names)}." if names else ""
        raise ArgumentError(
            f"{api}: {required} is required, got {came!r} in {text!r}.{known}\n"
            "hint: describe each argument by a shape or a value, such as "
            '"x: (n, d), index: (n,) int in [0, d), scale: 0.5".'
        ) from None
    return described


class _RefusedError(Exception):
    """What is required, and what came."""


def _argument(piece: str, names: Sequence[str] | None) -> ArgumentSpec:
    """Return the argument that one piece of a text describes."""
    found = _ARGUMENT.fullmatch(piece)
    if not found:
        raise _RefusedError("an argument as `name: shape` or `name: value`", piece)
    name, sizes, words, literal = found.groups()
    if names is not None and name not in names:
        raise _RefusedError("the name of an argument", name)
    if sizes is None:
        return _literal(name, literal)
    shape = _shape(sizes)
    if shape is None:
        raise _RefusedError(f"a size for each axis of `{name}`", f"({sizes})")
    d, other = with_words(ArgumentSpec(name, shape), words)
    if other in _OF_SQUARES:
        raise _RefusedError(f"a square shape for {other}, as `{name}: (n, n) {other}`", words)
    if "," in other:
        raise _RefusedError("an interval of numbers", other)
    if other:
        valid = f"one of {', '.join([*KINDS, *WORDS])}, in [a, b], below n"
        raise _RefusedError(f"{valid} after the shape of `{name}`", other)
    return d


def _literal(name: str, text: str) -> ArgumentSpec:
    """Return an argument that is no array: a literal, a word for one, or a size."""
    if text in VALUES:
        return ArgumentSpec(name, value=VALUES[text])
    with contextlib.suppress(ValueError, SyntaxError):
        return ArgumentSpec(name, value=ast.literal_eval(text))
    if _symbols(text) is None:
        raise _RefusedError(_VALUE.format(name), text)
    return ArgumentSpec(name, size=text)


def _shape(text: str) -> tuple[str, ...] | None:
    """Return the sizes in a text such as ``"n, 2*d"``; None if they are none."""
    sizes = [size.strip() for size in text.split(",")]
    sizes = sizes[:-1] if not sizes[-1] else sizes
    return tuple(sizes) if None not in map(_symbols, sizes) else None


def with_words(d: ArgumentSpec, words: str) -> tuple[ArgumentSpec, str]:
    """Return an array with what words say of it up to the first that says nothing, and that."""
    for word in _WORD.finditer(words):
        text, left, low, high, right, below = (word[0], *word.groups())
        if left or below:
            ends = (low.strip(), high.strip()) if left else ("0", below)
            if None in map(_symbols, ends):
                return d, text
            interval = Interval(*ends, left == "(", right != "]")
            d = dataclasses.replace(d, interval=interval, dtype="int64" if below else d.dtype)
        elif text in KINDS:
            d = dataclasses.replace(d, dtype=KINDS[text])
        elif text in WORDS and (d.is_square or text not in _OF_SQUARES):
            dtype = "int64" if text in _WHOLE else d.dtype
            d = dataclasses.replace(d, domain=text, dtype=dtype)
        else:
            return d, text
    return d, ""


def documented(fn: Any, names: Sequence[str]) -> dict[str, ArgumentSpec]:
    """Return the arguments whose shape is in the docstring, as in ``x : Tensor (n, d)``.

    Words of a description count, wherever they are in front of the shape, and behind it up to the
    first other word.
    """
    text = inspect.getdoc(getattr(fn, "forward", fn)) or inspect.getdoc(fn) or ""
    found: dict[str, ArgumentSpec] = {}
    for said, before, sizes, after in _SAID.findall(text):
        shape = _shape(sizes)
        for name in said.split(", ") if shape is not None else ():
            d = ArgumentSpec(name, shape)
            for words in (*before.replace(",", " ").split(), after):
                d, _ = with_words(d, words)
            if name in names:
                found.setdefault(name, d)
    return found


# -- sizes -----------------------------------------------------------------------------------------
_NODES = (ast.Expression, ast.Name, ast.Constant, ast.Load, ast.BinOp, ast.UnaryOp, ast.USub)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)


def _symbols(text: str) -> list[str] | None:
    """Return the symbols in an expression of sizes and numbers, None if the text is not one."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError:
        return None
    if not all(isinstance(node, _NODES + _OPERATORS) for node in nodes):
        return None
    return [n.id for n in nodes if isinstance(n, ast.Name) and n.id not in ("inf", "pi")]


def evaluate(text: str, sizes: dict[str, int]) -> Any:
    """Return the value of a size or of an interval's end."""
    known = {"__builtins__": {}, "inf": np.inf, "pi": np.pi, **sizes}
    return eval(text, known)  # numbers, symbols and operators: a description has no others
