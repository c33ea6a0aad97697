"""The role of an argument, inferred from its name, hint, default and the docstring.

Owns the table of names. Which shapes fit together is found by trial, in guessing.py.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from pullback.check.inputs.reading import (
    CALLED,
    FOREIGN,
    GRADIENT,
    INDEX,
    MASK,
    NUMBER,
    SORTED,
    TENSOR,
    uses,
)
from pullback.check.inputs.shape_text import VALUES, ArgumentSpec, parse
from pullback.check.naming import name_of
from pullback.core.custom.define import Function
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError

_KINDS = inspect.Parameter
_EMPTY = inspect.Parameter.empty


class Role(NamedTuple):
    """What an argument may be: a kind of array, or a value.

    Attributes
    ----------
    kind : str
        ``"array"``, ``"weight"``, ``"bias"``, ``"index"``, ``"labels"``, ``"mask"``, ``"matrix"``,
        ``"pointers"`` where the rows of a sparse matrix start,
        ``"scalar"`` for one of no axes, ``"arrays"`` for a list of them, ``"value"``, or
        ``"default"``.
    value : object
        The value, or the domain of an array.
    sure : bool
        Whether the name or hint declares it a tensor, even if backward returns no gradient.
    """

    kind: str
    value: Any = ""
    sure: bool = False


def value(*choices: Any) -> list[Role]:
    """Return the roles of an argument that is one of these values."""
    return [Role("value", choice) for choice in choices]


_FREE = [Role("array"), *value(2, 0.5, -1), Role("mask"), Role("index"), *value(True)]
WINDOW = Role("value", 3)
_POSITIVE = [Role("array", "positive"), *value(0.5, 2)]
# What the names of arguments usually mean, the most likely first. The first match counts.
_BY_NAME: tuple[tuple[str, list[Role]], ...] = (
    (r"n|k|m", [*value(2, 1), Role("array")]),
    (r"axis|axes|dims?", value(-1, 0, 1, (0, 1))),
    (r"dim\d|axis\d", value(0, 1, -1)),
    (r"eps|epsilon|tol|.*_eps", [*value(1e-3), Role("array", "positive")]),
    (r"mask|cond|condition|where|keep|kept|valid|pattern|.*_mask", [Role("mask"), Role("array")]),
    (r"events?|observed|censored|active|alive|dead|selected|visible|flags?",
     [Role("mask"), Role("index"), Role("array")]),
    (r"index|indices|idx|ids|i|rows|cols|segments?|tokens?|.*_(index|idx|indices|ids)",
     [Role("index"), Role("array", sure=True)]),
    (r"(.*_)?(ind|row|col)_?ptr|crow_.*|ccol_.*|row_splits|splits", [Role("pointers")]),
    (r"(.*_)?(knots?|breaks|breakpoints|grid|edges|bins|xp|levels|limits|thresholds|boundaries)",
     [Role("array", "sorted"), Role("array")]),
    (r"labels?|classes|class_.*", [Role("labels"), Role("array")]),
    (r"targets?", [Role("array"), Role("labels")]),
    (r"weights?|w|kernel|filters?|W|theta", [Role("weight", sure=True)]),
    (r"bias", [Role("bias", sure=True)]),
    (r"matrix|mat|A|cov|covariance|square", [Role("matrix", sure=True)]),
    (r"min|low|lower|lo|minimum|a_min|vmin", [*value(-0.5), Role("array"), *value(False)]),
    (r"max|high|upper|hi|maximum|a_max|vmax", [*value(0.5), Role("array"), *value(True)]),
    (r"size|window|(frame|win|window|block|chunk)_?(size|len|length)",
     [WINDOW, *value(2, 1, (4, 3), (2, 2))]),
    (r"times|num|num_.*|n_.*|steps?|order|degree|groups|stride|kernel_size|shifts?|repeats?"
     r"|chunks|offset|diagonal|lags?|sections", value(2, 1, (4, 3), (2, 2))),
    (r"(.*_)?(new)?shape", value((3, 4), (4, 3), (12,), (3,), 3)),
    (r"pad|padding|dilation", value(1, 0, (1, 1))),
    (r"p|sigma|std|stddev|scale|var|variance|rate|temperature|tau|alpha|beta|gamma|lam|lambd|delta|dt"
     r"|lr|step_size|momentum|exponent|power|slope|factor|threshold|margin", _POSITIVE),
    (r"(\w+_)?(concentration|mass|kilogram|tonne|litre|liter|densit|volume|pressure|distance|duration"
     r"|price|variance"
     r"|temperature|viscosit|conductivit|capacit|abundance|thickness|radius|radii)(e?s|y|ies)?", [
         Role("array", "positive", sure=True), *value(0.5, 2)]),
    (r"(\w+_)?(diameters?|heights?|widths?|depths?|lengths?|areas?|spacings?|spreads?|wavelengths?"
     r"|frequency|frequencies|populations?|incomes?|biomass|stems|speeds?)",
     [Role("array", "positive"), *value(2, 0.5)]),
    (r"(\w+_)?(counts?|observed|exposures?)", [Role("array", "positive"), *value(0.5, 2)]),
    (r"probs?|probability|probabilities", [Role("array", "unit"), *value(0.5)]),
    (r"keepdims?|training|train|inplace|reverse|exclusive|descending|unbiased|normali[sz]ed?",
     value(True, False)),
    (r"reduction", value("mean", "sum", "none")),
    (r"mode", value("mean", "sum", "constant", "full", "same")),
    (r"dtype|out|device", value(None)),
    (r"tensors|arrays|xs|parts|inputs|operands|args|parameters|params",
     [Role("arrays"), Role("array")]),
    (r"[xyzabuvq]|input|x\d|y\d|query|key|values|tensor|array|data|logits|image|images|self|other"
     r"|left|right|lhs|rhs|src|source|pred|predictions?|residual|scores|signal|hidden|table|features?|embeddings?|base"
     r"|log_.*", [Role("array", sure=True), Role("index")]),
)  # fmt: skip


# -- roles -----------------------------------------------------------------------------------------
def callable_of(op: Any) -> Callable[..., Any]:
    """Return what is called to run an operation: for a `Function` class its ``apply``."""
    if isinstance(op, type) and issubclass(op, Function):
        return op.apply
    if not callable(op):
        raise ArgumentTypeError(
            f"check_op: an operation or a function to check is required, got {name_of(op)}.\n"
            "hint: pass the operation itself and its inputs after it."
        )
    return op  # type: ignore[no-any-return]


def hints_of(fn: Any) -> dict[str, Any]:
    """Return the type hints of a function, or of an operation's forward."""
    try:
        return typing.get_type_hints(getattr(fn, "forward", fn))
    except Exception:  # a name that is not defined where the hint is read
        return {}


