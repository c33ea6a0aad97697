"""Descriptions of arguments: ``"x: (n, d), index: (n,) int in [0, d), scale: 0.5"``.

Owns the grammar of such a text. An argument is a shape of symbols and numbers, followed by a dtype
and the domain of its values; or a literal of Python. Guessing tries the same specifications.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
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
_WHOLE = ("permutation", "pointers")  # of whole numbers
WORDS = ("positive", "unit", "distinct", *_WHOLE, *DOMAINS)
_ARGUMENT = re.compile(r"(\w+)\s*(?:(=)|:)\s*(?:\(([^()]*)\))?(.*)", re.DOTALL)
# One word after a shape; an interval is one.
_WORD = re.compile(r"\bin\s*([\[(])([^,\])]*),([^,\])]*)([\])])|below\s+([^\s,;.]+)|[^\s,;.]+")
# After the name of an argument, or several: "x : Tensor of shape (n, d)", "x, y: (n,) positive".
_SHAPE_SAID = r"\s*:\s*([\w, ]{0,30}?)\((|[\w\s*+-]+,[\w\s,*+-]*)\)([^\n;:]*)"
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
        if self.shape is None:
            sign = "=" if isinstance(self.value, tuple) else ": "
            return f"{self.name}{sign}{self.size or repr(self.value)}"
        shape = ", ".join(self.shape) + ("," if len(self.shape) == 1 else "")
        dtype = {"float64": "", "int64": "int", "complex128": "complex"}.get(self.dtype, self.dtype)
        domain = "distinct" if self.domain == "latin" else self.domain
        words = [dtype, domain, str(self.interval or "")]
        return " ".join([f"{self.name}: ({shape})", *filter(None, words)])

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
        self.api, self.text, self.names = api, text, names

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
            elif char == "," and depth == 0:
                yield start, self.text[start:i]
                start = i + 1
            else:
                depth += (char in "([{") - (char in ")]}")
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
        name, literal, sizes, words = found.groups()
        if self.names is not None and name not in self.names:
            self.refuse("the name of an argument", name, position)
        start = found.start(3) - 1 if sizes is not None else found.start(4)
        if literal or sizes is None:
            return self.value(name, piece[start:], position + start)
        shape = _shape(sizes)
        if shape is None:
            self.refuse(f"a size for each axis of `{name}`", piece[start:], position + start)
        return self.described(ArgumentSpec(name, shape), words, position + found.start(4))

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

    def described(self, d: ArgumentSpec, words: str, position: int) -> ArgumentSpec:
        """Return an array with the dtype and domain in the words that follow its shape."""
        for word in _WORD.finditer(words):
            found = _with_word(d, word)
            if found is None:
                valid = f"one of {', '.join([*KINDS, 'mask', *WORDS])}, in [a, b], below n"
                required = f"{valid} after the shape of `{d.name}`"
                required = "an interval of numbers" if word[1] else required
                self.refuse(required, word[0], position + word.start())
            d = found
        if not _fits(d):
            example = f"`{d.name}: (n, n) {d.domain}`"
            self.refuse(f"a square shape for {d.domain}, as in {example},", words, position)
        return d


def _shape(text: str) -> tuple[str, ...] | None:
    """Return the sizes in a text such as ``"n, 2*d"``; None if they are none."""
    sizes = [size.strip() for size in text.split(",")]
    sizes = sizes[:-1] if not sizes[-1] else sizes
    return tuple(sizes) if all(_expression(size) is not None for size in sizes) else None


def _with_word(d: ArgumentSpec, word: re.Match[str]) -> ArgumentSpec | None:
    """Return an array with what one word says of it; None if it is no word of a description."""
    if word[1] or word[5]:
        low, high = (word[2].strip(), word[3].strip()) if word[1] else ("0", word[5])
        if _expression(low) is None or _expression(high) is None:
            return None
        interval = Interval(low, high, word[1] == "(", word[4] != "]")
        return dataclasses.replace(d, interval=interval, dtype="int64" if word[5] else d.dtype)
    text = word[0]
    if text in KINDS or text == "mask":
        return dataclasses.replace(d, dtype=KINDS.get(text, "bool"))
    if text in WORDS:
        dtype = "int64" if text in _WHOLE else d.dtype
        return dataclasses.replace(d, domain=text, dtype=dtype)
    return d if text == "indices" else None


def _fits(d: ArgumentSpec) -> bool:
    """Return whether an array of that shape can have its structure."""
    square = d.domain in DOMAINS and DOMAINS[d.domain].square
    return not square or (d.shape or ())[-2:-1] == (d.shape or ())[-1:] != ()


def _documented_array(name: str, shape: str, before: str, after: str) -> ArgumentSpec | None:
    """Return an array that a docstring describes; None if its shape is none.

    Words of a description count, wherever they are in front of the shape, and behind it up to the
    first other word.
    """
    sizes = _shape(shape)
    if sizes is None:
        return None
    found = ArgumentSpec(name, sizes)
    for word in _WORD.finditer(before):
        found = _with_word(found, word) or found
    for word in _WORD.finditer(after):
        described = _with_word(found, word)
        if described is None:
            break
        found = described
    return found if _fits(found) else dataclasses.replace(found, domain="")


def documented(fn: Any, names: Sequence[str]) -> dict[str, ArgumentSpec]:
    """Return the arguments whose shape is in the docstring, as in ``x : Tensor (n, d)``.

    Of what is said beside the shape the words of a description count, up to the first other one.
    """
    text = inspect.getdoc(getattr(fn, "forward", fn)) or inspect.getdoc(fn) or ""
    one = rf"\b(?:{'|'.join(map(re.escape, names))})\b"
    found: dict[str, ArgumentSpec] = {}
    for here in re.finditer(rf"({one}(?:(?:, ?| and ){one})*){_SHAPE_SAID}", text) if names else ():
        for name in re.findall(one, here[1]):
            spec = _documented_array(name, here[3], here[2], here[4])
            if spec is not None:
                found.setdefault(name, spec)
    return found


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
        or ``sorted`` (from end to end of its interval), ``mask``, ``permutation``, ``pointers``
        (where the rows of a sparse matrix start: from the first to the last of its interval),
        ``int below n``, or ``in [a, b]`` with an end left out by a round bracket. In place of a
        shape: a literal, also as ``name=(0, 1)``, a size such as ``n``, ``callable`` or ``seed``.
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
                symbol = "a number or a symbol of one of the shapes"
                reader.refuse(_VALUE.format(d.name) if d.size else symbol, end, position)
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

    def value(node: Any) -> Any:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        return known[node.id] if isinstance(node, ast.Name) else node.value

    return value(_expression(text))
