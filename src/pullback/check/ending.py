"""Whether a call ends: a loop until something is small may never end in another dtype.

It runs in a thread of its own, in which an exception is raised if it takes too long. Must not know
what is called.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import threading
from collections.abc import Callable

from pullback.check.deadline import limited


class _StoppedError(BaseException):
    """Raised in the thread of a call that takes too long."""


def ends(call: Callable[[], object], seconds: float) -> bool:
    """Return whether a call ends in time, whatever it raises; one that does not is stopped.

    Where there are no threads it is not called, and taken to end.

    Examples
    --------
    >>> ends(lambda: 1 / 0, 1.0)
    True
    """
    done = threading.Event()

    def run() -> None:
        # Its time is none of the check's.
        with contextlib.suppress(BaseException), limited(float("inf")):
            call()
        done.set()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return True
    if done.wait(seconds):
        return True
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_StoppedError)
    )
    done.wait(1.0)
    return False
