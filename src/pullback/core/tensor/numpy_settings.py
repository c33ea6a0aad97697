"""Where NumPy itself takes a tensor for a number, which its result would not follow.

Settings beside arrays (``np.sum(a, initial=t)``, ``np.interp(x, xp, fp, left=t)``) do not reach the
protocols: NumPy calls ``float``. That is told from a user's ``float`` by whose code asks.
"""

from __future__ import annotations

import sys
from typing import Any

from pullback.arrays import library_of
from pullback.core.graph.modes import STATE
from pullback.errors import GraphError, compose

__all__ = ["refuse_as_setting"]


def refuse_as_setting(tensor: Any) -> None:
    """Raise where code of NumPy's asks a tensor with a graph or a tangent for its number."""
    frame = sys._getframe(2)
    if frame.f_globals.get("__name__", "").partition(".")[0] != "numpy":
        return
    array = tensor._data
    tracked = tensor.requires_grad and STATE.get().grad
    if not tracked and library_of(array).constant(array) is array:
        return
    name = ""
    while frame is not None and frame.f_globals.get("__name__", "").startswith("numpy"):
        name, frame = frame.f_code.co_name, frame.f_back  # type: ignore[assignment]
    required = "numbers as settings beside arrays required, since an array has no gradient"
    came = "a tensor that requires grad or has a tangent"
    hint = "make the array a tensor by pb.asarray(a), or detach() the setting"
    label = f"np.{name.removeprefix('_')}"
    raise GraphError(compose(label, required, came, ("setting", tensor), hint=hint))
