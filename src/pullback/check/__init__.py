"""The gradient checker: is backward right, and if not, why.

A map, for a reader with an hour. A module imports from the groups above its own, and within a group
from those named before it.

What everything works on
    values (arrays on the host, and where others live), naming (what messages call things),
    exceptions (how a check is interrupted).
Measuring and telling
    numerical (derivatives by differences), subject (the call, its values and gradients), plot (the
    picture of a report), report (causes, failures, notes).
One check
    session (one check in progress: tolerances, random numbers, each thing measured once), then
    comparing (two gradients, up to rounding), evidence (what is known of a wrong gradient),
    resizing (the same call at other sizes), saved (what forward kept for backward).
Naming the cause
    diagnosis (hypotheses about the numbers, the most specific first).
The parts
    first (backward against differences), rechecking (that again, at another call than the user's),
    then each for itself mutation, laws (repeatable, linear, outputs, aliases), masks, layouts with
    memory (the layouts there are), shapes, modes (no_grad, threads), lifetime (what is left
    behind), second (second derivatives), dtypes, libraries; api puts them in order: `gradcheck`.
Inputs
    shape_text (descriptions such as ``"x: (n, d)"``), drawing (their values), roles (what a name
    means), plans (shapes that go together), inputs (the arguments of a call), guessing, searching
    and strategies (Hypothesis); ops puts them together: `check_op`.
Finding operations
    loading (importing what is to be checked), discovery (of a module, file or folder).

The public names are loaded when they are first used: a program that only computes gradients does
not wait for the checker.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.check.api import PARTS, gradcheck
    from pullback.check.ops import check_op
    from pullback.check.report import Cause, Failure, PartResult, Report
    from pullback.check.strategies import arguments, tensors

__all__ = [
    "PARTS",
    "Cause",
    "Failure",
    "PartResult",
    "Report",
    "arguments",
    "check_op",
    "gradcheck",
    "tensors",
]

_HOMES = {
    "api": ("PARTS", "gradcheck"),
    "ops": ("check_op",),
    "report": ("Cause", "Failure", "PartResult", "Report"),
    "strategies": ("arguments", "tensors"),
}


def __getattr__(name: str) -> Any:
    """Load a public name."""
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