def roles_of(parameters: Sequence[inspect.Parameter], fn: Any) -> list[list[Role]]:
    """Return the roles that each argument may have, the most likely first."""
    hints, read = hints_of(fn), uses(fn)
    names = [p.name for p in parameters]
    found = []
    for p in parameters:
        named = named_role(p.name)
        if p.name == "k" and ("q" in names or "v" in names):
            named = [Role("array", sure=True)]
        if p.name == "b" and ("w" in names or "W" in names or "weight" in names):
            named = [Role("bias", sure=True)]
        named = _used(read.get(p.name, set()), named)
        found.append(_roles(p, hints.get(p.name, _EMPTY), named, len(names) == 1))
    return found


def _used(kinds: set[str], named: list[Role]) -> list[Role]:
    """Return the roles of an argument with what forward's source says of it first."""
    first: list[Role] = []
    if CALLED in kinds:
        first = value(VALUES["callable"])
    elif SORTED in kinds:
        first = [Role("array", "sorted", sure=GRADIENT in kinds)]
        named = [r for r in named if r.kind != "value"]
    elif MASK in kinds and not kinds & {GRADIENT, TENSOR, INDEX}:
        first = [Role("mask")]
    elif INDEX in kinds and named[0].kind not in ("value", "mask", "pointers"):
        first = [Role("index")]
    elif NUMBER in kinds and kinds & {TENSOR, GRADIENT}:
        return [Role("scalar", "unit", sure=True), Role("scalar", sure=True)]
    elif NUMBER in kinds:
        first = [Role("scalar"), Role("scalar", "unit"), *value(2, 0.5)]
    elif GRADIENT in kinds and named[0].kind in ("index", "labels"):
        first = [Role("array", sure=True)]
    elif kinds & {TENSOR, GRADIENT} and named[0].kind in ("value", "array"):
        arrays = [r._replace(sure=GRADIENT in kinds or r.sure) for r in named if r.kind == "array"]
        first = arrays or [Role("array", sure=GRADIENT in kinds)]
        named = [r for r in named if r.kind not in ("value", "array")]
        first.append(Role("scalar", first[0].value, sure=GRADIENT in kinds))
    elif FOREIGN in kinds:
        named = [r for r in named if r.kind != "value"]
    return list(dict.fromkeys([*first, *named])) or [Role("array")]


def _roles(parameter: inspect.Parameter, hint: Any, named: list[Role], alone: bool) -> list[Role]:
    if parameter.kind is _KINDS.VAR_POSITIONAL:
        if alone or named[0].kind == "arrays":
            return [Role("arrays")]
        return [Role("default"), *value(-1, 2), Role("arrays")]
    if parameter.default is not _EMPTY:
        optional = [r for r in named if parameter.default is None and r.kind == "value"]
        return [Role("default"), *optional]
    return _hinted(hint, named) if hint is not _EMPTY else named


