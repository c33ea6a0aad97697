"""Passes within passes: deep nesting goes on in threads, each on a fresh stack.

Hooks and rules may start a backward pass within a pass. Each so many levels the next one runs in
a thread of its own, in the same context, so the depth is not bounded by Python's recursion limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

NESTING = 20


def in_thread(function: Callable[[], None]) -> None:
    """Call `function` in a new thread, in this context, and wait; its error is raised here."""
    errors: list[BaseException] = []
    context = copy_context()

    def call() -> None:
        try:
            context.run(function)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    try:
        thread.start()
    except RuntimeError:  # a browser starts none: then on this stack
        return function()
    thread.join()
    if errors:
        raise errors.pop()
