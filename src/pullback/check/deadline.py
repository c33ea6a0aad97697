"""The time that a check may take.

Owns the limit of the check in progress. A call of the function cannot be interrupted, so none is
begun that would end too late, as far as the longest one so far tells.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar


class OutOfTimeError(BaseException):
    """The time limit is reached.

    No `Exception`: what catches the exceptions of the function that is checked must not catch it.
    """


class Deadline:
    """When a check has to end.

    Parameters
    ----------
    seconds : float
        How long it may take from now on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.perf_counter() + seconds
        self.longest = 0.0  # of the calls so far, in seconds

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Time one call of the function; raise `OutOfTimeError` if it would not end in time."""
        start = time.perf_counter()
        if start + self.longest > self.end:
            raise OutOfTimeError
        try:
            yield
        finally:
            self.longest = max(self.longest, time.perf_counter() - start)

    def reason(self) -> str:
        """Return why what is left was not checked."""
        one = f"; one call takes {self.longest:.2g} s" if self.longest > 0.1 else ""
        return f"the time limit of {self.seconds:g} s was reached{one}"


_CURRENT: ContextVar[Deadline | None] = ContextVar("_CURRENT", default=None)
_NEVER = Deadline(float("inf"))


def deadline() -> Deadline:
    """Return when the check in progress has to end."""
    return _CURRENT.get() or _NEVER


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Limit the checks within a block."""
    token = _CURRENT.set(Deadline(seconds))
    try:
        yield
    finally:
        _CURRENT.reset(token)
