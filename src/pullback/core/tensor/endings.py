"""Where a derivative ends: values of a running transform that become numbers of Python's.

Owns what transforms say of their calls, `Call`, the warning, and the error where NumPy asks for the
number. Outside of all calls a number is what was asked for; so it is where recording is off.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple

from pullback import hints
from pullback.arrays import constant, library_of
from pullback.core.graph.modes import STATE, run_with
from pullback.errors import GraphError, UntrackedTensorWarning, compose, user_line, warn_user


class Call(NamedTuple):
    """One call of a function by a transform, while it runs."""

    # Those that it and the calls around it differentiate by, as nodes have them. Forward mode has
    # none: its arrays say themselves what changes.
    levels: int
    said: set[Any]  # lines, one warning each


CALLS: ContextVar[Call | None] = ContextVar("pullback_calls", default=None)


def run_in_call(levels: int, fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Any:
    """Call `fn` for a transform that differentiates by these levels; see `run_in_mode`."""
    outer = CALLS.get() or Call(0, set())
    return run_with(CALLS, Call(levels | outer.levels, outer.said), fn, *args, **kw)


def carries(tensor: Any) -> bool:
    """Say whether a tensor has a derivative by what a running transform differentiates by."""
    call, mode = CALLS.get(), STATE.get()
    if call is None or not (mode.grad or mode.parts):
        return False
    while True:  # a part may be an array, which has no node
        if getattr(tensor, "requires_grad", False) and tensor._node.levels & call.levels:
            return True
        array = getattr(tensor, "_data", tensor)
        library: Any = library_of(array)
        if not library.level:
            return False
        tensor, *derivatives = library.parts(array)
        if any(d is not None for d in derivatives):
            return True


def warn_of_end(what: str, tensor: Any) -> None:
    """Warn, once a line, where what a transform differentiates becomes a plain number."""
    call = CALLS.get()
    if call is not None and (line := user_line()) not in call.said and carries(tensor):
        call.said.add(line)
        _warn(what, tensor)


def warn_of_scipy(what: str, tensor: Any) -> None:
    """Warn where SciPy makes a plain number of a tracked tensor, in any code: the user did not."""
    if _package(sys._getframe(3)) == "scipy" and STATE.get().grad:
        _warn(what, tensor)


def refuse_as_setting(tensor: Any) -> None:
    """Raise where code of NumPy's asks a tensor with a graph or a tangent for its number.

    Settings beside arrays (``np.sum(a, initial=t)``, ``np.interp(x, xp, fp, left=t)``) do not reach
    the protocols: NumPy calls ``float``, and its result would not follow.
    """
    frame: FrameType | None = sys._getframe(2)
    if _package(frame) != "numpy":
        return
    array = tensor._data
    tracked = tensor.requires_grad and STATE.get().grad
    if not tracked and constant(array) is array:
        return
    name = ""
    while frame is not None and _package(frame) == "numpy":
        name, frame = frame.f_code.co_name, frame.f_back
    required = "numbers as settings beside arrays required, since an array has no gradient"
    came = "a tensor that requires grad or has a tangent"
    hint = "make the array a tensor by pb.asarray(a), or detach() the setting"
    label = f"np.{name.removeprefix('_')}"
    raise GraphError(compose(label, required, came, ("setting", tensor), hint=hint))


def _package(frame: FrameType | None) -> str:
    """Return whose code a frame runs: a user's `float` is told from NumPy's and SciPy's by that."""
    return "" if frame is None else str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _warn(what: str, tensor: Any) -> None:
    which = "that requires grad" if tensor.requires_grad else "in forward mode"
    way = hints.here()
    warn_user(
        f"{what}: a tensor {which} becomes a plain number, which no gradient follows. Compute with "
        "functions of NumPy or pullback (np.sin for math.sin, np.stack for c[i] = x), or call "
        f"detach() first where that is meant{way and f'; {way}'}.",
        UntrackedTensorWarning,
    )
