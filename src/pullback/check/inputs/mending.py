"""Mending a guess by what an operation says of it: "x must have shape (n, 3), got (4, 2)".

Owns the words of such messages. Must not know how a guess is tried.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from pullback.check.inputs.domains import DOMAINS
from pullback.check.inputs.plans import Candidate
from pullback.check.inputs.shape_text import ArgumentSpec, parse
from pullback.errors import ArgumentError

# Words of a message, with the domain that they ask for; the narrower ones first.
_DOMAINS_SAID = (
    (r"positive[- ]definite|\bspd\b", "spd"),
    (r"\bsymmetric", "symmetric"),
    (r"\brotation", "rotation"),
    (r"orthonormal|orthogonal", "orthogonal"),
    (r"\bsorted|increas|ascend|monoton", "sorted"),
    (r"simplex|\bsums? to (1|one)|distribution", "simplex"),
    (r"\bunit[- ](norm|length|vector|quaternion)|normali[sz]ed", "normalized"),
    (r"between 0 and 1|[(\[]0, ?1[)\]]|probabilit", "unit"),
    (r"positive|negative|greater than (0|zero)|>=? ?0", "positive"),
)
_DTYPES_SAID = ((r"\binteger|\bwhole\b|\bints?\b", "int64"), (r"\bbool|\bmask\b", "bool"))
_AXES = {"0": (), "1": ("n",), "2": ("n", "d"), "3": ("2", "n", "d"), "4": ("2", "d", "4", "4")}
_NUMBERS = {"one": "1", "two": "2", "three": "3", "four": "4"}
_AXES_SAID = re.compile(r"\b(\d|one|two|three|four)[- ]?(?:d\b|dim)", re.IGNORECASE)
_LENGTH_SAID = re.compile(
    r"\b(?:length|size) (\d+)"
    r"|\b(\d+|two|three|four)[- ](?:elements|components|columns|values|vector)"
)
_GOT = re.compile(r"\b(got|given|received|not|but)\b.*")


def mended(found: Candidate, problem: str, op: str = "") -> Candidate | None:
    """Return a candidate changed as the message of a refusal asks; None if it asks for nothing.

    Parameters
    ----------
    found : dict
        The specifications of the arguments.
    problem : str
        The message.
    op : str
        The operation's name, which is none of an argument.

    Examples
    --------
    >>> found = {"x": [ArgumentSpec("x", ("n", "d"))], "t": [ArgumentSpec("t", ("n", "d"))]}
    >>> asked = mended(found, "ValueError: t has to be sorted and of shape (k,), got (4, 3)")
    >>> [str(d) for items in asked.values() for d in items]
    ['x: (n, d)', 't: (k,) sorted']
    """
    message = problem.partition(": ")[2].removeprefix(f"{op}: ")
    named = [name for name in found if re.search(rf"\b{name}\b", message)]
    arrays = [name for name, items in found.items() if items and items[0].dtype == "float64"]
    asked = {
        name: [_asked(d, message, bool(named)) for d in found[name]]
        for name in named or arrays
        if found[name] and all(d.shape is not None for d in found[name])
    }
    changed = found | asked
    return None if changed == found else changed


def _asked(d: ArgumentSpec, message: str, named: bool) -> ArgumentSpec:
    """Return an array as a message asks for it; the shape and dtype only of a named one."""
    required = _GOT.sub("", message) if named else message
    shape = next(_shapes(d, required), d.shape) if named else d.shape
    dtypes = [dtype for words, dtype in _DTYPES_SAID if named and re.search(words, required)]
    if dtypes:
        return dataclasses.replace(d, shape=shape, dtype=dtypes[0], domain="")
    assert shape is not None
    said = (domain for words, domain in _DOMAINS_SAID if re.search(words, message, re.IGNORECASE))
    domain = next(said, "")
    fits = domain not in DOMAINS or bool(shape)
    if domain in DOMAINS and DOMAINS[domain].square and shape[-2:-1] != shape[-1:]:
        fits = False
    if domain and fits and d.dtype == "float64":
        return dataclasses.replace(d, shape=shape, domain=domain, interval=None)
    return dataclasses.replace(d, shape=shape)


def _shapes(d: ArgumentSpec, message: str) -> Iterator[tuple[str, ...]]:
    """Yield the shapes that a message may ask for, the clearest words first."""
    after = message[message.index(d.name) :] if d.name in message else message
    for text in re.findall(r"\([\w\s,*+-]+\)", after):
        try:
            (described,) = parse("check_op", f"{d.name}: {text}")
        except ArgumentError:
            continue
        if described.shape and described.shape != ("0", "1"):
            yield described.shape
    axes = _AXES_SAID.search(after)
    if axes:
        number = _NUMBERS.get(axes[1].lower(), axes[1])
        yield _AXES.get(number, d.shape or ())
    if "square" in after:
        yield ("d", "d")
    length = _LENGTH_SAID.search(after)
    if length:
        number = length[1] or length[2]
        yield (*(d.shape or ("",))[:-1], _NUMBERS.get(number, number))
