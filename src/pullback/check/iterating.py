"""Whether a call repeats a step as often as its values ask for: it iterates, and stops when close.

The rule of such a function is often the derivative of the exact result, as by the implicit function
theorem; it then differs from the differences by as much as forward differs from the exact result.
And with other numbers than those it is meant for, such a loop may never end. Must not know what is
called.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import gc
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from pullback.check.deadline import limited

# This package, what it generates, and the standard library, where objects are finalized.
_OWN = (str(Path(__file__).parents[1]), "<pullback", sysconfig.get_path("stdlib"))


def lines_of(call: Callable[[], object]) -> Counter[tuple[str, int]]:
    """Return how often a call runs each line of Python, but for those of the library itself.

    Examples
    --------
    >>> def halved(x):
    ...     while x > 1:
    ...         x = x / 2
    >>> list(lines_of(lambda: halved(5.0)).values())[1:]
    [4, 3]
    """
    found: Counter[tuple[str, int]] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_filename, frame.f_lineno] += 1
        return None if frame.f_code.co_filename.startswith(_OWN) else trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # what is finalized meanwhile runs lines of its own
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return found


class _StoppedError(BaseException):
    """Raised in the thread of a call that takes too long."""


def ends(call: Callable[[], object], seconds: float) -> bool:
    """Return whether a call ends in time, whatever it raises; one that does not is stopped.

    It runs in a thread of its own, in which an exception is raised if it takes too long.

    Examples
    --------
    >>> ends(lambda: 1 / 0, 1.0)
    True
    """

    def run() -> None:
        # Its time is none of the check's.
        with contextlib.suppress(BaseException), limited(float("inf")):
            call()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    try:
        thread.start()
    except RuntimeError:  # where there are no threads it is taken to end
        return True
    thread.join(seconds)
    if not thread.is_alive():
        return True
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_StoppedError)
    )
    thread.join(1.0)
    return False
