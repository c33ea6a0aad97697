"""What a check found: parts, failures with their causes, notes; printed, plotted, or as JSON.

Must not know how anything was found.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.check.plot import figure_of
from pullback.check.values import Array

PASSED, FAILED, SKIPPED, INAPPLICABLE, NOT_RUN = (
    "passed",
    "failed",
    "skipped",
    "not applicable",
    "not run",
)
NOT_COMPARED = "not compared"
# What is said of an operation in the end.
RIGHT, WRONG, UNCHECKED = "right", "wrong", "not checked"


@dataclasses.dataclass(frozen=True)
class Cause:
    """Why a gradient is wrong.

    Attributes
    ----------
    name : str
        One of the names in docs/gradient-checker.md, such as ``"factor"``.
    text : str
        A sentence that names the arguments.
    hint : str
        How to fix it; may be empty.
    """

    name: str
    text: str
    hint: str = ""


@dataclasses.dataclass
class Failure:
    """One thing that is wrong.

    Attributes
    ----------
    part : str
        The part of the check that found it.
    argument : str
        The argument whose gradient is wrong; empty if it is no single one.
    cause : Cause
    expected, got : array, optional
        The gradient by differences and backward's, for one output gradient.
    wrong : array of bool, optional
        Where they differ by more than the tolerance.
    situation : str
        The inputs, layout or dtype it was found with, if not those of the call.
    repair : str
        A change of the source that makes the gradient right, if there is one. It is sought when it
        is first read.
    """

    part: str
    argument: str
    cause: Cause
    expected: Array | None = None
    got: Array | None = None
    wrong: Array | None = None
    situation: str = ""
    find_repair: Callable[[], str] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )

    @functools.cached_property
    def repair(self) -> str:
        """A change of the source that makes the gradient right; empty if none was found."""
        return "" if self.find_repair is None else self.find_repair()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle or copy: with the repair, without what seeks it."""
        return {**self.__dict__, "repair": self.repair, "find_repair": None}

    @property
    def worst(self) -> tuple[tuple[int, ...], Any, Any] | None:
        """The index of the worst element, what it should be and what it is."""
        if self.expected is None or self.got is None or not self.expected.size:
            return None
        with np.errstate(all="ignore"):
            off = np.abs(np.asarray(self.got) - self.expected)
        off = np.where(np.isfinite(off), off, np.inf)
        if self.wrong is not None and self.wrong.any():
            off = np.where(self.wrong, off, -1.0)
        position = np.unravel_index(int(np.argmax(off)), off.shape)
        index = tuple(int(i) for i in position)
        return index, self.expected[index].item(), np.asarray(self.got)[index].item()

    def __str__(self) -> str:
        lines = [self.cause.text + (f" ({self.situation})" if self.situation else "")]
        worst = self.worst
        if worst is not None:
            lines += _table(self.argument, *worst)
        if self.cause.hint:
            lines.append(f"hint: {self.cause.hint}")
        if self.repair:
            lines.append(self.repair)
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain objects, for JSON."""
        found: dict[str, Any] = {
            "part": self.part,
            "argument": self.argument,
            "cause": self.cause.name,
            "text": self.cause.text,
            "hint": self.cause.hint,
            "situation": self.situation,
            "repair": self.repair,
        }
        worst = self.worst
        if worst is not None:
            index, expected, got = worst
            found["worst"] = {"index": list(index), "expected": repr(expected), "got": repr(got)}
        return found


def _table(argument: str, index: tuple[int, ...], expected: Any, got: Any) -> list[str]:
    position = "[" + ", ".join(map(str, index)) + "]"
    rows = [
        ("argument", "worst element", "expected", "got"),
        (argument, position, f"{expected:.6g}", f"{got:.6g}"),
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    return [
        "    " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


@dataclasses.dataclass(frozen=True)
class Unchecked:
    """One thing that could not be checked.

    Attributes
    ----------
    what : str
        What it is, as the subject of a sentence.
    why : str
        Why it was not checked.
    hint : str
        What to give, so that it can be; may be empty.
    argument : str
        The argument whose gradient it is, if it is one.
    """

    what: str
    why: str
    hint: str = ""
    argument: str = ""

    def __str__(self) -> str:
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"{self.what}: not checked, since {self.why}{hint}"


@dataclasses.dataclass
class PartResult:
    """One part of a check.

    Attributes
    ----------
    name, title : str
        As `skip` and `only` take it, and as it is printed.
    status : str
        ``"passed"``, ``"failed"``, ``"skipped"``, ``"not applicable"`` or ``"not run"``.
    reason : str
        Why it does not apply or was not run.
    """

    name: str
    title: str
    status: str
    reason: str = ""


@dataclasses.dataclass
class Report:
    """The result of `gradcheck` or `check_op`.

    Attributes
    ----------
    name : str
        What was checked.
    seed : int
        The seed of all random numbers: with it, the check repeats exactly.
    parts : list of PartResult
    failures : list of Failure
    notes : list of str
        What is not a failure but worth knowing: kinks at the inputs, doubtful habits.
    unchecked : list of Unchecked
        What could not be checked, and why.
    precision : float or None
        The relative precision of forward, where it iterates and is coarser than the tolerance.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> report = pb.check.gradcheck(pb.sin, np.array([0.5, 1.0]))
    >>> report.ok, report.failures
    (True, [])
    """

    name: str
    seed: int
    parts: list[PartResult] = dataclasses.field(default_factory=list)
    failures: list[Failure] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    unchecked: list[Unchecked] = dataclasses.field(default_factory=list)
    precision: float | None = None

    @property
    def outcome(self) -> str:
        """``"right"``, ``"wrong"`` or ``"not checked"``: wrong if anything is, else not checked."""
        return WRONG if self.failures else UNCHECKED if self.unchecked else RIGHT

    @property
    def ok(self) -> bool:
        """Whether the outcome is ``"right"``."""
        return self.outcome == RIGHT

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        checked = any(part.name == "first" and part.status == PASSED for part in self.parts)
        right = (
            "the gradients are right"
            if checked
            else "nothing wrong found, derivatives not compared"
        )
        heads = {RIGHT: right, WRONG: _counted(len(self.failures)), UNCHECKED: "not checked"}
        lines = [f"{self.name}: {heads[self.outcome]} (seed {self.seed})"]
        lines += [indented(f"- {found}") for found in (*self.failures, *self.unchecked)]
        lines += [indented(f"note: {note}") for note in self.notes]
        shown = (PASSED, FAILED, NOT_COMPARED, INAPPLICABLE)
        ran = [part for part in self.parts if part.status in shown]
        width = max((len(part.title) for part in ran), default=0)
        for part in ran:
            reason = f": {part.reason}" if part.reason else ""
            lines.append(f"  {part.title.ljust(width)}  {part.status}{reason}")
        others = [part for part in self.parts if part.status in (NOT_RUN, SKIPPED)]
        for status, why in dict.fromkeys((part.status, part.reason) for part in others):
            titles = ", ".join(p.title for p in others if (p.status, p.reason) == (status, why))
            lines.append(f"  {status}{f' ({why})' if why else ''}: {titles}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return plain objects, for JSON."""
        return {
            "name": self.name,
            "ok": self.ok,
            "outcome": self.outcome,
            "seed": self.seed,
            "parts": [dataclasses.asdict(part) for part in self.parts],
            "failures": [failure.as_dict() for failure in self.failures],
            "unchecked": [dataclasses.asdict(found) for found in self.unchecked],
            "notes": list(self.notes),
            "precision": self.precision,
        }

    @property
    def repair(self) -> str:
        """The changes of the source that make the gradients right; they are sought when read."""
        return "\n".join(failure.repair for failure in self.failures if failure.repair)

    def plot(self) -> Any:
        """Draw each failing gradient against the numerical one, and where its error is.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingExtraError
            If Matplotlib is not installed.
        """
        return figure_of(self)


def _counted(count: int) -> str:
    return "1 failure" if count == 1 else f"{count} failures"


def indented(text: str) -> str:
    """Return a text indented by two columns, the lines after the first by four."""
    return "  " + text.replace("\n", "\n    ")
