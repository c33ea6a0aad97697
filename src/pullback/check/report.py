"""What a check found: parts, failures with their causes, notes; as text, HTML, JSON or a plot.

Must not know how anything was found.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import html
import io
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.check.values import Array
from pullback.core.tensor.printing import html_table
from pullback.extras import optional

RIGHT, WRONG, UNCHECKED = "right", "wrong", "not checked"  # what is said of an operation


class Status(enum.StrEnum):
    """What is said of a part of a check."""

    PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
    INAPPLICABLE, NOT_RUN = "not applicable", "not run"
    IGNORED, NOT_COMPARED = "ignored", "not compared"


@dataclasses.dataclass(frozen=True)
class Options:
    """What the user chose."""

    seed: int = 0
    fast: bool = False
    only: Sequence[str] | None = None
    skip: Sequence[str] = ()
    rtol: float | None = None
    atol: float = 0.0
    time_limit: float = 60.0
    surrogate: str = ""  # why the gradient may differ from the derivative
    order: int = 1  # whether second derivatives are asked for: 2
    ignore: Mapping[str, str] = dataclasses.field(default_factory=dict)  # parts that may fail: why
    repair: bool = True  # whether changes of the source may be sought that make a gradient right
    guessed: bool = False  # whether nobody gave the inputs, so that backward may not be for them
    max_elements: int = 256  # elements moved one by one

    def chooses(self, part: str) -> bool:
        """Return whether a part of the check, given by name, is to be run."""
        return part not in self.skip and (not self.only or part in self.only)


class InapplicableError(Exception):
    """A part of the check does not apply to this function; the message says why."""

    status = Status.INAPPLICABLE


class NotComparedError(InapplicableError):
    """A part ran without comparing gradients with differences; the message says why."""

    status = Status.NOT_COMPARED


@dataclasses.dataclass(frozen=True)
class Cause:
    """Why a gradient is wrong."""

    name: str  # one of those in docs/gradient-checker.md, such as "factor"
    text: str  # a sentence that names the arguments
    hint: str = ""  # how to fix it
    vague: bool = False  # whether it may follow from another one


@dataclasses.dataclass(repr=False)
class Failure:
    """One thing that is wrong.

    Attributes
    ----------
    part, argument : str
        The part of the check that found it, and whose gradient is wrong; empty if no single one's.
    cause : Cause
    expected, got, wrong : array, optional
        The gradient by differences and backward's, for one output gradient, and where they differ.
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
    find_repair: Callable[[], str] | None = dataclasses.field(default=None, compare=False)

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
        index = tuple(map(int, np.unravel_index(np.argmax(off), off.shape)))
        return index, self.expected[index].item(), np.asarray(self.got)[index].item()

    @property
    def text(self) -> str:
        """The cause, and the situation it was found in."""
        return self.cause.text + (f" ({self.situation})" if self.situation else "")

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = []
        if self.worst is not None:
            index, expected, got = self.worst
            place = "[" + ", ".join(map(str, index)) + "]"
            rows.append(("argument", "worst element", "expected", "got"))
            rows.append((self.argument, place, f"{expected:.6g}", f"{got:.6g}"))
        hint = f"hint: {self.cause.hint}" if self.cause.hint else ""
        return "\n".join(filter(None, [self.text, *_columns(rows, "    "), hint, self.repair]))

    def __repr__(self) -> str:
        return _one_line(f"Failure {self.part}, {self.cause.name}: {self.text}")

    def as_dict(self) -> dict[str, Any]:
        """Return plain objects, for JSON."""
        found: dict[str, Any] = {"part": self.part, "argument": self.argument}
        found |= {"cause": self.cause.name, "text": self.cause.text, "hint": self.cause.hint}
        found |= {"situation": self.situation, "repair": self.repair}
        if self.worst is not None:
            index, expected, got = self.worst
            found["worst"] = {"index": list(index), "expected": repr(expected), "got": repr(got)}
        return found


@dataclasses.dataclass(frozen=True)
class Unchecked:
    """One thing that could not be checked: what, why, and what to give so that it can be."""

    what: str  # the subject of a sentence
    why: str
    hint: str = ""
    argument: str = ""  # whose gradient it is, if it is one

    def __str__(self) -> str:
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"{self.what}: not checked, since {self.why}{hint}"


@dataclasses.dataclass
class PartResult:
    """One part of a check."""

    name: str  # as `skip` and `only` take it
    title: str  # as it is printed
    status: Status
    reason: str = ""  # why it neither passed nor failed

    @property
    def text(self) -> str:
        """The status, with the reason if there is one."""
        return self.status + (f": {self.reason}" if self.reason else "")


