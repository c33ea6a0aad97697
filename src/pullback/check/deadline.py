"""The time that a check may take, and that it should take; and how far it is, as a line of text.

Owns the limits of the check in progress. A call of the function cannot be interrupted, so none is
begun that would end too late, as far as the longest one so far tells. Beside the limit there is a
time after which nothing optional is begun any more, so that a slow operation is checked in seconds.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from queue import Empty, SimpleQueue

WAY_OUT = "pass a larger time_limit, smaller inputs, or fast=True"  # of a check that reached it
_WAITING = 2.0  # how much longer than its time of the processor something may take
# What ends sooner needs no progress; between two updates so many seconds pass.
_SOON = 1.0
_PAUSE = 0.1
# The clock of this thread; in a browser there is none, and but one thread.
_processor_time = getattr(time, "thread_time", time.process_time)
_PATIENCE, _SLOWER = 1.0, 20.0  # what another call may take: in seconds, and as calls on average


def _on_terminal(text: str) -> None:
    """Write a text in place of the line that standard error shows, if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text[:79]}")
        sys.stderr.flush()


DISPLAY: ContextVar[Callable[[str], None]] = ContextVar("DISPLAY", default=_on_terminal)


class OutOfTimeError(BaseException):
    """The time limit is reached.

    No `Exception`: what catches the exceptions of the function that is checked must not catch it.
    """


class Budget:
    """Seconds from now on, of the processor, so that no less is found on a busy machine."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._begun = seconds, (time.perf_counter(), _processor_time())

    def left(self) -> float:
        """Return how many seconds are left."""
        waited, took = time.perf_counter() - self._begun[0], _processor_time() - self._begun[1]
        return max(0.0, self._seconds - max(took, waited / _WAITING))

    def lasts(self, seconds: float = 0.0) -> bool:
        """Return whether more than so many seconds are left."""
        return self.left() > seconds


class Deadline:
    """When a check has to end: after `seconds`; it should end after the `usual` ones."""

    def __init__(self, seconds: float, usual: float = float("inf"), doing: str = "") -> None:
        self.seconds, self.usual = seconds, Budget(usual)
        self.start = time.perf_counter()
        self.end, self.due = self.start + seconds, self.start + _SOON  # of the next progress
        self.optional = False  # whether what is being done may be left out
        self.longest = self.total = 0.0  # of the calls so far, in seconds
        self.calls = 0
        self.doing = doing
        self.idle: list[_Worker] = []  # threads that wait for a call

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Time one call of the function; raise `OutOfTimeError` if it would not end in time."""
        start = time.perf_counter()
        if self.is_over() or (self.optional and not self.usual.lasts(self.longest)):
            raise OutOfTimeError
        try:
            yield
        finally:
            now = time.perf_counter()
            self.longest, self.total = max(self.longest, now - start), self.total + now - start
            self.calls += 1
            self.show()

    def affords(self, calls: int) -> float:
        """Return how many times as many calls fit into what is left of the usual time."""
        left = min(self.usual.left(), max(self.end - time.perf_counter(), 0.0))
        return left / self.average() / calls if self.total else float("inf")

    @contextlib.contextmanager
    def leaving_out(self, calls: int = 0) -> Iterator[None]:
        """Raise `OutOfTimeError` within a block once the usual time, or that of calls, is over."""
        granted = calls * self.average()
        if not self.usual.lasts(granted):
            self.usual = Budget(granted)
        before, self.optional = self.optional, True
        try:
            yield
        finally:
            self.optional = before

    @contextlib.contextmanager
    def as_time_allows(self) -> Iterator[None]:
        """End a block early, without more, once the usual time, or the limit, is over."""
        with contextlib.suppress(OutOfTimeError), self.leaving_out():
            yield

    def average(self) -> float:
        """Return how many seconds a call took on average."""
        return self.total / max(self.calls, 1)

    def is_over(self) -> bool:
        """Return whether another call would end after the limit."""
        return time.perf_counter() + self.longest > self.end

    # -- in words ------------------------------------------------------------------------------
    def reason(self) -> str:
        """Return why what is left was not done."""
        if self.is_over():
            limit = f"the time limit of {self.seconds:g} s was reached"
            return f"{limit}; one call takes {self.longest:.2g} s"
        return f"one call takes {self.average():.2g} s; name parts in only=... to take the time"

    def show(self, doing: str = "") -> None:
        """Show what is done, if anything, once that is longer than a moment."""
        self.doing, now = doing or self.doing, time.perf_counter()
        if self.doing and now >= self.due:
            self.due, took = now + _PAUSE, now - self.start
            DISPLAY.get()(f"{self.doing}, {took:.0f} s, one call takes {self.average():.2g} s")


_NEVER = Deadline(float("inf"))
_CURRENT: ContextVar[Deadline] = ContextVar("_CURRENT", default=_NEVER)


def deadline() -> Deadline:
    """Return when the check in progress has to end."""
    return _CURRENT.get()


@contextlib.contextmanager
def limited(seconds: float, usual: float = float("inf"), doing: str = "") -> Iterator[Deadline]:
    """Limit the checks within a block; yields the limit. What they are `doing` is shown."""
    found = Deadline(seconds, usual, doing)
    token = _CURRENT.set(found)
    try:
        yield found
    finally:
        _CURRENT.reset(token)
        for worker in found.idle:  # what they hold lives as long as they do
            worker.calls.put(None)
            worker.join()
        if doing and found.due > found.start + _SOON:
            DISPLAY.get()("")


def starts_threads() -> bool:
    """Return whether threads can be started: in a browser they cannot."""
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return False
    return True


class _Worker(threading.Thread):
    """A thread that makes calls one after the other, whatever they raise, until there is none."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.calls, self.ended = SimpleQueue[Callable[[], object] | None](), SimpleQueue[None]()
        self.start()

    def run(self) -> None:
        while call := self.calls.get():
            with contextlib.suppress(BaseException):
                call()
            self.ended.put(None)


def ends(call: Callable[[], object], seconds: float = _PATIENCE) -> bool:
    """Return whether a call ends in time, whatever it raises; one that does not is stopped.

    It may take some seconds, or many times as long as the others. It runs in another thread, in
    which an exception is raised if it takes too long.
    """

    def run() -> None:
        with limited(float("inf")):  # its time is none of the check's
            call()

    idle, context = deadline().idle, contextvars.copy_context()

    def within() -> None:
        context.run(run)

    try:
        worker = idle.pop() if idle else _Worker()
    except RuntimeError:  # where there are no threads it is taken to end, and runs here
        with contextlib.suppress(Exception, OutOfTimeError):
            within()
        return True
    worker.calls.put(within)
    try:
        worker.ended.get(timeout=seconds + _SLOWER * deadline().average())
    except Empty:
        worker.calls.put(None)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(worker.ident or 0), ctypes.py_object(SystemExit)
        )
        return False
    idle.append(worker)
    return True
