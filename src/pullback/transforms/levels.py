"""Levels: one number for each running transform, beyond those of what runs around it.

A node of the graph knows the levels that its result depends on, one bit each: bit 0 for what users
differentiate by, bit n for what a transform at level n does. Whether a value depends on an outer
level is so a comparison, and what is left of a transform that has ended is a constant to all that
run at its level or further out. A library of wrapped arrays stands at the level of its transform.
What carries a derivative or samples knows its run as well, and is refused when that has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pullback.arrays import WrappingLibrary, library_of, ndarray
from pullback.core.graph.modes import RECORD, STATE, changed_mode, run_with
from pullback.core.tensor.tensor import Tensor

# The changes of the mode in which a transform runs a function that it differentiates.
_RECORDING = {"grad": True, "inference": False}
# The level of the innermost transform that is running; None in a new thread, which has no context.
LEVEL: ContextVar[int | None] = ContextVar("pullback_level", default=None)
# Where levels begin in other threads: a function that runs in one may close over outer levels.
_OF_THREADS = 16


def new_level(tensors: Iterable[Tensor | None] = ()) -> int:
    """Return the level of a transform that begins: beyond what is running, or wraps a tensor."""
    level = LEVEL.get()
    if level is None:
        level = 0 if threading.current_thread() is threading.main_thread() else _OF_THREADS
    for tensor in tensors:
        if tensor is not None:
            array = tensor._data if tensor._base is None else tensor.data_array()
            if array.__class__ is not ndarray:
                level = max(level, library_of(array).level)
    return level + 1


def run_at_level(level: int, fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
    """Call `fn` such that transforms in it are beyond a level."""
    return run_with(LEVEL, max(level, LEVEL.get() or 0), fn, *args, **kw)


def run_recorded(level: int, fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
    """Do the same in the mode in which a transform at that level records."""
    mode = STATE.get()
    recording = mode if mode is RECORD else changed_mode(_RECORDING)
    level = max(level, LEVEL.get() or 0)
    return run_with(STATE, recording, run_with, LEVEL, level, fn, *args, **kw)


def depends_on_outer_level(level: int, values: Iterable[Any]) -> bool:
    """Say whether one of some values has a derivative by what is differentiated further out."""
    for value in values:
        if isinstance(value, Tensor):
            if value._base is not None:
                value.data_array()  # brings its node up to date
            node = value._node
            if node is not None and node.levels % (1 << level) != 0:
                return True
    return False


def has_graph(values: Iterable[Any]) -> bool:
    """Say whether what is computed of some values is recorded, as one of them requires grad."""
    if STATE.get().grad:
        for value in values:
            if isinstance(value, Tensor) and (
                value.requires_grad if value._base is not None else value._node is not None
            ):
                return True
    return False


class Running:
    """One run of a transform on wrapped arrays, which carry it: another run's are none of its own.

    Attributes
    ----------
    library : WrappingLibrary
    size : int
        How many samples a batch has; 0 in forward mode.
    randomness : str
        How numbers are drawn for the samples of a batch.
    user_ops : list
        The users' operations that were called in it.
    ended : bool
        Whether it has returned: what is left of its arrays can no longer be computed with.
    """

    __slots__ = ("ended", "library", "randomness", "size", "user_ops")

    def __init__(self, library: WrappingLibrary, size: int = 0, randomness: str = "") -> None:
        self.library: Any = library
        self.size, self.randomness = size, randomness
        self.user_ops: list[Any] = []
        self.ended = False


# Forward modes and batches that are running, the innermost last: what is differentiated inside of
# one is wrapped, so that its graph is one of wrapped arrays.
WRAPPING: ContextVar[tuple[Running, ...]] = ContextVar("pullback_wrapping", default=())


@contextmanager
def resumed() -> Iterator[None]:
    """Let the runs of the context go on inside of the block, where a part of them is run again."""
    ended = [running for running in WRAPPING.get() if running.ended]
    for running in ended:
        running.ended = False
    try:
        yield
    finally:
        for running in ended:
            running.ended = True
