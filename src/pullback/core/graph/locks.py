"""Locks that no thread of the parent holds in the child of a fork.

A fork copies a lock as it is, held or not, and the thread that would release it is not there in
the child. So the library's locks are kept in lists, whose locks the child gets anew. They are
re-entrant: a lock may stand for several objects, and what runs under it may come to another one.
"""

from __future__ import annotations

import os
import threading
from typing import Any


def fork_safe_locks(count: int) -> list[Any]:
    """Return a list of so many locks; take one out of it each time that it is needed."""
    locks = [threading.RLock() for _ in range(count)]

    def renew() -> None:
        locks[:] = [threading.RLock() for _ in range(count)]

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)
    return locks


# One for all leaves whose numbers end in the same bits: a leaf of its own has none to make.
LEAVES = fork_safe_locks(64)
LAST_LEAF = len(LEAVES) - 1