@dataclasses.dataclass(repr=False)
class Report:
    """The result of `gradcheck` or `check_op`.

    Attributes
    ----------
    name : str
        What was checked.
    seed : int
        The seed of all random numbers: with it, the check repeats exactly.
    parts, failures : list of PartResult, list of Failure
    notes : list of str
        What is not a failure but worth knowing: kinks at the inputs, doubtful habits.
    unchecked : list of Unchecked
        What could not be checked, and why.
    precision : float or None
        The relative precision of forward, where it iterates and is coarser than the tolerance.
    ignored : list of Failure
        What was found wrong in parts that the user ignores, with a reason.
    rule : str
        The file and line of backward, or of a function without one; empty where they are unknown.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> report = pb.check.gradcheck(pb.sin, np.array([0.5, 1.0]))
    >>> report
    <Report sin: the gradients are right (seed 0)>
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
    ignored: list[Failure] = dataclasses.field(default_factory=list)
    rule: str = ""

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

    @property
    def headline(self) -> str:
        """What was checked, what came out, and the seed."""
        said, count = self.outcome, len(self.failures)
        if count:
            said = f"{count} failure{'s' * (count > 1)}"
        elif self.ok and any(p.name == "first" and p.status == Status.PASSED for p in self.parts):
            said = "the gradients are right"
        elif self.ok:
            said = "nothing wrong found, derivatives not compared"
        return f"{self.name}: {said} (seed {self.seed})"

    @property
    def findings(self) -> list[str]:
        """What is wrong, what was not checked, what is ignored, and the notes, each as a text."""
        found = [f"- {each}" for each in (*self.failures, *self.unchecked)]
        found += [f"{Status.IGNORED}: {failure.text}" for failure in self.ignored]
        return found + [f"note: {note}" for note in self.notes]

    def __str__(self) -> str:
        findings = map(indented, self.findings)
        return "\n".join([self.headline, *findings, *_columns(self._rows(), "  ")])

    def _rows(self) -> list[tuple[str, ...]]:
        """A row for each part that ran, and one for all those that did not for one reason."""
        ran, left_out = [], dict[str, list[str]]()
        for part in self.parts:
            if part.status not in (Status.NOT_RUN, Status.SKIPPED):
                ran.append((part.title, part.text))
            else:
                why = part.status + (f" ({part.reason})" if part.reason else "")
                left_out.setdefault(why, []).append(part.title)
        return [*ran, *((f"{why}: {', '.join(titles)}",) for why, titles in left_out.items())]

    def __repr__(self) -> str:
        first = [f"{failure.cause.name}: {failure.text}" for failure in self.failures]
        first += map(str, self.unchecked)
        return _one_line(f"Report {', '.join([self.headline, *first[:1]])}")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows."""
        found = "".join(f"<pre>{html.escape(text)}</pre>" for text in self.findings)
        shown = f"<div><b>{html.escape(self.headline)}</b>{found}{html_table(self._rows())}</div>"
        return {"text/plain": str(self), "text/html": shown}

    def as_dict(self) -> dict[str, Any]:
        """Return plain objects, for JSON."""
        found = {"ok": self.ok, "outcome": self.outcome, **vars(self)}
        found |= {key: [each.as_dict() for each in found[key]] for key in ("failures", "ignored")}
        plain = dataclasses.asdict
        return found | {key: [*map(plain, found[key])] for key in ("parts", "unchecked")}

    @property
    def repair(self) -> str:
        """The changes of the source that make the gradients right; they are sought when read."""
        return "\n".join(failure.repair for failure in self.failures if failure.repair)

    def plot(self) -> Any:
        """Draw each failing gradient against the numerical one, and where its error is.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it. `MissingExtraError` is raised where Matplotlib is not installed.
        """
        figures = optional("Report.plot", "matplotlib.figure", "Matplotlib", "plot")
        shown = [f for f in self.failures if f.expected is not None and f.expected.size]
        figure = figures.Figure(figsize=(9.0, 3.6 * max(1, len(shown))), layout="constrained")
        figure._repr_png_ = functools.partial(_as_png, figure)  # shown once, with pyplot or without
        figure.suptitle(self.headline if shown else f"{self.headline}\nno gradient to show")
        for row, failure in enumerate(shown):
            left, right = (figure.add_subplot(len(shown), 2, 2 * row + k) for k in (1, 2))
            _draw(figure, left, right, failure)
        return figure


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, without hints."""
    return str(error).split("\n")[0]


def quoted(names: Iterable[str], between: str = ", ") -> str:
    """Return names in backquotes, joined."""
    return between.join(f"`{name}`" for name in names)


def axes_text(axes: Sequence[int]) -> str:
    """Return axes as sentences name them."""
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {tuple(axes)}"


def indented(text: str) -> str:
    """Return a text indented by two columns, the lines after the first by four."""
    return "  " + text.replace("\n", "\n    ")


def _columns(rows: Sequence[tuple[str, ...]], margin: str) -> list[str]:
    """Return rows as lines, their cells in columns; a cell that is alone is as wide as it is."""
    widths = [max(map(len, each)) for each in zip(*(r for r in rows if len(r) > 1), strict=True)]
    filled = [map(str.ljust, row, widths) if len(row) > 1 else row for row in rows]
    return [f"{margin}{'  '.join(cells)}".rstrip() for cells in filled]


def _one_line(text: str) -> str:
    """Return the beginning of a text, in angle brackets, as one line of less than 120 columns."""
    return f"<{textwrap.shorten(text, 117, placeholder='...')}>"


def _as_png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def _draw(figure: Any, points: Any, image: Any, failure: Failure) -> None:
    """Draw a gradient against the numerical one; complex ones by their absolute values."""
    pair = np.stack([np.asarray(failure.expected), np.asarray(failure.got)])
    expected, got = np.abs(pair) if pair.dtype.kind == "c" else pair
    wrong = np.ones(expected.shape, bool) if failure.wrong is None else failure.wrong
    points.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    for where, color, label in ((~wrong, "tab:green", "right"), (wrong, "tab:red", "wrong")):
        points.scatter(expected[where], got[where], s=14, color=color, label=label)
    points.set(xlabel="numerical", ylabel="backward's")
    points.set_title(failure.cause.text, fontsize=9, wrap=True)
    points.legend()
    shape = (-1, expected.shape[-1] if expected.ndim > 1 else expected.size)
    with np.errstate(invalid="ignore"):
        shown = image.imshow(np.abs(got - expected).reshape(shape), aspect="auto", cmap="magma_r")
    figure.colorbar(shown, ax=image, label="|error|")
    rows, columns = np.nonzero(wrong.reshape(shape))
    image.plot(columns, rows, "x", color="tab:red")
    image.set(xlabel="index along the last axis", ylabel="the other axes, flat")
    image.set_title(f"where `{failure.argument}` is wrong (x)", fontsize=9)
