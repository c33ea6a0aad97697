"""How far a check is: one line of text, for a terminal or for another display.

Owns when it is shown and what it says. It knows of the parts and of the time of the calls; the
parts know nothing of it.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from pullback.check.deadline import Deadline

Display = Callable[[str], None]

# Where to show it; by default on standard error, if that is a terminal and the check takes long.
DISPLAY: ContextVar[Display | None] = ContextVar("DISPLAY", default=None)
# What ends sooner needs no progress; between two updates so many seconds pass.
_SOON = 1.0
_PAUSE = 0.1
_ERASE = "\r\x1b[2K"


class Progress:
    """The state of one check as text.

    Parameters
    ----------
    name : str
        Of the operation.
    deadline : Deadline
    display : callable
        Takes the text.
    at_once : bool
        Whether also what ends soon is shown.
    """

    def __init__(self, name: str, deadline: Deadline, display: Display, at_once: bool) -> None:
        self.name = name
        self.deadline = deadline
        self.display = display
        self.at_once = at_once
        self.part = "inputs"
        self.shown = 0.0  # when, in seconds since the start

    def begin(self, title: str, which: int, count: int) -> None:
        """Show that a part begins."""
        self.part = f"{title} ({which} of {count})"
        self.update(begins=True)

    def update(self, begins: bool = False) -> None:
        """Show the text, unless it was shown just now."""
        elapsed = time.perf_counter() - self.deadline.start
        expected = self.deadline.expected()
        if elapsed - self.shown < _PAUSE and not (begins and self.at_once):
            return
        text = f"{self.name}: {self.part}"
        if elapsed > _SOON or expected > self.deadline.usually:
            about = f" of about {expected:.0f} s" if elapsed < expected < float("inf") else " s"
            text += f", {elapsed:.0f}{about}, one call takes {self.deadline.average():.2g} s"
        elif not self.at_once:
            return
        self.shown = elapsed
        self.display(text)


@contextlib.contextmanager
def shown(name: str, deadline: Deadline) -> Iterator[None]:
    """Show the progress of the check within a block, if there is where to show it."""
    display, line = DISPLAY.get(), None
    if display is None and sys.stderr is not None and sys.stderr.isatty():
        display = line = _Line()
    if display is None:
        yield
        return
    progress = Progress(name, deadline, display, at_once=line is None)
    deadline.on_part, deadline.on_call = progress.begin, progress.update
    try:
        yield
    finally:
        if line is not None:
            line.erase()


class _Line:
    """The last line of a terminal, written over and erased at the end."""

    def __init__(self) -> None:
        self.stream = sys.stderr
        self.used = False

    def __call__(self, text: str) -> None:
        self.used = True
        self.stream.write(f"{_ERASE}{text[: shutil.get_terminal_size().columns - 1]}")
        self.stream.flush()

    def erase(self) -> None:
        if self.used:
            self.stream.write(_ERASE)
            self.stream.flush()