def named_role(name: str) -> list[Role]:
    """Return the roles of an argument by its name, the most likely first."""
    for pattern, roles in _BY_NAME:
        if re.fullmatch(pattern, name):
            return roles
    return _FREE


def _hinted(hint: Any, named: list[Role]) -> list[Role]:
    """Return the roles that a type hint allows."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return value(*inner)
    if origin in (typing.Union, types.UnionType):
        options = [_hinted(option, named) for option in inner if option is not type(None)]
        return list(dict.fromkeys(itertools.chain(*options)))
    if isinstance(origin, type) and inner and issubclass(origin, Iterable):
        if inner[0] is Tensor or named[0].kind == "arrays":
            return [Role("arrays")]
        listed = [r for r in named if isinstance(r.value, tuple)]
        return listed or value((0, 1), (2, 2), (1, 1))
    if hint is bool:
        return value(True, False)
    if hint in (int, float):
        numbers = [r for r in named if type(r.value) in (int, hint)]
        return [r for r in numbers if r.kind == "value"] or value(
            *((2, 1) if hint is int else (0.5, 2.0))
        )
    if hint is str:
        return [r for r in named if isinstance(r.value, str) and r.kind == "value"] or value(
            "mean", "sum"
        )
    if isinstance(hint, type) and issubclass(hint, Tensor | np.ndarray):
        arrays = [r._replace(sure=True) for r in named if r.kind not in ("value", "arrays")]
        return arrays or [Role("array", sure=True)]
    return named


# Of an argument that is not differentiated.
_CONSTANT_IN_TEXT = re.compile(r"\b(constant|fixed|not differentiated)")
# After the name of an argument, or several: "x: Tensor (n, d)", "x of shape (n,)", "x (n,)".
_SHAPE_AFTER_NAME = (
    r"(?:\s*:\s*([^:()\n]{0,24}?)|\s+(?:is |are )?of shape\s+|\s+(?=\([^()]*,))"
    r"(\([\w\s,*+-]*\))"
)
_SAID_AFTER_SHAPE = re.compile(r"[ \w/^-]{0,28}(?:,[ \w/^-]{0,28})?")
# Words about an argument, with its dtype and domain; those of a match further up count.
_WORDS_IN_TEXT = (
    (r"\b(int|integ|whole|ind)", "int64", ""),
    (r"\b(bool|mask|true)", "bool", ""),
    (r"\bcomplex", "complex128", ""),
    (r"\bpositive definite|\bspd\b|\bcovariance", "float64", "spd"),
    (r"\bsymmetric", "float64", "symmetric"),
    (r"\bpositive|\bnot negative|\bnon-?negative", "float64", "positive"),
    (r"\bsorted|\bincreasing|\bascend", "float64", "sorted"),
    (r"\bprobabilit", "float64", "unit"),
    ("", "float64", ""),
)


def documented(fn: Any, names: Sequence[str]) -> dict[str, ArgumentSpec]:
    """Return the arguments whose shape is in the docstring.

    As in ``x : Tensor (n, d)``, "Multiply x: (n, k) by index: (n,) integers", "the price of
    q (n,)" or "low, high: (n,)".
    """
    found: dict[str, ArgumentSpec] = {}
    for name, shape, words in _said_of(fn, names):
        if name in found:
            continue
        try:
            (described,) = parse("check_op", f"{name}: {shape}")
        except (ArgumentError, ValueError):
            continue
        kinds = next(more for pattern, *more in _WORDS_IN_TEXT if re.search(pattern, words))
        found[name] = dataclasses.replace(described, dtype=kinds[0], domain=kinds[1])
    return found


def documented_constants(fn: Any, names: Sequence[str]) -> set[str]:
    """Return the arguments of which the docstring says that they are constant."""
    return {name for name, _, words in _said_of(fn, names) if _CONSTANT_IN_TEXT.search(words)}


def _said_of(fn: Any, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the arguments that a shape follows in the docstring, it, and what is said of them."""
    text = inspect.getdoc(getattr(fn, "forward", fn)) or inspect.getdoc(fn) or ""
    if not names:
        return
    one = rf"\b(?:{'|'.join(map(re.escape, names))})\b"
    found = list(re.finditer(rf"({one}(?:(?:, | and |, and ){one})*){_SHAPE_AFTER_NAME}", text))
    for here, following in itertools.zip_longest(found, found[1:]):
        end = following.start() if following else len(text)
        said = _SAID_AFTER_SHAPE.match(text[here.end() : end])
        words = f"{here[2] or ''} {said[0] if said else ''}".lower()
        for name in re.split(r", and | and |, ", here[1]):
            yield name, here[3], words
