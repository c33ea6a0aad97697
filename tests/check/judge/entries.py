"""One entry of the collection, and the words in which a report may name a mistake.

`Case` is the format; a module of one field fills a `Book`. The entries know nothing of the checker.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback as pb

Given = Callable[[np.random.Generator], tuple[tuple[Any, ...], dict[str, Any]]]

# What a report on a mistake would say, in ordinary words; none fits a report on another mistake.
SIGN = r"\bsigns?\b|negat(ed|ive of)|\bminus\b|\bopposite\b|-1 times"
FACTOR = (
    r"\bfactor\b|\btimes (the|too|what)|\bscaled?\b|\bratio\b|\bmultiple of\b|\bhalf\b|\btwice\b"
)
TRANSPOSED = r"transpos"
AXIS = (
    r"\b(?:wrong|other|another|last|first|negative|over|along) (?:the )?(?:axis|axes|dim)\b"
    r"|\b(?:axis|dim) -?\d"
)
# Something is missing, but neither a sum over an axis nor a sign, a factor, or the like.
MISSING = (
    r"(?m)^(?!.*\b(?:sum(?:med)? over|axis|axes|factor|sign|conj|transpos))"
    r".*(?:\bmissing\b|left out|\bleaves out|\bomit|\black(?:s|ing)?\b|\bincomplete\b)"
)
SWAPPED = r"\bswap|exchang|interchang|each other's|gradient of another"
BATCH = r"\bbatch"
MASK = r"\bmask"
SETTING = r"\bdefault\b|\bsettings?\b"
SUMMED = r"\bsum(med)? over\b|\bbroadcast"
REPEATED = r"\brepeat|duplicate|more than once|\bsame index\b"
TIES = r"\bties?\b|\btied\b|\bequal values\b"
ODD = r"\bodd\b|\beven\b|\bparity\b"
SHIFT = r"off.by.one|\bshift|\bneighbou?r|\bdelayed\b|\bone (place|step|element)\b"
REVERSED = r"\brevers|\bflip|\bbackwards?\b order|\bmirror"
SECOND = r"second.(order|derivative)|create_graph|\bhessian\b|differentiat\w+ (twice|again)"
STATE = (
    r"\bstate|\bcache|\bstale\b|earlier call|previous call|two (uses|calls)|called (twice|again)"
)
CHANGED = r"in.place|\bmutat|\bmodif(y|ies|ied)|\bchanged\b|overwr"
FLOAT32 = r"float32|\bprecision\b"
MEMORY = r"contiguous|\bmemory\b|\bstride|\blayout\b"
CONJUGATE = r"conjug|\bconj\b"
NONE = r"(?:\bis|was|got|gets?|gives?|gave|returns?|returned) None\b|None (?:where|for)|no gradient"
IGNORED = (
    r"ignor|incoming gradient|\bas if .*ones\b|(?:all|assum\w+|taken for) ones|not linear in"
    r"|not (?:use|depend on) (?:the )?grad_output|grad_output (?:is|was) (?:not|changed|scaled)"
)
SHAPE = r"rectang|\bother (?:shapes?|sizes?)|\blengths?\b|shapes? (?:differ|other)"
SQUARE = r"\bsquare\b"
UNSORTED = r"\bsorted\b|unsorted|permut|\bordering\b|(?:wrong|inverse|another|different) order\b"
MAGNITUDE = r"\blarge\b|\bsmall\b|magnitude|overflow|\bnan\b|\binf(?:inite)?\b"
ZERO = r"\bzeros?\b|\bvanish"


def mends(*fragments: str) -> str:
    """Words of a report that quotes corrected source: any of these expressions, spaces aside.

    An expression stands in the corrected source alone, not in the wrong one.
    """
    tokens = (re.findall(r"\w+|\S", fragment) for fragment in fragments)
    return "|".join(r"\s*".join(map(re.escape, each)) for each in tokens)


def at(name: str) -> str:
    """Words for a mistake that depends on the setting `name`."""
    return rf"(?:with|for|when|where|at|if|unless|other) .{{0,25}}\b{name}\b|{SETTING}"


@dataclass(frozen=True)
class Case:
    """One operation as a user would write it.

    name: unique; field: the module's subject.
    op: makes a fresh operation, so that no state leaks from one check into the next.
    given: `given(rng)` returns (args, kwargs) as a user would hand them to a checker.
        A tensor that requires grad is to be differentiated; arrays and the rest are constants.
        Where the name ends in "_", the operation changes its first argument in place, which
        must then be a clone of the leaf.
    wrong: the mistake in one line, "" where the operation is right.
    said: regular expressions (case-insensitive), any of which a good report would contain.
    where: when the mistake shows.
    shows: like given, at inputs where the mistake shows; None where `given` shows it, or where
        what shows it is not an input (see `where`).
    """

    name: str
    field: str
    op: Callable[[], Any]
    given: Given
    wrong: str = ""
    said: tuple[str, ...] = ()
    where: str = ""
    shows: Given | None = None


class Book:
    """Collects the entries of one field, in the order in which they are written."""

    def __init__(self, field: str) -> None:
        self.field = field
        self.cases: list[Case] = []

    def right(self, given: Given) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        def add(make: Callable[[], Any]) -> Callable[[], Any]:
            self.cases.append(Case(make.__name__, self.field, make, given))
            return make

        return add

    def wrong(
        self,
        given: Given,
        mistake: str,
        *said: str,
        where: str = "always",
        shows: Given | None = None,
    ) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        def add(make: Callable[[], Any]) -> Callable[[], Any]:
            case = Case(make.__name__, self.field, make, given, mistake, said, where, shows)
            self.cases.append(case)
            return make

        return add


def t(array: Any) -> pb.Tensor:
    """Return a tensor of `array`'s dtype that requires grad."""
    return pb.tensor(np.asarray(array), requires_grad=True)


def spd(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a well conditioned symmetric positive definite matrix."""
    root = rng.normal(size=(n, n))
    return root @ root.T / n + np.eye(n)
