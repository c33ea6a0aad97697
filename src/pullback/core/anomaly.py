"""Anomaly mode: where an operation was called, and the first NaN among gradients."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

from pullback.arrays import library_of
from pullback.core.modes import STATE
from pullback.core.node import Node
from pullback.core.tensor import Tensor, as_array
from pullback.errors import GradientError


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's call, the first frame that is not ours."""
    level = 2
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def remember_call(node: Node) -> None:
    """Keep the stack of the call that recorded `node`, less our own frames."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        frame = frame.f_back
    node.extras().metadata["traceback"] = "".join(traceback.format_stack(frame))


def check_nan(node: Node, grads: Any) -> None:
    """Raise at the first gradient with a NaN in it."""
    if not STATE.get().check_nan:
        return
    for i, g in enumerate(grads):
        if g is None:
            continue
        array = g.data_array() if isinstance(g, Tensor) else as_array(g)
        if bool(library_of(array).xp.any(array != array)):
            warn_of_origin(node)
            raise GradientError(
                f"Function '{node.name()}' returned nan values in its {i}th output.\n"
                "hint: look at the values that reached it, for instance with a hook on its input."
            )


def warn_of_origin(node: Node) -> None:
    """Say by a warning where the failing operation was called."""
    origin = node.extra.metadata.get("traceback") if node.extra is not None else None
    if origin is None:
        text = "No forward pass information available: run the forward inside detect_anomaly too."
    else:
        text = f"Traceback of the forward call that caused the error:\n{origin}"
    warn_user(f"Error detected in {node.name()}. {text}")
